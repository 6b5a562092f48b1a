//! A site as a file, on both databases: all or nothing, what was shown is what happens, and twice is once.

use crate::support::{Lab, name, on_both, site};
use berth_app::declared::{Applied, Wanted};
use berth_app::policies::PolicyAt;
use berth_app::settlement::Mode;
use berth_app::{Caller, Error};
use berth_engine::plan::Prune;
use berth_model::Reference;
use berth_model::declared::{Act, Document};
use serde_json::{Value, json};

on_both!(
    what_was_exported_changes_nothing_when_applied,
    a_file_makes_everything_at_once_and_only_once,
    what_a_file_takes_away_takes_its_policies_along,
    policies_are_declared_with_what_they_are_about,
    a_tree_is_turned_round_with_its_bookings,
    what_is_booked_is_neither_removed_nor_moved_into_a_collision,
    nothing_happens_if_anything_is_refused,
    what_was_shown_is_what_happens,
    of_two_at_once_one_sees_that_the_site_has_changed,
    what_cannot_be_is_said_by_field,
    only_admins_of_the_site_may,
);

async fn exported(lab: &Lab) -> (Value, String) {
    let (document, fingerprint) = lab
        .app
        .export_site(&lab.admin, &site())
        .await
        .expect("an export");
    (
        serde_json::to_value(document).expect("a document"),
        fingerprint,
    )
}

fn wanted(document: &Value, prune: Prune) -> Wanted {
    let document: Document = serde_json::from_value(document.clone()).expect("a document");
    Wanted {
        document,
        prune,
        expected: None,
    }
}

async fn try_apply(
    lab: &Lab,
    who: &Caller,
    document: &Value,
    prune: Prune,
    mode: Mode,
) -> berth_app::Result<Applied> {
    lab.app
        .apply_site(who, &site(), wanted(document, prune), mode)
        .await
}

async fn apply(lab: &Lab, document: &Value, prune: Prune) -> Vec<String> {
    let shown = try_apply(lab, &lab.admin, document, prune, Mode::DryRun)
        .await
        .expect("a dry run");
    let applied = try_apply(lab, &lab.admin, document, prune, Mode::Apply)
        .await
        .expect("applied");
    assert_eq!(shown.differences, applied.differences);
    let line = |it: &berth_model::declared::Difference| format!("{:?} {}", it.act, it.name);
    applied.differences.iter().map(line).collect()
}

/// How much was written down so far, numbered or not.
async fn written(lab: &Lab) -> u64 {
    let found = lab
        .app
        .verify_audit(&lab.root)
        .await
        .expect("the audit log");
    found.checked + found.unchained
}

async fn what_was_exported_changes_nothing_when_applied(lab: Lab) {
    let (document, fingerprint) = exported(&lab).await;
    assert_eq!(
        document["resources"]["rack-a"]["children"]["gpu-01"]["children"]["gpu-01.cpu"],
        json!({"type": "server", "capacity": {"amount": 64, "unit": "cores"}})
    );
    let before = written(&lab).await;
    for prune in [Prune::No, Prune::Yes] {
        assert!(apply(&lab, &document, prune).await.is_empty());
    }
    assert_eq!(exported(&lab).await, (document, fingerprint));
    assert_eq!(
        written(&lab).await,
        before,
        "nothing to do is nothing written"
    );
}

