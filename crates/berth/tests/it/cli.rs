//! The real program, typed at as people and scripts type: against the real server, end to end.
//!
//! Bookings lie far ahead, on a day that no clock reaches while a test runs.

mod booking;
mod environments;
mod files;
mod lab;
mod machine;
mod people;
mod policies;
mod series;
mod sessions;
mod slurm;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::desk::Desk;
use lab::lab;
use walk::{ELSEWHERE, WALK};

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_has_its_number() {
    let mut desk = lab().await;
    for (line, code) in [
        ("nonsense", 2),
        ("book gpu-01 --from whenever --for 2h", 2),
        (
            "book gpu-01 --from |2101-03-08 09:00| --to |2101-03-07 09:00|",
            2,
        ),
        ("book gpu-99 --for 2h", 1),
        ("resource show gpu-99", 4),
        ("site show nowhere", 4),
        ("reservation show 000000", 4),
        ("type create rack --title Again", 5),
        ("site edit --title New --if-version 99", 5),
        ("help", 0),
        ("help exit-codes", 0),
        ("exit-codes", 0),
        ("completion bash", 0),
        ("config show-docs", 0),
        ("openapi", 0),
        ("version", 0),
    ] {
        desk.run(line).ends_with(code);
    }
    desk.server_mut().stop().await.expect("stop");
    desk.run("site list").ends_with(6);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_runs() {
    let desk = Desk::with_admin().await;
    let mut kept: BTreeMap<&str, String> = BTreeMap::new();
    for line in WALK {
        let typed = kept
            .iter()
            .fold(line.typed.to_owned(), |typed, (name, id)| {
                typed.replace(&format!("{{{name}}}"), id)
            });
        let ended = desk.run_with(&typed, line.input).succeeds();
        if let Some(name) = line.keep {
            let id = ended.json()["id"].as_str().expect("an id").to_owned();
            kept.insert(name, id);
        }
    }
}

/// The commands, as the documentation prints them from the code.
fn documented() -> BTreeSet<String> {
    let page = include_str!("../../../../docs/cli.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `berth "));
    rows.map(|row| {
        let words = row.split(['`', '<', '[']).next().unwrap_or_default();
        words.trim().to_owned()
    })
    .collect()
}

#[test]
fn no_command_is_left_out() {
    let starts = |typed: &str, command: &str| {
        typed
            .strip_prefix(command)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let commands = documented();
    assert!(commands.len() > 60, "{commands:?}");
    let untried: Vec<_> = commands
        .iter()
        .filter(|command| !WALK.iter().any(|line| starts(line.typed, command)))
        .filter(|command| !ELSEWHERE.iter().any(|(known, _)| known == command))
        .collect();
    assert!(
        untried.is_empty(),
        "add a line to tests/it/cli/walk.rs: {untried:?}"
    );
    let gone: Vec<_> = ELSEWHERE
        .iter()
        .filter(|(known, _)| !commands.contains(*known))
        .collect();
    assert!(
        gone.is_empty(),
        "there is no such command any more: {gone:?}"
    );
}
