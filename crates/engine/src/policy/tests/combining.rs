//! Which rule applies where, and which policies may be set.

use berth_model::policy::Rule;

use super::*;

fn rules(policies: &Policies, types: &[&str], project: Option<&str>) -> Rules {
    let types: Vec<Name> = types.iter().map(|text| name(text)).collect();
    policies.rules(&types, Role::Member, project.map(name).as_ref())
}

fn length_max(rules: &Rules) -> Option<(String, String)> {
    let limit = rules.length_max.as_ref()?;
    let from: Vec<String> = limit.from.iter().map(Scope::to_string).collect();
    Some((limit.value.to_string(), from.join(", ")))
}

#[test]
fn defaults_hold_where_nobody_speaks_and_ceilings_always() {
    let says = |length: &str| json!({"length_max": length});
    let policies = policies([
        (json!("ceilings"), says("48h")),
        (json!("defaults"), says("8h")),
        (json!({"site": {"type": "gpu-node"}}), says("24h")),
        (
            json!({"site": {"type": "gpu-node", "project": "nlp"}}),
            says("12h"),
        ),
        (json!({"site": {"role": "site_admin"}}), says("1h")),
        (json!({"site": {"type": "board"}}), says("72h")),
    ]);
    for (types, project, value, from) in [
        (&["cpu-node"][..], None, "8 h", "global defaults"),
        (&["gpu-node"], None, "24 h", "policy of type gpu-node"),
        (
            &["gpu-node"],
            Some("nlp"),
            "12 h",
            "policy of type gpu-node and project nlp",
        ),
        (
            &["gpu-node"],
            Some("vision"),
            "24 h",
            "policy of type gpu-node",
        ),
        (&["gpu-node", "cpu-node"], None, "8 h", "global defaults"),
        (&["board"], None, "48 h", "global ceilings"),
        (&[], None, "8 h", "global defaults"),
    ] {
        let got = length_max(&rules(&policies, types, project));
        assert_eq!(
            got,
            Some((value.into(), from.into())),
            "{types:?} {project:?}"
        );
    }
}

#[test]
fn what_only_two_policies_together_say_is_said_of_both() {
    let policies = policies([
        (
            json!({"site": {"type": "gpu-node"}}),
            json!({"length_step": "45m", "gap": "1h"}),
        ),
        (
            json!({"site": {"project": "nlp"}}),
            json!({"length_step": "30m", "gap": "1h"}),
        ),
    ]);
    let rules = rules(&policies, &["gpu-node"], Some("nlp"));
    let step = rules.length_step.unwrap();
    assert_eq!(step.value.to_string(), "1 h 30 min");
    assert_eq!(step.from.len(), 2);
    assert_eq!(
        rules.gap.unwrap().from,
        [scope(json!({"site": {"project": "nlp"}}))]
    );
}

#[test]
fn a_limit_counts_what_its_policy_is_about() {
    let policies = policies([
        (json!("defaults"), json!({"person_hours_per_week": "5h"})),
        (
            json!({"site": {"type": "gpu-node"}}),
            json!({"person_hours_per_week": "10h"}),
        ),
        (
            json!({"site": {"type": "gpu-node", "project": "nlp"}}),
            json!({"person_hours_per_week": "2h"}),
        ),
    ]);
    let nine = standing(1, "2026-11-17 10:00", 540);
    let on = |kind: &str, minutes| Booking {
        types: [name(kind)].into(),
        ..booking("2026-11-18 10:00", minutes)
    };
    let judged = |booking: Booking| judge(&policies, std::slice::from_ref(&nine), &booking);
    assert!(judged(on("gpu-node", 60)).is_ok());
    assert!(judged(on("gpu-node", 61)).is_err());
    assert!(
        judged(on("cpu-node", 300)).is_ok(),
        "the default counts only what it holds for"
    );
    assert!(judged(on("cpu-node", 301)).is_err());
    assert!(judged(for_project(on("gpu-node", 60), "nlp")).is_ok());
    let both = judged(for_project(on("gpu-node", 121), "nlp")).unwrap_err();
    assert_eq!(both.breaches.len(), 2, "the type's limit and the project's");
}

