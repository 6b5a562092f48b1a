//! How many GPUs a site has, asked in different ways: every answer is the same, and a plain count agrees.

use std::collections::BTreeMap;

use crate::support::{Lab, name, on_both, site};
use berth_app::inventory::{NewResource, ResourceFilter};
use berth_app::maintenance::NewWindow;
use berth_engine::counts::Tally;
use berth_model::attribute::AttributeValue;
use berth_model::queue::Role;
use berth_model::{Reference, Resource, ResourceId, Status};

on_both!(
    counts_agree_with_the_queues_nodes_and_with_a_plain_count,
    outsiders_read_work_as_reserved,
    my_sites_say_what_there_is_to_do_in_each,
);

async fn add_slice(lab: &Lab, slice: &str) {
    let profile = AttributeValue::Text("1g.10gb".to_owned());
    let new = NewResource {
        name: name(slice),
        kind: Reference::Name(name("slice")),
        parent: Some(Reference::Name(name("n3.gpu3"))),
        title: None,
        attributes: [(name("mig_profile"), profile)].into(),
        facts: Default::default(),
        capacity: None,
    };
    let made = lab.app.create_resource(&lab.admin, &site(), new).await;
    made.expect("a slice");
}

/// The counts of a role, in nodes or outside them.
async fn counted(lab: &Lab, role: Role, in_node: bool) -> Tally {
    let found = lab
        .app
        .count_resources(&lab.ada, &site())
        .await
        .expect("counts");
    let mut all = Tally::default();
    for (group, count) in &found.counts {
        if group.role == Some(role) && group.in_node == in_node {
            all.total += count.resources.total;
            all.free += count.resources.free;
            all.running += count.resources.running;
            all.reserved += count.resources.reserved;
            all.cut += count.resources.cut;
            all.out_of_service += count.resources.out_of_service;
        }
    }
    all
}

/// The site's resources by their names, as the list has them.
async fn listed(lab: &Lab) -> BTreeMap<String, (Resource, Status)> {
    let filter = ResourceFilter::default();
    let found = lab
        .app
        .list_resources(&lab.ada, &site(), &filter, "", 1000)
        .await;
    let (_, found, _) = found.expect("a list");
    let found = found.into_iter();
    found
        .map(|view| (view.resource.name.to_string(), (view.resource, view.status)))
        .collect()
}

/// A site with 16 GPUs in nodes, one of them cut into three slices, and one GPU outside; some of it is at work, reserved, in
/// maintenance and out of service.
async fn busy_site(lab: Lab) -> Lab {
    let lab = lab.with_queue().await;
    lab.add("bench", "gpu", None, None).await;
    for slice in ["s0", "s1", "s2"] {
        add_slice(&lab, slice).await;
    }
    lab.book(&lab.bob, &["n1"], 0, 2).await;
    lab.book(&lab.bob, &["n3.gpu0"], 0, 2).await;
    let window = NewWindow {
        title: "fans".parse().expect("text"),
        span: lab.span(0, 3),
        resources: vec![Reference::Name(name("n2.gpu0"))],
        decisions: BTreeMap::new(),
    };
    let planned = lab.app.plan_window(&lab.admin, &site(), &window).await;
    planned.expect("nothing is in its way");
    let gpu = Reference::Name(name("n2.gpu1"));
    lab.app
        .set_status(&lab.admin, &site(), &gpu, None, Status::Unavailable, None)
        .await
        .expect("an admin may");
    let mut on_a_slice = lab.ask(1, 1, 50);
    on_a_slice["wishes"][0]["task"]["gpus"] = serde_json::json!({ "slice": "1g.10gb" });
    lab.submit(&lab.ada, on_a_slice).await;
    lab.submit(&lab.ada, lab.ask(1, 3, 50)).await;
    lab.round().await;
    lab
}

