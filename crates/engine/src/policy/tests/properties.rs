//! Properties of all policies and bookings.

use berth_model::policy::{Length, OpeningHours, Part, Step, Who};
use proptest::prelude::*;

use super::*;

fn length(up_to_min: u32) -> impl Strategy<Value = Length> {
    // Round values coincide more often.
    (0..=up_to_min / 15).prop_map(|quarters| Length::from_minutes(quarters * 15))
}

fn step() -> impl Strategy<Value = Step> {
    let minutes = prop::sample::select(vec![1u32, 15, 20, 30, 45, 60, 90]);
    minutes.prop_map(|minutes| Step::try_from(Length::from_minutes(minutes)).unwrap())
}

fn opening() -> impl Strategy<Value = OpeningHours> {
    let part = (0u16..1440, 60u16..1440).prop_filter_map("within a day", |(from, length)| {
        berth_model::policy::Hours::new(from, (from + length).min(1440))
    });
    let day = prop::collection::vec(part, 0..3);
    prop::collection::vec(day, 7).prop_map(|days| OpeningHours::new(days.try_into().unwrap()))
}

fn who() -> impl Strategy<Value = Who> {
    let roles = prop::collection::btree_set(
        prop::sample::select(vec![Role::Member, Role::SiteAdmin]),
        1..3,
    );
    let projects = prop::collection::btree_set(
        prop::sample::select(vec![name("nlp"), name("vision")]),
        1..3,
    );
    (
        prop::option::of(roles),
        prop::option::weighted(0.3, projects),
    )
        .prop_map(|(roles, projects)| Who { roles, projects })
}

prop_compose! {
    fn a_policy()(
        (who_may_book, notice, horizon, length_min, length_max, length_step) in (
            prop::option::weighted(0.1, who()), prop::option::of(length(2 * 1440)),
            prop::option::of(length(20 * 1440)), prop::option::weighted(0.3, length(180)),
            prop::option::weighted(0.3, length(1440)), prop::option::weighted(0.2, step())),
        (start_step, active_bookings, person_hours_per_week, project_hours_per_week) in (
            prop::option::weighted(0.3, step()), prop::option::weighted(0.2, 0u32..5),
            prop::option::weighted(0.3, length(40 * 60)), prop::option::weighted(0.3, length(60 * 60))),
        (opening_hours, closed_on_holidays, gap, buffer_before, check_in) in (
            prop::option::weighted(0.4, opening()), prop::option::of(any::<bool>()),
            prop::option::weighted(0.3, length(240)), prop::option::of(length(60)), prop::option::of(length(60))),
    ) -> Policy {
        Policy {
            who_may_book, notice, horizon, length_min, length_max, length_step, start_step,
            active_bookings, person_hours_per_week, project_hours_per_week, opening_hours,
            closed_on_holidays, gap, buffer_before, check_in, ..Policy::default()
        }
    }
}

prop_compose! {
    fn a_part()(
        kind in prop::option::of(prop::sample::select(vec!["gpu-node", "cpu-node"])),
        role in prop::option::weighted(0.3, Just(Role::Member)),
        project in prop::option::weighted(0.3, Just("nlp")),
    ) -> Part {
        Part { resource_type: kind.map(name), role, project: project.map(name) }
    }
}

prop_compose! {
    fn all_policies()(
        ceilings in a_policy(), defaults in a_policy(),
        site in prop::collection::btree_map(a_part(), a_policy(), 0..3),
        keep in prop::collection::vec(any::<bool>(), 2),
    ) -> Policies {
        let or_nothing = |policy, keep| if keep { policy } else { Policy::default() };
        Policies { ceilings: or_nothing(ceilings, keep[0]), defaults: or_nothing(defaults, keep[1]), site }
    }
}

prop_compose! {
    /// From two weeks before a clock change to three weeks after it, by the minute, mostly round.
    fn a_booking()(
        id in 1u64..1_000, who in 1u64..3, project in prop::option::of(Just("nlp")),
        kinds in prop::collection::btree_set(prop::sample::select(vec!["gpu-node", "cpu-node"]), 1..3),
        on in 1u64..3, start in 0i64..(35 * 96), length in 1i64..80, odd in prop::option::weighted(0.2, 0i64..15),
    ) -> Booking {
        let minute = start * 15 + odd.unwrap_or(0);
        let start = at("2026-10-11 00:00") + SignedDuration::from_mins(minute);
        let end = start + SignedDuration::from_mins(length * 15 + odd.unwrap_or(0));
        Booking {
            person: person(who),
            project: project.map(name),
            types: kinds.into_iter().map(name).collect(),
            resources: vec![resource(on)],
            span: Span::new(start, end).unwrap(),
            ..standing(id, "2026-10-11 00:00", 1)
        }
    }
}

