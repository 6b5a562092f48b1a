//! `berth serve`: the server.

use std::path::Path;

use anyhow::Context as _;
use berth_server::config::{Config, LogFormat};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::exit::Exit;
use crate::installation;
use crate::reserve;
use crate::server_options::ServerOptions;

#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub options: ServerOptions,
}

pub async fn run(serve: &Serve) -> anyhow::Result<()> {
    let config = serve.options.load()?.config;
    start_log(&config)?;
    installation::prepare(&config)?;
    let lock = installation::lock(&config)?;
    let store = installation::open_store(&config, &lock).await?;
    installation::check_durability(&store).await?;
    if !installation::has_admin(&store).await? {
        warn_of_no_admin(serve.options.file.as_deref());
    }
    let (app, moving) = installation::serving(&config, store)?;
    let stop = stop_on_signals()?;
    reserve::keep(&config, &app.store, &stop);
    if let Some(moving) = moving {
        moving.start(&app, &stop).await?;
    }
    berth_server::serve(config, app.clone(), stop, announce).await?;
    app.store.close().await;
    tracing::info!("stopped");
    Ok(())
}

fn warn_of_no_admin(config: Option<&Path>) {
    let with = config.map(|file| format!(" --config {}", file.display()));
    tracing::warn!(
        "nobody can administer this server yet; make the first admin with: berth admin create LOGIN{}",
        with.unwrap_or_default()
    );
}

fn announce(address: std::net::SocketAddr) {
    tracing::info!(%address, "Berth {} is ready on {address}", env!("CARGO_PKG_VERSION"));
}

/// What is logged, as the configuration says.
pub fn log_filter(config: &Config) -> anyhow::Result<EnvFilter> {
    let filter = &config.log_filter;
    EnvFilter::try_new(filter).with_context(|| format!("log_filter = `{filter}` is not understood"))
}

/// Logs go to stderr: stdout is for data, and a server has none.
pub fn start_log(config: &Config) -> anyhow::Result<()> {
    let filter = log_filter(config)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Text => {
            use std::io::IsTerminal;
            let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            log.with_ansi(std::io::stderr().is_terminal() && !no_colour)
                .init();
        }
    }
    Ok(())
}

/// Cancelled by the first SIGTERM or SIGINT, so that the server ends in order; the second ends it at once.
pub fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        next().await;
        tracing::info!("stopping; a second signal stops at once");
        token.cancel();
        next().await;
        tracing::warn!("stopped at once");
        at_once();
    });
    Ok(stop)
}

/// Whatever was acknowledged is on disk, so nothing is lost; those still waiting see a cut connection.
#[expect(
    clippy::disallowed_methods,
    reason = "running no destructor is what was asked for"
)]
fn at_once() -> ! {
    std::process::exit(i32::from(Exit::Failed.code()))
}
