//! What is said of the queue without changing it: what would become of work, how much there is, and how the nodes are.

use crate::support::{Lab, name, on_both, site};
use berth_app::inventory::ResourceChange;
use berth_app::queue::{Act, Count, NewWorkload, Trial, WorkloadFilter};
use berth_app::{Caller, Error};
use berth_model::attribute::AttributeValue;
use berth_model::workload::{Class, EndsBy, State};
use berth_model::{Reference, Status};
use jiff::SignedDuration;
use serde_json::{Value, json};

on_both!(
    what_is_tried_says_when_it_would_begin_and_end_and_leaves_nothing_behind,
    what_is_tried_in_two_ways_gets_the_one_that_is_over_first,
    opportunistic_work_is_told_of_the_wall_before_it_begins,
    what_waits_says_when_it_is_over_at_the_latest,
    the_queue_is_counted_by_whose_it_is,
    a_list_is_narrowed_by_class_and_text,
    one_person_may_not_have_more_waiting_than_the_site_allows,
    nodes_say_what_their_gpus_are_and_when_they_are_cared_for,
);

impl Lab {
    async fn tried(&self, who: &Caller, ask: Value) -> Result<Trial, Error> {
        let new = NewWorkload {
            project: None,
            profile: None,
            is_held: false,
            ask: serde_json::from_value(ask).expect("an ask"),
        };
        self.app.try_to_submit(who, &site(), new).await
    }
}

async fn what_is_tried_says_when_it_would_begin_and_end_and_leaves_nothing_behind(lab: Lab) {
    let lab = lab.with_queue().await;
    let trial = lab
        .tried(&lab.ada, lab.ask(2, 4, 10))
        .await
        .expect("it is well");
    let outlook = &trial.outlook;
    assert_eq!((trial.number, outlook.begins), (1, Some(lab.at(0))));
    assert_eq!((outlook.wish, outlook.nodes.len()), (Some(0), 2));
    assert_eq!(outlook.reason, None);
    let ends = outlook.ends.expect("everything has an end");
    assert_eq!((ends.at, ends.by), (lab.at(1), EndsBy::Limit));
    // All nodes are taken for an hour: what is tried then waits for them.
    let first = lab.submit(&lab.bob, lab.ask(4, 4, 50)).await;
    assert_eq!(first, 1, "what was tried has taken no number");
    lab.round().await;
    let trial = lab
        .tried(&lab.ada, lab.ask(2, 4, 10))
        .await
        .expect("it is well");
    let outlook = &trial.outlook;
    assert_eq!(
        outlook.reason.as_ref().map(|reason| reason.code),
        Some("no_room")
    );
    let begins = outlook.begins.expect("it can be said");
    assert!(lab.at(0) < begins && begins <= lab.at(1), "{begins}");
    assert_eq!(
        outlook.ends.map(|ends| ends.at),
        Some(begins + SignedDuration::from_hours(1))
    );
    let trial = lab
        .tried(&lab.ada, lab.ask(9, 4, 10))
        .await
        .expect("it is well");
    assert_eq!(trial.outlook.begins, None, "there are four such nodes");
    let mut wrong = lab.ask(1, 1, 10);
    wrong["level"] = json!("nobody-knows");
    assert!(matches!(
        lab.tried(&lab.ada, wrong).await,
        Err(Error::Invalid(_))
    ));
    lab.round().await;
    let all = lab.app.list_workloads(&lab.ada, &site(), every()).await;
    assert_eq!(all.expect("a list").workloads.len(), 1);
}

