//! Homes that were restored with an owner that they must not have.

use berth_drivers::backend::{Sign, Trouble};
use berth_model::workload::Outcome;
use serde_json::json;

use super::{Machine, work};

#[tokio::test]
async fn a_home_that_belongs_to_root_makes_nobody_root() {
    let machine = Machine::new();
    let (outcome, said, _) = machine.shell(1, "true").await;
    assert_eq!(outcome, Outcome::Completed, "{said}");
    let home = machine.folder.path().join(format!("homes/{:032x}", 1));
    let own = |user| std::os::unix::fs::chown(&home, Some(user), Some(user)).expect("only root");
    own(0);
    let (workload, run) = work(json!({"command": ["id", "-u"]}));
    let refused = machine.try_begin(1, &workload, &run).await;
    let Err(Trouble::Refused(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("chown -R -h 200000:200000"), "{why}");
    assert_eq!(machine.sign(&workload, &run).await, Sign::Unknown);
    own(200_000);
    machine.begin(1, &workload, &run).await;
    let (outcome, said, _) = machine.until_over(&workload, &run).await;
    assert_eq!(outcome, Outcome::Completed, "{said}");
}

#[tokio::test]
async fn two_homes_of_one_user_make_two_people_no_one() {
    let machine = Machine::new();
    for person in [1, 2] {
        let (outcome, said, _) = machine.shell(person, "true").await;
        assert_eq!(outcome, Outcome::Completed, "{said}");
    }
    let home = machine.folder.path().join(format!("homes/{:032x}", 2));
    std::os::unix::fs::chown(&home, Some(200_000), Some(200_000)).expect("only root");
    let (workload, run) = work(json!({"command": ["true"]}));
    let refused = machine.try_begin(2, &workload, &run).await;
    let Err(Trouble::Refused(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("another person's home"), "{why}");
    let (outcome, said, _) = machine.shell(1, "true").await;
    assert_eq!(outcome, Outcome::Completed, "{said}");
}
