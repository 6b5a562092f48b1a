//! The world is whole, and everything in it came about by the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::PathBuf;

use berth_app::controllers::ByHand;
use berth_app::vault::Vault;
use berth_app::{App, Caller, Settings};
use berth_engine::sweep;
use berth_engine::tree::Tree;
use berth_model::claim::Standing;
use berth_model::person::PersonState;
use berth_model::reservation::{Reservation, State};
use berth_model::site::Site;
use berth_model::{Claim, Resource, ResourceId, Status};
use berth_server::config::Config;
use berth_store::{Store, claims, events, inventory, people, reservations, sites};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::OnceCell;

use super::check_address;
use super::folder::{Folder, is_recent};
use super::people::{CAST, GLOBAL_ADMIN, PASSWORD};
use super::places::this_machine;
use super::play::Tally;
use super::world::{self, Origin};
use crate::machine::ThisMachine;

fn origin() -> Origin {
    Origin {
        seed: 7,
        made_at: "2026-11-18T10:20:30Z".parse().unwrap(),
    }
}

fn database(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("demo.sqlite")
}

async fn store(folder: &tempfile::TempDir) -> Store {
    let url = format!("sqlite:{}", database(folder).display());
    Store::open(&url, 8).await.unwrap()
}

fn vault() -> Vault {
    Vault::from_key(&[7; 32])
}

/// The machine that runs these tests, as the demo has it: with it, Berth knows which environments there are.
fn machine(folder: &tempfile::TempDir) -> ThisMachine {
    let flags = [("data_dir", folder.path().display().to_string())].into();
    let config = Config::layer(None, std::iter::empty(), flags);
    ThisMachine::look(
        &config.unwrap().config,
        &folder.path().join("work"),
        &vault(),
    )
    .unwrap()
}

/// A new world, made as `berth demo` makes it.
pub(super) async fn made(folder: &tempfile::TempDir, origin: Origin) -> (App, Tally) {
    let store = store(folder).await;
    world::create(
        store,
        vault(),
        Settings::default(),
        origin,
        Some(&machine(folder)),
        &mut |_| {},
    )
    .await
    .unwrap()
}

/// The world of [`origin`], which several tests begin with: making one takes longer than all the rest they do.
async fn made_once(folder: &tempfile::TempDir) -> (App, Tally) {
    static MADE: OnceCell<(Vec<u8>, Tally)> = OnceCell::const_new();
    let make = async || {
        let folder = tempfile::tempdir().unwrap();
        let (app, tally) = made(&folder, origin()).await;
        app.store.close().await;
        (std::fs::read(database(&folder)).unwrap(), tally)
    };
    let (world, tally) = MADE.get_or_init(make).await;
    std::fs::write(database(folder), world).unwrap();
    let (app, _) = resumed(folder, origin(), origin().made_at).await;
    (app, tally.clone())
}

/// The world that lies in the folder, carried on until then as `berth demo` carries it on.
async fn resumed(folder: &tempfile::TempDir, origin: Origin, now: Timestamp) -> (App, Tally) {
    world::resume(
        store(folder).await,
        vault(),
        Settings::default(),
        origin,
        Some(&machine(folder)),
        now,
        &mut |_| {},
    )
    .await
    .unwrap()
}

