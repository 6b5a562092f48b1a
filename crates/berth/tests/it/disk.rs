//! Disk space with the real server: what people may take of it, what goes after a while, and that the server still writes
//! when a program has taken the last of it. Needs root, which alone may mount a small disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_testkit::wait;
use serde_json::Value;

use crate::support::desk::{Desk, Ended};

const CONFIG: &str = "listen = \"127.0.0.1:{port}\"\nqueue_backend = \"local\"\n\
     rate_limit_per_s = 0\nrate_limit_burst = 0\n";

const QUEUE: &str = "
roles: { node: node, cpu: cores, memory: memory }
grace: PT5S
";

/// Machines are busy.
const SOON: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

async fn site(settings: &str) -> Desk {
    Desk::with_admin_of(&format!("{CONFIG}{settings}\n"))
        .await
        .with_site(QUEUE)
}

fn submit(desk: &Desk, time: &str, script: &str) -> Ended {
    let line =
        format!("submit --cores 0.2 --memory 128MiB --time {time} --no-requeue --script - -o json");
    desk.run_with(&line, script)
}

fn submitted(desk: &Desk, time: &str, script: &str) -> String {
    let submitted = submit(desk, time, script).succeeds().json();
    submitted["id"].as_str().expect("an id").to_owned()
}

fn why(desk: &Desk, job: &str) -> Value {
    desk.run(&format!("why {job} -o json")).succeeds().json()
}

async fn until_over(desk: &Desk, job: &str) -> Value {
    wait::some("the job to be over", SOON, async || {
        let job = why(desk, job);
        let is_over = ["COMPLETED", "FAILED", "CANCELLED"].contains(&job["state"].as_str()?);
        is_over.then_some(job)
    })
    .await
}