async fn a_file_makes_everything_at_once_and_only_once(lab: Lab) {
    let document = json!({
        "version": 1,
        "site": {"title": "The lab of Torino", "time_zone": "Europe/Rome", "outsiders_see": "catalogue"},
        "types": {"pool": {"title": "Pool", "form": [{"key": "why", "label": "Why", "kind": {"text": {}}}]},
            "server": {"title": "Server", "colour": "#ff0000"}},
        "resources": {
            "rack-c": {"type": "server", "children": {"rack-c.1": {"type": "server", "children": {
                "licences": {"type": "pool", "capacity": {"amount": 10, "unit": "seats"}, "facts": {"contact": "ada"}},
                "gpu-02": {"type": "server", "attributes": {"gpus": 4}}}}}}},
        "projects": {"vision": {"title": "Vision", "members": ["ada", "bob"]}},
    });
    let first = apply(&lab, &document, Prune::No).await;
    for wanted in [
        "Changed torino",
        "Added pool",
        "Changed server",
        "Added rack-c.1",
        "Moved gpu-02",
        "Changed gpu-02",
        "Added vision",
        "Extra rack-a",
        "Extra strict",
    ] {
        assert!(first.contains(&wanted.to_owned()), "{wanted}: {first:?}");
    }
    let (now, _) = exported(&lab).await;
    assert_eq!(now["site"]["title"], "The lab of Torino");
    assert_eq!(
        now["resources"]["rack-c"]["children"]["rack-c.1"]["children"]["gpu-02"]["attributes"]["gpus"],
        4.0
    );
    assert_eq!(now["projects"]["vision"]["members"], json!(["ada", "bob"]));
    let before = written(&lab).await;
    let second = apply(&lab, &document, Prune::No).await;
    assert!(
        second.iter().all(|line| line.starts_with("Extra ")),
        "{second:?}"
    );
    assert_eq!(written(&lab).await, before);

    // The whole as it is now, with less in it: pruning takes away what is gone, from the leaves up.
    let mut less = now.clone();
    less["resources"]
        .as_object_mut()
        .expect("resources")
        .remove("rack-a");
    less["projects"]["vision"]["members"] = json!(["bob"]);
    let pruned = apply(&lab, &less, Prune::Yes).await;
    assert!(
        pruned.contains(&"Removed gpu-01.cpu".to_owned()),
        "{pruned:?}"
    );
    assert_eq!(exported(&lab).await.0, less);
    let gone = lab
        .app
        .get_resource(&lab.admin, &site(), &Reference::Name(name("gpu-01")))
        .await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
}

async fn what_a_file_takes_away_takes_its_policies_along(lab: Lab) {
    let (mut without, _) = exported(&lab).await;
    // A file that does not speak of policies leaves them alone, but for those of what it takes away.
    without
        .as_object_mut()
        .expect("a document")
        .remove("policies");
    let mut with = without.clone();
    with["types"]["spare"] = json!({"title": "Spare"});
    with["projects"]["vision"] = json!({"title": "Vision"});
    apply(&lab, &with, Prune::No).await;
    let parts = [
        json!({"type": "spare"}),
        json!({"project": "vision"}),
        json!({"type": "server"}),
    ];
    let policy = serde_json::from_value(json!({"length_max": "2h"})).expect("a policy");
    for part in parts {
        let part = serde_json::from_value(part).expect("a part of the site");
        let at = PolicyAt::Site(site(), part);
        lab.app
            .set_policy(&lab.admin, &at, Some(&policy), None, None, Mode::Apply)
            .await
            .expect("the policy is set");
    }
    apply(&lab, &without, Prune::Yes).await;
    let (holding, _) = lab
        .app
        .list_policies(&lab.admin, &site())
        .await
        .expect("the policies");
    assert_eq!(holding.len(), 1, "{holding:?}");
}

