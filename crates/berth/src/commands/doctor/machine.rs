//! Whether this machine can run people's work and keep them apart.

use berth_drivers::local::machine::{Abilities, Machine, WeakBoundary};
use berth_server::config::{Config, QueueBackend};

use super::Finding;

const SUBJECT: &str = "machine";

/// Of no interest where nothing runs here.
pub fn look(config: &Config) -> Vec<Finding> {
    if config.queue_backend != QueueBackend::Local {
        return Vec::new();
    }
    let can = Abilities::look();
    let boundary = boundary(&can, config.unsafe_shared_user);
    let Abilities {
        network, limits, ..
    } = can;
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
        boundary,
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
    ]
}

fn boundary(can: &Abilities, is_shared: bool) -> Finding {
    let whys = [&can.sandbox, &can.users].into_iter();
    let whys: Vec<&str> = whys
        .filter_map(|can| can.as_ref().err().map(String::as_str))
        .collect();
    let said = |weak: WeakBoundary| format!("{} ({})", weak.sentence(), whys.join("; "));
    match (can.weak_boundary(), is_shared) {
        (None, false) => Finding::ok(SUBJECT, "each run has a sandbox and its person's own user"),
        (None, true) => Finding::warn(
            SUBJECT,
            "each run has a sandbox and its person's own user, and unsafe_shared_user is set all the same",
            "take unsafe_shared_user out of the configuration: every page warns of it",
        ),
        (Some(weak), false) => {
            let advice = format!(
                "While several people have accounts, the server runs nobody's work. {}",
                weak.advice()
            );
            Finding::warn(SUBJECT, said(weak), advice)
        }
        (Some(weak), true) => Finding::fail(
            SUBJECT,
            said(weak),
            "unsafe_shared_user lets several people's work run here all the same: only for people who trust each other",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_weak_boundary_is_told_and_so_is_a_flag_that_nobody_needs() {
        let can = |sandbox: bool, users: bool| Abilities {
            sandbox: sandbox.then_some(()).ok_or("no bubblewrap".to_owned()),
            network: Ok(()),
            limits: Err(String::new()),
            users: users.then_some(()).ok_or("not root".to_owned()),
        };
        assert_eq!(boundary(&can(true, true), false).level, Level::Ok);
        assert_eq!(boundary(&can(true, true), true).level, Level::Warn);
        for (sandbox, users) in [(false, true), (true, false), (false, false)] {
            let weak = can(sandbox, users);
            let finding = boundary(&weak, false);
            assert_eq!(finding.level, Level::Warn);
            assert_eq!(finding.found.contains("no bubblewrap"), !sandbox);
            assert_eq!(finding.found.contains("not root"), !users);
            assert_eq!(boundary(&weak, true).level, Level::Fail);
        }
    }
}