async fn what_is_tried_in_two_ways_gets_the_one_that_is_over_first(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.submit(&lab.bob, lab.ask(3, 4, 55)).await;
    lab.round().await;
    // On two nodes from nine on, or on the one that is left at once but for twice as long.
    let mut ask = lab.ask(2, 4, 20);
    let mut other = ask["wishes"][0].clone();
    other["tasks"] = json!(1);
    other["limit"] = json!("PT2H");
    ask["wishes"].as_array_mut().expect("wishes").push(other);
    let outlook = lab
        .tried(&lab.ada, ask.clone())
        .await
        .expect("well")
        .outlook;
    assert_eq!((outlook.wish, outlook.begins), (Some(1), Some(lab.at(0))));
    assert_eq!(outlook.ends.map(|ends| ends.at), Some(lab.at(2)));
    // With nothing left at all, the shorter one is over first.
    lab.submit(&lab.bob, lab.ask(1, 4, 55)).await;
    lab.round().await;
    let outlook = lab.tried(&lab.ada, ask).await.expect("well").outlook;
    assert_eq!(outlook.wish, Some(0));
}

async fn opportunistic_work_is_told_of_the_wall_before_it_begins(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.book(&lab.bob, &["n0", "n1", "n2", "n3"], 1, 2).await;
    let mut ask = lab.ask(1, 1, 50);
    ask["class"] = json!("opportunistic");
    ask["wishes"][0]["limit"] = json!("PT3H");
    let outlook = lab.tried(&lab.ada, ask).await.expect("well").outlook;
    assert_eq!(outlook.begins, Some(lab.at(0)));
    let ends = outlook.ends.expect("an end");
    assert_eq!((ends.at, ends.by), (lab.at(1), EndsBy::Wall));
}

async fn what_waits_says_when_it_is_over_at_the_latest(lab: Lab) {
    let lab = lab.with_queue().await;
    let both = [
        lab.submit(&lab.bob, lab.ask(4, 4, 50)).await,
        lab.submit(&lab.ada, lab.ask(4, 4, 50)).await,
    ];
    lab.round().await;
    // There is room for one of them, whoever that is.
    let waiting = match lab.state(both[0]).await {
        State::Waiting => both[0],
        _ => both[1],
    };
    let reason = lab.workload_view(waiting).await.reason.expect("it waits");
    let begins = reason.promised.or(reason.forecast).expect("it can be said");
    assert_eq!(
        reason.ends.map(|ends| (ends.at, ends.by)),
        Some((begins + SignedDuration::from_hours(1), EndsBy::Limit))
    );
}

async fn the_queue_is_counted_by_whose_it_is(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut array = lab.ask(1, 1, 50);
    array["array"] = json!({ "tasks": "0-9", "at_once": 3 });
    array["class"] = json!("opportunistic");
    lab.submit(&lab.ada, array).await;
    let held = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    lab.act(&lab.ada, held, Act::Hold).await.expect("it waits");
    lab.round().await;
    for _ in 0..2 {
        lab.try_submit(&lab.bob, Some("vision"), lab.ask(4, 4, 10))
            .await
            .expect("it is taken");
    }
    let counts = lab
        .app
        .count_queue(&lab.bob, &site())
        .await
        .expect("counts");
    let all = Count {
        waiting: 2,
        held: 1,
        running: 1,
        running_tasks: 3,
    };
    assert_eq!(counts.all, all);
    let bobs = Count {
        waiting: 2,
        ..Count::default()
    };
    assert_eq!(counts.people[&lab.bob.id()], bobs);
    assert_eq!(
        counts
            .projects
            .values()
            .copied()
            .max_by_key(|one| one.waiting),
        Some(bobs)
    );
    assert_eq!(counts.classes[&Class::Opportunistic].running_tasks, 3);
    assert_eq!(counts.classes[&Class::Guaranteed].running, 0);
}

fn every() -> WorkloadFilter {
    WorkloadFilter {
        limit: 100,
        ..WorkloadFilter::default()
    }
}

