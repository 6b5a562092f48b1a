//! Somebody attacks from inside their own live session whatever the server and the supervisor touch. While each attack is
//! held open, another person's request, start and job go through, and nothing of theirs is reached.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use berth_testkit::wait;
use reqwest::Method;
use reqwest::header::AUTHORIZATION;

use super::people::{Person, SOON, site_with};

/// The activity of sessions is looked at all the time, so that each look meets the attack.
const LOOKS: &str = "cull_every_s = 1\n";
/// What the server may grow by. It reads with bounds of kilobytes; the files it could read are terabytes.
const GROWTH_MAX_KIB: u64 = 96 << 10;

/// A way to attack: lines that begin it and come back, and what takes it away again.
struct Attack {
    name: &'static str,
    begin: &'static str,
    end: &'static str,
    /// Whether the attacker's own session answers meanwhile.
    answers: bool,
}

/// In place of the socket by which visitors reach the attacker's own session.
const fn socket(name: &'static str, begin: &'static str) -> Attack {
    Attack {
        name,
        begin,
        end: "",
        answers: false,
    }
}

const fn home(name: &'static str, begin: &'static str, end: &'static str) -> Attack {
    Attack {
        name,
        begin,
        end,
        answers: true,
    }
}

/// Each socket attack ends by itself, for nothing else could end it: when the file `release` is in the home.
const SOCKETS: &[Attack] = &[
    socket("a link to another's socket", "ln -s \"$VICTIM\" app.sock"),
    socket("a link to the hub's socket", "ln -s \"$HUB\" app.sock"),
    socket("a hard link", "echo x > file && ln file app.sock"),
    socket("a FIFO", "mkfifo app.sock"),
    socket("a directory", "mkdir app.sock"),
    socket(
        "a device",
        "mknod app.sock c 1 5 || ln -s /dev/zero app.sock",
    ),
    socket("a huge file", "head -c 900k /dev/zero > app.sock"),
    socket(
        "a sparse file",
        "truncate -s 1T app.sock || truncate -s 1M app.sock",
    ),
    socket("a socket that is swapped all the time", "SWAP"),
    socket("an app that stops half-way", "HALF"),
    socket("an app that never stops", "ENDLESS"),
];

const HALF: &str = "b'HTTP/1.1 200 OK\\r\\nContent-Length: 10\\r\\n\\r\\nhalf'";
const ENDLESS: &str = "b'HTTP/1.1 200 OK\\r\\nx: ' + b'x' * 65536";

/// An app that answers each connection with some bytes, again and again or once, and then holds it.
fn app(bytes: &str, again: bool) -> String {
    let turns = if again {
        "while True:"
    } else {
        "for turn in range(1):"
    };
    format!(
        "python3 -c \"
import socket, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind('app.sock')
listener.listen(64)
def answer(one):
    try:
        {turns}
            one.sendall({bytes})
        threading.Event().wait()
    except OSError:
        pass
while True:
    one, _ = listener.accept()
    threading.Thread(target=answer, args=(one,), daemon=True).start()
\" &"
    )
}

