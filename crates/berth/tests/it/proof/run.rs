//! One run from an empty database to the verdict.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use berth_api::client::{Client, Credential};
use berth_app::clock::{Clock, SystemClock};
use berth_app::controllers::ByHand;
use berth_store::{Store, audit};
use berth_testkit::server::BerthServer;
use berth_testkit::wait;
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ask::Line;
use super::client::Asker;
use super::ground::Ground;
use super::ledger::{Counts, Ledger};
use super::listener::{self, Resume};
use super::power::{self, Deaths, Power, Progress};
use super::size::Size;
use super::stored::{self, Stored};
use super::sweep::{self, Fault};
use super::wish::Chance;
use super::world::{self, World};

/// For what takes a moment on a busy machine, and minutes when a million rows wait for their numbers.
const PATIENCE: Duration = Duration::from_secs(300);
/// As many faults as a person reads.
const SHOWN_MAX: usize = 20;

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    ground: &'static str,
    size: Size,
    seed: u64,
    counts: Counts,
    deaths: Deaths,
    stored: Sums,
    hammering: Duration,
    whole: Duration,
    faults: Vec<Fault>,
}

/// How much there was to sweep.
#[derive(Debug, Clone, Copy)]
struct Sums {
    bookings: usize,
    claims: usize,
    events: u64,
    audit_entries: u64,
}

/// Hammers and kills, then sweeps, and judges what was found.
pub async fn prove(mut ground: Ground, binary: &str, size: Size, seed: u64) {
    say(&format!(
        "{}: seed {seed}, {} operations by {} clients, {} kills",
        ground.name(),
        size.operations,
        size.clients,
        size.kills
    ));
    let world = World::build(&ground.url())
        .await
        .expect("an empty database");
    let mut server = ground.serve(binary).await.expect("a server to kill");
    let outcome = hammer_and_sweep(&mut ground, &mut server, world, size, seed).await;
    outcome
        .unwrap_or_else(|error| panic!("seed {seed}: {error:#}"))
        .judge();
}

async fn hammer_and_sweep(
    ground: &mut Ground,
    server: &mut BerthServer,
    world: World,
    size: Size,
    seed: u64,
) -> Result<Outcome> {
    let started = Instant::now();
    let url = ground.url();
    let world = Arc::new(world);
    let power = Arc::new(Power::on());
    let progress = Arc::new(Progress::towards(size.operations));

    let mut listeners = JoinSet::new();
    let mut heard = Vec::new();
    for resume in [Resume::ByQuery, Resume::ByHeader] {
        let (tell, hear) = watch::channel(0);
        let client = client(server, &world.global_admin)?;
        listeners.spawn(listener::follow(client, power.clone(), resume, tell));
        heard.push(hear);
    }

    let hammering = Instant::now();
    let clients = hammer(server, &world, &power, &progress, size, seed)?;
    let (ledger, deaths) = tokio::select! {
        both = async {
            tokio::try_join!(
                clients,
                power::rule(server, ground, &power, &progress, size, seed),
            )
        } => both?,
        ended = listeners.join_next() => {
            ended.context("there are listeners")???;
            unreachable!("a listener follows for ever, or fails")
        }
    };
    let hammering = hammering.elapsed();

    hear_everything(&url, &mut heard, &mut listeners).await?;
    let status = server.stop().await?;
    ensure!(
        status.success(),
        "the server did not end in order: {status}"
    );

    let audit_entries = last_numbers(&url).await?;
    let stored = Stored::read(&url).await?;
    let faults = sweep::faults(&stored, &ledger);
    Ok(Outcome {
        ground: ground.name(),
        size,
        seed,
        counts: ledger.counts,
        deaths,
        stored: Sums {
            bookings: stored.bookings.len(),
            claims: stored.claims.len(),
            events: stored.events_head,
            audit_entries,
        },
        hammering,
        whole: started.elapsed(),
        faults,
    })
}

