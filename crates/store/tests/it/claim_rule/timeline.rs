//! Spans, levels of the tree and amounts, on the site's own timeline.

use berth_model::{Claim, ResourceId, Take};
use berth_store::{Engine, Refused, claims};

use crate::support::lab::{But, Lab, amount, span};
use crate::support::{Home, hour, on_both, refusal, transact};

on_both!(
    touching_spans_stand_side_by_side,
    one_excludes_what_is_above_and_below_it,
    siblings_do_not_meet,
    amounts_fill_a_resource_up_and_no_further,
    amounts_give_back_what_they_took,
    amounts_and_the_whole_exclude_each_other,
    what_is_not_divisible_gives_no_amounts,
    a_claim_grows_up_to_its_neighbour,
    a_claim_is_bound_elsewhere_only_where_there_is_room,
    what_was_released_cannot_be_taken_back_over_another,
    a_released_claim_keeps_the_time_it_had,
    several_at_once_stand_or_fall_together,
    what_no_longer_holds_is_not_changed,
    softer_claims_make_room_in_the_same_transaction,
    the_database_itself_refuses,
);

async fn touching_spans_stand_side_by_side(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    lab.made(lab.claim(gpu, 2, 4)).await;
    lab.made(lab.claim(gpu, 4, 6)).await;
    lab.made(lab.claim(gpu, 0, 2)).await;
    for (from, to) in [(3, 5), (0, 6), (2, 4), (1, 3), (5, 9)] {
        let refused = refusal(lab.make(&[lab.claim(gpu, from, to)]).await);
        assert_eq!(refused, Some(Refused::Claim), "{from} to {to}");
    }
}

/// A rack with a server with a GPU.
async fn three_levels(lab: &Lab) -> [ResourceId; 3] {
    let rack = lab.thing(None).await;
    let server = lab.thing(Some(rack)).await;
    let gpu = lab.thing(Some(server)).await;
    [rack, server, gpu]
}

async fn one_excludes_what_is_above_and_below_it(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let levels = three_levels(&lab).await;
    for (hour, first) in (0..).zip(levels) {
        // An hour for each, so that both orders of every pair are tried.
        lab.made(lab.claim(first, hour, hour + 1)).await;
        for second in levels {
            let refused = refusal(lab.make(&[lab.claim(second, hour, hour + 1)]).await);
            assert_eq!(refused, Some(Refused::Claim));
        }
    }
}

async fn siblings_do_not_meet(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let other_gpu = lab.thing(Some(server)).await;
    let [other_rack, ..] = three_levels(&lab).await;
    for resource in [gpu, other_gpu, other_rack] {
        lab.made(lab.claim(resource, 0, 1)).await;
    }
}

async fn amounts_fill_a_resource_up_and_no_further(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let cpu = lab.divisible(None, 8).await;
    lab.made(lab.claim(cpu, 0, 4).amount(5)).await;
    lab.made(lab.claim(cpu, 2, 6).amount(3)).await;
    let one_more = lab.claim(cpu, 3, 5).amount(1);
    assert_eq!(refusal(lab.make(&[one_more]).await), Some(Refused::Amount));
    lab.made(lab.claim(cpu, 4, 6).amount(5)).await;
    let more_than_there_is = lab.claim(cpu, 9, 10).amount(9);
    assert_eq!(
        refusal(lab.make(&[more_than_there_is]).await),
        Some(Refused::Amount)
    );
}

async fn amounts_give_back_what_they_took(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let cpu = lab.divisible(None, 8).await;
    // Full at every moment, but never by the same claims: only the sum at one time counts.
    for from in 0..4 {
        lab.made(lab.claim(cpu, from, from + 1).amount(8)).await;
    }
    let over_all = lab.claim(cpu, 0, 4).amount(1);
    assert_eq!(refusal(lab.make(&[over_all]).await), Some(Refused::Amount));
    let taken = lab.made(lab.claim(cpu, 4, 5).amount(8)).await;
    transact(&home.store, async |tx| {
        claims::rebind(tx, taken, cpu, Take::Amount(amount(6))).await
    })
    .await
    .expect("less than before");
    lab.made(lab.claim(cpu, 4, 5).amount(2)).await;
}

async fn amounts_and_the_whole_exclude_each_other(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let server = lab.thing(None).await;
    let cpu = lab.divisible(Some(server), 8).await;
    for (hour, whole) in [(0, server), (1, cpu)] {
        lab.made(lab.claim(whole, hour, hour + 1)).await;
        let part = lab.claim(cpu, hour, hour + 1).amount(1);
        assert_eq!(refusal(lab.make(&[part]).await), Some(Refused::Claim));
    }
    for (hour, whole) in [(2, server), (3, cpu)] {
        lab.made(lab.claim(cpu, hour, hour + 1).amount(1)).await;
        let refused = refusal(lab.make(&[lab.claim(whole, hour, hour + 1)]).await);
        assert_eq!(refused, Some(Refused::Claim));
    }
}

