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
pub mod hub;
pub mod inside;
pub mod keeper;
mod life;
pub mod machine;
pub mod network;
pub mod record_key;
mod records;
mod relay;
pub mod sandbox;
pub mod shelf;
pub mod spec;
mod syscalls;
pub mod warm;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use berth_model::workload::{Because, Outcome, Program, RunState, Serves};
use berth_model::{PersonId, ResourceId, RunId};
use jiff::{SignedDuration, Timestamp};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use self::cgroup::Groups;
use self::disk::{Disk, DiskLimits};
use self::folder::{Folder, How, Kept};
use self::machine::WeakBoundary;
use self::record_key::RecordKey;
use self::spec::{Limits, Listens, Network, Places, Spec};
use crate::backend::{
    Attempt, Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Seen, Sign, Trouble, Used,
};
use crate::door::Key;
use crate::environments::Shelf;
use crate::records::RunRecords;
use berth_model::session::APP_TOKEN;

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
    pub closed: Vec<String>,
    /// Addresses or networks in private ranges that runs reach all the same.
    pub opened: Vec<String>,
    pub has_network: bool,
    pub has_sandbox: bool,
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

impl Settings {
    fn weak_boundary(&self) -> Option<WeakBoundary> {
        WeakBoundary::of(self.has_sandbox, self.first_user.is_some())
    }
}

/// The addresses at which clouds tell their machines secrets. No setting opens them.
const METADATA: [&str; 2] = ["169.254.169.254/32", "169.254.170.2/32"];
const PROCESSES_MAX: u64 = 4096;
const MIB: u64 = 1 << 20;
/// How often what runs is looked at.
const LOOK: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug)]
pub struct Local {
    settings: Settings,
    /// What this machine is known by.
    identity: String,
    groups: Option<Groups>,
    newest_fence: AtomicU64,
    /// Held while a run is given its folder, and a new person theirs.
    beginning: Mutex<()>,
    warm: Option<warm::Pool>,
    disk: Disk,
}

impl Local {
    pub fn new(settings: Settings) -> io::Result<Local> {
        use std::os::unix::fs::DirBuilderExt;
        for name in ["runs", "logs", "homes", "environments", "attempts"] {
            let folder = settings.folder.join(name);
            let mut private = std::fs::DirBuilder::new();
            private.mode(0o700).recursive(true).create(folder)?;
        }
        let runs = std::fs::read_dir(settings.folder.join("runs"))?;
        for unfinished in runs.filter_map(Result::ok).map(|entry| entry.path()) {
            if unfinished.extension().is_some_and(|end| end == "new") {
                std::fs::remove_dir_all(unfinished)?;
            }
        }
        let can_be_warm = settings.weak_boundary().is_none();
        let warm = match settings.prepared.as_ref().filter(|_| can_be_warm) {
            Some(prepared) => warm::Pool::open(&settings.folder, prepared, settings.warm_max)?,
            None => None,
        };
        Ok(Local {
            identity: machine::identity(&settings.folder)?,
            warm,
            disk: Disk::new(settings.disk),
            settings,
            groups: Groups::find(),
            newest_fence: AtomicU64::new(0),
            beginning: Mutex::new(()),
        })
    }

    pub fn folder(&self, run: RunId) -> Folder {
        Folder::of(&self.settings.folder.join("runs"), run)
    }

    /// Whether another machine keeps the run. Runs that are older than this record are taken for this machine's.
    fn is_elsewhere(&self, job: Job<'_>) -> bool {
        let machine = job.run.machine.as_ref();
        machine.is_some_and(|machine| *machine != self.identity)
    }

