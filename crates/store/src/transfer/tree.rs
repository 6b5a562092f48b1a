//! The data that PostgreSQL has and SQLite does not: the tree's codes, and the code that each holding claim holds.
//!
//! A code means nothing but its position, so the move assigns new codes: each resource gets the next branch of its
//! parent, or of its site. This needs the whole tree in memory. An inventory fits there, even where its history does
//! not.

use std::collections::{HashMap, VecDeque};

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::error::{Error, Result};
use crate::code::Code;
use crate::sql::Row;

/// A column that only PostgreSQL has, and how to compute its value (as text) from SQLite's row.
pub(super) struct Extra {
    pub column: &'static str,
    pub cast: &'static str,
    pub value: fn(&Tree, &Row) -> crate::Result<Option<String>>,
}

pub(super) fn extras(table: &str) -> &'static [Extra] {
    match table {
        "site" => SITE,
        "resource" => RESOURCE,
        "claim" => CLAIM,
        _ => &[],
    }
}

const SITE: &[Extra] = &[
    Extra {
        column: "number",
        cast: "::bigint",
        value: |tree, row| Ok(tree.site_numbers.get(&row.get("id")?).map(i64::to_string)),
    },
    Extra {
        column: "next_branch",
        cast: "::bigint",
        value: |tree, row| Ok(Some(tree.next_branch(row.get("id")?))),
    },
];

const RESOURCE: &[Extra] = &[
    Extra {
        column: "subtree",
        cast: "::cidr",
        value: |tree, row| Ok(Some(tree.place(row.get("id")?)?.code.to_string())),
    },
    Extra {
        column: "parent_subtree",
        cast: "::cidr",
        value: |tree, row| Ok(Some(tree.place(row.get("id")?)?.above.to_string())),
    },
    Extra {
        column: "next_branch",
        cast: "::bigint",
        value: |tree, row| Ok(Some(tree.next_branch(row.get("id")?))),
    },
];

const CLAIM: &[Extra] = &[Extra {
    column: "holds",
    cast: "::cidr",
    value: |tree, row| {
        if row.get::<String>("standing")? == "holding" {
            Ok(Some(tree.place(row.get("resource")?)?.code.to_string()))
        } else {
            Ok(None)
        }
    },
}];

#[derive(Debug, Default)]
pub(super) struct Tree {
    site_numbers: HashMap<Uuid, i64>,
    /// The direct children of a site or a resource, each with its name. The position is the branch number.
    below: HashMap<Uuid, Vec<(Uuid, String)>>,
    places: HashMap<Uuid, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    code: Code,
    /// The parent's code, or the site's.
    above: Code,
}

impl Tree {
    /// Reads the source's tree. Assigns every site a number of the target, and every resource a code.
    pub async fn plan(source: &mut SqliteConnection, target: &mut PgConnection) -> Result<Self> {
        let sites: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM site ORDER BY created_at, id")
            .fetch_all(&mut *source)
            .await?;
        // From the target's own counter, so that the next site there gets the number after these.
        let numbers: Vec<i64> = sqlx::query_scalar(
            "SELECT nextval(pg_get_serial_sequence('site', 'number')) FROM generate_series(1, $1)",
        )
        .bind(sites.len() as i64)
        .fetch_all(target)
        .await?;
        // Resources in use come first, because early branches have short codes.
        let resources: Vec<(Uuid, Uuid, String)> = sqlx::query_as(
            "SELECT id, coalesce(parent, site), name FROM resource ORDER BY removed_at IS NOT NULL, created_at, id",
        )
        .fetch_all(source)
        .await?;
        let mut tree = Tree {
            site_numbers: sites.into_iter().zip(numbers).collect(),
            ..Tree::default()
        };
        for (id, above, name) in resources {
            tree.below.entry(above).or_default().push((id, name));
        }
        tree.give_codes()?;
        Ok(tree)
    }

    fn give_codes(&mut self) -> Result<()> {
        let mut open = VecDeque::new();
        for (site, number) in &self.site_numbers {
            open.push_back((*site, Code::of_site(*number)?));
        }
        while let Some((id, above)) = open.pop_front() {
            for (branch, (child, name)) in (0..).zip(self.below.get(&id).into_iter().flatten()) {
                let code = above.child(branch).map_err(|_| Error::NoRoom {
                    resource: name.clone(),
                })?;
                self.places.insert(*child, Place { code, above });
                open.push_back((*child, code));
            }
        }
        Ok(())
    }

    fn place(&self, resource: Uuid) -> crate::Result<&Place> {
        self.places.get(&resource).ok_or_else(|| {
            crate::Error::Corrupt(format!("the resource {resource} hangs below no site"))
        })
    }

    fn next_branch(&self, id: Uuid) -> String {
        self.below.get(&id).map_or(0, Vec::len).to_string()
    }
}
