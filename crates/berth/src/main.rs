//! `berth`: the one program. Without a server it is the client; with `berth serve` it is the server; by a link of such a
//! name it is one of Slurm's commands.
//!
//! This file only wires: it reads the command line, picks a runtime, and turns what came of it into an exit code.

mod arguments;
mod cli;
mod commands;
mod context;
mod demo;
mod details;
mod exit;
mod failure;
mod files;
mod handle;
mod installation;
mod keeper;
mod machine;
mod output;
mod pages;
mod prompt;
mod remembered;
mod reserve;
mod run;
mod server_options;
mod show;
mod slurm;
mod table;
mod times;
mod when;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().peekable();
    let called = arguments.next().as_deref().and_then(slurm::Program::called);
    if called.is_none() && arguments.next_if(|word| word == keeper::WORD).is_some() {
        return keeper::run(arguments);
    }
    // Before anything can open a connection: rustls asks for one provider, and here is the one we have.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    if let Some(program) = called {
        return slurm::run(program, arguments);
    }
    match cli::parse() {
        Ok(cli) => run::run(cli).into(),
        Err(error) => {
            // clap knows which of the two streams its words belong on, and that help is no failure.
            error.print().ok();
            if error.use_stderr() {
                exit::Exit::Usage
            } else {
                exit::Exit::Done
            }
            .into()
        }
    }
}
