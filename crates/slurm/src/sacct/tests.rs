use super::*;
use crate::duration::TimeLimit;
use crate::row::Member;

fn now() -> Zoned {
    "2026-11-16T06:10:00+00:00[UTC]".parse().unwrap()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn asked(line: &str) -> Sacct {
    match read(&words(line), &now()).unwrap() {
        Asked::List(sacct) => *sacct,
        other => panic!("{other:?}"),
    }
}

fn at(clock: &str) -> Timestamp {
    format!("2026-11-16T{clock}Z").parse().unwrap()
}

/// The jobs that were run under the real `sacct` when this was written.
fn rows() -> Vec<AccountingRow> {
    let row = |id, name: &str| AccountingRow {
        account: Some("root".to_owned()),
        cluster: "lab".to_owned(),
        eligible: Some(at("06:08:03")),
        start: Some(at("06:08:06")),
        end: Some(at("06:08:06")),
        time_limit: Some(TimeLimit::Unlimited),
        req_memory_mib: 4096,
        priority: 4_294_901_760 - id as u32,
        alloc_tres: Some("billing=1,cpu=1,mem=4G,node=1".to_owned()),
        node_list: vec![format!("n{id}")],
        ..AccountingRow::pending(id, name, "root", "batch", at("06:08:03"))
    };
    vec![
        AccountingRow {
            state: JobState::Completed,
            time_limit: Some(TimeLimit::Minutes(10)),
            req_memory_mib: 100,
            ..row(1, "a-long-job-name")
        },
        AccountingRow {
            state: JobState::Failed,
            exit_code: 3,
            ..row(2, "wrap")
        },
        AccountingRow {
            state: JobState::Cancelled,
            cancelled_by: Some(0),
            start: None,
            time_limit: None,
            alloc_tres: None,
            node_list: Vec::new(),
            ..row(3, "wrap")
        },
        AccountingRow {
            state: JobState::Running,
            start: Some(at("06:08:09")),
            end: None,
            elapsed_s: 2,
            alloc_cpus: 2,
            req_cpus: 2,
            req_nodes: 2,
            req_memory_mib: 8192,
            time_limit: Some(TimeLimit::Minutes(1440)),
            node_list: vec!["n1".to_owned(), "n2".to_owned()],
            ..row(7, "wrap")
        },
        AccountingRow {
            state: JobState::Completed,
            member: Some(Member::Task { array: 4, index: 1 }),
            ..row(8, "wrap")
        },
    ]
}

fn render(line: &str) -> String {
    asked(line).render(&rows(), &TimeZone::UTC)
}

#[test]
fn the_past_looks_as_it_does_in_slurm() {
    assert_eq!(
        render(""),
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n\
         ------------ ---------- ---------- ---------- ---------- ---------- -------- \n\
         1            a-long-jo+      batch       root          1  COMPLETED      0:0 \n\
         2                  wrap      batch       root          1     FAILED      3:0 \n\
         3                  wrap      batch       root          1 CANCELLED+      0:0 \n\
         7                  wrap      batch       root          2    RUNNING      0:0 \n\
         4_1                wrap      batch       root          1  COMPLETED      0:0 \n"
    );
    assert_eq!(
        render("-P -X -o JobID,State,ExitCode"),
        "JobID|State|ExitCode\n1|COMPLETED|0:0\n2|FAILED|3:0\n3|CANCELLED by 0|0:0\n7|RUNNING|0:0\n4_1|COMPLETED|0:0\n"
    );
    assert!(render("-p -b").starts_with("JobID|State|ExitCode|\n1|COMPLETED|0:0|\n"));
}

#[test]
fn columns_are_as_wide_as_slurms_unless_asked_otherwise() {
    assert_eq!(
        render("-o jobname%20,jobid%-5,state%5")
            .lines()
            .take(4)
            .collect::<Vec<_>>(),
        [
            "             JobName JobID State ",
            "-------------------- ----- ----- ",
            "     a-long-job-name 1     COMP+ ",
            "                wrap 2     FAIL+ ",
        ]
    );
    // As recorded from the real program: heading, rule and one job each.
    for (name, wanted) in [
        ("AllocTRES", [" AllocTRES ", "---------- ", "billing=1+ "]),
        (
            "TimelimitRaw",
            ["TimelimitR ", "---------- ", "        10 "],
        ),
        ("Elapsed", ["   Elapsed ", "---------- ", "  00:00:00 "]),
        ("Reserved", ["  Reserved ", "---------- ", "  00:00:03 "]),
        ("ReqMem", ["    ReqMem ", "---------- ", "      100M "]),
        (
            "NodeList",
            ["       NodeList ", "--------------- ", "             n1 "],
        ),
        (
            "JobIDRaw",
            ["JobIDRaw     ", "------------ ", "1            "],
        ),
        ("UID", ["   UID ", "------ ", "     0 "]),
        (
            "End",
            [
                "                End ",
                "------------------- ",
                "2026-11-16T06:08:06 ",
            ],
        ),
    ] {
        let lines = render(&format!("-o {name}"));
        assert_eq!(lines.lines().take(3).collect::<Vec<_>>(), wanted, "{name}");
    }
    let third = |name: &str| {
        let lines = render(&format!("-n -P -o {name}"));
        lines.lines().nth(2).map(str::to_owned).unwrap()
    };
    assert_eq!(third("Start"), "None");
    assert_eq!(third("Timelimit"), "Partition_Limit");
    assert_eq!(third("NodeList"), "None assigned");
}

#[test]
fn jobs_are_chosen_by_what_is_asked() {
    let chosen = |line: &str| {
        let sacct = asked(line);
        let rows = rows();
        let chosen = rows.iter().filter(|row| sacct.wants(row, "ada"));
        chosen.map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(chosen(""), Vec::<u64>::new());
    assert_eq!(chosen("-a"), [1, 2, 3, 7, 8]);
    assert_eq!(chosen("-u root -s F,CA"), [2, 3]);
    assert_eq!(chosen("-j 2,4_1"), [2, 8]);
    assert_eq!(chosen("-a -S 06:08:30"), [7]);
    assert_eq!(chosen("-a -E 06:00"), Vec::<u64>::new());
    assert_eq!(chosen("-a -N n2"), [2, 7]);
    assert_eq!(asked("").since, Some(at("00:00:00")));
}

#[test]
fn json_has_slurms_names() {
    let value: serde_json::Value = serde_json::from_str(&render("--json")).unwrap();
    let job = &value["jobs"][1];
    assert_eq!(job["job_id"], 2);
    assert_eq!(job["state"]["current"], "FAILED");
    assert_eq!(job["exit_code"]["return_code"], 3);
    assert_eq!(value["jobs"][4]["array"]["task_id"], 1);
}

#[test]
fn what_sacct_cannot_do_is_named() {
    let said = |line: &str| read(&words(line), &now()).unwrap_err().to_string();
    assert!(said("-o foo").contains("no field `foo`"));
    assert!(said("-o stat,jobidd").contains("did you mean JobID?"));
    assert!(said("-s foo").contains("foo is no state"));
    assert!(said("-S abc").contains("--starttime"));
    assert!(said("-M x").contains("--clusters is not supported by Berth"));
    assert!(said("foo").contains("foo"));
    assert!(help_format().starts_with("Account             AdminComment        AllocCPUS "));
}
