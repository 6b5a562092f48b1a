//! Policies as people meet them: refused, explained, approved.

use super::lab::lab;
use crate::support::desk::{Desk, PASSWORD, RESERVATION};

/// Somebody new in the site, at a desk of their own.
fn newcomer(desk: &Desk, login: &str) -> Desk {
    let create = format!("person create {login} --name {login} --password-stdin");
    desk.run_with(&create, &format!("{PASSWORD}\n")).succeeds();
    desk.run(&format!("member add {login}")).succeeds();
    let other = desk.another();
    other.login(login);
    other.run("site use torino").succeeds();
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_rule_and_what_would_do() {
    let desk = lab().await;
    let book = "book licences:1 --from |2101-03-08 09:00|";
    let long = desk.run(&format!("{book} --for 6h")).succeeds();
    let id = long.find(RESERVATION);
    desk.write(
        "pool.yaml",
        "length_max: 4h\nopening_hours:\n  tue: [\"08:00-18:00\"]\n",
    );
    let tried = desk
        .run("policy set --type pool --file pool.yaml --dry-run")
        .succeeds();
    assert!(
        tried
            .stdout
            .starts_with("This would set the policy of type pool, as version 1.\n"),
        "{tried:?}"
    );
    assert!(tried.stdout.contains(&id[24..]), "{tried:?}");
    assert!(
        tried.stdout.contains("bookings last at most 4 h"),
        "{tried:?}"
    );
    let none = desk.run("policy list").succeeds();
    assert!(none.stdout.contains("There are no policies"), "{none:?}");
    desk.run("policy set --type pool --file pool.yaml --reason |fair shares|")
        .succeeds();
    let stands = desk.run("reservation list").succeeds();
    assert!(stands.stdout.contains(&id[24..]), "{stands:?}");

    let refused = desk.run(&format!("{book} --for 6h"));
    refused.ends_with(5);
    for said in [
        "error: The booking does not keep the policies\n",
        "  length_max: bookings last at most 4 h (policy of type pool); this one lasts 6 h; up to 4 h is accepted\n",
        "  Accepted instead: Tue 8 Mar 2101 09:00–13:00 (4 h) Europe/Rome\n",
        "`berth policy test`",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let as_json = desk.run(&format!("{book} --for 6h -o json"));
    let problem: serde_json::Value = serde_json::from_str(&as_json.stderr).expect("a problem");
    assert_eq!(problem["code"], "policy.refused");
    assert_eq!(problem["breaches"][0]["rule"], "length_max");
    assert_eq!(problem["breaches"][0]["value"], "4h");
    assert_eq!(problem["breaches"][0]["accepts"]["at_most"], "4h");

    let test = desk.run("policy test licences:1 --from |2101-03-08 17:00| --for 2h");
    test.ends_with(5);
    for said in [
        "length_max     yes",
        "opening_hours  no",
        "The policies refuse it.\n",
    ] {
        assert!(test.stdout.contains(said), "{said}: {test:?}");
    }
    desk.run("policy set --type pool opening_hours=").succeeds();
    desk.run("policy test licences:1 --from |2101-03-08 17:00| --for 2h")
        .succeeds();
    let shown = desk.run("policy show --type pool").succeeds();
    assert!(
        shown.stdout.contains("Asks     length_max=4h\n") && shown.stdout.contains("Version  2"),
        "{shown:?}"
    );
    let history = desk.run("policy history --type pool").succeeds();
    assert!(history.stdout.contains("fair shares"), "{history:?}");
    desk.run("policy set --ceilings length_max=8h").succeeds();
    let loose = desk.run("policy set length_max=9h");
    loose.ends_with(1);
    assert!(
        loose
            .stderr
            .contains("9 h is looser than 8 h (global ceilings); 8 h or less is accepted"),
        "{loose:?}"
    );
    desk.run("policy set lenght_max=9h").ends_with(2);
    desk.run("policy show --role member").ends_with(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_are_asked_decide() {
    let desk = lab().await;
    let (cy, di) = (newcomer(&desk, "cy"), newcomer(&desk, "di"));
    for line in [
        "project create leads --title Leads",
        "project add-member leads di",
        "policy set --type pool |approval={approvers: [{project: leads}]}|",
    ] {
        desk.run(line).succeeds();
    }
    cy.run("policy set length_max=1h").ends_with(7);
    let asked = cy
        .run("book licences:1 --from |2101-03-08 09:00| --for 1h --private")
        .succeeds();
    assert!(
        asked
            .stdout
            .ends_with("It is held for you until project leads decides.\n"),
        "{asked:?}"
    );
    let id = asked.find(RESERVATION);
    let nothing = cy.run("approvals").succeeds();
    assert!(
        nothing.stdout.contains("No approvals wait for you"),
        "{nothing:?}"
    );
    let waiting = di.run("approvals").succeeds();
    assert!(waiting.stdout.contains(&id[24..]), "{waiting:?}");
    cy.run(&format!("reservation approve {id}")).ends_with(7);
    let approved = di.run(&format!("reservation approve {id}")).succeeds();
    assert!(
        approved.stdout.ends_with("It is confirmed.\n"),
        "{approved:?}"
    );
    let shown = cy.run(&format!("reservation show {id}")).succeeds();
    assert!(
        shown
            .stdout
            .contains("project leads: approved by di (policy of type pool)"),
        "{shown:?}"
    );
}
