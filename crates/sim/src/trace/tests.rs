use berth_engine::fleet::{Gpus, Part};

use super::*;
use crate::compare;
use crate::policy::Candidate;
use crate::random::Random;
use crate::swf::SECOND;

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\n\
    a,64000,1000,2,V100\n\
    b,64000,1000,2,T4\n";
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
    p1,1000,10,1,500,,BE,Running,50,7300,60\n\
    p2,1000,10,2,1000,T4,LS,Running,10,20,\n\
    p3,1000,10,1,1000,,LS,Pending,10,10,10\n";

#[test]
fn each_kind_of_file_is_told_by_its_text() {
    let openb = read(&[PODS, NODES]).unwrap();
    assert_eq!(openb, read(&[NODES, PODS]).unwrap());
    let [first, second] = openb.arrivals[..] else {
        panic!("two pods: {:?}", openb.arrivals);
    };
    assert_eq!((first.submit, first.runs), (10 * SECOND, 10 * SECOND));
    assert_eq!(first.class, Class::Guaranteed);
    assert_eq!((second.submit, second.runs), (50 * SECOND, 7240 * SECOND));
    assert_eq!(second.limit, 4 * 3600 * SECOND, "the next round time");
    assert_eq!(second.class, Class::Opportunistic);
    assert_eq!(second.task.gpus, Gpus::Share(500));
    assert_eq!(openb.left_out, 1);
    let log = "; MaxNodes: 6\n; MaxProcs: 8\n\
        1 10 0 50 -1 -1 -1 8 60 -1 1 7 3 -1 1 -1 -1 -1\n\
        2 10 0 50 -1 -1 -1 9 60 -1 1 7 3 -1 1 -1 -1 -1\n";
    let swf = read(&[log]).unwrap();
    assert_eq!((swf.nodes.len(), swf.arrivals.len()), (8, 1));
    assert_eq!(
        (&*swf.people[0], &*swf.projects[0].name),
        ("user 7", "group 3")
    );
    assert_eq!(swf.left_out, 1);
    let history = "{\"berth-history\":1,\"nodes\":[]}";
    assert_eq!(read(&[history]).unwrap().nodes.len(), 0);
}

#[test]
fn what_is_no_trace_is_refused() {
    let told = |texts: &[&str]| read(texts).unwrap_err().to_string();
    assert!(told(&[NODES]).contains("give both"));
    assert!(told(&[NODES, NODES, PODS]).contains("a trace is one file"));
    assert!(told(&["1 2 3"]).contains("MaxProcs"));
    let short = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1000,10,1,500\n";
    assert!(told(&[NODES, short]).starts_with("line 2: the list has no times"));
    let far = "; MaxProcs: 8\n1 99999999999 0 50 8 -1 -1 8 60 -1 1 7 3 -1 1 -1 -1 -1\n";
    assert_eq!(told(&[far]), "line 2: field 2 is more than ten years");
    let many = NODES.replace("64000,1000,2,T4", "64000,1000,2000,T4");
    assert_eq!(
        told(&[&many, PODS]),
        "line 3: 2000 GPUs are too many for a node"
    );
}

#[test]
fn a_smaller_fleet_has_the_reservations_of_the_nodes_that_are_left() {
    let mut trace = read(&["; MaxProcs: 10\n"]).unwrap();
    let on = |nodes: &[u32]| Wall {
        from: 0,
        to: 1,
        known: 0,
        placement: crate::reserve::whole(&trace.nodes, nodes),
        holder: None,
    };
    trace.walls = vec![on(&[0, 1, 4]), on(&[1])];
    let half = trace.clone().on_part_of_the_fleet(0.5);
    assert_eq!((half.nodes.len(), half.walls.len()), (5, 1));
    let nodes: Vec<u32> = (half.walls[0].placement.pieces.iter())
        .map(|piece| piece.node.0)
        .collect();
    assert_eq!(nodes, [0, 2]);
    assert_eq!(trace.clone().on_part_of_the_fleet(0.0).nodes.len(), 1);
    assert_eq!(trace.clone().on_part_of_the_fleet(1.0), trace);
}

