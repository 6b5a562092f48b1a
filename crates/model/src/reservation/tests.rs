use super::*;

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + hour * 3600).unwrap()
}

/// Runs the controller's question to its end.
fn settle(state: State, span: Span, now: Timestamp) -> State {
    settle_under(state, span, &Terms::default(), now)
}

fn settle_under(mut state: State, span: Span, terms: &Terms, now: Timestamp) -> State {
    while let Some(transition) = state.due(span, terms, now) {
        assert_eq!(transition.from(), state);
        state = transition.to();
    }
    state
}

#[test]
fn time_carries_a_reservation_through_its_life() {
    let span = Span::new(at(1), at(2)).unwrap();
    assert_eq!(settle(State::Confirmed, span, at(0)), State::Confirmed);
    assert_eq!(settle(State::Confirmed, span, at(1)), State::Active);
    assert_eq!(settle(State::Active, span, at(2)), State::Done);
    assert_eq!(settle(State::Starting, span, at(3)), State::Done);
    assert_eq!(settle(State::PendingApproval, span, at(1)), State::Failed);
    assert_eq!(settle(State::Confirmed, span, at(9)), State::Failed);
}

#[test]
fn terms_are_met_or_decide_what_becomes_of_it() {
    let span = Span::new(at(4), at(8)).unwrap();
    let by = |undecided| Terms {
        decide_by: Some(at(2)),
        undecided,
        ..Terms::default()
    };
    let (approve, reject) = (by(Undecided::Approve), by(Undecided::Reject));
    assert_eq!(settle_under(State::Held, span, &reject, at(1)), State::Held);
    assert_eq!(
        settle_under(State::Held, span, &reject, at(2)),
        State::Cancelled
    );
    assert_eq!(settle(State::Held, span, at(4)), State::Cancelled);
    let pending = State::PendingApproval;
    assert_eq!(settle_under(pending, span, &reject, at(1)), pending);
    assert_eq!(settle_under(pending, span, &reject, at(2)), State::Rejected);
    assert_eq!(
        settle_under(pending, span, &approve, at(2)),
        State::Confirmed
    );
    // Found too late to be approved in time: it must not start as if it had been.
    assert_eq!(settle_under(pending, span, &approve, at(5)), State::Failed);

    let absent = Terms {
        check_in: CheckIn::Until(at(5)),
        ..Terms::default()
    };
    let there = Terms {
        check_in: CheckIn::Done(at(5)),
        ..Terms::default()
    };
    assert_eq!(
        settle_under(State::Confirmed, span, &absent, at(4)),
        State::Active
    );
    assert_eq!(
        settle_under(State::Active, span, &absent, at(5)),
        State::Done
    );
    assert_eq!(
        settle_under(State::Active, span, &there, at(6)),
        State::Active
    );
}

#[test]
fn of_several_approvals_the_first_no_counts_and_the_last_yes() {
    let asked = |otherwise, hour: Option<i64>| AskedApproval {
        from: Scope::SITE,
        approvers: [Approver::SiteAdmins].into(),
        deputies: BTreeSet::new(),
        decide_by: hour.map(at),
        otherwise,
        decision: None,
    };
    let wait = |approvals: Vec<AskedApproval>| {
        let mut terms = Terms {
            approvals,
            ..Terms::default()
        };
        terms.wait_for_approvals(at(4));
        terms
    };
    let (yes, no) = (Outcome::Approve, Outcome::Reject);
    let both = wait(vec![
        asked(yes, Some(1)),
        asked(no, Some(3)),
        asked(no, Some(2)),
    ]);
    assert_eq!(
        (both.decide_by, both.undecided),
        (Some(at(2)), Undecided::Reject)
    );
    let kind = wait(vec![asked(yes, Some(1)), asked(yes, Some(4))]);
    assert_eq!(
        (kind.decide_by, kind.undecided),
        (Some(at(4)), Undecided::Approve)
    );
    let span = Span::new(at(4), at(8)).unwrap();
    let pending = State::PendingApproval;
    assert_eq!(settle_under(pending, span, &kind, at(3)), pending);
    assert_eq!(settle_under(pending, span, &kind, at(4)), State::Active);
    assert_eq!(settle_under(pending, span, &kind, at(8)), State::Failed);
    let plain = wait(vec![asked(no, None)]);
    assert_eq!(settle_under(pending, span, &plain, at(4)), State::Failed);
    assert!(plain.asks_leave && !wait(Vec::new()).asks_leave);
}

#[test]
fn cleaning_up_takes_its_time() {
    let span = Span::new(at(4), at(8)).unwrap();
    let cleaning = Terms {
        clean_until: Some(at(9)),
        ..Terms::default()
    };
    assert_eq!(
        settle_under(State::Ending, span, &cleaning, at(8)),
        State::Ending
    );
    assert_eq!(
        settle_under(State::Ending, span, &cleaning, at(9)),
        State::Done
    );
    assert_eq!(State::Ending.next_due(span, &cleaning), Some(at(9)));
}

/// The controller sleeps until `next_due`; if time mattered earlier, it would be late.
#[test]
fn nothing_falls_due_before_it_is_expected() {
    let span = Span::new(at(4), at(8)).unwrap();
    let moments = [None, Some(at(2)), Some(at(4)), Some(at(5)), Some(at(9))];
    for state in State::ALL {
        for decide_by in moments {
            for until in moments {
                let terms = Terms {
                    decide_by,
                    check_in: until.map_or(CheckIn::NotAsked, CheckIn::Until),
                    wait: until.map(|until| Wait {
                        wish: Waited::Named(Vec::new()),
                        until,
                        offer_s: None,
                    }),
                    ..Terms::default()
                };
                // These two exist from the start of the span on only.
                let begun = matches!(state, State::Starting | State::Ending);
                for hour in if begun { 4..12 } else { 0..12 } {
                    let is_due = state.due(span, &terms, at(hour)).is_some();
                    let expected = state
                        .next_due(span, &terms)
                        .is_some_and(|due| due <= at(hour));
                    assert!(!is_due || expected, "{state} {terms:?} at {hour}");
                }
            }
        }
    }
}

#[test]
fn final_states_have_no_way_out_and_every_state_is_reached() {
    for (from, verb, to) in State::ARROWS {
        assert!(!from.is_final(), "{from} is final but can {verb}");
        assert_ne!(from, to);
    }
    for state in State::ALL {
        let born = matches!(
            state,
            State::Waiting | State::Held | State::PendingApproval | State::Confirmed
        );
        assert!(
            born || State::ARROWS.iter().any(|(_, _, to)| to == state),
            "{state} cannot be reached"
        );
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
}

#[test]
fn cancelling_what_is_over_says_so() {
    assert_eq!(
        State::Done.cancel().unwrap_err().to_string(),
        "a reservation that is done cannot be cancelled"
    );
    assert_eq!(State::Active.cancel().unwrap().to(), State::Ending);
    assert_eq!(State::Confirmed.cancel().unwrap().to(), State::Cancelled);
}
