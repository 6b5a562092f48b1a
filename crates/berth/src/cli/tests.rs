//! The tree of commands held to its own promises, and to its documentation.

use std::fmt::Write;

use clap::Command;

use super::{GROUPS, TOPICS, command};
use crate::exit::Exit;

/// Every command that does something, with its full name: `berth reservation list`.
fn leaves(command: &Command) -> Vec<(String, &Command)> {
    fn walk<'a>(name: &str, command: &'a Command, found: &mut Vec<(String, &'a Command)>) {
        let mut below = command
            .get_subcommands()
            .filter(|below| below.get_name() != "help")
            .peekable();
        if below.peek().is_none() {
            found.push((name.to_owned(), command));
        }
        for below in below {
            walk(&format!("{name} {}", below.get_name()), below, found);
        }
    }
    let mut found = Vec::new();
    walk("berth", command, &mut found);
    found
}

#[test]
fn the_tree_is_sound() {
    command().debug_assert();
}

#[test]
fn every_command_and_every_argument_says_what_it_is_for() {
    let mut silent = Vec::new();
    let mut all = vec![("berth".to_owned(), command())];
    while let Some((name, command)) = all.pop() {
        if command.get_about().is_none() {
            silent.push(name.clone());
        }
        for argument in command.get_arguments() {
            if argument.get_help().is_none() {
                silent.push(format!("{name}: {}", argument.get_id()));
            }
        }
        let below = command.get_subcommands().cloned();
        all.extend(below.map(|below| (format!("{name} {}", below.get_name()), below)));
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn every_command_is_in_one_group_of_the_help_or_a_topic() {
    let command = command();
    let mut listed: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    listed.extend(TOPICS);
    listed.sort_unstable();
    let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    known.push("help");
    known.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn the_help_lists_commands_in_groups_and_the_topics() {
    let help = command().render_help().to_string();
    assert!(
        help.contains("Booking:\n  book         Book resources for a time\n"),
        "{help}"
    );
    assert!(
        help.contains("Topics (berth help TOPIC):\n  exit-codes "),
        "{help}"
    );
    assert!(help.contains("--server <URL>"), "{help}");
}

#[test]
fn the_topics_explain_themselves_as_commands_too() {
    for topic in TOPICS {
        let mut tree = command();
        let error = tree
            .try_get_matches_from_mut(["berth", "help", topic])
            .unwrap_err();
        assert!(!error.use_stderr(), "{topic}");
        assert!(error.to_string().lines().count() > 5, "{topic}: {error}");
    }
}

/// The generated part of `docs/cli.md`.
fn reference() -> String {
    let tree = command();
    let mut text = String::new();
    for (group, names) in GROUPS {
        writeln!(
            text,
            "\n### {group}\n\n| command | what it does |\n|---|---|"
        )
        .unwrap();
        let mut of_group: Vec<_> = leaves(&tree)
            .into_iter()
            .filter_map(|(name, leaf)| {
                let noun = name.split(' ').nth(1)?;
                let place = names.iter().position(|known| *known == noun)?;
                Some((place, name, leaf))
            })
            .collect();
        of_group.sort_by_key(|(place, _, _)| *place);
        for (_, name, leaf) in of_group {
            let about = leaf.get_about().unwrap();
            let arguments: String = leaf
                .get_positionals()
                .map(|argument| format!(" {argument}"))
                .collect();
            writeln!(
                text,
                "| `{name}{}` | {about} |",
                arguments.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    text += "\n### Exit codes\n\n| code | meaning |\n|---|---|\n";
    for exit in Exit::ALL {
        writeln!(text, "| {} | {} |", exit.code(), exit.meaning()).unwrap();
    }
    text
}

const BEGIN: &str =
    "<!-- From here on printed from the code: UPDATE_DOCS=1 cargo test -p berth --bin berth -->\n";

#[test]
fn the_documentation_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (tour, _) = page
        .split_once(BEGIN)
        .expect("the mark where the printed part begins");
    let printed = format!("{tour}{BEGIN}{}", reference());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == printed,
        "docs/cli.md is not what the commands say; run UPDATE_DOCS=1 cargo test -p berth --bin berth"
    );
}

#[test]
fn every_command_in_the_tour_can_be_typed() {
    let page = include_str!("../../../../docs/cli.md");
    let tree = command();
    let blocks = page
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let lines = blocks
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("$ berth "));
    let mut seen = 0;
    for line in lines {
        let mut at = &tree;
        for word in line.split_whitespace() {
            match at.find_subcommand(word) {
                Some(below) => at = below,
                None => break,
            }
        }
        assert!(
            !at.has_subcommands() || line.starts_with("help"),
            "berth {line}"
        );
        for flag in line
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
        {
            let name = flag.trim_start_matches('-');
            let known = at.get_arguments().chain(tree.get_arguments());
            let mut known = known.filter_map(clap::Arg::get_long);
            assert!(known.any(|known| known == name), "berth {line}: {flag}");
        }
        seen += 1;
    }
    assert!(seen > 15, "the tour shows {seen} commands");
}