#[test]
fn a_looser_value_is_refused_with_what_would_be_accepted() {
    let approval = |longer_than: &str| json!({"approval": {"longer_than": longer_than}});
    for (outer, inner, said) in [
        (
            json!({"length_max": "24h"}),
            json!({"length_max": "48h"}),
            "length_max: 48 h is looser than 24 h (global ceilings); 24 h or less is accepted",
        ),
        (
            json!({"length_max": "24h"}),
            json!({"length_max": "12h"}),
            "",
        ),
        (json!({"length_max": "24h"}), json!({}), ""),
        (
            json!({"notice": "2h"}),
            json!({"notice": "1h"}),
            "notice: 1 h is looser than 2 h (global ceilings); 2 h or more is accepted",
        ),
        (
            json!({"horizon": "14d"}),
            json!({"horizon": "30d"}),
            "horizon: 30 d is looser than 14 d (global ceilings); 14 d or less is accepted",
        ),
        (
            json!({"length_min": "1h"}),
            json!({"length_min": "30m"}),
            "length_min: 30 min is looser than 1 h (global ceilings); 1 h or more is accepted",
        ),
        (
            json!({"length_step": "30m"}),
            json!({"length_step": "45m"}),
            "length_step: 45 min is looser than 30 min (global ceilings); multiples of 30 min are accepted",
        ),
        (
            json!({"start_step": "30m"}),
            json!({"start_step": "1h"}),
            "",
        ),
        (
            json!({"active_bookings": 3}),
            json!({"active_bookings": 4}),
            "active_bookings: 4 is looser than 3 (global ceilings); 3 or less is accepted",
        ),
        (
            json!({"person_hours_per_week": "96h"}),
            json!({"person_hours_per_week": "5d"}),
            "person_hours_per_week: 120 h is looser than 96 h (global ceilings); 96 h or less is accepted",
        ),
        (
            json!({"project_hours_per_week": "96h"}),
            json!({"project_hours_per_week": "97h"}),
            "project_hours_per_week: 97 h is looser than 96 h (global ceilings); 96 h or less is accepted",
        ),
        (
            json!({"opening_hours": {"mon": ["08:00-18:00"]}}),
            json!({"opening_hours": {"mon": ["09:00-19:00"]}}),
            "opening_hours: Mon 09:00-19:00 is looser than Mon 08:00-18:00 (global ceilings); Mon 08:00-18:00, or parts of it, are accepted",
        ),
        (
            json!({"opening_hours": {"mon": ["08:00-18:00"]}}),
            json!({"opening_hours": {"mon": ["09:00-10:00"]}}),
            "",
        ),
        (
            json!({"closed_on_holidays": true}),
            json!({"closed_on_holidays": false}),
            "closed_on_holidays: no is looser than yes (global ceilings); yes is accepted",
        ),
        (
            json!({"who_may_book": {"roles": ["site_admin"]}}),
            json!({"who_may_book": {"projects": ["nlp"]}}),
            "who_may_book: whoever books for project nlp is looser than site admins (global ceilings); site admins, or fewer, are accepted",
        ),
        (
            json!({"gap": "1h"}),
            json!({"gap": "30m"}),
            "gap: 30 min is looser than 1 h (global ceilings); 1 h or more is accepted",
        ),
        (
            json!({"buffer_before": "1h"}),
            json!({"buffer_before": "0m"}),
            "buffer_before: 0 min is looser than 1 h (global ceilings); 1 h or more is accepted",
        ),
        (
            json!({"buffer_after": "1h"}),
            json!({"buffer_after": "0m"}),
            "buffer_after: 0 min is looser than 1 h (global ceilings); 1 h or more is accepted",
        ),
        (
            json!({"check_in": "15m"}),
            json!({"check_in": "1h"}),
            "check_in: 1 h is looser than 15 min (global ceilings); 15 min or less is accepted",
        ),
        (
            approval("4h"),
            approval("8h"),
            "approval: bookings longer than 8 h need approval by the site's admins is looser than bookings longer than 4 h need approval by the site's admins (global ceilings); the same or a shorter length is accepted",
        ),
        (
            approval("4h"),
            json!({"approval": {"approvers": [{"person": "ada"}]}}),
            "",
        ),
        (
            json!({"length_max": "4h"}),
            json!({"length_min": "8h"}),
            "length_min: at least 8 h and, with what binds this policy, at most 4 h leaves no length to book; 4 h or less is accepted",
        ),
    ] {
        let ceilings = policies([(json!("ceilings"), outer.clone())]);
        for within in [
            json!("defaults"),
            json!({"site": {}}),
            json!({"site": {"type": "a"}}),
        ] {
            let defined = ceilings.define(&scope(within), &policy(inner.clone()));
            let got = defined
                .err()
                .map(|refused| refused.to_string())
                .unwrap_or_default();
            assert_eq!(got, said, "{inner} within {outer}");
        }
    }
}

