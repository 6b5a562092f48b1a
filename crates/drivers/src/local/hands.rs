//! The server's work on this machine with files and processes. Every call may wait for a disk, so it runs on a thread
//! ([`Turns`](crate::turns::Turns)) and never on an async worker.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use berth_model::session::APP_TOKEN;
use berth_model::workload::{Because, Outcome, Program, Run, RunState, Serves};
use berth_model::{PersonId, RunId};
use jiff::Timestamp;
use rustix::process::Signal;

use super::cgroup::Groups;
use super::folder::{Folder, How, Kept};
use super::machine::WeakBoundary;
use super::network::Range;
use super::spec::{Limits, Listens, Network, Places, Spec};
use super::{Settings, cannot, enter, machine, network, records, warm};
use crate::backend::{Door, Grant, Job, Seen, Sign, Trouble, Used};
use crate::door::Key;
use crate::turns::Patience;

/// Addresses of the metadata services from which machines in a cloud read secrets. No setting opens them.
const METADATA: [Ipv4Addr; 2] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
];
const PROCESSES_MAX: u64 = 4096;
const MIB: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Hands {
    pub settings: Settings,
    pub groups: Option<Groups>,
    /// Whether runs have a sandbox. A machine that failed the check, or was slow, is checked again.
    has_sandbox: AtomicBool,
    /// The user id of the next new person; `None` before the first new person.
    next_user: Mutex<Option<u32>>,
    /// For each user id, the person with the home that it owns, as found since the server began.
    owners: Mutex<HashMap<u32, PersonId>>,
    warm: Option<warm::Pool>,
}

impl Hands {
    pub fn open(settings: Settings) -> io::Result<Hands> {
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
        Ok(Hands {
            warm,
            has_sandbox: AtomicBool::new(settings.has_sandbox),
            settings,
            groups: Groups::find(),
            next_user: Mutex::new(None),
            owners: Mutex::default(),
        })
    }

    pub fn folder(&self, run: RunId) -> Folder {
        Folder::of(&self.settings.folder.join("runs"), run)
    }

    /// Makes the folder of a run, and returns the path of its home.
    pub fn prepare(&self, job: Job<'_>, grant: &Grant, reach: &Reach) -> Result<PathBuf, Trouble> {
        let key = Key::generate().map_err(cannot)?;
        let spec = self.spec(job, grant, &key, reach)?;
        let folder = self.folder(job.run.id);
        if !folder.path().exists() {
            let record_key = self.settings.record_key.of(job.run.id);
            let made = folder.make(&spec, &key, &record_key, job.run.until);
            made.map_err(cannot)?;
        }
        Ok(spec.home)
    }

    /// Starts a prepared run, unless it was started.
    pub fn start(&self, run: &Run, patience: &Patience) -> Result<(), Trouble> {
        let folder = self.folder(run.id);
        match folder.kept().map_err(cannot)? {
            Kept::NotYet if folder.is_told_to_end() => Ok(()),
            // The caller gave up, and may have reported by now that nothing runs.
            Kept::NotYet if patience.is_over() => Err(Trouble::NoAnswer("it took too long".into())),
            Kept::NotYet => self.keep(run.id).map_err(cannot),
            Kept::By(_) | Kept::NoMore => Ok(()),
        }
    }

    pub fn stop(&self, run: &Run) -> Result<(), Trouble> {
        let folder = self.folder(run.id);
        if !folder.path().exists() {
            return Ok(());
        }
        // On a full disk the run is asked to end, although that may not be recorded.
        let noted = folder.set_until(run.until);
        let to_save = Because::Checkpoint;
        if matches!(run.state, RunState::Stopping { because, .. } if because == to_save) {
            folder.signal_keeper(Signal::USR1).map_err(cannot)?;
            return noted.map_err(cannot);
        }
        let told = folder.tell_to_end();
        folder.signal_keeper(Signal::TERM).map_err(cannot)?;
        noted.and(told).map_err(cannot)
    }

