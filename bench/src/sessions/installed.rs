//! What is kept between runs: JupyterHub's proxy, and the environment in which JupyterLab and JupyterHub are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use berth_drivers::environments::Prepared;
use berth_testkit::repository;

use crate::lab::binary;

const LAB: &str = "jupyterlab";

/// Where `scripts/setup bench` put it. The one place that names its version is that script.
pub fn chp() -> Result<PathBuf> {
    let setup = std::fs::read_to_string(repository::root().join("scripts/setup"))?;
    let version = setup
        .lines()
        .find_map(|line| line.strip_prefix("chp_version="))
        .context("scripts/setup names no chp_version")?;
    let program = repository::cache().join(format!(
        "chp-{version}/node_modules/.bin/configurable-http-proxy"
    ));
    ensure!(
        program.exists(),
        "{} is missing; run: scripts/setup bench",
        program.display()
    );
    Ok(program)
}

/// The folder of environments that servers take in.
pub fn environments() -> PathBuf {
    repository::cache().join("environments")
}

/// The interpreter of JupyterLab's environment, which is made if it is not there yet. Its scripts name their interpreter
/// by where it stands in a sandbox, so that outside of one only the interpreter itself can be started.
pub fn python() -> Result<PathBuf> {
    let into = environments();
    let made = Command::new(binary()?)
        .args(["env", "prepare", LAB, "--into"])
        .arg(&into)
        .output()?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "no JupyterLab to measure: {said}");
    let lab = Prepared::brought(LAB).and_then(|lab| lab.key());
    let lab = lab.context("Berth brings no JupyterLab along")?;
    Ok(into.join(lab.as_str()).join("bin/python"))
}
