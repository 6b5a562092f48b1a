//! `berth config`: what the server would run with, and what can be set.

use berth_server::config::{Config as ServerConfig, Resolved};
use clap::Subcommand;
use serde_json::json;

use crate::cli::Options;
use crate::output::{Output, print};
use crate::server_options::ServerOptions;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Print every setting and where its value came from, or every mistake
    Check(ServerOptions),
    /// Print the documentation of all settings, in Markdown
    ShowDocs,
}

pub fn run(command: &Config, options: &Options) -> anyhow::Result<()> {
    match command {
        Config::Check(server) => {
            let sources = server.load()?.sources;
            let as_json: Vec<_> = sources.iter().map(json).collect();
            Output::new(options.output).show(&as_json, |screen| {
                let columns = [
                    Column::left("SETTING"),
                    Column::left("VALUE").shrinks(1),
                    Column::left("FROM"),
                ];
                let mut table = Table::new(columns, "There are no settings.");
                for setting in &sources {
                    table.row([
                        setting.key.to_owned(),
                        setting.value.clone(),
                        setting.source.to_string(),
                    ]);
                }
                table.render(screen)
            })
        }
        Config::ShowDocs => print(&ServerConfig::documentation()),
    }
}

fn json(setting: &Resolved) -> serde_json::Value {
    json!({
        "key": setting.key,
        "value": setting.value,
        "from": setting.source.to_string(),
    })
}