async fn what_is_not_divisible_gives_no_amounts(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    let part = lab.claim(gpu, 0, 1).amount(1);
    assert_eq!(refusal(lab.make(&[part]).await), Some(Refused::Amount));
}

async fn a_claim_grows_up_to_its_neighbour(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let mine = lab.made(lab.claim(gpu, 2, 3)).await;
    lab.made(lab.claim(gpu, 5, 6)).await;
    lab.made(lab.claim(server, 0, 1)).await;
    let set = async |from, to| {
        transact(&home.store, async |tx| {
            claims::set_span(tx, mine, span(from, to)).await
        })
        .await
    };
    assert_eq!(
        refusal(set(2, 6).await),
        Some(Refused::Claim),
        "a neighbour"
    );
    assert_eq!(refusal(set(0, 3).await), Some(Refused::Claim), "the server");
    assert_eq!(refusal(set(1, 5).await), None);
    assert_eq!(refusal(set(8, 9).await), None);
    assert_eq!(lab.get(mine).await.span, span(8, 9));
}

async fn a_claim_is_bound_elsewhere_only_where_there_is_room(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let (other, free) = (lab.thing(Some(server)).await, lab.thing(None).await);
    let cpu = lab.divisible(Some(server), 8).await;
    let mine = lab.made(lab.claim(gpu, 0, 2)).await;
    lab.made(lab.claim(other, 1, 3)).await;
    lab.made(lab.claim(cpu, 0, 1).amount(6)).await;
    let rebind = async |to, take| {
        transact(&home.store, async |tx| {
            claims::rebind(tx, mine, to, take).await
        })
        .await
    };
    let three = Take::Amount(amount(3));
    assert_eq!(
        refusal(rebind(other, Take::Exclusive).await),
        Some(Refused::Claim)
    );
    assert_eq!(
        refusal(rebind(server, Take::Exclusive).await),
        Some(Refused::Claim)
    );
    assert_eq!(
        refusal(rebind(cpu, Take::Exclusive).await),
        Some(Refused::Claim)
    );
    assert_eq!(refusal(rebind(cpu, three).await), Some(Refused::Amount));
    assert_eq!(refusal(rebind(cpu, Take::Amount(amount(2))).await), None);
    assert_eq!(refusal(rebind(free, Take::Exclusive).await), None);
    lab.made(lab.claim(gpu, 0, 2)).await;
    let refused = refusal(lab.make(&[lab.claim(free, 0, 2)]).await);
    assert_eq!(refused, Some(Refused::Claim), "it blocks where it went");
}

/// Makes a claim hold again, as nothing in the store would.
async fn take_back(home: &Home, claim: &Claim) -> Option<Refused> {
    let id = claim.id.0.simple();
    let sql = match home.store.engine() {
        Engine::Sqlite => format!("UPDATE claim SET standing = 'holding' WHERE id = x'{id}'"),
        Engine::Postgres => format!(
            "UPDATE claim SET standing = 'holding', holds = (SELECT subtree FROM resource r WHERE r.id = claim.resource)
             WHERE id = '{id}'"
        ),
    };
    refusal(home.raw(&sql).await)
}

async fn what_was_released_cannot_be_taken_back_over_another(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let first = lab.claim(gpu, 0, 2);
    lab.made(first.clone()).await;
    let release = async |id| {
        transact(&home.store, async |tx| {
            claims::release(tx, &[id], hour(-1)).await
        })
        .await
        .expect("a release");
    };
    release(first.id).await;
    let second = lab.made(lab.claim(server, 1, 3)).await;
    assert_eq!(take_back(home, &first).await, Some(Refused::Claim));
    release(second).await;
    assert_eq!(take_back(home, &first).await, None);
    let refused = refusal(lab.make(&[lab.claim(gpu, 0, 2)]).await);
    assert_eq!(refused, Some(Refused::Claim), "it holds again");
}

async fn a_released_claim_keeps_the_time_it_had(home: &Home) {
    use berth_model::Standing::{Past, Void};
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    for (from, to, standing, left) in [
        (0, 2, Past, span(0, 2)),
        (2, 6, Past, span(2, 4)),
        (4, 5, Void, span(4, 5)),
        (6, 8, Void, span(6, 8)),
    ] {
        let claim = lab.claim(gpu, from, to);
        lab.made(claim.clone()).await;
        transact(&home.store, async |tx| {
            claims::release(tx, &[claim.id], hour(4)).await
        })
        .await
        .expect("a release");
        let expected = Claim {
            standing,
            span: left,
            ..claim
        };
        assert_eq!(lab.get(expected.id).await, expected);
    }
    lab.made(lab.claim(gpu, 0, 8)).await;
}

