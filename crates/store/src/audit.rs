//! The audit log: append-only by trigger, numbered and chained by the sequencer.

use std::cmp::Ordering;

use berth_model::audit::{Actor, AuditEntry, ChainedEntry};
use berth_model::{AuditId, PersonId, SiteId, Text};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::sql::{Conn, Query, Row, either, query};

pub(crate) fn actor_columns(actor: Actor) -> (&'static str, Option<Uuid>) {
    match actor {
        Actor::Person(id) => ("person", Some(id.0)),
        Actor::System => ("system", None),
        Actor::Anonymous => ("anonymous", None),
    }
}

pub async fn insert(conn: &mut Conn, entry: &AuditEntry) -> Result<()> {
    let (actor_kind, actor) = actor_columns(entry.actor);
    query(
        "INSERT INTO audit_entry (id, at, actor_kind, actor, origin, site, action, subject, before, after, reason)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(entry.id.0)
    .bind(entry.at)
    .bind(actor_kind)
    .bind(actor)
    .bind(entry.origin.clone())
    .bind(entry.site.map(|site| site.0))
    .bind(entry.action.as_str())
    .bind(entry.subject.as_str())
    .bind(entry.before.as_ref().map(|value| value.to_string()))
    .bind(entry.after.as_ref().map(|value| value.to_string()))
    .bind(entry.reason.as_ref().map(Text::as_str))
    .execute(conn)
    .await?;
    Ok(())
}

/// An audit row as the chain hashes it. It holds the stored texts, so the hash covers every byte that somebody could
/// change.
pub(crate) struct Link {
    pub ord: i64,
    content: Vec<u8>,
}

impl Link {
    pub fn read(row: &Row) -> Result<Self> {
        let mut content = Vec::with_capacity(512);
        let mut field = |value: Option<&[u8]>| {
            // The length before each value keeps two different entries from giving the same bytes. Absent differs from
            // empty.
            let length = value.map_or(u64::MAX, |value| value.len() as u64);
            content.extend_from_slice(&length.to_be_bytes());
            content.extend_from_slice(value.unwrap_or_default());
        };
        let text = |column: &str| row.get::<Option<String>>(column);
        let id = |column: &str| row.get::<Option<Uuid>>(column);
        field(Some(row.get::<Uuid>("id")?.as_bytes()));
        field(Some(&row.get::<i64>("at")?.to_be_bytes()));
        field(text("actor_kind")?.as_deref().map(str::as_bytes));
        field(id("actor")?.as_ref().map(|id| id.as_bytes().as_slice()));
        field(text("origin")?.as_deref().map(str::as_bytes));
        field(id("site")?.as_ref().map(|id| id.as_bytes().as_slice()));
        for column in ["action", "subject", "before", "after", "reason"] {
            field(text(column)?.as_deref().map(str::as_bytes));
        }
        Ok(Self {
            ord: row.get("ord")?,
            content,
        })
    }

    /// The hash of this entry at position `number`, computed over the hash of the previous entry.
    pub fn hash(&self, before: &[u8; 32], number: u64) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(b"berth audit 1");
        hasher.update(before);
        hasher.update(number.to_be_bytes());
        hasher.update(&self.content);
        hasher.finalize().into()
    }
}

pub(crate) fn hash_column(row: &Row) -> Result<[u8; 32]> {
    let hash: Vec<u8> = row.get("hash")?;
    hash.try_into()
        .map_err(|_| Error::Corrupt("a hash is not 32 bytes long".into()))
}

fn entry(row: &Row) -> Result<ChainedEntry> {
    let actor = match (
        row.get::<String>("actor_kind")?.as_str(),
        row.get::<Option<Uuid>>("actor")?,
    ) {
        ("person", Some(id)) => Actor::Person(PersonId(id)),
        ("system", None) => Actor::System,
        ("anonymous", None) => Actor::Anonymous,
        (kind, _) => return Err(Error::Corrupt(format!("actor_kind: `{kind}`"))),
    };
    let value = |column: &str| -> Result<_> {
        let text: Option<String> = row.get(column)?;
        text.map(|text| {
            serde_json::from_str(&text)
                .map_err(|error| Error::Corrupt(format!("{column}: {error}")))
        })
        .transpose()
    };
    Ok(ChainedEntry {
        number: row.count("number")?,
        hash: hash_column(row)?,
        entry: AuditEntry {
            id: AuditId(row.get("id")?),
            at: row.moment("at")?,
            actor,
            origin: row.get("origin")?,
            site: row.get::<Option<Uuid>>("site")?.map(SiteId),
            action: row.get("action")?,
            subject: row.get("subject")?,
            before: value("before")?,
            after: value("after")?,
            reason: row.optional_parsed("reason")?,
        },
    })
}

/// Which entries to list. An empty field does not filter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub actor: Option<PersonId>,
    /// A whole action, or the noun before its dot, which selects all actions on that kind of thing.
    pub action: Option<String>,
    pub subject: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// A site's entries before the given number, newest first.
