//! Every rule that can refuse a booking, through the application, with the words that people read.

use std::collections::BTreeSet;

use crate::support::{Lab, name, on_both, site};
use berth_app::closures::{NewClosure, NewSource, Offline};
use berth_app::policies::PolicyAt;
use berth_app::settlement::Mode;
use berth_app::{Error, NewProject};
use berth_model::Reference;
use berth_model::closure::ClosureKind;
use berth_model::policy::{Part, Rule};
use serde_json::{Value, json};

on_both!(every_rule_refuses_in_its_own_words);

const HOLIDAYS: [&str; 11] = [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//lab//holidays//EN",
    "BEGIN:VEVENT",
    "UID:patron@lab.example",
    "DTSTAMP:20260101T000000Z",
    "DTSTART;VALUE=DATE:20261117",
    "SUMMARY:Patron's day",
    "END:VEVENT",
    "END:VCALENDAR",
    "",
];

struct Case {
    rule: Rule,
    policy: Value,
    /// What stands already: a resource, and from when to when.
    standing: &'static [(&'static str, i64, i64)],
    wish: (i64, i64),
    says: &'static str,
}

/// Ada, a member, in Rome on Monday 16 November 2026 at 09:00, wishes for `gpu-02` for the project `vision`. Hours count from now.
fn cases() -> Vec<Case> {
    let case = |rule, policy, standing, wish, says| Case {
        rule,
        policy,
        standing,
        wish,
        says,
    };
    vec![
        case(
            Rule::WhoMayBook,
            json!({"who_may_book": {"roles": ["site_admin"]}}),
            &[],
            (1, 3),
            "site admins may book (policy of the site); this one is by a member for project vision; \
             a booking by one of those is accepted",
        ),
        case(
            Rule::Notice,
            json!({"notice": "2h"}),
            &[],
            (1, 3),
            "bookings are made at least 2 h before they start (policy of the site); this one starts in 1 h; \
             the nearest accepted start is Mon 2026-11-16 11:00 CET",
        ),
        case(
            Rule::Horizon,
            json!({"horizon": "24h"}),
            &[],
            (48, 50),
            "bookings start at most 24 h ahead (policy of the site); this one starts in 48 h; \
             the nearest accepted start is Tue 2026-11-17 09:00 CET",
        ),
        case(
            Rule::LengthMin,
            json!({"length_min": "4h"}),
            &[],
            (1, 3),
            "bookings last at least 4 h (policy of the site); this one lasts 2 h; 4 h or more is accepted",
        ),
        case(
            Rule::LengthMax,
            json!({"length_max": "90m"}),
            &[],
            (1, 3),
            "bookings last at most 1 h 30 min (policy of the site); this one lasts 2 h; \
             up to 1 h 30 min is accepted",
        ),
        case(
            Rule::LengthStep,
            json!({"length_step": "90m"}),
            &[],
            (1, 3),
            "bookings last a multiple of 1 h 30 min (policy of the site); this one lasts 2 h; \
             1 h 30 min or 3 h is accepted",
        ),
        case(
            Rule::StartStep,
            json!({"start_step": "4h"}),
            &[],
            (1, 3),
            "bookings start a multiple of 4 h after midnight (policy of the site); \
             this one starts Mon 2026-11-16 10:00 CET; \
             the nearest accepted start is Mon 2026-11-16 12:00 CET",
        ),
        case(
            Rule::ActiveBookings,
            json!({"active_bookings": 1}),
            &[("rack-b", 5, 7)],
            (1, 3),
            "a person has at most 1 booking(s) that are not over (policy of the site); 1 stand(s) already; \
             another is accepted once one of those is over",
        ),
        case(
            Rule::PersonHoursPerWeek,
            json!({"person_hours_per_week": "3h"}),
            &[("rack-b", 5, 7)],
            (1, 3),
            "a person books at most 3 h a week (policy of the site); \
             the week of 2026-11-16 has 2 h already and this one adds 2 h; \
             up to 1 h in that week is accepted, and so is the start Sun 2026-11-22 23:00 CET",
        ),
        case(
            Rule::ProjectHoursPerWeek,
            json!({"project_hours_per_week": "3h"}),
            &[("rack-b", 5, 7)],
            (1, 3),
            "a project books at most 3 h a week (policy of the site); \
             the week of 2026-11-16 has 2 h already and this one adds 2 h; \
             up to 1 h in that week is accepted, and so is the start Sun 2026-11-22 23:00 CET",
        ),
        case(
            Rule::OpeningHours,
            json!({"opening_hours": {"mon": ["12:00-18:00"]}}),
            &[],
            (1, 3),
            "bookings lie within opening hours, Mon 12:00-18:00 (policy of the site); \
             it is closed from Mon 2026-11-09 18:00 CET to Mon 2026-11-16 12:00 CET; \
             the nearest accepted start is Mon 2026-11-16 12:00 CET",
        ),
        case(
            Rule::ClosedOnHolidays,
            json!({"closed_on_holidays": true}),
            &[],
            (25, 27),
            "holidays are closed (policy of the site); \
             Patron's day is from Tue 2026-11-17 00:00 CET to Wed 2026-11-18 00:00 CET; \
             the nearest accepted start is Mon 2026-11-16 22:00 CET",
        ),
        case(
            Rule::Gap,
            json!({"gap": "2h"}),
            &[("gpu-02", 5, 6)],
            (3, 4),
            "between a person's bookings of one resource lie at least 2 h (policy of the site); \
             this one is 1 h from another; the nearest accepted start is Mon 2026-11-16 11:00 CET",
        ),
    ]
}

