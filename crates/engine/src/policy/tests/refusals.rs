//! Every rule: what it accepts, what it refuses, and its sentence.

use super::*;

/// A policy of the type, the existing bookings, the request, and the expected message; empty if it is accepted.
type Case<'a> = (Json, Vec<Booking>, Booking, &'a str);

fn check(cases: Vec<Case<'_>>) {
    for (says, others, booking, said) in cases {
        let policies = policies([(json!({"site": {"type": "gpu-node"}}), says.clone())]);
        let judged = judge(&policies, &others, &booking);
        let got = judged
            .as_ref()
            .err()
            .map(Refusal::to_string)
            .unwrap_or_default();
        assert_eq!(got, said, "{says}");
        if let Err(Refusal {
            breaches,
            instead: Some(span),
        }) = judged
        {
            let again = Booking { span, ..booking };
            assert!(
                judge(&policies, &others, &again).is_ok(),
                "{span:?} for {breaches:?}"
            );
        }
    }
}

#[test]
fn who_may_book() {
    let who = || json!({"who_may_book": {"roles": ["member"], "projects": ["nlp", "vision"]}});
    let plain = || booking("2026-11-17 10:00", 60);
    let admin = Booking {
        role: Role::SiteAdmin,
        ..for_project(plain(), "nlp")
    };
    check(vec![
        (who(), vec![], for_project(plain(), "vision"), ""),
        (
            who(),
            vec![],
            plain(),
            "members who book for project nlp or vision may book (policy of type gpu-node); this one is by a member for no project; a booking by one of those is accepted",
        ),
        (
            who(),
            vec![],
            admin,
            "members who book for project nlp or vision may book (policy of type gpu-node); this one is by a site admin for project nlp; a booking by one of those is accepted",
        ),
        (
            json!({"who_may_book": {"roles": []}}),
            vec![],
            plain(),
            "nobody may book (policy of type gpu-node); this one is by a member for no project; no booking is accepted",
        ),
        (json!({"who_may_book": {}}), vec![], plain(), ""),
    ]);
}

#[test]
fn notice_and_horizon() {
    let notice = || json!({"notice": "2h"});
    let horizon = || json!({"horizon": "14d"});
    let begun = Booking {
        stands_from: Some(at("2026-11-16 07:00")),
        ..booking("2026-11-16 07:00", 600)
    };
    let moved = Booking {
        stands_from: Some(at("2026-11-16 07:00")),
        ..booking("2026-11-16 09:30", 600)
    };
    check(vec![
        (notice(), vec![], booking("2026-11-16 10:00", 60), ""),
        (
            notice(),
            vec![],
            booking("2026-11-16 09:59", 60),
            "bookings are made at least 2 h before they start (policy of type gpu-node); this one starts in 1 h 59 min; the nearest accepted start is Mon 2026-11-16 10:00 CET",
        ),
        (
            notice(),
            vec![],
            booking("2026-11-16 07:30", 60),
            "bookings are made at least 2 h before they start (policy of type gpu-node); this one started 30 min ago; the nearest accepted start is Mon 2026-11-16 10:00 CET",
        ),
        (notice(), vec![], begun, ""),
        (
            notice(),
            vec![],
            moved,
            "bookings are made at least 2 h before they start (policy of type gpu-node); this one starts in 1 h 30 min; the nearest accepted start is Mon 2026-11-16 10:00 CET",
        ),
        (horizon(), vec![], booking("2026-11-30 08:00", 60), ""),
        (
            horizon(),
            vec![],
            booking("2027-11-30 08:01", 60),
            "bookings start at most 14 d ahead (policy of type gpu-node); this one starts in 379 d 1 min; the nearest accepted start is Mon 2026-11-30 08:00 CET",
        ),
        (
            json!({"notice": "3d", "horizon": "1d"}),
            vec![],
            booking("2026-11-18 08:00", 60),
            "bookings are made at least 3 d before they start (policy of type gpu-node); this one starts in 48 h; no start within 62 d of it is accepted. bookings start at most 24 h ahead (policy of type gpu-node); this one starts in 48 h; no start within 62 d of it is accepted",
        ),
    ]);
}

