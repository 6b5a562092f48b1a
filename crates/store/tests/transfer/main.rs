//! The move from SQLite to PostgreSQL: everything arrives, or nothing does, and what arrived lives on.

mod world;

use anyhow::{Context, Result};
use berth_model::{ClaimId, Take};
use berth_store::transfer::{self, Error, Progress, Report, Step};
use berth_store::{Refused, Store, audit, claims, events, inventory, reservations, sequencer};
use berth_testkit::postgres::Database;
use sqlx::{Connection, SqliteConnection};
use world::{World, entry, event, hour, hours};

async fn target() -> Result<(Database, Store)> {
    let database = Database::fresh().await;
    let store = Store::open(&database.url, 4).await?;
    Ok((database, store))
}

async fn moved(world: &World, to: &Store) -> transfer::Result<Report> {
    transfer::run(&world.store, to, &mut |_| {}).await
}

/// A connection to the source beside the store: to break what the store itself would never break.
async fn beside(world: &World) -> Result<SqliteConnection> {
    Ok(SqliteConnection::connect(&world.url).await?)
}

#[tokio::test]
async fn everything_arrives() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    let mut steps: Vec<Progress> = Vec::new();
    let report = transfer::run(&world.store, &to, &mut |step| steps.push(step)).await?;

    for carried in &report.tables {
        assert!(
            carried.digest.rows > 0,
            "`{}` is empty in this test, which then shows nothing about it",
            carried.table
        );
        for step in [Step::Copying, Step::Checking] {
            let last = steps
                .iter()
                .rfind(|p| p.step == step && p.table == carried.table)
                .context("each table reports each step")?;
            assert_eq!(
                (last.rows, last.rows_total),
                (carried.digest.rows, carried.digest.rows)
            );
        }
    }
    let tables = database.execute(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'",
    )?;
    assert_eq!(
        report.tables.len().to_string(),
        tables.trim(),
        "no table of the target is left out"
    );

    let (mut here, mut there) = (world.store.read().await?, to.read().await?);
    let chain = audit::verify(&mut there).await?;
    assert_eq!(chain, audit::verify(&mut here).await?);
    assert_eq!(
        (chain.checked, chain.unchained, chain.broken),
        (40, 3, None)
    );
    let heads = (
        audit::of_all(&mut here, u64::MAX, 1).await?,
        audit::of_all(&mut there, u64::MAX, 1).await?,
    );
    assert_eq!(heads.0, heads.1);
    assert_eq!(
        claims::counts(&mut here).await?,
        claims::counts(&mut there).await?
    );
    assert_eq!(
        events::after(&mut here, 0, 5000).await?,
        events::after(&mut there, 0, 5000).await?
    );
    assert_eq!(
        inventory::of_site(&mut here, world.torino).await?,
        inventory::of_site(&mut there, world.torino).await?
    );
    assert_eq!(
        report,
        transfer::verify(&world.store, &to, &mut |_| {}).await?
    );
    Ok(())
}

