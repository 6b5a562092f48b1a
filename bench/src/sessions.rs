//! Sessions: the proxy beside configurable-http-proxy from its own package, in one run, in front of the same app; and
//! notebooks beside JupyterHub from its own.
//!
//! The app and the proxies are processes of their own, so that the kernel says what each of them costs; this program
//! is the visitors. Rounds alternate between the sides, and the middle one counts.
//!
//! `vs_chp` has both proxies reach the app over TCP, for a page that costs the app nothing. `cpu_vs_direct` is the whole
//! server in front of a real JupyterLab, which a browser asks how it is, compared with the same JupyterLab asked at its
//! own socket. What the proxy alone costs beside smaller apps, and no goal is set for, is `cpu_vs_small_app`, which lists a
//! folder, and `cpu_vs_idle_app`, which does nothing at all: the proxy has twice the reading and writing of that one to do,
//! so it can never be small. There the app is compared as a browser would reach it by itself, over TCP, with the proxy
//! and the app as Berth runs it, on a Unix socket.

mod berth;
mod cpu;
mod door;
mod hub;
mod installed;
mod load;
mod notebook;
mod programs;

use std::time::Duration;

use anyhow::Result;

use crate::report::{Report, percentile, say};
use load::{FOLDER, Load, PAGE, Run};
pub use notebook::run as notebook;
pub use programs::play;
use programs::{App, Chp, Front};

const ROUND: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;
/// Visitors who ask again as soon as they have their answer.
const VISITORS: usize = 32;
/// Few enough that they do not wait for each other, where it is the proxy's own time that matters.
const FEW: usize = 4;
const ROUTES: usize = 5000;
const MESSAGES: usize = 2000;
const SOCKETS: usize = 8;

pub async fn run(report: &mut Report) -> Result<()> {
    say(&format!(
        "sessions: {ROUNDS} rounds of {ROUND:?} a side, {VISITORS} visitors, {} bytes a page",
        programs::PAGE_BYTES
    ));
    let directory = tempfile::tempdir()?;
    let app = App::start(directory.path()).await?;
    beside_chp(report, &app).await?;
    cost(report, &app).await?;
    many_routes(report, &app).await?;
    sockets(report, &app).await?;
    notebook::run(report).await
}

async fn beside_chp(report: &mut Report, app: &App) -> Result<()> {
    let chp = Chp::start(app).await?;
    let ours = Front::start(&app.tcp, 1).await?;
    let (mut mine, mut theirs) = (Rounds::default(), Rounds::default());
    for _ in 0..ROUNDS {
        let run = Load::of(chp.port, VISITORS, PAGE).run(ROUND).await?;
        theirs.push(run, chp.cpu_us()?);
        let run = Load::of(ours.port, VISITORS, PAGE).run(ROUND).await?;
        mine.push(run, ours.cpu_us()?);
    }
    report.ratio("proxy.rps_vs_chp", mine.per_s(), theirs.per_s());
    report.ratio("proxy.p99_vs_chp", mine.p99_ms(), theirs.p99_ms());
    // Less moved by whatever else the machine does, so it says what the two above would be on a quiet one.
    report.ratio("proxy.cpu_us_vs_chp", mine.cpu_us(), theirs.cpu_us());
    Ok(())
}

async fn cost(report: &mut Report, app: &App) -> Result<()> {
    let front = Front::start(&app.unix, 1).await?;
    for (key, path) in [
        ("proxy.cpu_vs_small_app", FOLDER),
        ("proxy.cpu_vs_idle_app", PAGE),
    ] {
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let before = app.cpu_us()?;
            let run = Load::of(app.port, VISITORS, path).run(ROUND).await?;
            alone.push((app.cpu_us()? - before) / run.answers as f64);
            let before = app.cpu_us()? + front.cpu_us()?;
            let run = Load::of(front.port, VISITORS, path).run(ROUND).await?;
            together.push((app.cpu_us()? + front.cpu_us()? - before) / run.answers as f64);
        }
        let (alone, together) = (percentile(&mut alone, 0.5), percentile(&mut together, 0.5));
        report.ratio(key, together, alone);
    }
    Ok(())
}

async fn many_routes(report: &mut Report, app: &App) -> Result<()> {
    let one = Front::start(&app.unix, 1).await?;
    let many = Front::start(&app.unix, ROUTES).await?;
    let (one, many) = (
        Load::of(one.port, FEW, PAGE),
        Load::over(ROUTES, many.port, FEW, PAGE),
    );
    let (mut of_one, mut of_many) = (Vec::new(), Vec::new());
    for _ in 0..2 * ROUNDS {
        // In turns, so that neither always comes after the other.
        of_many.push(many.run(ROUND / 3).await?.p99_ms());
        of_one.push(one.run(ROUND / 3).await?.p99_ms());
        of_one.push(one.run(ROUND / 3).await?.p99_ms());
        of_many.push(many.run(ROUND / 3).await?.p99_ms());
    }
    let (one, many) = (percentile(&mut of_one, 0.5), percentile(&mut of_many, 0.5));
    report.ratio("proxy.routes_5000_vs_1", many, one);
    Ok(())
}

async fn sockets(report: &mut Report, app: &App) -> Result<()> {
    let front = Front::start(&app.unix, 1).await?;
    let (mut direct, mut proxied) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct.push(load::echo_p99_ms(app.port, SOCKETS, MESSAGES).await?);
        proxied.push(load::echo_p99_ms(front.port, SOCKETS, MESSAGES).await?);
    }
    let (direct, proxied) = (percentile(&mut direct, 0.5), percentile(&mut proxied, 0.5));
    report.add("proxy.ws_p99_added_ms.ours", proxied);
    report.add("proxy.ws_p99_added_ms.direct", direct);
    report.add("proxy.ws_p99_added_ms", proxied - direct);
    Ok(())
}

/// One side's rounds, of which the middle counts.
#[derive(Debug, Default)]
struct Rounds {
    per_s: Vec<f64>,
    p99_ms: Vec<f64>,
    answers: usize,
    cpu_us: f64,
}

impl Rounds {
    /// `cpu_us` is what the proxy has used since it was started.
    fn push(&mut self, run: Run, cpu_us: f64) {
        self.per_s.push(run.answers as f64 / run.took.as_secs_f64());
        self.answers += run.answers;
        self.p99_ms.push(run.p99_ms());
        self.cpu_us = cpu_us;
    }

    fn per_s(&mut self) -> f64 {
        percentile(&mut self.per_s, 0.5)
    }

    fn p99_ms(&mut self) -> f64 {
        percentile(&mut self.p99_ms, 0.5)
    }

    fn cpu_us(&self) -> f64 {
        self.cpu_us / self.answers as f64
    }
}
