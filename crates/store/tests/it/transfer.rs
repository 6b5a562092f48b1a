//! The move from SQLite to PostgreSQL: everything arrives, or nothing does, and what arrived lives on.

mod people;
mod queue;
mod world;

use anyhow::{Context, Result};
use berth_model::{Amount, ClaimId, Take};
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
        (41, 4, None)
    );
    let heads = (
        audit::of_all(&mut here, &audit::Filter::default(), u64::MAX, 1).await?,
        audit::of_all(&mut there, &audit::Filter::default(), u64::MAX, 1).await?,
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
        claim.take = Take::Amount(Amount::new(amount).unwrap());
        claim
    };
    let claim = |resource, from, till| world.claim(resource, hours(from, till));
    let taken = Some(Refused::Claim);
    let outside = Some(Refused::OutsideContainer);
    for (what, claim, expected) in [
        ("below a claim", claim("slice-1", 19, 21), taken),
        ("above, where it moved", claim("rack-2", 19, 21), taken),
        ("above, where it was", claim("rack-1", 10, 20), None),
        ("above amounts", claim("server-2", 19, 21), taken),
        ("under the window", claim("rack-1", 55, 56), taken),
        ("after a release", claim("server-1", 2, 6), None),
        ("inside, beside others", inside("gpu-1", 12, 18), None),
        ("inside, on another", inside("slice-1", 17, 19), taken),
        ("inside, and beyond", inside("gpu-1", 19, 21), outside),
        ("one too many", part(1), Some(Refused::Amount)),
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
        (46, 0, None)
    );
    assert_eq!(events::last_number(&mut tx).await?, 1_209);

    // The tree grows at every place: below what moved, below a leaf, at the root, in a new site.
    for (name, parent) in [
        ("gpu-3", Some("server-1")),
        ("bay", Some("gpu-1")),
        ("rack-3", None),
    ] {
        let new = world.resource(name, parent);
        inventory::insert(&mut tx, &new, hour(3)).await?;
    }
    let alpha = people::insert_site(&mut tx, "alpha").await?;
    let desk = people::insert_type(&mut tx, alpha, "desk").await?;
    let desk = world::resource(alpha, desk, "desk-1", None);
    inventory::insert(&mut tx, &desk, hour(3)).await?;
    tx.commit().await?;

    // A moved subtree takes its claims along: to a free place, and not to one where they would meet others.
    let mut tx = to.begin().await?;
    let (server, row) = (world.resources["server-1"], world.resources["row"]);
    inventory::move_subtree(&mut tx, world.torino, server, None).await?;
    claims::insert(&mut tx, &[world.claim("rack-2", hours(55, 57))]).await?;
    tx.commit().await?;
    let mut tx = to.begin().await?;
    let rack = Some(world.resources["rack-2"]);
    let meets = inventory::move_subtree(&mut tx, world.torino, row, rack).await;
    assert_eq!(meets.unwrap_err().refused(), Some(Refused::Claim));
    drop(tx);
    let mut tx = to.begin().await?;
    let below = claims::insert(&mut tx, &[world.claim("gpu-1", hours(10, 11))]).await;
    assert_eq!(below.unwrap_err().refused(), Some(Refused::Claim));
    drop(tx);

    // What was written last in the source is not written over: history, too, is numbered on.
    let ords = "SELECT string_agg(ord::text, ',' ORDER BY ord) FROM reservation_history";
    assert_eq!(database.execute(ords)?.trim(), "1,2");
    let mut tx = to.begin().await?;
    let filter = reservations::Filter {
        site: Some(world.torino),
        limit: 10,
        ..Default::default()
    };
    let booked = reservations::list(&mut tx, &filter).await?;
    let history = reservations::history(&mut tx, booked[0].id).await?;
    reservations::insert_history(&mut tx, &history[0]).await?;
    tx.commit().await?;
    assert_eq!(database.execute(ords)?.trim(), "1,2,3");
    Ok(())
}

