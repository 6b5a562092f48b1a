use super::*;
use crate::random::Random;

const FLEET: &str = r#"{"berth-history":1,"site":"hill","nodes":[{"name":"n1","cpu_milli":64000,"memory_bytes":512,"gpus":[{"model":"H100","count":4,"memory_bytes":80}]},{"name":"n2","cpu_milli":8000,"memory_bytes":64}],"projects":[{"name":"bio","weight":2.0}]}"#;
const RESERVATION: &str = r#"{"reservation":"R1","from":"2026-03-01T10:00:00Z","to":"2026-03-01T12:00:00Z","known":"2026-02-20T00:00:00Z","on":[{"node":"n1","gpus":[0,1]}]}"#;
const WORKLOAD: &str = r#"{"workload":"7","person":"ada","project":"bio","submit":"2026-03-01T09:00:00Z","start":"2026-03-01T09:30:00Z","end":"2026-03-01T10:00:00Z","limit_s":3600,"cpu_milli":4000,"memory_bytes":8,"gpus":1}"#;

fn told(lines: &[&str]) -> String {
    read(&lines.join("\n")).unwrap_err().to_string()
}

#[test]
fn a_history_is_read_into_a_trace() {
    let waiting = WORKLOAD
        .replace(
            r#","start":"2026-03-01T09:30:00Z","end":"2026-03-01T10:00:00Z""#,
            "",
        )
        .replace("09:00:00", "08:00:00")
        .replace("ada", "bob");
    let trace = read(&[FLEET, WORKLOAD, RESERVATION, &waiting].join("\n")).unwrap();
    assert_eq!(trace.title, "Berth's history of hill");
    assert_eq!(trace.nodes[0].gpus.len(), 4);
    assert_eq!(trace.projects[0].weight, 2.0);
    let [first, second] = trace.arrivals[..] else {
        panic!("two workloads: {:?}", trace.arrivals);
    };
    assert_eq!(trace.people[first.owner.person], "bob");
    assert_eq!(first.runs, 3600 * SECOND, "it runs until its limit");
    assert_eq!(second.runs, 1800 * SECOND);
    assert_eq!(second.task.gpus, Gpus::Whole(1));
    let wall = &trace.walls[0];
    assert_eq!(wall.to - wall.from, 7200 * SECOND);
    assert_eq!(wall.placement.pieces[0].gpus.len(), 2);
    assert_eq!(wall.placement.pieces[0].cpu_milli, 0);
}

