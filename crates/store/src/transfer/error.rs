//! Why a move failed, and what to do about it.

use super::digest::Digest;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "a move goes from an SQLite database (`sqlite:PATH`) to a PostgreSQL database (`postgres://…`)"
    )]
    Engines,
    #[error("someone else is writing to the source; stop the server that uses it, then try again")]
    SourceInUse,
    #[error("someone else is using the target; stop the server that uses it, then try again")]
    TargetInUse,
    #[error(
        "the target already holds {0}; a move fills an empty database only, so create a new one and name that"
    )]
    TargetNotEmpty(&'static str),
    #[error(
        "the databases are not at the same version (source: {source_is}, target: {target_is}); let this `berth` open both first"
    )]
    Versions {
        source_is: String,
        target_is: String,
    },
    #[error("the two schemas do not fit together: {0}")]
    Schema(String),
    #[error(
        "the resource `{resource}` stands deeper, or among more siblings, than PostgreSQL's tree has room for; \
         move it further up, then try again"
    )]
    NoRoom { resource: String },
    #[error("the table `{table}` could not be carried over, so nothing was")]
    Table {
        table: String,
        #[source]
        source: crate::Error,
    },
    #[error("the copy is not what the source is: {}", list(.0))]
    Differs(Vec<Difference>),
    #[error(transparent)]
    Store(#[from] crate::Error),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Error::Store(error.into())
    }
}

/// A table that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub table: String,
    pub source: Digest,
    pub copy: Digest,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (table, source, copy) = (&self.table, self.source.rows, self.copy.rows);
        if source == copy {
            write!(
                f,
                "`{table}` has {source} rows on both sides, but not the same"
            )
        } else {
            write!(
                f,
                "`{table}` has {source} rows in the source and {copy} in the copy"
            )
        }
    }
}

fn list(differences: &[Difference]) -> String {
    let lines: Vec<String> = differences.iter().map(Difference::to_string).collect();
    lines.join("; ")
}
