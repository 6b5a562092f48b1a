//! The lossy disk must lose unsynced data and nothing else; otherwise the tests on it prove nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use berth_testkit::lossy::Mount;
use berth_testkit::process::{self, Signal, Tethered, User};
use berth_testkit::{tool, wait};
use tempfile::TempDir;

/// A lossy disk and its two directories. The mount is dropped first.
struct Disk {
    mount: Option<Mount>,
    backing: TempDir,
    mountpoint: TempDir,
}

impl Disk {
    fn new() -> Result<Self> {
        let mut disk = Self {
            mount: None,
            backing: TempDir::new()?,
            mountpoint: TempDir::new()?,
        };
        disk.power_on()?;
        Ok(disk)
    }

    fn power_on(&mut self) -> Result<()> {
        self.mount = Some(Mount::start(self.backing.path(), self.mountpoint.path())?);
        Ok(())
    }

    fn take(&mut self) -> Result<Mount> {
        self.mount.take().context("the disk is off")
    }

    fn crash(&mut self) -> Result<()> {
        self.take()?.crash()?;
        self.power_on()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mountpoint.path().join(name)
    }

    /// Makes a file that survives.
    fn synced(&self, name: &str, bytes: &[u8]) -> Result<File> {
        let mut file = File::create_new(self.path(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    Ok(File::open(path)?.sync_all()?)
}

#[test]
fn synced_bytes_are_kept_and_unsynced_ones_lost() -> Result<()> {
    let mut disk = Disk::new()?;
    let file = disk.synced("file", &[b'a'; 10_000])?;
    file.write_all_at(&[b'b'; 5000], 2000)?;
    file.sync_data()?;
    file.write_all_at(&[b'c'; 20_000], 4000)?;
    assert_eq!(fs::metadata(disk.path("file"))?.len(), 24_000);
    drop(file);

    disk.crash()?;
    let expected = [vec![b'a'; 2000], vec![b'b'; 5000], vec![b'a'; 3000]].concat();
    assert!(fs::read(disk.path("file"))? == expected);
    Ok(())
}

#[test]
fn a_truncation_is_lost_unless_synced_and_never_brings_old_bytes_back() -> Result<()> {
    let mut disk = Disk::new()?;
    disk.synced("unsynced", b"all of this")?.set_len(3)?;
    let file = disk.synced("synced", &[b'x'; 9000])?;
    file.set_len(5000)?;
    file.set_len(9000)?;
    file.sync_all()?;
    assert_eq!(fs::read(disk.path("unsynced"))?, b"all");

    disk.crash()?;
    assert_eq!(fs::read(disk.path("unsynced"))?, b"all of this");
    assert!(fs::read(disk.path("synced"))? == [vec![b'x'; 5000], vec![0; 4000]].concat());
    Ok(())
}

#[test]
fn writes_through_o_dsync_need_no_sync() -> Result<()> {
    let mut disk = Disk::new()?;
    disk.synced("file", b"")?;
    let flags = rustix::fs::OFlags::DSYNC.bits().cast_signed();
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(disk.path("file"))?;
    file.write_all_at(b"at once", 0)?;

    disk.crash()?;
    assert_eq!(fs::read(disk.path("file"))?, b"at once");
    Ok(())
}

#[test]
fn names_are_kept_once_file_or_directory_is_synced() -> Result<()> {
    let mut disk = Disk::new()?;
    for name in ["old", "replaced", "removed"] {
        disk.synced(name, name.as_bytes())?;
    }
    fs::write(disk.path("never-synced"), "")?;
    fs::rename(disk.path("old"), disk.path("new"))?;
    fs::remove_file(disk.path("removed"))?;
    File::open(disk.path("replaced"))?.sync_all()?;
    disk.crash()?;
    let names = |disk: &Disk| -> Result<Vec<_>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(disk.mountpoint.path())? {
            names.push(entry?.file_name().into_string().expect("a name of ours"));
        }
        names.sort();
        Ok(names)
    };
    assert_eq!(names(&disk)?, ["old", "removed", "replaced"]);

    fs::create_dir(disk.path("directory"))?;
    fs::hard_link(disk.path("removed"), disk.path("directory/linked"))?;
    fs::remove_file(disk.path("removed"))?;
    fs::rename(disk.path("old"), disk.path("replaced"))?;
    fs::set_permissions(disk.path("directory"), fs::Permissions::from_mode(0o700))?;
    sync_directory(disk.mountpoint.path())?;
    fs::write(disk.path("later"), "")?;
    disk.crash()?;
    assert_eq!(names(&disk)?, ["directory", "replaced"]);
    assert_eq!(fs::read(disk.path("replaced"))?, b"old");
    assert_eq!(fs::read(disk.path("directory/linked"))?, b"removed");
    Ok(())
}

#[test]
fn a_file_renamed_into_place_before_its_bytes_were_synced_is_found_empty() -> Result<()> {
    let mut disk = Disk::new()?;
    disk.synced("config", b"old")?;
    fs::write(disk.path("config.new"), "new")?;
    fs::rename(disk.path("config.new"), disk.path("config"))?;
    sync_directory(disk.mountpoint.path())?;
    disk.crash()?;
    assert_eq!(fs::read(disk.path("config"))?, b"");
    Ok(())
}

#[test]
fn an_orderly_end_keeps_everything() -> Result<()> {
    let mut disk = Disk::new()?;
    fs::create_dir(disk.path("directory"))?;
    fs::write(disk.path("directory/file"), "never synced")?;
    disk.take()?.unmount()?;
    assert_eq!(
        fs::read(disk.backing.path().join("directory/file"))?,
        b"never synced"
    );
    assert_eq!(fs::read_dir(disk.mountpoint.path())?.count(), 0);
    Ok(())
}

#[test]
fn kill_9_is_a_crash_and_a_crash_does_not_wait_for_open_files() -> Result<()> {
    let mut disk = Disk::new()?;
    let open = disk.synced("file", b"kept")?;
    open.write_all_at(b"lost", 0)?;
    disk.crash()?;
    open.sync_all().expect_err("its disk is gone");
    let open = OpenOptions::new().write(true).open(disk.path("file"))?;
    open.write_all_at(b"lost", 0)?;

    let server = disk.mount.as_ref().context("the disk is on")?.pid();
    output(Command::new("kill").args(["-9", &server.to_string()]))?;
    drop(disk.take()?);
    assert_eq!(
        fs::read_dir(disk.mountpoint.path())?.count(),
        0,
        "an orphan mount"
    );
    disk.power_on()?;
    assert_eq!(fs::read(disk.path("file"))?, b"kept");
    Ok(())
}

#[test]
fn the_server_goes_when_whoever_started_it_is_gone() -> Result<()> {
    let (backing, mountpoint) = (TempDir::new()?, TempDir::new()?);
    let mut server = Command::new(env!("CARGO_BIN_EXE_lossy-fs"))
        .args([
            "--until-stdin-closes".as_ref(),
            backing.path(),
            mountpoint.path(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    BufReader::new(server.stdout.take().context("stdout")?).read_line(&mut String::new())?;
    fs::write(mountpoint.path().join("file"), "never synced")?;
    // However a process ends, its pipes close.
    drop(server.stdin.take());
    assert!(server.wait()?.success());
    assert_eq!(
        fs::read_dir(mountpoint.path())?.count(),
        0,
        "an orphan mount"
    );
    assert_eq!(fs::read_dir(backing.path())?.count(), 0);
    Ok(())
}

const INSERT: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
assert db.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
db.execute(f"PRAGMA synchronous = {sys.argv[2]}")
db.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
for n in range(100):
    db.execute("INSERT INTO t VALUES (?)", (n,))
print("committed", flush=True)
sys.stdin.read()
"#;

const COUNT: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
print(db.execute("SELECT count(*) FROM t").fetchone()[0])
"#;

/// Commits a hundred rows, cuts the power under the open database, and counts all rows that are left.
fn sqlite_rows_after_crash(disk: &mut Disk, synchronous: &str) -> Result<String> {
    let database = disk.path("test.db");
    let mut python = Command::new("python3")
        .args([
            "-c".as_ref(),
            INSERT.as_ref(),
            database.as_os_str(),
            synchronous.as_ref(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let said = BufReader::new(python.stdout.take().context("stdout")?).read_line(&mut line);
    let shared_memory = disk.path("test.db-shm").exists();
    let crashed = disk.crash();
    python.kill()?;
    python.wait()?;
    crashed?;
    said?;
    assert_eq!((line.as_str(), shared_memory), ("committed\n", true));
    output(Command::new("python3").args(["-c", COUNT]).arg(database))
}

#[test]
fn sqlite_keeps_what_it_committed_only_when_it_syncs() -> Result<()> {
    let mut disk = Disk::new()?;
    assert_eq!(sqlite_rows_after_crash(&mut disk, "FULL")?, "100");
    assert_eq!(sqlite_rows_after_crash(&mut disk, "OFF")?, "100");
    assert_eq!(sqlite_rows_after_crash(&mut disk, "NORMAL")?, "100");
    assert_eq!(sqlite_rows_after_crash(&mut disk, "FULL")?, "200");
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(60);
const POSTGRES: User = User::Named("postgres");

/// PostgreSQL with its data on a lossy disk and its socket outside that disk.
struct Postgres {
    server: Option<Tethered>,
    disk: Disk,
    sockets: TempDir,
}

impl Postgres {
    fn new() -> Result<Self> {
        let (disk, sockets) = (Disk::new()?, TempDir::new()?);
        for directory in [disk.mountpoint.path(), sockets.path()] {
            output(Command::new("chown").arg("postgres:").arg(directory))?;
        }
        let initdb = tool::find("initdb")?;
        output(
            process::command(initdb, POSTGRES, Signal::Kill)
                .args(["--username=postgres", "--auth=trust", "--locale=C", "-D"])
                .arg(disk.path("data")),
        )?;
        Ok(Self {
            server: None,
            disk,
            sockets,
        })
    }

    async fn start(&mut self, fsync: &str) -> Result<()> {
        let mut command = process::command(tool::find("postgres")?, POSTGRES, Signal::Quit);
        command
            .arg("-D")
            .arg(self.disk.path("data"))
            .arg("-k")
            .arg(self.sockets.path());
        command.args([
            "-h",
            "",
            "-c",
            "log_min_messages=fatal",
            "-c",
            &format!("fsync={fsync}"),
        ]);
        self.server = Some(process::spawn(command)?);
        let mut ready = Command::new(tool::find("pg_isready")?);
        ready
            .args(["-U", "postgres", "-qh"])
            .arg(self.sockets.path());
        wait::until("PostgreSQL to answer", PATIENCE, async || {
            output(&mut ready).is_ok()
        })
        .await;
        Ok(())
    }

    fn query(&self, sql: &str) -> Result<String> {
        let mut psql = Command::new(tool::find("psql")?);
        output(
            psql.args(["-U", "postgres", "-qAtc", sql, "-h"])
                .arg(self.sockets.path()),
        )
    }

    /// The power is cut first, so that PostgreSQL cannot save anything.
    fn crash(&mut self) -> Result<()> {
        self.disk.take()?.crash()?;
        self.server
            .take()
            .context("PostgreSQL is not running")?
            .stop(Signal::Quit, PATIENCE)?;
        self.disk.power_on()
    }
}

#[tokio::test]
async fn postgres_keeps_what_it_committed_only_when_it_syncs() -> Result<()> {
    let insert = "INSERT INTO t SELECT generate_series(1, 1000)";
    let mut postgres = Postgres::new()?;
    postgres.start("on").await?;
    postgres.query("CREATE TABLE t (n int)")?;
    postgres.query(insert)?;
    postgres.query("CHECKPOINT")?;
    postgres.query(insert)?;
    postgres.crash()?;

    postgres.start("off").await?;
    assert_eq!(postgres.query("SELECT count(*) FROM t")?, "2000");
    postgres.query(insert)?;
    postgres.query("CHECKPOINT")?;
    postgres.crash()?;

    postgres.start("on").await?;
    assert_eq!(postgres.query("SELECT count(*) FROM t")?, "2000");
    Ok(())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
