//! Runs workloads as processes of this machine, each in a sandbox of its own.
//!
//! ```text
//! server -> keeper (one for each run, outlives the server) -> enter (becomes the user, makes the network)
//!        -> bubblewrap -> inside (first process of the sandbox) -> the app
//! ```
//! A run's supervisor is called `keeper` in the code. Without a sandbox, `enter` starts `inside` without bubblewrap,
//! and the boundary of a run does not hold ([`machine::WeakBoundary`]). All parts except bubblewrap are this one
//! program. The run's folder ([`folder`]), which no run sees, holds everything that a server must know after it was
//! killed. The supervisor and the sandbox communicate over one channel ([`control`]). Visitors come in through the
//! supervisor's [`relay`].
//!
//! Only the supervisor reads the clock here: a run must end in time even if no server is running.

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

/// How this machine runs workloads.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder of the runs and homes.
    pub folder: PathBuf,
    /// The program that supervises a run: this program itself, except in tests.
    pub program: PathBuf,
    /// The lowest user id that people get on this machine; `None` if the server may not switch users.
    pub first_user: Option<u32>,
    /// Ranges that no run reaches, in addition to this machine itself and the private ranges.
    pub closed: Vec<Range>,
    /// Parts of the private ranges that runs reach nevertheless.
    pub opened: Vec<Range>,
    /// Host names whose addresses runs reach nevertheless; the server resolves them at each start.
    pub opened_names: Vec<String>,
    /// The host of the server's database, which no name or range opens.
    pub database_host: Option<String>,
    pub has_network: bool,
    pub has_sandbox: bool,
    /// Checks whether a machine that could not make sandboxes can make them now; `None` if runs must have no sandbox.
    pub sandbox_again: Option<fn() -> bool>,
    /// Whether work of several people may run here although the boundary of a run does not hold.
    pub is_shared: bool,
    /// Folder of the environments that were prepared before the server started.
    pub prepared: Option<PathBuf>,
    pub disk: DiskLimits,
    /// Maximum number of fork servers. They exist only where people have users of their own, in sandboxes.
    pub warm_max: usize,
    /// Encrypts the secrets in the records of runs. It must be the same after a restart.
    pub record_key: RecordKey,
}

/// Blocking calls that concern no single run. Only one errand of each kind runs at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Errand {
    Attempts,
    /// Lists the runs that have not ended.
    Live,
    Records,
    Environments,
    /// Checks whether environments exist; a start waits for this.
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

/// How often the server polls the runs.
const LOOK: SignedDuration = SignedDuration::from_secs(1);
/// Timeout for polling a run, and for finding its endpoint.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
const START: Duration = Duration::from_secs(20);
/// Timeout for sending a run a command, and for reading its log.
const TELL: Duration = Duration::from_secs(5);
const SCAN: Duration = Duration::from_secs(8);

#[derive(Debug)]
pub struct Local {
    hands: Arc<Hands>,
    /// This machine's stable id.
    identity: String,
    newest_fence: AtomicU64,
    disk: Disk,
    names: Names,
    turns: Turns<RunId>,
    /// Scans for signs of activity, which take long.
    scans: Turns<RunId>,
    /// Measurements of environments during their build.
    sizes: Turns<EnvironmentId>,
    errands: Turns<Errand>,
    /// Runs that are known to have ended.
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

    /// Whether the run is on another machine. A run older than this record counts as this machine's.
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

    /// Makes a blocking call about a run on a thread, after all earlier calls about that run.
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

    /// Makes a blocking call that concerns no single run on a thread.
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

    /// The parts of the private ranges that a run reaches: those that an admin opens and, for an environment build, the
    /// package index. A name that cannot be resolved is not reached, and the run starts without it.
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

    /// The ranges that an admin opens, and the addresses of the database, which may be in one of the ranges.
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

    /// Refuses a start without disk space, which would fail in the middle of its work.
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

    /// Polls all runs concurrently. A run on a disk that does not answer counts as unreachable: it may or may not be
    /// running.
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