fn before() -> Timestamp {
    at("2026-10-12 09:30")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn tightening_is_idempotent_and_the_order_does_not_matter(
        a in a_policy(), b in a_policy(), c in a_policy(),
    ) {
        let of = |policy: &Policy, kind: &str| {
            let part = Part { resource_type: Some(name(kind)), ..Part::default() };
            Rules::of(policy, &Scope::Site(part))
        };
        let (a, b, c) = (of(&a, "a"), of(&b, "b"), of(&c, "c"));
        prop_assert_eq!(a.clone().and(a.clone()), a.clone());
        prop_assert_eq!(a.clone().and(b.clone()), b.clone().and(a.clone()));
        // The grouping may change which of several equally tight policies is named, but not the values.
        let values = |rules: Rules| rules.list().into_iter().map(|(rule, value, _)| (rule, value)).collect::<Vec<_>>();
        let (left, right) = (a.clone().and(b.clone()).and(c.clone()), a.and(b.and(c)));
        prop_assert_eq!(values(left), values(right));
    }

    /// A booking that the ceilings alone refuse stays refused under any policy of a site. A policy that is defined
    /// without refusal under the ceilings allows nothing that they forbid.
    #[test]
    fn nothing_loosens_a_ceiling(
        policies in all_policies(), others in prop::collection::vec(a_booking(), 0..6), asked in a_booking(),
    ) {
        let alone = Policies { ceilings: policies.ceilings.clone(), ..Policies::default() };
        let asked = Booking { id: None, ..asked };
        if let Err(refused) = judge_at(&alone, &others, &asked, before()) {
            let all = judge_at(&policies, &others, &asked, before());
            let Err(all) = all else { return Err(TestCaseError::fail(format!("accepted: {refused}"))) };
            for breach in &refused.breaches {
                prop_assert!(all.breaches.iter().any(|other| other.rule == breach.rule), "{}", breach);
            }
        }
        for (part, policy) in &policies.site {
            if alone.define(&Scope::Site(part.clone()), policy).is_ok() {
                let said = Rules::of(policy, &Scope::Ceilings);
                let both = said.clone().and(Rules::of(&policies.ceilings, &Scope::Ceilings));
                for (rule, value, _) in said.list() {
                    let kept = both.list().into_iter().any(|(other, its, _)| (other, its) == (rule, value.clone()));
                    prop_assert!(kept, "{} {}", rule, value);
                }
            }
        }
    }

    /// The time that a refusal offers is accepted, and is not in the past.
    #[test]
    fn an_offer_is_accepted(
        policies in all_policies(), others in prop::collection::vec(a_booking(), 0..10), asked in a_booking(),
    ) {
        let asked = Booking { id: None, ..asked };
        if let Err(Refusal { breaches, instead: Some(span) }) = judge_at(&policies, &others, &asked, before()) {
            prop_assert!(!breaches.is_empty());
            prop_assert!(before() <= span.start());
            let taken = Booking { span, ..asked };
            let again = judge_at(&policies, &others, &taken, before());
            prop_assert!(again.is_ok(), "{:?} {}", span, again.unwrap_err());
        }
    }

    /// A start is permitted exactly when a booking there breaks no rule about time. No nearer start on either side is
    /// left out.
    #[test]
    fn permitted_starts_agree_with_the_judge(
        policies in all_policies(), others in prop::collection::vec(a_booking(), 0..10), asked in a_booking(),
        tries in prop::collection::vec(0i64..(30 * 96), 40), stays in any::<bool>(),
    ) {
        let asked = Booking { id: None, stands_from: stays.then(|| asked.span.start()), ..asked };
        let calendar = calendar();
        let ledger = Ledger::beside(&asked, &others, &policies, &calendar);
        let rules = asked.rules(&policies);
        let desk = Desk { rules: &rules, calendar: &calendar, ledger: &ledger, now: before() };
        let window = Span::new(at("2026-10-11 00:00"), at("2026-11-11 00:00")).unwrap();
        let starts = desk.starts(&asked, window);
        let is_accepted = |start: Timestamp| {
            let span = Span::new(start, start + asked.span.duration()).unwrap();
            let findings = desk.explain(&Booking { span, ..asked.clone() });
            let mut breaches = findings.iter().flat_map(|finding| &finding.breaches);
            !breaches.any(|breach| breach.accepts.is_about_time())
        };
        // The ends of the ranges and the moments next to them are where errors would be.
        let micro = SignedDuration::from_micros(1);
        let edges = starts.ranges().iter().take(12).flat_map(|(first, last)| [*first - micro, *first, *last, *last + micro]);
        let tries = tries.iter().map(|quarter| at("2026-10-11 00:00") + SignedDuration::from_mins(quarter * 15));
        let mut permitted = Vec::new();
        for start in edges.chain(tries).chain([asked.span.start()]).filter(|start| window.contains_moment(*start)) {
            let said = starts.contains(start);
            prop_assert_eq!(said, is_accepted(start), "{}", start);
            permitted.extend(said.then_some(start));
        }
        for start in permitted {
            prop_assert_eq!(starts.until(start), Some(start));
            let later = starts.from(start + micro);
            prop_assert!(later.is_none_or(|later| starts.until(later - micro) >= Some(start)));
        }
        for pair in starts.ranges().windows(2) {
            prop_assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0);
        }
    }

    /// The bookings that are not listed comply together. Together with any listed booking they break a rule.
    #[test]
    fn what_a_change_leaves_keeps_the_rules(
        policies in all_policies(), mut standing in prop::collection::vec(a_booking(), 0..12),
    ) {
        standing.sort_by_key(|booking| booking.id);
        standing.dedup_by_key(|booking| booking.id);
        let calendar = calendar();
        let broken = breaking(&policies, &calendar, &standing, before());
        let is_broken = |booking: &Booking| broken.iter().any(|(id, _)| Some(*id) == booking.id);
        let left: Vec<Booking> = standing.iter().filter(|booking| !is_broken(booking)).cloned().collect();
        prop_assert_eq!(breaking(&policies, &calendar, &left, before()), vec![]);
        for booking in standing.iter().filter(|booking| is_broken(booking)) {
            let mut with = left.clone();
            with.push(booking.clone());
            prop_assert!(!breaking(&policies, &calendar, &with, before()).is_empty());
        }
    }
}
