//! Every statement of this crate is prepared on the database it is meant for, so that a misspelt column is found here
//! and not by whoever first needs that statement.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr, SqliteConnection};

use crate::support::Home;

/// Fewer than this means that the scanner no longer finds what it looks for.
const STATEMENTS_MIN: usize = 100;

/// What stands for "nothing to ask of this database" in a statement that only the other one needs.
const PLACEHOLDER: &str = "SELECT NULL";

struct Statement {
    place: String,
    sqlite: String,
    postgres: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_is_understood_by_its_databases() {
    let statements = all_statements();
    assert!(
        statements.len() >= STATEMENTS_MIN,
        "found only {} statements",
        statements.len()
    );
    let (sqlite, postgres) = (Home::sqlite().await, Home::postgres().await);
    let mut on_sqlite = SqliteConnection::connect(&sqlite.url).await.unwrap();
    let mut on_postgres = PgConnection::connect(&postgres.url).await.unwrap();

    let mut misunderstood = Vec::new();
    for Statement {
        place,
        sqlite,
        postgres,
    } in statements
    {
        let sqlite = AssertSqlSafe(sqlite).into_sql_str();
        if let Err(error) = on_sqlite.prepare(sqlite).await {
            misunderstood.push(format!("{place} on SQLite: {error}"));
        }
        let postgres = AssertSqlSafe(postgres).into_sql_str();
        if let Err(error) = on_postgres.prepare(postgres).await {
            misunderstood.push(format!("{place} on PostgreSQL: {error}"));
        }
    }
    assert!(misunderstood.is_empty(), "{}", misunderstood.join("\n"));
}

#[test]
fn no_statement_is_left_to_neither_database() {
    for statement in all_statements() {
        assert!(
            statement.sqlite != PLACEHOLDER || statement.postgres != PLACEHOLDER,
            "{} asks nothing of anyone",
            statement.place
        );
    }
}

#[test]
fn the_scanner_reads_what_the_compiler_reads() {
    let source = r#"
        query("SELECT 1").bind(1);
        either(
            "SELECT \"a\",
                 b",
            "SELECT c",
        );
        sqlx::query("BEGIN"); requery("no");
        query(/* why */ "SELECT 2")
    "#;
    let found: Vec<_> = statements_of("here", source)
        .expect("literals only")
        .into_iter()
        .map(|statement| (statement.sqlite, statement.postgres))
        .collect();
    let wanted = [
        ("SELECT 1", "SELECT 1"),
        ("SELECT \"a\",\n                 b", "SELECT c"),
        ("SELECT 2", "SELECT 2"),
    ];
    assert_eq!(found, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn a_statement_that_cannot_be_read_here_is_not_passed_over() {
    let error = statements_of("here", "query(text)").err();
    assert_eq!(
        error.as_deref(),
        Some("the statement at here:1 is not given as a literal")
    );
}

fn all_statements() -> Vec<Statement> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in rust_files(&sources) {
        let source = fs::read_to_string(&path).expect("a source file");
        let place = path.strip_prefix(&sources).unwrap_or(&path);
        // This file says what `query` and `either` are; everyone else calls them.
        if place != Path::new("sql.rs") {
            let statements = statements_of(&place.display().to_string(), &source);
            found.extend(statements.expect("literals only"));
        }
    }
    found
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a source directory") {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The statements that a source text passes to `query` and `either`.
fn statements_of(place: &str, source: &str) -> Result<Vec<Statement>, String> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices('(') {
        let before = &source[..at];
        let name_starts = before
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |last| last + 1);
        let literals = match (&before[name_starts..], before[..name_starts].chars().last()) {
            // Another crate's function of the same name.
            (_, Some(':')) => continue,
            ("query", _) => 1,
            ("either", _) => 2,
            _ => continue,
        };
        let line = before.lines().count();
        let place = format!("{place}:{line}");
        let mut rest = &source[at + 1..];
        let mut texts = Vec::new();
        for _ in 0..literals {
            let (text, after) = literal(rest)
                .ok_or_else(|| format!("the statement at {place} is not given as a literal"))?;
            texts.push(text);
            rest = after;
        }
        found.push(Statement {
            place,
            sqlite: texts[0].clone(),
            postgres: texts[literals - 1].clone(),
        });
    }
    Ok(found)
}

/// The string literal that `text` begins with, past blanks, commas and comments, and what comes after it.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    if let Some(comment) = text.strip_prefix("/*") {
        text = comment.split_once("*/")?.1.trim_start();
    }
    while let Some(comment) = text.strip_prefix("//") {
        text = comment.split_once('\n')?.1.trim_start();
    }
    let text = text.strip_prefix('"')?;
    let mut read = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((read, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                // A backslash before the end of a line skips the next line's indentation.
                '\n' => {
                    let rest = chars.as_str();
                    let skipped = rest.len() - rest.trim_start().len();
                    chars.by_ref().take(skipped).for_each(drop);
                }
                'n' => read.push('\n'),
                other => read.push(other),
            },
            other => read.push(other),
        }
    }
    None
}