/// The sites whose past is told; nothing was ever run on this machine before.
async fn all_sites(app: &App) -> Vec<Site> {
    let mut reader = app.store.read().await.unwrap();
    let admin = people::by_login(&mut reader, &GLOBAL_ADMIN.parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    let found = sites::list_for(&mut reader, admin.id, true, "", 100)
        .await
        .unwrap();
    let sites = found.into_iter().map(|(site, _)| site);
    sites
        .filter(|site| site.name.as_str() != this_machine::NAME)
        .collect()
}

async fn reservations_of(app: &App, site: &Site) -> Vec<Reservation> {
    let mut reader = app.store.read().await.unwrap();
    let filter = reservations::Filter {
        site: Some(site.id),
        limit: 10_000,
        ..Default::default()
    };
    reservations::list(&mut reader, &filter).await.unwrap()
}

async fn resources_of(app: &App, site: &Site) -> Vec<Resource> {
    let mut reader = app.store.read().await.unwrap();
    inventory::of_site(&mut reader, site.id).await.unwrap()
}

async fn admin(app: &App) -> Caller {
    let mut reader = app.store.read().await.unwrap();
    let person = people::by_login(&mut reader, &GLOBAL_ADMIN.parse().unwrap())
        .await
        .unwrap();
    Caller::direct(person.unwrap())
}

/// Every promise of the world, looked over by someone who had no part in keeping it.
pub(super) async fn check_promises(app: &App) {
    let mut reader = app.store.read().await.unwrap();
    let all = claims::all(&mut reader).await.unwrap();
    drop(reader);
    for site in all_sites(app).await {
        let resources = resources_of(app, &site).await;
        let tree = Tree::new(
            resources
                .iter()
                .map(|resource| (resource.id, resource.parent)),
        )
        .unwrap();
        let capacity = |id: ResourceId| {
            let resource = resources.iter().find(|resource| resource.id == id)?;
            Some(resource.capacity.as_ref()?.amount)
        };
        let of_site: Vec<&Claim> = all.iter().filter(|claim| claim.site == site.id).collect();
        assert!(
            of_site.len() > 50,
            "{} has {} claims",
            site.name,
            of_site.len()
        );
        assert!(of_site.iter().any(|claim| claim.standing == Standing::Past));
        assert_eq!(sweep::broken(&tree, capacity, of_site), [], "{}", site.name);
    }
    let mut hand = ByHand::new(app);
    hand.number().await.unwrap();
    let verified = app.verify_audit(&admin(app).await).await.unwrap();
    assert_eq!((verified.unchained, verified.broken), (0, None));
    assert!(verified.checked > 1000, "{}", verified.checked);
    let mut reader = app.store.read().await.unwrap();
    assert!(events::last_number(&mut reader).await.unwrap() > 1000);
}

#[tokio::test]
async fn the_world_is_whole_and_keeps_every_promise() {
    let folder = tempfile::tempdir().unwrap();
    let (app, tally) = made_once(&folder).await;
    assert_eq!(tally.unforeseen, Vec::<String>::new());
    assert_eq!(
        world::last_seen(&app.store)
            .await
            .unwrap()
            .map(|last| last <= origin().made_at),
        Some(true)
    );
    assert!((400..=650).contains(&tally.booked), "{}", tally.booked);
    assert!(tally.refused > 20, "{}", tally.refused);
    check_promises(&app).await;
    check_sign_ins(&app).await;

    let now = origin().made_at;
    for site in all_sites(&app).await {
        let all = reservations_of(&app, &site).await;
        let mut states: BTreeSet<State> = all.iter().map(|found| found.state).collect();
        // Nothing stays in these two while the controller is awake, so they are found in the histories.
        let mut reader = app.store.read().await.unwrap();
        for reservation in &all {
            let history = reservations::history(&mut reader, reservation.id)
                .await
                .unwrap();
            let passing = history.iter().map(|entry| entry.to);
            states.extend(passing.filter(|state| matches!(state, State::Starting | State::Ending)));
            let moments: Vec<Timestamp> = history.iter().map(|entry| entry.at).collect();
            assert!(moments.is_sorted(), "{moments:?}");
        }
        // A hold lasts two minutes, and nobody here is that undecided.
        let mut lived: BTreeSet<State> = State::ALL.iter().copied().collect();
        lived.remove(&State::Held);
        if site.name.as_str() == "torino" {
            let any = |found: &Reservation| found.terms.any.is_some() && found.items.len() == 3;
            assert!(all.iter().any(any), "somebody took any three of a kind");
        } else {
            lived.remove(&State::Waiting);
        }
        assert_eq!(states, lived, "{}", site.name);
        let lessons = all.iter().filter(|found| found.occurrence.is_some());
        assert!(lessons.count() > 10, "{} has a course", site.name);
        let starts = all
            .iter()
            .map(|found| found.span.start().duration_since(now).as_hours() / 24);
        let (first, last) = (starts.clone().min().unwrap(), starts.max().unwrap());
        assert!(
            first < -50 && (20..=61).contains(&last),
            "{} {first}..{last}",
            site.name
        );

        let statuses: BTreeSet<Status> = resources_of(&app, &site)
            .await
            .iter()
            .map(|found| found.status)
            .collect();
        assert!(statuses.contains(&Status::Maintenance), "{}", site.name);
        let reference = super::places::reference(site.name.as_str()).unwrap();
        let windows = app
            .list_windows(&admin(&app).await, &reference, now, None, 10)
            .await
            .unwrap();
        assert!(
            windows.iter().any(|view| !view.parts.is_empty()),
            "{} has maintenance ahead",
            site.name
        );
        let gave_way = |found: &Reservation| {
            found
                .state_reason
                .as_ref()
                .is_some_and(|reason| reason.as_str().starts_with("cancelled for maintenance"))
        };
        assert!(all.iter().any(gave_way), "{}", site.name);
        let (_, waiting) = app
            .list_join_requests(&admin(&app).await, &reference)
            .await
            .unwrap();
        assert_eq!(waiting.len(), 1, "{}", site.name);
    }
}

/// Everyone signs in with the password shown, but the suspended.
async fn check_sign_ins(app: &App) {
    let mut reader = app.store.read().await.unwrap();
    for character in CAST {
        let login = character.login.parse().unwrap();
        let person = people::by_login(&mut reader, &login).await.unwrap();
        let suspended = person.unwrap().state == PersonState::Suspended;
        assert_eq!(suspended, character.login == "victor", "{login}");
    }
    drop(reader);
    for (login, works) in [("ines", true), ("priya", true), ("victor", false)] {
        let signed_in = app
            .sign_in(&login.parse().unwrap(), &PASSWORD.into(), "a test")
            .await;
        assert_eq!(signed_in.is_ok(), works, "{login}");
    }
}

/// All that a reader of the calendar could tell two worlds apart by; ids are random and mean nothing.
async fn told(app: &App) -> Vec<String> {
    let mut lines = Vec::new();
    for site in all_sites(app).await {
        let names: BTreeMap<ResourceId, String> = resources_of(app, &site)
            .await
            .into_iter()
            .map(|found| (found.id, found.name.into()))
            .collect();
        let mut reader = app.store.read().await.unwrap();
        let filter = reservations::Filter {
            site: Some(site.id),
            limit: 10_000,
            ..Default::default()
        };
        for found in reservations::list(&mut reader, &filter).await.unwrap() {
            // Of any of a kind, which ones is as good as a throw of dice.
            let is_definite = found.terms.any.is_none();
            let items: Vec<_> = found
                .items
                .iter()
                .filter(|_| is_definite)
                .map(|item| (&names[&item.resource], item.take))
                .collect();
            let Reservation {
                title,
                span,
                state,
                state_reason,
                created_at,
                parameters,
                ..
            } = &found;
            let history: Vec<_> = reservations::history(&mut reader, found.id)
                .await
                .unwrap()
                .into_iter()
                .map(|entry| (entry.at, entry.to, entry.span))
                .collect();
            lines.push(format!("{title} {span:?} {state} {state_reason:?} {created_at} {parameters:?} {items:?} {history:?}"));
        }
    }
    lines.sort();
    lines
}

#[tokio::test]
async fn the_same_origin_gives_the_same_world() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let one = told(&made_once(&one).await.0).await;
    let other = told(&made(&other, origin()).await.0).await;
    assert!(one.len() > 400);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

#[tokio::test]
async fn a_world_left_alone_for_five_days_is_carried_on() {
    let folder = tempfile::tempdir().unwrap();
    let (app, before) = made_once(&folder).await;
    app.store.close().await;
    drop(app);
    let later = origin().made_at + SignedDuration::from_hours(5 * 24);
    let (app, tally) = resumed(&folder, origin(), later).await;
    assert_eq!(tally.unforeseen, Vec::<String>::new());
    assert!(tally.booked > before.booked / 30, "{}", tally.booked);
    check_promises(&app).await;
    for site in all_sites(&app).await {
        let all = reservations_of(&app, &site).await;
        let asleep = |found: &&Reservation| {
            found
                .state_reason
                .as_ref()
                .is_some_and(|reason| reason.as_str().contains("not running"))
        };
        assert_eq!(
            all.iter().filter(asleep).count(),
            0,
            "time went on while nobody looked"
        );
        assert!(
            all.iter().any(|found| found.state == State::Active),
            "{}",
            site.name
        );
    }
}

/// Makes a world at that moment, and stops and starts it again so many hours later each time.
async fn check_queues_from(made_at: &str, restarts: &[i64]) {
    let folder = tempfile::tempdir().unwrap();
    let origin = Origin {
        made_at: made_at.parse().unwrap(),
        ..origin()
    };
    let (app, tally) = made(&folder, origin).await;
    assert_eq!(tally.unforeseen, Vec::<String>::new());
    check_queues(&app, "new").await;
    app.store.close().await;
    for hours in restarts {
        let later = origin.made_at + SignedDuration::from_hours(*hours);
        let (app, tally) = resumed(&folder, origin, later).await;
        assert_eq!(tally.unforeseen, Vec::<String>::new());
        check_queues(&app, &format!("{hours} h later")).await;
        app.store.close().await;
    }
}

/// At two sites at least, workloads run and workloads wait.
async fn check_queues(app: &App, when: &str) {
    let admin = admin(app).await;
    let mut busy = Vec::new();
    for site in all_sites(app).await {
        let site = super::places::reference(site.name.as_str()).unwrap();
        let count = app.count_queue(&admin, &site).await.unwrap().all;
        if count.running > 0 && count.waiting > 0 {
            busy.push(site);
        }
    }
    assert!(busy.len() >= 2, "{when}: only {busy:?} run and wait");
}

#[tokio::test]
async fn queues_run_and_wait_on_a_weekday_night_and_an_hour_later() {
    check_queues_from("2026-11-18T02:10:00Z", &[1]).await;
}

#[tokio::test]
async fn queues_run_and_wait_on_a_weekday_morning() {
    let folder = tempfile::tempdir().unwrap();
    let (app, _) = made_once(&folder).await;
    check_queues(&app, "new").await;
}

#[tokio::test]
async fn queues_run_and_wait_on_a_weekend_evening_and_nine_days_later() {
    check_queues_from("2026-11-21T19:05:00Z", &[9 * 24 + 7]).await;
}

#[test]
fn the_demo_listens_on_this_machine_only_and_says_what_else_to_do() {
    let said = |listen: std::net::SocketAddr| check_address(listen).unwrap_err().to_string();
    for outside in ["0.0.0.0:8080", "192.0.2.1:8080", "[::]:8080"] {
        let said = said(outside.parse().unwrap());
        assert!(said.contains("this machine only"), "{said}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let said = said(taken.local_addr().unwrap());
    assert!(
        said.contains("already") && said.contains("--listen"),
        "{said}"
    );
}

#[test]
fn a_folder_is_used_by_one_demo_and_only_a_whole_world_is_carried_on() {
    let path = tempfile::tempdir().unwrap();
    let open = || Folder::open(path.path(), "127.0.0.1:8080".parse().unwrap());
    let folder = open().unwrap();
    let said = open().unwrap_err().to_string();
    assert!(said.contains("another demo runs"), "{said}");

    let theirs = path.path().join("thesis.tex");
    let ours = ["demo.sqlite", "demo.sqlite-wal", "demo.key"].map(|name| path.path().join(name));
    for file in ours.iter().chain([&theirs]) {
        std::fs::write(file, "x").unwrap();
    }
    let (our_work, their_work) = (path.path().join("demo.work"), path.path().join("work"));
    for folder in [&our_work, &their_work] {
        std::fs::create_dir_all(folder.join("homes/ada")).unwrap();
    }
    assert_eq!(folder.world(), None, "cut off before it was whole");
    folder.note(origin()).unwrap();
    assert_eq!(folder.world(), Some(origin()));
    folder.clear().unwrap();
    assert_eq!(folder.world(), None);
    assert!(theirs.exists() && !ours.iter().any(|file| file.exists()));
    assert!(their_work.join("homes/ada").exists() && !our_work.exists());

    let made_at = origin().made_at;
    let after = |days: i64| is_recent(made_at, made_at + SignedDuration::from_hours(24 * days));
    assert!(after(0) && after(30) && !after(60) && !after(-1));
}