const FILES: &[Attack] = &[
    home(
        "links out of the home",
        "ln -s / root; ln -s loop loop; ln -s /proc/1/root up; ln -s \"$VICTIM\" theirs",
        "rm root loop up theirs",
    ),
    home("FIFOs in the home", "mkfifo pipe .pipe", "rm pipe .pipe"),
    home(
        "a folder as deep as it goes",
        "python3 -c 'import os
for depth in range(3000):
    os.mkdir(\"deep\")
    os.chdir(\"deep\")'",
        "rm -rf deep",
    ),
    home(
        "very many files",
        "mkdir many; cd many; seq 40000 | xargs touch",
        "rm -rf many",
    ),
    home("a sparse file", "truncate -s 1P sparse || truncate -s 8T sparse", "rm sparse"),
    home(
        "a folder that becomes a link while it is read",
        "mkdir real; ln -s / link
         (setsid bash -c 'exec -a swaps bash -c \"while :; do mv -T link at; mv -T at link; mv -T real at; mv -T at real; done\"' >/dev/null 2>&1 &)",
        "pkill -f ^swaps; rm -rf link at real; true",
    ),
    home(
        "a log without end or line",
        "(setsid bash -c 'exec -a floods bash -c \"while :; do printf %4096s x; done\"' > /proc/$PPID/fd/2 2>&1 &)",
        "pkill -f ^floods; true",
    ),
    home(
        "requests to the hub that stop half-way",
        "(setsid python3 -c '
import socket, time
held = []
for turn in range(100):
    one = socket.create_connection((\"127.0.0.1\", 8081))
    one.sendall(b\"GET /hub/api/user HTTP/1.1\\r\\nhost: x\\r\\nx: \")
    held.append(one)
open(\"held\", \"w\").close()
time.sleep(600)
' >/dev/null 2>&1 &)
        until [ -e held ]; do sleep 0.05; done",
        "pkill -f 'socket, time'; rm held",
    ),
];

/// What would reach the connection between the session and its keeper, or the keeper itself.
const CHANNELS: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    found = libc.syscall(*arguments)
    print(name, 'OPEN' if found >= 0 else os.strerror(ctypes.get_errno()))
def path(name, how):
    try:
        how(name)
        print(name, 'OPEN')
    except OSError as error:
        print(name, error.strerror)
pidfd = libc.syscall(434, 1, 0)
call('pidfd_getfd', 438, pidfd, 0, 0)
print('ptrace', 'OPEN' if libc.ptrace(16, 1, 0, 0) == 0 else os.strerror(ctypes.get_errno()))
for name in ['/proc/1/mem', '/proc/1/environ', '/proc/1/fd/0', '/proc/1/maps']:
    path(name, lambda name: open(name, 'rb').read(1))
path('/proc/1/fd', os.listdir)
path('/proc/1/root', os.listdir)
path('/proc/1/cwd', os.listdir)
"#;

/// Somebody whose work must go on.
struct Victim<'a> {
    person: &'a Person,
    run: String,
}

impl<'a> Victim<'a> {
    async fn with_a_diary(person: &'a Person) -> Victim<'a> {
        person.shell("echo secret > diary").await;
        let run = person.shell("printf %s \"$BERTH_RUN\"").await;
        Victim { person, run }
    }

    /// Their session answers from where it always did, and what they start begins and ends.
    async fn goes_on(&self, attack: &str) {
        let said = self
            .person
            .shell("cat diary; printf %s \"$BERTH_RUN\"")
            .await;
        assert_eq!(said, format!("secret\n{}", self.run), "during {attack}");
        let hub = "curl -s -m 60 -o /dev/null -w '%{http_code}' -H \"Authorization: token $WORD\" http://127.0.0.1:8081/hub/api/user";
        assert_eq!(self.person.shell(hub).await, "200", "during {attack}");
        let desk = &self.person.desk;
        let submit = "submit --cores 0.1 --memory 64MiB --time 5m -o json -- true";
        let job = desk.run(submit).succeeds().json();
        let number = job["number"].as_u64().expect("a number");
        desk.run("session start shell --name another").succeeds();
        wait::until(&format!("their job, during {attack}"), SOON, async || {
            let shown = desk.run(&format!("why {number} -o json")).succeeds().json();
            shown["state"]
                .as_str()
                .is_some_and(|state| state.eq_ignore_ascii_case("completed"))
        })
        .await;
        desk.run("session stop another").succeeds();
        wait::until(
            &format!("their session, during {attack}"),
            SOON,
            async || {
                let shown = desk.run("session show another -o json").succeeds();
                shown.json()["state"] == "stopped"
            },
        )
        .await;
        desk.run("session remove another").succeeds();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attack_from_inside_a_session_reaches_nobody_and_holds_nobody_up() {
    let desk = site_with(LOOKS).await;
    let bo = Person::at_work(&desk, "bo").await;
    let cy = Person::at_work(&desk, "cy").await;
    let victim = Victim::with_a_diary(&cy).await;
    let server = desk.server().id().expect("it runs");
    let before = resident_kib(server);
    channels(&bo).await;
    let paths = format!(
        "VICTIM={} HUB={}",
        cy.folder.join("app.sock").display(),
        desk.server().directory().join("work/hub.sock").display()
    );
    for attack in SOCKETS.iter().chain(FILES) {
        hold(&bo, attack, &paths).await;
        if !attack.answers {
            meets(&bo, attack).await;
        }
        victim.goes_on(attack.name).await;
        release(&bo, attack).await;
    }
    let grown = resident_kib(server).saturating_sub(before);
    assert!(grown < GROWTH_MAX_KIB, "the server grew by {grown} KiB");
    for log in ["log", "log.old"] {
        let size = fs::metadata(bo.folder.join(log)).map_or(0, |log| log.len());
        assert!(size <= 8 << 20, "{log} has {size} bytes");
    }
    in_the_audit_log(&bo, &desk).await;
    bo.end().await;
    cy.end().await;
}

/// Begins an attack from inside. One on the session's own socket is also armed to end by itself.
async fn hold(attacker: &Person, attack: &Attack, paths: &str) {
    let lines = match attack.begin {
        "HALF" => app(HALF, false),
        "ENDLESS" => app(ENDLESS, true),
        "SWAP" => "(while [ ! -e ~/release ]; do ln -sfn real app.sock; ln -sfn / app.sock; mkfifo fifo && mv -T fifo app.sock; done) &".to_owned(),
        lines => lines.to_owned(),
    };
    if attack.answers {
        attacker.shell(&format!("export {paths}; {lines}")).await;
        return;
    }
    let armed = format!(
        "rm -f ~/release ~/held; export {paths}
         setsid bash -c '
           cd /run/berth && mv app.sock real || exit
           {{ {}
           }} 2> ~/said
           touch ~/held
           until [ -e ~/release ]; do sleep 0.05; done
           kill $(jobs -p); wait
           rm -rf app.sock file; mv real app.sock; touch ~/back
         ' > /dev/null 2>&1 &",
        lines.replace('\'', "'\\''")
    );
    attacker.shell(&armed).await;
    let held = home_of(attacker).join("held");
    wait::until(attack.name, SOON, async || held.exists()).await;
}

/// The owner's own visit gets an error or waits, and never an answer of something else.
async fn meets(attacker: &Person, attack: &Attack) {
    let visit = attacker
        .at_session(Method::POST, "/")
        .body("printf %s \"$BERTH_RUN\"");
    let visit = visit.header(AUTHORIZATION, format!("Bearer {}", attacker.token));
    let answer = tokio::time::timeout(std::time::Duration::from_secs(5), visit.send()).await;
    if let Ok(Ok(answer)) = answer {
        let status = answer.status().as_u16();
        let may = attack.begin == "HALF" || attack.begin == "SWAP" || status >= 500;
        assert!(may, "{}: {status}", attack.name);
    }
}

async fn release(attacker: &Person, attack: &Attack) {
    if attack.answers {
        attacker.shell(attack.end).await;
        return;
    }
    let home = home_of(attacker);
    fs::write(home.join("release"), "").expect("it is our own machine");
    let back = home.join("back");
    wait::until(attack.name, SOON, async || back.exists()).await;
    fs::remove_file(back).expect("it is there");
    let said = attacker.shell("echo again").await;
    assert_eq!(said, "again\n", "after {}", attack.name);
}

fn home_of(person: &Person) -> std::path::PathBuf {
    super::home_of(
        person
            .folder
            .ancestors()
            .nth(3)
            .expect("the data directory"),
        person,
    )
}

/// Nothing of the first process of the sandbox can be had: not its descriptors, its memory, or its files.
async fn channels(attacker: &Person) {
    let quoted = CHANNELS.replace('\'', "'\\''");
    let said = attacker.shell(&format!("python3 -c '{quoted}' 2>&1")).await;
    assert!(!said.contains("OPEN"), "{said}");
    let refused = said.lines().filter(|line| {
        line.ends_with("Operation not permitted") || line.ends_with("Permission denied")
    });
    assert_eq!(refused.count(), 9, "{said}");
}

/// The keeper counts connections without the run's key, and the site's admin reads the sum.
async fn in_the_audit_log(attacker: &Person, desk: &super::Desk) {
    let socket = attacker.folder.join("app.sock");
    for _ in 0..300 {
        knock(&socket);
    }
    let entries = wait::some("the attempts in the audit log", SOON, async || {
        let listed = desk
            .run("audit list --action run.attempt -o json")
            .succeeds();
        let entries = listed.json();
        let entries = entries["items"].as_array().or(entries.as_array())?.clone();
        let most = entries
            .iter()
            .filter_map(|entry| entry["after"]["wrong_key"].as_u64())
            .max()?;
        (most >= 256).then_some(entries)
    });
    let entries = entries.await;
    assert!(entries.len() <= 9, "a flood is summed: {entries:?}");
}

fn knock(socket: &Path) {
    let mode = fs::metadata(socket)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.write_all(&[7; 32]).ok();
}

fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}
