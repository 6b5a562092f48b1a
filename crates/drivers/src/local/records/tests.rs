use super::*;
use crate::local::folder::{End, How};

struct Work {
    here: tempfile::TempDir,
    run: RunId,
}

impl Work {
    /// A run that has ended, with a log.
    fn new() -> Work {
        let work = Work {
            here: tempfile::tempdir().unwrap(),
            run: RunId(uuid::Uuid::from_u128(7)),
        };
        fs::create_dir(work.here.path().join("runs")).unwrap();
        fs::create_dir(logs_folder(work.here.path())).unwrap();
        let folder = work.folder();
        fs::create_dir(folder.path()).unwrap();
        fs::write(folder.log(), "trained\n").unwrap();
        folder.begin().unwrap();
        let end = End {
            at: "2026-11-01T08:00:00Z".parse().unwrap(),
            how: How::Exited(0),
            said: "it ended by itself".to_owned(),
        };
        folder.set_end(&end).unwrap();
        work
    }

    fn folder(&self) -> Folder {
        Folder::of(&self.here.path().join("runs"), self.run)
    }

    fn log(&self) -> PathBuf {
        kept_log(self.here.path(), self.run)
    }

    fn set_aside(&self) -> Option<PathBuf> {
        set_aside(&self.folder(), &self.log()).unwrap()
    }

    fn read_log(&self) -> Option<String> {
        read_log(self.here.path(), self.run, 100).unwrap()
    }
}

#[tokio::test]
async fn the_end_of_a_log_outlives_its_folder_and_is_as_old_as_the_end_of_the_run() {
    let work = Work::new();
    fs::create_dir(work.folder().io()).unwrap();
    fs::write(work.folder().io().join("scratch"), "x").unwrap();
    let aside = work.set_aside().expect("it is over");
    assert!(!work.folder().path().exists());
    assert_eq!(work.read_log().as_deref(), Some("trained\n"));
    remove(aside.clone()).await.unwrap();
    assert!(!aside.exists());
    remove(aside).await.unwrap();
    assert_eq!(work.set_aside(), None, "a second time there is nothing");
    let logs = logs_folder(work.here.path());
    let ended_before = |moment: &str| unchanged(&logs, moment.parse().unwrap()).unwrap();
    assert_eq!(ended_before("2026-11-01T07:59:59Z"), []);
    assert_eq!(ended_before("2026-11-01T08:00:00Z"), [work.run]);
}

#[test]
fn a_folder_of_which_something_may_run_stays() {
    let runs_on = Work::new();
    fs::remove_file(runs_on.folder().path().join("end.json")).unwrap();
    assert_eq!(runs_on.set_aside(), None);
    // Its end is recorded, but its supervisor is still running.
    let is_kept = Work::new();
    let lock = is_kept.folder().keep().unwrap().expect("nobody else's");
    assert_eq!(is_kept.set_aside(), None);
    drop(lock);
    assert!(is_kept.set_aside().is_some());
}

#[test]
fn a_removal_that_was_cut_off_begins_anew() {
    // Interrupted after the log was written in part, and after it was kept.
    let work = Work::new();
    fs::write(work.log().with_extension(PART), "trai").unwrap();
    assert!(work.set_aside().is_some());
    assert_eq!(work.read_log().as_deref(), Some("trained\n"));

    let work = Work::new();
    write_log(&work.folder(), &work.log()).unwrap();
    fs::remove_file(work.folder().log()).unwrap();
    assert!(work.set_aside().is_some());
    let kept = work.read_log();
    assert_eq!(kept.as_deref(), Some("trained\n"), "not written over");
    // Interrupted after the rename: the folder belongs to no run, and is found again.
    let runs = work.here.path().join("runs");
    assert_eq!(unchanged(&runs, Timestamp::MAX).unwrap(), []);
    assert_eq!(with_extension(&runs, REMOVED).unwrap().len(), 1);
}

#[test]
fn of_a_long_log_the_last_whole_lines_are_kept() {
    let work = Work::new();
    let lines: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    fs::write(work.folder().log(), &lines).unwrap();
    assert!(work.set_aside().is_some());
    let kept = fs::read_to_string(work.log()).unwrap();
    assert!(kept.len() as u64 <= KEPT_LOG_BYTES);
    assert!(kept.starts_with("line ") && kept.ends_with("line 19999\n"));
}
