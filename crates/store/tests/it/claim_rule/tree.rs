//! What a change of the tree asks of the claims on it: moves, removals, capacities.

use berth_model::inventory::Capacity;
use berth_model::{Claim, ResourceId, Take};
use berth_store::{Refused, Result, claims, inventory};

use crate::support::lab::{But, Lab, amount, span};
use crate::support::{Home, fresh_id, hour, on_both, refusal, transact};

on_both!(
    a_subtree_does_not_move_under_what_is_booked,
    a_moved_subtree_takes_its_claims_along,
    a_resource_does_not_move_under_itself,
    what_is_not_there_does_not_move,
    nothing_hangs_below_a_divisible_resource,
    nothing_hangs_below_what_is_gone_or_elsewhere,
    a_capacity_never_falls_below_what_is_promised,
    a_capacity_counts_what_is_promised_inside_containers,
    a_resource_in_use_is_not_removed,
    what_was_removed_takes_no_claims,
    a_site_claims_only_its_own,
);

async fn move_to(lab: &Lab, resource: ResourceId, under: Option<ResourceId>) -> Result<()> {
    transact(&lab.store, async |tx| {
        inventory::move_subtree(tx, lab.site, resource, under).await
    })
    .await
}

async fn a_subtree_does_not_move_under_what_is_booked(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let (rack, other) = (lab.thing(None).await, lab.thing(None).await);
    let server = lab.thing(Some(rack)).await;
    let gpu = lab.thing(Some(server)).await;
    lab.made(lab.claim(other, 0, 4)).await;
    let mine = lab.made(lab.claim(gpu, 3, 5)).await;
    assert_eq!(
        refusal(move_to(&lab, server, Some(other)).await),
        Some(Refused::Claim)
    );
    // Nothing moved: the old rack still knows the claim, the other one does not.
    let refused = refusal(lab.make(&[lab.claim(rack, 4, 5)]).await);
    assert_eq!(refused, Some(Refused::Claim));
    lab.made(lab.claim(other, 4, 5)).await;

    transact(&home.store, async |tx| {
        claims::set_span(tx, mine, span(5, 6)).await
    })
    .await
    .expect("out of the way");
    assert_eq!(refusal(move_to(&lab, server, Some(other)).await), None);
}

async fn a_moved_subtree_takes_its_claims_along(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let (rack, other) = (lab.thing(None).await, lab.thing(None).await);
    let server = lab.thing(Some(rack)).await;
    let gpu = lab.thing(Some(server)).await;
    let cpu = lab.divisible(Some(server), 8).await;
    lab.made(lab.claim(gpu, 0, 1)).await;
    lab.made(lab.claim(cpu, 1, 2).amount(8)).await;
    let refused_at =
        async |on: ResourceId, hour| refusal(lab.make(&[lab.claim(on, hour, hour + 1)]).await);
    assert_eq!(refusal(move_to(&lab, server, Some(other)).await), None);
    for hour in [0, 1] {
        assert_eq!(refused_at(rack, hour).await, None, "the old rack is free");
        for on in [other, server] {
            assert_eq!(refused_at(on, hour).await, Some(Refused::Claim));
        }
    }
    assert_eq!(refused_at(gpu, 0).await, Some(Refused::Claim));
    assert_eq!(
        refused_at(gpu, 1).await,
        None,
        "its neighbour's amounts are no matter"
    );
    let more = lab.claim(cpu, 1, 2).amount(1);
    assert_eq!(refusal(lab.make(&[more]).await), Some(Refused::Amount));

    assert_eq!(refusal(move_to(&lab, server, None).await), None);
    assert_eq!(refused_at(other, 0).await, None, "a root stands alone");
    assert_eq!(refused_at(server, 0).await, Some(Refused::Claim));
    assert_eq!(
        refusal(move_to(&lab, server, Some(rack)).await),
        Some(Refused::Claim),
        "the old rack was booked meanwhile"
    );
}

async fn a_resource_does_not_move_under_itself(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let rack = lab.thing(None).await;
    let server = lab.thing(Some(rack)).await;
    let gpu = lab.thing(Some(server)).await;
    for under in [rack, server, gpu] {
        assert_eq!(
            refusal(move_to(&lab, rack, Some(under)).await),
            Some(Refused::Cycle)
        );
    }
    assert_eq!(refusal(move_to(&lab, gpu, Some(rack)).await), None);
}

async fn what_is_not_there_does_not_move(home: &Home) {
    let (lab, elsewhere) = (Lab::new(&home.store).await, Lab::new(&home.store).await);
    let rack = lab.thing(None).await;
    let theirs = elsewhere.thing(None).await;
    for missing in [theirs, ResourceId(fresh_id())] {
        assert_eq!(
            refusal(move_to(&lab, missing, None).await),
            Some(Refused::Resource)
        );
        assert_eq!(
            refusal(move_to(&lab, rack, Some(missing)).await),
            Some(Refused::Parent)
        );
    }
}

async fn nothing_hangs_below_a_divisible_resource(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let server = lab.thing(None).await;
    let cpu = lab.divisible(Some(server), 8).await;
    let core = lab.resource(ResourceId(fresh_id()), Some(cpu), None);
    let added = transact(&home.store, async |tx| {
        inventory::insert(tx, &core, hour(0)).await
    })
    .await;
    assert_eq!(refusal(added), Some(Refused::Leaf));
    let gpu = lab.thing(None).await;
    assert_eq!(
        refusal(move_to(&lab, gpu, Some(cpu)).await),
        Some(Refused::Leaf)
    );
    assert_eq!(
        refusal(set_capacity(&lab, server, Some(4)).await),
        Some(Refused::Leaf)
    );
}

