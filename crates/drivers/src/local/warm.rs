//! Fork servers: app servers that start before anybody asks for them. The code calls them warm servers.
//!
//! A notebook spends most of its start on loading code, which is the same for everybody. A *fork server* has loaded the
//! code and waits. A person who starts the app gets a fork of it in their own sandbox ([`bring`]). So one fork server
//! is enough for any number of people at the same time, and the memory that the forks share exists once. It has run
//! nobody's code, sees nothing but its environment, and has no home, no token and no network. A fork gets them when a
//! run claims it. A fork server may change its user and nothing else.
//!
//! There is one for each environment that was prepared for this and is in use. It starts with the first run in the
//! environment. It ends if nobody uses it for a day, if there are too many, or if a run needs its memory; the next run
//! starts it again. The server never loads an environment that people built before they run it.

pub mod bring;

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use berth_model::environment::INSIDE;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::sandbox::Line;
use super::{machine, syscalls};
use crate::backend::Seen;
use crate::environments::Prepared;

const PROGRAM: &str = include_str!("warm/warm.py");
const PROGRAM_INSIDE: &str = "/run/berth/warm.py";
/// Seccomp filters, by their names in the pool's folder and next to the program.
const FILTERS: [&str; 2] = ["filter-1.bpf", "filter-2.bpf"];
/// A placeholder home, by which the program finds the values that it derived from its home. No person's home begins
/// like it.
const NOBODYS_HOME: &str = "/home/nobodys-home";
/// The user id before it becomes a person's: on every machine, the user that owns nothing.
const NOBODY: &str = "65534";
/// How long an unused fork server is kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout for loading its code.
const BEGINNING: Duration = Duration::from_secs(120);
/// Memory that must stay free on the machine next to a fork server.
const ROOM_MIB: u64 = 512;

/// The fork servers of this machine.
#[derive(Debug)]
pub struct Pool {
    folder: PathBuf,
    most: usize,
    /// By the name of their environment's folder.
    all: Arc<Mutex<HashMap<String, Server>>>,
}

#[derive(Debug)]
struct Server {
    socket: PathBuf,
    is_ready: Arc<AtomicBool>,
    used: Instant,
    /// The fork server ends when this is dropped.
    _life: oneshot::Sender<()>,
}