/// All clients at work; gives their ledgers as one.
fn hammer(
    server: &BerthServer,
    world: &Arc<World>,
    power: &Arc<Power>,
    progress: &Arc<Progress>,
    size: Size,
    seed: u64,
) -> Result<impl Future<Output = Result<Ledger>> + use<>> {
    let mut clients = Vec::new();
    let epoch = tomorrow()?;
    for number in 0..size.clients {
        let people = &world.people;
        let person = &people[usize::try_from(number)? % people.len()];
        let asker = Asker {
            line: Line {
                client: client(server, &person.token)?,
                power: power.clone(),
            },
            world: world.clone(),
            progress: progress.clone(),
            chance: Chance::new(
                seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                epoch,
            ),
            is_admin: person.is_admin,
            name: format!("{seed:x}-{number}"),
            own: Vec::new(),
            series_of: Default::default(),
            ledger: Ledger::default(),
        };
        clients.push(asker.run());
    }
    Ok(async move {
        let mut ledger = Ledger::default();
        for one in try_join_all(clients).await? {
            ledger.absorb(one);
        }
        Ok(ledger)
    })
}

fn client(server: &BerthServer, token: &SecretString) -> Result<Client> {
    Ok(Client::new(
        &server.url(""),
        Credential::Token(token.clone()),
    )?)
}

/// The next midnight but one: what is booked from there on does not begin while the proof runs.
fn tomorrow() -> Result<Timestamp> {
    let day_s = SignedDuration::from_hours(24).as_secs();
    let today = SystemClock.now().as_second() / day_s;
    Ok(Timestamp::from_second((today + 2) * day_s)?)
}

/// Waits until every event has its number and every listener has heard it.
async fn hear_everything(
    url: &str,
    heard: &mut [watch::Receiver<u64>],
    listeners: &mut JoinSet<Result<()>>,
) -> Result<()> {
    let head = wait::some(
        "every row to be numbered",
        PATIENCE,
        async || match stored::numbered(url).await {
            Ok((head, false)) => Some(head),
            _ => None,
        },
    );
    let head = head.await;
    for heard in heard {
        let all = heard.wait_for(|number| *number >= head);
        tokio::select! {
            all = tokio::time::timeout(PATIENCE, all) => { all.context("a listener fell behind")??; }
            ended = listeners.join_next() => { ended.context("there are listeners")???; }
        }
    }
    Ok(())
}

/// Numbers what the server's end left over, follows the whole audit chain, and says how long it is.
async fn last_numbers(url: &str) -> Result<u64> {
    let store = Store::open(url, 4).await?;
    let app = world::app(store.clone());
    let mut by_hand = ByHand::new(&app);
    wait::until("the sequencer's lease", PATIENCE, async || {
        by_hand.number().await.is_ok()
    })
    .await;
    by_hand.give_back().await;
    let mut reader = store.read().await?;
    let chain = audit::verify(&mut reader).await?;
    drop(reader);
    store.close().await;
    ensure!(
        chain.broken.is_none() && chain.unchained == 0,
        "the audit chain does not hold: {chain:?}"
    );
    Ok(chain.checked)
}

impl Outcome {
    /// Says what was found, and fails if anything was.
    fn judge(self) {
        say(&self.to_string());
        let shown: Vec<String> = self
            .faults
            .iter()
            .take(SHOWN_MAX)
            .map(Fault::to_string)
            .collect();
        assert!(
            self.faults.is_empty(),
            "{} faults (seed {}), the first of them:\n{}",
            self.faults.len(),
            self.seed,
            shown.join("\n")
        );
        let counts = &self.counts;
        assert_eq!(counts.accepted() + counts.refused(), self.size.operations);
        assert_eq!(self.deaths.at_work, self.size.kills);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sums {
            bookings,
            claims,
            events,
            audit_entries,
        } = self.stored;
        writeln!(
            f,
            "{}: seed {}, {} operations in {:.1} s ({:.0}/s), {} kills and {} more while starting",
            self.ground,
            self.seed,
            self.size.operations,
            self.hammering.as_secs_f64(),
            self.size.operations as f64 / self.hammering.as_secs_f64(),
            self.deaths.at_work,
            self.deaths.while_starting,
        )?;
        writeln!(f, "{}", self.counts)?;
        write!(
            f,
            "  swept {bookings} bookings, {claims} claims, {events} events, {audit_entries} audit entries: {} faults; \
             {:.1} s in all",
            self.faults.len(),
            self.whole.as_secs_f64()
        )
    }
}

fn say(text: &str) {
    eprintln!("{text}");
}
