//! Workloads as processes of this machine, each in a sandbox of its own.
//!
//! ```text
//! server -> keeper (one for each run, outlives the server) -> enter (becomes the user, makes the network)
//!        -> bubblewrap -> inside (first process of the sandbox) -> the app
//! ```
//! Without a sandbox the third is left out, and the boundary of a run does not hold ([`machine::WeakBoundary`]).
//! All but bubblewrap are this one program. What a server has to know after it was killed is in the run's folder
//! ([`folder`]), which no run sees. The keeper and the sandbox talk by one channel ([`control`]); visitors come in by the
//! keeper's [`relay`].
//!
//! The clock is read here, in the keeper alone: a run has to end in time though no server is there to say so.

mod attempts;
pub mod brood;
pub mod cgroup;
mod control;
pub mod disk;
pub mod enter;
pub mod folder;
mod hands;
pub mod hub;
pub mod inside;
pub mod keeper;
mod life;
pub mod machine;
pub mod names;
pub mod network;
pub mod quota;
pub mod record_key;
mod records;
mod relay;
pub mod sandbox;
pub mod shelf;
pub mod spec;
mod supervisors;
mod syscalls;
pub mod warm;

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use berth_model::workload::Run;
use berth_model::{EnvironmentId, PersonId, ResourceId, RunId};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use self::disk::{Disk, DiskLimits};
use self::folder::Folder;
pub use self::hands::end_everything;
use self::hands::{Hands, Reach};
use self::machine::WeakBoundary;
use self::names::Names;
use self::network::Range;
use self::record_key::RecordKey;
use crate::backend::{
    Attempt, Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Sign, Trouble, Used,
};
use crate::environments::Shelf;
use crate::records::RunRecords;
use crate::supervisors::Supervisors;
use crate::turns::{Patience, Turns};

/// How this machine runs things.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where runs and homes are kept.
    pub folder: PathBuf,
    /// The program that keeps a run: this one, but for tests.
    pub program: PathBuf,
    /// The first of the users that people are on this machine; none where the server may not switch.
    pub first_user: Option<u32>,
    /// What no run reaches, beside this machine itself and the private ranges.
    pub closed: Vec<Range>,
    /// What runs reach of the private ranges all the same.
    pub opened: Vec<Range>,
    /// Host names whose addresses runs reach all the same; they are resolved at each start.
    pub opened_names: Vec<String>,
    /// The host of the server's database, which no name or range opens.
    pub database_host: Option<String>,
    pub has_network: bool,
    pub has_sandbox: bool,
    /// Looks whether a machine that could not make sandboxes can make them now; none where there are to be none.
    pub sandbox_again: Option<fn() -> bool>,
    /// Whether several people's work may run here though the boundary of a run does not hold.
    pub is_shared: bool,
    /// Where environments are that were prepared before there was a server.
    pub prepared: Option<PathBuf>,
    pub disk: DiskLimits,
    /// The most warm servers that are kept; only where people are users of their own, in sandboxes.
    pub warm_max: usize,
    /// Seals what the records of runs keep secret. It has to be the same after a restart.
    pub record_key: RecordKey,
}

/// What is done on threads beside calls about single runs. Of each there is one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Errand {
    Attempts,
    /// Which runs are not over.
    Live,
    Records,
    Environments,
    /// Whether environments exist, which a start waits for.
    Existing,
}

impl Errand {
    fn longest(self) -> Duration {
        match self {
            Errand::Existing => LOOK_PATIENCE,
            Errand::Attempts | Errand::Live | Errand::Records | Errand::Environments => {
                Duration::from_secs(60)
            }
        }
    }
}

impl Settings {
    fn weak_boundary(&self) -> Option<WeakBoundary> {
        WeakBoundary::of(self.has_sandbox, self.first_user.is_some())
    }
}

/// How often what runs is looked at.
const LOOK: SignedDuration = SignedDuration::from_secs(1);
/// How long it may take to look at a run, and to find its door.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_secs(20);
/// To tell a run something, and to read its log.
const TELL: Duration = Duration::from_secs(5);
const SCAN: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub struct Local {
    hands: Arc<Hands>,
    /// What this machine is known by.
    identity: String,
    newest_fence: AtomicU64,
    disk: Disk,
    names: Names,
    turns: Turns<RunId>,
    /// Of looks for signs of life, which take long.
    scans: Turns<RunId>,
    /// Of measurements of environments that are made.
    sizes: Turns<EnvironmentId>,
    errands: Turns<Errand>,
    /// Runs of which it is known that they are over.
    over: Arc<Mutex<HashSet<RunId>>>,
}

