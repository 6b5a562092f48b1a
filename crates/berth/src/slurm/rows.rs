//! Workloads as the rows of `squeue` and `sacct`. Pure.

#[cfg(test)]
pub mod samples;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use berth_api::workloads::{Run, Workload};
use berth_model::WorkloadId;
use berth_model::workload::{Because, Gpus, OnlyIf, Outcome, RunState, State, Tasks, Wish};
use berth_slurm::amount::print_mib;
use berth_slurm::array::Array;
use berth_slurm::duration::TimeLimit;
use berth_slurm::state::JobState;
use berth_slurm::{AccountingRow, JobRow, Member};
use jiff::{SignedDuration, Timestamp};

/// The server shows no more runs of one workload.
const RUNS_SHOWN: usize = 200;

/// One row to be: what there is of a workload in one state.
struct Part<'w> {
    member: Option<Member>,
    state: JobState,
    /// Where it is, or was.
    run: Option<&'w Run>,
}

/// Those tasks that have begun are a part each, and those that have not are one together.
fn parts(workload: &Workload) -> Vec<Part<'_>> {
    let array = workload.number;
    let mut seen = BTreeSet::new();
    // The newest try of a task comes first; one that has to begin again waits.
    let mut parts: Vec<Part<'_>> = workload
        .runs
        .iter()
        .filter(|run| !workload.waiting.contains(run.task) && seen.insert(run.task))
        .map(|run| Part {
            member: workload.array.as_ref().map(|_| Member::Task {
                array,
                index: run.task,
            }),
            state: state_of_run(run.state),
            run: Some(run),
        })
        .collect();
    parts.reverse();
    let rest = rest(workload, &seen);
    let limit = workload.array.as_ref().and_then(|array| array.at_once);
    // Of what is over, only those that were cancelled never began.
    let state = match workload.state.is_final() {
        false => JobState::Pending,
        true => JobState::Cancelled,
    };
    let waiting = match (
        &workload.array,
        Array::of(&rest, limit.map(|most| most.get())),
    ) {
        (Some(_), Some(tasks)) => Some(Some(Member::Waiting { array, tasks })),
        (None, Some(_)) => Some(None),
        (_, None) => None,
    };
    parts.extend(waiting.map(|member| Part {
        member,
        state,
        run: None,
    }));
    parts
}

/// The tasks that are not among the runs: those that wait or, of what is over, never began.
fn rest(workload: &Workload, seen: &BTreeSet<u32>) -> BTreeSet<u32> {
    let one = Tasks::one(0);
    let all = workload.array.as_ref().map_or(&one, |array| &array.tasks);
    match workload.state.is_final() {
        false => workload.waiting.iter().collect(),
        // Of more runs than are shown, nobody knows here which tasks they were.
        true if seen.len() >= RUNS_SHOWN => BTreeSet::new(),
        true => all.iter().filter(|task| !seen.contains(task)).collect(),
    }
}

fn state_of_run(state: RunState) -> JobState {
    match state {
        RunState::Starting => JobState::Configuring,
        RunState::Running => JobState::Running,
        RunState::Stopping { .. } => JobState::Completing,
        RunState::Ended { outcome } => match outcome {
            Outcome::Completed => JobState::Completed,
            Outcome::Failed { .. } => JobState::Failed,
            Outcome::OutOfMemory => JobState::OutOfMemory,
            Outcome::CouldNotStart => JobState::BootFail,
            Outcome::TimedOut => JobState::Timeout,
            Outcome::Preempted | Outcome::Checkpointed => JobState::Preempted,
            Outcome::Cancelled => JobState::Cancelled,
            Outcome::NodeFailed => JobState::NodeFail,
        },
    }
}

/// Why it waits or how it ended, in one of Slurm's words.
fn reason(workload: &Workload, part: &Part<'_>) -> &'static str {
    match part.state {
        JobState::Pending if workload.state == State::Held => "JobHeldUser",
        JobState::Pending => match &workload.waits {
            Some(waits) => slurms_word(&waits.code),
            // Some of its tasks run, so the rest waits for its turn.
            None if workload.state == State::Running => tasks_reason(workload),
            None => "None",
        },
        JobState::Failed => "NonZeroExitCode",
        JobState::Timeout => "TimeLimit",
        JobState::NodeFail => "NodeDown",
        JobState::Completing => match part.run.map(|run| run.state) {
            Some(RunState::Stopping {
                because: Because::TimedOut,
                ..
            }) => "TimeLimit",
            _ => "None",
        },
        _ => "None",
    }
}

fn tasks_reason(workload: &Workload) -> &'static str {
    let most = workload.array.as_ref().and_then(|array| array.at_once);
    match most {
        Some(most) if workload.counts.running >= u64::from(most.get()) => "JobArrayTaskLimit",
        _ => "Resources",
    }
}