    fn check_ours(&self, job: Job<'_>, fence: Fence) -> Result<(), Trouble> {
        self.check(fence)?;
        match self.is_elsewhere(job) {
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

    fn spec(
        &self,
        job: Job<'_>,
        grant: &Grant,
        key: &Key,
        index: Vec<String>,
    ) -> Result<Spec, Trouble> {
        let Job { workload, run } = job;
        let wish = workload.ask.wishes.get(run.wish);
        let Some(task) = wish.map(|wish| &wish.task) else {
            return Err(Trouble::Refused("it has no such wish".into()));
        };
        if run.pieces.len() != 1 {
            return Err(Trouble::Refused(
                "one machine runs one task; a gang needs a cluster".into(),
            ));
        }
        self.check_boundary(grant)?;
        let (home, user) = self.home(grant).map_err(cannot)?;
        let is_sandboxed = self.settings.has_sandbox;
        if !is_sandboxed {
            check_mounts(&grant.mounts)?;
        }
        let places = match (is_sandboxed, user) {
            (true, _) => Places::in_sandbox(&grant.login),
            (false, Some(_)) => enter::staged(),
            (false, None) => Places::in_the_open(home.clone(), self.folder(run.id).io()),
        };
        for mount in &grant.mounts {
            self.see(mount, user)?;
        }
        let cores = task.cores_milli.get();
        let memory = task.memory_mib.get() * MIB;
        let program = &workload.ask.program;
        let number = workload.number.to_string();
        let path = |text: &String| {
            PathBuf::from(
                text.replace("%j", &number)
                    .replace("%a", &run.task.to_string()),
            )
        };
        Ok(Spec {
            run: run.id,
            login: grant.login.clone(),
            is_sandboxed,
            user,
            home,
            command: program.command.clone(),
            script: program.script.clone(),
            environment: environment(program, grant, run.id, &places, key),
            has_app_token: has_app_token(program),
            places,
            folder: program.folder.as_ref().map(PathBuf::from),
            output: program.output.as_ref().map(path),
            errors: program.errors.as_ref().map(path),
            limits: Limits {
                cores_milli: cores,
                cores_milli_max: task.cores_milli_limit.map_or(cores, |limit| limit.get()),
                memory_bytes: memory,
                memory_bytes_max: task
                    .memory_mib_limit
                    .map_or(memory, |limit| limit.get() * MIB),
                processes_max: PROCESSES_MAX,
            },
            gpus: grant.gpus.clone(),
            mounts: grant.mounts.clone(),
            listens: program.serves.map(|serves| match serves {
                Serves::Socket => Listens::Socket,
                Serves::Port(port) => Listens::Port(port),
            }),
            // In the open the port would be the whole machine's.
            has_hub: grant.has_hub && is_sandboxed,
            network: self.network(index),
            warm: self.warm_for(program, grant, memory / MIB),
        })
    }

    /// The warm server of which an app in a prepared environment can be a copy.
    fn warm_for(&self, program: &Program, grant: &Grant, memory_mib: u64) -> Option<PathBuf> {
        let pool = self.warm.as_ref()?;
        pool.make_room(memory_mib);
        let chosen = Path::new(grant.environment.get("VIRTUAL_ENV")?);
        let is_chosen = |mount: &&Seen| {
            mount.to == chosen && mount.from.parent() == self.settings.prepared.as_deref()
        };
        let is_app = program.serves.is_some() && program.script.is_none();
        let environment = grant.mounts.iter().find(is_chosen).filter(|_| is_app)?;
        pool.claim(environment)
    }

    fn home_of(&self, person: PersonId) -> PathBuf {
        let homes = self.settings.folder.join("homes");
        homes.join(person.0.simple().to_string())
    }

    /// The person's own folder, made when they first run something, and whom it belongs to on this machine. The folder's
    /// owner is the record of who is who: a new person gets the next number after all that there are.
    fn home(&self, grant: &Grant) -> io::Result<(PathBuf, Option<u32>)> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
        let homes = self.settings.folder.join("homes");
        let home = self.home_of(grant.person);
        let Some(first) = self.settings.first_user else {
            let mut private = std::fs::DirBuilder::new();
            private.mode(0o700).recursive(true).create(&home)?;
            return Ok((home, None));
        };
        if !home.exists() {
            let mut user = first;
            for other in std::fs::read_dir(&homes)? {
                user = user.max(other?.metadata()?.uid().saturating_add(1));
            }
            let new = home.with_extension("new");
            let mut private = std::fs::DirBuilder::new();
            private.mode(0o700).recursive(true).create(&new)?;
            chown(&new, Some(user), Some(user))?;
            std::fs::rename(&new, &home)?;
        }
        let user = home.metadata()?.uid();
        Ok((home, Some(user)))
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

    /// Where the boundary of a run does not hold, one person may use their own machine. With several, an admin decides.
    fn check_boundary(&self, grant: &Grant) -> Result<(), Trouble> {
        match self.settings.weak_boundary() {
            Some(weak) if grant.has_neighbours && !self.settings.is_shared => {
                Err(Trouble::Refused(format!(
                    "{} Several people have accounts on this server, so it runs nobody's work. {}",
                    weak.sentence(),
                    weak.advice()
                )))
            }
            _ => Ok(()),
        }
    }

    /// What a run is to see has to be there. The folder of an environment that is to be made, is made.
    fn see(&self, mount: &Seen, user: Option<u32>) -> Result<(), Trouble> {
        let is_new = mount.is_writable && mount.from.parent() == Some(&self.shelf_folder());
        if is_new {
            return self.begin_environment(&mount.from, user).map_err(cannot);
        }
        match mount.from.exists() {
            true => Ok(()),
            false => Err(Trouble::Refused(format!(
                "what it was to see at {} is no longer there",
                mount.to.display()
            ))),
        }
    }

    /// `index` are the addresses of the package index, which a run that makes an environment reaches wherever it is.
    fn network(&self, index: Vec<String>) -> Network {
        let fixed = METADATA.iter().chain(&network::PRIVATE_RANGES);
        let mut closed: Vec<String> = fixed.map(|range| (*range).to_owned()).collect();
        closed.push(format!("{}/32", network::GATEWAY));
        closed.extend(machine::own_addresses());
        closed.extend(self.settings.closed.iter().cloned());
        Network {
            is_open: self.settings.has_network,
            closed,
            opened: self.settings.opened.iter().cloned().chain(index).collect(),
        }
    }

    /// Starts a keeper. A second one finds the lock taken and goes.
    fn keep(&self, run: RunId) -> io::Result<()> {
        let folder = self.folder(run);
        let record_key = &self.settings.record_key;
        let mut command = tokio::process::Command::new(&self.settings.program);
        command
            .args(["keeper", "run"])
            .arg(folder.path())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .stdin(record_key.of(run).to_pipe()?)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let mut keeper = command.spawn()?;
        // Only so that it is taken in when it ends before this server does.
        tokio::spawn(async move { keeper.wait().await });
        Ok(())
    }

    fn sign(&self, job: Job<'_>, now: Timestamp) -> io::Result<Sign> {
        if self.is_elsewhere(job) {
            return Ok(Sign::Unreachable);
        }
        let folder = self.folder(job.run.id);
        if !folder.path().exists() {
            return Ok(Sign::Unknown);
        }
        if let Some(end) = folder.end()? {
            let outcome = match end.how {
                How::Exited(0) => Outcome::Completed,
                How::Exited(exit_code) => Outcome::Failed { exit_code },
                How::Signalled(signal) => Outcome::Failed {
                    exit_code: 128 + signal,
                },
                How::OutOfMemory => Outcome::OutOfMemory,
                How::CouldNotStart => Outcome::CouldNotStart,
                How::Lost => Outcome::NodeFailed,
                How::Stopped => stopped(job),
            };
            return Ok(Sign::Ended {
                at: end.at,
                outcome,
                said: end.said.parse().ok(),
            });
        }
        match folder.kept()? {
            Kept::By(_) => Ok(Sign::Running),
            Kept::NotYet if folder.is_told_to_end() => Ok(Sign::Ended {
                at: now,
                outcome: stopped(job),
                said: None,
            }),
            Kept::NotYet if job.run.state == RunState::Starting => Ok(Sign::Unknown),
            Kept::NotYet => {
                // The machine is busy, and its keeper slow to come. Of two, one finds the lock taken and goes.
                self.keep(job.run.id)?;
                Ok(Sign::Running)
            }
            Kept::NoMore => {
                // A keeper that finds it begun ends what is left, and says so.
                self.keep(job.run.id)?;
                Ok(Sign::Running)
            }
        }
    }

    fn signal(&self, run: RunId, signal: Signal) -> io::Result<()> {
        match self.folder(run).kept()? {
            Kept::By(keeper) if keeper > 0 => Ok(kill(Pid::from_raw(keeper), signal)?),
            _ => Ok(()),
        }
    }
}

/// Tells everything that runs below a folder that its time is over, for whoever is about to remove it.
pub fn end_everything(folder: &Path) -> io::Result<()> {
    let runs = match std::fs::read_dir(folder.join("runs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        runs => runs?,
    };
    for run in runs {
        let folder = Folder::at(run?.path());
        if !folder.may_run()? {
            continue;
        }
        folder.set_until(Timestamp::MIN)?;
        folder.tell_to_end()?;
        if let Kept::By(keeper) = folder.kept()?
            && keeper > 0
        {
            kill(Pid::from_raw(keeper), Signal::SIGTERM).ok();
        }
    }
    Ok(())
}

/// What it comes to when it went because it was told, or made, to.
fn stopped(job: Job<'_>) -> Outcome {
    match job.run.state {
        RunState::Stopping { because, .. } => because.outcome(),
        // Its time was over before any server could say so.
        _ => Outcome::TimedOut,
    }
}

/// Without a sandbox everything is where it is.
fn check_mounts(mounts: &[Seen]) -> Result<(), Trouble> {
    match mounts.iter().find(|mount| mount.from != mount.to) {
        None => Ok(()),
        Some(mount) => Err(Trouble::Refused(format!(
            "it needs {}, which only a sandbox can show it, and this machine has none",
            mount.to.display()
        ))),
    }
}

/// Does what may wait for a disk where it keeps nobody else waiting.
fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Doing<'static, T> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(io::Error::other).flatten().map_err(cannot)
    })
}

