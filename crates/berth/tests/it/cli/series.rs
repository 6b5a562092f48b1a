//! Booking again and again, as people type it.

use super::lab::lab;

/// How the id of a series begins.
const SERIES: &str = "ser_";

#[tokio::test(flavor = "multi_thread")]
async fn a_series_from_its_making_to_its_end() {
    let desk = lab().await;
    // Tuesdays; the clocks go forward before the fourth, on Sunday 27 March 2101.
    let book =
        "book licences:4 --from |2101-03-08 09:00| --for 3h --title nightly --every week --on tue";

    let tried = desk.run(&format!("{book} --count 4 --except 2101-03-15 --dry-run"));
    let shown = tried.succeeds().stdout;
    assert!(
        shown.contains("Tue 22 Mar 2101 09:00–12:00 (3 h)"),
        "{shown}"
    );
    assert!(!shown.contains("15 Mar"), "{shown}");
    assert!(shown.ends_with("It would be accepted.\n"), "{shown}");

    desk.run("book licences:8 --from |2101-03-15 11:00| --for 2h --title |the other|")
        .succeeds();
    let refused = desk.run(&format!("{book} --count 4"));
    refused.ends_with(5);
    assert!(refused.stderr.contains("--skip-conflicts"), "{refused:?}");
    assert!(refused.stderr.contains("you: the other"), "{refused:?}");
    desk.run(&format!("{book} --count 4 --dry-run"))
        .ends_with(5);

    let booked = desk
        .run(&format!("{book} --count 4 --skip-conflicts"))
        .succeeds();
    let said = "Booked licences, 3 times, from Tue 8 Mar 2101 09:00–12:00 (3 h) to \
                Tue 29 Mar 2101 09:00–12:00 (3 h) Europe/Rome.\n";
    assert!(booked.stdout.starts_with(said), "{booked:?}");
    assert!(booked.stdout.contains("LEFT OUT"), "{booked:?}");
    assert!(
        booked.stdout.contains("Tue 15 Mar 2101 09:00–12:00"),
        "{booked:?}"
    );
    let id = booked.find(SERIES);
    let tail = &id[id.len() - 6..];

    let listed = desk.run("reservation list").succeeds();
    assert_eq!(listed.stdout.matches("↻ nightly").count(), 3, "{listed:?}");
    let series = desk.run("series list").succeeds();
    assert!(
        series.stdout.contains("FREQ=WEEKLY;BYDAY=TU;COUNT=4"),
        "{series:?}"
    );
    assert!(series.stdout.contains(tail), "{series:?}");

    let instances = |line: &str| {
        let shown = desk.run(line).succeeds().json();
        let instances = shown["instances"].as_array().expect("instances").clone();
        let of = |key: &'static str| -> Vec<String> {
            let text = |one: &serde_json::Value| one[key].as_str().expect("a text").to_owned();
            instances.iter().map(text).collect()
        };
        (of("reservation"), of("start"), of("state"))
    };
    let (ids, starts, _) = instances(&format!("series show {tail} -o json"));
    assert_eq!(starts[1], "2101-03-22T08:00:00Z");
    assert_eq!(starts[2], "2101-03-29T07:00:00Z", "summer time");

    // One by itself, then the others; the one stays where it was put.
    let second = &ids[1][ids[1].len() - 6..];
    desk.run(&format!("series change {tail} --this {second} --at 14:00"))
        .succeeds();
    let one = desk.run(&format!("reservation show {second}")).succeeds();
    assert!(one.stdout.contains("differs"), "{one:?}");
    let changed = desk
        .run(&format!("series change {tail} --at 10:00 --for 2h"))
        .succeeds();
    assert!(changed.stdout.contains("LEFT ALONE"), "{changed:?}");
    assert!(
        changed.stdout.contains("Tue 29 Mar 2101 10:00–12:00 (2 h)"),
        "{changed:?}"
    );
    assert!(
        changed.stdout.contains("Tue 22 Mar 2101 14:00–17:00 (3 h)"),
        "{changed:?}"
    );

    // What follows becomes a series of its own.
    let third = &ids[2][ids[2].len() - 6..];
    let split = desk
        .run(&format!(
            "series change {tail} --following {third} --title late"
        ))
        .succeeds();
    assert!(split.stdout.contains("a series of its own"), "{split:?}");
    let cancelled = desk
        .run(&format!("series cancel {tail} --reason |done with it|"))
        .succeeds();
    assert_eq!(
        cancelled.stdout,
        "Cancelled what is to come of “nightly”.\n"
    );
    let (_, _, states) = instances(&format!("series show {tail} -o json"));
    assert_eq!(states, ["cancelled", "cancelled"]);
    desk.run(&format!("series cancel {tail}")).ends_with(5);
    let left = desk.run("series list").succeeds();
    assert!(
        left.stdout.contains("late") && !left.stdout.contains("nightly"),
        "{left:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_series_is_said_at_once() {
    let desk = lab().await;
    for (line, code, said) in [
        ("--every week", 2, "--count"),
        ("--every fortnight --count 3", 2, "not a period"),
        ("--every week --on someday --count 3", 2, "not a day"),
        ("--except 2101-03-15", 2, "--every or --repeat"),
        ("--repeat FREQ=WEEKLY", 2, "no end"),
        ("--every week --count 3 --hold", 2, "cannot be used with"),
        (
            "--repeat FREQ=WEEKLY;BYDAY=MO;COUNT=3",
            1,
            "start the series on 2101-03-14",
        ),
        ("--every day --until 2140-01-01", 1, "five years"),
    ] {
        let typed = format!("book licences:1 --from |2101-03-08 09:00| --for 3h {line}");
        let refused = desk.run(&typed);
        refused.ends_with(code);
        assert!(refused.stderr.contains(said), "{line}: {refused:?}");
    }
}