fn slurms_word(code: &str) -> &'static str {
    match code {
        "no_room" | "promised" | "making_room" | "cutting" => "Resources",
        "quota" => "QOSMaxGRESPerUser",
        "quota_idle" => "QOSGrpGRES",
        "budget" => "AssocGrpGRESMinutes",
        "held" => "JobHeldUser",
        "not_before" => "BeginTime",
        "dependency" => "Dependency",
        "dependency_never" => "DependencyNeverSatisfied",
        "no_such_gpu" | "never" => "BadConstraints",
        "no_seats" => "Licenses",
        "no_backend" => "PartitionDown",
        _ => "None",
    }
}

/// What a part holds or asks for.
struct Size {
    nodes: u32,
    pieces: u32,
    cores_of_piece: u32,
    cores: u32,
    memory_mib: u64,
    gpus: u64,
}

fn size(workload: &Workload, part: &Part<'_>) -> Size {
    let wish = wish(workload, part);
    let pieces = wish.map_or(1, |wish| wish.tasks.get());
    let milli = wish.map_or(0, |wish| wish.task.cores_milli.get());
    let gpus = wish.and_then(|wish| wish.task.gpus.as_ref());
    let gpus = gpus.map_or(0, |gpus| match gpus {
        Gpus::Whole { count, .. } | Gpus::Slice { count, .. } => u64::from(count.get()),
        Gpus::Share { .. } => 1,
    });
    let whole = |milli: u64| u32::try_from(milli.div_ceil(1000)).unwrap_or(u32::MAX);
    let memory = wish.map_or(0, |wish| wish.task.memory_mib.get());
    Size {
        nodes: part.run.map_or(pieces, |run| count(nodes(run).len())),
        pieces,
        cores_of_piece: whole(milli),
        cores: whole(milli.saturating_mul(u64::from(pieces))),
        memory_mib: memory,
        gpus,
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Size {
    fn tres(&self) -> String {
        let pieces = u64::from(self.pieces);
        let memory = print_mib(self.memory_mib.saturating_mul(pieces));
        let (cores, nodes) = (self.cores, self.nodes);
        let gpus = match self.gpus.saturating_mul(pieces) {
            0 => String::new(),
            gpus => format!(",gres/gpu={gpus}"),
        };
        format!("cpu={cores},mem={memory},node={nodes},billing={cores}{gpus}")
    }
}

fn wish<'w>(workload: &'w Workload, part: &Part<'_>) -> Option<&'w Wish> {
    let at = part.run.and_then(|run| usize::try_from(run.wish).ok());
    workload
        .wishes
        .get(at.unwrap_or(0))
        .or(workload.wishes.first())
}

fn limit(workload: &Workload, part: &Part<'_>) -> Option<SignedDuration> {
    wish(workload, part).map(|wish| wish.limit)
}

pub fn time_limit(limit: Option<SignedDuration>) -> TimeLimit {
    let minutes = limit.map(|limit| u64::try_from(limit.as_secs()).unwrap_or(0).div_ceil(60));
    let minutes = minutes.and_then(|minutes| u32::try_from(minutes).ok());
    minutes.map_or(TimeLimit::Unlimited, TimeLimit::Minutes)
}

/// Each once, however many pieces stand there.
fn nodes(run: &Run) -> Vec<String> {
    let names: BTreeSet<_> = run.nodes.iter().map(|node| &node.node.name).collect();
    names.into_iter().cloned().collect()
}

/// `gres:gpu:2`, or with what was asked of their model.
fn gres(wish: Option<&Wish>) -> Option<String> {
    let gpus = wish?.task.gpus.as_ref()?;
    let model = gpus
        .with()
        .iter()
        .find(|with| with.attribute.as_str() == "gpu_model");
    let model = model
        .map(|with| format!("{}:", with.value))
        .unwrap_or_default();
    Some(match gpus {
        Gpus::Whole { count, .. } => format!("gres:gpu:{model}{count}"),
        Gpus::Slice { profile, count, .. } => format!("gres:gpu:{profile}:{count}"),
        Gpus::Share { thousandths, .. } => format!("gres:shard:{model}{thousandths}"),
    })
}

fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_second() - from.as_second()).unwrap_or(0)
}

/// Those of the list that a workload waits for, as `squeue` writes them.
fn dependency(workload: &Workload, numbers: &HashMap<WorkloadId, u64>) -> Option<String> {
    let word = |only_if| match only_if {
        OnlyIf::Completed => "afterok",
        OnlyIf::Failed => "afternotok",
        OnlyIf::Over => "afterany",
        OnlyIf::Begun => "after",
    };
    let known = workload.after.iter().filter_map(|after| {
        let number = numbers.get(&after.workload)?;
        Some(format!("{}:{number}(unfulfilled)", word(after.only_if)))
    });
    let known: Vec<_> = known.collect();
    (!known.is_empty()).then(|| known.join(","))
}