#[test]
fn lengths() {
    let lengths = || json!({"length_min": "1h", "length_max": "12h", "length_step": "30m"});
    let lasting = |minutes| booking("2026-11-17 10:00", minutes);
    let odd = Booking {
        span: Span::new(at("2026-11-17 10:00"), at("2026-11-17 11:00:20")).unwrap(),
        ..lasting(1)
    };
    check(vec![
        (lengths(), vec![], lasting(60), ""),
        (lengths(), vec![], lasting(720), ""),
        (
            lengths(),
            vec![],
            lasting(1200),
            "bookings last at most 12 h (policy of type gpu-node); this one lasts 20 h; up to 12 h is accepted",
        ),
        (
            lengths(),
            vec![],
            lasting(30),
            "bookings last at least 1 h (policy of type gpu-node); this one lasts 30 min; 1 h or more is accepted",
        ),
        (
            lengths(),
            vec![],
            lasting(100),
            "bookings last a multiple of 30 min (policy of type gpu-node); this one lasts 1 h 40 min; 1 h 30 min or 2 h is accepted",
        ),
        (
            lengths(),
            vec![],
            odd,
            "bookings last a multiple of 30 min (policy of type gpu-node); this one lasts 1 h 20 s; 1 h or 1 h 30 min is accepted",
        ),
        (
            lengths(),
            vec![],
            lasting(59),
            "bookings last at least 1 h (policy of type gpu-node); this one lasts 59 min; 1 h or more is accepted. bookings last a multiple of 30 min (policy of type gpu-node); this one lasts 59 min; 1 h is accepted",
        ),
    ]);
}

#[test]
fn starts_in_step() {
    let step = || json!({"start_step": "30m"});
    check(vec![
        (step(), vec![], booking("2026-11-17 10:30", 17), ""),
        (
            step(),
            vec![],
            booking("2026-11-17 10:10", 60),
            "bookings start a multiple of 30 min after midnight (policy of type gpu-node); this one starts Tue 2026-11-17 10:10 CET; the nearest accepted start is Tue 2026-11-17 10:00 CET",
        ),
        (
            json!({"start_step": "7h"}),
            vec![],
            booking("2026-11-17 23:00", 60),
            "bookings start a multiple of 7 h after midnight (policy of type gpu-node); this one starts Tue 2026-11-17 23:00 CET; the nearest accepted start is Wed 2026-11-18 00:00 CET",
        ),
        (
            json!({"start_step": "30m", "notice": "2h"}),
            vec![],
            booking("2026-11-16 10:10", 60),
            "bookings start a multiple of 30 min after midnight (policy of type gpu-node); this one starts Mon 2026-11-16 10:10 CET; the nearest accepted start is Mon 2026-11-16 10:00 CET",
        ),
    ]);
}

#[test]
fn active_bookings() {
    let two = || json!({"active_bookings": 2});
    let asked = || booking("2026-11-17 10:00", 60);
    let over = || standing(1, "2026-11-15 10:00", 60);
    let running = || standing(2, "2026-11-16 07:00", 120);
    let next = || standing(3, "2026-11-19 10:00", 60);
    let of_another = Booking {
        person: person(2),
        ..next()
    };
    let of_another_type = Booking {
        types: [name("cpu-node")].into(),
        ..next()
    };
    let itself = Booking {
        id: next().id,
        ..asked()
    };
    check(vec![
        (two(), vec![over(), running()], asked(), ""),
        (
            two(),
            vec![over(), running(), of_another, of_another_type],
            asked(),
            "",
        ),
        (two(), vec![running(), next()], itself, ""),
        (
            two(),
            vec![running(), next()],
            asked(),
            "a person has at most 2 booking(s) that are not over (policy of type gpu-node); 2 stand(s) already; another is accepted once one of those is over",
        ),
        (
            json!({"active_bookings": 0}),
            vec![],
            asked(),
            "a person has at most 0 booking(s) that are not over (policy of type gpu-node); 0 stand(s) already; no booking is accepted",
        ),
    ]);
}

