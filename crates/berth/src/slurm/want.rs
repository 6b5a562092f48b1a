//! What somebody asks of `sbatch`, as a workload. Pure: whoever calls has read the files and asked the server.

mod program;
mod shape;
#[cfg(test)]
mod tests;

use berth_api::list::List;
use berth_api::moment::Moment;
use berth_api::workloads::NewWorkload;
use berth_model::Amount;
use berth_model::workload::{After, Array, AtOnce, Class, OnlyIf, Seats};
use berth_slurm::UsageError;
use berth_slurm::dependency::{Dependency, When};
use berth_slurm::duration::TimeLimit;
use berth_slurm::job_id::Tasks;
use berth_slurm::sbatch::{Batch, Memory};
use jiff::{SignedDuration, Timestamp};

pub use program::{Place, Script};

/// How long a job may run whose owner did not say, where the site allows as much.
const UNSAID_LIMIT: SignedDuration = SignedDuration::from_hours(24);

/// What the server was asked before.
#[derive(Debug)]
pub struct Known {
    /// What `--dependency` means here.
    pub after: Vec<After>,
    /// The longest limit of the site, where the job's depends on it.
    pub longest: Option<SignedDuration>,
}

/// Whether the site's longest limit has to be known.
pub fn needs_longest(batch: &Batch) -> bool {
    !matches!(batch.time_limit, Some(TimeLimit::Minutes(_)))
}

pub fn workload(
    batch: &Batch,
    script: &Script,
    place: &Place,
    known: Known,
) -> Result<NewWorkload, UsageError> {
    refuse(batch)?;
    let pieces = shape::pieces(batch)?;
    let wish = shape::wish(batch, &pieces, limit(batch, known.longest))?;
    Ok(NewWorkload {
        title: parsed("--job-name", &batch.name)?,
        project: maybe("--account", batch.account.as_deref())?,
        profile: None,
        wishes: list("--nodes", vec![wish])?,
        class: Class::Guaranteed,
        level: maybe("--qos", batch.qos.as_deref())?,
        seats: list("--gres", seats(batch, pieces.count)?)?,
        inside: maybe("--reservation", batch.reservation.as_deref())?,
        not_before: moment("--begin", batch.begin)?,
        deadline: moment("--deadline", batch.deadline)?,
        after: list("--dependency", known.after)?,
        array: array(batch)?,
        requeue: batch.requeue.unwrap_or(true),
        held: batch.is_held,
        program: program::program(batch, script, place)?,
    })
}

/// What a job gets whose owner did not say how long it may run.
pub fn unsaid_limit(longest: SignedDuration) -> SignedDuration {
    longest.min(UNSAID_LIMIT)
}

fn limit(batch: &Batch, longest: Option<SignedDuration>) -> SignedDuration {
    let longest = longest.unwrap_or(UNSAID_LIMIT);
    match batch.time_limit {
        Some(TimeLimit::Minutes(minutes)) => SignedDuration::from_mins(i64::from(minutes)),
        Some(TimeLimit::Unlimited) => longest,
        None => unsaid_limit(longest),
    }
}

pub(super) fn unsupported(option: &str, instead: &str) -> UsageError {
    UsageError::Unsupported {
        option: option.to_owned(),
        instead: instead.to_owned(),
    }
}

fn invalid(option: &str, value: impl ToString, reason: impl ToString) -> UsageError {
    UsageError::Invalid {
        option: option.to_owned(),
        value: value.to_string(),
        reason: reason.to_string(),
    }
}

/// What `sbatch` understands and a workload cannot say.
pub fn refuse(batch: &Batch) -> Result<(), UsageError> {
    let said = [
        (
            batch.partitions.len() > 1,
            "--partition with more than one name",
            "name the one site that it is for",
        ),
        (
            batch.memory == Some(Memory::PerNode(0)),
            "--mem=0",
            "name the memory that it needs, as in --mem=16G",
        ),
        (
            batch.time_min.is_some(),
            "--time-min",
            "name one limit with --time",
        ),
        (
            batch.comment.is_some(),
            "--comment",
            "there is no place to keep it; write it into the script",
        ),
        (
            batch.constraint.is_some(),
            "--constraint",
            "name the model of the GPUs, as in --gpus=a100:2",
        ),
        (
            batch.exclusive.is_some(),
            "--exclusive",
            "ask for the cores, memory and GPUs of a whole node",
        ),
        (
            batch.nice != 0,
            "--nice",
            "choose a level of priority with --qos",
        ),
        (
            batch.priority.is_some(),
            "--priority",
            "choose a level of priority with --qos",
        ),
        (
            !batch.nodelist.is_empty(),
            "--nodelist",
            "Berth chooses the nodes; reserve one with `berth book`",
        ),
        (
            !batch.exclude.is_empty(),
            "--exclude",
            "Berth chooses the nodes; tell an admin of a bad one",
        ),
        (
            !batch.mail.is_empty() || batch.mail_user.is_some(),
            "--mail-type and --mail-user",
            "no mail is sent about jobs; wait for one with --wait",
        ),
        (
            batch.signal.is_some(),
            "--signal",
            "a job is told to end when its time is over; leave it out",
        ),
        (
            batch.switches.is_some(),
            "--switches",
            "say how near its parts have to stand with `berth submit --near`",
        ),
        (
            batch
                .input
                .as_deref()
                .is_some_and(|file| file != "/dev/null"),
            "--input",
            "read the file in the script",
        ),
        (
            batch.open_mode.is_some(),
            "--open-mode",
            "leave it out, or write the file in the script",
        ),
    ];
    match said.iter().find(|(is_said, ..)| *is_said) {
        Some((_, option, instead)) => Err(unsupported(option, instead)),
        None => Ok(()),
    }
}

