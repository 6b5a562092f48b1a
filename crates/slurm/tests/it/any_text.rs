//! Whatever somebody types, it is taken or refused, but it breaks nothing.

use berth_slurm::squeue::View;
use berth_slurm::{JobRow, hostlist, pattern, sacct, sbatch, scancel, sinfo, squeue};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

/// Words that come near to what is understood, and some that do not.
fn word() -> impl Strategy<Value = String> {
    let near = "[-+%:.,/_=?@*0-9a-zA-Z \\[\\]]{0,12}";
    let far = "\\PC{0,8}";
    let option = prop::sample::select(vec![
        "--array=",
        "--begin=",
        "--time=",
        "--mem=",
        "--nodes=",
        "--gres=",
        "--gpus=",
        "--dependency=",
        "--signal=",
        "--switches=",
        "--mail-type=",
        "--export=",
        "--nodelist=",
        "--nice=",
        "--format=",
        "--Format=",
        "--sort=",
        "--states=",
        "--jobs=",
        "--starttime=",
        "--deadline=",
        "-o",
        "-O",
        "-j",
        "-t",
        "-S",
        "",
    ]);
    let value = prop_oneof![3 => near, 1 => far];
    (option, value).prop_map(|(option, value)| format!("{option}{value}"))
}

proptest! {
    #[test]
    fn no_command_line_breaks_a_reader(words in prop::collection::vec(word(), 0..4)) {
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        if let Ok(sbatch::Asked::Submit(line)) = sbatch::read(&words)
            && let Ok(batch) = line.batch(None, |_| None, &now)
        {
            batch.shape();
        }
        let row = JobRow::pending(1, "é-a-name", "ada", "batch", Timestamp::UNIX_EPOCH);
        if let Ok(squeue::Asked::List(asked)) = squeue::read(&words) {
            asked.wants(&row, "ada");
            let view = View { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC, cluster: "lab" };
            asked.render(vec![row], &view);
        }
        if let Ok(sinfo::Asked::List(asked)) = sinfo::read(&words) {
            asked.render(&[], &[], Timestamp::UNIX_EPOCH, &TimeZone::UTC);
        }
        if let Ok(sacct::Asked::List(asked)) = sacct::read(&words, &now) {
            asked.render(&[], &TimeZone::UTC);
        }
        let _ = scancel::read(&words);
    }

    #[test]
    fn no_script_breaks_its_reader(text in "(#!/bin/sh\n)?(#SBATCH \\PC{0,20}\n){0,4}") {
        let _ = sbatch::script::read(&text);
    }

    #[test]
    fn no_pattern_breaks_a_file_name(text in "[%\\\\0-9a-zA-Zé]{0,20}") {
        pattern::expand(&text, &pattern::Names::default());
    }

    #[test]
    fn hosts_written_briefly_are_the_same_hosts(
        hosts in prop::collection::btree_set("[a-c]{1,2}[0-9]{0,3}", 0..30),
    ) {
        let hosts: Vec<String> = hosts.into_iter().collect();
        let mut back = hostlist::expand(&hostlist::compress(&hosts)).unwrap();
        back.sort();
        prop_assert_eq!(back, hosts);
    }
}