#[tokio::test]
async fn the_rule_still_holds_where_it_arrived() -> Result<()> {
    let world = World::build().await?;
    let (_database, to) = target().await?;
    moved(&world, &to).await?;

    let inside = |resource: &str, from, till| {
        let mut claim = world.claim(resource, hours(from, till));
        claim.container = Some(world.container);
        claim
    };
    let part = |amount| {
        let mut claim = world.claim("cores", hours(19, 21));
        claim.take = Take::Amount(berth_model::Amount::new(amount).unwrap());
        claim
    };
    for (what, claim, expected) in [
        (
            "below a claim",
            world.claim("slice-1", hours(19, 21)),
            Some(Refused::Claim),
        ),
        (
            "above a claim, where it was moved to",
            world.claim("rack-2", hours(19, 21)),
            Some(Refused::Claim),
        ),
        (
            "above amounts",
            world.claim("server-2", hours(19, 21)),
            Some(Refused::Claim),
        ),
        (
            "where it was moved from",
            world.claim("rack-1", hours(10, 20)),
            None,
        ),
        (
            "under the window",
            world.claim("rack-1", hours(55, 56)),
            Some(Refused::Claim),
        ),
        (
            "in the past of a released claim",
            world.claim("server-1", hours(2, 6)),
            None,
        ),
        (
            "inside, beside what is inside",
            inside("gpu-1", 12, 18),
            None,
        ),
        (
            "inside, on what is inside",
            inside("slice-1", 17, 19),
            Some(Refused::Claim),
        ),
        (
            "inside, but beyond it",
            inside("gpu-1", 19, 21),
            Some(Refused::OutsideContainer),
        ),
        ("the last amount", part(1), Some(Refused::Amount)),
    ] {
        let mut tx = to.begin().await?;
        let refused = claims::insert(&mut tx, &[claim])
            .await
            .err()
            .map(|e| e.refused());
        assert_eq!(refused, expected.map(Some), "{what}");
    }
    let mut there = to.read().await?;
    let kept = claims::get(&mut there, ClaimId(uuid::Uuid::from_u128(1))).await?;
    assert_eq!(kept.context("the innermost claim")?.span, hours(13, 14));
    Ok(())
}

#[tokio::test]
async fn life_goes_on_in_the_new_place() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    moved(&world, &to).await?;

    // New rows get numbers of their own, and the chain goes on where it was.
    let mut tx = to.begin().await?;
    audit::insert(&mut tx, &entry(world.torino, world.ada, 100)).await?;
    events::insert(&mut tx, &event(world.torino, world.ada, 100)).await?;
    while sequencer::step(&mut tx).await? > 0 {}
    let chain = audit::verify(&mut tx).await?;
    assert_eq!(
        (chain.checked, chain.unchained, chain.broken),
        (44, 0, None)
    );
    assert_eq!(events::last_number(&mut tx).await?, 1_207);

    // The tree grows at every place: below what moved, below a leaf, at the root, in a new site.
    for (name, parent) in [
        ("gpu-3", Some("server-1")),
        ("bay", Some("gpu-1")),
        ("rack-3", None),
    ] {
        let new = world.resource(name, parent);
        inventory::insert(&mut tx, &new, hour(3)).await?;
    }
    let alpha = world::insert_site(&mut tx, "alpha").await?;
    let desk = world::insert_type(&mut tx, alpha, "desk").await?;
    let desk = world::resource(alpha, desk, "desk-1", None);
    inventory::insert(&mut tx, &desk, hour(3)).await?;
    tx.commit().await?;

    // A moved subtree takes its claims along, and is still refused where they would meet others.
    let mut tx = to.begin().await?;
    let (server, cores) = (world.resources["server-1"], world.resources["cores"]);
    inventory::move_subtree(&mut tx, world.torino, server, None).await?;
    tx.commit().await?;
    let mut tx = to.begin().await?;
    claims::insert(&mut tx, &[world.claim("rack-2", hours(5, 9))]).await?;
    let (row, rack) = (world.resources["row"], world.resources["rack-2"]);
    inventory::move_subtree(&mut tx, world.torino, row, Some(rack)).await?;
    tx.commit().await?;
    let mut tx = to.begin().await?;
    let meets = inventory::move_subtree(&mut tx, world.torino, server, Some(cores)).await;
    assert_eq!(meets.unwrap_err().refused(), Some(Refused::Leaf));
    drop(tx);

    // What was written last in the source is not written over: history, too, is numbered on.
    let ords = "SELECT string_agg(ord::text, ',' ORDER BY ord) FROM reservation_history";
    assert_eq!(database.execute(ords)?.trim(), "1,2");
    let mut tx = to.begin().await?;
    let rows = reservations::list(
        &mut tx,
        &reservations::Filter {
            site: Some(world.torino),
            limit: 10,
            ..Default::default()
        },
    )
    .await?;
    let history = reservations::history(&mut tx, rows[0].id).await?;
    reservations::insert_history(&mut tx, &history[0]).await?;
    tx.commit().await?;
    assert_eq!(database.execute(ords)?.trim(), "1,2,3");
    Ok(())
}