pub async fn of_site(
    conn: &mut Conn,
    site: SiteId,
    filter: &Filter,
    before: u64,
    limit: u64,
) -> Result<Vec<ChainedEntry>> {
    let chosen = either(
        "SELECT * FROM audit_entry WHERE number < $1 AND ($3 IS NULL OR actor = $3)
           AND ($4 IS NULL OR action = $4 OR action LIKE $4 || '.%') AND ($5 IS NULL OR subject = $5)
           AND ($6 IS NULL OR at >= $6) AND ($7 IS NULL OR at < $7) AND site = $8 ORDER BY number DESC LIMIT $2",
        "SELECT * FROM audit_entry WHERE number < $1 AND ($3::uuid IS NULL OR actor = $3)
           AND ($4::text IS NULL OR action = $4 OR action LIKE $4 || '.%') AND ($5::text IS NULL OR subject = $5)
           AND ($6::bigint IS NULL OR at >= $6) AND ($7::bigint IS NULL OR at < $7) AND site = $8 ORDER BY number DESC LIMIT $2",
    );
    filtered(chosen, filter, before, limit)
        .bind(site.0)
        .map(conn, entry)
        .await
}

pub async fn of_all(
    conn: &mut Conn,
    filter: &Filter,
    before: u64,
    limit: u64,
) -> Result<Vec<ChainedEntry>> {
    let chosen = either(
        "SELECT * FROM audit_entry WHERE number < $1 AND ($3 IS NULL OR actor = $3)
           AND ($4 IS NULL OR action = $4 OR action LIKE $4 || '.%') AND ($5 IS NULL OR subject = $5)
           AND ($6 IS NULL OR at >= $6) AND ($7 IS NULL OR at < $7) ORDER BY number DESC LIMIT $2",
        "SELECT * FROM audit_entry WHERE number < $1 AND ($3::uuid IS NULL OR actor = $3)
           AND ($4::text IS NULL OR action = $4 OR action LIKE $4 || '.%') AND ($5::text IS NULL OR subject = $5)
           AND ($6::bigint IS NULL OR at >= $6) AND ($7::bigint IS NULL OR at < $7) ORDER BY number DESC LIMIT $2",
    );
    filtered(chosen, filter, before, limit)
        .map(conn, entry)
        .await
}

fn filtered(chosen: Query, filter: &Filter, before: u64, limit: u64) -> Query {
    chosen
        .bind(before.min(i64::MAX as u64))
        .bind(limit)
        .bind(filter.actor.map(|actor| actor.0))
        .bind(filter.action.clone())
        .bind(filter.subject.clone())
        .bind(filter.from)
        .bind(filter.to)
}

pub async fn last(conn: &mut Conn) -> Result<Option<ChainedEntry>> {
    let newest = of_all(conn, &Filter::default(), u64::MAX, 1).await?;
    Ok(newest.into_iter().next())
}

/// The result of checking the whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Number of chained entries that passed the check.
    pub checked: u64,
    /// Entries written but not chained yet. The sequencer chains them in its next step.
    pub unchained: u64,
    /// The hash of the last entry that passed. `None` for an empty chain.
    pub last_hash: Option<[u8; 32]>,
    /// The first entry that fails the check, if any.
    pub broken: Option<Broken>,
}

/// The first entry of a chain that fails the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub number: u64,
    /// The fault, as the rest of a sentence that begins with the entry.
    pub what: &'static str,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "entry {} {}", self.number, self.what)
    }
}

/// Recomputes the chain from its first entry to its head.
pub async fn verify(conn: &mut Conn) -> Result<Verification> {
    const PAGE: u64 = 1000;
    let mut number = 0;
    let mut hash = [0; 32];
    let broken = |number: u64, what| Some(Broken { number, what });
    let mut found = Verification {
        checked: 0,
        unchained: 0,
        last_hash: None,
        broken: None,
    };
    'pages: loop {
        // Read before the page, so every entry up to the head is already there, however fast the chain grows.
        let head = query("SELECT number, hash FROM sequence_head WHERE name = 'audit'")
            .one(conn)
            .await?;
        let rows = query("SELECT * FROM audit_entry WHERE number > $1 ORDER BY number LIMIT $2")
            .bind(number)
            .bind(PAGE)
            .all(conn)
            .await?;
        for row in &rows {
            let is = row.count("number")?;
            if is != number + 1 {
                found.broken = broken(number + 1, "is missing");
                break 'pages;
            }
            let expected = Link::read(row)?.hash(&hash, is);
            if hash_column(row)? != expected {
                found.broken = broken(is, "was changed after it was written");
                break 'pages;
            }
            (number, hash) = (is, expected);
            (found.checked, found.last_hash) = (number, Some(hash));
        }
        let head_number = head.count("number")?;
        let chain_grew = number > head_number && !rows.is_empty();
        if rows.len() as u64 == PAGE || chain_grew {
            continue;
        }
        found.broken = match number.cmp(&head_number) {
            Ordering::Less => broken(
                number + 1,
                "and what came after it are missing: the chain ends before its recorded head",
            ),
            Ordering::Greater => broken(head_number + 1, "was added behind the recorded head"),
            Ordering::Equal if hash != hash_column(&head)? => {
                broken(number, "is not the recorded head")
            }
            Ordering::Equal => None,
        };
        break;
    }
    found.unchained = query("SELECT count(*) AS n FROM audit_entry WHERE number IS NULL")
        .one(conn)
        .await?
        .count("n")?;
    Ok(found)
}
