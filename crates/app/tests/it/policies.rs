//! Policies, on both databases: set and kept, judged in every booking, and what follows from them.

use crate::support::policy::{
    book_for, minutes, must_set, of_site, of_type, person, policy, project, refused, set,
};
use crate::support::{Lab, name, on_both, site};
use berth_app::desk::WaitFor;
use berth_app::policies::PolicyAt;
use berth_app::reservations::{Extension, ReservationChange};
use berth_app::settlement::Mode;
use berth_app::{Caller, Error, ProjectChange};
use berth_model::policy::{Part, Policy, Rule};
use berth_model::reservation::{Reservation, State, Waited};
use berth_model::{Reference, ReservationId};
use serde_json::json;

on_both!(
    a_policy_is_kept_in_versions,
    a_site_tightens_what_binds_it_and_never_loosens_it,
    another_server_learns_of_a_change,
    a_limit_is_kept_when_two_ask_at_once,
    waiting_counts_for_nothing,
    a_change_names_whom_it_breaks_and_leaves_them_alone,
    what_stands_is_left_alone_until_it_takes_more,
    a_hand_over_asks_about_the_person,
    policies_follow_their_names,
    a_test_explains_every_rule,
);

async fn a_policy_is_kept_in_versions(lab: Lab) {
    let at = of_site();
    let by_member = set(&lab, &lab.ada, &at, json!({"length_max": "4h"})).await;
    assert!(matches!(by_member, Err(Error::NotAllowed { .. })));
    let by_outsider = set(&lab, &lab.outsider, &at, json!({"length_max": "4h"})).await;
    assert!(matches!(by_outsider, Err(Error::NotFound(_))));
    for (written, version) in [
        (json!({"length_max": "4h"}), 1),
        (json!({"length_max": "2h"}), 2),
        // Setting what holds already makes no new version.
        (json!({"length_max": "2h"}), 2),
    ] {
        let now = set(&lab, &lab.admin, &at, written).await;
        assert_eq!(now.expect("it is set"), version);
    }
    let stale = lab
        .app
        .set_policy(
            &lab.admin,
            &at,
            Some(&policy(json!({}))),
            Some(1),
            None,
            Mode::Apply,
        )
        .await;
    assert!(matches!(stale, Err(Error::Version { current: 2 })));
    assert!(refused(lab.try_book(&lab.ada, &["gpu-02"], 1, 4).await).contains("at most 2 h"));
    let (holding, _) = lab
        .app
        .list_policies(&lab.bob, &site())
        .await
        .expect("members see them");
    assert_eq!(holding.len(), 1);
    let reason = Some("nobody minds".parse().expect("text"));
    lab.app
        .set_policy(&lab.admin, &at, None, None, reason, Mode::Apply)
        .await
        .expect("it is taken away");
    lab.book(&lab.ada, &["gpu-02"], 1, 4).await;
    let (history, directory) = lab
        .app
        .policy_history(&lab.ada, &at)
        .await
        .expect("its versions");
    let versions: Vec<(u64, Option<Policy>)> = history
        .iter()
        .map(|one| (one.version, one.policy.clone()))
        .collect();
    let length_max = |length: &str| Some(policy(json!({ "length_max": length })));
    assert_eq!(
        versions,
        [(3, None), (2, length_max("2h")), (1, length_max("4h"))]
    );
    assert_eq!(
        history[0].reason.as_ref().map(|why| why.as_str()),
        Some("nobody minds")
    );
    let by = history[0].set_by.expect("somebody set it");
    assert_eq!(directory.people[&by].login.as_str(), "adele");
    let again = lab
        .app
        .set_policy(&lab.admin, &at, None, None, None, Mode::Apply)
        .await;
    assert!(matches!(again, Err(Error::NotFound("policy"))));
    let unknown = set(&lab, &lab.admin, &of_type("spaceship"), json!({})).await;
    assert!(matches!(unknown, Err(Error::Invalid(_))));
    let asks = |approver: &str| json!({"approval": {"approvers": [{"person": approver}]}});
    for (who, at, approver, good) in [
        (&lab.admin, of_site(), "bob", true),
        (&lab.admin, of_site(), "otto", false),
        (&lab.admin, of_site(), "nobody", false),
        (&lab.root, PolicyAt::Ceilings, "bob", false),
        (&lab.root, PolicyAt::Ceilings, "root", true),
    ] {
        let set = set(&lab, who, &at, asks(approver)).await;
        assert_eq!(set.is_ok(), good, "{approver}: {set:?}");
    }
}

