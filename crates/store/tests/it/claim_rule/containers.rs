//! Claims that stand inside a claim.

use berth_model::{Claim, ClaimId, ResourceId, Span, Standing, Take};
use berth_store::{Engine, Refused, Result, claims, inventory};

use crate::support::lab::{But, Lab, amount, span};
use crate::support::{Home, fresh_id, hour, on_both, refusal, transact};

on_both!(
    a_claim_keeps_within_its_container,
    inside_and_outside_do_not_meet,
    different_containers_do_not_meet,
    a_part_is_shared_up_to_the_part,
    a_part_holds_no_whole,
    what_is_gone_contains_nothing,
    container_and_content_are_made_together,
    the_database_keeps_a_container_while_something_stands_inside,
    releasing_a_container_releases_what_stands_inside,
    shrinking_a_container_settles_what_stands_inside,
    a_container_does_not_leave_its_content_behind,
    a_container_does_not_shrink_below_what_is_shared_inside,
    a_container_moves_with_its_subtree,
    what_stands_inside_does_not_move_out,
);

/// A server with a GPU and a CPU of 8, and a claim on the server from 0 to 10.
struct Booked {
    lab: Lab,
    server: ResourceId,
    gpu: ResourceId,
    cpu: ResourceId,
    container: ClaimId,
}

async fn booked(home: &Home) -> Booked {
    let lab = Lab::new(&home.store).await;
    let server = lab.thing(None).await;
    let gpu = lab.thing(Some(server)).await;
    let cpu = lab.divisible(Some(server), 8).await;
    let container = lab.made(lab.claim(server, 0, 10)).await;
    Booked {
        lab,
        server,
        gpu,
        cpu,
        container,
    }
}

async fn set_span(home: &Home, id: ClaimId, span: Span) -> Result<()> {
    transact(&home.store, async |tx| claims::set_span(tx, id, span).await).await
}

async fn rebind(home: &Home, id: ClaimId, to: ResourceId, take: Take) -> Result<()> {
    transact(&home.store, async |tx| {
        claims::rebind(tx, id, to, take).await
    })
    .await
}

async fn a_claim_keeps_within_its_container(home: &Home) {
    let Booked {
        lab,
        server,
        gpu,
        container,
        ..
    } = booked(home).await;
    let elsewhere = lab.thing(None).await;
    let outside = Some(Refused::OutsideContainer);
    for (why, claim) in [
        ("too early", lab.claim(gpu, -1, 2)),
        ("too late", lab.claim(gpu, 8, 11)),
        ("before it", lab.claim(gpu, -2, 0)),
        ("another server", lab.claim(elsewhere, 0, 1)),
    ] {
        assert_eq!(
            refusal(lab.make(&[claim.inside(container)]).await),
            outside,
            "{why}"
        );
    }
    let inner = lab.made(lab.claim(gpu, 0, 10).inside(container)).await;
    let refused = refusal(lab.make(&[lab.claim(server, 0, 1).inside(inner)]).await);
    assert_eq!(refused, outside, "a container is above, never below");
    lab.made(lab.claim(gpu, 2, 3).inside(inner)).await;

    assert_eq!(refusal(set_span(home, inner, span(0, 11)).await), outside);
    assert_eq!(
        refusal(rebind(home, inner, elsewhere, Take::Exclusive).await),
        outside
    );
}

async fn inside_and_outside_do_not_meet(home: &Home) {
    let Booked {
        lab,
        server,
        gpu,
        container,
        ..
    } = booked(home).await;
    let inner = lab.made(lab.claim(gpu, 0, 5).inside(container)).await;
    let claim = Some(Refused::Claim);
    assert_eq!(
        refusal(lab.make(&[lab.claim(gpu, 6, 7)]).await),
        claim,
        "the container holds"
    );
    let beside = lab.claim(server, 4, 6).inside(container);
    assert_eq!(refusal(lab.make(&[beside]).await), claim, "peers meet");
    lab.made(lab.claim(server, 5, 6).inside(container)).await;
    assert_eq!(refusal(set_span(home, inner, span(0, 6)).await), claim);
}

async fn different_containers_do_not_meet(home: &Home) {
    let Booked {
        lab,
        gpu,
        container,
        ..
    } = booked(home).await;
    let (first, second) = (
        lab.made(lab.claim(gpu, 0, 4).inside(container)).await,
        lab.made(lab.claim(gpu, 4, 8).inside(container)).await,
    );
    // The same hours of the same GPU, three scopes deep.
    let deeper = lab.made(lab.claim(gpu, 0, 4).inside(first)).await;
    lab.made(lab.claim(gpu, 0, 4).inside(deeper)).await;
    lab.made(lab.claim(gpu, 4, 8).inside(second)).await;
    let refused = refusal(lab.make(&[lab.claim(gpu, 1, 2).inside(first)]).await);
    assert_eq!(refused, Some(Refused::Claim));
}

