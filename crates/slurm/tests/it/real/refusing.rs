//! What Slurm's programs know and do not know.

use std::collections::BTreeSet;
use std::process::Stdio;

use berth_slurm::{UsageError, sacct, sbatch, scancel, sinfo, squeue};
use berth_testkit::slurm::Cluster;

use super::{now, words};

/// Whether each command line is taken, by both.
#[tokio::test]
async fn scancel_squeue_and_sinfo_refuse_what_slurm_refuses() {
    let cluster = Cluster::start().await.expect("a small Slurm");
    let taken = |program: &str, line: &str| {
        let words = words(line);
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        cluster
            .run(program, &arguments)
            .expect(program)
            .status
            .success()
    };
    for (line, is_good) in [
        ("-Q 99", true),
        ("-Q 99_1 99_[1-3] 99_*", true),
        ("--me", true),
        ("-n nosuch", true),
        ("-t PENDING", true),
        ("-t pd", true),
        ("-s USR1 -n nosuch", true),
        ("-p batch -A lab -q normal", true),
        ("-w n1", true),
        ("", false),
        ("abc", false),
        ("99_[1-", false),
        ("1~2", false),
        ("-t FOO", false),
        ("-s FOO 1", false),
        ("-j 5", false),
        ("--foo", false),
    ] {
        assert_eq!(taken("scancel", line), is_good, "Slurm's scancel {line}");
        assert_eq!(
            scancel::read(&words(line)).is_ok(),
            is_good,
            "Berth's scancel {line}"
        );
    }
    for (line, is_good) in [
        ("-j 1,2_3", true),
        ("-t all", true),
        ("-t pd,RUNNING", true),
        ("-S P,-t,i", true),
        ("--foo", false),
        ("-t foo", false),
        ("-S foo", false),
        ("-j abc", false),
        ("foo", false),
        ("--json=1", false),
    ] {
        // A job that is not there is an error of the answer and not of the question.
        if !line.starts_with("-j 1") {
            assert_eq!(taken("squeue", line), is_good, "Slurm's squeue {line}");
        }
        assert_eq!(
            squeue::read(&words(line)).is_ok(),
            is_good,
            "Berth's squeue {line}"
        );
    }
    for (line, is_good) in [
        ("-t idle,drain,alloc", true),
        ("-N -l", true),
        ("-t foo", false),
        ("--foo", false),
        ("--n", false),
    ] {
        assert_eq!(taken("sinfo", line), is_good, "Slurm's sinfo {line}");
        assert_eq!(
            sinfo::read(&words(line)).is_ok(),
            is_good,
            "Berth's sinfo {line}"
        );
    }
}

/// The long options that a program of Slurm's has, as it lists them when a name is cut short.
fn options(cluster: &Cluster, program: &str) -> BTreeSet<String> {
    let mut options = BTreeSet::new();
    for letter in ('a'..='z').chain('A'..='Z') {
        let mut command = cluster.command(program).expect(program);
        command.arg(format!("--{letter}")).stdin(Stdio::null());
        let said = command.output().expect(program).stderr;
        let said = String::from_utf8_lossy(&said);
        let line = said.lines().next().unwrap_or_default();
        let names = match line.split_once("possibilities: ") {
            Some((_, names)) => names,
            None if line.contains("requires an argument") => line,
            None => continue,
        };
        let names = names.split('\'').filter_map(|part| part.strip_prefix("--"));
        options.extend(names.map(str::to_owned));
    }
    options
}

#[tokio::test]
async fn no_option_of_slurms_is_unknown_here() {
    let cluster = Cluster::start().await.expect("a small Slurm");
    let is_unknown = |program: &str, option: &str| {
        // With and without a value: one of them is how it is written.
        [format!("--{option}"), format!("--{option}=1")]
            .iter()
            .all(|word| {
                let line = [word.clone()];
                let error = match program {
                    "sbatch" => sbatch::read(&line).err(),
                    "squeue" => squeue::read(&line).err(),
                    "scancel" => scancel::read(&line).err(),
                    "sinfo" => sinfo::read(&line).err(),
                    _ => sacct::read(&line, &now()).err(),
                };
                matches!(
                    error,
                    Some(UsageError::Unknown { .. } | UsageError::Ambiguous { .. })
                )
            })
    };
    for (program, at_least) in [
        ("sbatch", 90),
        ("squeue", 30),
        ("scancel", 15),
        ("sinfo", 15),
        ("sacct", 40),
    ] {
        let options = options(&cluster, program);
        assert!(options.len() >= at_least, "{program}: {options:?}");
        let unknown: Vec<_> = options
            .iter()
            .filter(|option| is_unknown(program, option))
            .collect();
        assert!(unknown.is_empty(), "{program}: {unknown:?}");
    }
}