async fn policies_are_declared_with_what_they_are_about(lab: Lab) {
    let (mut file, _) = exported(&lab).await;
    file["types"]["spare"] = json!({"title": "Spare"});
    file["policies"] = json!([
        {"asks": {"horizon": "30d"}},
        {"for": {"type": "spare", "role": "member"}, "asks": {"length_max": "2h"}},
    ]);
    apply(&lab, &file, Prune::No).await;
    let (written, _) = exported(&lab).await;
    assert_eq!(
        written["policies"], file["policies"],
        "it is written back unchanged"
    );
    let again = apply(&lab, &file, Prune::No).await;
    assert!(again.is_empty(), "{again:?}");
    file["policies"] = json!([{"asks": {"horizon": "14d"}}]);
    file["types"]
        .as_object_mut()
        .expect("types")
        .remove("spare");
    let changed = apply(&lab, &file, Prune::Yes).await;
    assert_eq!(
        changed,
        [
            "Removed spare",
            "Changed the site",
            "Removed type spare and role member"
        ]
    );
    let (left, _) = lab
        .app
        .list_policies(&lab.admin, &site())
        .await
        .expect("them");
    assert_eq!(left.len(), 1);
    // What no policy may say, no file may say.
    file["policies"] = json!([{"for": {"type": "nothing"}, "asks": {}}]);
    let refused = try_apply(&lab, &lab.admin, &file, Prune::No, Mode::Apply).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

/// `rack-a > gpu-01` becomes `gpu-01 > rack-a`, with what was below either going its own way. The bookings on them stand,
/// and keep apart whoever comes after.
async fn a_tree_is_turned_round_with_its_bookings(lab: Lab) {
    lab.book(&lab.ada, &["gpu-01.gpu0"], 1, 3).await;
    lab.book(&lab.bob, &["rack-b"], 2, 4).await;
    lab.book(&lab.ada, &["gpu-01.cpu:40"], 2, 4).await;
    let (mut document, _) = exported(&lab).await;
    let resource = json!({"type": "server"});
    document["resources"] = json!({
        "gpu-01": {"type": "server", "children": {
            "rack-a": {"type": "server", "children": {"gpu-01.gpu0": resource, "gpu-02": resource}},
            "gpu-01.cpu": {"type": "server", "capacity": {"amount": 40, "unit": "cores"}}}},
        "gpu-01.gpu1": {"type": "server", "children": {"rack-b": resource}},
        "vault-01": {"type": "strict"},
    });
    apply(&lab, &document, Prune::Yes).await;
    assert_eq!(exported(&lab).await.0, document);
    lab.try_book(&lab.bob, &["gpu-01"], 2, 3)
        .await
        .expect_err("the tree above what is booked");
    lab.try_book(&lab.bob, &["gpu-01.gpu1"], 3, 5)
        .await
        .expect_err("its new child is taken");
    lab.book(&lab.bob, &["gpu-02"], 1, 3).await;
    assert!(
        lab.app
            .verify_audit(&lab.root)
            .await
            .expect("the log")
            .broken
            .is_none()
    );
}

async fn what_is_booked_is_neither_removed_nor_moved_into_a_collision(lab: Lab) {
    lab.book(&lab.ada, &["gpu-01.gpu0"], 1, 3).await;
    lab.book(&lab.bob, &["rack-b"], 2, 4).await;
    let (before, _) = exported(&lab).await;

    let mut less = before.clone();
    less["resources"]
        .as_object_mut()
        .expect("resources")
        .remove("rack-a");
    let shown = try_apply(&lab, &lab.admin, &less, Prune::Yes, Mode::DryRun)
        .await
        .expect("a dry run");
    assert_eq!(shown.conflicts.len(), 1);
    let refused = try_apply(&lab, &lab.admin, &less, Prune::Yes, Mode::Apply).await;
    match refused.expect_err("a booking is in the way") {
        Error::ApplyConflict { conflicts, .. } => {
            let owner = conflicts[0]
                .claim
                .details
                .as_ref()
                .and_then(|details| details.owner);
            assert_eq!(owner, Some(lab.ada.person.id));
        }
        other => panic!("{other}"),
    }
    assert_eq!(exported(&lab).await.0, before);

    // Below a new rack in the rack that bob has: the new one is passed over on the way up.
    let mut moved = before.clone();
    let gpu = moved["resources"]["rack-a"]["children"]
        .as_object_mut()
        .expect("children")
        .remove("gpu-01");
    moved["resources"]["rack-b"]["children"] =
        json!({"shelf": {"type": "server", "children": {"gpu-01": gpu}}});
    let shown = try_apply(&lab, &lab.admin, &moved, Prune::No, Mode::DryRun)
        .await
        .expect("a dry run");
    assert_eq!(shown.conflicts.len(), 1);
    let refused = try_apply(&lab, &lab.admin, &moved, Prune::No, Mode::Apply).await;
    assert!(matches!(refused, Err(Error::ApplyConflict { conflicts, .. }) if conflicts.len() == 1));
    assert_eq!(exported(&lab).await.0, before);
}

async fn nothing_happens_if_anything_is_refused(lab: Lab) {
    lab.book(&lab.ada, &["gpu-01.cpu:40"], 1, 3).await;
    let (before, fingerprint) = exported(&lab).await;
    let mut wrong = before.clone();
    wrong["site"]["title"] = json!("Another title");
    wrong["types"]["pool"] = json!({"title": "Pool"});
    wrong["resources"]["rack-c"] = json!({"type": "pool"});
    // The last step of all: more is promised than would be left.
    wrong["resources"]["rack-a"]["children"]["gpu-01"]["children"]["gpu-01.cpu"]["capacity"]["amount"] =
        json!(39);
    let entries = written(&lab).await;
    let refused = try_apply(&lab, &lab.admin, &wrong, Prune::Yes, Mode::Apply).await;
    assert!(
        matches!(&refused, Err(Error::Amount(said)) if said.contains("gpu-01.cpu")),
        "{refused:?}"
    );
    assert_eq!(exported(&lab).await, (before, fingerprint));
    assert_eq!(written(&lab).await, entries);
}

async fn what_was_shown_is_what_happens(lab: Lab) {
    let document = json!({"version": 1, "resources": {"rack-c": {"type": "server"}}});
    let shown = try_apply(&lab, &lab.admin, &document, Prune::No, Mode::DryRun)
        .await
        .expect("a dry run");
    let expecting = |fingerprint: &str| Wanted {
        expected: Some(fingerprint.to_owned()),
        ..wanted(&document, Prune::No)
    };
    lab.add("late", "server", None, None).await;
    let late = lab
        .app
        .apply_site(
            &lab.admin,
            &site(),
            expecting(&shown.fingerprint),
            Mode::Apply,
        )
        .await;
    assert!(matches!(late, Err(Error::SiteChanged)));
    let again = try_apply(&lab, &lab.admin, &document, Prune::No, Mode::DryRun)
        .await
        .expect("a dry run");
    assert!(
        again
            .differences
            .iter()
            .any(|it| it.act == Act::Extra && it.name == "late")
    );
    // A booking and a status are no part of what is declared.
    lab.book(&lab.ada, &["gpu-01"], 1, 3).await;
    let applied = lab
        .app
        .apply_site(
            &lab.admin,
            &site(),
            expecting(&again.fingerprint),
            Mode::Apply,
        )
        .await;
    let applied = applied.expect("applied");
    assert_eq!(applied.fingerprint, exported(&lab).await.1);
}

async fn of_two_at_once_one_sees_that_the_site_has_changed(lab: Lab) {
    let (_, fingerprint) = exported(&lab).await;
    let file = |rack: &str| Wanted {
        expected: Some(fingerprint.clone()),
        ..wanted(
            &json!({"version": 1, "resources": {rack: {"type": "server"}}}),
            Prune::No,
        )
    };
    let torino = site();
    let one = lab
        .app
        .apply_site(&lab.admin, &torino, file("rack-c"), Mode::Apply);
    let other = lab
        .app
        .apply_site(&lab.root, &torino, file("rack-d"), Mode::Apply);
    let (one, other) = tokio::join!(one, other);
    let changed = [&one, &other]
        .into_iter()
        .filter(|it| matches!(it, Err(Error::SiteChanged)))
        .count();
    assert_eq!(changed, 1, "{:?} {:?}", one.err(), other.err());
}

async fn what_cannot_be_is_said_by_field(lab: Lab) {
    for (document, field) in [
        (
            json!({"version": 1, "site": {"name": "napoli", "title": "T", "time_zone": "UTC", "outsiders_see": "nothing"}}),
            "site.name",
        ),
        (
            json!({"version": 1, "projects": {"p": {"title": "P", "members": ["otto"]}}}),
            "projects.p.members",
        ),
        (
            json!({"version": 1, "resources": {"x": {"type": "nothing"}}}),
            "resources.x.type",
        ),
        (
            json!({"version": 1, "resources": {"rack-a": {"type": "server", "capacity": {"amount": 1, "unit": "x"}}}}),
            "resources.rack-a.capacity",
        ),
    ] {
        for mode in [Mode::DryRun, Mode::Apply] {
            match try_apply(&lab, &lab.admin, &document, Prune::No, mode).await {
                Err(Error::Invalid(errors)) => assert_eq!(errors.0[0].field, field),
                other => panic!("{document}: {other:?}"),
            }
        }
    }
    let unused = json!({"version": 1, "types": {}});
    let refused = try_apply(&lab, &lab.admin, &unused, Prune::Yes, Mode::Apply).await;
    assert!(matches!(refused, Err(Error::InUse(_))), "{refused:?}");
}

async fn only_admins_of_the_site_may(lab: Lab) {
    let document = json!({"version": 1});
    for mode in [Mode::DryRun, Mode::Apply] {
        let member = try_apply(&lab, &lab.ada, &document, Prune::No, mode).await;
        assert!(matches!(member, Err(Error::NotAllowed { .. })));
        let outsider = try_apply(&lab, &lab.outsider, &document, Prune::No, mode).await;
        assert!(matches!(outsider, Err(Error::NotFound(_))));
    }
    assert!(matches!(
        lab.app.export_site(&lab.ada, &site()).await,
        Err(Error::NotAllowed { .. })
    ));
    assert!(matches!(
        lab.app.export_site(&lab.outsider, &site()).await,
        Err(Error::NotFound(_))
    ));
}
