//! `berth slurm link`: the names by which this program is one of Slurm's.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::Program;
use crate::failure::usage;
use crate::output::print;

#[derive(Debug, Subcommand)]
pub enum Slurm {
    /// Make links named sbatch, squeue, scancel, sinfo and sacct to this program
    Link(Link),
}

#[derive(Debug, Args)]
pub struct Link {
    /// The folder for the links; put it into PATH, before Slurm's own if there is one
    folder: PathBuf,
    /// Replace files that have these names
    #[arg(long)]
    force: bool,
}

pub fn run(Slurm::Link(link): Slurm) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("this program's own file")?;
    fs::create_dir_all(&link.folder)
        .with_context(|| format!("cannot make the folder {}", link.folder.display()))?;
    let paths = Program::ALL.map(|one| link.folder.join(one.name()));
    let mut others = Vec::new();
    for path in &paths {
        if !is_free_or_ours(path, &program)? {
            others.push(path.display().to_string());
        }
    }
    if !others.is_empty() && !link.force {
        return Err(usage(format!(
            "there is something else already, replaced only with --force: {}",
            others.join(", ")
        )));
    }
    for path in &paths {
        make(path, &program).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let names = Program::ALL.map(Program::name).join(", ");
    print(&format!("Linked {names} in {}.\n", link.folder.display()))
}

fn is_free_or_ours(path: &Path, program: &Path) -> anyhow::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", path.display())),
        Ok(found) => Ok(found.is_symlink() && fs::read_link(path)? == program),
    }
}

/// Under another name first, so that at no moment the command is missing.
fn make(path: &Path, program: &Path) -> std::io::Result<()> {
    let new = path.with_extension("berth-new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(program, &new)?;
    fs::rename(&new, path)
}
