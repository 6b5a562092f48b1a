//! The demo's world: made once, two months deep, and carried on from where it was left.

use std::sync::Arc;

use anyhow::Context;
use berth_app::calendar::FreeRequest;
use berth_app::clock::Clock;
use berth_app::controllers::ByHand;
use berth_app::inventory::ResourceFilter;
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, PersonChange, Settings};
use berth_model::site::Role;
use berth_model::{Reference, Status};
use berth_store::{Store, audit, people};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;

use super::almanac::{Almanac, ZONE};
use super::chance::Chance;
use super::clock::DemoClock;
use super::habits::lasting;
use super::jobs;
use super::machine::Runs;
use super::people::{CAST, Character, GLOBAL_ADMIN, PASSWORD, Stay};
use super::places::{self, reference, this_machine};
use super::play::{self, Player, Tally, caller, join_project};
use super::queues;
use super::script::{self, DAYS_BEFORE, Scene, Season};
use crate::machine::ThisMachine;

/// What decides everything in a world: the same origin gives the same world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    pub seed: u64,
    pub made_at: Timestamp,
}

impl Origin {
    pub fn chance(&self) -> Chance {
        Chance::new(self.seed)
    }

    pub fn almanac(&self) -> Almanac {
        Almanac::new(self.made_at)
    }
}

/// How far it has come, in percent.
pub type Progress<'a> = &'a mut (dyn FnMut(usize) + Send);

/// Makes the world in an empty store; the app's clock then shows real time.
pub async fn create(
    store: Store,
    vault: Vault,
    settings: Settings,
    origin: Origin,
    machine: Option<&ThisMachine>,
    progress: Progress<'_>,
) -> anyhow::Result<(App, Tally)> {
    let first_day = origin.made_at - SignedDuration::from_hours(24 * DAYS_BEFORE);
    let clock = Arc::new(DemoClock::at(first_day));
    let runs = Runs::new(origin, &clock, machine);
    let app = world_app(store, &clock, vault, settings, &runs);
    furnish(&app)
        .await
        .context("cannot furnish the demo's sites")?;
    let scenes = script::beginning(&origin.chance(), &origin.almanac(), origin.made_at);
    let tally = live_through(&app, &clock, origin, scenes, origin.made_at, progress).await?;
    runs.open(&app).await?;
    Ok((app, tally))
}

/// Carries the world on from when it was last seen until now, as if it had been running all the time.
pub async fn resume(
    store: Store,
    vault: Vault,
    settings: Settings,
    origin: Origin,
    machine: Option<&ThisMachine>,
    now: Timestamp,
    progress: Progress<'_>,
) -> anyhow::Result<(App, Tally)> {
    let last_seen = last_seen(&store).await?.unwrap_or(origin.made_at);
    let clock = Arc::new(DemoClock::at(last_seen));
    let runs = Runs::new(origin, &clock, machine);
    let app = world_app(store, &clock, vault, settings, &runs);
    runs.stand_by(&app).await?;
    let season = Season {
        from: last_seen,
        until: now,
    };
    let scenes = script::meanwhile(&origin.chance(), &origin.almanac(), season);
    let tally = live_through(&app, &clock, origin, scenes, now, progress).await?;
    runs.open(&app).await?;
    Ok((app, tally))
}

/// Its machines are simulated but for one; what people submit elsewhere only seems to run.
fn world_app(
    store: Store,
    clock: &Arc<DemoClock>,
    vault: Vault,
    settings: Settings,
    runs: &Runs,
) -> App {
    let (clock, backend) = (clock.clone(), runs.backend.clone());
    App::with_backend(store, clock, vault, settings, Some(backend))
}

/// When anything was last done in this world.
pub async fn last_seen(store: &Store) -> anyhow::Result<Option<Timestamp>> {
    let mut reader = store.read().await?;
    let newest = audit::last(&mut reader).await?;
    Ok(newest.map(|chained| chained.entry.at))
}

/// How long before its end people begin to be told what concerns them: there is something to read, and not too much.
const TOLD: SignedDuration = SignedDuration::from_hours(3 * 24);

/// Plays the scenes, each at its time, and lets time do its own work in between; then fills the queues.
async fn live_through(
    app: &App,
    clock: &DemoClock,
    origin: Origin,
    scenes: Vec<Scene>,
    until: Timestamp,
    progress: Progress<'_>,
) -> anyhow::Result<Tally> {
    let mut hand = ByHand::new(app);
    let mut player = Player::new(app).await?;
    let count = scenes.len();
    for (done, scene) in scenes.into_iter().enumerate() {
        progress(100 * done / count);
        pass_time(&mut hand, clock, scene.at, until - jobs::BEFORE).await?;
        if scene.at >= until - TOLD {
            hand.notify().await?;
        }
        player.play(scene).await?;
    }
    pass_time(&mut hand, clock, until, until - jobs::BEFORE).await?;
    let chance = origin.chance().fork("queues").fork(&until.to_string());
    let today = origin.almanac().day_of(until);
    queues::fill(app, &mut hand, &mut player, &chance, today).await?;
    hand.notify().await?;
    hand.give_back().await;
    clock.let_go();
    progress(100);
    Ok(player.tally)
}