async fn completed(desk: &Desk, time: &str, script: &str) -> String {
    let job = submitted(desk, time, &format!("#!/bin/bash\n{script}\n"));
    let over = until_over(desk, &job).await;
    assert_eq!(over["state"], "COMPLETED", "{over:#}");
    job
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_run_outlives_its_folder() {
    let mut desk = site("data_dir = \"{directory}\"\nrun_retention_d = 0").await;
    let job = completed(&desk, "5m", "echo trained; touch ~/kept").await;
    let work = desk.server().directory().join("work");
    assert_eq!(entries(&work.join("runs")), 1);
    let log = desk.run(&format!("log {job}")).succeeds().stdout;
    assert_eq!(log, "trained\n");
    // What a server removes, it removes when it starts, and then every ten minutes.
    desk.server_mut().restart().await.expect("it starts again");
    wait::until("the folder to be gone", SOON, async || {
        entries(&work.join("runs")) == 0
    })
    .await;
    assert_eq!(entries(&work.join("logs")), 1);
    let again = desk.run(&format!("log {job}")).succeeds().stdout;
    assert_eq!(again, log);
    assert_eq!(why(&desk, &job)["state"], "COMPLETED");
    let homes = fs::read_dir(work.join("homes")).expect("homes");
    let home = homes.map(|home| home.expect("a home").path()).next();
    assert!(home.expect("a home").join("kept").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_no_longer_kept_says_so() {
    let settings = "data_dir = \"{directory}\"\nrun_retention_d = 0\nlog_retention_d = 0";
    let mut desk = site(settings).await;
    let job = completed(&desk, "5m", "echo trained").await;
    desk.server_mut().restart().await.expect("it starts again");
    let work = desk.server().directory().join("work");
    wait::until("folder and log to be gone", SOON, async || {
        entries(&work.join("runs")) + entries(&work.join("logs")) == 0
    })
    .await;
    let log = desk.run(&format!("log {job}")).succeeds().stdout;
    assert!(log.contains("it is no longer kept"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_still_run_keeps_its_folder() {
    let mut desk =
        site("data_dir = \"{directory}\"\nrun_retention_d = 0\nlog_retention_d = 0").await;
    let ended = completed(&desk, "5m", "true").await;
    let job = submitted(
        &desk,
        "5m",
        "#!/bin/bash\necho ready; read -r < <(sleep 3600)\n",
    );
    wait::until("the job to run", SOON, async || {
        desk.run(&format!("log {job}")).stdout == "ready\n"
    })
    .await;
    let work = desk.server().directory().join("work");
    assert_eq!(entries(&work.join("runs")), 2);
    desk.server_mut().kill9().expect("it is killed");
    desk.server_mut().restart().await.expect("it starts again");
    wait::until(
        "the folder of the job that is over to be gone",
        SOON,
        async || entries(&work.join("runs")) == 1,
    )
    .await;
    assert_eq!(why(&desk, &job)["state"], "RUNNING");
    assert_eq!(why(&desk, &ended)["state"], "COMPLETED");
    desk.run(&format!("cancel {job}")).succeeds();
    assert_eq!(until_over(&desk, &job).await["state"], "CANCELLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_limit_of_a_home_only_short_work_starts() {
    let desk = site("data_dir = \"{directory}\"\nhome_limit_mib = 2").await;
    let line = "submit --cores 0.2 --memory 128MiB --time 1h --hold -o json -- true";
    let held = desk.run(line).succeeds().json();
    let held = held["id"].as_str().expect("an id");
    completed(&desk, "5m", "head -c 4M /dev/zero > ~/large").await;
    let refused = submit(&desk, "1h", "#!/bin/bash\ntrue\n");
    assert!(refused.stderr.contains("its limit is 2 MiB"), "{refused:?}");
    assert!(refused.stderr.contains("disk.full"), "{refused:?}");
    let refused = desk.run("env create tiny iniconfig==2.0.0");
    assert!(refused.stderr.contains("its limit is 2 MiB"), "{refused:?}");
    // What waited since before is refused by the machine, once.
    desk.run(&format!("release {held}")).succeeds();
    let over = until_over(&desk, held).await;
    assert_eq!(over["state"], "FAILED");
    assert_eq!(over["runs"].as_array().map(Vec::len), Some(1), "{over:#}");
    assert!(over.to_string().contains("its limit is 2 MiB"), "{over:#}");
    completed(&desk, "5m", "rm ~/large").await;
    wait::until("it to be measured again", SOON, async || {
        submit(&desk, "1h", "#!/bin/bash\ntrue\n").stderr.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_reserve_of_its_disk_a_machine_starts_nothing() {
    let desk = site("data_dir = \"{directory}\"\ndisk_reserve_mib = 1000000000").await;
    let refused = submit(&desk, "5m", "#!/bin/bash\ntrue\n");
    assert!(refused.stderr.contains("in reserve"), "{refused:?}");
    assert!(!refused.stdout.contains("job"), "{refused:?}");
}

/// A small disk of its own, for as long as this lives.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(mib: u64) -> SmallDisk {
        let place = tempfile::tempdir().expect("a folder");
        let mounted = std::process::Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={mib}m,mode=0755"),
                "tmpfs",
            ])
            .arg(place.path())
            .status();
        assert!(mounted.expect("mount").success(), "only root may mount");
        SmallDisk(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn is_full(&self) -> bool {
        let disk = rustix::fs::statvfs(self.0.path()).expect("it is there");
        disk.f_bavail == 0
    }

    fn allocated(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).map_or(0, |about| about.blocks() * 512)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What a killed run leaves behind may take a moment to go.
        let mut umount = std::process::Command::new("umount");
        umount.arg("--lazy").arg(self.0.path());
        umount.status().expect("umount");
    }
}

/// Takes every block that anybody gives back.
const HOG: &str = "#!/bin/bash\nwhile :; do cat /dev/zero >> ~/all 2>/dev/null; sleep 0.02; done\n";

/// Fills the disk with the database by a job, and books; says how many of so many bookings there are.
async fn booked_on_a_full_disk(reserve_mib: u64, wanted: u32) -> u32 {
    let disk = SmallDisk::new(64);
    let settings = format!(
        "data_dir = \"{}\"\ndatabase_reserve_mib = {reserve_mib}\nhome_limit_mib = 0\ndisk_reserve_mib = 0",
        disk.path("data").display()
    );
    let desk = site(&settings).await;
    wait::until("the reserve to be filled", SOON, async || {
        disk.allocated("data/berth.sqlite") >= reserve_mib * MIB
    })
    .await;
    let job = submitted(&desk, "5m", HOG);
    wait::until("the disk to be full", SOON, async || disk.is_full()).await;
    let mut booked = 0;
    for day in 0..wanted {
        let (month, day) = (1 + day / 28, 1 + day % 28);
        let line = format!("book here --from |2101-{month:02}-{day:02} 09:00| --for 3h");
        let done = desk.run(&line);
        booked += u32::from(done.stdout.starts_with("Booked"));
    }
    if booked == wanted {
        assert!(disk.is_full(), "nobody made room");
        // The program that fills the disk is stopped, and its end is written on that disk, too.
        desk.run(&format!("cancel {job}")).succeeds();
        assert_eq!(until_over(&desk, &job).await["state"], "CANCELLED");
        wait::until("the run's end to be known", SOON, async || {
            why(&desk, &job)["runs"][0]["state"] == "ended"
        })
        .await;
    }
    drop(desk);
    booked
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_books_on_a_disk_that_a_program_keeps_full() {
    assert_eq!(booked_on_a_full_disk(8, 60).await, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_reserve_it_could_not() {
    assert!(booked_on_a_full_disk(0, 60).await < 60);
}