async fn a_site_tightens_what_binds_it_and_never_loosens_it(lab: Lab) {
    let by_site_admin = set(&lab, &lab.admin, &PolicyAt::Ceilings, json!({})).await;
    assert!(matches!(by_site_admin, Err(Error::NotAllowed { .. })));
    must_set(&lab, &PolicyAt::Ceilings, json!({"length_max": "8h"})).await;
    must_set(&lab, &PolicyAt::Defaults, json!({"notice": "1h"})).await;
    let loose = set(&lab, &lab.admin, &of_site(), json!({"length_max": "12h"})).await;
    let Err(Error::Invalid(errors)) = loose else {
        panic!("{loose:?}");
    };
    assert_eq!(errors.0[0].field, "policy.length_max");
    assert_eq!(
        errors.0[0].message,
        "12 h is looser than 8 h (global ceilings); 8 h or less is accepted"
    );
    let long = refused(lab.try_book(&lab.ada, &["gpu-02"], 2, 12).await);
    assert!(long.contains("at most 8 h (global ceilings)"), "{long}");
    let soon = refused(lab.try_book(&lab.ada, &["gpu-02"], 0, 1).await);
    assert!(
        soon.contains("1 h before they start (global defaults)"),
        "{soon}"
    );
    // A site replaces a default, whichever way.
    must_set(
        &lab,
        &of_site(),
        json!({"length_max": "6h", "notice": "0m"}),
    )
    .await;
    lab.book(&lab.ada, &["gpu-02"], 0, 1).await;
    let long = refused(lab.try_book(&lab.ada, &["gpu-02"], 2, 9).await);
    assert!(long.contains("at most 6 h (policy of the site)"), "{long}");
    // A tighter ceiling leaves what sites say alone, and says that it has no effect any more.
    let tight = policy(json!({"length_max": "5h"}));
    let change = lab
        .app
        .set_policy(
            &lab.root,
            &PolicyAt::Ceilings,
            Some(&tight),
            None,
            None,
            Mode::DryRun,
        )
        .await
        .expect("an answer");
    let overruled: Vec<String> = change
        .overruled
        .iter()
        .map(|(site, looser)| format!("{site}: {looser}"))
        .collect();
    assert_eq!(
        overruled,
        ["torino: length_max: 6 h is looser than 5 h (global ceilings); 5 h or less is accepted"]
    );
    // Admins are bound like members, unless the policy is for members only.
    assert!(lab.try_book(&lab.admin, &["gpu-02"], 2, 9).await.is_err());
    let members = Part {
        role: Some(berth_model::site::Role::Member),
        ..Part::default()
    };
    must_set(&lab, &of_site(), json!({"notice": "0m"})).await;
    must_set(
        &lab,
        &PolicyAt::Site(site(), members),
        json!({"length_max": "6h"}),
    )
    .await;
    assert!(lab.try_book(&lab.ada, &["gpu-02"], 2, 9).await.is_err());
    lab.book(&lab.admin, &["gpu-02"], 2, 9).await;
}

async fn another_server_learns_of_a_change(lab: Lab) {
    let other = lab.another_server();
    let wish = lab.wish(&["gpu-02"], 1, 4);
    let try_there = async || other.preview_booking(&lab.ada, &site(), &wish).await;
    assert!(try_there().await.expect("an answer").is_ok());
    must_set(&lab, &of_site(), json!({"length_max": "1h"})).await;
    assert!(try_there().await.expect("an answer").is_err());
    must_set(&lab, &of_site(), json!({"length_max": "4h"})).await;
    assert!(try_there().await.expect("an answer").is_ok());
    must_set(&lab, &PolicyAt::Ceilings, json!({"length_max": "2h"})).await;
    assert!(try_there().await.expect("an answer").is_err());
}

async fn a_limit_is_kept_when_two_ask_at_once(lab: Lab) {
    must_set(&lab, &of_site(), json!({"active_bookings": 1})).await;
    let (one, two) = tokio::join!(
        lab.try_book(&lab.ada, &["gpu-02"], 1, 3),
        lab.try_book(&lab.ada, &["rack-b"], 1, 3),
    );
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let said = refused(if one.is_err() { one } else { two });
    assert!(said.contains("1 stand(s) already"), "{said}");

    project(&lab, "vision", &[&lab.ada, &lab.bob]).await;
    must_set(&lab, &of_site(), json!({"project_hours_per_week": "3h"})).await;
    let (one, two) = tokio::join!(
        book_for(&lab, &lab.ada, "vision", "gpu-01.gpu0", (5, 7)),
        book_for(&lab, &lab.bob, "vision", "gpu-01.gpu1", (5, 7)),
    );
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let said = refused(if one.is_err() { one } else { two });
    assert!(
        said.contains("has 2 h already and this one adds 2 h"),
        "{said}"
    );
    // Without the project nobody counts it.
    lab.book(&lab.bob, &["gpu-01.cpu:4"], 5, 7).await;
}