    pub fn prolong(&self, run: &Run) -> Result<(), Trouble> {
        let folder = self.folder(run.id);
        if !folder.path().exists() || folder.until().map_err(cannot)? == run.until {
            return Ok(());
        }
        folder.set_until(run.until).map_err(cannot)
    }

    /// Ends a run at once, without a grace period.
    pub fn end(&self, run: RunId) -> Result<(), Trouble> {
        end(&self.folder(run)).map_err(cannot)
    }

    /// The usage that the run's control group counts; `None` if there is no such group.
    pub fn used(&self, run: RunId) -> Option<Used> {
        let groups = self.groups.as_ref()?;
        groups.group(&run.0.simple().to_string()).used()
    }

    /// `None` if the run has no endpoint: it has no folder, or an older version started it.
    pub fn door(&self, run: RunId) -> io::Result<Option<Door>> {
        let folder = self.folder(run);
        let door = || -> io::Result<Door> {
            Ok(Door {
                socket: folder.socket(),
                key: folder.key()?,
                has_app_token: folder.spec()?.has_app_token,
            })
        };
        match door() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            door => door.map(Some),
        }
    }

    pub fn log(&self, run: &Run, bytes: u64) -> Result<String, Trouble> {
        let folder = self.folder(run.id);
        let log = folder.log_tail(bytes).map_err(cannot)?;
        if folder.path().exists() {
            return Ok(log);
        }
        let kept = records::read_log(&self.settings.folder, run.id, bytes);
        let never_began = matches!(
            run.state,
            RunState::Ended {
                outcome: Outcome::CouldNotStart
            }
        );
        let is_removed = run.state.is_over() && !never_began;
        Ok(match kept.map_err(cannot)? {
            Some(kept) => kept,
            None if is_removed => records::LOG_REMOVED.to_owned(),
            None => String::new(),
        })
    }

    fn spec(&self, job: Job<'_>, grant: &Grant, key: &Key, reach: &Reach) -> Result<Spec, Trouble> {
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
        let is_sandboxed = self.has_sandbox();
        self.check_boundary(grant)?;
        let (home, user) = self.home(grant).map_err(cannot)?;
        self.check_owner(grant.person, &home, user)?;
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
            // Without a sandbox, the port would be the whole machine's.
            has_hub: grant.has_hub && is_sandboxed,
            network: self.network(reach).map_err(cannot)?,
            warm: self.warm_for(program, grant, memory / MIB),
        })
    }

    /// The fork server for an app in a prepared environment, if the app can start as its fork.
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

    pub fn home_of(&self, person: PersonId) -> PathBuf {
        let homes = self.settings.folder.join("homes");
        homes.join(person.0.simple().to_string())
    }

    /// The person's home, made at their first run, and the user who owns it on this machine. The folder's owner is the
    /// only record of a person's user id. A new person gets the next id after all existing ones.
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
            let user = self.next_user(first, &homes)?;
            // A start that timed out may continue in parallel with this one. Only one of them gives the folder its
            // name.
            let new = home.with_extension(format!("{user}.new"));
            let mut private = std::fs::DirBuilder::new();
            private.mode(0o700).recursive(true).create(&new)?;
            chown(&new, Some(user), Some(user))?;
            rename_new(&new, &home)?;
        }
        let user = home.metadata()?.uid();
        Ok((home, Some(user)))
    }

    /// Refuses a home with a wrong owner. A home that was restored as root must not make its person root. Two homes
    /// that were restored with one owner must not give two people the same user.
    fn check_owner(&self, person: PersonId, home: &Path, user: Option<u32>) -> Result<(), Trouble> {
        let (Some(user), Some(first)) = (user, self.settings.first_user) else {
            return Ok(());
        };
        let why = if user < first {
            format!("people's homes belong to users from {first} on")
        } else if self.is_shared_owner(person, user) {
            "another person's home belongs to the same user".to_owned()
        } else {
            return Ok(());
        };
        let homes = self.settings.folder.join("homes");
        let next = next_user(&homes, first).map_err(cannot)?;
        Err(Trouble::Refused(format!(
            "your home on this machine belongs to user {user}, and {why}: \
             ask an administrator to run `chown -R -h {next}:{next} {}`",
            home.display()
        )))
    }

    /// Whether another person's home has this owner too, as far as seen since the server began. Before that nothing of
    /// theirs runs, so nothing can conflict.
    fn is_shared_owner(&self, person: PersonId, user: u32) -> bool {
        use std::os::unix::fs::MetadataExt;
        let known = lock(&self.owners).insert(user, person);
        let Some(other) = known.filter(|other| *other != person) else {
            return false;
        };
        let home = self.home_of(other);
        let is_shared = home.metadata().is_ok_and(|home| home.uid() == user);
        if is_shared {
            lock(&self.owners).insert(user, other);
        }
        is_shared
    }

    /// A user id that no home has. The homes are listed once: if their disk hangs, only new people wait.
    fn next_user(&self, first: u32, homes: &Path) -> io::Result<u32> {
        let known = *lock(&self.next_user);
        let next = match known {
            Some(known) => known,
            None => next_user(homes, first)?,
        };
        let mut kept = lock(&self.next_user);
        let user = kept.unwrap_or(next);
        *kept = Some(user.saturating_add(1));
        Ok(user)
    }

    /// A sandbox that was not possible when the server began may be possible now: a machine that has just started is
    /// busy.
    fn has_sandbox(&self) -> bool {
        if self.has_sandbox.load(Ordering::SeqCst) {
            return true;
        }
        let has_one = self.settings.sandbox_again.is_some_and(|look| look());
        if has_one {
            tracing::info!("this machine can make sandboxes now; runs have one from here on");
            self.has_sandbox.store(true, Ordering::SeqCst);
        }
        has_one
    }

    /// If the boundary of a run does not hold, a person may still use their own machine. With several people, an admin
    /// decides.
    fn check_boundary(&self, grant: &Grant) -> Result<(), Trouble> {
        let has_sandbox = self.has_sandbox.load(Ordering::SeqCst);
        match WeakBoundary::of(has_sandbox, self.settings.first_user.is_some()) {
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

    /// Checks that a mounted folder exists. The folder of an environment that is to be built is created here.
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

    /// The routes of a run. A private range that an admin opens is not closed. Addresses that no setting opens are
    /// closed in addition, as smaller ranges.
    fn network(&self, reach: &Reach) -> io::Result<Network> {
        let private = network::PRIVATE_RANGES.into_iter();
        let private = private.filter(|range| !reach.ranges.iter().any(|one| one.contains(*range)));
        let never = METADATA.into_iter().chain([network::GATEWAY]);
        let never = never.chain(reach.database.iter().copied());
        let closed = private.chain(never.map(Range::of_one));
        let closed = closed.chain(self.settings.closed.iter().copied());
        let own = match self.settings.has_network {
            true => machine::own_addresses()?,
            false => Vec::new(),
        };
        let closed = closed.chain(own.into_iter().map(Range::of_one));
        let addresses = reach.addresses.iter().copied().map(Range::of_one);
        let opened = reach.ranges.iter().copied().chain(addresses);
        Ok(Network {
            is_open: self.settings.has_network,
            closed: closed.map(|range| range.to_string()).collect(),
            opened: opened.map(|range| range.to_string()).collect(),
        })
    }

    /// Starts a supervisor. A second one finds the lock taken and exits.
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
        // Only reaps the supervisor if it ends before this server does.
        tokio::spawn(async move { keeper.wait().await });
        Ok(())
    }

    pub fn sign(&self, run: &Run, now: Timestamp) -> io::Result<Sign> {
        let folder = self.folder(run.id);
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
                How::Stopped => stopped(run),
            };
            return Ok(Sign::Ended {
                at: end.at,
                outcome,
                said: end.said.parse().ok(),
            });
        }
        match folder.kept()? {
            // This version cannot reach the run. The run dies with its supervisor, and the next poll says why.
            Kept::By(_) if folder.is_of_an_older_version() => {
                folder.signal_keeper(Signal::KILL)?;
                Ok(Sign::Running)
            }
            Kept::By(_) => Ok(Sign::Running),
            Kept::NotYet if folder.is_told_to_end() => Ok(Sign::Ended {
                at: now,
                outcome: stopped(run),
                said: None,
            }),
            Kept::NotYet if run.state == RunState::Starting => Ok(Sign::Unknown),
            // The start was not completed. A supervisor that comes late finds that the run has ended.
            Kept::NotYet if matches!(run.state, RunState::Stopping { .. }) => {
                folder.tell_to_end()?;
                Ok(Sign::Ended {
                    at: now,
                    outcome: stopped(run),
                    said: None,
                })
            }
            Kept::NotYet => {
                // The machine is busy, and the supervisor is slow to start. Of two supervisors, one finds the lock
                // taken and exits.
                self.keep(run.id)?;
                Ok(Sign::Running)
            }
            Kept::NoMore => {
                // A new supervisor finds that the run has begun, kills the rest of it, and records its end.
                self.keep(run.id)?;
                Ok(Sign::Running)
            }
        }
    }

    /// Settles a run that has ended in the database but not in its folder, which would otherwise stay for ever. That
    /// happens if its supervisor was killed and nothing has polled the run since. A new supervisor kills the rest and
    /// records the end; then the folder can be removed.
    pub fn settle_ended(&self, run: RunId) -> io::Result<()> {
        let folder = self.folder(run);
        if !folder.path().exists() || folder.end()?.is_some() {
            return Ok(());
        }
        match folder.kept()? {
            Kept::NotYet => folder.tell_to_end(),
            Kept::NoMore => self.keep(run),
            Kept::By(_) => Ok(()),
        }
    }
}

