//! The benchmarks: `make bench`, or one group with `make bench ONLY=booking`.
//!
//! Machines are noisy, so what counts is a ratio of two things measured side by side in one run, and both sides are
//! written down. Results go to `bench/results/latest.json`, a flat object of key to number; a group that ran
//! replaces its own keys and leaves the others as they were.
//!
//! This crate must not be used by any other, and its figures must come from the release binary as users get it.

mod bare;
mod booking;
mod bulk;
mod desk;
mod direct;
mod giveback;
mod http;
mod lab;
mod loaded;
mod queue;
mod report;
mod series;
mod sessions;
mod start;
mod submit;
mod web;

use std::io::Write as _;

use anyhow::{Context as _, Result, bail};

use report::Report;

const GROUPS: [&str; 12] = [
    "booking",
    "direct",
    "loaded",
    "desk",
    "rearrange",
    "queue",
    "submit",
    "giveback",
    "sessions",
    "notebook",
    "start",
    "web",
];

#[tokio::main]
async fn main() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    if only.first().is_some_and(|name| name == queue::ALONE) {
        let each = queue::growth_for_each().context("this system does not say it")?;
        return Ok(writeln!(std::io::stdout(), "{each}")?);
    }
    if only.first().is_some_and(|name| name.starts_with("as-")) {
        return sessions::play(&only).await;
    }
    let unknown = only.iter().find(|name| !GROUPS.contains(&name.as_str()));
    if let Some(name) = unknown {
        bail!(
            "there is no group `{name}`; there are: {}",
            GROUPS.join(", ")
        );
    }
    let wanted = |group: &str| only.is_empty() || only.iter().any(|name| name == group);
    let mut report = Report::load()?;
    if wanted("booking") {
        booking::run(&mut report).await?;
    }
    if wanted("direct") {
        direct::run(&mut report).await?;
    }
    if wanted("loaded") {
        loaded::run(&mut report).await?;
    }
    if wanted("desk") {
        desk::run(&mut report).await?;
        series::run(&mut report).await?;
    }
    if only.iter().any(|name| name == "rearrange") {
        desk::rearrange(&mut report).await?;
    }
    if wanted("queue") {
        queue::run(&mut report)?;
        submit::run(&mut report).await?;
        giveback::run(&mut report).await?;
    }
    if only.iter().any(|name| name == "giveback") {
        giveback::run(&mut report).await?;
    }
    if only.iter().any(|name| name == "submit") {
        submit::run(&mut report).await?;
    }
    if wanted("sessions") {
        sessions::run(&mut report).await?;
    }
    if only.iter().any(|name| name == "notebook") {
        sessions::notebook(&mut report).await?;
    }
    if wanted("start") {
        start::run(&mut report).await?;
    }
    if wanted("web") {
        web::run(&mut report)?;
    }
    report.finish()
}
