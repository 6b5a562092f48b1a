//! Signs that a run is active, besides its processor time: changed files in its home, and busy GPUs.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::process::Command;

use crate::beneath::{Beneath, WalkLimits};

/// Files in use are near the top of a home, so the scan stops here.
const SCAN: WalkLimits = WalkLimits {
    entries_max: 5_000,
    time_max: Duration::from_secs(5),
};
/// Timeout for the driver, which may hang.
const DRIVER: Duration = Duration::from_secs(5);
/// A GPU with at least this utilization, in per cent, is busy.
const BUSY_PERCENT: u32 = 5;

/// When a file in the home last changed. Hidden files do not count, because programs write them unattended, for example
/// for an open page. Files dated in the future do not count either, because they would count for ever.
pub fn written_at(home: &Path) -> Option<Timestamp> {
    written_within(home, SCAN)
}

fn written_within(home: &Path, limits: WalkLimits) -> Option<Timestamp> {
    let now = SystemTime::now();
    let mut newest: Option<SystemTime> = None;
    let home = Beneath::open(home).ok()?;
    home.walk(limits, |entry| {
        let is_file = !entry.is_folder && !entry.is_hidden;
        let modified = entry.modified_at.filter(|at| is_file && *at <= now);
        newest = newest.max(modified);
    });
    newest.and_then(moment)
}

fn moment(at: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(at).ok()
}

/// Whether one of these GPUs, by number or UUID, is busy.
pub async fn computes(gpus: &[String]) -> bool {
    !gpus.is_empty() && is_one_busy(gpus, &utilization().await)
}

/// The driver's report on each GPU; empty if there is no driver, or if it does not answer.
async fn utilization() -> String {
    let asked = Command::new("nvidia-smi")
        .args([
            "--query-gpu=index,uuid,utilization.gpu",
            "--format=csv,noheader,nounits",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(DRIVER, asked).await {
        Ok(Ok(output)) => String::from_utf8_lossy(&output.stdout).into_owned(),
        _ => String::new(),
    }
}

fn is_one_busy(own: &[String], listed: &str) -> bool {
    listed.lines().any(|line| {
        let mut fields = line.split(',').map(str::trim);
        let (Some(index), Some(uuid), Some(percent)) =
            (fields.next(), fields.next(), fields.next())
        else {
            return false;
        };
        let is_own = own.iter().any(|gpu| gpu == index || gpu == uuid);
        // A GPU with MIG slices reports nothing about them, so it counts as busy.
        let is_busy = percent
            .parse()
            .map_or(true, |percent: u32| percent >= BUSY_PERCENT);
        is_own && is_busy
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_changes_is_a_sign_of_life_and_a_hidden_one_is_not() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".cache")).unwrap();
        fs::write(home.path().join(".cache/state"), "x").unwrap();
        assert_eq!(written_at(home.path()), None);
        fs::create_dir(home.path().join("data")).unwrap();
        let file = home.path().join("data/results.csv");
        fs::write(&file, "1,2").unwrap();
        let changed = file.metadata().unwrap().modified().unwrap();
        assert_eq!(written_at(home.path()), moment(changed));
        let one = WalkLimits {
            entries_max: 1,
            ..SCAN
        };
        assert_eq!(
            written_within(home.path(), one),
            None,
            "the scan has an end"
        );
        let ahead = fs::File::create(home.path().join("ahead")).unwrap();
        ahead
            .set_modified(SystemTime::now() + Duration::from_secs(1 << 20))
            .unwrap();
        assert_eq!(written_at(home.path()), moment(changed));
    }

    #[test]
    fn a_gpu_computes_for_whom_it_was_given_to() {
        let listed = "0, GPU-8f3c, 97\n1, GPU-91aa, 0\n2, GPU-77bb, [N/A]\n";
        let own = |gpu: &str| is_one_busy(&[gpu.to_owned()], listed);
        assert!(own("GPU-8f3c") && own("0"));
        assert!(!own("GPU-91aa") && !own("1"));
        assert!(own("GPU-77bb"), "one that is cut is taken to");
        assert!(!own("GPU-none"));
        assert!(!is_one_busy(&["0".to_owned()], ""));
    }
}
