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
        apart(sandbox, config.unsafe_shared_user),
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

fn apart(sandbox: Result<(), String>, shares: bool) -> Finding {
    match (sandbox, shares) {
        (Ok(()), false) => Finding::ok(SUBJECT, "each run gets a sandbox of its own"),
        (Ok(()), true) => Finding::warn(
            SUBJECT,
            "each run gets a sandbox of its own, and unsafe_shared_user is set all the same",
            "take unsafe_shared_user out of the configuration: every page warns of it",
        ),
        (Err(why), false) => Finding::warn(
            SUBJECT,
            why,
            "without it, one person's work runs here at a time, and can read the server's own files",
        ),
        (Err(why), true) => Finding::fail(
            SUBJECT,
            why,
            "without it, people's work reads each other's files and the server's own (unsafe_shared_user)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn what_keeps_nobody_apart_is_said_and_so_is_a_flag_that_nobody_needs() {
        let missing = || Err("bubblewrap is not installed".to_owned());
        assert_eq!(apart(Ok(()), false).level, Level::Ok);
        assert_eq!(apart(Ok(()), true).level, Level::Warn);
        assert_eq!(apart(missing(), false).level, Level::Warn);
        let shared = apart(missing(), true);
        assert_eq!(shared.level, Level::Fail);
        assert!(
            shared
                .advice
                .is_some_and(|advice| advice.contains("unsafe_shared_user"))
        );
    }
}