impl Local {
    pub fn new(settings: Settings) -> io::Result<Local> {
        let (limits, folder) = (settings.disk, settings.folder.clone());
        let weak = settings.weak_boundary();
        let names = Names::new(
            settings.opened_names.clone(),
            settings.database_host.clone(),
        );
        let hands = Hands::open(settings)?;
        let quotas = quota::available(&folder.join("homes"), weak).ok();
        Ok(Local {
            hands: Arc::new(hands),
            identity: machine::identity(&folder)?,
            newest_fence: AtomicU64::new(0),
            disk: Disk::new(limits, quotas),
            names,
            turns: Turns::default(),
            scans: Turns::default(),
            sizes: Turns::default(),
            errands: Turns::default(),
            over: Arc::default(),
        })
    }

    pub fn folder(&self, run: RunId) -> Folder {
        self.hands.folder(run)
    }

    fn settings(&self) -> &Settings {
        &self.hands.settings
    }

    /// Whether another machine keeps the run. Runs that are older than this record are taken for this machine's.
    fn is_elsewhere(&self, run: &Run) -> bool {
        let machine = run.machine.as_ref();
        machine.is_some_and(|machine| *machine != self.identity)
    }

    fn check_ours(&self, job: Job<'_>, fence: Fence) -> Result<(), Trouble> {
        self.check(fence)?;
        match self.is_elsewhere(job.run) {
            true => Err(Trouble::Unreachable),
            false => Ok(()),
        }
    }

    fn check(&self, fence: Fence) -> Result<(), Trouble> {
        let newest = self.newest_fence.fetch_max(fence.0, Ordering::SeqCst);
        if fence.0 < newest {
            return Err(Trouble::Fenced);
        }
        Ok(())
    }

    /// Does something about a run on a thread, after whatever else is being done about it.
    async fn in_turn<T: Send + 'static>(
        &self,
        run: &Run,
        longest: Duration,
        call: impl FnOnce(&Hands, &Run, &Patience) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (hands, id, run) = (self.hands.clone(), run.id, run.clone());
        let call = move |patience: &Patience| call(&hands, &run, patience);
        let done = self.turns.take(id, longest, call).await;
        done.unwrap_or_else(|| Err(Trouble::NoAnswer(SLOW.to_owned())))
    }

    /// Does something that is about no single run on a thread.
    fn errand<'a, T: Send + 'static>(
        &'a self,
        errand: Errand,
        call: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Doing<'a, T> {
        let done = self.errands.take(errand, errand.longest(), |_| call());
        Box::pin(async move {
            match done.await {
                Some(done) => done.map_err(cannot),
                None => Err(Trouble::NoAnswer(SLOW.to_owned())),
            }
        })
    }

    /// What a run reaches of the private ranges: what an admin opens, and the package index for what makes an environment.
    /// What cannot be resolved is not reached, and the run starts without it.
    async fn reach(&self, index: Option<&str>) -> Reach {
        if !self.settings().has_network {
            return Reach::default();
        }
        let mut addresses = network::addresses_of(index).await;
        for one in self.names.resolve().await {
            if let Some(trouble) = one.trouble {
                let name = one.name;
                tracing::warn!(name, "the name {name} in opened_networks {trouble}");
            }
            addresses.extend(one.addresses);
        }
        let (ranges, database) = self.opened_ranges().await;
        Reach {
            ranges,
            addresses,
            database,
        }
    }

    /// The ranges that an admin opens, and the addresses of the database, which may be in one of them.
    async fn opened_ranges(&self) -> (Vec<Range>, Vec<Ipv4Addr>) {
        let ranges = self.settings().opened.clone();
        if ranges.is_empty() {
            return (ranges, Vec::new());
        }
        match self.names.database().await {
            Ok(database) => (ranges, database),
            Err(why) => {
                tracing::warn!("the networks in opened_networks are not opened: {why}");
                (Vec::new(), Vec::new())
            }
        }
    }

    /// A start without disk space would fail in the middle of its work.
    async fn check_space(&self, job: Job<'_>, person: PersonId) -> Result<(), Trouble> {
        let space = self.disk_space(person).await?;
        let wish = job.workload.ask.wishes.get(job.run.wish);
        let limit = wish.map_or(SignedDuration::MAX, |wish| wish.limit);
        match space.why_not(limit) {
            Some(why) => Err(Trouble::Refused(why.to_owned())),
            None => Ok(()),
        }
    }
}

const SLOW: &str = "this machine's disk did not answer in time";

fn cannot(error: io::Error) -> Trouble {
    Trouble::NoAnswer(error.to_string())
}

