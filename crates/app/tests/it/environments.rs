//! Environments over time, on both databases: who may make them, what is written down, and what becomes of them when
//! whoever settles them is cut off.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::queue::cut;
use crate::support::{Lab, name, on_both, site};
use berth_app::environments::{EnvironmentChange, EnvironmentView, NewEnvironment};
use berth_app::{Caller, Error, Settings};
use berth_drivers::backend::{Backend, Doing, Fence, Grant, Job, Sign, Trouble};
use berth_drivers::environments::{Counted, Prepared, Removed, Sealed, Shelf, Size};
use berth_model::environment::{Environment, EnvironmentState, Package};
use berth_model::workload::{Outcome, RunState, State};
use berth_model::{EnvironmentId, Name, ResourceId};
use berth_store::{Engine, environments};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

on_both!(
    one_is_made_by_a_workload_and_then_used,
    members_make_their_own_and_admins_everybodys,
    what_is_prepared_is_taken_in_and_missed,
    what_is_not_wanted_is_cleared_away,
    what_was_made_on_another_servers_machine_is_left_to_it,
    one_whose_folder_is_huge_keeps_no_other_waiting,
    at_the_limit_of_their_space_a_person_makes_no_more,
    what_takes_too_much_while_it_is_made_is_ended_with_a_sentence,
);

const LENGTH: SignedDuration = SignedDuration::from_mins(10);

/// Everything takes ten minutes and ends well. The shelf is real, and what each run was given is remembered.
#[derive(Debug)]
struct Shelved {
    folder: TempDir,
    given: Mutex<Vec<Grant>>,
    /// Whether everything runs on the machine of a server that this one does not reach.
    is_elsewhere: AtomicBool,
    /// Whether sealing never ends.
    seal_hangs: AtomicBool,
}

impl Shelved {
    fn new() -> Arc<Shelved> {
        Arc::new(Shelved {
            folder: TempDir::new().expect("a folder"),
            given: Mutex::default(),
            is_elsewhere: AtomicBool::new(false),
            seal_hangs: AtomicBool::new(false),
        })
    }

    fn count(&self) -> usize {
        let all = fs::read_dir(self.folder.path()).expect("the shelf");
        all.filter(|one| !one.as_ref().expect("an entry").file_name().eq("prepared"))
            .count()
    }

    fn last_grant(&self) -> Grant {
        let given = self.given.lock().expect("nobody panics here");
        given.last().expect("a grant").clone()
    }
}

impl Backend for Shelved {
    fn start<'a>(
        &'a self,
        _job: Job<'a>,
        grant: &'a Grant,
        _fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, ()> {
        for mount in grant.mounts.iter().filter(|mount| mount.is_writable) {
            fs::create_dir_all(&mount.from).expect("a folder");
        }
        let mut given = self.given.lock().expect("nobody panics here");
        given.push(grant.clone());
        Box::pin(async { Ok(()) })
    }

    fn stop<'a>(&'a self, _job: Job<'a>, _fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        let sign = move |job: &Job<'_>| match job.run.state {
            RunState::Stopping { because, .. } => Sign::Ended {
                at: now,
                outcome: because.outcome(),
                said: None,
            },
            _ if job.run.began + LENGTH <= now => Sign::Ended {
                at: job.run.began + LENGTH,
                outcome: Outcome::Completed,
                said: None,
            },
            _ => Sign::Running,
        };
        Box::pin(async move { Ok(jobs.iter().map(sign).collect()) })
    }

    fn machine(&self, _nodes: &[ResourceId]) -> Option<String> {
        Some("machine".to_owned())
    }

    fn reaches(&self, _machine: &str) -> bool {
        !self.is_elsewhere.load(Ordering::SeqCst)
    }

    fn shelf(&self) -> Option<&dyn Shelf> {
        Some(self)
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        let ends = jobs.iter().map(|job| job.run.began + LENGTH);
        ends.filter(|end| *end > now).min()
    }
}

impl Shelf for Shelved {
    fn made(&self, id: EnvironmentId) -> PathBuf {
        self.folder.path().join(id.0.simple().to_string())
    }

    fn prepared(&self, key: &Name) -> Option<PathBuf> {
        Some(self.folder.path().join("prepared").join(key.as_str()))
    }

