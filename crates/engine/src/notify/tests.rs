use berth_model::policy::{Outcome, Part, Scope};
use berth_model::reservation::{ApprovalDecision, Privacy, Terms};
use berth_model::{ReservationId, SiteId};

use super::*;
use crate::fixture::{at, person, reservation, span};

fn entry(from: Option<State>, to: State, by: Option<u64>) -> HistoryEntry {
    HistoryEntry {
        reservation: ReservationId::from_parts(1, &[0; 10]),
        at: at(0),
        from,
        to,
        span: span(60, 120),
        by: by.map(person),
        reason: None,
    }
}

fn step<'a>(kind: EventKind, history: &'a [HistoryEntry]) -> Step<'a> {
    Step {
        kind,
        owner: person(1),
        former_owner: None,
        history,
        approvals: &[],
    }
}

/// The owner is person 1; 2 is somebody else.
#[test]
fn owners_are_told_of_what_they_did_not_do_themselves() {
    use EventKind as Kind;
    use State::{Active, Cancelled, Confirmed, Ending, Failed, Held, PendingApproval, Starting};
    let (me, other, berth) = (Some(1), Some(2), None);
    let waiting = State::Waiting;
    for (kind, from, to, by, told) in [
        (Kind::ReservationCreated, None, Confirmed, me, false),
        (Kind::ReservationCreated, None, Confirmed, other, true),
        (Kind::ReservationCreated, None, PendingApproval, me, false),
        (
            Kind::ReservationCreated,
            Some(waiting),
            Confirmed,
            berth,
            true,
        ),
        (Kind::ReservationOffered, Some(waiting), Held, berth, true),
        (
            Kind::ReservationChanged,
            Some(Confirmed),
            Confirmed,
            me,
            false,
        ),
        (
            Kind::ReservationChanged,
            Some(Confirmed),
            Confirmed,
            other,
            true,
        ),
        (
            Kind::ReservationChanged,
            Some(Confirmed),
            Starting,
            berth,
            false,
        ),
        (Kind::ReservationChanged, Some(Active), Ending, berth, false),
        (Kind::ReservationChanged, Some(Active), Ending, other, true),
        (Kind::ReservationChanged, Some(Active), Ending, me, false),
        (
            Kind::ReservationCancelled,
            Some(Confirmed),
            Cancelled,
            me,
            false,
        ),
        (
            Kind::ReservationCancelled,
            Some(Confirmed),
            Cancelled,
            other,
            true,
        ),
        (
            Kind::ReservationCancelled,
            Some(waiting),
            Cancelled,
            berth,
            true,
        ),
        (
            Kind::ReservationCancelled,
            Some(Held),
            Cancelled,
            berth,
            false,
        ),
        (
            Kind::ReservationCancelled,
            Some(Held),
            Cancelled,
            other,
            true,
        ),
        (
            Kind::ReservationApproved,
            Some(PendingApproval),
            Confirmed,
            other,
            true,
        ),
        (
            Kind::ReservationRejected,
            Some(PendingApproval),
            State::Rejected,
            berth,
            true,
        ),
        (
            Kind::ReservationMoved,
            Some(Confirmed),
            Confirmed,
            berth,
            true,
        ),
        (Kind::ReservationNoShow, Some(Active), Ending, berth, true),
        (
            Kind::ReservationFailed,
            Some(Confirmed),
            Failed,
            berth,
            true,
        ),
        (
            Kind::ReservationStarted,
            Some(Starting),
            Active,
            berth,
            false,
        ),
        (
            Kind::ReservationEnded,
            Some(Ending),
            State::Done,
            berth,
            false,
        ),
        (
            Kind::ReservationCheckedIn,
            Some(Active),
            Active,
            other,
            false,
        ),
    ] {
        let history = [entry(from, to, by)];
        let expected: &[_] = if told {
            &[(person(1), ToldAs::Owner)]
        } else {
            &[]
        };
        let found = owners_told(&step(kind, &history));
        assert_eq!(found, expected, "{kind:?} {from:?} {to:?} {by:?}");
    }
    // These events concern a booking without changing it.
    for kind in [Kind::ReservationTroubled, Kind::ReservationReminder] {
        assert_eq!(owners_told(&step(kind, &[])), [(person(1), ToldAs::Owner)]);
    }
    assert_eq!(owners_told(&step(Kind::ReservationCancelled, &[])), []);
}

#[test]
fn an_offer_that_ran_out_is_told_and_a_hold_that_did_is_not() {
    let kind = EventKind::ReservationCancelled;
    let ran_out = entry(Some(State::Held), State::Cancelled, None);
    let offered = [
        entry(None, State::Waiting, Some(1)),
        entry(Some(State::Waiting), State::Held, None),
        ran_out.clone(),
    ];
    assert_eq!(owners_told(&step(kind, &offered)).len(), 1);
    let held = [entry(None, State::Held, Some(1)), ran_out];
    assert_eq!(owners_told(&step(kind, &held)), []);
}

#[test]
fn both_owners_are_told_of_a_hand_over() {
    let history = [entry(Some(State::Confirmed), State::Confirmed, Some(2))];
    let handed = Step {
        former_owner: Some(person(2)),
        ..step(EventKind::ReservationHandedOver, &history)
    };
    assert_eq!(
        owners_told(&handed),
        [(person(1), ToldAs::Owner), (person(2), ToldAs::FormerOwner)]
    );
}