impl Backend for Local {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        grant: &'a Grant,
        fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, ()> {
        Box::pin(async move {
            self.check_ours(job, fence)?;
            let is_new = self.in_turn(job.run, TELL, |hands, run, _| {
                Ok(!hands.folder(run.id).path().exists())
            });
            if is_new.await? {
                self.check_space(job, grant.person).await?;
                let reach = self.reach(grant.package_index.as_deref()).await;
                let (workload, grant) = (job.workload.clone(), grant.clone());
                let home = self.in_turn(job.run, START, move |hands, run, _| {
                    let workload = &workload;
                    hands.prepare(Job { workload, run }, &grant, &reach)
                });
                self.disk.enforce(home.await?).await;
            }
            self.in_turn(job.run, START, |hands, run, patience| {
                hands.start(run, patience)
            })
            .await
        })
    }

    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async move {
            self.check_ours(job, fence)?;
            self.in_turn(job.run, TELL, |hands, run, _| hands.stop(run))
                .await
        })
    }

    fn prolong<'a>(&'a self, job: Job<'a>, fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async move {
            self.check_ours(job, fence)?;
            self.in_turn(job.run, TELL, |hands, run, _| hands.prolong(run))
                .await
        })
    }

    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        Some(self.identity.clone())
    }

    fn reaches(&self, machine: &str) -> bool {
        machine == self.identity
    }

    /// All are looked at side by side. One whose disk does not answer may run or not.
    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        Box::pin(async move {
            let look = async |run: &Run| {
                if self.is_elsewhere(run) {
                    return Ok(Sign::Unreachable);
                }
                let sign = self.in_turn(run, LOOK_PATIENCE, move |hands, run, _| {
                    hands.sign(run, now).map_err(cannot)
                });
                sign.await
            };
            let looks = join_all(jobs.iter().map(|job| look(job.run))).await;
            let troubles = looks.iter().filter_map(|look| look.as_ref().err());
            let times = troubles.clone().count();
            if let Some(trouble) = troubles.take(1).next() {
                tracing::warn!(%trouble, times, "some runs could not be looked at");
            }
            let signs = looks.into_iter();
            Ok(signs
                .map(|look| look.unwrap_or(Sign::Unreachable))
                .collect())
        })
    }

    fn door<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Door>> {
        Box::pin(async move {
            if job.workload.ask.program.serves.is_none() {
                return Ok(None);
            }
            if self.is_elsewhere(job.run) {
                return Err(Trouble::Unreachable);
            }
            self.in_turn(job.run, LOOK_PATIENCE, |hands, run, _| {
                hands.door(run.id).map_err(cannot)
            })
            .await
        })
    }

    fn log<'a>(&'a self, job: Job<'a>, bytes: u64) -> Doing<'a, String> {
        Box::pin(async move {
            self.in_turn(job.run, TELL, move |hands, run, _| hands.log(run, bytes))
                .await
        })
    }

    fn used<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Used>> {
        Box::pin(async move {
            if self.is_elsewhere(job.run) {
                return Err(Trouble::Unreachable);
            }
            self.in_turn(job.run, LOOK_PATIENCE, |hands, run, _| {
                Ok(hands.used(run.id))
            })
            .await
        })
    }

    fn shelf(&self) -> Option<&dyn Shelf> {
        Some(self)
    }

    fn disk_space<'a>(&'a self, person: PersonId) -> Doing<'a, DiskSpace> {
        let folders =
            ["runs", "homes", "environments"].map(|name| self.settings().folder.join(name));
        Box::pin(async move {
            let home = self.hands.home_of(person);
            Ok(self.disk.space(&home, folders.into()).await)
        })
    }

    fn records(&self) -> Option<&dyn RunRecords> {
        Some(self)
    }

    fn supervisors(&self) -> Option<&dyn Supervisors> {
        Some(self)
    }

    fn hub_socket(&self) -> Option<PathBuf> {
        Some(hub::server_socket(&self.settings().folder))
    }

    fn life<'a>(&'a self, job: Job<'a>) -> Doing<'a, Life> {
        Box::pin(async move {
            if self.is_elsewhere(job.run) {
                return Err(Trouble::Unreachable);
            }
            let spec = self.in_turn(job.run, LOOK_PATIENCE, |hands, run, _| {
                hands.folder(run.id).spec().map_err(cannot)
            });
            let spec = spec.await?;
            let computes = life::computes(&spec.gpus).await;
            let scan = self
                .scans
                .take(job.run.id, SCAN, move |_| life::written_at(&spec.home));
            Ok(Life {
                written_at: scan.await.flatten(),
                computes,
            })
        })
    }

    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        let work = self.settings().folder.clone();
        self.errand(Errand::Attempts, move || attempts::unrecorded(&work))
    }

    fn forget_attempts<'a>(&'a self, recorded: &'a [Attempt]) -> Doing<'a, ()> {
        let (work, recorded) = (self.settings().folder.clone(), recorded.to_vec());
        self.errand(Errand::Attempts, move || attempts::forget(&work, &recorded))
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        let again = now.checked_add(LOOK).ok();
        again.filter(|_| !jobs.is_empty())
    }
}
