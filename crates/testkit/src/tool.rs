//! Finds the programs that tests call. `scripts/setup test` installs them; a missing program is an error, never a skip.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result};

/// The version that `scripts/setup` installs. A test in this crate checks that both agree.
pub const SCHEMATHESIS_VERSION: &str = "4.32.5";
pub const ICALENDAR_VERSION: &str = "7.3.0";

/// Finds a program by name: on the `PATH`, or where Debian keeps daemons and PostgreSQL's own programs.
pub fn find(name: &str) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .chain(postgres_directories())
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
        .with_context(|| format!("the program `{name}` is not installed: run `scripts/setup test`"))
}

/// The fuzzer of OpenAPI documents, in the virtual environment that `scripts/setup test` keeps.
pub fn schemathesis() -> Result<PathBuf> {
    let program = cache()?.join(format!(
        "schemathesis-{SCHEMATHESIS_VERSION}/bin/schemathesis"
    ));
    anyhow::ensure!(
        program.is_file(),
        "schemathesis is not at {}: run `scripts/setup test`",
        program.display()
    );
    Ok(program)
}

/// A Python with the package `icalendar`, in the same virtual environment.
pub fn python_with_icalendar() -> Result<PathBuf> {
    let home = cache()?.join(format!("schemathesis-{SCHEMATHESIS_VERSION}"));
    let stamp = home.join(format!("complete-icalendar-{ICALENDAR_VERSION}"));
    anyhow::ensure!(
        stamp.is_file(),
        "icalendar {ICALENDAR_VERSION} is not in {}: run `scripts/setup test`",
        home.display()
    );
    Ok(home.join("bin/python"))
}

/// The folder for files that survive a clean checkout: compiled dependencies and installed tools.
fn cache() -> Result<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("BERTH_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("berth")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/berth")))
        .context("neither BERTH_CACHE nor HOME is set, so there is no cache directory")
}

/// Debian keeps `initdb` and `postgres` off the `PATH`, in one directory per version; the newest comes first.
fn postgres_directories() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(Path::new("/usr/lib/postgresql"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions
        .into_iter()
        .map(|(_, directory)| directory)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_says_what_to_do_about_the_rest() {
        assert!(find("sh").expect("a shell").is_absolute());
        let error = find("no-such-program")
            .expect_err("there is no such program")
            .to_string();
        assert!(error.contains("scripts/setup test"), "{error}");
    }

    #[test]
    fn setup_installs_the_version_the_tests_look_for() {
        let setup = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/setup");
        let text = fs::read_to_string(setup).expect("read scripts/setup");
        assert!(text.contains(&format!("schemathesis_version={SCHEMATHESIS_VERSION}\n")));
        assert!(text.contains(&format!("icalendar_version={ICALENDAR_VERSION}\n")));
    }
}
