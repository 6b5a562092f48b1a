use std::collections::BTreeMap;

use berth_model::workload::{Gpus, Wish};
use berth_slurm::sbatch::options::{OPTIONS, Support};
use berth_slurm::sbatch::{Asked, Work, read, wrapped};
use jiff::Zoned;

use super::*;

fn now() -> Zoned {
    "2026-11-16T09:00:00+00:00[UTC]".parse().unwrap()
}

fn batch(line: &str) -> Batch {
    let words = format!("{line} --wrap true");
    let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    let Asked::Submit(line) = read(&words).unwrap() else {
        panic!("a submission");
    };
    assert!(matches!(line.work, Work::Wrap(_)));
    line.batch(None, |_| None, &now()).unwrap()
}

fn place() -> Place {
    let variables = [
        ("HOME", "/home/ada"),
        ("BERTH_TOKEN", "secret"),
        ("A-B", "x"),
        ("SLURM_JOB_ID", "5"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Place {
        folder: "/home/ada".to_owned(),
        host: "login".to_owned(),
        partition: "torino".to_owned(),
        variables: variables.into(),
    }
}

fn try_with(line: &str, script: &Script) -> Result<NewWorkload, String> {
    let known = Known {
        after: Vec::new(),
        longest: Some(SignedDuration::from_hours(7 * 24)),
    };
    workload(&batch(line), script, &place(), known).map_err(|error| error.to_string())
}

fn try_new(line: &str) -> Result<NewWorkload, String> {
    let script = Script {
        text: wrapped("true"),
        arguments: Vec::new(),
    };
    try_with(line, &script)
}

fn wish(line: &str) -> Wish {
    let new = try_new(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    new.wishes.into_vec().remove(0)
}

/// Pieces, and cores, MiB and GPUs of each.
fn size(line: &str) -> (u32, u64, u64, u16) {
    let wish = wish(line);
    let gpus = match wish.task.gpus {
        Some(Gpus::Whole { count, .. } | Gpus::Slice { count, .. }) => count.get(),
        Some(Gpus::Share { .. }) | None => 0,
    };
    let cores = wish.task.cores_milli.get() / 1000;
    (wish.tasks.get(), cores, wish.task.memory_mib.get(), gpus)
}

#[test]
fn a_job_is_as_large_as_slurm_would_make_it() {
    for (line, wanted) in [
        ("", (1, 1, 2048, 0)),
        ("-c 4", (1, 4, 8192, 0)),
        ("-c 4 --mem=1G", (1, 4, 1024, 0)),
        ("-c 4 --mem-per-cpu=100", (1, 4, 400, 0)),
        ("--gpus=2 --mem-per-gpu=1G", (1, 1, 2048, 2)),
        // With nodes, a piece is a node.
        ("-N 2 -n 8 -c 2 --gpus-per-node=4", (2, 8, 16384, 4)),
        ("-N 3 -n 8", (3, 3, 6144, 0)),
        (
            "-N 2 --ntasks-per-node=4 --gpus-per-task=1",
            (2, 4, 8192, 4),
        ),
        ("-N 2 --gpus=8", (2, 1, 2048, 4)),
        ("--gpus=8 --gpus-per-node=4", (2, 1, 2048, 4)),
        ("-n 8 --ntasks-per-node=4", (2, 4, 8192, 0)),
        // Without, each task may stand anywhere.
        ("-n 4 -c 2", (4, 2, 4096, 0)),
        ("-n 4 --gpus-per-task=2", (4, 1, 2048, 2)),
        ("-n 4 --gpus=8", (4, 1, 2048, 2)),
        ("-n 4 --gpus=6", (1, 4, 8192, 6)),
        ("-n 4 --gres=gpu:2", (1, 4, 8192, 2)),
        ("--gpus=0", (1, 1, 2048, 0)),
    ] {
        assert_eq!(size(line), wanted, "{line}");
    }
    for (line, is_apart) in [
        ("-N 2 -n 8", true),
        ("-n 8 --ntasks-per-node=4", true),
        ("-n 4", false),
        ("-N 1", false),
    ] {
        assert_eq!(wish(line).apart, is_apart, "{line}");
    }
}

#[test]
fn a_model_is_a_condition_and_a_slice_is_a_slice() {
    let gpus = |line: &str| wish(line).task.gpus.unwrap();
    match gpus("--gpus=a100:2") {
        Gpus::Whole { with, .. } => assert_eq!(with[0].to_string(), "gpu_model=a100"),
        other => panic!("{other:?}"),
    }
    match gpus("--gres=gpu:1g.10gb:1") {
        Gpus::Slice { profile, .. } => assert_eq!(profile.as_str(), "1g.10gb"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_limit_that_was_not_said_is_a_day_and_none_is_the_longest() {
    let hours = |line: &str| wish(line).limit.as_hours();
    assert_eq!(hours(""), 24);
    assert_eq!(hours("-t 2:00:00"), 2);
    assert_eq!(hours("-t UNLIMITED"), 7 * 24);
    assert_eq!(unsaid_limit(SignedDuration::from_hours(3)).as_hours(), 3);
    assert!(needs_longest(&batch("-t UNLIMITED")) && !needs_longest(&batch("-t 5")));
}

#[test]
fn everything_else_finds_its_place() {
    let new = try_new(
        "-J train -A vision -q urgent -a 1-9:2%3 -H --no-requeue --gres=matlab:2 -N 2 \
         --begin=2026-11-17T08:00:00 --deadline=2026-11-20T08:00:00 -o out-%j -e err-%j -D /data",
    )
    .unwrap();
    assert_eq!(new.title.as_str(), "train");
    assert_eq!(new.project.unwrap().to_string(), "vision");
    assert_eq!(new.level.unwrap().as_str(), "urgent");
    let array = new.array.unwrap();
    assert_eq!(array.tasks.to_string(), "1,3,5,7,9");
    assert_eq!(array.at_once.unwrap().get(), 3);
    assert!(new.held && !new.requeue);
    // Per node, and there are two.
    let seats = new.seats.into_vec();
    assert_eq!(seats[0].resource.to_string(), "matlab");
    assert_eq!(seats[0].amount.get(), 4);
    assert_eq!(new.not_before.unwrap().to_string(), "2026-11-17T08:00:00Z");
    assert_eq!(new.deadline.unwrap().to_string(), "2026-11-20T08:00:00Z");
    let program = new.program;
    assert_eq!(program.output.as_deref(), Some("out-%j"));
    assert_eq!(program.errors.as_deref(), Some("err-%j"));
    assert_eq!(program.folder.as_deref(), Some("/data"));
    assert!(try_new("").unwrap().requeue);
    let unsaid = try_new("-a 0-3").unwrap().program;
    assert_eq!(unsaid.output.as_deref(), Some("slurm-%A_%a.out"));
    assert_eq!(unsaid.folder.as_deref(), Some("/home/ada"));
    let below = try_new("-D runs").unwrap().program;
    assert_eq!(below.folder.as_deref(), Some("/home/ada/runs"));
}

#[test]
fn a_reservation_is_named_by_its_id() {
    let id = "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h";
    let made = try_new(&format!("-c 1 --reservation={id}")).unwrap();
    assert_eq!(made.inside.map(|id| id.to_string()).as_deref(), Some(id));
}

#[test]
fn what_cannot_be_carried_out_is_named() {
    for (line, named) in [
        ("-p torino,pisa", "--partition"),
        ("--mem=0", "--mem=0"),
        ("--reservation=r", "--reservation"),
        ("--time-min=5", "--time-min"),
        ("--comment=x", "--comment"),
        ("-C fast", "--constraint"),
        ("--exclusive", "--exclusive"),
        ("--nice=5", "--nice"),
        ("--priority=5", "--priority"),
        ("-w gpu-01", "--nodelist"),
        ("-x gpu-01", "--exclude"),
        ("--mail-type=END", "--mail-type"),
        ("--mail-user=a@b", "--mail-user"),
        ("--signal=USR1@60", "--signal"),
        ("--switches=1", "--switches"),
        ("-i in.txt", "--input"),
        ("--open-mode=append", "--open-mode"),
        ("-N 2-4", "--nodes=2-4"),
        ("-N 2 --gpus=3", "--gpus=3"),
        ("--gpus=a100:1,h100:1", "more than one model"),
        (
            "-n 4 --gpus-per-node=2 --gpus-per-task=1",
            "--gpus-per-task",
        ),
        ("-N 2 -n 8 --ntasks-per-node=2", "--ntasks-per-node"),
        ("--gres=tool:model:2", "--gres=tool:model"),
        ("-A Not/A/Project", "--account"),
    ] {
        let refused = try_new(line).err().unwrap_or_else(|| panic!("{line}"));
        assert!(refused.contains(named), "{line}: {refused}");
    }
}

#[test]
fn the_guide_names_every_option_that_is_refused() {
    let guide = include_str!("../../../../../docs/slurm-commands.md");
    let all = OPTIONS.iter().filter(|known| match known.key {
        Support::Refused(_) => true,
        Support::Full(_) => is_refused_here(known.long),
    });
    let missing: Vec<_> = all
        .map(|known| format!("`--{}`", known.long))
        .filter(|option| !guide.contains(option))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Whether `sbatch` understands an option that a workload cannot say, with a value that it takes.
fn is_refused_here(option: &str) -> bool {
    let value = match option {
        "constraint" | "comment" | "input" => "x",
        "exclude" | "nodelist" => "gpu-01",
        "mail-type" => "END",
        "mail-user" => "a@b",
        "nice" | "priority" | "switches" | "time-min" => "1",
        "open-mode" => "append",
        "signal" => "USR1@60",
        "exclusive" => "user",
        _ => return false,
    };
    refuse(&batch(&format!("--{option}={value}"))).is_err()
}

#[test]
fn a_job_waits_for_others_as_far_as_it_can() {
    let found = waits_for(&batch(
        "-d afterok:1,afternotok:2,afterany:3_*,after:4,singleton",
    ));
    let wanted = WaitsFor {
        jobs: vec![
            (OnlyIf::Completed, 1),
            (OnlyIf::Failed, 2),
            (OnlyIf::Over, 3),
            (OnlyIf::Begun, 4),
        ],
        is_singleton: true,
    };
    assert_eq!(found, Ok(wanted));
    assert_eq!(waits_for(&batch("")), Ok(WaitsFor::default()));
    for (line, named) in [
        ("afterok:1?afterok:2", "`?`"),
        ("aftercorr:1", "aftercorr"),
        ("afterok:1_3", "1_3"),
        ("after:1+5", "after:1+5"),
    ] {
        let refused = waits_for(&batch(&format!("-d {line}"))).unwrap_err();
        assert!(refused.to_string().contains(named), "{line}: {refused}");
    }
}

#[test]
fn a_job_gets_the_variables_that_were_said_and_those_that_are_known() {
    let environment =
        |line: &str| -> BTreeMap<String, String> { try_new(line).unwrap().program.environment };
    let unsaid = environment("-n 4 -c 2 --mem-per-cpu=100 -J train");
    for (name, wanted) in [
        ("SLURM_JOB_NAME", Some("train")),
        ("SLURM_JOB_PARTITION", Some("torino")),
        ("SLURM_SUBMIT_DIR", Some("/home/ada")),
        ("SLURM_SUBMIT_HOST", Some("login")),
        ("SLURM_NTASKS", Some("4")),
        ("SLURM_CPUS_PER_TASK", Some("2")),
        ("SLURM_MEM_PER_CPU", Some("100")),
        // What nobody knows before it runs.
        ("SLURM_JOB_ID", None),
        ("SLURM_JOB_NODELIST", None),
        ("CUDA_VISIBLE_DEVICES", None),
        ("HOME", None),
    ] {
        assert_eq!(unsaid.get(name).map(String::as_str), wanted, "{name}");
    }
    let all = environment("--export=ALL,SEED=7");
    assert_eq!(
        (all["HOME"].as_str(), all["SEED"].as_str()),
        ("/home/ada", "7")
    );
    for own in ["BERTH_TOKEN", "A-B", "SLURM_JOB_ID"] {
        assert!(!all.contains_key(own), "{own}");
    }
    let some = environment("--export=HOME,SEED=7,NOWHERE");
    assert_eq!(
        (some["HOME"].as_str(), some["SEED"].as_str()),
        ("/home/ada", "7")
    );
    assert!(!some.contains_key("NOWHERE"));
    assert!(!environment("--export=NONE").contains_key("HOME"));
    let array = environment("-a 2-10:4");
    assert_eq!(array["SLURM_ARRAY_TASK_COUNT"], "3");
    assert_eq!(array["SLURM_ARRAY_TASK_STEP"], "4");
    assert!(!array.contains_key("SLURM_ARRAY_TASK_ID"));
}

#[test]
fn the_arguments_of_a_script_reach_it() {
    let script = |text: &str| Script {
        text: text.to_owned(),
        arguments: vec!["a b".to_owned(), "it's".to_owned()],
    };
    let text = |first: &str| {
        let new = try_with("", &script(&format!("{first}\necho $1\n")))?;
        Ok::<_, String>(new.program.script.unwrap_or_default())
    };
    for first in ["#!/bin/sh", "#!/bin/bash -l", "#!/usr/bin/env -S bash"] {
        let wanted = format!("{first}\nset -- 'a b' 'it'\\''s'\necho $1\n");
        assert_eq!(text(first), Ok(wanted));
    }
    assert!(text("#!/usr/bin/env python3").is_err());
}
