//! Whether this machine can run people's work and keep them apart.

use std::path::PathBuf;

use berth_drivers::local::machine::{Abilities, Machine, WeakBoundary};
use berth_drivers::local::names::{Names, Resolved};
use berth_drivers::local::quota::{self, Unavailable};
use berth_server::config::{Config, QueueBackend};

use super::Finding;
use crate::machine;

const SUBJECT: &str = "machine";

/// Of no interest where nothing runs here.
pub fn look(config: &Config) -> Vec<Finding> {
    if config.queue_backend != QueueBackend::Local {
        return Vec::new();
    }
    let can = Abilities::look();
    let boundary = boundary(&can, config.unsafe_shared_user);
    let homes = homes(quota::available(&config.data_dir, can.weak_boundary()));
    let Abilities {
        network, limits, ..
    } = can;
    let Machine {
        cores,
        memory_mib,
        gpus,
        ..
    } = Machine::look();
    let promised_mib = memory_mib.saturating_sub(config.machine_memory_kept_mib);
    let has = format!(
        "{cores} cores, {} GiB of memory, {} GPUs",
        memory_mib / 1024,
        gpus.len()
    );
    let guarantee = match &limits {
        Ok(groups) => guarantee(groups.least_guarantee_above(), promised_mib << 20),
        Err(_) => None,
    };
    let mut findings = vec![
        Finding::ok(SUBJECT, has),
        boundary,
        homes,
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
    ];
    findings.extend(guarantee);
    findings
}

/// Whether the kernel keeps the memory that is held for runs. `least` is the group above them with the least of it.
fn guarantee(least: Option<(PathBuf, u64)>, promised: u64) -> Option<Finding> {
    let (group, kept) = least.filter(|(_, kept)| *kept < promised)?;
    let (group, kept, promised) = (group.display(), kept >> 20, promised >> 20);
    Some(Finding::warn(
        SUBJECT,
        format!(
            "when memory is short, the kernel keeps at most {kept} MiB for all runs together: memory.low of {group}"
        ),
        format!(
            "set MemoryLow={promised}M for the server's unit and for each slice above it (`systemctl set-property`)"
        ),
    ))
}

/// What holds the limit of homes.
fn homes(quotas: Result<PathBuf, Unavailable>) -> Finding {
    match quotas {
        Ok(mount) => Finding::ok(
            SUBJECT,
            format!(
                "project quotas of {} hold the limit of homes",
                mount.display()
            ),
        ),
        Err(Unavailable { why, advice }) => {
            let found = format!("homes are measured before each start, because {why}");
            match advice {
                None => Finding::ok(SUBJECT, found),
                Some(advice) => Finding::warn(SUBJECT, found, advice),
            }
        }
    }
}

/// What runs reach of the host names that are opened to them.
pub async fn opened_names(config: &Config) -> Vec<Finding> {
    if config.queue_backend != QueueBackend::Local {
        return Vec::new();
    }
    let names = Names::new(machine::opened_names(config), config.database.host());
    names.resolve().await.into_iter().map(opened_name).collect()
}

fn opened_name(resolved: Resolved) -> Finding {
    let Resolved {
        name,
        addresses,
        trouble,
    } = resolved;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    match trouble {
        None => Finding::ok(
            SUBJECT,
            format!("runs reach {name} at {}", addresses.join(", ")),
        ),
        Some(trouble) => Finding::warn(
            SUBJECT,
            format!("the name {name} in opened_networks {trouble}"),
            "runs start and do not reach it: correct the name, or what the name server says of it",
        ),
    }
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
    fn a_name_that_opens_nothing_is_a_warning_that_says_which_and_why() {
        let resolved = |trouble: Option<&str>| Resolved {
            name: "nas.lab".to_owned(),
            addresses: vec![std::net::Ipv4Addr::new(10, 1, 2, 3)],
            trouble: trouble.map(str::to_owned),
        };
        let fine = opened_name(resolved(None));
        assert_eq!(fine.level, Level::Ok);
        assert_eq!(fine.found, "runs reach nas.lab at 10.1.2.3");
        let warned = opened_name(resolved(Some("cannot be resolved: no answer")));
        assert_eq!(warned.level, Level::Warn);
        let found = "the name nas.lab in opened_networks cannot be resolved: no answer";
        assert_eq!(warned.found, found);
    }

    #[test]
    fn memory_that_a_group_above_does_not_keep_is_a_warning_that_names_it() {
        assert!(guarantee(None, 1 << 30).is_none());
        let slice = |bytes| Some((PathBuf::from("/sys/fs/cgroup/system.slice"), bytes));
        assert!(guarantee(slice(1 << 30), 1 << 30).is_none());
        let warned = guarantee(slice(0), 1 << 30).expect("nothing is kept");
        assert_eq!(warned.level, Level::Warn);
        let found = "when memory is short, the kernel keeps at most 0 MiB for all runs together: memory.low of /sys/fs/cgroup/system.slice";
        assert_eq!(warned.found, found);
    }

    #[test]
    fn what_holds_the_limit_of_homes_is_said() {
        let quotas = homes(Ok("/srv".into()));
        assert_eq!(
            quotas.found,
            "project quotas of /srv hold the limit of homes"
        );
        let without = |advice| Unavailable {
            why: "`setquota` is not installed".to_owned(),
            advice,
        };
        let measured = homes(Err(without(Some("apt install quota"))));
        assert_eq!(measured.level, Level::Warn);
        let found = "homes are measured before each start, because `setquota` is not installed";
        assert_eq!(measured.found, found);
        assert_eq!(homes(Err(without(None))).level, Level::Ok);
    }

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
