//! `berth db`: carrying everything from SQLite to PostgreSQL.

use std::io::{IsTerminal, Write};

use berth_server::config::{Config, Database};
use berth_store::Store;
use berth_store::transfer::{self, Progress, Report, Step};
use clap::Subcommand;
use secrecy::ExposeSecret;

use crate::cli::Options;
use crate::failure::usage;
use crate::installation;
use crate::output::Output;
use crate::server_options::ServerOptions;
use crate::table::{Column, Screen, Table};

#[derive(Debug, Subcommand)]
pub enum Db {
    /// Carry everything from the SQLite file to an empty PostgreSQL database, and compare both
    Move {
        /// Where to: postgres://USER@HOST/NAME; a password is better kept in PGPASSWORD or ~/.pgpass
        #[arg(long, value_name = "URL", value_parser = address)]
        to: Database,
        #[command(flatten)]
        server: ServerOptions,
    },
}

fn address(text: &str) -> Result<Database, String> {
    text.parse()
        .map_err(|_| "write postgres://USER@HOST/NAME".to_owned())
}

/// Connections for a move: one reads and writes, and one more for what goes beside it.
const CONNECTIONS: u32 = 4;

pub async fn run(command: Db, options: &Options) -> anyhow::Result<()> {
    let Db::Move { to, server } = command;
    let config = server.load()?.config;
    let (Database::Sqlite(source), Database::Postgres(target)) = (&config.database, &to) else {
        return Err(usage(format!(
            "a move goes from SQLite to PostgreSQL, and this one would go from {} to {to}",
            config.database
        )));
    };
    if !source.is_file() {
        return Err(usage(format!(
            "there is no database {}; nothing to move",
            source.display()
        )));
    }
    // Held to the end, so that no server begins to write to what is being carried away.
    let lock = installation::lock(&config)?;
    let from = installation::open_store(&config, &lock).await?;
    let into = Store::open(target.expose_secret(), CONNECTIONS).await?;
    let mut bar = Bar::new();
    let report = transfer::run(&from, &into, &mut |progress| bar.show(&progress)).await;
    bar.clear();
    from.close().await;
    into.close().await;
    let report = report?;
    Output::new(options.output).show(&report, |screen| text(&report, &config, &to, screen))
}

fn text(report: &Report, config: &Config, to: &Database, screen: Screen) -> String {
    let columns = [
        Column::left("TABLE"),
        Column::right("ROWS"),
        Column::left("SHA-256 ON BOTH SIDES").shrinks(1),
    ];
    let mut table = Table::new(columns, "There was nothing to move.");
    for carried in &report.tables {
        table.row([
            carried.table.clone(),
            carried.digest.rows.to_string(),
            carried.digest.sha256.clone(),
        ]);
    }
    format!(
        "{}Moved {} rows, and read them back the same on both sides.\n\
         Now set database = \"{to}\" in the configuration and start the server.\n\
         The key {} is still needed; {} can go once you have looked around.\n",
        table.render(screen),
        report.rows(),
        config.secret_key_file.display(),
        config.database,
    )
}

/// A line on stderr that says how far it is, where someone looks.
struct Bar {
    shown: bool,
}

impl Bar {
    fn new() -> Self {
        Self {
            shown: std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, progress: &Progress) {
        let verb = match progress.step {
            Step::Copying => "copying",
            Step::Checking => "checking",
        };
        self.write(&format!(
            "{verb} {}: {} of {} rows",
            progress.table, progress.rows, progress.rows_total
        ));
    }

    fn clear(&mut self) {
        self.write("");
    }

    fn write(&self, line: &str) {
        if self.shown {
            let mut stderr = std::io::stderr().lock();
            // Back to the beginning of the line, and clear what was there.
            write!(stderr, "\r\u{1b}[K{line}")
                .and_then(|()| stderr.flush())
                .ok();
        }
    }
}