/// Turns the clock from one thing that falls due to the next, so that each is recorded when it happened. Before work
/// is submitted there is nothing for the queue to do.
async fn pass_time(
    hand: &mut ByHand,
    clock: &DemoClock,
    to: Timestamp,
    work_begins: Timestamp,
) -> anyhow::Result<()> {
    loop {
        let queue = match clock.now() >= work_begins {
            true => hand.carry_queues_on().await?,
            false => None,
        };
        let due = hand.next_due().await?.into_iter().chain(queue).min();
        let Some(due) = due.filter(|due| *due <= to) else {
            break;
        };
        clock.advance_to(due);
        hand.catch_up().await?;
    }
    clock.advance_to(to);
    Ok(())
}

/// The first day: the admin makes the sites and lets in those who are there from the start.
pub(super) async fn furnish(app: &App) -> anyhow::Result<()> {
    let mut admin = None;
    for character in CAST {
        let made = join_berth(app, admin.as_ref(), character).await;
        let made = made.with_context(|| format!("cannot add {}", character.login))?;
        admin.get_or_insert(made);
    }
    let admin = admin.context("the cast has no admin")?;
    for site in places::all() {
        site.build(app, &admin).await?;
        for character in CAST {
            take_seat(app, &admin, character, site.name).await?;
        }
    }
    Ok(())
}

/// Makes the account. The global admin comes first and makes all others.
async fn join_berth(
    app: &App,
    admin: Option<&Caller>,
    character: &Character,
) -> anyhow::Result<Caller> {
    let (login, name) = (character.login.parse()?, character.name.parse()?);
    let Some(admin) = admin else {
        anyhow::ensure!(character.login == GLOBAL_ADMIN, "the admin must come first");
        let password = SecretString::from(PASSWORD);
        let (admin, _) = app.create_admin(login, name, Some(&password)).await?;
        let at_home = PersonChange {
            time_zone: Some(ZONE.parse()?),
            ..PersonChange::default()
        };
        return Ok(caller(app.update_me(&caller(admin), None, at_home).await?));
    };
    let new = NewPerson {
        login,
        display_name: name,
        email: Some(format!("{}@example.org", character.login)),
        time_zone: Some(ZONE.parse()?),
        password: None,
    };
    let (person, _) = app.create_person(admin, new).await?.value;
    // Everybody has the same password, so it is hashed once: twenty times would be most of the wait.
    let mut tx = app.store.begin().await?;
    if let Some(hash) = people::password_hash(&mut tx, admin.id()).await? {
        people::set_password(&mut tx, person.id, &hash, app.now()).await?;
    }
    tx.commit().await?;
    Ok(caller(person))
}

async fn take_seat(
    app: &App,
    admin: &Caller,
    character: &Character,
    site: &str,
) -> anyhow::Result<()> {
    // Whoever is in any site may use the machine that the demo runs on.
    if site == this_machine::NAME && !character.seats.is_empty() {
        let (place, person) = (reference(site)?, play::person(character.login)?);
        app.set_member(admin, &place, &person, Role::Member).await?;
    }
    // Whoever joins later asks first.
    if matches!(character.stay, Stay::From(_)) {
        return Ok(());
    }
    for seat in character.seats.iter().filter(|seat| seat.site == site) {
        let (place, person) = (reference(site)?, play::person(character.login)?);
        app.set_member(admin, &place, &person, seat.role).await?;
        if seat.role == Role::Member {
            join_project(app, admin, site, character.login).await?;
        }
    }
    Ok(())
}

/// A GPU that can be booked tomorrow at nine, for the suggestion to the visitor.
pub async fn free_gpu(app: &App, almanac: &Almanac) -> String {
    let found = async {
        let tomorrow = almanac.day_of(app.now()) + 1;
        let window = lasting(almanac.at(tomorrow, 9, 0), SignedDuration::from_hours(2));
        let filter = ResourceFilter {
            kind: Some(Reference::Name("gpu".parse()?)),
            status: Some(Status::Active),
            ..ResourceFilter::default()
        };
        let player = Player::new(app).await?;
        let admin = player.caller(GLOBAL_ADMIN).context("no admin")?;
        let request = FreeRequest {
            filter,
            window,
            at_least: window.duration(),
        };
        let (_, free, _) = app
            .free(admin, &reference("torino")?, &request, "", usize::MAX)
            .await?;
        let first = free.into_iter().find(|gpu| !gpu.spans.is_empty());
        Ok(first.map(|gpu| gpu.view.resource.name.to_string()))
    };
    let found: anyhow::Result<Option<String>> = found.await;
    found
        .ok()
        .flatten()
        .unwrap_or_else(|| "gpu-01.gpu0".to_owned())
}