async fn a_part_is_shared_up_to_the_part(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let cpu = lab.divisible(None, 8).await;
    let mine = lab.made(lab.claim(cpu, 0, 10).amount(4)).await;
    let theirs = lab.made(lab.claim(cpu, 0, 10).amount(4)).await;
    lab.made(lab.claim(cpu, 0, 5).amount(3).inside(mine)).await;
    lab.made(lab.claim(cpu, 2, 8).amount(1).inside(mine)).await;
    let refused_in = async |container, from, value| {
        let claim = lab
            .claim(cpu, from, from + 1)
            .amount(value)
            .inside(container);
        refusal(lab.make(&[claim]).await)
    };
    assert_eq!(refused_in(mine, 3, 1).await, Some(Refused::Amount));
    assert_eq!(
        refused_in(mine, 8, 5).await,
        Some(Refused::Amount),
        "there are 8, but mine are 4"
    );
    assert_eq!(refused_in(mine, 8, 4).await, None);
    assert_eq!(
        refused_in(theirs, 3, 4).await,
        None,
        "what I share is no matter to others"
    );
}

async fn a_part_holds_no_whole(home: &Home) {
    let Booked {
        lab,
        cpu,
        container,
        ..
    } = booked(home).await;
    let part = lab
        .made(lab.claim(cpu, 0, 10).amount(4).inside(container))
        .await;
    let whole = lab.claim(cpu, 0, 1).inside(part);
    assert_eq!(
        refusal(lab.make(&[whole]).await),
        Some(Refused::OutsideContainer)
    );
    let inner = lab.made(lab.claim(cpu, 0, 1).amount(2).inside(part)).await;
    assert_eq!(
        refusal(rebind(home, inner, cpu, Take::Exclusive).await),
        Some(Refused::OutsideContainer)
    );
}

async fn what_is_gone_contains_nothing(home: &Home) {
    let Booked {
        lab,
        gpu,
        container,
        ..
    } = booked(home).await;
    transact(&home.store, async |tx| {
        claims::release(tx, &[container], hour(2)).await
    })
    .await
    .expect("a release");
    for gone in [container, ClaimId(fresh_id())] {
        let late = lab.claim(gpu, 0, 1).inside(gone);
        assert_eq!(
            refusal(lab.make(&[late]).await),
            Some(Refused::OutsideContainer)
        );
    }
}

async fn container_and_content_are_made_together(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    let outer = lab.claim(gpu, 0, 4);
    let inner = lab.claim(gpu, 0, 4).inside(outer.id);
    let innermost = lab.claim(gpu, 0, 2).inside(inner.id);
    lab.make(&[outer, inner, innermost.clone()])
        .await
        .expect("all three");
    assert_eq!(lab.get(innermost.id).await, innermost);
}

async fn the_database_keeps_a_container_while_something_stands_inside(home: &Home) {
    let Booked {
        lab,
        gpu,
        container,
        ..
    } = booked(home).await;
    lab.made(lab.claim(gpu, 2, 4).inside(container)).await;
    let id = container.0.simple();
    let release = match home.store.engine() {
        Engine::Sqlite => format!("UPDATE claim SET standing = 'void' WHERE id = x'{id}'"),
        Engine::Postgres => {
            format!("UPDATE claim SET standing = 'void', holds = NULL WHERE id = '{id}'")
        }
    };
    assert_eq!(refusal(home.raw(&release).await), Some(Refused::HasInside));
    for (from, to, refused) in [
        (3, 10, Some(Refused::HasInside)),
        (0, 3, Some(Refused::HasInside)),
        (2, 4, None),
    ] {
        assert_eq!(
            refusal(set_span(home, container, span(from, to)).await),
            refused
        );
    }
    assert_eq!(lab.get(container).await.standing, Standing::Holding);
}

async fn releasing_a_container_releases_what_stands_inside(home: &Home) {
    let Booked {
        lab,
        gpu,
        cpu,
        container,
        ..
    } = booked(home).await;
    let inner = lab.made(lab.claim(gpu, 2, 6).inside(container)).await;
    let innermost = lab.made(lab.claim(gpu, 4, 6).inside(inner)).await;
    let later = lab
        .made(lab.claim(cpu, 5, 6).amount(1).inside(container))
        .await;
    transact(&home.store, async |tx| {
        claims::release(tx, &[container], hour(3)).await
    })
    .await
    .expect("a release");
    for (id, standing, span) in [
        (container, Standing::Past, span(0, 3)),
        (inner, Standing::Past, span(2, 3)),
        (innermost, Standing::Void, span(4, 6)),
        (later, Standing::Void, span(5, 6)),
    ] {
        let claim = lab.get(id).await;
        assert_eq!((claim.standing, claim.span), (standing, span));
    }
    lab.made(lab.claim(gpu, 0, 10)).await;
}