#[test]
fn narrower_parts_tighten_and_a_tightened_site_overrules_them() {
    let says = |length: &str| json!({"length_max": length});
    let of_type = || json!({"site": {"type": "gpu-node"}});
    let site = policies([
        (json!("defaults"), says("1h")),
        (json!({"site": {}}), says("24h")),
        (of_type(), says("12h")),
        (json!({"site": {"type": "board"}}), says("4h")),
    ]);
    let define = |of: Json, length| site.define(&scope(of), &policy(says(length)));
    assert_eq!(define(of_type(), "24h"), Ok(vec![]), "defaults bind nobody");
    let refused = define(of_type(), "25h").unwrap_err().to_string();
    assert_eq!(
        refused,
        "length_max: 25 h is looser than 24 h (policy of the site); 24 h or less is accepted"
    );
    let narrow = json!({"site": {"type": "gpu-node", "role": "member"}});
    assert!(
        define(narrow.clone(), "13h").is_err(),
        "nor may the type's be loosened"
    );
    assert!(
        define(json!({"site": {"role": "member"}}), "13h").is_ok(),
        "which is not within the type's"
    );

    let overruled = define(json!({"site": {}}), "8h").unwrap();
    assert_eq!(overruled.len(), 1);
    assert_eq!(
        (overruled[0].scope.clone(), overruled[0].rule),
        (scope(of_type()), Rule::LengthMax)
    );
    let mut tightened = site.clone();
    tightened.set(Scope::SITE, policy(says("8h")));
    let got = length_max(&rules(&tightened, &["gpu-node"], None));
    assert_eq!(got, Some(("8 h".into(), "policy of the site".into())));
}

#[test]
fn every_rule_is_listed_with_its_origin() {
    let all = json!({
        "who_may_book": {"roles": ["member"]}, "notice": "1h", "horizon": "14d", "length_min": "1h",
        "length_max": "4h", "length_step": "1h", "start_step": "1h", "active_bookings": 2,
        "person_hours_per_week": "40h", "project_hours_per_week": "80h",
        "opening_hours": {"tue": ["08:00-18:00"]}, "closed_on_holidays": true, "gap": "1h",
        "buffer_before": "10m", "buffer_after": "10m", "approval": {}, "check_in": "15m",
    });
    let policies = policies([(json!({"site": {}}), all)]);
    let asked = booking("2026-11-17 10:00", 600);
    let calendar = calendar();
    let desk = Desk {
        rules: &asked.rules(&policies),
        calendar: &calendar,
        ledger: &Ledger::default(),
        now: now(),
    };
    let findings = desk.explain(&asked);
    let listed: Vec<Rule> = findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(listed, Rule::ALL);
    let broken = findings
        .iter()
        .filter(|finding| !finding.breaches.is_empty());
    let broken: Vec<Rule> = broken.map(|finding| finding.rule).collect();
    assert_eq!(broken, [Rule::LengthMax, Rule::OpeningHours]);
    assert_eq!(
        findings[1].to_string(),
        "bookings are made at least 1 h before they start (policy of the site); holds"
    );
    assert_eq!(
        findings[4].to_string(),
        "bookings last at most 4 h (policy of the site); this one lasts 10 h; up to 4 h is accepted"
    );
    assert!(findings.iter().all(|finding| finding.from == [Scope::SITE]));
}
