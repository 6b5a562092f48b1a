//! The page on rights in the docs is the table in the code. `UPDATE_DOCS=1` writes it anew.

use berth_engine::rights::table_as_markdown;

#[test]
fn the_page_on_rights_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rights.md");
    let printed = table_as_markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &printed).unwrap();
    }
    let checked_in = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        checked_in == printed,
        "docs/rights.md is not what the table says; run UPDATE_DOCS=1 cargo test -p berth-engine --test docs"
    );
}
