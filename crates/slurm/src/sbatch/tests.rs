use super::*;
use crate::amount::Nodes;
use crate::duration::TimeLimit;

fn now() -> Zoned {
    "2026-11-16T05:41:30+00:00[UTC]".parse().unwrap()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn submit(line: &str, script: Option<&str>, environment: &[(&str, &str)]) -> Result<Batch, String> {
    let asked = read(&words(line)).map_err(|error| error.to_string())?;
    let Asked::Submit(line) = asked else {
        return Err("no submission".to_owned());
    };
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    line.batch(script, variable, &now())
        .map_err(|error| error.to_string())
}

fn batch(line: &str) -> Batch {
    submit(&format!("{line} --wrap=true"), None, &[]).unwrap()
}

fn refusal(line: &str) -> String {
    submit(&format!("{line} --wrap=true"), None, &[]).unwrap_err()
}

#[test]
fn a_command_line_says_all_of_a_job() {
    let batch = batch(
        "-J train -N 2-4 -n 8 -c 4 --gres=gpu:a100:2 --mem=1G -t 1-2 -p a,b -A lab -q high --array=1-9%3 \
         -d afterok:7 -o %x.out -e %x.err -D /w --reservation=r --begin=now+1hour --requeue -w n[1-2] -x n3 \
         --mail-type=END --nice -H --exclusive --parsable",
    );
    assert_eq!(batch.name, "train");
    assert_eq!(batch.nodes, Some(Nodes { min: 2, max: 4 }));
    assert_eq!((batch.tasks, batch.cpus_per_task), (Some(8), Some(4)));
    assert_eq!(batch.gpus_per_node[0].model.as_deref(), Some("a100"));
    assert_eq!(batch.memory, Some(Memory::PerNode(1024)));
    assert_eq!(batch.time_limit, Some(TimeLimit::Minutes(1560)));
    assert_eq!(batch.partitions, ["a", "b"]);
    assert_eq!(batch.array.unwrap().to_string(), "1-9%3");
    assert_eq!(batch.nodelist, ["n1", "n2"]);
    assert_eq!(batch.mail, [Mail::End]);
    assert_eq!((batch.nice, batch.is_held), (100, true));
    assert_eq!(batch.exclusive, Some(Exclusive::Nobody));
    assert_eq!(batch.requeue, Some(true));
    assert!(batch.manner.is_parsable);
    assert_eq!(batch.begin.unwrap().to_string(), "2026-11-16T06:41:30Z");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_script() {
    let script = "#!/bin/sh\n#SBATCH -t 5 -J script\n#SBATCH -A script\n";
    let environment = [("SBATCH_TIMELIMIT", "7"), ("SBATCH_JOB_NAME", "variable")];
    let batch = submit("-t 9 run.sh", Some(script), &environment).unwrap();
    assert_eq!(batch.time_limit, Some(TimeLimit::Minutes(9)));
    assert_eq!(batch.name, "variable");
    assert_eq!(batch.account.as_deref(), Some("script"));
}

#[test]
fn a_job_is_called_like_its_script() {
    let script = Some("#!/bin/sh\n");
    assert_eq!(
        submit("dir/run.sh -N9", script, &[]).unwrap().name,
        "run.sh"
    );
    assert_eq!(submit("", script, &[]).unwrap().name, "sbatch");
    assert_eq!(batch("").name, "wrap");
}

#[test]
fn what_berth_does_not_do_is_named_with_what_to_do_instead() {
    assert_eq!(
        refusal("--cpus-per-gpu=2"),
        "--cpus-per-gpu is not supported by Berth: use --cpus-per-task with --gpus-per-task"
    );
    for option in options::OPTIONS {
        if let Support::Refused(instead) = option.key {
            let value = match option.takes {
                argv::Takes::Value => "=1",
                _ => "",
            };
            let said = refusal(&format!("--{}{value}", option.long));
            assert!(
                said.contains(option.long) && said.contains(instead),
                "{said}"
            );
        }
    }
    let said = submit("run.sh", Some("#!/bin/sh\n#SBATCH --licenses=x\n"), &[]);
    assert!(
        said.unwrap_err()
            .starts_with("line 2 of the script: --licenses is not")
    );
    let said = submit("run.sh", Some("#!/bin/sh\n"), &[("SBATCH_HINT", "x")]);
    assert!(
        said.unwrap_err()
            .starts_with("SBATCH_HINT in the environment: --hint")
    );
}

#[test]
fn lines_of_other_systems_are_not_passed_over_in_silence() {
    let script = Some("#!/bin/sh\n#PBS -N x\n");
    let said = submit("run.sh", script, &[]).unwrap_err();
    assert!(said.contains("#PBS is not supported"), "{said}");
    assert!(submit("--ignore-pbs run.sh", script, &[]).is_ok());
    let het = "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n";
    assert!(
        submit("run.sh", Some(het), &[])
            .unwrap_err()
            .contains("hetjob is not supported")
    );
}

#[test]
fn memory_is_said_in_one_way_only() {
    assert!(refusal("--mem=1G --mem-per-cpu=1").contains("cannot be combined"));
    assert!(refusal("--mem-per-gpu=1G").contains("without a GPU"));
    let script = "#!/bin/sh\n#SBATCH --mem=1G\n";
    assert!(submit("--mem-per-cpu=5 x", Some(script), &[]).is_err());
    // The environment gives way.
    let batch = submit("x", Some(script), &[("SBATCH_MEM_PER_CPU", "7")]).unwrap();
    assert_eq!(batch.memory, Some(Memory::PerNode(1024)));
}

#[test]
fn gpus_add_up() {
    for line in [
        "--gpus-per-task=1",
        "--gpus-per-task=2 -G 3",
        "--gpus-per-task=2 -G 4 -n 3",
        "-G 3 --gpus-per-node=2",
        "-G 2 --gpus-per-node=2 -N 2",
        "--gres=gpu:1 --gpus-per-node=2",
    ] {
        assert!(refusal(line).contains("cannot be combined"), "{line}");
    }
    assert_eq!(batch("--gpus-per-task=1 -G 4").shape().tasks, 4);
}

#[test]
fn what_is_left_out_of_a_shape_follows_from_the_rest() {
    let shape = |line: &str| {
        let shape = batch(line).shape();
        let nodes = shape.nodes.map(|nodes| (nodes.min, nodes.max));
        (nodes, shape.tasks, shape.cpus_per_task)
    };
    assert_eq!(shape(""), (Some((1, 1)), 1, 1));
    assert_eq!(shape("-N 2"), (Some((2, 2)), 2, 1));
    assert_eq!(shape("-N 2 --ntasks-per-node=2"), (Some((2, 2)), 4, 1));
    assert_eq!(shape("-n 20 -c 2"), (None, 20, 2));
    assert_eq!(shape("-n 1 -N 3"), (Some((1, 1)), 1, 1));
    assert_eq!(shape("-n 5 -N 2-9"), (Some((2, 5)), 5, 1));
}

#[test]
fn times_that_exclude_each_other_are_refused() {
    assert!(refusal("--time-min=20 -t 10").contains("cannot be combined"));
    assert!(refusal("--deadline=2020-01-01").contains("in the past"));
    assert!(refusal("--deadline=now+1hour --begin=now+2hours").contains("later"));
}

#[test]
fn variables_to_export_keep_their_commas_in_quotes() {
    let line = [
        "--export=ALL,A=1,B,C='x,y'".to_owned(),
        "--wrap=x".to_owned(),
    ];
    let Ok(Asked::Submit(line)) = read(&line) else {
        panic!("a submission");
    };
    let batch = line.batch(None, |_| None, &now()).unwrap();
    let pair = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
    let variables = vec![
        pair("A", Some("1")),
        pair("B", None),
        pair("C", Some("x,y")),
    ];
    let wanted = Export::Some {
        and_all: true,
        variables,
    };
    assert_eq!(batch.export, Some(wanted));
}

#[test]
fn a_signal_before_the_end_has_a_name_and_a_time() {
    let signal = batch("--signal=RB:10@90").signal.unwrap();
    assert_eq!((signal.name.as_str(), signal.seconds_before), ("USR1", 90));
    assert!(signal.is_for_shell && signal.is_for_reservation);
    for value in ["FOO", "USR1@x", "USR1@70000", "@60", "X:USR1", ""] {
        assert!(
            refusal(&format!("--signal={value}")).contains("--signal"),
            "{value}"
        );
    }
}

#[test]
fn help_and_version_need_no_job() {
    assert_eq!(read(&words("-N x --help")), Ok(Asked::Help));
    assert_eq!(read(&words("-V")), Ok(Asked::Version));
    assert_eq!(
        read(&words("--wrap=true run.sh")).unwrap_err().to_string(),
        "Script arguments not permitted with --wrap option"
    );
}
