//! What this program is beside a run on this machine: its keeper, the way into its sandbox, and the first process in it.
//!
//! Nobody types these, so they are no part of the command line that people read.

use std::env::current_exe;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use berth_drivers::local::folder::Folder;
use berth_drivers::local::{enter, inside, keeper};

/// The word after `berth` that means one of them.
pub const WORD: &str = "keeper";

pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let what = arguments.next().unwrap_or_default();
    let folder = arguments.next().map(PathBuf::from).map(Folder::at);
    let done = match (what.to_str(), folder) {
        (Some("run"), Some(folder)) => {
            current_exe().and_then(|program| on_one_thread(keeper::keep(&folder, &program)))
        }
        // This one must have no second thread, and so no runtime.
        (Some("enter"), Some(folder)) => current_exe()
            .and_then(|program| enter::enter(&folder, program).map(|never| match never {})),
        (Some("inside"), Some(own)) => on_one_thread(inside::run(own.path())).and_then(|fate| {
            let mut line = serde_json::to_vec(&fate)?;
            line.push(b'\n');
            io::stdout().write_all(&line)
        }),
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

fn on_one_thread<T>(doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(doing)
}