#[test]
fn hours_per_week() {
    let ten = || json!({"person_hours_per_week": "10h"});
    let six = || standing(1, "2026-11-17 10:00", 360);
    // From Sunday 22:00 to Monday 04:00.
    let across = || standing(2, "2026-11-22 22:00", 360);
    let project = || json!({"project_hours_per_week": "10h"});
    let colleague = || {
        for_project(
            Booking {
                person: person(2),
                ..six()
            },
            "nlp",
        )
    };
    check(vec![
        (ten(), vec![six()], booking("2026-11-18 10:00", 240), ""),
        (
            ten(),
            vec![six()],
            booking("2026-11-18 10:00", 300),
            "a person books at most 10 h a week (policy of type gpu-node); the week of 2026-11-16 has 6 h already and this one adds 5 h; up to 4 h in that week is accepted, and so is the start Sun 2026-11-22 20:00 CET",
        ),
        (
            ten(),
            vec![six(), across()],
            booking("2026-11-18 10:00", 120),
            "",
        ),
        (
            ten(),
            vec![six(), across()],
            booking("2026-11-18 10:00", 180),
            "a person books at most 10 h a week (policy of type gpu-node); the week of 2026-11-16 has 8 h already and this one adds 3 h; up to 2 h in that week is accepted, and so is the start Sun 2026-11-22 22:00 CET",
        ),
        (
            ten(),
            vec![six()],
            booking("2026-11-22 18:00", 1440),
            "a person books at most 10 h a week (policy of type gpu-node); the week of 2026-11-16 has 6 h already and this one adds 6 h; up to 4 h in that week is accepted. a person books at most 10 h a week (policy of type gpu-node); the week of 2026-11-23 has 0 h already and this one adds 18 h; up to 10 h in that week is accepted",
        ),
        (
            project(),
            vec![colleague()],
            booking("2026-11-18 10:00", 600),
            "",
        ),
        (
            project(),
            vec![six()],
            for_project(booking("2026-11-18 10:00", 600), "nlp"),
            "",
        ),
        (
            project(),
            vec![colleague()],
            for_project(booking("2026-11-18 10:00", 600), "vision"),
            "",
        ),
        (
            project(),
            vec![colleague()],
            for_project(booking("2026-11-18 10:00", 600), "nlp"),
            "a project books at most 10 h a week (policy of type gpu-node); the week of 2026-11-16 has 6 h already and this one adds 10 h; up to 4 h in that week is accepted, and so is the start Sun 2026-11-22 20:00 CET",
        ),
    ]);
}

#[test]
fn opening_hours() {
    let day = |hours: Json| json!({"opening_hours": {"mon": hours, "tue": hours, "fri": hours}});
    let open = || day(json!(["08:00-12:00", "13:00-18:00"]));
    let night = || json!({"opening_hours": {"mon": ["20:00-24:00"], "tue": ["00:00-06:00"]}});
    check(vec![
        (open(), vec![], booking("2026-11-17 08:00", 240), ""),
        (
            open(),
            vec![],
            booking("2026-11-17 17:00", 90),
            "bookings lie within opening hours, Mon-Tue 08:00-12:00 and 13:00-18:00, Fri 08:00-12:00 and 13:00-18:00 (policy of type gpu-node); it is closed from Tue 2026-11-17 18:00 CET to Fri 2026-11-20 08:00 CET; the nearest accepted start is Tue 2026-11-17 16:30 CET",
        ),
        (
            open(),
            vec![],
            booking("2026-11-17 12:10", 30),
            "bookings lie within opening hours, Mon-Tue 08:00-12:00 and 13:00-18:00, Fri 08:00-12:00 and 13:00-18:00 (policy of type gpu-node); it is closed from Tue 2026-11-17 12:00 CET to Tue 2026-11-17 13:00 CET; the nearest accepted start is Tue 2026-11-17 11:30 CET",
        ),
        (
            open(),
            vec![],
            booking("2026-11-17 08:00", 600),
            "bookings lie within opening hours, Mon-Tue 08:00-12:00 and 13:00-18:00, Fri 08:00-12:00 and 13:00-18:00 (policy of type gpu-node); it is closed from Tue 2026-11-17 12:00 CET to Tue 2026-11-17 13:00 CET; the nearest accepted start is Tue 2026-11-17 13:00 CET",
        ),
        (night(), vec![], booking("2026-11-16 20:00", 600), ""),
        (
            json!({"opening_hours": {}}),
            vec![],
            booking("2026-11-17 08:00", 60),
            "bookings lie within opening hours, never (policy of type gpu-node); it is closed from Tue 2026-11-03 08:00 CET to Tue 2026-12-01 08:00 CET; no start within 62 d of it is accepted",
        ),
    ]);
}