/// The parts of the private ranges that a run reaches, and the addresses of the server's database. Both are resolved at
/// each start, because names change.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub ranges: Vec<Range>,
    pub addresses: Vec<Ipv4Addr>,
    pub database: Vec<Ipv4Addr>,
}

/// Ends every run below a folder, for a caller that is about to remove the folder.
pub fn end_everything(folder: &Path) -> io::Result<()> {
    let runs = match std::fs::read_dir(folder.join("runs")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        runs => runs?,
    };
    for run in runs {
        end(&Folder::at(run?.path()))?;
    }
    Ok(())
}

fn end(folder: &Folder) -> io::Result<()> {
    if !folder.path().exists() || !folder.may_run()? {
        return Ok(());
    }
    folder.set_until(Timestamp::MIN)?;
    folder.tell_to_end()?;
    folder.signal_keeper(Signal::TERM).ok();
    Ok(())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next user id after all owners of homes.
fn next_user(homes: &Path, first: u32) -> io::Result<u32> {
    use std::os::unix::fs::MetadataExt;
    let mut next = first;
    for other in std::fs::read_dir(homes)? {
        next = next.max(other?.metadata()?.uid().saturating_add(1));
    }
    Ok(next)
}

/// The outcome of a run that ended because it was asked or forced to.
fn stopped(run: &Run) -> Outcome {
    match run.state {
        RunState::Stopping { because, .. } => because.outcome(),
        // The deadline passed before any server could stop the run.
        _ => Outcome::TimedOut,
    }
}

/// Gives a new home its name, unless the home exists by now.
fn rename_new(new: &Path, home: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, new, CWD, home, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::EXIST) => std::fs::remove_dir(new),
        renamed => Ok(renamed?),
    }
}

/// Without a sandbox, no folder can be mounted at another path.
fn check_mounts(mounts: &[Seen]) -> Result<(), Trouble> {
    match mounts.iter().find(|mount| mount.from != mount.to) {
        None => Ok(()),
        Some(mount) => Err(Trouble::Refused(format!(
            "it needs {}, which only a sandbox can show it, and this machine has none",
            mount.to.display()
        ))),
    }
}

fn has_app_token(program: &Program) -> bool {
    let mut values = program.environment.values();
    values.any(|value| value.contains(APP_TOKEN))
}

/// The environment of the program: variables that say where it runs, and its own.
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
