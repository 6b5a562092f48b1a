//! What the guide shows is what is read.

use berth_sim::policy::Candidate;
use berth_sim::{compare, trace};

const GUIDE: &str = include_str!("../../../docs/what-if.md");

fn example(language: &str) -> Option<&'static str> {
    let (_, after) = GUIDE.split_once(&format!("```{language}\n"))?;
    Some(after.split_once("```")?.0)
}

#[test]
fn the_guides_policy_and_history_can_be_compared() {
    let trace = trace::read(&[example("json").unwrap()]).unwrap();
    assert_eq!((trace.walls.len(), trace.arrivals.len()), (1, 1));
    let candidate = Candidate::parse(example("toml").unwrap(), "a file").unwrap();
    assert_eq!(candidate.name, "fairer");
    assert_eq!(candidate.quotas.len(), 1);
    let comparison = compare(&trace, &[candidate], &mut |_| ()).unwrap();
    assert_eq!(comparison.tried[0].outcome.done, 1);
}