#[test]
fn the_dearest_part_is_the_price() {
    let fleet = Load {
        cpu_milli: 100_000,
        memory_bytes: 1000,
        gpu_milli: 10_000,
    };
    let prices = Prices::of(fleet);
    assert_eq!(prices.whole(), 10.0);
    let rate = |cpu_milli, memory_bytes, gpu_milli| {
        prices.rate(Load {
            cpu_milli,
            memory_bytes,
            gpu_milli,
        })
    };
    assert_eq!(rate(1000, 1, 2000), 2.0);
    assert_eq!(
        rate(50_000, 1, 2000),
        5.0,
        "half of the CPU is half of the GPUs"
    );
    assert_eq!(rate(0, 900, 0), 9.0);
    let cores = Prices::of(Load {
        gpu_milli: 0,
        ..fleet
    });
    assert_eq!((cores.whole(), cores.rate(fleet)), (100.0, 100.0));
}

#[test]
fn what_is_taken_is_compared_part_by_part() {
    let trace = read(&[NODES, PODS]).unwrap();
    let piece = |gpu, thousandths| Piece {
        node: NodeIndex(0),
        cpu_milli: 1000,
        memory_bytes: 0,
        gpus: vec![Part { gpu, thousandths }],
    };
    let mut taken = Taken::default();
    taken.add(&piece(0, 600));
    taken.add(&piece(1, 600));
    assert!(taken.fits(&trace.nodes[0]));
    taken.add(&piece(1, 600));
    assert!(!taken.fits(&trace.nodes[0]));
    taken.remove(&piece(1, 600));
    assert!(taken.fits(&trace.nodes[0]));
    taken.add(&piece(2, 1));
    assert!(!taken.fits(&trace.nodes[0]), "there is no such GPU");
}

#[test]
fn garbage_is_refused_and_never_more_than_that() {
    let log = "; MaxProcs: 8\n1 10 0 50 -1 -1 -1 8 60 -1 1 7 3 -1 1 -1 -1 -1\n";
    let mut random = Random::new(3);
    let mut spoilt = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[place] = b"0129-.,;\"\ne "[random.below(12)],
                1 => drop(bytes.remove(place)),
                _ => bytes.insert(place, b"9-e"[random.below(3)]),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    for _ in 0..3000 {
        for texts in [vec![spoilt(log)], vec![spoilt(NODES), spoilt(PODS)]] {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            if let Ok(trace) = read(&texts) {
                assert!(trace.arrivals.iter().all(|one| one.runs <= one.limit));
            }
        }
    }
}

#[test]
fn numbers_at_their_limits_are_replayed() {
    let fleet = r#"{"berth-history":1,"nodes":[{"name":"n","cpu_milli":18446744073709551615,"memory_bytes":18446744073709551615,"gpus":[{"model":"a","count":64}]},{"name":"m","cpu_milli":0,"memory_bytes":0}]}"#;
    let wall = r#"{"reservation":"r","from":"2025-01-01T00:00:00Z","to":"2034-12-01T00:00:00Z","known":"1900-01-01T00:00:00Z","person":"p","project":"q","on":[{"node":"n","gpus":[0]}]}"#;
    let workload = |submit: &str, amounts: &str| {
        format!(
            r#"{{"workload":"w","person":"p","project":"q","submit":"{submit}","limit_s":315360000,{amounts}}}"#
        )
    };
    let most = "\"cpu_milli\":18446744073709551615,\"memory_bytes\":18446744073709551615";
    let none = "\"cpu_milli\":0,\"memory_bytes\":0";
    let lines = [
        fleet.to_owned(),
        wall.to_owned(),
        workload("1800-01-01T00:00:00Z", most),
        workload("1999-01-01T00:00:00Z", &format!("{most},\"tasks\":200000")),
        workload("2025-01-01T00:00:00Z", &format!("{none},\"tasks\":200000")),
        workload("2025-01-01T00:00:00Z", &format!("{none},\"gpus\":65535")),
        workload(
            "2025-01-01T00:00:00Z",
            &format!("{none},\"gpus\":63,\"level\":-2147483648"),
        ),
        workload(
            "2150-01-01T00:00:00Z",
            &format!("{none},\"gpu_thousandths\":999"),
        ),
    ];
    let trace = read(&[&lines.join("\n")]).unwrap();
    let quick = Candidate {
        half_life: 3600 * SECOND,
        ..Candidate::new("quick to forget")
    };
    let comparison = compare(&trace, &[Candidate::new("any"), quick], &mut |_| ()).unwrap();
    for tried in &comparison.tried {
        let outcome = &tried.outcome;
        assert_eq!((outcome.done, outcome.never), (4, 2));
        assert_eq!(outcome.late_s, 0.0);
    }
    assert!(!comparison.html().contains("NaN"));
}
