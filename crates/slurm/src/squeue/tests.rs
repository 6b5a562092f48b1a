use super::*;
use crate::duration::TimeLimit;
use jiff::Timestamp;
use jiff::tz::TimeZone;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn asked(line: &str) -> Squeue {
    asked_of(&words(line))
}

fn asked_of(words: &[String]) -> Squeue {
    match read(words).unwrap() {
        Asked::List(squeue) => *squeue,
        other => panic!("{other:?}"),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_794_807_571 + second).unwrap()
}

fn view() -> View<'static> {
    View {
        now: at(100),
        zone: TimeZone::UTC,
        cluster: "lab",
    }
}

/// One that runs, an array of which some runs, and one that is held.
fn rows() -> Vec<JobRow> {
    let running = JobRow {
        state: JobState::Running,
        start: Some(at(5)),
        end: Some(at(86_405)),
        time_limit: TimeLimit::Minutes(1440),
        time_used_s: 95,
        nodes: 2,
        cpus: 3,
        priority: 4_294_901_759,
        account: Some("acct".to_owned()),
        node_list: vec!["n1".to_owned(), "n2".to_owned()],
        tres_per_node: Some("gres:gpu:a100:1".to_owned()),
        memory_mib: 100,
        ..JobRow::pending(359, "wrap", "root", "batch", at(0))
    };
    let tasks = JobRow {
        member: Some(Member::Waiting {
            array: 360,
            tasks: "2-20%2".parse().unwrap(),
        }),
        reason: "Resources".to_owned(),
        start: Some(at(3600)),
        time_limit: TimeLimit::Minutes(30),
        priority: 4_294_901_758,
        planned_nodes: vec!["n3".to_owned()],
        ..JobRow::pending(360, "a-rather-long-name", "ada", "batch", at(1))
    };
    let held = JobRow {
        reason: "JobHeldUser".to_owned(),
        ..JobRow::pending(12, "held", "ada", "batch", at(2))
    };
    vec![running, held, tasks]
}

#[test]
fn the_queue_looks_as_it_does_in_slurm() {
    assert_eq!(
        asked("").render(rows(), &view()),
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n\
         \x20     360_[2-20%2]     batch a-rather      ada PD       0:00      1 (Resources)\n\
         \x20               12     batch     held      ada PD       0:00      1 (JobHeldUser)\n\
         \x20              359     batch     wrap     root  R       1:35      2 n[1-2]\n"
    );
    let long = asked("-l").render(rows(), &view());
    assert!(
        long.starts_with(
            "Mon Nov 16 05:41:11 2026\n             JOBID PARTITION     NAME     USER    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)\n"
        ),
        "{long}"
    );
}

#[test]
fn expected_starts_are_listed_soonest_first() {
    let squeue = asked("--start");
    let rows = rows().into_iter().filter(|row| squeue.wants(row, "ada"));
    assert_eq!(
        squeue.render(rows.collect(), &view()),
        "             JOBID PARTITION     NAME     USER ST          START_TIME  NODES SCHEDNODES           NODELIST(REASON)\n\
         \x20     360_[2-20%2]     batch a-rather      ada PD 2026-11-16T06:39:31      1 n3                   (Resources)\n\
         \x20               12     batch     held      ada PD                 N/A      1 (null)               (JobHeldUser)\n"
    );
}

#[test]
fn columns_are_chosen_by_letters_and_by_names() {
    let lines = |line: &str| asked(line).render(rows(), &view());
    assert_eq!(
        lines("-h -S i -o %i|%l|%L|%e|%b|%m|%p"),
        "12|UNLIMITED|UNLIMITED|N/A|N/A|0|0.00000000000000\n\
         359|1-00:00:00|23:58:25|2026-11-17T05:39:36|gres:gpu:a100:1|100M|0.99998474121093\n\
         360_[2-20%2]|30:00|30:00|NONE|N/A|0|0.99998474097810\n"
    );
    assert_eq!(
        lines("-S i -O jobarrayid:13,Name:5,Reason:.10|,PendingTime"),
        "JOBID        NAME     REASON|PENDING_TIME        \n\
         12           held JobHeldUse|98                  \n\
         359          wrap       None|5                   \n\
         360_[2-20%2] a-rat Resources|99                  \n"
    );
    assert_eq!(
        lines("-o %all -h")
            .lines()
            .next()
            .unwrap()
            .matches('|')
            .count(),
        51
    );
}

#[test]
fn each_task_has_its_row_where_that_is_wanted() {
    let lines = asked("-r -h -o %i").render(rows(), &view());
    assert_eq!(lines.lines().count(), 21);
    assert!(lines.contains("360_2\n") && lines.contains("360_20\n"));
}

#[test]
fn jobs_are_chosen_by_what_is_asked() {
    let chosen = |line: &str| {
        let squeue = asked(line);
        let rows = rows();
        let chosen = rows.iter().filter(|row| squeue.wants(row, "ada"));
        chosen.map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(chosen("--me"), [12, 360]);
    assert_eq!(chosen("-u root"), [359]);
    assert_eq!(chosen("-u 0,ada"), [359, 12, 360]);
    assert_eq!(chosen("-t R"), [359]);
    assert_eq!(chosen("-t all -n held,wrap"), [359, 12]);
    assert_eq!(chosen("-j 12,360_7"), [12, 360]);
    assert_eq!(chosen("-j360_21"), Vec::<u64>::new());
    assert_eq!(chosen("--job 359"), [359]);
    assert_eq!(chosen("-w n[2-4]"), [359]);
    assert_eq!(chosen("-A acct"), [359]);
    assert_eq!(chosen("-p other"), Vec::<u64>::new());
    let ended = JobRow {
        state: JobState::Completed,
        ..rows().remove(0)
    };
    assert!(!asked("").wants(&ended, "ada") && asked("-t all").wants(&ended, "ada"));
}

#[test]
fn the_nodes_column_says_why_where_there_are_no_nodes() {
    let mut row = rows().remove(0);
    let shown = |row: &JobRow| asked("-h -o %R").render(vec![row.clone()], &view());
    assert_eq!(shown(&row), "n[1-2]\n");
    row.state = JobState::Timeout;
    row.reason = "TimeLimit".to_owned();
    assert_eq!(shown(&row), "(TimeLimit)\n");
}

#[test]
fn json_has_slurms_names() {
    let text = asked("--json").render(rows(), &view());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let job = &value["jobs"][0];
    assert_eq!(job["job_id"], 359);
    assert_eq!(job["job_state"], "RUNNING");
    assert_eq!(job["nodes"], "n[1-2]");
    assert_eq!(job["time_limit"], 1440);
    assert_eq!(value["jobs"][2]["array_task_string"], "2-20%2");
}

#[test]
fn what_squeue_cannot_do_is_named() {
    let said = |line: &str| read(&words(line)).unwrap_err().to_string();
    assert!(said("-t foo").contains("foo is no state; they are PENDING,RUNNING"));
    assert!(said("-S foo").contains("cannot sort by `foo`"));
    assert!(said("-o %é").contains("no field"));
    assert!(said("-j abc").contains("abc"));
    assert!(said("foo").contains("foo"));
    assert!(said("-i 5").contains("--iterate is not supported by Berth"));
}
