//! Prints the table of rights as a page for people.

use berth_model::person::Scope;
use berth_model::site::{OutsiderView, Role};

use super::table::{May, Outsiders, Realm, Row, TABLE};
use super::{Grant, Standing, may_grant};

const INTRODUCTION: &str = "\
# Who may do what

<!-- Printed from the table in crates/engine/src/rights/table.rs. Do not edit; change the table and run
     UPDATE_DOCS=1 cargo test -p berth-engine --test docs -->

A person is a member of a site, an admin of it, or an outsider to it; a global admin is an admin of every site.
Each site sets what signed-in outsiders see: `nothing`; its `name` and a way to ask to join; its `catalogue` of
types and resources; or the catalogue with `free_busy` times. Each step includes those before it.

- **yes**: may do it. **own**: may do it with what is theirs. **-**: may not.
- **from `name`** and the like: if the site shows outsiders that much, or more.
- What an outsider may not see looks the same as what does not exist: the answer is \"not found\". The same goes
  for other people's accounts. Everybody else is told that they are not allowed, and who is.
- An API token can do what its owner may do, within its scopes; a browser session has all scopes. Where two are
  named, the second is needed to act on what is somebody else's.
- An entry on the calendar shows an outsider only that the time is taken. Members see title and owner, unless the
  reservation is private; then only its owner and the admins do.
";

/// The whole page, for `docs/rights.md`.
pub fn table_as_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (realm, title) in [
        (Realm::Site, "In a site"),
        (Realm::Account, "With an account"),
        (Realm::Installation, "In the whole installation"),
    ] {
        page.push_str(&format!("\n## {title}\n\n"));
        page.push_str(
            "| act | in words | outsider | member | site admin | global admin | scope |\n",
        );
        page.push_str("|---|---|---|---|---|---|---|\n");
        let rows = TABLE.iter().filter(|row| row.realm == realm);
        rows.for_each(|row| page.push_str(&line(row)));
    }
    page.push_str(&grants());
    page
}

fn line(row: &Row) -> String {
    format!(
        "| `{:?}` | {} | {} | {} | {} | {} | {} |\n",
        row.action,
        row.does,
        outsiders(row.outsiders),
        may(row.member),
        may(row.site_admin),
        may(row.global_admin),
        scopes(row),
    )
}

fn may(may: May) -> &'static str {
    match may {
        May::Yes => "yes",
        May::Own => "own",
        May::No => "-",
    }
}

fn outsiders(outsiders: Outsiders) -> &'static str {
    match outsiders {
        Outsiders::From(OutsiderView::Nothing) => "yes",
        Outsiders::From(OutsiderView::Name) => "from `name`",
        Outsiders::From(OutsiderView::Catalogue) => "from `catalogue`",
        Outsiders::From(OutsiderView::FreeBusy) => "from `free_busy`",
        Outsiders::Own => "own",
        Outsiders::No => "-",
    }
}

fn scopes(row: &Row) -> String {
    if row.scope == row.scope_for_others {
        scope(row.scope).to_owned()
    } else {
        format!("{}, {}", scope(row.scope), scope(row.scope_for_others))
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "`read`",
        Scope::Book => "`book`",
        Scope::Manage => "`manage`",
    }
}

fn grants() -> String {
    let mut section = String::from(
        "\n## Who may give which role\n\n\
         Nobody gives a role above their own, or in a site where they have none.\n\n\
         | role given | outsider | member | site admin | global admin |\n|---|---|---|---|---|\n",
    );
    for (grant, name) in [
        (Grant::InSite(Role::Member), "member"),
        (Grant::InSite(Role::SiteAdmin), "site admin"),
        (Grant::GlobalAdmin, "global admin"),
    ] {
        let cells = [
            Standing::Outsider(OutsiderView::FreeBusy),
            Standing::Member,
            Standing::SiteAdmin,
            Standing::GlobalAdmin,
        ]
        .map(|granter| {
            if may_grant(granter, grant) {
                "yes"
            } else {
                "-"
            }
        });
        section.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    }
    section
}
