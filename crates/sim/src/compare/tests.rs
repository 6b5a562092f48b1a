use berth_engine::queue::planner::{Order, Policy};

use super::*;
use crate::fixture::busy;

fn candidates() -> Vec<Candidate> {
    let shortest = Candidate {
        policy: Policy::new(Order::Shortest),
        ..Candidate::new("the shortest of all first")
    };
    vec![Candidate::new("shares"), shortest]
}

#[test]
fn a_table_fits_eighty_columns_and_names_every_policy() {
    let mut all = candidates();
    all.extend((0..4).map(|number| Candidate::new(&format!("another {number}"))));
    let comparison = compare(&busy(40, 1), &all, &mut |_| ()).unwrap();
    let table = comparison.table();
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for candidate in &all {
        let name = crate::show::shortened(&candidate.name, 13);
        assert!(table.contains(&name), "{name}:\n{table}");
    }
}

#[test]
fn the_best_is_marked_unless_all_are_alike() {
    let comparison = compare(&busy(120, 1), &candidates(), &mut |_| ()).unwrap();
    let figures = comparison.figures();
    let figure = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap();
    assert_eq!(figure("Reservations late").best, [false, false]);
    assert_eq!(figure("Starts").best, [false, false], "neither is better");
    let waits: Vec<f64> = (comparison.tried.iter())
        .map(|tried| tried.outcome.wait_mean_s)
        .collect();
    assert_ne!(waits[0], waits[1]);
    let wait = figure("Wait, mean");
    assert_eq!(wait.best[0], waits[0] < waits[1], "{wait:?}");
    assert!(comparison.table().contains('*'));
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let trace = busy(10, 1);
    let refused = |trace: &Trace, all: &[Candidate]| {
        let refused = compare(trace, all, &mut |_| ()).unwrap_err();
        refused.to_string()
    };
    assert!(refused(&trace, &[]).contains("no policy"));
    let same = [Candidate::new("a"), Candidate::new("a")];
    assert_eq!(refused(&trace, &same), "two policies are named `a`");
    let many: Vec<Candidate> = (0..9)
        .map(|number| Candidate::new(&number.to_string()))
        .collect();
    assert!(refused(&trace, &many).starts_with("9 policies are too many"));
    let strange = Candidate {
        weights: [("biologie".to_owned(), 1.0)].into(),
        ..Candidate::new("a")
    };
    assert_eq!(
        refused(&trace, &[strange]),
        "policy `a`: the trace has no project `biologie`; did you mean `biology`?"
    );
    let empty = Trace {
        arrivals: Vec::new(),
        ..trace
    };
    assert!(refused(&empty, &candidates()).contains("no workloads"));
}