async fn shrinking_a_container_settles_what_stands_inside(home: &Home) {
    let Booked {
        lab,
        gpu,
        cpu,
        container,
        ..
    } = booked(home).await;
    let kept = lab
        .made(lab.claim(cpu, 1, 2).amount(1).inside(container))
        .await;
    let cut = lab.made(lab.claim(gpu, 2, 8).inside(container)).await;
    let cut_deeper = lab.made(lab.claim(gpu, 4, 8).inside(cut)).await;
    let gone_deeper = lab.made(lab.claim(gpu, 2, 3).inside(cut)).await;
    let gone = lab.made(lab.claim(gpu, 8, 9).inside(container)).await;
    transact(&home.store, async |tx| {
        claims::shrink(tx, container, span(1, 5), hour(0)).await
    })
    .await
    .expect("it shrinks");
    for (id, standing, span) in [
        (container, Standing::Holding, span(1, 5)),
        (kept, Standing::Holding, span(1, 2)),
        (cut, Standing::Holding, span(2, 5)),
        (cut_deeper, Standing::Holding, span(4, 5)),
        (gone_deeper, Standing::Holding, span(2, 3)),
        (gone, Standing::Void, span(8, 9)),
    ] {
        let claim = lab.get(id).await;
        assert_eq!((claim.standing, claim.span), (standing, span));
    }
}

async fn a_container_does_not_leave_its_content_behind(home: &Home) {
    let Booked {
        lab,
        server,
        gpu,
        cpu,
        container,
    } = booked(home).await;
    let elsewhere = lab.thing(None).await;
    let inner = lab.made(lab.claim(gpu, 0, 5).inside(container)).await;
    let innermost = lab.made(lab.claim(gpu, 0, 5).inside(inner)).await;
    let inside = Some(Refused::HasInside);
    assert_eq!(
        refusal(rebind(home, container, elsewhere, Take::Exclusive).await),
        inside
    );
    let two = Take::Amount(amount(2));
    assert_eq!(refusal(rebind(home, container, cpu, two).await), inside);
    assert_eq!(
        refusal(rebind(home, inner, server, Take::Exclusive).await),
        None,
        "its content still lies within"
    );
    assert_eq!(
        refusal(rebind(home, innermost, server, Take::Exclusive).await),
        None
    );
    assert_eq!(
        refusal(rebind(home, inner, gpu, Take::Exclusive).await),
        inside
    );
}

async fn a_container_does_not_shrink_below_what_is_shared_inside(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let cpu = lab.divisible(None, 8).await;
    let container = lab.made(lab.claim(cpu, 0, 10).amount(6)).await;
    lab.made(lab.claim(cpu, 0, 5).amount(3).inside(container))
        .await;
    lab.made(lab.claim(cpu, 4, 8).amount(2).inside(container))
        .await;
    let part = |value| Take::Amount(amount(value));
    assert_eq!(
        refusal(rebind(home, container, cpu, part(4)).await),
        Some(Refused::Amount)
    );
    assert_eq!(
        refusal(rebind(home, container, cpu, part(9)).await),
        Some(Refused::Amount)
    );
    assert_eq!(refusal(rebind(home, container, cpu, part(5)).await), None);
    assert_eq!(
        refusal(rebind(home, container, cpu, Take::Exclusive).await),
        None
    );
    assert_eq!(
        refusal(rebind(home, container, cpu, part(4)).await),
        Some(Refused::Amount)
    );
}

async fn move_to(lab: &Lab, resource: ResourceId, under: Option<ResourceId>) -> Result<()> {
    transact(&lab.store, async |tx| {
        inventory::move_subtree(tx, lab.site, resource, under).await
    })
    .await
}

async fn a_container_moves_with_its_subtree(home: &Home) {
    let Booked {
        lab,
        server,
        gpu,
        container,
        ..
    } = booked(home).await;
    let rack = lab.thing(None).await;
    lab.made(lab.claim(gpu, 0, 5).inside(container)).await;
    assert_eq!(refusal(move_to(&lab, server, Some(rack)).await), None);
    let claims: [Claim; 2] = [
        lab.claim(rack, 9, 10),
        lab.claim(gpu, 4, 6).inside(container),
    ];
    for claim in claims {
        assert_eq!(refusal(lab.make(&[claim]).await), Some(Refused::Claim));
    }
    lab.made(lab.claim(gpu, 5, 6).inside(container)).await;
}

async fn what_stands_inside_does_not_move_out(home: &Home) {
    let Booked {
        lab,
        server,
        gpu,
        container,
        ..
    } = booked(home).await;
    let slice = lab.thing(Some(gpu)).await;
    lab.made(lab.claim(slice, 0, 5).inside(container)).await;
    for moved in [gpu, slice] {
        let refused = refusal(move_to(&lab, moved, None).await);
        assert!(
            matches!(
                refused,
                Some(Refused::OutsideContainer | Refused::HasInside)
            ),
            "{refused:?}"
        );
    }
    assert_eq!(
        refusal(move_to(&lab, slice, Some(server)).await),
        None,
        "still below the server"
    );
}
