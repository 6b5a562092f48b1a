//! The real programs of Slurm are asked the same, and must say the same.

mod cases;
mod listing;
mod refusing;
mod running;
mod show;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use berth_slurm::amount::{self, print_mib};
use berth_slurm::duration::{TimeLimit, long};
use berth_slurm::hostlist::compress;
use berth_slurm::pattern::{self, Names};
use berth_slurm::sbatch::{self, Asked, Batch, Exclusive, Mail, Memory};
use berth_slurm::{UsageError, moment};
use berth_testkit::slurm::{Cluster, ZONE};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use show::Shown;

pub fn zone() -> TimeZone {
    TimeZone::posix(ZONE).expect("a zone")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the real programs read the clock, so whoever is compared with them must"
)]
pub fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

/// Whoever runs the test, by name and by number.
pub fn me() -> (String, u32) {
    let id = |flag: &str| {
        let output = Command::new("id").arg(flag).output().expect("id");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    (id("-un"), id("-u").parse().expect("a number"))
}

pub fn words(line: &str) -> Vec<String> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    words.map(|word| word.replace('~', " ")).collect()
}

/// What Berth makes of a submission.
fn ours(
    line: &[String],
    script: Option<&str>,
    variable: Option<(&str, &str)>,
    now: &Zoned,
) -> Result<Batch, UsageError> {
    let Asked::Submit(line) = sbatch::read(line)? else {
        panic!("{line:?} is no submission");
    };
    let look_up = |name: &str| {
        let found = variable.filter(|(known, _)| *known == name);
        found.map(|(_, value)| value.to_owned())
    };
    line.batch(script, look_up, now)
}

/// Something that was submitted to both, and what Berth understood before and after Slurm did.
struct Submitted {
    line: String,
    id: u64,
    before: Batch,
    after: Batch,
}

struct Comparison<'c> {
    cluster: &'c Cluster,
    submitted: Vec<Submitted>,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    /// Whether Slurm would take it.
    fn is_taken(&self, line: &[String], variable: Option<(&str, &str)>) -> bool {
        let mut command = self.cluster.command("sbatch").expect("sbatch");
        command.arg("--test-only").args(line).envs(variable);
        command.output().expect("sbatch").status.success()
    }

    /// Submits for real, held unless it is to begin later anyway.
    fn submit(
        &mut self,
        line: &str,
        rest: &[String],
        script: Option<&str>,
        variable: Option<(&str, &str)>,
    ) {
        let given: Vec<String> = words(line)
            .into_iter()
            .chain(rest.iter().cloned())
            .collect();
        let before = ours(&given, script, variable, &now());
        let is_taken = self.is_taken(&given, variable);
        if is_taken != before.is_ok() {
            let ours = before.err().map(|error| error.to_string());
            self.wrong.push(format!(
                "`{line}` {script:?} {variable:?}: Slurm takes it: {is_taken}; Berth: {ours:?}"
            ));
            return;
        }
        let Ok(before) = before else {
            return;
        };
        let mut command = self.cluster.command("sbatch").expect("sbatch");
        command.arg("--parsable");
        if before.begin.is_none_or(|begin| begin < now().timestamp()) {
            command.arg("--hold");
        }
        let output = command
            .args(&given)
            .envs(variable)
            .output()
            .expect("sbatch");
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Ok(id) = said.parse() else {
            self.wrong
                .push(format!("`{line}` is submitted: {output:?}"));
            return;
        };
        let after = ours(&given, script, variable, &now()).expect("still good");
        let line = format!("{line} {} {variable:?}", script.unwrap_or_default());
        self.submitted.push(Submitted {
            line,
            id,
            before,
            after,
        });
    }

    fn compare_values(&mut self) {
        let text = self
            .cluster
            .output("scontrol", &["show", "job", "-o"])
            .expect("jobs");
        let shown: BTreeMap<u64, Shown> = Shown::all(&text)
            .into_iter()
            .map(|job| (job.number("JobId"), job))
            .collect();
        let (user, _) = me();
        for submitted in &self.submitted {
            let shown = shown.get(&submitted.id).expect("the job is there");
            let here = self.cluster.path().to_str().expect("a path");
            for (key, wanted) in expected(&submitted.before, submitted.id, &user, here) {
                if shown.get(key) != wanted {
                    self.wrong.push(format!(
                        "`{}`: {key}={}, not {wanted}",
                        submitted.line,
                        shown.get(key)
                    ));
                }
            }
            self.wrong.extend(differences(submitted, shown));
        }
    }
}

