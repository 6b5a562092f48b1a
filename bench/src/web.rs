//! The browser app, as `web/bench/measure.mjs` measures it in the real Chromium with the release binary behind it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::lab::binary;
use crate::report::{Report, say};

pub fn run(report: &mut Report) -> Result<()> {
    say("web: the timeline and the month alone, then the whole app with two browsers");
    let web = berth_testkit::repository::root().join("web");
    let done = Command::new("node")
        .arg("bench/measure.mjs")
        .arg(binary()?)
        .current_dir(web)
        .stderr(Stdio::inherit())
        .output()
        .context("node could not be started; `scripts/setup test` installs it")?;
    ensure!(done.status.success(), "web/bench/measure.mjs failed");
    let printed = String::from_utf8(done.stdout)?;
    // The build of the page says a word or two before.
    let last = printed.lines().last().context("it printed nothing")?;
    let figures: BTreeMap<String, f64> = serde_json::from_str(last)?;
    for (key, figure) in figures {
        report.add(key, figure);
    }
    Ok(())
}
