//! `berth version`.

use serde_json::json;

use crate::cli::Options;
use crate::output::Output;

pub fn run(options: &Options) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    Output::new(options.output).show(&json!({ "version": version }), |_| {
        format!("berth {version}\n")
    })
}
