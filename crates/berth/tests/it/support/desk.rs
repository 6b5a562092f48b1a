//! Someone at a terminal: a home directory of their own, and a server to talk to.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use berth_testkit::server::{BerthServer, Launch};
use serde_json::Value;
use tempfile::TempDir;

pub const PASSWORD: &str = "correct horse battery";
/// How the id of a reservation begins.
pub const RESERVATION: &str = "rsv_";
const ID_CHARS: usize = 30;
/// For what should happen at once, on a machine that may have much else to do.
const SOON: Duration = Duration::from_secs(30);

const BERTH: &str = env!("CARGO_BIN_EXE_berth");

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\ndata_dir = \"{directory}\"\n";

#[derive(Debug)]
pub struct Desk {
    server: Option<BerthServer>,
    url: String,
    home: TempDir,
}

/// What a command left behind.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "what was typed is for whoever reads a failure")]
pub struct Ended {
    line: String,
    code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Desk {
    /// A server whose admin `ada`, made beside it while it runs, is signed in here.
    pub async fn with_admin() -> Self {
        Self::with_admin_of(CONFIG).await
    }

    /// The same, of a server with this configuration.
    pub async fn with_admin_of(config: &str) -> Self {
        let desk = Self::before(config).await;
        let create = format!(
            "admin create ada --password-stdin --config {}",
            desk.config()
        );
        desk.run_with(&create, &format!("{PASSWORD}\n")).succeeds();
        desk.login("ada");
        desk
    }

    /// Furnishes a site of one node, which is this machine, with these settings of its queue. It has more than there is:
    /// what runs in tests takes nearly nothing.
    pub fn with_site(self, queue: &str) -> Self {
        self.write("queue.yaml", queue);
        for line in [
            "site create torino --title Torino --time-zone Europe/Rome",
            "site use torino",
            "member add ada --role site-admin",
            "type create node --title Node",
            "type create cpu --title Cores",
            "type create memory --title Memory",
            "resource add here --type node",
            "resource add here.cpu --type cpu --in here --capacity 16000:millicores",
            "resource add here.memory --type memory --in here --capacity 32768:mib",
            "queue set queue.yaml",
        ] {
            self.run(line).succeeds();
        }
        self
    }

    /// A server with this configuration, and nobody signed in.
    pub async fn before(config: &str) -> Self {
        let launch = Launch::new(BERTH, config);
        let server = launch.start().await.expect("the server starts");
        Self {
            url: server.url(""),
            server: Some(server),
            home: TempDir::new().expect("a home"),
        }
    }

    /// Someone else, in front of the same server.
    pub fn another(&self) -> Self {
        Self {
            server: None,
            url: self.url.clone(),
            home: TempDir::new().expect("a home"),
        }
    }

    pub fn login(&self, login: &str) {
        let line = format!("login {} --login {login} --password-stdin", self.url);
        self.run_with(&line, &format!("{PASSWORD}\n")).succeeds();
    }

    pub fn server(&self) -> &BerthServer {
        self.server.as_ref().expect("this desk has the server")
    }

    pub fn server_mut(&mut self) -> &mut BerthServer {
        self.server.as_mut().expect("this desk has the server")
    }

    pub fn config(&self) -> String {
        self.server().config_path().display().to_string()
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        fs::write(&path, text).expect("write a file");
        path
    }

    /// Types a line, without `berth`. Words are parted by spaces; `|` stands for a quote.
    #[track_caller]
    pub fn run(&self, line: &str) -> Ended {
        self.execute(Path::new(BERTH), line, "", &[])
    }

    /// Types a line after one of Slurm's commands, which `berth slurm link bin` has made.
    #[track_caller]
    pub fn run_as(&self, program: &str, line: &str) -> Ended {
        self.execute(&self.link(program), line, "", &[])
    }

    #[track_caller]
    pub fn run_with(&self, line: &str, input: &str) -> Ended {
        self.execute(Path::new(BERTH), line, input, &[])
    }

    #[track_caller]
    pub fn run_in(&self, line: &str, environment: &[(&str, &str)]) -> Ended {
        self.execute(Path::new(BERTH), line, "", environment)
    }

    /// Starts a command that goes on by itself.
    pub fn start(&self, line: &str) -> Running {
        Self::started(self.command(Path::new(BERTH), line))
    }

    /// The same of one of Slurm's commands.
    pub fn start_as(&self, program: &str, line: &str) -> Running {
        Self::started(self.command(&self.link(program), line))
    }

    fn link(&self, program: &str) -> PathBuf {
        self.home().join("bin").join(program)
    }

    fn started(mut command: Command) -> Running {
        let mut child = command.spawn().expect("start berth");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nobody listens any more once the command is dropped.
                sender.send(line).ok();
            }
        });
        Running { child, lines }
    }

    fn command(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(words(line))
            .current_dir(self.home())
            .env_clear()
            .env("HOME", self.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    #[track_caller]
    fn execute(
        &self,
        program: &Path,
        line: &str,
        input: &str,
        environment: &[(&str, &str)],
    ) -> Ended {
        let mut command = self.command(program, line);
        command.envs(environment.iter().copied());
        let mut child = command.spawn().expect("start berth");
        let mut stdin = child.stdin.take().expect("its input");
        // A command that reads nothing may be gone already.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        let output = child.wait_with_output().expect("its end");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Ended {
            line: line.to_owned(),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A command that runs until it is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    /// The next line of its output, which must come soon.
    #[track_caller]
    pub fn next_line(&mut self) -> String {
        self.lines.recv_timeout(SOON).expect("another line")
    }

    /// Waits until it ends by itself.
    pub fn end(&mut self) -> Option<i32> {
        self.child.wait().expect("its end").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn words(line: &str) -> Vec<String> {
    let quoted = |(position, part): (usize, &str)| -> Vec<String> {
        if position % 2 == 1 {
            vec![part.to_owned()]
        } else {
            part.split_whitespace().map(ToOwned::to_owned).collect()
        }
    };
    line.split('|').enumerate().flat_map(quoted).collect()
}

impl Ended {
    #[track_caller]
    pub fn succeeds(&self) -> Self {
        self.ends_with(0);
        self.clone()
    }

    #[track_caller]
    pub fn ends_with(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:#?}");
    }

    #[track_caller]
    pub fn fails(&self) {
        assert_ne!(self.code, Some(0), "{self:#?}");
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The first id of this kind in what was said.
    #[track_caller]
    pub fn find(&self, prefix: &str) -> String {
        let all = format!("{}{}", self.stdout, self.stderr);
        let at = all
            .find(prefix)
            .unwrap_or_else(|| panic!("no {prefix}…: {self:#?}"));
        all[at..at + ID_CHARS].to_owned()
    }
}
