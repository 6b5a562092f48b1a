//! The server's own machine in the inventory: once, as it is, whatever was there before and wherever it was cut off.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::queue::cut;
use crate::support::{Lab, name, on_both, site};
use berth_app::Error;
use berth_app::inventory::{KeptMachine, OwnMachine, ResourceChange};
use berth_drivers::local::machine::{GpuFound, Machine};
use berth_drivers::simulated::{Simulated, World};
use berth_drivers::split::Split;
use berth_model::audit::Actor;
use berth_model::queue::Role;
use berth_model::workload::State;
use berth_model::{Reference, Resource, Status};
use berth_store::{audit, inventory};

on_both!(
    it_appears_with_all_it_has_and_a_second_time_changes_nothing,
    a_machine_that_changed_is_brought_up_to_date,
    what_is_promised_stays_and_is_lowered_when_it_is_over,
    what_an_admin_made_of_it_stays,
    a_machine_that_was_entered_by_hand_is_the_same_one,
    work_runs_on_it_and_whoever_is_refused_reads_why,
    cut_off_anywhere_it_comes_to_the_same_end,
);

fn gpu(index: u32, uuid: &str) -> GpuFound {
    GpuFound {
        index,
        uuid: uuid.to_owned(),
        model: "NVIDIA A100-SXM4-80GB".to_owned(),
        memory_mib: 81_920,
    }
}

fn machine() -> OwnMachine {
    OwnMachine {
        identity: "one-and-only".to_owned(),
        found: Machine {
            name: "Host-1".to_owned(),
            cores: 8,
            memory_mib: 16_000,
            gpus: vec![gpu(0, "GPU-aa"), gpu(1, "GPU-bb")],
        },
        cores_kept: 1,
        memory_kept_mib: 1000,
        lacks: BTreeMap::from([(name("no_users"), "the server is not root".to_owned())]),
        closed: None,
    }
}

async fn keep(lab: &Lab, machine: &OwnMachine) -> KeptMachine {
    lab.app
        .keep_machine(&site(), machine)
        .await
        .expect("it is kept")
}

async fn resources(lab: &Lab) -> BTreeMap<String, Resource> {
    let mut reader = lab.app.store.read().await.expect("a reader");
    let found = berth_store::sites::by_name(&mut reader, &name("torino")).await;
    let found = found.expect("an answer").expect("a site");
    let all = inventory::of_site(&mut reader, found.id).await;
    let all = all.expect("an answer").into_iter();
    all.map(|one| (one.name.to_string(), one)).collect()
}

async fn one(lab: &Lab, name: &str) -> Resource {
    let mut all = resources(lab).await;
    let known: Vec<String> = all.keys().cloned().collect();
    all.remove(name)
        .unwrap_or_else(|| panic!("`{name}` among {known:?}"))
}

fn amount(resource: &Resource) -> (u64, String) {
    let capacity = resource.capacity.as_ref().expect("a capacity");
    (capacity.amount.get(), capacity.unit.to_string())
}

fn attribute(resource: &Resource, key: &str) -> Option<String> {
    let found = resource.attributes.get(&name(key));
    found.map(ToString::to_string)
}