fn approval(approvers: &[Approver], deputies: &[Approver]) -> AskedApproval {
    AskedApproval {
        from: Scope::Site(Part::default()),
        approvers: approvers.iter().cloned().collect(),
        deputies: deputies.iter().cloned().collect(),
        decide_by: None,
        otherwise: Outcome::Reject,
        decision: None,
    }
}

fn decided(minute: i64, approval: AskedApproval) -> AskedApproval {
    let decision = Some(ApprovalDecision {
        outcome: Outcome::Approve,
        by: "bob".parse().unwrap(),
        at: at(minute),
    });
    AskedApproval {
        decision,
        ..approval
    }
}

#[test]
fn one_approval_of_several_is_no_change_of_the_booking() {
    let later = |minute, entry: HistoryEntry| HistoryEntry {
        at: at(minute),
        ..entry
    };
    let pending = Some(State::PendingApproval);
    let history = [
        entry(None, State::PendingApproval, Some(1)),
        later(5, entry(pending, State::PendingApproval, Some(2))),
    ];
    let approvals = |minute| [decided(minute, approval(&[Approver::SiteAdmins], &[]))];
    let given = approvals(5);
    let of_another_time = approvals(-5);
    let changed = step(EventKind::ReservationChanged, &history);
    for (approvals, told) in [(&given, 0), (&of_another_time, 1)] {
        let step = Step {
            approvals,
            ..changed
        };
        assert_eq!(owners_told(&step).len(), told);
        assert!(!step.asks_approval());
    }
}

#[test]
fn approvers_are_told_when_it_begins_to_wait_for_them() {
    use EventKind as Kind;
    use State::{Confirmed, Held, PendingApproval, Waiting};
    for (kind, from, to, asks) in [
        (Kind::ReservationCreated, None, PendingApproval, true),
        (Kind::ReservationCreated, None, Confirmed, false),
        (
            Kind::ReservationCreated,
            Some(Waiting),
            PendingApproval,
            true,
        ),
        (Kind::ReservationChanged, Some(Held), PendingApproval, true),
        (
            Kind::ReservationChanged,
            Some(PendingApproval),
            PendingApproval,
            false,
        ),
        (
            Kind::ReservationApproved,
            Some(PendingApproval),
            Confirmed,
            false,
        ),
    ] {
        let history = [entry(from, to, Some(1))];
        assert_eq!(step(kind, &history).asks_approval(), asks, "{kind:?}");
    }
}

fn pending(approvals: Vec<AskedApproval>) -> Reservation {
    Reservation {
        id: reservation(1),
        site: SiteId::from_parts(0, &[0; 10]),
        owner: person(1),
        project: None,
        title: "a test".parse().unwrap(),
        privacy: Privacy::Site,
        state: State::PendingApproval,
        state_reason: None,
        span: span(60, 120),
        items: Vec::new(),
        parameters: Default::default(),
        terms: Terms {
            approvals,
            ..Terms::default()
        },
        occurrence: None,
        version: 1,
        created_at: at(0),
        updated_at: at(0),
    }
}

#[test]
fn whoever_has_not_decided_is_asked_and_their_deputies() {
    let group = Approver::Project("vision".parse().unwrap());
    let cy = Approver::Person("cy".parse().unwrap());
    assert!(asked(&pending(vec![])).site_admins, "nobody else is named");
    let found = asked(&pending(vec![
        decided(0, approval(&[Approver::SiteAdmins], &[])),
        approval(&[group], &[cy]),
    ]));
    assert!(!found.site_admins, "they have decided");
    assert_eq!(found.projects, BTreeSet::from(["vision".parse().unwrap()]));
    assert_eq!(found.people, BTreeSet::from(["cy".parse().unwrap()]));
    let over = Reservation {
        state: State::Confirmed,
        ..pending(vec![])
    };
    assert_eq!(asked(&over), Asked::default());
}

/// A booking from minute 60 to 120; the quarter of an hour before its start begins at 45, before its end at 105.
#[test]
fn reminders_come_in_time_or_not_at_all() {
    use Moment::{End, Start};
    let hour = span(60, 120);
    for (of, minute, told) in [
        (Start, 44, false),
        (Start, 45, true),
        (Start, 60, true),
        (Start, 105, true),
        (Start, 106, false),
        (End, 104, false),
        (End, 105, true),
        (End, 119, true),
        (End, 120, false),
    ] {
        assert_eq!(reminds(of, hour, at(minute)), told, "{of:?} {minute}");
    }
    let short = span(60, 75);
    assert!(reminds(Start, short, at(45)));
    assert!(!reminds(End, short, at(60)));
}

#[test]
fn kinds_concern_whom_they_say() {
    use EventKind as Kind;
    assert_eq!(concerns(Kind::ResourceStatus), Concerns::Resource);
    assert_eq!(concerns(Kind::JoinRequested), Concerns::Admins);
    assert_eq!(concerns(Kind::MemberJoined), Concerns::Person);
    for silent in [
        Kind::PolicyChanged,
        Kind::PolicyRemoved,
        Kind::NotificationCreated,
        Kind::NotificationRead,
        Kind::ReservationStarted,
    ] {
        assert_eq!(concerns(silent), Concerns::Nobody, "{silent:?}");
    }
}
