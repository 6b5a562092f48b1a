use super::*;
use crate::duration::TimeLimit;

fn words(line: &str) -> Vec<String> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| word.replace('~', " "))
        .collect()
}

fn node(name: &str, cpus: u32, state: NodeState) -> NodeRow {
    NodeRow {
        state,
        sockets: cpus,
        cores_per_socket: 1,
        features: Some(if cpus > 8 { "slow" } else { "fast" }.to_owned()),
        ..NodeRow::idle(name, cpus, u64::from(cpus) * 512)
    }
}

/// The cluster whose output was looked at when this was written.
fn render(line: &str) -> String {
    let mut nodes = vec![
        node("n1", 8, NodeState::Mixed),
        node("n2", 8, NodeState::Mixed),
        node("n3", 8, NodeState::Draining),
        node("n4", 8, NodeState::Unknown),
        node("m01", 16, NodeState::Down),
        node("m02", 16, NodeState::Unknown),
    ];
    nodes[0].cpus_allocated = 2;
    nodes[1].cpus_allocated = 1;
    nodes[2].cpus_allocated = 1;
    nodes[3].is_responding = false;
    nodes[5].is_responding = false;
    let because = |text: &str| {
        Some(Reason {
            text: text.to_owned(),
            user: "root".to_owned(),
            uid: 0,
            since: Some(Timestamp::from_second(1_794_808_534).unwrap()),
        })
    };
    nodes[2].reason = because("bad fan, see ticket 17");
    nodes[4].reason = because("x");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let partitions = [
        PartitionRow {
            is_default: true,
            ..PartitionRow::open("batch", names(&["n1", "n2", "n3", "n4"]))
        },
        PartitionRow {
            time_limit: TimeLimit::Minutes(10_080),
            default_time: Some(TimeLimit::Minutes(60)),
            ..PartitionRow::open("long", names(&["m01", "m02"]))
        },
    ];
    let Asked::List(sinfo) = read(&words(line)).unwrap() else {
        panic!("a list");
    };
    let now = Timestamp::from_second(1_794_808_534).unwrap();
    sinfo.render(&partitions, &nodes, now, &TimeZone::UTC)
}

#[test]
fn partitions_look_as_they_do_in_slurm() {
    assert_eq!(
        render(""),
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n\
         batch*       up   infinite      1   unk* n4\n\
         batch*       up   infinite      1   drng n3\n\
         batch*       up   infinite      2    mix n[1-2]\n\
         long         up 7-00:00:00      1   unk* m02\n\
         long         up 7-00:00:00      1   down m01\n"
    );
    assert_eq!(
        render("-s"),
        "PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n\
         batch*       up   infinite          3/1/0/4 n[1-4]\n\
         long         up 7-00:00:00          0/1/1/2 m[01-02]\n"
    );
    let long = render("-l -p long");
    assert_eq!(
        long,
        "Mon Nov 16 05:55:34 2026\n\
         PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE NODELIST\n\
         long         up 7-00:00:00 1-infinite   no       NO        all      1    unknown* m02\n\
         long         up 7-00:00:00 1-infinite   no       NO        all      1        down m01\n"
    );
}

#[test]
fn nodes_look_as_they_do_in_slurm() {
    assert_eq!(
        render("-N -n n[2-3],m01"),
        "NODELIST   NODES PARTITION STATE \n\
         m01            1      long down  \n\
         n2             1    batch* mix   \n\
         n3             1    batch* drng  \n"
    );
    let long = render("-N -l -n n3");
    let lines: Vec<_> = long.lines().collect();
    assert_eq!(
        lines[1],
        "NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON              "
    );
    assert_eq!(
        lines[2],
        "n3             1    batch*    draining 8       8:1:1   4096        0      1     fast bad fan, see ticket "
    );
    assert_eq!(
        render("-R"),
        "REASON               USER      TIMESTAMP           NODELIST\n\
         bad fan, see ticket  root      2026-11-16T05:55:34 n3\n\
         x                    root      2026-11-16T05:55:34 m01\n"
    );
}

#[test]
fn a_partition_without_such_nodes_is_still_listed() {
    assert_eq!(
        render("-h -t drain"),
        "batch*       up   infinite      1   drng n3\n\
         long         up 7-00:00:00      0    n/a \n"
    );
    assert_eq!(render("-p nosuch -h"), "");
}

#[test]
fn nodes_alike_in_what_is_shown_share_a_line() {
    assert_eq!(render("-h -o %N"), "m[01-02],n[1-4]\n");
    assert_eq!(render("-h -o %c~%m~%z"), "8+ 4096+ 8+:1:1\n");
    assert_eq!(render("-h -e -o %c~%C"), "8 4/21/7/32\n16 0/16/16/32\n");
}

#[test]
fn columns_are_chosen_by_letters_and_by_names() {
    assert_eq!(
        render("-p batch -O partition:8,statelong:.10,cpusstate:12|,nodelist:6"),
        "PARTITIO     STATECPUS(A/I/O/T|NODELI\n\
         batch*    unknown*0/8/0/8     |n4    \n\
         batch*    draining1/0/7/8     |n3    \n\
         batch*       mixed3/13/0/16   |n[1-2]\n"
    );
}

#[test]
fn json_has_slurms_names() {
    let value: serde_json::Value = serde_json::from_str(&render("--json -p batch")).unwrap();
    assert_eq!(value["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(value["nodes"][2]["state"], "draining");
    assert_eq!(value["nodes"][2]["reason"], "bad fan, see ticket 17");
    assert_eq!(value["nodes"][3]["state_flags"][0], "NOT_RESPONDING");
}

#[test]
fn what_sinfo_cannot_do_is_named() {
    let said = |line: &str| read(&words(line)).unwrap_err().to_string();
    assert!(said("-t foo").contains("foo is no state; they are unknown,down"));
    assert!(said("-O foo").contains("no field `foo`"));
    assert!(said("-T").contains("--reservation is not supported by Berth"));
    assert!(said("foo").contains("foo"));
}