async fn counts_agree_with_the_queues_nodes_and_with_a_plain_count(lab: Lab) {
    let lab = busy_site(lab).await;
    let gpus = counted(&lab, Role::Gpu, true).await;
    let expected = Tally {
        total: 16,
        free: 5,
        running: 3,
        reserved: 5,
        cut: 1,
        out_of_service: 2,
    };
    assert_eq!(gpus, expected);
    let slices = counted(&lab, Role::Slice, true).await;
    assert_eq!((slices.total, slices.free, slices.running), (3, 2, 1));
    let bench = counted(&lab, Role::Gpu, false).await;
    assert_eq!((bench.total, bench.free), (1, 1));

    // Each node says what is left of its GPUs; together they say the same.
    let (_, nodes, _) = lab.app.queue_nodes(&lab.ada, &site()).await.expect("nodes");
    let listed = listed(&lab).await;
    let slice_ids: Vec<ResourceId> = ["s0", "s1", "s2"].map(|slice| listed[slice].0.id).into();
    let parts = nodes.iter().flat_map(|node| &node.gpus);
    let (cut, whole): (Vec<_>, Vec<_>) = parts.partition(|one| slice_ids.contains(&one.gpu));
    let free =
        |of: &[&berth_app::queue::GpuView]| of.iter().filter(|one| one.free == 1000).count() as u64;
    assert_eq!(
        (whole.len() as u64, free(&whole)),
        (gpus.total - gpus.cut, gpus.free)
    );
    assert_eq!((cut.len() as u64, free(&cut)), (slices.total, slices.free));

    // A plain count by names.
    let is_gpu = |name: &str| name.starts_with('n') && name.contains(".gpu");
    assert_eq!(
        listed.keys().filter(|name| is_gpu(name)).count() as u64,
        gpus.total
    );
    let out = listed.iter().filter(|(name, (_, status))| {
        is_gpu(name) && (*status != Status::Active || name.as_str() == "n2.gpu0")
    });
    assert_eq!(out.count() as u64, gpus.out_of_service);

    // When all of it is over, all that serves is free again.
    lab.run_until(4).await;
    let after = counted(&lab, Role::Gpu, true).await;
    assert_eq!((after.free, after.running, after.reserved), (14, 0, 0));
}

async fn outsiders_read_work_as_reserved(lab: Lab) {
    let lab = busy_site(lab).await;
    let change = berth_app::SiteChange {
        outsiders_see: Some(berth_model::site::OutsiderView::FreeBusy),
        ..Default::default()
    };
    lab.app
        .update_site(&lab.admin, &site(), None, change)
        .await
        .expect("an admin may");
    let inside = lab
        .app
        .count_resources(&lab.ada, &site())
        .await
        .expect("counts");
    let outside = lab
        .app
        .count_resources(&lab.outsider, &site())
        .await
        .expect("counts");
    for (group, count) in &inside.counts {
        let seen = outside.counts[group].resources;
        assert_eq!(seen.running, 0);
        assert_eq!(
            seen.reserved,
            count.resources.running + count.resources.reserved
        );
        assert_eq!(
            (seen.total, seen.free),
            (count.resources.total, count.resources.free)
        );
    }
}

async fn my_sites_say_what_there_is_to_do_in_each(lab: Lab) {
    let lab = busy_site(lab).await;
    let bob = lab.app.my_sites(&lab.bob).await.expect("his sites");
    assert_eq!(bob.len(), 1);
    assert_eq!((bob[0].owned.reservations, bob[0].owned.workloads), (2, 0));
    let ada = lab.app.my_sites(&lab.ada).await.expect("her sites");
    assert_eq!((ada[0].owned.reservations, ada[0].owned.workloads), (0, 2));
    assert_eq!(ada[0].owned.sessions, 0);
    // Nothing is shown of the log before it is numbered.
    assert_eq!(ada[0].last_activity, None);
    lab.notify().await;
    let ada = lab.app.my_sites(&lab.ada).await.expect("her sites");
    assert!(ada[0].last_activity.is_some());
    assert!(
        lab.app
            .my_sites(&lab.outsider)
            .await
            .expect("none")
            .is_empty()
    );
    lab.run_until(4).await;
    let bob = lab.app.my_sites(&lab.bob).await.expect("his sites");
    assert_eq!(bob[0].owned, Default::default());
}