fn has_app_token(program: &Program) -> bool {
    let mut values = program.environment.values();
    values.any(|value| value.contains(APP_TOKEN))
}

fn cannot(error: io::Error) -> Trouble {
    Trouble::NoAnswer(error.to_string())
}

/// What the program finds in its environment: its own, and what tells it where it is.
fn environment(
    program: &Program,
    grant: &Grant,
    run: RunId,
    places: &Places,
    key: &Key,
) -> BTreeMap<String, String> {
    let login = &grant.login;
    let mut all: BTreeMap<String, String> = [
        ("HOME", places.home.display().to_string()),
        ("USER", login.clone()),
        ("LOGNAME", login.clone()),
        ("SHELL", "/bin/bash".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("TMPDIR", places.temporary.display().to_string()),
        ("BERTH_RUN", run.to_string()),
        ("CUDA_VISIBLE_DEVICES", grant.gpus.join(",")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    all.extend(grant.environment.clone());
    all.extend(program.environment.clone());
    for value in all.values_mut().filter(|value| value.contains(APP_TOKEN)) {
        *value = value.replace(APP_TOKEN, &key.app_token());
    }
    all
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
            let folder = self.folder(job.run.id);
            if !folder.path().exists() {
                self.check_space(job, grant.person).await?;
                let index = network::addresses_of(grant.package_index.as_deref()).await;
                let key = Key::generate().map_err(cannot)?;
                let beginning = self.beginning.lock();
                let _one_at_a_time = beginning.unwrap_or_else(PoisonError::into_inner);
                let spec = self.spec(job, grant, &key, index)?;
                let record_key = self.settings.record_key.of(job.run.id);
                let made = folder.make(&spec, &key, &record_key, job.run.until);
                made.map_err(cannot)?;
            }
            match folder.kept().map_err(cannot)? {
                Kept::NotYet if folder.is_told_to_end() => Ok(()),
                Kept::NotYet => self.keep(job.run.id).map_err(cannot),
                Kept::By(_) | Kept::NoMore => Ok(()),
            }
        })
    }

    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async move {
            self.check_ours(job, fence)?;
            let folder = self.folder(job.run.id);
            if !folder.path().exists() {
                return Ok(());
            }
            // On a full disk it is told to end, though that may not be noted.
            let noted = folder.set_until(job.run.until);
            let to_save = Because::Checkpoint;
            if matches!(job.run.state, RunState::Stopping { because, .. } if because == to_save) {
                self.signal(job.run.id, Signal::SIGUSR1).map_err(cannot)?;
                return noted.map_err(cannot);
            }
            let told = folder.tell_to_end();
            self.signal(job.run.id, Signal::SIGTERM).map_err(cannot)?;
            noted.and(told).map_err(cannot)
        })
    }

    fn prolong<'a>(&'a self, job: Job<'a>, fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async move {
            self.check_ours(job, fence)?;
            let folder = self.folder(job.run.id);
            match folder.path().exists() {
                true => folder.set_until(job.run.until).map_err(cannot),
                false => Ok(()),
            }
        })
    }

    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        Some(self.identity.clone())
    }

    fn reaches(&self, machine: &str) -> bool {
        machine == self.identity
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        Box::pin(async move {
            let signs = jobs.iter().map(|job| self.sign(*job, now).map_err(cannot));
            signs.collect()
        })
    }

    fn door(&self, job: Job<'_>) -> Option<Door> {
        let folder = self.folder(job.run.id);
        job.workload.ask.program.serves?;
        Some(Door {
            socket: folder.socket(),
            key: folder.key().ok()?,
            has_app_token: folder.spec().ok()?.has_app_token,
        })
    }

    fn log<'a>(&'a self, job: Job<'a>, bytes: u64) -> Doing<'a, String> {
        Box::pin(async move {
            let folder = self.folder(job.run.id);
            let log = folder.log_tail(bytes).map_err(cannot)?;
            if folder.path().exists() {
                return Ok(log);
            }
            let kept = records::read_log(&self.settings.folder, job.run.id, bytes);
            let never_began = matches!(
                job.run.state,
                RunState::Ended {
                    outcome: Outcome::CouldNotStart
                }
            );
            let is_removed = job.run.state.is_over() && !never_began;
            Ok(match kept.map_err(cannot)? {
                Some(kept) => kept,
                None if is_removed => records::LOG_REMOVED.to_owned(),
                None => String::new(),
            })
        })
    }

    fn used(&self, job: Job<'_>) -> Option<Used> {
        let groups = self.groups.as_ref()?;
        Some(groups.group(&job.run.id.0.simple().to_string()).used())
    }

    fn shelf(&self) -> Option<&dyn Shelf> {
        Some(self)
    }

    fn disk_space<'a>(&'a self, person: PersonId) -> Doing<'a, DiskSpace> {
        let folders = ["runs", "homes", "environments"].map(|name| self.settings.folder.join(name));
        Box::pin(async move {
            let home = self.home_of(person);
            Ok(self.disk.space(&home, folders.into()).await)
        })
    }

    fn records(&self) -> Option<&dyn RunRecords> {
        Some(self)
    }

    fn hub_socket(&self) -> Option<PathBuf> {
        Some(hub::server_socket(&self.settings.folder))
    }

    fn life<'a>(&'a self, job: Job<'a>) -> Doing<'a, Life> {
        Box::pin(async move {
            let spec = self.folder(job.run.id).spec().map_err(cannot)?;
            let looked = tokio::task::spawn_blocking(move || life::look(&spec)).await;
            looked.map_err(|error| Trouble::NoAnswer(error.to_string()))
        })
    }

    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        let work = self.settings.folder.clone();
        on_a_thread(move || attempts::unrecorded(&work))
    }

    fn forget_attempts<'a>(&'a self, recorded: &'a [Attempt]) -> Doing<'a, ()> {
        let (work, recorded) = (self.settings.folder.clone(), recorded.to_vec());
        on_a_thread(move || attempts::forget(&work, &recorded))
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        let again = now.checked_add(LOOK).ok();
        again.filter(|_| !jobs.is_empty())
    }
}