/// What `scontrol show job` must say, letter by letter.
fn expected(batch: &Batch, id: u64, user: &str, here: &str) -> Vec<(&'static str, String)> {
    let null = |text: Option<String>| text.unwrap_or_else(|| "(null)".to_owned());
    let list = |hosts: &[String]| null((!hosts.is_empty()).then(|| compress(hosts)));
    let limit = |limit: TimeLimit| limit.seconds().map_or_else(|| "UNLIMITED".to_owned(), long);
    let shape = batch.shape();
    let mut fields = vec![
        ("JobName", batch.name.clone()),
        (
            "TimeLimit",
            limit(batch.time_limit.unwrap_or(TimeLimit::Unlimited)),
        ),
        (
            "TimeMin",
            batch.time_min.map_or_else(|| "N/A".to_owned(), limit),
        ),
        ("NumTasks", shape.tasks.to_string()),
        ("CPUs/Task", shape.cpus_per_task.to_string()),
        (
            "Dependency",
            null(batch.dependencies.as_ref().map(ToString::to_string)),
        ),
        ("Nice", batch.nice.to_string()),
        (
            "Requeue",
            u8::from(batch.requeue.unwrap_or(true)).to_string(),
        ),
        ("ReqNodeList", list(&batch.nodelist)),
        ("ExcNodeList", list(&batch.exclude)),
        ("Features", null(batch.constraint.clone())),
        ("Account", null(batch.account.clone())),
        ("Comment", batch.comment.clone().unwrap_or_default()),
        (
            "ArrayTaskId",
            batch
                .array
                .as_ref()
                .map(|array| array.shown())
                .unwrap_or_default(),
        ),
        (
            "OverSubscribe",
            match batch.exclusive {
                None => "OK",
                Some(Exclusive::Nobody) => "NO",
                Some(Exclusive::SameUser) => "USER",
            }
            .to_owned(),
        ),
    ];
    if let (Some(_), Some(nodes)) = (batch.nodes, shape.nodes) {
        fields.push(("NumNodes", format!("{}-{}", nodes.min, nodes.max)));
    }
    match batch.memory {
        None => fields.push(("MinMemoryNode", "0".to_owned())),
        Some(Memory::PerNode(mib)) => fields.push(("MinMemoryNode", print_mib(mib))),
        Some(Memory::PerCpu(mib)) => fields.push(("MinMemoryCPU", print_mib(mib))),
        Some(Memory::PerGpu(mib)) => fields.push(("MemPerTres", format!("gres:gpu:{mib}"))),
    }
    let home = match &batch.work_dir {
        Some(at) if at.starts_with('/') => at.clone(),
        Some(at) => format!("{here}/{at}"),
        None => here.to_owned(),
    };
    if batch.array.is_none() {
        let names = Names {
            job_id: id,
            job_name: &batch.name,
            user,
            ..Names::default()
        };
        let file = |pattern: &str| match pattern::expand(pattern, &names) {
            path if path.starts_with('/') => path,
            path => format!("{home}/{path}"),
        };
        let output = batch
            .output
            .as_deref()
            .unwrap_or(pattern::default_output(false));
        fields.push(("StdOut", file(output)));
        fields.push(("StdErr", file(batch.error.as_deref().unwrap_or(output))));
        fields.push(("StdIn", file(batch.input.as_deref().unwrap_or("/dev/null"))));
    }
    fields.push(("WorkDir", home));
    fields
}