async fn every_rule_refuses_in_its_own_words(lab: Lab) {
    let new = NewProject {
        name: name("vision"),
        title: "Vision".parse().expect("text"),
    };
    lab.app
        .create_project(&lab.admin, &site(), new)
        .await
        .expect("a project");
    let (vision, ada) = (Reference::Name(name("vision")), lab.ada.person.id.into());
    lab.app
        .add_project_member(&lab.admin, &site(), &vision, &ada)
        .await
        .expect("ada is in it");
    let holidays = NewClosure {
        name: name("holidays"),
        kind: ClosureKind::Holidays,
        from: NewSource::File(HOLIDAYS.join("\r\n")),
    };
    lab.app
        .add_closure(&lab.admin, &site(), &holidays, &Offline)
        .await
        .expect("a calendar");
    let at = PolicyAt::Site(site(), Part::default());
    let wish = |resource: &str, from, to| {
        let mut wish = lab.wish(&[resource], from, to);
        wish.project = Some(vision.clone());
        wish
    };
    let mut seen = BTreeSet::new();
    for case in cases() {
        seen.insert(case.rule);
        let mut standing = Vec::new();
        for (resource, from, to) in case.standing {
            let booked = lab
                .app
                .book(&lab.ada, &site(), &wish(resource, *from, *to))
                .await;
            standing.push(booked.expect("nothing is asked yet").value.reservation.id);
        }
        let policy = serde_json::from_value(case.policy).expect("a policy");
        lab.app
            .set_policy(&lab.admin, &at, Some(&policy), None, None, Mode::Apply)
            .await
            .expect("it is set");
        let (from, to) = case.wish;
        let asked = wish("gpu-02", from, to);
        for preview in [true, false] {
            let refused = match preview {
                true => lab
                    .app
                    .preview_booking(&lab.ada, &site(), &asked)
                    .await
                    .expect("an answer")
                    .map(|_| ()),
                false => lab.app.book(&lab.ada, &site(), &asked).await.map(|_| ()),
            };
            match refused {
                Err(Error::Policy(refusal)) => assert_eq!(refusal.to_string(), case.says),
                other => panic!("{}: {other:?}", case.rule),
            }
        }
        lab.app
            .set_policy(&lab.admin, &at, None, None, None, Mode::Apply)
            .await
            .expect("it is taken away");
        for id in standing {
            lab.app
                .cancel_reservation(&lab.ada, &site(), id, None, None)
                .await
                .expect("it is given up");
        }
    }
    // These ask for something to follow, and refuse nothing.
    let others = [
        Rule::BufferBefore,
        Rule::BufferAfter,
        Rule::Approval,
        Rule::CheckIn,
    ];
    seen.extend(others);
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), Rule::ALL);
}