async fn it_appears_with_all_it_has_and_a_second_time_changes_nothing(lab: Lab) {
    let kept = keep(&lab, &machine()).await;
    assert!(!kept.is_behind);
    let node = one(&lab, "host-1").await;
    assert_eq!(node.id, kept.node);
    assert_eq!(attribute(&node, "cores").as_deref(), Some("8"));
    assert_eq!(attribute(&node, "memory_mib").as_deref(), Some("16000"));
    assert_eq!(attribute(&node, "gpus").as_deref(), Some("2"));
    assert_eq!(
        attribute(&node, "no_users").as_deref(),
        Some("the server is not root")
    );
    let cores = one(&lab, "host-1.cpu").await;
    assert_eq!(amount(&cores), (7000, "millicores".to_owned()));
    assert_eq!(cores.parent, Some(node.id));
    let memory = one(&lab, "host-1.memory").await;
    assert_eq!(amount(&memory), (15_000, "mib".to_owned()));
    let second = one(&lab, "host-1.gpu1").await;
    assert_eq!(attribute(&second, "device").as_deref(), Some("GPU-bb"));
    assert_eq!(attribute(&second, "gpu_model").as_deref(), Some("A100"));
    assert_eq!(attribute(&second, "gpu_memory_gb").as_deref(), Some("80"));
    let settings = lab.app.queue_settings(&lab.admin, &site()).await;
    let roles = settings.expect("settings").settings.roles;
    assert_eq!(
        roles,
        [
            ("node", Role::Node),
            ("cpu", Role::Cores),
            ("memory", Role::Memory),
            ("gpu", Role::Gpu)
        ]
        .map(|(kind, role)| (name(kind), role))
        .into()
    );
    lab.wait_until(0).await;
    let mut reader = lab.app.store.read().await.expect("a reader");
    let newest = audit::last(&mut reader).await.expect("an answer");
    drop(reader);
    let newest = newest.expect("an entry").entry;
    assert_eq!(newest.actor, Actor::System, "{}", newest.action);
    let before = resources(&lab).await;
    assert_eq!(keep(&lab, &machine()).await, kept);
    assert_eq!(keep(&lab, &machine()).await, kept);
    assert_eq!(resources(&lab).await, before);
    lab.wait_until(0).await;
    let mut reader = lab.app.store.read().await.expect("a reader");
    let again = audit::last(&mut reader).await.expect("an answer");
    assert_eq!(again.expect("an entry").entry.id, newest.id);
    let nowhere = Reference::Name(name("nowhere"));
    let refused = lab.app.keep_machine(&nowhere, &machine()).await;
    assert!(
        matches!(refused, Err(Error::NotFound("site"))),
        "{refused:?}"
    );
}

async fn a_machine_that_changed_is_brought_up_to_date(lab: Lab) {
    keep(&lab, &machine()).await;
    let mut changed = machine();
    changed.found.memory_mib = 32_000;
    // The first was taken out, and another put in its place; now the second is called by the first number.
    changed.found.gpus = vec![gpu(0, "GPU-bb"), gpu(1, "GPU-cc")];
    changed.lacks.clear();
    keep(&lab, &changed).await;
    assert_eq!(amount(&one(&lab, "host-1.memory").await).0, 31_000);
    assert_eq!(attribute(&one(&lab, "host-1").await, "no_users"), None);
    let gone = one(&lab, "host-1.gpu0").await;
    assert_eq!(gone.status, Status::Unavailable);
    let why = gone.status_reason.map(|why| why.to_string());
    assert_eq!(why.as_deref(), Some("the machine no longer has it"));
    let stays = one(&lab, "host-1.gpu1").await;
    assert_eq!(stays.status, Status::Active);
    assert_eq!(attribute(&stays, "device").as_deref(), Some("GPU-bb"));
    let new = one(&lab, "host-1.gpu1-2").await;
    assert_eq!(attribute(&new, "device").as_deref(), Some("GPU-cc"));
    keep(&lab, &machine()).await;
    let back = one(&lab, "host-1.gpu0").await;
    assert_eq!((back.status, back.status_reason), (Status::Active, None));
    assert_eq!(one(&lab, "host-1.gpu1-2").await.status, Status::Unavailable);
}

async fn what_is_promised_stays_and_is_lowered_when_it_is_over(lab: Lab) {
    keep(&lab, &machine()).await;
    let booked = lab.book(&lab.ada, &["host-1.cpu:6000"], 1, 3).await;
    let mut smaller = machine();
    smaller.found.cores = 4;
    smaller.found.memory_mib = 20_000;
    let kept = keep(&lab, &smaller).await;
    assert!(kept.is_behind);
    let cores = one(&lab, "host-1.cpu").await;
    assert_eq!(
        (amount(&cores).0, cores.status),
        (7000, Status::Unavailable)
    );
    assert_eq!(
        amount(&one(&lab, "host-1.memory").await).0,
        19_000,
        "the rest is up to date"
    );
    assert_eq!(lab.read(booked.id).await.span, booked.span);
    lab.wait_until(4).await;
    let kept = keep(&lab, &smaller).await;
    assert!(!kept.is_behind);
    let cores = one(&lab, "host-1.cpu").await;
    assert_eq!((amount(&cores).0, cores.status), (3000, Status::Active));
}

