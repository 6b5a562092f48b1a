//! Child processes that cannot outlive the test that started them.
//!
//! A guard that kills on drop is not enough, because a test process that is killed drops nothing. So the kernel signals
//! the child when its parent dies (`setpriv --pdeathsig`). By parent the kernel means the parent *thread*, and threads
//! of a test runner or of a tokio runtime come and go. So one thread that lives as long as the process starts every
//! child.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

/// A running child process, killed when this value is dropped or when the test process ends.
#[derive(Debug)]
pub struct Tethered {
    child: Child,
}

/// The signals that a test can send to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Int,
    Kill,
    Quit,
    Term,
}

/// The user of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the test.
    Same,
    /// Another user, which only root may choose.
    Named(&'static str),
}

/// A command for a process that gets `at_parents_death` when the test process is gone. The caller adds arguments and
/// environment; `spawn` starts it.
pub fn command(program: impl AsRef<OsStr>, user: User, at_parents_death: Signal) -> Command {
    let mut command = Command::new("setpriv");
    command.arg("--pdeathsig").arg(at_parents_death.name());
    if let User::Named(name) = user {
        command.args([format!("--reuid={name}"), format!("--regid={name}")]);
        command.arg("--init-groups");
    }
    command.arg("--").arg(program);
    command
}

/// Starts a `command` on the thread that never ends.
pub fn spawn(command: Command) -> Result<Tethered> {
    type Order = (Command, Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (orders, queue) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in queue {
                // The reply has no receiver only if the asking thread has died; its child dies with it.
                reply.send(command.spawn()).ok();
            }
        });
        orders
    });
    let described = format!("{command:?}");
    let (reply, answer) = channel();
    spawner
        .send((command, reply))
        .context("the spawning thread is gone")?;
    let child = answer
        .recv()
        .context("the spawning thread is gone")?
        .with_context(|| format!("could not start {described}"))?;
    Ok(Tethered { child })
}

impl Tethered {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status of the process, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// `kill -9`: the process gets no chance to write another byte. Returns once it is gone.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        self.child.kill()?;
        Ok(self.child.wait()?)
    }

    /// Asks the process to end and waits for it. Kills it if that takes longer than `patience`.
    pub fn stop(&mut self, signal: Signal, patience: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        rustix::process::kill_process(Pid::from_child(&self.child), signal.number())?;
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let id = self.id();
        self.kill9()?;
        bail!("process {id} did not end within {patience:?} of {signal:?} and was killed")
    }
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::Kill => "KILL",
            Self::Quit => "QUIT",
            Self::Term => "TERM",
        }
    }

    fn number(self) -> rustix::process::Signal {
        match self {
            Self::Int => rustix::process::Signal::INT,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Quit => rustix::process::Signal::QUIT,
            Self::Term => rustix::process::Signal::TERM,
        }
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        // An error means that the process has ended and was reaped.
        self.kill9().ok();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;

    use super::*;
    use crate::wait;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A shell with `$1` as a file into which it writes signs of life.
    fn shell(script: &str, signs: &Path) -> Tethered {
        let mut command = command("sh", User::Same, Signal::Kill);
        command.args(["-c", script, "sh"]).arg(signs);
        spawn(command).expect("start a shell")
    }

    fn size(file: &Path) -> u64 {
        fs::metadata(file).map_or(0, |metadata| metadata.len())
    }

    #[tokio::test]
    async fn a_child_outlives_the_thread_that_asked_for_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let signs = directory.path().join("signs");
        let file = signs.clone();
        let script = r#"while :; do echo >>"$1"; sleep 0.01; done"#;
        let asking = std::thread::spawn(move || shell(script, &file));
        let mut child = asking.join().expect("the asking thread");
        let later = size(&signs) + 10;
        wait::until("ten more signs of life", PATIENCE, async || {
            size(&signs) >= later
        })
        .await;
        assert_eq!(child.ended().expect("look at the child"), None);
    }

    #[test]
    fn stop_passes_the_signal_on_and_reports_the_end() {
        let mut child = shell("exec sleep 600", Path::new("/dev/null"));
        let status = child.stop(Signal::Term, PATIENCE).expect("stop");
        assert_eq!(status.signal(), Some(Signal::Term.number().as_raw()));
    }

    #[tokio::test]
    async fn stop_kills_what_does_not_listen() {
        let directory = tempfile::tempdir().expect("a directory");
        let signs = directory.path().join("signs");
        let mut child = shell(r#"trap '' TERM; echo >"$1"; exec sleep 600"#, &signs);
        wait::until("its ears to be closed", PATIENCE, async || size(&signs) > 0).await;
        let error = child
            .stop(Signal::Term, Duration::from_millis(50))
            .expect_err("ignored");
        assert!(error.to_string().contains("was killed"), "{error}");
        assert!(child.ended().expect("look at the child").is_some());
    }
}
