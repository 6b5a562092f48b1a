//! Setting policies, and whom they speak of.

use berth_app::policies::PolicyAt;
use berth_app::settlement::Mode;
use berth_app::{Caller, Error, NewProject};
use berth_model::policy::{Part, Policy};
use berth_model::reference::PersonReference;
use berth_model::reservation::Reservation;
use berth_model::{Reference, Span};
use jiff::SignedDuration;
use serde_json::Value;

use super::{Lab, name, site};

pub fn policy(written: Value) -> Policy {
    serde_json::from_value(written).expect("a policy")
}

pub fn of_site() -> PolicyAt {
    PolicyAt::Site(site(), Part::default())
}

pub fn of_type(kind: &str) -> PolicyAt {
    let part = Part {
        resource_type: Some(name(kind)),
        ..Part::default()
    };
    PolicyAt::Site(site(), part)
}

pub async fn set(lab: &Lab, who: &Caller, at: &PolicyAt, written: Value) -> Result<u64, Error> {
    let new = policy(written);
    let set = lab
        .app
        .set_policy(who, at, Some(&new), None, None, Mode::Apply);
    Ok(set.await?.now.version)
}

pub async fn must_set(lab: &Lab, at: &PolicyAt, written: Value) {
    let who = match at {
        PolicyAt::Site(..) => &lab.admin,
        PolicyAt::Ceilings | PolicyAt::Defaults => &lab.root,
    };
    set(lab, who, at, written).await.expect("the policy is set");
}

pub fn person(caller: &Caller) -> PersonReference {
    Reference::Id(caller.person.id)
}

pub async fn project(lab: &Lab, of: &str, members: &[&Caller]) {
    let new = NewProject {
        name: name(of),
        title: of.parse().expect("text"),
    };
    lab.app
        .create_project(&lab.admin, &site(), new)
        .await
        .expect("a project");
    let of = Reference::Name(name(of));
    for member in members {
        lab.app
            .add_project_member(&lab.admin, &site(), &of, &person(member))
            .await
            .expect("a member of it");
    }
}

pub async fn book_for(
    lab: &Lab,
    who: &Caller,
    of: &str,
    resource: &str,
    (from, to): (i64, i64),
) -> Result<Reservation, Error> {
    let mut wish = lab.wish(&[resource], from, to);
    wish.project = Some(Reference::Name(name(of)));
    Ok(lab.app.book(who, &site(), &wish).await?.value.reservation)
}

/// The words of a refusal by policy.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Policy(refusal)) => refusal.to_string(),
        other => panic!("not refused by a policy: {other:?}"),
    }
}

/// So many minutes after the lab was opened.
pub fn minutes(lab: &Lab, from: i64, to: i64) -> Span {
    let at = |minutes| lab.at(0) + SignedDuration::from_mins(minutes);
    Span::new(at(from), at(to)).expect("a span")
}