/// What can be compared only by its meaning.
fn differences(submitted: &Submitted, shown: &Shown) -> Vec<String> {
    let Submitted {
        line,
        before,
        after,
        ..
    } = submitted;
    let mut wrong = Vec::new();
    for (key, asked) in [
        ("TresPerJob", &before.gpus),
        ("TresPerNode", &before.gpus_per_node),
        ("TresPerTask", &before.gpus_per_task),
    ] {
        let theirs = match shown.some(key) {
            Some(text) => amount::gres(&text).expect("generic resources"),
            None => Vec::new(),
        };
        if theirs != *asked {
            wrong.push(format!("`{line}`: {key}={theirs:?}, not {asked:?}"));
        }
    }
    for (key, before, after) in [
        ("EligibleTime", before.begin, after.begin),
        ("Deadline", before.deadline, after.deadline),
    ] {
        let (Some(before), Some(after)) = (before, after) else {
            continue;
        };
        // What is past begins at once, whenever that is.
        if key == "EligibleTime" && before < now().timestamp() {
            continue;
        }
        let theirs = shown.get(key).to_owned();
        let between = moment::print(before, &zone())..=moment::print(after, &zone());
        if !between.contains(&theirs) {
            wrong.push(format!("`{line}`: {key}={theirs}, not in {between:?}"));
        }
    }
    let name = |mail: &Mail| match mail {
        Mail::Begin => "BEGIN".to_owned(),
        Mail::End => "END".to_owned(),
        Mail::Fail => "FAIL".to_owned(),
        Mail::Requeue => "REQUEUE".to_owned(),
        Mail::InvalidDependency => "INVALID_DEPEND".to_owned(),
        Mail::StageOut => "STAGE_OUT".to_owned(),
        Mail::TimeLimit => "TIME_LIMIT".to_owned(),
        Mail::TimeLimitPercent(percent) => format!("TIME_LIMIT_{percent}"),
        Mail::ArrayTasks => "ARRAY_TASKS".to_owned(),
    };
    let mut ours: Vec<_> = before.mail.iter().map(name).collect();
    let theirs = shown.some("MailType").unwrap_or_default();
    let mut theirs: Vec<_> = theirs.split(',').filter(|word| !word.is_empty()).collect();
    ours.sort();
    theirs.sort();
    if ours != theirs {
        wrong.push(format!("`{line}`: MailType={theirs:?}, not {ours:?}"));
    }
    let switches = before
        .switches
        .map(|switches| format!("{}@", switches.count));
    if !shown
        .get("Switches")
        .starts_with(&switches.unwrap_or_default())
    {
        wrong.push(format!("`{line}`: Switches={}", shown.get("Switches")));
    }
    wrong
}

#[tokio::test]
async fn sbatch_takes_what_slurm_takes_and_understands_the_same_by_it() {
    let cluster = Cluster::start().await.expect("a small Slurm");
    let version = cluster.output("squeue", &["--version"]).expect("a version");
    assert!(
        version.contains(berth_slurm::SLURM_VERSION),
        "compared with {version}"
    );
    let user = format!("users={}", me().0);
    let reservation = [
        "create",
        "reservation",
        "reservationname=r",
        "starttime=now",
        "duration=600",
        "nodes=n4",
    ];
    let reservation: Vec<&str> = reservation.into_iter().chain([user.as_str()]).collect();
    cluster
        .output("scontrol", &reservation)
        .expect("a reservation");
    let mut comparison = Comparison {
        cluster: &cluster,
        submitted: Vec::new(),
        wrong: Vec::new(),
    };
    let wrap = ["--wrap=true".to_owned()];
    for line in cases::TAKEN {
        comparison.submit(line, &wrap, None, None);
    }
    let taken = comparison.submitted.len();
    for line in cases::REFUSED {
        comparison.submit(line, &wrap, None, None);
    }
    for (name, value, line) in cases::VARIABLES {
        comparison.submit(line, &wrap, None, Some((name, value)));
    }
    for line in cases::ASKED_BACK {
        let given: Vec<String> = words(line).into_iter().chain(wrap.clone()).collect();
        assert!(
            comparison.is_taken(&given, None),
            "Slurm refuses `{line}` too"
        );
        assert!(
            ours(&given, None, None, &now()).is_err(),
            "Berth takes `{line}` too"
        );
    }
    for (index, (script, line)) in cases::SCRIPTS.iter().enumerate() {
        let path = cluster.path().join(format!("script{index}.sh"));
        fs::write(&path, script).expect("write a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("allow it to run");
        let path = path.to_str().expect("a path").to_owned();
        comparison.submit(
            line,
            &[path, "argument".to_owned(), "-N3".to_owned()],
            Some(script),
            None,
        );
    }
    comparison.compare_values();
    let Comparison {
        submitted, wrong, ..
    } = comparison;
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // Nothing was passed over.
    assert_eq!(taken, cases::TAKEN.len());
    assert!(submitted.len() > taken);
}