async fn waiting_counts_for_nothing(lab: Lab) {
    let rule = json!({"active_bookings": 1, "buffer_after": "1h"});
    must_set(&lab, &of_site(), rule).await;
    lab.book(&lab.bob, &["gpu-02"], 1, 3).await;
    let mut wish = lab.wish(&["gpu-02"], 1, 3);
    wish.wait = Some(WaitFor::Booking);
    let waits = lab.app.book(&lab.ada, &site(), &wish).await;
    let waits = waits.expect("it waits").value.reservation;
    assert_eq!(waits.state, State::Waiting);
    let wait = waits.terms.wait.expect("what it waits for");
    // Its buffer is not among what it waits for: that comes with whatever it gets.
    assert!(
        matches!(&wait.wish, Waited::Named(wanted) if wanted.len() == 1),
        "{wait:?}"
    );
    lab.book(&lab.ada, &["rack-b"], 1, 3).await;
    let said = refused(lab.try_book(&lab.ada, &["gpu-01"], 5, 6).await);
    assert!(said.contains("1 stand(s) already"), "{said}");
}

async fn a_change_names_whom_it_breaks_and_leaves_them_alone(lab: Lab) {
    let long = lab.book(&lab.ada, &["gpu-02"], 1, 9).await;
    let short = lab.book(&lab.bob, &["rack-b"], 1, 3).await;
    for (mode, applied) in [(Mode::DryRun, false), (Mode::Apply, true)] {
        let tight = policy(json!({"length_max": "4h"}));
        let change = lab
            .app
            .set_policy(
                &lab.admin,
                &of_type("server"),
                Some(&tight),
                None,
                None,
                mode,
            )
            .await
            .expect("an answer");
        assert_eq!(change.applied, applied);
        let broken: Vec<ReservationId> = change
            .breaks
            .iter()
            .map(|broken| broken.reservation.id)
            .collect();
        assert_eq!((broken, change.breaks_count), (vec![long.id], 1));
        assert_eq!(change.breaks[0].breaches[0].rule, Rule::LengthMax);
        let holding = lab.app.list_policies(&lab.ada, &site()).await;
        assert_eq!(holding.expect("the policies").0.len(), usize::from(applied));
    }
    assert_eq!(lab.read(long.id).await, long);
    assert_eq!(lab.read(short.id).await, short);
    // A policy that asks nothing more breaks nobody, though one of them breaks another.
    let other = policy(json!({"notice": "10m"}));
    let change = lab
        .app
        .set_policy(
            &lab.admin,
            &of_site(),
            Some(&other),
            None,
            None,
            Mode::DryRun,
        )
        .await
        .expect("an answer");
    assert_eq!(change.breaks_count, 0);
}

async fn extend(
    lab: &Lab,
    who: &Caller,
    id: ReservationId,
    hours: i64,
) -> Result<Reservation, Error> {
    let until = Extension::Until(lab.at(hours));
    let extended = lab.app.extend_reservation(who, &site(), id, until).await?;
    Ok(extended.reservation)
}

async fn what_stands_is_left_alone_until_it_takes_more(lab: Lab) {
    let booked = lab.book(&lab.ada, &["gpu-02"], 1, 9).await;
    let rules = json!({"length_max": "8h", "notice": "3h", "start_step": "4h",
        "approval": {"longer_than": "6h"}});
    must_set(&lab, &of_site(), rules).await;
    let change = async |change: ReservationChange| {
        let id = booked.id;
        lab.app
            .change_reservation(&lab.ada, &site(), id, None, &change)
            .await
    };
    let title = ReservationChange {
        title: Some("other words".parse().expect("text")),
        ..Default::default()
    };
    change(title).await.expect("words are not judged");
    let shorter = ReservationChange {
        end: Some(lab.at(5)),
        ..Default::default()
    };
    change(shorter).await.expect("giving back is never refused");
    let said = refused(extend(&lab, &lab.ada, booked.id, 6).await);
    // Its start stays, so notice is not asked again; the step of starts is.
    assert!(said.contains("start a multiple of 4 h"), "{said}");
    assert!(!said.contains("before they start"), "{said}");
    must_set(
        &lab,
        &of_site(),
        json!({"length_max": "8h", "approval": {"longer_than": "6h"}}),
    )
    .await;
    extend(&lab, &lab.ada, booked.id, 7)
        .await
        .expect("six hours need nobody");
    let needs = extend(&lab, &lab.ada, booked.id, 8).await;
    let Err(Error::NotAllowed { needs }) = needs else {
        panic!("{needs:?}");
    };
    assert!(needs.contains("approval by the site's admins"), "{needs}");
    let longer = extend(&lab, &lab.admin, booked.id, 8)
        .await
        .expect("an admin gives leave by doing it");
    let decision = longer.terms.approvals[0].decision.as_ref();
    assert_eq!(decision.map(|said| said.by.as_str()), Some("adele"));
    assert!(refused(extend(&lab, &lab.admin, booked.id, 12).await).contains("at most 8 h"));
}

