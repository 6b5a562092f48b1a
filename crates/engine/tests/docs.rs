//! Pages in the docs that must say what the code says. `UPDATE_DOCS=1` writes the one on rights anew.

use berth_engine::rights::table_as_markdown;
use berth_model::policy::Rule;

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

/// Every rule has its row in the page on policies, in the order in which they are looked at, and no other has.
#[test]
fn the_page_on_policies_lists_every_rule() {
    let page = include_str!("../../../docs/policies.md");
    let (_, rules) = page.split_once("## The rules").expect("the rules");
    let (rules, _) = rules.split_once("\nLimits").expect("their end");
    let rows = rules.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let known: Vec<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    assert_eq!(listed, known);
}