    fn existing(&self, folders: Vec<PathBuf>) -> Doing<'_, Vec<PathBuf>> {
        let existing = folders.into_iter().filter(|folder| folder.is_dir());
        let existing = existing.collect();
        Box::pin(async move { Ok(existing) })
    }

    fn all_prepared(&self) -> Doing<'_, Vec<(Name, Prepared)>> {
        let brought = Prepared::brought("jupyterlab").expect("Berth brings it");
        let key = brought.key().expect("a key");
        let folder = self.prepared(&key).filter(|folder| folder.is_dir());
        let lying = folder.map(|_| (key, brought)).into_iter().collect();
        Box::pin(async move { Ok(lying) })
    }

    fn size(&self, id: EnvironmentId) -> Doing<'_, Size> {
        let files = fs::read_dir(self.made(id)).into_iter().flatten();
        let bytes = files.map(|file| file.expect("a file").metadata().expect("a size").len());
        let size = Size {
            bytes: bytes.sum(),
            counted: Counted::All,
        };
        Box::pin(async move { Ok(size) })
    }

    fn seal(&self, id: EnvironmentId) -> Doing<'_, Sealed> {
        if self.is_elsewhere.load(Ordering::SeqCst) {
            let trouble = Trouble::Refused("there is nothing where it was to be made".into());
            return Box::pin(async { Err(trouble) });
        }
        assert!(self.made(id).is_dir(), "something was made");
        let hangs = self.seal_hangs.swap(false, Ordering::SeqCst);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            Ok(Sealed {
                bytes: 7,
                python: Some("3.11.2".into()),
            })
        })
    }

    fn remove(&self, id: EnvironmentId) -> Doing<'_, Removed> {
        Box::pin(async move {
            fs::remove_dir_all(self.made(id)).ok();
            tokio::task::yield_now().await;
            Ok(Removed::Done)
        })
    }
}

fn packages(lines: &[&str]) -> Vec<Package> {
    let package = |line: &&str| line.parse().expect("a package");
    lines.iter().map(package).collect()
}

fn new(called: &str, base: Option<&str>, lines: &[&str]) -> NewEnvironment {
    NewEnvironment {
        name: name(called),
        is_curated: false,
        base: base.map(|base| base.parse().expect("a reference")),
        packages: packages(lines),
    }
}

impl Lab {
    async fn with_shelf(self) -> (Self, Arc<Shelved>) {
        let world = Shelved::new();
        let lab = self.with_queue().await.run_by(world.clone());
        (lab, world)
    }

    async fn make(&self, who: &Caller, new: &NewEnvironment) -> Result<EnvironmentView, Error> {
        let made = self.app.make_environment(who, &site(), new).await;
        made.map(|made| made.value)
    }

    async fn seen(&self, who: &Caller, reference: &str) -> EnvironmentView {
        let reference = reference.parse().expect("a reference");
        let found = self.app.environment(who, &site(), &reference).await;
        found.expect("it is there")
    }

    async fn retire(&self, who: &Caller, reference: &str) -> Result<(), Error> {
        let reference = reference.parse().expect("a reference");
        self.app.retire_environment(who, &site(), &reference).await
    }

    /// Lets everything that is begun come to its end, and settles it.
    async fn goes_on(&self, hours: i64) {
        self.run_until(hours).await;
        self.settle().await;
    }
}

