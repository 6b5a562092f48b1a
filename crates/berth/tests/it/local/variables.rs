//! Environment variables in the record of a run, as somebody finds them who reads the disk.

use std::path::Path;

use berth_drivers::local::Settings;
use berth_drivers::local::record_key::RecordKey;
use berth_model::workload::Outcome;
use serde_json::json;

use super::Machine;

/// Whether any file below the folder has these bytes.
fn is_in_a_file(folder: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry")).any(|entry| {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            return is_in_a_file(&entry.path(), text);
        }
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let mut parts = bytes.windows(text.len());
        kind.is_file() && parts.any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn variables_are_sealed_in_the_record_and_a_later_server_opens_them() {
    let program = json!({"command": ["bash", "-c", "echo ${TOKEN^^}"], "environment": {"TOKEN": "canary-token"}});
    let in_time = |_: &mut Settings| {};
    let with_another_key =
        |settings: &mut Settings| settings.record_key = RecordKey::new([8; 32].into());
    for (later, expected) in [
        (&in_time as &dyn Fn(&mut Settings), "CANARY-TOKEN\n"),
        (&with_another_key, ""),
    ] {
        // The server dies before a keeper has read the record.
        let mut machine = Machine::with(|settings| settings.program = "/bin/true".into());
        let (workload, run) = machine.start(1, program.clone()).await;
        let sealed = machine
            .local
            .folder(run.id)
            .path()
            .join("environment.sealed");
        assert!(sealed.exists());
        assert!(!is_in_a_file(machine.folder.path(), "canary-token"));
        machine.local = Machine::server(machine.folder.path(), later);
        let (outcome, said, log) = machine.until_over(&workload, &run).await;
        assert_eq!(log, expected, "{outcome:?} {said}");
        assert!(!is_in_a_file(machine.folder.path(), "canary-token"));
        if expected.is_empty() {
            assert_eq!(outcome, Outcome::CouldNotStart);
            assert!(said.contains("was the key file replaced"), "{said}");
        } else {
            assert!(!sealed.exists(), "it is read once");
        }
    }
}