#[test]
fn a_part_that_names_nothing_is_the_whole_node() {
    let whole = RESERVATION.replace(r#","gpus":[0,1]"#, "");
    let trace = read(&[FLEET, &whole].join("\n")).unwrap();
    let piece = &trace.walls[0].placement.pieces[0];
    assert_eq!((piece.cpu_milli, piece.gpus.len()), (64_000, 4));
}

#[test]
fn what_never_ran_in_the_queue_is_left_out_and_counted() {
    let taken_back = WORKLOAD.replace(r#""start":"2026-03-01T09:30:00Z","#, "");
    let reserved = WORKLOAD.replace(r#""gpus":1"#, r#""gpus":1,"class":"reserved""#);
    let trace = read(&[FLEET, &taken_back, &reserved].join("\n")).unwrap();
    assert_eq!((trace.arrivals.len(), trace.left_out), (0, 2));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let cases: &[(String, &str)] = &[
        (
            WORKLOAD.replace("\"gpus\"", "\"gpu\""),
            "unknown field `gpu`",
        ),
        (WORKLOAD.replace("3600", "0"), "its limit is not above zero"),
        (
            WORKLOAD.replace("3600", "99999999999"),
            "its limit is longer than ten years",
        ),
        (
            WORKLOAD.replace("T10:00", "T09:10"),
            "it ends before it starts",
        ),
        (
            WORKLOAD.replace("T09:30", "T08:30"),
            "it starts before it is submitted",
        ),
        (
            WORKLOAD.replace("2026-03-01T09:00", "yesterday"),
            "failed to parse",
        ),
        (
            WORKLOAD.replace("\"ada\"", "\"\""),
            "the name of a person is empty",
        ),
        (
            WORKLOAD.replace("\"gpus\":1", "\"gpus\":1,\"gpu_thousandths\":500"),
            "whole GPUs and for thousandths",
        ),
        (
            WORKLOAD.replace("\"gpus\":1", "\"gpus\":1,\"tasks\":0"),
            "its tasks are not 1 to",
        ),
        (RESERVATION.replace("n1", "n9"), "there is no node `n9`"),
        (
            RESERVATION.replace("[0,1]", "[0,4]"),
            "node `n1` has no GPU 4",
        ),
        (
            RESERVATION.replace("T12:00", "T09:00"),
            "its time is not above zero",
        ),
        (
            RESERVATION.replace("\"on\"", "\"person\":\"ada\",\"on\""),
            "a person and a project, or neither",
        ),
        (FLEET.to_owned(), "the fleet was told before"),
        ("{}".to_owned(), "a line has one of the keys"),
        ("nonsense".to_owned(), "expected"),
    ];
    for (line, says) in cases {
        let told = told(&[FLEET, "", line]);
        assert!(
            told.starts_with("line 3: ") && told.contains(says),
            "{told}"
        );
    }
    assert!(told(&[WORKLOAD]).starts_with("line 1: the first line has to be the fleet's"));
    assert!(told(&[""]).contains("the history is empty"));
    let newer = FLEET.replace("\"berth-history\":1", "\"berth-history\":2");
    assert!(told(&[&newer]).contains("of version 2"));
    let twice = FLEET.replace("\"n2\"", "\"n1\"");
    assert!(told(&[&twice]).contains("two nodes named `n1`"));
    let many = FLEET.replace("\"count\":4", "\"count\":65535");
    assert!(told(&[&many]).contains("more than 64 GPUs"));
}

#[test]
fn nothing_can_be_reserved_twice() {
    let later = RESERVATION
        .replace("T10:00", "T11:30")
        .replace("T12:00", "T13:00");
    let beside = later.replace("[0,1]", "[2,3]");
    let after = RESERVATION
        .replace("T12:00", "T14:00")
        .replace("T10:00", "T12:00");
    assert!(read(&[FLEET, RESERVATION, &beside, &after].join("\n")).is_ok());
    let told = told(&[FLEET, RESERVATION, &later]);
    assert!(
        told.starts_with("line 3: with the reservations beside it"),
        "{told}"
    );
}

/// A random line of any kind.
fn line(random: &mut Random) -> Line {
    let mut optional = |some: bool| some.then(|| random.below(9) as u64);
    let (one, other, third) = (optional(true), optional(false), optional(true));
    let at = |hours: usize| Timestamp::from_second(1_700_000_000 + 3600 * hours as i64).unwrap();
    let name = |random: &mut Random| format!("\"ä<{}>\\", random.below(1000));
    let gpus = GpuEntry {
        model: name(random),
        count: random.below(9) as u16,
        memory_bytes: random.number() >> 20,
        link: (random.below(2) == 0).then_some(3),
    };
    match random.below(3) {
        0 => Line::Fleet(FleetLine {
            version: VERSION,
            site: name(random),
            nodes: vec![NodeEntry {
                name: name(random),
                cpu_milli: random.number(),
                memory_bytes: random.number(),
                rack: (random.below(2) == 0).then(|| name(random)),
                gpus: vec![gpus; random.below(3)],
            }],
            projects: vec![ProjectEntry {
                name: name(random),
                weight: 0.25 * (1 + random.below(100)) as f64,
            }],
        }),
        1 => Line::Reservation(ReservationLine {
            reservation: name(random),
            from: at(random.below(100)),
            to: at(random.below(100)),
            known: at(random.below(100)),
            person: (random.below(2) == 0).then(|| name(random)),
            project: (random.below(2) == 0).then(|| name(random)),
            on: vec![PartEntry {
                node: name(random),
                cpu_milli: one,
                memory_bytes: other,
                gpus: third.map(|gpu| vec![gpu as u16]),
            }],
        }),
        _ => Line::Workload(WorkloadLine {
            workload: name(random),
            person: name(random),
            project: name(random),
            class: [
                ClassEntry::Opportunistic,
                ClassEntry::Guaranteed,
                ClassEntry::Urgent,
                ClassEntry::Reserved,
            ][random.below(4)],
            level: random.below(9) as i32 - 4,
            submit: at(random.below(100)),
            start: (random.below(2) == 0).then(|| at(random.below(100))),
            end: (random.below(2) == 0).then(|| at(random.below(100))),
            limit_s: random.number(),
            tasks: random.below(100) as u32,
            near: [
                NearEntry::Anywhere,
                NearEntry::Rack,
                NearEntry::Node,
                NearEntry::Link,
            ][random.below(4)],
            cpu_milli: random.number(),
            memory_bytes: random.number(),
            gpus: (random.below(2) == 0).then(|| random.below(9) as u16),
            gpu_thousandths: (random.below(2) == 0).then(|| random.below(999) as u16),
            models: vec![name(random); random.below(3)],
            gpu_memory_bytes: random.number(),
        }),
    }
}

#[test]
fn whatever_is_written_is_read_again() {
    let mut random = Random::new(5);
    for _ in 0..500 {
        let line = line(&mut random);
        let text = line.to_string();
        assert!(!text.contains('\n'));
        assert_eq!(Line::parse(&text).as_ref(), Ok(&line), "{text}");
    }
}

#[test]
fn garbage_is_refused_and_never_more_than_that() {
    let mut random = Random::new(11);
    let text = [FLEET, RESERVATION, WORKLOAD].join("\n");
    for _ in 0..3000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[place] = b"0129\"{}[],:-n"[random.below(13)],
                1 => drop(bytes.remove(place)),
                _ => bytes.truncate(place.max(1)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(unreadable) = read(&text) {
            assert!((1..=3).contains(&unreadable.line), "{unreadable}: {text}");
        }
    }
}
