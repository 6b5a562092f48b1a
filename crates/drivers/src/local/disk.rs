//! Checks that this machine's disks have space for a person's new work.
//!
//! A home has a limit, and the disks keep a reserve. If the file system has project quotas, it enforces the limit and
//! reports the space that is left. Otherwise Berth measures a home from time to time. A long measurement continues in
//! the background of the start that asked for it, and until it ends the previous one counts. No start waits long for a
//! disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Turn, Semaphore};

use super::quota::Quotas;
use crate::backend::{CLEAN_UP_MAX, DiskSpace};
use crate::beneath::{Beneath, Counted, Size, SizeLimits};
use crate::turns::Turns;

/// How much people may use of this machine's disks.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskLimits {
    /// Maximum size of a home, if there is a limit.
    pub home_bytes_max: Option<u64>,
    /// Space that must stay free on every disk on which runs write.
    pub reserve_bytes: u64,
}

/// For this long, a home within its limit counts as measured.
const FRESH: Duration = Duration::from_secs(60);
/// Maximum time that a start waits for a measurement.
const WAIT: Duration = Duration::from_secs(2);
const ENTRIES_MAX: u64 = 5_000_000;
const DEPTH_MAX: usize = 200;
const MEASURING: SizeLimits = SizeLimits {
    entries_max: ENTRIES_MAX,
    depth_max: DEPTH_MAX,
    time_max: Duration::from_secs(120),
};
/// Maximum number of homes that are measured at the same time.
const AT_ONCE: usize = 2;
/// A file system with fewer free inodes counts as full.
const INODES_MIN: u64 = 1024;
const MIB: u64 = 1 << 20;
/// A home with less quota left has reached its limit, because a new run could not write.
const QUOTA_LEFT_MIN: u64 = MIB;

#[derive(Debug)]
pub(super) struct Disk {
    limits: DiskLimits,
    quotas: Option<Arc<Quotas>>,
    homes: Mutex<HashMap<PathBuf, Arc<Home>>>,
    turns: Arc<Semaphore>,
    questions: Turns<Question>,
    wait: Duration,
}

/// Calls to the file systems themselves. One that hangs occupies one thread for each kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Question {
    Reserve,
    Quota,
}

#[derive(Debug, Default)]
struct Home {
    /// Held during a measurement.
    turn: Turn<()>,
    last: Mutex<Option<Measured>>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    at: Instant,
    size: Size,
}

impl Home {
    fn last(&self) -> Option<Measured> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    /// `quotas` is the mount point of the file system with the homes, if it has project quotas.
    pub fn new(limits: DiskLimits, quotas: Option<PathBuf>) -> Disk {
        Disk {
            limits,
            quotas: quotas.map(|mount| Quotas::new(mount, limits.home_bytes_max)),
            homes: Mutex::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            questions: Turns::default(),
            wait: WAIT,
        }
    }

    /// Whether there is space for something new of this home's owner that writes below these folders.
    pub async fn space(&self, home: &Path, folders: Vec<PathBuf>) -> DiskSpace {
        let reserve = self.limits.reserve_bytes;
        let disk = self.questions.take(Question::Reserve, self.wait, move |_| {
            below_reserve(&folders, reserve)
        });
        DiskSpace {
            disk: disk.await.flatten(),
            home: self.above_limit(home).await,
        }
    }

    async fn above_limit(&self, home: &Path) -> Option<String> {
        let limit = self.limits.home_bytes_max?;
        if let Some(left) = self.left_of_quota(home).await {
            return why_full(left, limit);
        }
        let size = self.measured(home, limit).await?;
        why_refused(size, limit)
    }

    async fn left_of_quota(&self, home: &Path) -> Option<u64> {
        let (quotas, home) = (self.quotas.clone()?, home.to_owned());
        let left = self
            .questions
            .take(Question::Quota, self.wait, move |_| quotas.left(&home));
        left.await?
    }

    /// Sets a home's quota, if there are quotas. Marking a large home continues in the background; until it ends, the
    /// home is measured.
    pub async fn enforce(&self, home: PathBuf) {
        let Some(quotas) = self.quotas.clone() else {
            return;
        };
        let enforcing = async move {
            let shown = home.display().to_string();
            if let Err(error) = quotas.enforce(home).await {
                tracing::warn!(%error, home = shown, "a home has no quota; it is measured instead");
            }
        };
        tokio::time::timeout(self.wait, tokio::spawn(enforcing))
            .await
            .ok();
    }

    /// The newest size that is available soon; `None` if nothing is known.
    async fn measured(&self, path: &Path, limit: u64) -> Option<Size> {
        let home = {
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            homes.entry(path.to_owned()).or_default().clone()
        };
        let asked_at = Instant::now();
        // A known refusal is not reused: a person who is refused removes files and tries again at once.
        let is_good = |known: &Measured| {
            asked_at.saturating_duration_since(known.at) < FRESH
                && why_refused(known.size, limit).is_none()
        };
        if let Some(known) = home.last().filter(is_good) {
            return Some(known.size);
        }
        let measuring = measure(home.clone(), path.to_owned(), self.turns.clone(), asked_at);
        tokio::time::timeout(self.wait, tokio::spawn(measuring))
            .await
            .ok();
        home.last().map(|known| known.size)
    }
}

