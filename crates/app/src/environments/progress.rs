//! Estimates the progress of a build from its log, for people who watch it.

use berth_model::environment::EnvironmentState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Whether the build still waits for resources.
    pub is_waiting: bool,
    pub percent: u8,
    /// The last line of the log.
    pub now: Option<String>,
}

/// Lines are shown, not stored.
const LINE_MAX: usize = 200;

impl Progress {
    pub(super) fn waiting() -> Progress {
        Progress {
            is_waiting: true,
            percent: 0,
            now: None,
        }
    }

    pub(super) fn of(state: EnvironmentState) -> Progress {
        Progress {
            is_waiting: false,
            percent: if state == EnvironmentState::Ready {
                100
            } else {
                0
            },
            now: None,
        }
    }

    /// The number of packages is unknown beforehand, so each package adds a smaller part of the progress.
    pub(super) fn read(log: &str) -> Progress {
        let has = |start: &str| log.lines().any(|line| line.starts_with(start));
        let collected = log
            .lines()
            .filter(|line| line.starts_with("Collecting "))
            .count() as u64;
        let percent = if has("berth: done") {
            99
        } else if has("Successfully installed") {
            97
        } else if has("Installing collected packages") {
            85
        } else if has("berth: collecting") {
            10 + 70 * collected / (collected + 20)
        } else {
            2
        };
        let last = log.lines().rev().find(|line| !line.trim().is_empty());
        let shown = |line: &str| {
            let plain = line.trim().strip_prefix("berth: ").unwrap_or(line.trim());
            plain
                .chars()
                .filter(|c| !c.is_control())
                .take(LINE_MAX)
                .collect()
        };
        Progress {
            is_waiting: false,
            percent: u8::try_from(percent).unwrap_or(99),
            now: last.map(shown),
        }
    }
}

/// The installer's error message. `None` if the log has none.
pub(super) fn reason(log: &str) -> Option<String> {
    let errors = log.lines().filter_map(|line| line.strip_prefix("ERROR: "));
    let first = errors.map(str::trim).find(|line| !line.is_empty())?;
    let plain = first.chars().filter(|c| !c.is_control());
    Some(plain.take(400).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_ever_goes_on() {
        let lines = [
            "berth: making the folder",
            "berth: collecting six",
            "Collecting six",
            "  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)",
            "Collecting numpy",
            "Installing collected packages: six",
            "Successfully installed six-1.17.0",
            "berth: done",
        ];
        let percents: Vec<u8> = (0..=lines.len())
            .map(|count| Progress::read(&lines[..count].join("\n")).percent)
            .collect();
        assert!(percents.is_sorted(), "{percents:?}");
        assert_eq!(percents.last(), Some(&99));
        let now = Progress::read(&lines[..4].join("\n")).now;
        assert_eq!(
            now.as_deref(),
            Some("Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)")
        );
    }

    #[test]
    fn the_installers_own_words_are_the_reason() {
        let log = "x\nERROR: Could not find a version that satisfies the requirement nope\nERROR: No matching";
        let said = reason(log).unwrap();
        assert!(said.starts_with("Could not find a version"), "{said}");
        assert_eq!(reason("all is well"), None);
    }
}
