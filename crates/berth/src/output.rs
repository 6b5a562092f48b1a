//! Where words go: data to stdout, everything else to stderr.
//!
//! `-o json` writes the API's own JSON and nothing more to stdout, so that a program can trust it. For people there
//! are tables, as wide as the terminal, with colour only where a terminal shows it and nobody asked for none.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::table::{Colour, Screen};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Tables and sentences for people.
    Table,
    /// The API's JSON for programs.
    Json,
    /// A table for spreadsheets; only `berth resource export` and `berth usage` write one.
    Csv,
}

#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub format: Format,
    pub screen: Screen,
}

impl Output {
    pub fn new(format: Format) -> Self {
        let on_terminal = io::stdout().is_terminal();
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            format,
            screen: Screen {
                width: if on_terminal { terminal_width() } else { None },
                colour: if on_terminal && !no_colour && !dumb {
                    Colour::On
                } else {
                    Colour::Off
                },
            },
        }
    }

    /// What was asked for: the object as the API gave it, or a text made from it.
    pub fn show<T: Serialize>(
        &self,
        object: &T,
        text: impl FnOnce(Screen) -> String,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.json(object),
            Format::Table | Format::Csv => print(&text(self.screen)),
        }
    }

    /// A sentence about something that leaves no object behind; a program knows from the exit code.
    pub fn say(&self, sentence: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Json => Ok(()),
            Format::Table | Format::Csv => print(sentence),
        }
    }

    pub fn json<T: Serialize>(&self, object: &T) -> anyhow::Result<()> {
        print(&format!("{}\n", serde_json::to_string_pretty(object)?))
    }

    /// One object in one line, for streams.
    pub fn json_line<T: Serialize>(&self, object: &T) -> anyhow::Result<()> {
        print(&format!("{}\n", serde_json::to_string(object)?))
    }

    /// A word to a person beside the data; programs are not bothered with it.
    pub fn note(&self, sentence: impl AsRef<str>) {
        if self.format == Format::Table {
            complain(sentence.as_ref());
        }
    }
}

/// Writes text to stdout.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Writes a line to stderr. If even that fails there is nobody left to tell.
pub fn complain(line: &str) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Whether whoever read our output has gone away, as `head` does: no failure, only an end.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// `COLUMNS` is how people and tests say it themselves.
fn terminal_width() -> Option<usize> {
    let said = std::env::var("COLUMNS").ok();
    let said = said.and_then(|columns| columns.parse().ok());
    let measured = || rustix::termios::tcgetwinsize(io::stdout()).ok();
    said.or_else(|| measured().map(|size| usize::from(size.ws_col)))
        .filter(|width| *width > 0)
}
