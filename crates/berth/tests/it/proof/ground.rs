//! What the lab stands on: a database of either kind, on an honest disk or on one that forgets.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use berth_testkit::lossy::Mount;
use berth_testkit::postgres::{Database, Server};
use berth_testkit::server::{BerthServer, Launch};
use tempfile::TempDir;

#[derive(Debug)]
pub enum Ground {
    /// The kernel keeps what a killed process wrote.
    Sqlite(TempDir),
    Postgres(Database),
    /// Whatever was not synced is gone as well.
    SqliteOnLossyDisk(Disk),
    PostgresOnLossyDisk {
        database: Database,
        server: Box<Server>,
        disk: Disk,
    },
}

impl Ground {
    pub fn sqlite() -> Result<Self> {
        Ok(Self::Sqlite(TempDir::new()?))
    }

    pub async fn postgres() -> Self {
        Self::Postgres(Database::fresh().await)
    }

    pub fn sqlite_on_lossy_disk() -> Result<Self> {
        Ok(Self::SqliteOnLossyDisk(Disk::new()?))
    }

    pub fn postgres_on_lossy_disk() -> Result<Self> {
        let disk = Disk::new()?;
        let server = Box::new(Server::start_on(disk.path())?);
        Ok(Self::PostgresOnLossyDisk {
            database: Database::on(server.address())?,
            server,
            disk,
        })
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
            Self::SqliteOnLossyDisk(_) => "SQLite on a disk that forgets",
            Self::PostgresOnLossyDisk { .. } => "PostgreSQL on a disk that forgets",
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(directory) => sqlite_in(directory.path()),
            Self::SqliteOnLossyDisk(disk) => sqlite_in(disk.path()),
            Self::Postgres(database) | Self::PostgresOnLossyDisk { database, .. } => {
                database.url.clone()
            }
        }
    }

    /// Starts the real server here, with no limit on how fast it may be asked.
    pub async fn serve(&self, binary: &str) -> Result<BerthServer> {
        let data = match self {
            // What the server keeps beside its database must survive as well.
            Self::SqliteOnLossyDisk(disk) => disk.path().join("data"),
            _ => PathBuf::from("{directory}"),
        };
        let config = format!(
            "listen = \"127.0.0.1:{{port}}\"\ndata_dir = \"{}\"\ndatabase = \"{}\"\n\
             rate_limit_per_s = 0\nlog_filter = \"warn\"\n",
            data.display(),
            self.url()
        );
        Launch::new(binary, config).start().await
    }

    /// Cuts the power, and gives it back to all but Berth itself.
    pub fn cut(&mut self, berth: &mut BerthServer) -> Result<()> {
        match self {
            Self::Sqlite(_) | Self::Postgres(_) => berth.kill9(),
            // The disk goes first: whoever answers from then on answers without one.
            Self::SqliteOnLossyDisk(disk) => tokio::task::block_in_place(|| {
                disk.cut()?;
                berth.kill9()?;
                disk.power_on()
            }),
            Self::PostgresOnLossyDisk { server, disk, .. } => tokio::task::block_in_place(|| {
                disk.cut()?;
                server.crash()?;
                berth.kill9()?;
                disk.power_on()?;
                server.resume()
            }),
        }
    }
}

fn sqlite_in(directory: &Path) -> String {
    format!("sqlite:{}/berth.sqlite", directory.display())
}

/// A disk that forgets what was not synced, and the directories it needs. The mount goes first when all are dropped.
#[derive(Debug)]
pub struct Disk {
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

    fn path(&self) -> &Path {
        self.mountpoint.path()
    }

    fn cut(&mut self) -> Result<()> {
        self.mount.take().context("the disk is off")?.crash()
    }

    fn power_on(&mut self) -> Result<()> {
        self.mount = Some(Mount::start(self.backing.path(), self.mountpoint.path())?);
        Ok(())
    }
}
