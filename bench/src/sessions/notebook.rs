//! Notebooks: from the click to an app that answers its owner, beside the same JupyterLab started by hand and beside
//! JupyterHub; and what Berth costs in front of it.
//!
//! All three are the same packages, in the same environment, and each keeps its home from round to round. The sides take
//! turns, the first start of each counts for nothing, and of the others the middle one counts.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use berth_model::session;
use berth_testkit::process::{self, Signal, User};

use super::berth::{Berth, Starts};
use super::door::{Door, get};
use super::hub::Hub;
use super::installed;
use super::load::Load;
use crate::report::{Report, percentile, say};

const ROUNDS: usize = 7;
/// After so many starts there must be something warm.
const COLD_MAX: usize = 5;
/// The least that a notebook's server can be asked: what Berth adds looks largest beside it.
const STATUS: &str = "/api/status";
const VISITS: Duration = Duration::from_secs(3);
const VISIT_ROUNDS: usize = 5;
/// What a browser keeps open to one address.
const CONNECTIONS: usize = 6;

pub async fn run(report: &mut Report) -> Result<()> {
    say(&format!(
        "notebooks: {ROUNDS} starts a side; {VISIT_ROUNDS} rounds of {VISITS:?} a side, {CONNECTIONS} connections"
    ));
    let python = installed::python()?;
    let berth = Berth::start(Starts::Cold).await?;
    cost(report, &berth).await?;
    cold(report, &berth, &python).await?;
    berth.stop().await?;
    warm(report).await
}

async fn cold(report: &mut Report, berth: &Berth, python: &Path) -> Result<()> {
    let hub = Hub::start(python).await?;
    let home = tempfile::tempdir()?;
    let (mut ours, mut bare, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (session, by_berth) = berth.click().await?;
        berth.end(session).await?;
        let by_hand = by_hand(python, home.path()).await?;
        let by_hub = hub.click().await?;
        hub.end().await?;
        if round > 0 {
            ours.push(ms(by_berth));
            bare.push(ms(by_hand));
            theirs.push(ms(by_hub));
        }
    }
    let ours = percentile(&mut ours, 0.5);
    report.ratio("notebook.cold_vs_bare", ours, percentile(&mut bare, 0.5));
    let theirs = percentile(&mut theirs, 0.5);
    report.ratio("notebook.cold_vs_jupyterhub", ours, theirs);
    Ok(())
}

/// The same click, once somebody's first start has left something warm behind.
async fn warm(report: &mut Report) -> Result<()> {
    let berth = Berth::start(Starts::Warm).await?;
    let mut warm = Vec::new();
    for _ in 0..ROUNDS + COLD_MAX {
        let (session, took) = berth.click().await?;
        if berth.is_warm()? {
            warm.push(ms(took));
        }
        berth.end(session).await?;
        if warm.len() == ROUNDS {
            report.add("notebook.warm_ms", percentile(&mut warm, 0.5));
            return berth.stop().await;
        }
    }
    bail!("no start is warm here; only a server that is root has warm ones")
}

/// JupyterLab as somebody starts it for themselves, with what Berth tells it, too.
async fn by_hand(python: &Path, home: &Path) -> Result<Duration> {
    let socket = home.join("app.sock");
    let known = session::catalogue();
    let lab = known.iter().find(|(name, _)| name.as_str() == "jupyterlab");
    let (_, lab) = lab.context("the catalogue has no JupyterLab")?;
    let told = lab.command_at("", "/", &socket.display().to_string());
    let mut command = process::command(python, User::Same, Signal::Kill);
    command
        .args(["-m", "jupyterlab", "--allow-root"])
        .args(told.iter().skip(1))
        .current_dir(home)
        .env("HOME", home)
        // The environment is not to be changed by whoever may write there.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = Instant::now();
    let lab = process::spawn(command)?;
    let door = Door::Unix(socket.clone());
    door.until_usable(&get("localhost", STATUS, "")).await?;
    let took = started.elapsed();
    drop(lab);
    std::fs::remove_file(socket)?;
    Ok(took)
}

/// A real JupyterLab asked at its own socket, and through the server by a browser that was let in.
async fn cost(report: &mut Report, berth: &Berth) -> Result<()> {
    let (session, _) = berth.click().await?;
    let visitor = berth.visitor(&session).await?;
    let direct = Load::by(&visitor, Door::Unix(berth.socket()?), CONNECTIONS, STATUS);
    let proxied = Load::by(&visitor, berth.door(), CONNECTIONS, STATUS);
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for _ in 0..VISIT_ROUNDS {
        let before = berth.session_cpu_us()?;
        let run = direct.run(VISITS).await?;
        alone.push((berth.session_cpu_us()? - before) / run.answers as f64);
        let before = berth.session_cpu_us()? + berth.server_cpu_us()?;
        let run = proxied.run(VISITS).await?;
        let after = berth.session_cpu_us()? + berth.server_cpu_us()?;
        together.push((after - before) / run.answers as f64);
    }
    berth.end(session).await?;
    let alone = percentile(&mut alone, 0.5);
    let together = percentile(&mut together, 0.5);
    report.ratio("proxy.cpu_vs_direct", together, alone);
    Ok(())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