async fn several_at_once_stand_or_fall_together(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let (other, cpu) = (
        lab.thing(Some(server)).await,
        lab.divisible(Some(server), 4).await,
    );
    let all = [
        lab.claim(other, 0, 2),
        lab.claim(cpu, 0, 2).amount(3),
        lab.claim(gpu, 0, 2),
        lab.claim(gpu, 2, 3),
    ];
    assert_eq!(refusal(lab.make(&all).await), None);
    for (why, wrong) in [
        (Refused::Claim, lab.claim(gpu, 1, 2)),
        (Refused::Claim, lab.claim(server, 4, 6)),
        (Refused::Amount, lab.claim(cpu, 4, 6).amount(2)),
    ] {
        let beside = [lab.claim(gpu, 5, 6), lab.claim(cpu, 5, 6).amount(3), wrong];
        assert_eq!(refusal(lab.make(&beside).await), Some(why));
    }
    let mut conn = home.read().await;
    assert_eq!(lab.claims(&mut conn).await.len(), all.len());
}

async fn what_no_longer_holds_is_not_changed(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let gpu = lab.thing(None).await;
    let gone = lab.made(lab.claim(gpu, 0, 2)).await;
    transact(&home.store, async |tx| {
        claims::release(tx, &[gone], hour(1)).await
    })
    .await
    .expect("a release");
    let released = lab.get(gone).await;
    let changes = [
        transact(&home.store, async |tx| {
            claims::set_span(tx, gone, span(3, 4)).await
        })
        .await,
        transact(&home.store, async |tx| {
            claims::rebind(tx, gone, gpu, Take::Exclusive).await
        })
        .await,
        transact(&home.store, async |tx| {
            claims::shrink(tx, gone, span(3, 4), hour(0)).await
        })
        .await,
    ];
    for change in changes {
        assert_eq!(refusal(change), Some(Refused::NotHolding));
    }
    assert_eq!(lab.get(gone).await, released);
}

async fn softer_claims_make_room_in_the_same_transaction(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let (soft, later) = (
        lab.claim(gpu, 0, 4).yielding(),
        lab.claim(gpu, 4, 5).yielding(),
    );
    lab.make(&[soft.clone(), later.clone()])
        .await
        .expect("room");
    let firm = lab.claim(server, 2, 6);
    assert_eq!(
        refusal(lab.make(std::slice::from_ref(&firm)).await),
        Some(Refused::Claim),
        "the database knows no softness; whoever books makes room first"
    );
    transact(&home.store, async |tx| {
        claims::shrink(tx, soft.id, span(0, 2), hour(0)).await?;
        claims::release(tx, &[later.id], hour(0)).await?;
        claims::insert(tx, &[firm]).await
    })
    .await
    .expect("room was made");
    assert_eq!(lab.get(soft.id).await.span, span(0, 2));
}

/// Whatever code is in between, it is the table that refuses: here nothing of ours is asked at all.
async fn the_database_itself_refuses(home: &Home) {
    let lab = Lab::new(&home.store).await;
    let [_, server, gpu] = three_levels(&lab).await;
    let cpu = lab.divisible(Some(server), 8).await;
    let booked = lab.claim(gpu, 0, 2);
    let (beside, part) = (lab.claim(gpu, 2, 4), lab.claim(cpu, 4, 6).amount(5));
    let (more, next) = (lab.claim(cpu, 4, 6).amount(2), lab.claim(gpu, 4, 5));
    lab.make(&[booked, beside.clone(), next.clone(), part, more.clone()])
        .await
        .expect("room");
    let literal = |id: uuid::Uuid| match home.store.engine() {
        Engine::Sqlite => format!("x'{}'", id.simple()),
        Engine::Postgres => format!("'{id}'"),
    };
    let [beside, next, more] = [beside, next, more].map(|claim| literal(claim.id.0));
    let server = literal(server.0);
    let holds = match home.store.engine() {
        Engine::Sqlite => String::new(),
        Engine::Postgres => format!(", holds = (SELECT subtree FROM resource WHERE id = {server})"),
    };
    for (sql, why) in [
        (
            format!("UPDATE claim SET starts = starts - 1 WHERE id = {beside}"),
            Refused::Claim,
        ),
        (
            format!("UPDATE claim SET ends = ends + 3600000000 WHERE id = {beside}"),
            Refused::Claim,
        ),
        (
            format!("UPDATE claim SET amount = NULL WHERE id = {more}"),
            Refused::Claim,
        ),
        (
            format!("UPDATE claim SET amount = 4 WHERE id = {more}"),
            Refused::Amount,
        ),
        (
            format!("UPDATE claim SET resource = {server}{holds} WHERE id = {next}"),
            Refused::Claim,
        ),
    ] {
        assert_eq!(refusal(home.raw(&sql).await), Some(why), "{sql}");
    }
    let allowed = format!("UPDATE claim SET amount = 3 WHERE id = {more}");
    assert_eq!(refusal(home.raw(&allowed).await), None);
}
