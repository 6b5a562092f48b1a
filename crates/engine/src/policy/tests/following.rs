//! The consequences of an accepted booking, and the bookings that a changed policy would break.

use berth_model::policy::Outcome;

use super::*;

#[test]
fn buffers_release_and_approval_follow_from_the_rules() {
    let policies = policies([
        (
            json!("ceilings"),
            json!({"approval": {"longer_than": "24h"}}),
        ),
        (
            json!({"site": {"type": "gpu-node"}}),
            json!({
                "buffer_before": "10m", "buffer_after": "15m", "check_in": "30m",
                "approval": {"longer_than": "4h", "approvers": [{"project": "leads"}],
                    "time_out": {"after": "24h", "outcome": "approve"}},
            }),
        ),
    ]);
    let accepted = |start: &str, minutes| judge(&policies, &[], &booking(start, minutes)).unwrap();
    let short = accepted("2026-11-17 10:00", 240);
    assert_eq!(short.approvals, []);
    assert_eq!(
        short.buffer_before,
        Some(booking("2026-11-17 09:50", 10).span)
    );
    assert_eq!(
        short.buffer_after,
        Some(booking("2026-11-17 14:00", 15).span)
    );
    assert_eq!(short.release_at, Some(at("2026-11-17 10:30")));
    assert_eq!(
        accepted("2026-11-17 10:00", 30).release_at,
        None,
        "it is over by then"
    );

    let soon = accepted("2026-11-16 10:00", 241);
    assert_eq!(soon.approvals.len(), 1);
    assert_eq!(
        soon.approvals[0].decide_by,
        at("2026-11-16 10:00"),
        "the start comes first"
    );
    let long = accepted("2026-11-20 10:00", 60 * 25);
    let said: Vec<_> = long
        .approvals
        .iter()
        .map(|each| (each.from.to_string(), each.decide_by, each.otherwise))
        .collect();
    assert_eq!(
        said,
        [
            (
                "global ceilings".to_owned(),
                at("2026-11-20 10:00"),
                Outcome::Reject
            ),
            (
                "policy of type gpu-node".to_owned(),
                at("2026-11-17 08:00"),
                Outcome::Approve
            ),
        ],
        "no narrower policy spares the wider one's question"
    );

    let (yes, no) = (Some(Outcome::Approve), Some(Outcome::Reject));
    for (first, second, now, outcome) in [
        (None, None, "2026-11-16 08:00", None),
        (yes, None, "2026-11-17 07:59", None),
        (yes, None, "2026-11-17 08:00", yes),
        (None, yes, "2026-11-20 09:59", None),
        (None, yes, "2026-11-20 10:00", no),
        (yes, yes, "2026-11-16 08:00", yes),
        (None, no, "2026-11-16 08:00", no),
        (no, yes, "2026-11-20 10:00", no),
    ] {
        let both = long.approvals.iter().zip([first, second]);
        assert_eq!(settle(both, at(now)), outcome, "{first:?} {second:?} {now}");
    }
    assert_eq!(settle([], now()), yes, "nothing to ask");
}

#[test]
fn a_no_show_is_released() {
    let policies = policies([(json!({"site": {}}), json!({"check_in": "30m"}))]);
    let booking = booking("2026-11-17 10:00", 60);
    let rules = booking.rules(&policies);
    let release = at("2026-11-17 10:30");
    let early = Some(at("2026-11-17 09:55"));
    for (checked_in, now, is_no_show) in [
        (None, "2026-11-17 10:29", false),
        (None, "2026-11-17 10:30", true),
        (early, "2026-11-17 10:45", false),
        (Some(release), "2026-11-17 10:45", false),
        (Some(at("2026-11-17 10:31")), "2026-11-17 10:45", true),
    ] {
        assert_eq!(
            rules.is_no_show(booking.span, checked_in, at(now)),
            is_no_show,
            "{checked_in:?} {now}"
        );
    }
    assert!(!Rules::default().is_no_show(booking.span, None, at("2026-11-17 10:59")));
}

#[test]
fn a_change_tells_whom_it_would_break() {
    let standing = [
        standing(1, "2026-11-16 09:00", 300),
        standing(2, "2026-11-17 09:00", 300),
        standing(3, "2026-11-18 09:00", 120),
        standing(4, "2026-11-19 09:00", 60),
        standing(5, "2026-11-20 09:00", 800),
        Booking {
            person: person(2),
            ..standing(6, "2026-11-17 09:00", 300)
        },
        Booking {
            types: [name("board")].into(),
            ..standing(7, "2026-11-21 09:00", 3000)
        },
    ];
    let changed = policies([(
        json!({"site": {"type": "gpu-node"}}),
        json!({"length_max": "12h", "person_hours_per_week": "8h", "notice": "14d"}),
    )]);
    let broken = breaking(&changed, &calendar(), &standing, now());
    let said: Vec<_> = broken
        .iter()
        .map(|(id, breaches)| {
            (
                *id,
                breaches
                    .iter()
                    .map(|breach| breach.rule.as_str())
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            (reservation(2), vec!["person_hours_per_week"]),
            (reservation(5), vec!["length_max", "person_hours_per_week"]),
        ],
        "the first ones stand, and so does what still fits after them"
    );
    assert_eq!(
        breaking(&Policies::default(), &calendar(), &standing, now()),
        []
    );
}