async fn nothing_hangs_below_what_is_gone_or_elsewhere(home: &Home) {
    let (lab, elsewhere) = (Lab::new(&home.store).await, Lab::new(&home.store).await);
    let theirs = elsewhere.thing(None).await;
    let gone = lab.thing(None).await;
    assert!(remove(&lab, gone).await);
    for parent in [gone, theirs, ResourceId(fresh_id())] {
        let child = lab.resource(ResourceId(fresh_id()), Some(parent), None);
        let added = transact(&home.store, async |tx| {
            inventory::insert(tx, &child, hour(0)).await
        })
        .await;
        assert_eq!(refusal(added), Some(Refused::Parent));
    }
}

async fn set_capacity(lab: &Lab, id: ResourceId, capacity: Option<u64>) -> Result<bool> {
    transact(&lab.store, async |tx| {
        let found = inventory::by_id(tx, lab.site, id).await?;
        let mut resource = found.expect("a resource that is there");
        resource.capacity = capacity.map(|capacity| Capacity {
            amount: amount(capacity),
            unit: "core".parse().expect("a unit"),
        });
        inventory::update(tx, &resource, resource.version).await
    })
    .await
}

async fn a_capacity_never_falls_below_what_is_promised(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let cpu = lab.divisible(None, 8).await;
    lab.made(lab.claim(cpu, 0, 4).amount(3)).await;
    lab.made(lab.claim(cpu, 2, 6).amount(3)).await;
    let last = lab.made(lab.claim(cpu, 6, 8).amount(4)).await;
    for (capacity, refused) in [
        (Some(5), Some(Refused::Amount)),
        (None, Some(Refused::Amount)),
        (Some(6), None),
        (Some(20), None),
        (Some(6), None),
    ] {
        assert_eq!(
            refusal(set_capacity(&lab, cpu, capacity).await),
            refused,
            "{capacity:?}"
        );
    }
    let five = Take::Amount(amount(7));
    let grown = transact(&home.store, async |tx| {
        claims::rebind(tx, last, cpu, five).await
    })
    .await;
    assert_eq!(
        refusal(grown),
        Some(Refused::Amount),
        "the new capacity counts"
    );
}

async fn a_capacity_counts_what_is_promised_inside_containers(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let server = lab.thing(None).await;
    let cpu = lab.divisible(Some(server), 8).await;
    let whole = lab.made(lab.claim(server, 0, 4)).await;
    lab.made(lab.claim(cpu, 0, 2).amount(6).inside(whole)).await;
    lab.made(lab.claim(cpu, 2, 4).amount(2).inside(whole)).await;
    for (capacity, refused) in [
        (Some(5), Some(Refused::Amount)),
        (None, Some(Refused::Amount)),
        (Some(6), None),
    ] {
        assert_eq!(
            refusal(set_capacity(&lab, cpu, capacity).await),
            refused,
            "{capacity:?}"
        );
    }
}

async fn remove(lab: &Lab, id: ResourceId) -> bool {
    transact(&lab.store, async |tx| {
        inventory::remove(tx, lab.site, id, hour(0)).await
    })
    .await
    .expect("an answer")
}

async fn a_resource_in_use_is_not_removed(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let server = lab.thing(None).await;
    let gpu = lab.thing(Some(server)).await;
    let booked = lab.made(lab.claim(gpu, 0, 2)).await;
    assert!(!remove(&lab, server).await, "it has a child");
    assert!(!remove(&lab, gpu).await, "it is booked");
    // Neither attempt left a trace.
    let mut conn = home.read().await;
    for id in [server, gpu] {
        let found = inventory::by_id(&mut conn, lab.site, id)
            .await
            .expect("an answer");
        let found = found.expect("still there");
        assert_eq!(
            (found.parent, found.version),
            ((id == gpu).then_some(server), 1)
        );
    }
    drop(conn);

    transact(&home.store, async |tx| {
        claims::release(tx, &[booked], hour(1)).await
    })
    .await
    .expect("a release");
    assert!(remove(&lab, gpu).await, "only its past is left");
    assert!(remove(&lab, server).await, "its child is gone");
    assert_eq!(
        lab.get(booked).await.resource,
        gpu,
        "the past stays on record"
    );
}

async fn what_was_removed_takes_no_claims(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let (gone, cpu) = (lab.thing(None).await, lab.divisible(None, 8).await);
    let mine = lab.made(lab.claim(cpu, 0, 1)).await;
    assert!(remove(&lab, gone).await);
    let unknown = ResourceId(fresh_id());
    for resource in [gone, unknown] {
        let claims: [Claim; 2] = [lab.claim(cpu, 1, 2), lab.claim(resource, 0, 1)];
        assert_eq!(refusal(lab.make(&claims).await), Some(Refused::Resource));
        let bound = transact(&home.store, async |tx| {
            claims::rebind(tx, mine, resource, Take::Exclusive).await
        })
        .await;
        assert_eq!(refusal(bound), Some(Refused::Resource));
    }
}

async fn a_site_claims_only_its_own(home: &Home) {
    let (lab, elsewhere) = (Lab::new(&home.store).await, Lab::new(&home.store).await);
    let (ours, theirs) = (lab.thing(None).await, elsewhere.thing(None).await);
    let mine = lab.made(lab.claim(ours, 0, 1)).await;
    let refused = refusal(lab.make(&[lab.claim(theirs, 0, 1)]).await);
    assert_eq!(refused, Some(Refused::Resource));
    let bound = transact(&home.store, async |tx| {
        claims::rebind(tx, mine, theirs, Take::Exclusive).await
    })
    .await;
    assert_eq!(refusal(bound), Some(Refused::Resource));
}
