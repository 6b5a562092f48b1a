//! The repository in which the tests run, for tests that read the code itself.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The top of the checkout.
pub fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("the testkit lives two levels below the top")
        .to_owned()
}

/// Every file that is in the repository, or is new and not ignored, relative to the top.
pub fn files() -> Result<Vec<PathBuf>> {
    let listed = run(
        "git",
        [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    )?;
    let names = listed.split_terminator('\0').map(PathBuf::from);
    // Git still lists a file that is deleted but not committed.
    Ok(names.filter(|name| root().join(name).is_file()).collect())
}

/// Runs `cargo` at the top and returns its output.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
    // The cargo that runs the tests sets this, so that no other toolchain answers.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(cargo, arguments)
}

fn run<'a>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    let output = command
        .output()
        .with_context(|| format!("could not run {command:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        complaint.trim()
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The folder for costly files that are kept between runs, as in `scripts/setup`.
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let own = |folder: PathBuf| folder.join("berth");
    let cache = set("BERTH_CACHE").or_else(|| set("XDG_CACHE_HOME").map(own));
    cache.unwrap_or_else(|| own(set("HOME").unwrap_or_default().join(".cache")))
}
