//! Environments that are installed from a lock file, in the real sandbox, from an index that is a folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use berth_drivers::backend::{Backend, Fence, Job, Seen};
use berth_drivers::environments::{LOCK_INSIDE, Recipe, Shelf, installing};
use berth_model::EnvironmentId;
use berth_model::workload::Outcome;
use uuid::Uuid;

use super::{Machine, grant, now, work};

const INDEX_INSIDE: &str = "/opt/berth/index";
const PATH_INSIDE: &str = "/opt/berth/environments/prepared/tiny-1";

/// Writes a wheel of one module, and the page of an index that leads to it. Prints the hash of its file.
const INDEX: &str = r#"
import hashlib, pathlib, sys, zipfile
here = pathlib.Path(sys.argv[1]) / "tiny"
here.mkdir()
wheel = here / "tiny-1.0-py3-none-any.whl"
about = "tiny-1.0.dist-info"
with zipfile.ZipFile(wheel, "w") as file:
    file.writestr("tiny.py", "answer = 42\n")
    file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Dist: absent\n")
    file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    file.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in file.namelist()))
(here / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
print(hashlib.sha256(wheel.read_bytes()).hexdigest())
"#;

fn index(folder: &Path) -> String {
    let made = Command::new("python3")
        .args(["-c", INDEX])
        .arg(folder)
        .output()
        .expect("python3");
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout)
        .expect("it works")
        .trim()
        .to_owned()
}

impl Machine {
    /// Makes an environment of `tiny` from this lock; what it came to, its folder, and its log.
    async fn install(&self, index: &Path, lock: &str) -> (Outcome, EnvironmentId, String) {
        let lock_file = self.folder.path().join("lock.txt");
        fs::write(&lock_file, lock).expect("it works");
        let id = EnvironmentId(Uuid::from_u128(1));
        let recipe = Recipe {
            path: PATH_INSIDE.to_owned(),
            base: None,
            packages: vec!["tiny==1.0".parse().expect("a package")],
            lock: Some(LOCK_INSIDE.to_owned()),
            title: "tiny".to_owned(),
            kernel: "berth-tiny".to_owned(),
        };
        let (mut workload, run) = work(serde_json::json!({"command": ["true"]}));
        workload.ask.program = recipe.program();
        let mut grant = grant(1);
        grant.environment = installing(Some(&format!("file://{INDEX_INSIDE}")));
        let seen = |from: &Path, to: &str, is_writable| Seen {
            from: from.to_owned(),
            to: to.into(),
            is_writable,
        };
        grant.mounts = vec![
            seen(&self.local.made(id), PATH_INSIDE, true),
            seen(&lock_file, LOCK_INSIDE, false),
            seen(index, INDEX_INSIDE, false),
        ];
        let job = Job {
            workload: &workload,
            run: &run,
        };
        let begun = self.local.start(job, &grant, Fence(1), now()).await;
        begun.expect("it works");
        let (outcome, _, log) = self.until_over(&workload, &run).await;
        (outcome, id, log)
    }

    fn has_module(&self, id: EnvironmentId) -> bool {
        let libraries = fs::read_dir(self.local.made(id).join("lib")).expect("it works");
        libraries
            .flatten()
            .any(|python| python.path().join("site-packages/tiny.py").exists())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_has_what_its_lock_names_and_nothing_else() {
    let (machine, folder) = (Machine::new(), tempfile::tempdir().expect("it works"));
    let hash = index(folder.path());
    let lock = format!("tiny==1.0 \\\n    --hash=sha256:{hash}\n");
    // It asks for a package that no index has, which the lock does not name.
    let (outcome, id, log) = machine.install(folder.path(), &lock).await;
    assert_eq!(outcome, Outcome::Completed, "{log}");
    assert!(machine.has_module(id), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_on_the_index_is_not_installed_and_the_log_names_its_package() {
    let (machine, folder) = (Machine::new(), tempfile::tempdir().expect("it works"));
    let hash = index(folder.path());
    let other: String = hash.chars().rev().collect();
    let lock = format!("tiny==1.0 \\\n    --hash=sha256:{other}\n");
    let (outcome, id, log) = machine.install(folder.path(), &lock).await;
    assert_ne!(outcome, Outcome::Completed, "{log}");
    let sentence = "the index has another file for tiny==1.0 than the lock file names";
    assert!(log.contains(sentence), "{log}");
    assert!(!machine.has_module(id), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_without_a_hash_is_not_installed() {
    let (machine, folder) = (Machine::new(), tempfile::tempdir().expect("it works"));
    index(folder.path());
    let (outcome, id, log) = machine.install(folder.path(), "tiny==1.0\n").await;
    assert_ne!(outcome, Outcome::Completed, "{log}");
    assert!(!machine.has_module(id), "{log}");
}
