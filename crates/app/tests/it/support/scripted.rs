//! Something that runs work as a test tells it to, with a web server behind every run's door.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use berth_drivers::backend::{
    Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Sign, Trouble, Used,
};
use berth_drivers::door::{self, Key};
use berth_model::workload::{Outcome, RunState};
use berth_model::{PersonId, ResourceId, RunId, SiteId};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

#[derive(Debug)]
pub struct Scripted {
    script: Arc<Mutex<Script>>,
    folder: TempDir,
}

#[derive(Debug, Default)]
pub struct Script {
    /// Whether it does not hear that something is to be started.
    pub is_deaf: bool,
    /// Whether it cannot see the machine on which things run.
    pub is_unreachable: bool,
    /// The machine on which things run, where only a server on it can see them.
    pub machine: Option<&'static str>,
    /// The site whose starts never come back.
    pub start_hangs_at: Option<SiteId>,
    /// The site whose starts panic.
    pub start_panics_at: Option<SiteId>,
    /// Whether a look at what runs never comes back.
    pub look_hangs: bool,
    /// Whether what is started answers.
    pub answers: bool,
    /// How many of the next questions are taken and never answered.
    pub ignores: usize,
    /// What becomes of everything that starts, at once.
    pub comes_to: Option<(Outcome, &'static str)>,
    /// What it says of everybody's disk space.
    pub space: DiskSpace,
    /// Whether what is told to end takes all the time it has.
    pub lingers: bool,
    /// What became of some, by themselves.
    pub ended: BTreeMap<RunId, Outcome>,
    /// What the app says of its kernels.
    pub kernels: String,
    pub cpu_us: u64,
    /// How many of its programs were ended for want of memory.
    pub out_of_memory: u64,
    pub life: Life,
    /// Whether a look for signs of life never comes back.
    pub life_hangs: bool,
    /// How many such looks are waited for.
    pub looks_hung: usize,
    pub started: BTreeMap<RunId, u32>,
    /// The variables of everything that was started.
    pub variables: Vec<BTreeMap<String, String>>,
    pub stopped: BTreeSet<RunId>,
}

impl Scripted {
    pub fn new() -> Arc<Scripted> {
        let script = Script {
            answers: true,
            kernels: "[]".to_owned(),
            ..Script::default()
        };
        let folder = TempDir::new().expect("a folder");
        let scripted = Arc::new(Scripted {
            script: Arc::new(Mutex::new(script)),
            folder,
        });
        let listener = UnixListener::bind(scripted.socket()).expect("a socket");
        tokio::spawn(serve(listener, scripted.script.clone()));
        scripted
    }

    pub fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("nobody panics holding it")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("app.sock")
    }
}

/// A look that hangs, for as long as somebody waits for it.
struct Hung<'a>(&'a Scripted);

impl Hung<'_> {
    fn begin(of: &Scripted) -> Hung<'_> {
        of.script().looks_hung += 1;
        Hung(of)
    }
}

impl Drop for Hung<'_> {
    fn drop(&mut self) {
        self.0.script().looks_hung -= 1;
    }
}

/// What a visitor has to show.
fn key() -> Key {
    Key::from_bytes(&[7; Key::BYTES]).expect("it has the right length")
}

async fn serve(listener: UnixListener, script: Arc<Mutex<Script>>) {
    let mut ignored = Vec::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let is_ignored = {
            let mut script = script.lock().expect("nobody panics holding it");
            let is_ignored = script.ignores > 0;
            script.ignores = script.ignores.saturating_sub(1);
            is_ignored
        };
        if is_ignored {
            ignored.push(stream);
            continue;
        }
        if door::admit(&mut stream, &key()).await.is_err() {
            continue;
        }
        let mut head = [0; 2048];
        let length = stream.read(&mut head).await.unwrap_or(0);
        let head = String::from_utf8_lossy(&head[..length]).into_owned();
        let (status, body) = {
            let script = script.lock().expect("nobody panics holding it");
            match script.answers {
                true if head.starts_with("GET /api/kernels") => ("200 OK", script.kernels.clone()),
                true => ("200 OK", "[]".to_owned()),
                false => ("503 Service Unavailable", String::new()),
            }
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.ok();
    }
}

impl Backend for Scripted {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        _grant: &'a Grant,
        _fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, ()> {
        if self.script().is_deaf {
            return Box::pin(async { Err(Trouble::NoAnswer("it is deaf".to_owned())) });
        }
        let panics = self.script().start_panics_at == Some(job.run.site);
        assert!(!panics, "the backend panics");
        let variables = job.workload.ask.program.environment.clone();
        self.script().variables.push(variables);
        *self.script().started.entry(job.run.id).or_default() += 1;
        let hangs = self.script().start_hangs_at == Some(job.run.site);
        Box::pin(async move {
            match hangs {
                true => std::future::pending().await,
                false => Ok(()),
            }
        })
    }

    fn stop<'a>(&'a self, job: Job<'a>, _fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        self.script().stopped.insert(job.run.id);
        Box::pin(async { Ok(()) })
    }

    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        self.script().machine.map(str::to_owned)
    }

    fn reaches(&self, _machine: &str) -> bool {
        !self.script().is_unreachable
    }

    fn disk_space<'a>(&'a self, _person: PersonId) -> Doing<'a, DiskSpace> {
        let space = self.script().space.clone();
        Box::pin(async { Ok(space) })
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        let script = self.script();
        let sign = |job: &Job<'_>| {
            let run = job.run;
            match run.state {
                _ if script.is_unreachable => Sign::Unreachable,
                _ if !script.started.contains_key(&run.id) => Sign::Unknown,
                RunState::Stopping { .. } if script.lingers && now < run.until => Sign::Running,
                RunState::Stopping { because, .. } if script.stopped.contains(&run.id) => {
                    Sign::Ended {
                        at: now,
                        outcome: because.outcome(),
                        said: None,
                    }
                }
                _ if script.ended.contains_key(&run.id) => Sign::Ended {
                    at: now,
                    outcome: script.ended[&run.id],
                    said: None,
                },
                _ => match script.comes_to {
                    Some((outcome, said)) => Sign::Ended {
                        at: now,
                        outcome,
                        said: said.parse().ok(),
                    },
                    None => Sign::Running,
                },
            }
        };
        let signs = jobs.iter().map(sign).collect();
        let hangs = script.look_hangs;
        Box::pin(async move {
            match hangs {
                true => std::future::pending().await,
                false => Ok(signs),
            }
        })
    }

    fn door<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Door>> {
        let door = Door {
            socket: self.socket(),
            key: key(),
            has_app_token: false,
        };
        Box::pin(async { Ok(Some(door)) })
    }

    fn log<'a>(&'a self, _job: Job<'a>, _bytes: u64) -> Doing<'a, String> {
        Box::pin(async { Ok("Listening\n".to_owned()) })
    }

    fn life<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Life> {
        let script = self.script();
        let (life, hangs) = (script.life, script.life_hangs);
        drop(script);
        Box::pin(async move {
            if hangs {
                let _waited_for = Hung::begin(self);
                std::future::pending::<()>().await;
            }
            Ok(life)
        })
    }

    fn used<'a>(&'a self, _job: Job<'a>) -> Doing<'a, Option<Used>> {
        let script = self.script();
        let used = Used {
            cpu_us: script.cpu_us,
            out_of_memory: script.out_of_memory,
            ..Used::default()
        };
        Box::pin(async move { Ok(Some(used)) })
    }
}