impl Pool {
    /// `None` if there must be no fork servers. The ones that were in use when the last server ended start again.
    pub fn open(work: &Path, prepared: &Path, most: usize) -> io::Result<Option<Pool>> {
        let folder = work.join("warm");
        if most == 0 {
            return Ok(None);
        }
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let program = folder.join("warm.py");
        let put = |path: &Path, bytes: &[u8]| {
            fs::write(path, bytes)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o644))
        };
        put(&program, PROGRAM.as_bytes())?;
        for (name, filter) in FILTERS.iter().zip(syscalls::filters()?) {
            put(&folder.join(name), &filter)?;
        }
        let pool = Pool {
            folder,
            most,
            all: Arc::default(),
        };
        for key in pool.recently_used()? {
            let from = prepared.join(&key);
            let Some(about) = Prepared::found(&from) else {
                continue;
            };
            let Ok(name) = key.parse() else { continue };
            let to = Path::new(INSIDE).join(Prepared::path(&name));
            pool.begin(
                &key,
                &Seen {
                    from,
                    to,
                    is_writable: false,
                },
                &about,
            );
        }
        Ok(Some(pool))
    }

    /// The names of the recently used environments, the last used first.
    fn recently_used(&self) -> io::Result<Vec<String>> {
        let mut used = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
            if let (Some("used"), Some(key)) = (extension(&path), path.file_stem())
                && age < KEPT
            {
                used.push((age, key.to_string_lossy().into_owned()));
            }
        }
        used.sort();
        Ok(used
            .into_iter()
            .take(self.most)
            .map(|(_, key)| key)
            .collect())
    }

    /// The socket of the fork server of an environment, if it is ready. If there is none, one starts for the next run.
    pub fn claim(&self, environment: &Seen) -> Option<PathBuf> {
        let key = environment.from.file_name()?.to_str()?;
        let about = Prepared::found(&environment.from)?;
        // Only the next server reads this file; without it, that server does not start this fork server early.
        let used = File::create(self.folder.join(format!("{key}.used")));
        used.and_then(|file| file.set_modified(SystemTime::now()))
            .ok();
        if let Some(server) = self.lock().get_mut(key) {
            server.used = Instant::now();
            let is_ready = server.is_ready.load(Ordering::SeqCst);
            return is_ready.then(|| server.socket.clone());
        }
        self.begin(key, environment, &about);
        None
    }

    /// Ends all fork servers if the machine does not have memory for both them and this run.
    pub fn make_room(&self, memory_mib: u64) {
        if machine::available_mib() < memory_mib.saturating_add(ROOM_MIB) {
            self.lock().clear();
        }
    }

    fn begin(&self, key: &str, environment: &Seen, about: &Prepared) {
        if about.warm().is_empty() || machine::available_mib() < 2 * ROOM_MIB {
            return;
        }
        let mut all = self.lock();
        if all.len() >= self.most {
            let oldest = all.iter().min_by_key(|(_, server)| server.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| all.remove(&key));
        }
        let is_ready = Arc::new(AtomicBool::new(false));
        let (life, over) = oneshot::channel();
        let socket = self.folder.join(format!("{key}.sock"));
        let server = Server {
            socket: socket.clone(),
            is_ready: is_ready.clone(),
            used: Instant::now(),
            _life: life,
        };
        all.insert(key.to_owned(), server);
        drop(all);
        let command = command(&self.folder, environment, about.warm());
        let (all, key) = (self.all.clone(), key.to_owned());
        tokio::spawn(async move {
            let kept = keep(command, &socket, &is_ready, over, || unused(&all, &key)).await;
            if let Err(error) = kept {
                tracing::warn!(%error, environment = key, "no warm server for it; it starts cold");
            }
            let is_same = |server: &Server| Arc::ptr_eq(&server.is_ready, &is_ready);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.get(&key).is_some_and(is_same) {
                all.remove(&key);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Server>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// How long nobody has used it; the maximum if it no longer exists.
fn unused(all: &Mutex<HashMap<String, Server>>, key: &str) -> Duration {
    let all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(key)
        .map_or(Duration::MAX, |server| server.used.elapsed())
}

/// Runs one fork server from its start to its end.
async fn keep(
    mut command: Command,
    socket: &Path,
    is_ready: &AtomicBool,
    mut over: oneshot::Receiver<()>,
    unused: impl Fn() -> Duration,
) -> io::Result<()> {
    let path = socket.to_owned();
    // A disk that hangs occupies this thread, and only this task waits.
    let bound = tokio::task::spawn_blocking(move || bind_anew(&path));
    let listener = tokio::time::timeout(BEGINNING, bound).await;
    let listener = listener.map_err(io::Error::from)???;
    let mut child = command.stdin(OwnedFd::from(listener)).spawn()?;
    let said = tokio::time::timeout(BEGINNING, ready(&mut child)).await;
    if !matches!(said, Ok(Ok(()))) {
        return Err(io::Error::other(
            "it ended, or took too long, before it was ready",
        ));
    }
    is_ready.store(true, Ordering::SeqCst);
    loop {
        let left = KEPT.saturating_sub(unused());
        if left.is_zero() {
            return Ok(());
        }
        tokio::select! {
            _ = &mut over => return Ok(()),
            ended = child.wait() => {
                let ended = ended?;
                return Err(io::Error::other(format!("it ended: {ended}")));
            }
            () = tokio::time::sleep(left) => {}
        }
    }
}

/// Replaces the socket that an earlier server left behind.
fn bind_anew(socket: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    fs::remove_file(socket).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    std::os::unix::net::UnixListener::bind(socket)
}

async fn ready(child: &mut Child) -> io::Result<()> {
    let mut said = [0; b"ready\n".len()];
    match child.stdout.as_mut() {
        Some(stdout) => stdout.read_exact(&mut said).await.map(drop),
        None => Err(io::Error::other("it has no output")),
    }
}

/// It has a sandbox of its own: the system's programs and the environment, no writable files, no network. The only
/// privilege of root that it keeps is to become another user.
fn command(folder: &Path, environment: &Seen, modules: &[&str]) -> Command {
    let program = Path::new(PROGRAM_INSIDE);
    let mut line = Line::default();
    line.words(&["--unshare-net", "--unshare-ipc", "--unshare-uts"]);
    line.words(&["--unshare-cgroup-try", "--new-session"]);
    line.programs();
    line.seen("--ro-bind-try", Path::new("/etc/ld.so.cache"));
    line.words(&["--dev", "/dev", "--tmpfs", "/tmp"]);
    // Only root could enter the parent folders that bubblewrap itself makes for a mount.
    let above = [environment.to.as_path(), program].map(|path| path.ancestors().skip(1));
    let above = above
        .into_iter()
        .flatten()
        .filter(|path| path.parent().is_some());
    for path in above.collect::<BTreeSet<_>>() {
        line.words(&["--perms", "0755", "--dir"]);
        line.0.push(path.into());
    }
    line.bind("--ro-bind", &environment.from, &environment.to);
    line.bind("--ro-bind", &folder.join("warm.py"), program);
    let filters = FILTERS.map(|name| program.with_file_name(name));
    for (name, inside) in FILTERS.iter().zip(&filters) {
        line.bind("--ro-bind", &folder.join(name), inside);
    }
    line.words(&["--remount-ro", "/", "--chdir", "/", "--clearenv"]);
    line.words(&["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    line.words(&["--setenv", "LANG", "C.UTF-8"]);
    line.words(&["--setenv", "HOME", NOBODYS_HOME]);
    line.words(&["--cap-drop", "ALL"]);
    for capability in ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"] {
        line.words(&["--cap-add", capability]);
    }
    line.words(&["--", "setpriv", "--clear-groups", "--no-new-privs"]);
    line.words(&["--reuid", NOBODY, "--regid", NOBODY]);
    line.words(&[
        "--inh-caps=+setuid,+setgid",
        "--ambient-caps=+setuid,+setgid",
    ]);
    line.words(&["--bounding-set=-all,+setuid,+setgid"]);
    line.0.push(environment.to.join("bin/python").into());
    line.words(&["-I", PROGRAM_INSIDE]);
    line.0.extend(filters.map(Into::into));
    line.words(&["--"]);
    line.words(modules);
    let mut command = Command::new("bwrap");
    command
        .args(line.0)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    command
}