/// The jobs to wait for by number, each with what has to become of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitsFor {
    pub jobs: Vec<(OnlyIf, u64)>,
    /// All others of the same name that are one's own.
    pub is_singleton: bool,
}

pub fn waits_for(batch: &Batch) -> Result<WaitsFor, UsageError> {
    let mut found = WaitsFor::default();
    let Some(dependencies) = &batch.dependencies else {
        return Ok(found);
    };
    if dependencies.is_any_enough && dependencies.on.len() > 1 {
        return Err(unsupported(
            "--dependency with `?`",
            "a job waits for all that is named; part the names with `,`",
        ));
    }
    for one in &dependencies.on {
        let (when, job) = match one {
            Dependency::Singleton => {
                found.is_singleton = true;
                continue;
            }
            Dependency::On { when, job } => (when, job),
        };
        if let Some(Tasks::These(_)) = job.tasks {
            return Err(unsupported(
                &format!("--dependency on {job}"),
                "a job waits for whole arrays; name the array",
            ));
        }
        let only_if = match when {
            When::AfterOk => OnlyIf::Completed,
            When::AfterNotOk => OnlyIf::Failed,
            When::AfterAny => OnlyIf::Over,
            When::After { minutes: 0 } => OnlyIf::Begun,
            When::After { .. } => {
                return Err(unsupported(
                    &format!("--dependency={one}"),
                    "a job begins as soon as the other has begun; leave the minutes out",
                ));
            }
            When::AfterCorr => {
                return Err(unsupported(
                    "--dependency=aftercorr",
                    "wait for the whole array with afterok",
                ));
            }
        };
        found.jobs.push((only_if, job.id));
    }
    Ok(found)
}

/// In Slurm a generic resource is counted for each node.
fn seats(batch: &Batch, pieces: u32) -> Result<Vec<Seats>, UsageError> {
    let each = batch.gres.iter().filter(|gres| gres.count > 0);
    let seats = each.map(|gres| {
        if let Some(model) = &gres.model {
            return Err(unsupported(
                &format!("--gres={}:{model}", gres.name),
                "name a resource of the site and how much of it, as in --gres=matlab:2",
            ));
        }
        let all = gres.count.saturating_mul(u64::from(pieces));
        Ok(Seats {
            resource: parsed("--gres", &gres.name)?,
            amount: Amount::new(all).map_err(|error| invalid("--gres", all, error))?,
        })
    });
    seats.collect()
}

fn array(batch: &Batch) -> Result<Option<Array>, UsageError> {
    let Some(array) = &batch.array else {
        return Ok(None);
    };
    let at_once = array.limit.map(|most| {
        AtOnce::try_from(u64::from(most)).map_err(|error| invalid("--array", array, error))
    });
    let mut unlimited = array.clone();
    unlimited.limit = None;
    Ok(Some(Array {
        tasks: parsed("--array", &unlimited.to_string())?,
        at_once: at_once.transpose()?,
    }))
}

fn parsed<T>(option: &str, text: &str) -> Result<T, UsageError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    text.parse().map_err(|error| invalid(option, text, error))
}

fn maybe<T>(option: &str, text: Option<&str>) -> Result<Option<T>, UsageError>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    text.map(|text| parsed(option, text)).transpose()
}

fn moment(option: &str, at: Option<Timestamp>) -> Result<Option<Moment>, UsageError> {
    let moment = at.map(|at| Moment::try_from(at).map_err(|error| invalid(option, at, error)));
    moment.transpose()
}

fn list<T, const MIN: usize, const MAX: usize>(
    option: &str,
    items: Vec<T>,
) -> Result<List<T, MIN, MAX>, UsageError> {
    let count = items.len();
    List::try_from(items).map_err(|error| invalid(option, count, error))
}