async fn a_hand_over_asks_about_the_person(lab: Lab) {
    let adas = lab.book(&lab.ada, &["gpu-02"], 1, 3).await;
    let bobs = lab.book(&lab.bob, &["rack-b"], 1, 3).await;
    must_set(
        &lab,
        &of_site(),
        json!({"active_bookings": 1, "length_max": "1h"}),
    )
    .await;
    let give = async || {
        lab.app
            .hand_over(&lab.ada, &site(), adas.id, None, &person(&lab.bob), None)
            .await
    };
    let said = refused(give().await);
    assert!(said.contains("1 stand(s) already"), "{said}");
    assert!(!said.contains("last at most"), "{said}");
    lab.app
        .cancel_reservation(&lab.bob, &site(), bobs.id, None, None)
        .await
        .expect("bob makes room");
    let given = give().await.expect("bob has none now");
    assert_eq!(given.reservation.owner, lab.bob.person.id);
}

async fn policies_follow_their_names(lab: Lab) {
    project(&lab, "vision", &[&lab.ada]).await;
    let of_vision = Part {
        project: Some(name("vision")),
        ..Part::default()
    };
    let at = PolicyAt::Site(site(), of_vision);
    must_set(&lab, &at, json!({"length_max": "2h"})).await;
    let who = json!({"who_may_book": {"projects": ["vision"]}});
    must_set(&lab, &of_type("server"), who).await;
    let renamed = ProjectChange {
        name: Some(name("sight")),
        title: None,
    };
    let vision = Reference::Name(name("vision"));
    lab.app
        .update_project(&lab.admin, &site(), &vision, None, renamed)
        .await
        .expect("it has another name");
    let long = book_for(&lab, &lab.ada, "sight", "gpu-02", (1, 4)).await;
    assert!(refused(long).contains("policy of project sight"));
    book_for(&lab, &lab.ada, "sight", "gpu-02", (1, 3))
        .await
        .expect("the project may book");
    // Another project of the old name inherits nothing.
    project(&lab, "vision", &[&lab.bob]).await;
    let said = refused(book_for(&lab, &lab.bob, "vision", "gpu-02", (4, 5)).await);
    assert!(said.contains("whoever books for project sight"), "{said}");
    let sight = Reference::Name(name("sight"));
    lab.app
        .remove_project(&lab.admin, &site(), &sight)
        .await
        .expect("it goes");
    let (holding, _) = lab
        .app
        .list_policies(&lab.ada, &site())
        .await
        .expect("the policies");
    assert_eq!(holding.len(), 1, "its own policy went with it: {holding:?}");
    let nobody = refused(lab.try_book(&lab.bob, &["gpu-02"], 4, 5).await);
    assert!(nobody.starts_with("nobody may book"), "{nobody}");
}

async fn a_test_explains_every_rule(lab: Lab) {
    let rules = json!({"length_max": "4h", "notice": "2h", "check_in": "15m", "buffer_after": "30m",
        "approval": {"approvers": ["site_admins"]}});
    must_set(&lab, &of_site(), rules).await;
    let wish = lab.wish(&["gpu-02"], 1, 3);
    let mut test = berth_app::policies::PolicyTest {
        span: wish.span,
        items: wish.items,
        project: None,
        owner: None,
    };
    let tested = lab
        .app
        .test_policies(&lab.ada, &site(), &test)
        .await
        .expect("an answer");
    let turned_out: Vec<(Rule, bool)> = tested
        .findings
        .iter()
        .map(|finding| (finding.rule, finding.breaches.is_empty()))
        .collect();
    assert_eq!(
        turned_out,
        [
            (Rule::Notice, false),
            (Rule::LengthMax, true),
            (Rule::BufferAfter, true),
            (Rule::Approval, true),
            (Rule::CheckIn, true),
        ]
    );
    let refusal = tested.verdict.expect_err("too soon");
    assert_eq!(refusal.instead, Some(lab.span(2, 4)));
    test.span = lab.span(3, 5);
    let tested = lab
        .app
        .test_policies(&lab.ada, &site(), &test)
        .await
        .expect("an answer");
    let accepted = tested.verdict.expect("in time");
    assert_eq!(accepted.approvals.len(), 1);
    assert_eq!(accepted.buffer_after, Some(minutes(&lab, 300, 330)));
    test.owner = Some(person(&lab.bob));
    let for_bob = lab.app.test_policies(&lab.ada, &site(), &test).await;
    assert!(matches!(for_bob, Err(Error::NotAllowed { .. })));
    let for_bob = lab.app.test_policies(&lab.admin, &site(), &test).await;
    assert!(for_bob.is_ok());
    // Nothing was booked.
    lab.book(&lab.ada, &["gpu-02"], 3, 5).await;
}
