//! Whether this machine can run people's work and keep them apart.

use berth_drivers::local::machine::{Abilities, Machine};
use berth_server::config::{Config, QueueBackend};

use super::Finding;

const SUBJECT: &str = "machine";

/// Of no interest where nothing runs here.
pub fn look(config: &Config) -> Vec<Finding> {
    if config.queue_backend != QueueBackend::Local {
        return Vec::new();
    }
    let Abilities {
        sandbox,
        network,
        limits,
        users,
    } = Abilities::look();
    let Machine {
        cores,
        memory_mib,
        gpus,
        ..
    } = Machine::look();
    let has = format!(
        "{cores} cores, {} GiB of memory, {} GPUs",
        memory_mib / 1024,
        gpus.len()
    );
    vec![
        Finding::ok(SUBJECT, has),
        match sandbox {
            Ok(()) => Finding::ok(SUBJECT, "each run gets a sandbox of its own"),
            Err(why) => Finding::fail(SUBJECT, why, "without it, nothing is run here"),
        },
        match network {
            Ok(()) => Finding::ok(SUBJECT, "each run gets a network of its own"),
            Err(why) => Finding::warn(SUBJECT, why, "without it, what runs reaches no network"),
        },
        match limits {
            Ok(groups) => Finding::ok(SUBJECT, format!("limits are held by {}", groups.words())),
            Err(why) => Finding::warn(
                SUBJECT,
                why,
                "without it, what runs can use all cores and all memory",
            ),
        },
        match users {
            Ok(()) => Finding::ok(SUBJECT, "each person gets a user of their own"),
            Err(why) => Finding::warn(SUBJECT, why, "the sandbox alone keeps people apart"),
        },
    ]
}