/// How much of a move there is in the target.
fn people_in(database: &Database) -> Result<String> {
    Ok(database
        .execute("SELECT count(*) FROM person")?
        .trim()
        .to_owned())
}

#[tokio::test]
async fn a_copy_that_changed_is_told() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    moved(&world, &to).await?;
    database.execute("UPDATE person SET display_name = 'Eve' WHERE login = 'ada'")?;
    database.execute("DELETE FROM idempotency WHERE key = 'B'")?;
    let error = transfer::verify(&world.store, &to, &mut |_| {})
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the copy is not what the source is: `idempotency` has 7 rows in the source and 6 in the copy; \
         `person` has 2 rows on both sides, but not the same"
    );
    Ok(())
}

#[tokio::test]
async fn a_copy_that_differs_is_not_kept() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    database.execute(
        "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN NEW.grace_us := NEW.grace_us + 1; RETURN NEW; END $$;
         CREATE TRIGGER meddle BEFORE INSERT ON claim FOR EACH ROW EXECUTE FUNCTION meddle()",
    )?;
    let Err(Error::Differs(differences)) = moved(&world, &to).await else {
        panic!("one of the claims arrived with another grace");
    };
    let tables: Vec<&str> = differences.iter().map(|d| d.table.as_str()).collect();
    assert_eq!(tables, ["claim"]);
    assert_eq!(people_in(&database)?, "0");

    database.execute("DROP TRIGGER meddle ON claim")?;
    moved(&world, &to).await?;
    assert_eq!(people_in(&database)?, "2");
    Ok(())
}

#[tokio::test]
async fn claims_that_break_the_rule_do_not_arrive() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    let mut sqlite = beside(&world).await?;
    sqlx::query("DROP TRIGGER claim_rule_insert")
        .execute(&mut sqlite)
        .await?;
    let mut tx = world.store.begin().await?;
    claims::insert(&mut tx, &[world.claim("gpu-2", hours(15, 16))]).await?;
    tx.commit().await?;

    let error = moved(&world, &to).await.unwrap_err();
    let Error::Table { table, source } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (table.as_str(), source.refused()),
        ("claim", Some(Refused::Claim))
    );
    assert_eq!(people_in(&database)?, "0");
    Ok(())
}