/// Measures a home, unless another call did so since `asked_at`.
async fn measure(home: Arc<Home>, path: PathBuf, turns: Arc<Semaphore>, asked_at: Instant) {
    let _one_at_a_time = home.turn.lock().await;
    if home.last().is_some_and(|known| known.at >= asked_at) {
        return;
    }
    let Ok(_turn) = turns.acquire().await else {
        return;
    };
    let at = Instant::now();
    let size = tokio::task::spawn_blocking(move || Beneath::open(&path)?.size(MEASURING)).await;
    let Ok(Ok(size)) = size else {
        return;
    };
    let mut last = home.last.lock().unwrap_or_else(PoisonError::into_inner);
    // A partial size replaces the known size only if it is larger. In either case the home was measured now.
    let size = match *last {
        Some(before) if size.counted == Counted::InPart && before.size.bytes >= size.bytes => {
            before.size
        }
        _ => size,
    };
    *last = Some(Measured { at, size });
}

fn remedy() -> String {
    let clean_up = CLEAN_UP_MAX.as_mins();
    format!(
        "remove files there with a job of at most {clean_up} minutes, which still starts, and try again"
    )
}

fn why_full(left: u64, limit: u64) -> Option<String> {
    let (remedy, limit) = (remedy(), shown(limit));
    (left < QUOTA_LEFT_MIN)
        .then(|| format!("your home has reached its limit, which is {limit}: {remedy}"))
}

fn why_refused(size: Size, limit: u64) -> Option<String> {
    let remedy = remedy();
    if size.bytes > limit {
        let (has, may) = (shown(size.bytes), shown(limit));
        return Some(format!(
            "your home takes {has} and its limit is {may}: {remedy}"
        ));
    }
    (size.counted == Counted::Uncountable).then(|| {
        format!(
            "your home cannot be measured, because it has more than {ENTRIES_MAX} entries, folders more than {DEPTH_MAX} deep, or folders that cannot be read: {remedy}"
        )
    })
}

fn below_reserve(folders: &[PathBuf], reserve: u64) -> Option<String> {
    let free = folders.iter().filter_map(|folder| free(folder)).min()?;
    (free < reserve).then(|| {
        let (free, reserve) = (shown(free), shown(reserve));
        format!(
            "this machine's disk has {free} free and keeps {reserve} in reserve, so nothing more starts: remove files that you no longer need in a session that runs, or ask an administrator"
        )
    })
}

/// The space on the disk with this folder to which people can still write; `None` if it is unknown.
fn free(folder: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(folder).ok()?;
    if disk.files() > 0 && disk.files_available() < INODES_MIN {
        return Some(0);
    }
    Some(disk.blocks_available().saturating_mul(disk.fragment_size()))
}

fn shown(bytes: u64) -> String {
    let mib = bytes / MIB;
    match mib {
        0..1024 => format!("{mib} MiB"),
        _ => format!("{}.{} GiB", mib / 1024, mib % 1024 * 10 / 1024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn disk(home_bytes_max: u64) -> Disk {
        let limits = DiskLimits {
            home_bytes_max: Some(home_bytes_max),
            reserve_bytes: 0,
        };
        Disk {
            // A busy machine may be slow.
            wait: Duration::from_secs(3600),
            ..Disk::new(limits, None)
        }
    }

    async fn refused(disk: &Disk, home: &Path) -> Option<String> {
        disk.space(home, vec![home.to_owned()]).await.home
    }

    #[tokio::test]
    async fn a_home_above_its_limit_is_refused_until_something_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let disk = disk(2 * MIB);
        assert_eq!(refused(&disk, home.path()).await, None);
        let file = home.path().join("data");
        fs::write(&file, vec![1; 3 << 20]).unwrap();
        let known = refused(&disk, home.path()).await;
        assert_eq!(known, None, "it was measured a moment ago");
        disk.homes.lock().unwrap().clear();
        let said = refused(&disk, home.path()).await.expect("above its limit");
        assert!(said.contains("3 MiB and its limit is 2 MiB"), "{said}");
        fs::remove_file(file).unwrap();
        assert_eq!(refused(&disk, home.path()).await, None);
    }

    #[tokio::test]
    async fn a_home_that_is_not_there_yet_is_within_its_limit() {
        let here = tempfile::tempdir().unwrap();
        assert_eq!(refused(&disk(0), &here.path().join("new")).await, None);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_and_what_takes_long_is_not() {
        let size = |bytes, counted| why_refused(Size { bytes, counted }, 10 * MIB);
        assert_eq!(size(10 * MIB, Counted::All), None);
        assert_eq!(size(10 * MIB, Counted::InPart), None);
        assert!(size(10 * MIB + 1, Counted::InPart).is_some());
        assert!(size(0, Counted::Uncountable).is_some());
    }

    #[test]
    fn a_home_whose_quota_leaves_nothing_is_refused() {
        assert_eq!(why_full(MIB, 10 * MIB), None);
        let said = why_full(MIB - 1, 10 * MIB).expect("it is full");
        assert!(
            said.contains("reached its limit, which is 10 MiB"),
            "{said}"
        );
    }

    #[test]
    fn the_fullest_disk_decides_about_the_reserve() {
        let here = tempfile::tempdir().unwrap();
        let folders = [here.path().to_owned(), PathBuf::from("/proc/none")];
        assert_eq!(below_reserve(&folders, 0), None);
        let said = below_reserve(&folders, u64::MAX).expect("no disk has so much");
        assert!(said.contains("in reserve"), "{said}");
        assert_eq!(below_reserve(&[], u64::MAX), None);
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(shown(0), "0 MiB");
        assert_eq!(shown(1023 * MIB), "1023 MiB");
        assert_eq!(shown(1536 * MIB), "1.5 GiB");
    }
}