async fn a_list_is_narrowed_by_class_and_text(lab: Lab) {
    let lab = lab.with_queue().await;
    let mut soft = lab.ask(1, 1, 10);
    soft["class"] = json!("opportunistic");
    soft["title"] = json!("100 % Sicher_heit");
    let soft = lab.submit(&lab.ada, soft).await;
    let firm = lab.submit(&lab.bob, lab.ask(1, 1, 10)).await;
    let app = &lab.app;
    let found = async |filter: WorkloadFilter| -> Vec<u64> {
        let view = app.list_workloads(&lab.ada, &site(), filter).await;
        let all = view.expect("a list").workloads.into_iter();
        all.map(|(one, _)| one.number).collect()
    };
    let texts = |text: &str| WorkloadFilter {
        text: Some(text.to_owned()),
        ..every()
    };
    for states in [vec![State::Waiting], State::ALL.to_vec()] {
        let of = |filter: WorkloadFilter| WorkloadFilter {
            states: states.clone(),
            ..filter
        };
        let class = WorkloadFilter {
            class: Some(Class::Guaranteed),
            ..every()
        };
        assert_eq!(found(of(class)).await, [firm]);
        assert_eq!(found(of(texts("sicher_"))).await, [soft]);
        assert_eq!(found(of(texts("0 % s"))).await, [soft]);
        assert_eq!(found(of(texts("TRAIN"))).await, [firm]);
        assert_eq!(found(of(texts(&soft.to_string()))).await, [soft]);
        assert_eq!(
            found(of(texts(lab.bob.person.login.as_str()))).await,
            [firm]
        );
        assert_eq!(found(of(texts("%"))).await, [soft], "a sign like any other");
    }
    lab.round().await;
    let on_first = found(texts("n0")).await;
    let elsewhere = found(texts("n3")).await;
    assert_eq!(
        (on_first.len(), elsewhere.len()),
        (2, 0),
        "both fit one node"
    );
}

async fn one_person_may_not_have_more_waiting_than_the_site_allows(lab: Lab) {
    let lab = lab.with_queue().await;
    let settings = lab.app.queue_settings(&lab.admin, &site()).await;
    let mut settings = settings.expect("settings").settings;
    settings.waiting_max = 2;
    lab.app
        .set_queue_settings(&lab.admin, &site(), None, settings)
        .await
        .expect("settings");
    let mut array = lab.ask(1, 4, 50);
    array["array"] = json!({ "tasks": "0-99" });
    let first = lab.submit(&lab.ada, array.clone()).await;
    lab.submit(&lab.ada, array.clone()).await;
    let third = lab.try_submit(&lab.ada, None, array.clone()).await;
    assert!(matches!(third, Err(Error::TooManyWaiting { most: 2 })));
    assert!(matches!(
        lab.tried(&lab.ada, array.clone()).await,
        Err(Error::TooManyWaiting { .. })
    ));
    lab.submit(&lab.bob, array.clone()).await;
    let cancel = Act::Cancel {
        tasks: None,
        reason: None,
    };
    lab.act(&lab.ada, first, cancel).await.expect("it waits");
    lab.submit(&lab.ada, array).await;
}

async fn nodes_say_what_their_gpus_are_and_when_they_are_cared_for(lab: Lab) {
    let lab = lab.with_queue().await;
    let model = AttributeValue::Text("A100".to_owned());
    let change = ResourceChange {
        attributes: Some([(name("gpu_model"), model)].into()),
        ..ResourceChange::default()
    };
    let gpu = Reference::Name(name("n0.gpu0"));
    lab.app
        .update_resource(&lab.admin, &site(), &gpu, None, change)
        .await
        .expect("an admin may");
    for (node, status) in [("n1", Status::Maintenance), ("n2", Status::Unavailable)] {
        let node = Reference::Name(name(node));
        lab.app
            .set_status(&lab.admin, &site(), &node, None, status, None)
            .await
            .expect("an admin may");
    }
    let (_, nodes, _) = lab
        .app
        .queue_nodes(&lab.ada, &site())
        .await
        .expect("the nodes");
    let models: Vec<Option<&str>> = nodes[0]
        .gpus
        .iter()
        .map(|gpu| gpu.model.as_deref())
        .collect();
    assert_eq!(models, [Some("A100"), None, None, None]);
    let how: Vec<(bool, bool)> = nodes
        .iter()
        .map(|node| (node.is_in_service, node.is_in_maintenance))
        .collect();
    assert_eq!(
        how,
        [(true, false), (false, true), (false, false), (true, false)]
    );
}
