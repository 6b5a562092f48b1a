//! `berth demo`: a living world to try Berth in, made on the first start and carried on afterwards.
//!
//! Three simulated sites, some twenty people and two months of past and future are not written into the database but lived
//! through: a seeded script of what people do is replayed on a clock of its own, every act through the use case a
//! real person would reach, with the controllers at work in between. What is shown is therefore what Berth does.
//! While the demo serves, its people go on booking. A fourth site is the machine itself, on which work is really run.
//!
//! Everybody here has the same printed password, so the demo answers on this machine only and must never be made to
//! do otherwise; and it must not read the configuration of a real installation, let alone touch its database.

mod almanac;
mod chance;
mod clock;
mod folder;
mod greeting;
mod habits;
mod jobs;
mod live;
mod machine;
mod people;
mod places;
mod play;
mod queues;
mod script;
mod stories;
#[cfg(test)]
mod tests;
mod world;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::{Context, bail};
use berth_app::App;
use berth_app::clock::{Clock, SystemClock};
use berth_model::span::micros;

use crate::commands::serve;
use crate::output::{complain, print};
use folder::Folder;
use greeting::Progress;
use play::Tally;
use world::Origin;

/// Any number would do; this one is the demo's.
const SEED: u64 = 2026;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The address of this machine to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where to keep the demo's world [default: berth-demo in your cache folder]
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Make a new world, even if there is one
    #[arg(long)]
    fresh: bool,
}

pub async fn run(args: Args) -> anyhow::Result<()> {
    check_address(args.listen)?;
    let path = match args.data_dir {
        Some(path) => std::path::absolute(path)?,
        None => folder::usual_path()?,
    };
    let folder = Folder::open(&path, args.listen)?;
    serve::start_log(&folder.config)?;
    let stop = serve::stop_on_signals()?;
    let (app, origin) = tokio::select! {
        world = find_or_make(&folder, args.fresh) => world?,
        () = stop.cancelled() => {
            complain("Stopped before the world was whole; the next start makes it anew.");
            return Ok(());
        }
    };
    let free_gpu = world::free_gpu(&app, &origin.almanac()).await;
    let life = tokio::spawn(live::run(app.clone(), origin, stop.clone()));
    let greet = |address| {
        // Whoever closed our output has no use for a greeting; the demo serves all the same.
        print(&greeting::welcome(address, folder.path(), &free_gpu)).ok();
    };
    let served = berth_server::serve_demo(
        folder.config.clone(),
        app.clone(),
        greeting::notice(),
        stop.clone(),
        greet,
    );
    let served = served.await;
    stop.cancel();
    life.await.ok();
    app.store.close().await;
    Ok(served?)
}

/// The world that is there, carried on to this moment; or a new one.
async fn find_or_make(folder: &Folder, fresh: bool) -> anyhow::Result<(App, Origin)> {
    let now = micros(SystemClock.now());
    let known = folder.world().filter(|_| !fresh);
    // This makes the key file, which a whole world has already.
    let machine = folder.machine()?;
    if let Some(origin) = known {
        let store = folder.store().await?;
        let last_seen = world::last_seen(&store).await?.unwrap_or(origin.made_at);
        if folder::is_recent(last_seen, now) {
            let mut progress = Progress::new("Catching up with what happened meanwhile");
            let mut show = |percent| progress.show(percent);
            let resumed = world::resume(
                store,
                folder.vault()?,
                folder.settings(),
                origin,
                Some(&machine),
                now,
                &mut show,
            );
            let (app, tally) = resumed.await.context(
                "cannot carry on the demo's world; `berth demo --fresh` makes a new one",
            )?;
            warn_of_refusals(&tally);
            greeting::tell_tally(&tally);
            return Ok((app, origin));
        }
        store.close().await;
    }
    drop(machine);
    folder.clear()?;
    let machine = folder.machine()?;
    let origin = Origin {
        seed: SEED,
        made_at: now,
    };
    let mut progress = Progress::new("Making the demo's world: two months in three sites");
    let mut show = |percent| progress.show(percent);
    let store = folder.store().await?;
    let (app, tally) = world::create(
        store,
        folder.vault()?,
        folder.settings(),
        origin,
        Some(&machine),
        &mut show,
    )
    .await?;
    folder.note(origin)?;
    warn_of_refusals(&tally);
    greeting::tell_tally(&tally);
    Ok((app, origin))
}

/// Logs that Berth refused what the script took for granted. Such a world lacks something that a visitor expects.
fn warn_of_refusals(tally: &Tally) {
    if let Some(first) = tally.unforeseen.first() {
        let count = tally.unforeseen.len();
        tracing::warn!(count, first, "the demo's script was refused");
    }
}

/// Before the work is done, not after: whether the address is ours alone, and free.
fn check_address(listen: SocketAddr) -> anyhow::Result<()> {
    if !listen.ip().is_loopback() {
        bail!(
            "the demo does not listen on {listen}: its passwords are known to everyone, so it answers on this machine only. Use an address such as 127.0.0.1:{}; to serve others, set up `berth serve`",
            listen.port()
        );
    }
    match TcpListener::bind(listen) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
            "something listens on {listen} already: stop it, or choose another port with --listen {}:{}",
            listen.ip(),
            listen.port().checked_add(1).unwrap_or(8081)
        ),
        Err(error) => Err(error).with_context(|| format!("cannot listen on {listen}")),
    }
}