async fn one_is_made_by_a_workload_and_then_used(lab: Lab) {
    let (lab, world) = lab.with_shelf().await;
    let made = lab.make(&lab.ada, &new("torch", None, &["torch>=2"])).await;
    let made = made.expect("it is taken");
    assert_eq!(made.called.to_string(), "~ada/torch@1");
    assert!(made.progress.is_waiting);
    let unready = lab.make(&lab.ada, &new("more", Some("torch"), &[])).await;
    assert!(matches!(unready, Err(Error::Invalid(_))), "{unready:?}");
    lab.goes_on(3).await;
    let ready = lab.seen(&lab.ada, "torch").await.environment;
    assert_eq!(
        (ready.state, ready.bytes),
        (EnvironmentState::Ready, Some(7))
    );
    let grant = world.last_grant();
    let inside = PathBuf::from("/opt/berth/environments/~ada/torch/1");
    assert_eq!(grant.mounts.len(), 1);
    assert!(grant.mounts[0].is_writable && grant.mounts[0].to == inside);

    let extended = lab
        .make(&lab.ada, &new("more", Some("torch"), &["six"]))
        .await;
    extended.expect("it is taken");
    lab.goes_on(6).await;
    let writable = |grant: &Grant| -> Vec<bool> {
        grant.mounts.iter().map(|mount| mount.is_writable).collect()
    };
    assert_eq!(writable(&world.last_grant()), [true, false]);

    // What is submitted is pinned to what there is, and sees it without being able to write.
    let mut ask = lab.ask(1, 1, 5);
    ask["program"]["image"] = "more".into();
    let number = lab.submit(&lab.ada, ask.clone()).await;
    let pinned = lab.workload_view(number).await.workload.ask.program.image;
    assert_eq!(pinned.as_deref(), Some("~ada/more@1"));
    lab.goes_on(7).await;
    let grant = world.last_grant();
    assert_eq!(writable(&grant), [false, false]);
    let path = &grant.environment["PATH"];
    let own = "/opt/berth/environments/~ada/more/1/bin:/opt/berth/environments/~ada/torch/1/bin:";
    assert!(path.starts_with(own), "{path}");
    assert!(!grant.environment.contains_key("JUPYTER_PATH"));
    ask["program"]["serves"] = serde_json::json!({"port": 8888});
    lab.submit(&lab.ada, ask.clone()).await;
    lab.goes_on(8).await;
    let kernels = &world.last_grant().environment["JUPYTER_PATH"];
    // The one that it runs in, it knows without being told.
    assert_eq!(kernels, "/opt/berth/environments/~ada/torch/1/berth");
    ask["program"]["image"] = "nothing".into();
    let refused = lab.try_submit(&lab.ada, None, ask).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

async fn what_was_made_on_another_servers_machine_is_left_to_it(lab: Lab) {
    let (lab, world) = lab.with_shelf().await;
    let made = lab.make(&lab.ada, &new("torch", None, &["torch>=2"])).await;
    made.expect("it is taken");
    world.is_elsewhere.store(true, Ordering::SeqCst);
    lab.goes_on(3).await;
    let seen = lab.seen(&lab.ada, "torch").await.environment;
    assert_eq!(seen.state, EnvironmentState::Building, "{:?}", seen.trouble);
    world.is_elsewhere.store(false, Ordering::SeqCst);
    lab.goes_on(4).await;
    let seen = lab.seen(&lab.ada, "torch").await.environment;
    assert_eq!(seen.state, EnvironmentState::Ready);
}

async fn one_whose_folder_is_huge_keeps_no_other_waiting(lab: Lab) {
    let (lab, world) = lab.with_shelf().await;
    for name in ["huge", "small"] {
        let made = lab.make(&lab.ada, &new(name, None, &["torch>=2"])).await;
        made.expect("it is taken");
    }
    world.seal_hangs.store(true, Ordering::SeqCst);
    lab.goes_on(3).await;
    let mut states = Vec::new();
    for name in ["huge", "small"] {
        states.push(lab.seen(&lab.ada, name).await.environment.state);
    }
    states.sort_by_key(|state| *state == EnvironmentState::Ready);
    assert_eq!(
        states,
        [EnvironmentState::Building, EnvironmentState::Ready]
    );
}

async fn members_make_their_own_and_admins_everybodys(lab: Lab) {
    let (lab, _world) = lab.with_shelf().await;
    let mine = new("torch", None, &["torch"]);
    let curated = NewEnvironment {
        is_curated: true,
        ..mine.clone()
    };
    lab.make(&lab.ada, &mine).await.expect("it is taken");
    let taken = lab.make(&lab.ada, &mine).await;
    assert!(matches!(taken, Err(Error::NameTaken(_))), "{taken:?}");
    // Another's of the same name is another.
    lab.make(&lab.bob, &mine).await.expect("it is taken");
    let refused = lab.make(&lab.ada, &curated).await;
    assert!(matches!(refused, Err(Error::NotAllowed { .. })));
    let hidden = lab.make(&lab.outsider, &mine).await;
    assert!(matches!(hidden, Err(Error::NotFound(_))));
    assert_eq!(
        lab.seen(&lab.ada, "torch").await.called.to_string(),
        "~ada/torch@1"
    );
    lab.make(&lab.admin, &curated).await.expect("it is taken");
    // From then on the name means the same to everybody.
    assert_eq!(
        lab.seen(&lab.ada, "torch").await.called.to_string(),
        "torch@1"
    );
    let theirs = lab.retire(&lab.ada, "~bob/torch").await;
    assert!(matches!(theirs, Err(Error::NotAllowed { .. })));
    lab.retire(&lab.admin, "~bob/torch")
        .await
        .expect("an admin may");
    let change = EnvironmentChange {
        add: packages(&["torch<3", "six"]),
        remove: Vec::new(),
    };
    let of = "~ada/torch".parse().expect("a reference");
    let refused = lab
        .app
        .change_environment(&lab.bob, &site(), &of, &change)
        .await;
    assert!(matches!(refused, Err(Error::NotAllowed { .. })));
    let next = lab
        .app
        .change_environment(&lab.ada, &site(), &of, &change)
        .await;
    let next = next.expect("it is taken").value.environment;
    assert_eq!(
        (next.version, next.packages),
        (2, packages(&["torch<3", "six"]))
    );
    let twice = lab
        .make(&lab.ada, &new("twice", None, &["six", "Six>=1"]))
        .await;
    assert!(matches!(twice, Err(Error::Invalid(_))));
}

async fn what_is_prepared_is_taken_in_and_missed(lab: Lab) {
    let (lab, world) = lab.with_shelf().await;
    let brought = Prepared::brought("jupyterlab").expect("Berth brings it");
    let key = brought.key().expect("a key");
    let folder = world.folder.path().join("prepared").join(key.as_str());
    lab.settle().await;
    fs::create_dir_all(&folder).expect("a folder");
    lab.settle().await;
    lab.settle().await;
    let all = lab
        .app
        .environments(&lab.ada, &site())
        .await
        .expect("a list");
    assert_eq!(all.len(), 1, "taken in once");
    let one = lab.seen(&lab.ada, "jupyterlab").await.environment;
    assert_eq!(
        (one.state, one.version, one.owner),
        (EnvironmentState::Ready, 1, None)
    );
    fs::remove_dir(&folder).expect("it goes");
    lab.settle().await;
    let one = lab.seen(&lab.ada, "jupyterlab").await.environment;
    assert_eq!(one.state, EnvironmentState::Failed);
    fs::create_dir_all(&folder).expect("a folder");
    lab.settle().await;
    assert!(
        lab.seen(&lab.ada, "jupyterlab")
            .await
            .environment
            .is_ready()
    );
    // What an admin does not want is not taken in again.
    lab.retire(&lab.admin, "jupyterlab")
        .await
        .expect("it is retired");
    lab.settle().await;
    let all = lab
        .app
        .environments(&lab.ada, &site())
        .await
        .expect("a list");
    assert!(all.is_empty());
    assert!(folder.exists(), "it is not Berth's to remove");
}

async fn what_is_not_wanted_is_cleared_away(lab: Lab) {
    let (lab, world) = lab.with_shelf().await;
    lab.make(&lab.ada, &new("torch", None, &[]))
        .await
        .expect("it is taken");
    lab.goes_on(3).await;
    lab.make(&lab.ada, &new("more", Some("torch"), &[]))
        .await
        .expect("it is taken");
    lab.goes_on(6).await;
    assert_eq!(world.count(), 2);
    lab.retire(&lab.ada, "torch").await.expect("it is retired");
    lab.settle().await;
    assert_eq!(world.count(), 2, "something stands on it");
    lab.retire(&lab.ada, "more").await.expect("it is retired");
    lab.settle().await;
    lab.settle().await;
    assert_eq!(world.count(), 0);
    // One that is being made is not wanted any more: what makes it is cancelled.
    lab.make(&lab.ada, &new("third", None, &[]))
        .await
        .expect("it is taken");
    lab.round().await;
    assert_eq!(world.count(), 1);
    lab.retire(&lab.ada, "third").await.expect("it is retired");
    lab.settle().await;
    assert_eq!(world.count(), 1, "it is still being told");
    lab.goes_on(9).await;
    assert_eq!(world.count(), 0);
}

/// Wherever whoever settles them is cut off, the next comes to the same end.
#[tokio::test]
async fn settling_may_be_cut_off_anywhere() {
    let mut polls = 1;
    loop {
        let lab = Lab::build(Engine::Sqlite).await;
        let (lab, world) = lab.with_shelf().await;
        lab.make(&lab.ada, &new("torch", None, &[]))
            .await
            .expect("it is taken");
        lab.make(&lab.ada, &new("gone", None, &[]))
            .await
            .expect("it is taken");
        lab.run_until(3).await;
        lab.retire(&lab.ada, "gone").await.expect("it is retired");
        let mut left = polls;
        let whole = cut(lab.settle(), &mut left).await.is_some();
        lab.settle().await;
        assert!(lab.seen(&lab.ada, "torch").await.environment.is_ready());
        assert_eq!(world.count(), 1, "after {polls} polls");
        let mut reader = lab.app.store.read().await.expect("a reader");
        let left_over = environments::unsettled(&mut reader, 10)
            .await
            .expect("a list");
        assert_eq!(left_over, Vec::<Environment>::new(), "after {polls} polls");
        if whole {
            break;
        }
        polls += 3;
    }
    assert!(polls > 6, "it was cut off somewhere");
}

async fn at_the_limit_of_their_space_a_person_makes_no_more(lab: Lab) {
    // Each takes seven bytes.
    let settings = Settings {
        environments_bytes_max: Some(14),
        ..lab.app.settings.clone()
    };
    let (lab, _world) = lab.with_settings(settings).with_shelf().await;
    for called in ["one", "two"] {
        let made = lab.make(&lab.ada, &new(called, None, &["six"])).await;
        made.expect("it is taken");
    }
    lab.goes_on(3).await;
    let three = new("three", None, &["six"]);
    let refused = lab.make(&lab.ada, &three).await;
    assert!(matches!(refused, Err(Error::DiskFull(_))), "{refused:?}");
    // Nobody else's are counted, and a site's own are its admins' to limit.
    let theirs = lab.make(&lab.bob, &three).await;
    theirs.expect("it is taken");
    let curated = NewEnvironment {
        is_curated: true,
        ..three.clone()
    };
    let made = lab.make(&lab.admin, &curated).await;
    made.expect("it is taken");
    lab.retire(&lab.ada, "one").await.expect("hers");
    lab.goes_on(6).await;
    lab.make(&lab.ada, &three).await.expect("there is space");
}

async fn what_takes_too_much_while_it_is_made_is_ended_with_a_sentence(lab: Lab) {
    const MIB: u64 = 1 << 20;
    let settings = Settings {
        environments_bytes_max: Some(10 * MIB),
        ..lab.app.settings.clone()
    };
    let (lab, world) = lab.with_settings(settings).with_shelf().await;
    let write = |made: &EnvironmentView, bytes: u64| {
        let file = world.made(made.environment.id).join("file");
        let file = fs::File::create(file).expect("its folder is there");
        file.set_len(bytes).expect("it is ours");
    };
    let mut made = Vec::new();
    for (who, called) in [(&lab.ada, "one"), (&lab.ada, "two"), (&lab.bob, "three")] {
        let one = lab.make(who, &new(called, None, &["six"])).await;
        made.push(one.expect("it is taken"));
        lab.set_clock(lab.app.now() + SignedDuration::from_secs(1));
    }
    lab.round().await;
    // Two of hers are too much together, and the later one has to go.
    write(&made[0], 6 * MIB);
    write(&made[1], 5 * MIB);
    write(&made[2], 10 * MIB);
    lab.settle().await;
    let ended = lab.seen(&lab.ada, "two").await.environment;
    assert_eq!(ended.state, EnvironmentState::Failed);
    let said = ended.trouble.expect("it says why");
    assert!(
        said.contains("take 11 MiB and their limit is 10 MiB"),
        "{said}"
    );
    let workload = ended.workload.expect("it was made by one");
    lab.round().await;
    let reference = workload.into();
    let view = lab.app.get_workload(&lab.ada, &site(), &reference).await;
    let view = view.expect("it is hers");
    assert_eq!(view.workload.state, State::Cancelled);
    assert_eq!(view.workload.reason.map(|why| why.to_string()), Some(said));
    lab.settle().await;
    assert!(!world.made(ended.id).exists());
    // The others go on.
    lab.goes_on(3).await;
    for (who, called) in [(&lab.ada, "one"), (&lab.bob, "three")] {
        let state = lab.seen(who, called).await.environment.state;
        assert_eq!(state, EnvironmentState::Ready, "{called}");
    }
}