#[tokio::test]
async fn a_tree_too_deep_for_the_target_is_told_by_name() -> Result<()> {
    let world = World::build().await?;
    let (_database, to) = target().await?;
    let mut tx = world.store.begin().await?;
    let mut above = world.resources["slice-1"];
    for depth in 0..30 {
        let mut new = world.resource(&format!("deep-{depth}"), None);
        new.parent = Some(above);
        above = new.id;
        inventory::insert(&mut tx, &new, hour(5)).await?;
    }
    tx.commit().await?;
    let error = moved(&world, &to).await.unwrap_err();
    assert!(
        matches!(&error, Error::NoRoom { resource } if resource.starts_with("deep-")),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn only_an_empty_target_is_filled() -> Result<()> {
    let world = World::build().await?;
    for (statement, what) in [
        (
            "INSERT INTO person VALUES (gen_random_uuid(), 'eve', 'Eve', NULL, 'UTC', false, 'active', 1, 0)",
            "people",
        ),
        (
            "INSERT INTO site VALUES (gen_random_uuid(), 'x', 'x', 'UTC', 'nothing', DEFAULT, 0, 1, 0)",
            "sites",
        ),
        (
            "INSERT INTO event (id, at, kind, subject, audience, data) VALUES (gen_random_uuid(), 0, 'k', 's', 'admins', '{}')",
            "events",
        ),
        (
            "INSERT INTO audit_entry (id, at, actor_kind, action, subject) VALUES (gen_random_uuid(), 0, 'system', 'a', 's')",
            "audit entries",
        ),
    ] {
        let (database, to) = target().await?;
        database.execute(statement)?;
        let error = moved(&world, &to).await.unwrap_err();
        assert!(
            matches!(error, Error::TargetNotEmpty(found) if found == what),
            "{error}"
        );
    }

    // What a server leaves behind that was only started is no content.
    let (database, to) = target().await?;
    database.execute("INSERT INTO lease VALUES ('sequencer', 'host-9', 7, 0)")?;
    moved(&world, &to).await?;
    Ok(())
}

#[tokio::test]
async fn only_from_sqlite_to_postgresql_at_one_version() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    for (from, to) in [
        (&to, &to),
        (&world.store, &world.store),
        (&to, &world.store),
    ] {
        let refused = transfer::run(from, to, &mut |_| {}).await;
        assert!(matches!(refused, Err(Error::Engines)));
    }

    database.execute(
        "DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )?;
    let error = moved(&world, &to).await.unwrap_err();
    assert!(matches!(error, Error::Versions { .. }), "{error}");

    let bare = Database::fresh().await;
    let bare = Store::connect(&bare.url, 1).await?;
    let error = moved(&world, &bare).await.unwrap_err();
    assert!(error.to_string().contains("target: none"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_target_that_someone_is_writing_to_is_left_alone() -> Result<()> {
    let world = World::build().await?;
    let (_database, to) = target().await?;
    let mut busy = to.begin().await?;
    audit::insert(&mut busy, &entry(world.torino, world.ada, 1)).await?;
    let refused = moved(&world, &to).await;
    assert!(matches!(refused, Err(Error::TargetInUse)), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_source_that_someone_is_writing_to_is_not_read() -> Result<()> {
    let world = World::build().await?;
    let (_database, to) = target().await?;
    let other = Store::connect(&world.url, 1).await?;
    let _busy = other.begin().await?;
    let refused = moved(&world, &to).await;
    assert!(matches!(refused, Err(Error::SourceInUse)), "{refused:?}");
    Ok(())
}

/// A later migration brings tables that nothing here has heard of.
#[tokio::test]
async fn tables_to_come_are_carried_too() -> Result<()> {
    let world = World::build().await?;
    let (database, to) = target().await?;
    let mut sqlite = beside(&world).await?;
    for statement in [
        "CREATE TABLE quota (ord INTEGER PRIMARY KEY AUTOINCREMENT, replaces INTEGER REFERENCES quota (ord),
             person BLOB NOT NULL REFERENCES person (id), twice INTEGER GENERATED ALWAYS AS (ord * 2))",
        "CREATE TABLE \"Odd \"\"name\" (id BLOB PRIMARY KEY, \"order\" INTEGER REFERENCES quota (ord), ok BOOLEAN)",
        // Each refers to the one after it.
        "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 9)
         INSERT INTO quota (ord, replaces, person)
         SELECT s.n, CASE WHEN s.n < 9 THEN s.n + 1 END, p.id FROM s, person p WHERE p.login = 'ada'",
        "INSERT INTO \"Odd \"\"name\" VALUES (randomblob(16), 7, TRUE), (randomblob(16), NULL, NULL)",
        "INSERT INTO quota (ord, person) SELECT 20, id FROM person WHERE login = 'ada'",
        "DELETE FROM quota WHERE ord = 20",
    ] {
        sqlx::query(statement).execute(&mut sqlite).await?;
    }
    database.execute(
        "CREATE TABLE quota (ord BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, replaces BIGINT REFERENCES quota (ord),
             person UUID NOT NULL REFERENCES person (id), twice BIGINT GENERATED ALWAYS AS (ord * 2) STORED);
         CREATE TABLE \"Odd \"\"name\" (id UUID PRIMARY KEY, \"order\" BIGINT REFERENCES quota (ord), ok BOOLEAN)",
    )?;
    moved(&world, &to).await?;
    let found = database.execute(
        "SELECT (SELECT count(*) FROM quota), (SELECT count(*) FROM \"Odd \"\"name\" WHERE ok), (SELECT nextval(pg_get_serial_sequence('quota', 'ord')))",
    )?;
    assert_eq!(found.trim(), "9|1|21");
    Ok(())
}