/// The rows of `squeue`. Nobody here has a number as a user of a machine has; 0 stands in.
pub fn jobs(workloads: &[Workload], now: Timestamp) -> Vec<JobRow> {
    let numbers = workloads.iter().map(|one| (one.id, one.number)).collect();
    let rows = |workload| {
        let part = parts(workload).into_iter();
        part.map(|part| job(workload, &part, &numbers, now))
            .collect::<Vec<_>>()
    };
    workloads.iter().flat_map(rows).collect()
}

fn job(
    workload: &Workload,
    part: &Part<'_>,
    numbers: &HashMap<WorkloadId, u64>,
    now: Timestamp,
) -> JobRow {
    let size = size(workload, part);
    let limit = limit(workload, part);
    let waits = workload.waits.as_ref();
    let expected = waits.and_then(|waits| waits.promised.or(waits.forecast));
    let start = part.run.map(|run| run.began).or(expected);
    let end = match part.run {
        Some(run) => Some(run.ended_at.unwrap_or(run.until)),
        None if part.state == JobState::Pending => start
            .zip(limit)
            .and_then(|(start, limit)| start.checked_add(limit).ok()),
        None => workload.ended_at,
    };
    JobRow {
        member: part.member.clone(),
        account: workload
            .project
            .as_ref()
            .map(|project| project.name.clone()),
        qos: workload.level.as_ref().map(ToString::to_string),
        reservation: workload.inside.map(|id| id.to_string()),
        state: part.state,
        reason: reason(workload, part).to_owned(),
        eligible: workload.not_before.or(Some(workload.since)),
        start,
        end,
        deadline: workload.deadline,
        time_limit: time_limit(limit),
        time_used_s: part
            .run
            .map_or(0, |run| seconds(run.began, run.ended_at.unwrap_or(now))),
        nodes: size.nodes,
        max_nodes: size.nodes,
        cpus: size.cores,
        tasks: size.pieces,
        cpus_per_task: size.cores_of_piece,
        memory_mib: size.memory_mib,
        tres_per_node: gres(wish(workload, part)),
        tres_alloc: part.run.map(|_| size.tres()),
        node_list: part.run.map(nodes).unwrap_or_default(),
        dependency: dependency(workload, numbers),
        requeue: workload.requeue,
        restarts: part.run.map_or(0, |run| run.attempt.saturating_sub(1)),
        exit_code: exit_code(part),
        ..JobRow::pending(
            workload.number,
            workload.title.as_str(),
            &workload.owner.login,
            &workload.site.name,
            workload.since,
        )
    }
}

fn exit_code(part: &Part<'_>) -> u32 {
    match part.run.map(|run| run.state) {
        Some(RunState::Ended {
            outcome: Outcome::Failed { exit_code },
        }) => u32::try_from(exit_code).unwrap_or(1),
        _ => 0,
    }
}

/// The rows of `sacct`.
pub fn accounting(workloads: &[Workload], now: Timestamp) -> Vec<AccountingRow> {
    let rows = |workload| {
        let part = parts(workload).into_iter();
        part.map(|part| account(workload, &part, now))
            .collect::<Vec<_>>()
    };
    workloads.iter().flat_map(rows).collect()
}

fn account(workload: &Workload, part: &Part<'_>, now: Timestamp) -> AccountingRow {
    let size = size(workload, part);
    let began = part.run.map(|run| run.began);
    let end = match part.run {
        Some(run) => run.ended_at,
        None => workload.ended_at,
    };
    AccountingRow {
        member: part.member.clone(),
        account: workload
            .project
            .as_ref()
            .map(|project| project.name.clone()),
        qos: workload.level.as_ref().map(ToString::to_string),
        reservation: workload.inside.map(|id| id.to_string()),
        state: part.state,
        reason: reason(workload, part).to_owned(),
        exit_code: exit_code(part),
        eligible: workload.not_before.or(Some(workload.since)),
        start: began,
        end,
        elapsed_s: began.map_or(0, |began| seconds(began, end.unwrap_or(now))),
        time_limit: limit(workload, part).map(|limit| time_limit(Some(limit))),
        req_cpus: size.cores,
        req_nodes: size.pieces,
        req_memory_mib: size.memory_mib.saturating_mul(u64::from(size.pieces)),
        req_tres: Some(size.tres()),
        alloc_cpus: part.run.map_or(0, |_| size.cores),
        alloc_tres: part.run.map(|_| size.tres()),
        node_list: part.run.map(nodes).unwrap_or_default(),
        ..AccountingRow::pending(
            workload.number,
            workload.title.as_str(),
            &workload.owner.login,
            &workload.site.name,
            workload.since,
        )
    }
}
