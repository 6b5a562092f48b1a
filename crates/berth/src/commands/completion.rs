//! `berth completion`: a script that makes a shell complete commands and options.

use clap::Args;
use clap_complete::Shell;

use crate::cli;
use crate::output::print;

#[derive(Debug, Args)]
pub struct Completion {
    /// The shell to complete in
    shell: Shell,
}

pub fn run(completion: &Completion) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(completion.shell, &mut cli::command(), "berth", &mut script);
    print(&String::from_utf8(script)?)
}
