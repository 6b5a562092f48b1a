use super::*;
use uuid::Uuid;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(60 * minute).unwrap()
}

fn stopped() -> Session {
    Session {
        id: SessionId(Uuid::from_u128(1)),
        site: SiteId(Uuid::from_u128(2)),
        owner: PersonId(Uuid::from_u128(3)),
        project: None,
        name: "lab".parse().unwrap(),
        label: "k3v9xwbe8rv5w2n9".to_owned(),
        profile: "small".parse().unwrap(),
        environment: None,
        inside: None,
        state: State::Stopped,
        workload: None,
        said: None,
        shared: BTreeMap::new(),
        since: at(0),
        active_at: at(0),
        kept_until: None,
        warned_at: None,
        lends_since: None,
        memory_kills: 0,
        created_at: at(0),
        version: 1,
    }
}

fn ready() -> Session {
    let started = stopped()
        .start(WorkloadId(Uuid::from_u128(9)), at(1))
        .unwrap();
    started.placed(at(2)).unwrap().answers(at(3)).unwrap()
}

#[test]
fn a_session_goes_from_the_queue_to_its_page_and_back() {
    let ready = ready();
    assert_eq!((ready.state, ready.since), (State::Ready, at(3)));
    let again = WorkloadId(Uuid::from_u128(10));
    assert!(ready.clone().start(again, at(4)).is_err());
    let stopping = ready.stop(None, at(5)).unwrap();
    assert!(stopping.clone().stop(None, at(6)).is_err());
    let over = stopping.over(End::Wanted, at(7));
    assert_eq!(over.state, State::Stopped);
    let again = over.start(again, at(8)).unwrap();
    assert_eq!(again.state, State::Waiting);
    assert_eq!(again.label, stopped().label);
}

#[test]
fn what_is_left_alone_is_idle_an_hour_after_the_last_deed() {
    let hour = SignedDuration::from_hours(1);
    let ready = ready();
    assert_eq!(ready.idle_until(hour), at(63));
    let warned = Session {
        warned_at: Some(at(55)),
        ..ready
    };
    let used = warned.clone().active(at(58));
    assert_eq!((used.warned_at, used.idle_until(hour)), (None, at(118)));
    // What is seen late does not make it older than it is.
    assert_eq!(used.clone().active(at(2)), used);
    let kept = Session {
        kept_until: Some(at(200)),
        ..warned
    };
    assert_eq!(kept.idle_until(hour), at(200));
}

#[test]
fn only_its_owner_and_whom_they_let_in_have_access() {
    let colleague = PersonId(Uuid::from_u128(4));
    let mut session = stopped();
    assert_eq!(session.access(session.owner), Some(Access::Edit));
    assert_eq!(session.access(colleague), None);
    session.shared.insert(colleague, Access::View);
    assert_eq!(session.access(colleague), Some(Access::View));
}