#[test]
fn holidays() {
    let closed = || json!({"closed_on_holidays": true});
    check(vec![
        (
            json!({"closed_on_holidays": false}),
            vec![],
            booking("2026-12-08 10:00", 60),
            "",
        ),
        (closed(), vec![], booking("2026-12-07 22:00", 120), ""),
        (
            closed(),
            vec![],
            booking("2026-12-07 23:00", 120),
            "holidays are closed (policy of type gpu-node); Immaculate Conception is from Tue 2026-12-08 00:00 CET to Wed 2026-12-09 00:00 CET; the nearest accepted start is Mon 2026-12-07 22:00 CET",
        ),
        (
            closed(),
            vec![],
            booking("2026-11-20 13:30", 10),
            "holidays are closed (policy of type gpu-node); Power works is from Fri 2026-11-20 13:00 CET to Fri 2026-11-20 14:00 CET; the nearest accepted start is Fri 2026-11-20 14:00 CET",
        ),
    ]);
}

#[test]
fn gaps() {
    let hour = || json!({"gap": "1h"});
    let other = || standing(1, "2026-11-17 10:00", 60);
    let elsewhere = Booking {
        resources: vec![resource(2)],
        ..other()
    };
    let of_another = Booking {
        person: person(2),
        ..other()
    };
    check(vec![
        (
            json!({"gap": "0m"}),
            vec![other()],
            booking("2026-11-17 10:30", 60),
            "",
        ),
        (hour(), vec![other()], booking("2026-11-17 12:00", 60), ""),
        (hour(), vec![other()], booking("2026-11-17 08:00", 60), ""),
        (
            hour(),
            vec![elsewhere, of_another],
            booking("2026-11-17 11:00", 60),
            "",
        ),
        (
            hour(),
            vec![other()],
            booking("2026-11-17 11:40", 60),
            "between a person's bookings of one resource lie at least 1 h (policy of type gpu-node); this one is 40 min from another; the nearest accepted start is Tue 2026-11-17 12:00 CET",
        ),
        (
            hour(),
            vec![other()],
            booking("2026-11-17 09:00", 60),
            "between a person's bookings of one resource lie at least 1 h (policy of type gpu-node); this one touches or meets another; the nearest accepted start is Tue 2026-11-17 08:00 CET",
        ),
    ]);
}

#[test]
fn all_that_is_wrong_is_said_and_one_time_mends_it_all() {
    let policies = policies([
        (json!("ceilings"), json!({"length_max": "24h"})),
        (
            json!({"site": {}}),
            json!({"opening_hours": {"tue": ["08:00-18:00"]}}),
        ),
        (
            json!({"site": {"type": "gpu-node"}}),
            json!({"length_max": "4h", "start_step": "1h"}),
        ),
    ]);
    let asked = booking("2026-11-18 10:10", 1800);
    let refusal = judge(&policies, &[], &asked).unwrap_err();
    let rules: Vec<&str> = refusal
        .breaches
        .iter()
        .map(|breach| breach.rule.as_str())
        .collect();
    assert_eq!(rules, ["length_max", "start_step", "opening_hours"]);
    let instead = refusal.instead.unwrap();
    assert_eq!(instead, booking("2026-11-17 14:00", 240).span);
    assert!(
        judge(
            &policies,
            &[],
            &Booking {
                span: instead,
                ..asked
            }
        )
        .is_ok()
    );
}

#[test]
fn a_running_booking_that_grows_too_long_is_offered_what_it_can_have_from_the_start_it_has() {
    let says = json!({"notice": "2h", "length_max": "8h"});
    let policies = policies([(json!({"site": {}}), says)]);
    let start = "2026-11-16 07:00";
    let longer = Booking {
        stands_from: Some(at(start)),
        ..booking(start, 600)
    };
    let refusal = judge(&policies, &[], &longer).unwrap_err();
    assert_eq!(refusal.breaches.len(), 1);
    assert_eq!(refusal.instead, Some(booking(start, 480).span));
    let new = judge(&policies, &[], &booking(start, 600)).unwrap_err();
    assert_eq!(new.instead, Some(booking("2026-11-16 10:00", 480).span));
}
