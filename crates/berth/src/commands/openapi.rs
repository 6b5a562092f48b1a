//! `berth openapi`: the description of the API, from the code and without a server.

use crate::output::print;

pub fn run() -> anyhow::Result<()> {
    print(&format!(
        "{}\n",
        serde_json::to_string_pretty(&berth_server::openapi())?
    ))
}