async fn what_an_admin_made_of_it_stays(lab: Lab) {
    let kept = keep(&lab, &machine()).await;
    let change = ResourceChange {
        name: Some(name("big-one")),
        ..ResourceChange::default()
    };
    let node = Reference::Id(kept.node);
    lab.app
        .update_resource(&lab.admin, &site(), &node, None, change)
        .await
        .expect("it is renamed");
    let (place, first) = (site(), Reference::Name(name("host-1.gpu0")));
    let reason = Some("its fan is loud".parse().expect("text"));
    let out = Status::Unavailable;
    lab.app
        .set_status(&lab.admin, &place, &first, None, out, reason)
        .await
        .expect("it is out of service");
    let mut other_host = machine();
    other_host.found.name = "container-4711".to_owned();
    assert_eq!(keep(&lab, &other_host).await, kept);
    assert_eq!(one(&lab, "big-one").await.id, kept.node);
    let all = resources(&lab).await;
    assert!(!all.contains_key("container-4711"), "{:?}", all.keys());
    let closed = one(&lab, "host-1.gpu0").await;
    assert_eq!(closed.status, Status::Unavailable, "a person said so");
    // What the system closes, it opens again.
    let mut out = machine();
    out.closed = "bubblewrap is not installed".parse().ok();
    keep(&lab, &out).await;
    assert_eq!(one(&lab, "big-one").await.status, Status::Unavailable);
    keep(&lab, &machine()).await;
    assert_eq!(one(&lab, "big-one").await.status, Status::Active);
}

async fn a_machine_that_was_entered_by_hand_is_the_same_one(lab: Lab) {
    let lab = lab.with_queue().await;
    lab.add("host-1", "node", Some("rack-b"), None).await;
    lab.add("host-1.cores", "cpu", Some("host-1"), Some(6))
        .await;
    let by_hand = one(&lab, "host-1").await;
    assert_eq!(keep(&lab, &machine()).await.node, by_hand.id);
    let cores = one(&lab, "host-1.cores").await;
    assert_eq!(amount(&cores), (7, "cores".to_owned()), "in its own unit");
    let all = resources(&lab).await;
    assert!(!all.contains_key("host-1.cpu"), "{:?}", all.keys());
    assert_eq!(one(&lab, "host-1").await.parent, by_hand.parent);
}

async fn work_runs_on_it_and_whoever_is_refused_reads_why(lab: Lab) {
    let kept = keep(&lab, &machine()).await;
    let split = Arc::new(Split::new(Arc::new(Simulated::new(World::calm(1))), None));
    let lab = lab.with_backend(split.clone());
    let refused = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    lab.round().await;
    let refused = lab.workload_view(refused).await;
    assert_eq!(refused.workload.state, State::Failed);
    let why = refused.runs[0].said.as_ref().map(ToString::to_string);
    assert_eq!(
        why.as_deref(),
        Some("nothing runs work on the node that it was given")
    );
    split.take(kept.node);
    let number = lab.submit(&lab.ada, lab.ask(1, 1, 10)).await;
    lab.round().await;
    let view = lab.workload_view(number).await;
    assert_eq!(view.workload.state, State::Running);
    assert_eq!(view.runs[0].pieces[0].node, kept.node);
}

async fn cut_off_anywhere_it_comes_to_the_same_end(lab: Lab) {
    let mut polls = 1;
    loop {
        let mut left = polls;
        let done = cut(lab.app.keep_machine(&site(), &machine()), &mut left).await;
        let all = resources(&lab).await;
        let parts = all.keys().filter(|name| name.starts_with("host-1")).count();
        assert!(parts == 0 || parts == 5, "{parts} after {polls} polls");
        if done.is_some() || polls > 2000 {
            break;
        }
        polls += 3;
    }
    keep(&lab, &machine()).await;
    let all = resources(&lab).await;
    assert_eq!(
        all.keys().filter(|name| name.starts_with("host-1")).count(),
        5
    );
    let types = lab
        .app
        .list_types(&lab.admin, &site())
        .await
        .expect("types")
        .1;
    assert_eq!(types.len(), 6, "two of the lab's own, and four: {types:?}");
}
