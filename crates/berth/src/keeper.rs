//! What this program is beside a run on this machine: its keeper, its network, the way into its sandbox, and the first
//! process in it.
//!
//! Nobody types these, so they are no part of the command line that people read.

use std::env::current_exe;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use berth_drivers::local::folder::Folder;
use berth_drivers::local::{enter, inside, keeper, network};

/// The word after `berth` that means one of them.
pub const WORD: &str = "keeper";

pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let what = arguments.next().unwrap_or_default();
    let mut next = || arguments.next().unwrap_or_default();
    let done = match what.to_str() {
        Some("run") => {
            let folder = Folder::at(PathBuf::from(next()));
            current_exe().and_then(|program| on_one_thread(keeper::keep(&folder, &program)))
        }
        // These two must have no second thread, and so no runtime.
        Some("enter") => {
            let folder = Folder::at(PathBuf::from(next()));
            current_exe()
                .and_then(|program| enter::enter(&folder, program).map(|never| match never {}))
        }
        Some("network") => number(next()).and_then(|process| {
            let user = number(next())?;
            network::become_network(process, user).map(|never| match never {})
        }),
        Some("inside") => on_one_thread(inside::run()),
        _ => Err(io::Error::other("only Berth itself calls this")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "berth: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn number(text: OsString) -> io::Result<u32> {
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| io::Error::other("only Berth itself calls this"))
}

fn on_one_thread<T>(doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(doing)
}
