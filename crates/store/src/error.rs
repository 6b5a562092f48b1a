//! Turns the errors of both databases into Berth's own.

/// A rule of Berth's that the database enforces and that a statement broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The claim rule: another claim holds the resource, or one above or below it.
    Claim,
    /// The sum of amounts would exceed the capacity.
    Amount,
    /// The claim does not lie inside its container.
    OutsideContainer,
    /// There are claims inside; the caller must settle them first.
    HasInside,
    /// The claim no longer holds.
    NotHolding,
    /// The resource is not in this site, or is gone.
    Resource,
    /// A resource cannot stand below itself.
    Cycle,
    /// The parent is not in this site, or is gone.
    Parent,
    /// A divisible resource has no children.
    Leaf,
    /// The name (or another value that must be unique) is taken.
    Taken,
    /// The audit log only grows.
    AppendOnly,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database refused it: {0:?}")]
    Refused(Refused),
    /// Another transaction changed the same rows; the same transaction may succeed if the caller tries it again.
    #[error("another change came between; try again")]
    Retry,
    /// The tree has no code left below this parent.
    #[error("the tree is too deep or too wide at this place")]
    TooDeep,
    #[error("the database holds a value that Berth cannot read: {0}")]
    Corrupt(String),
    #[error("the database did not answer as it should")]
    Database(#[source] sqlx::Error),
    #[error("the database could not be brought up to date")]
    Migration(#[source] sqlx::migrate::MigrateError),
    #[error("{0}")]
    Open(String),
    #[error("this lease has passed to another server")]
    LeaseLost,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn refused(&self) -> Option<Refused> {
        match self {
            Error::Refused(refused) => Some(*refused),
            _ => None,
        }
    }

    /// Whether the same request may succeed in a moment, because the database is busy or briefly unreachable.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Retry | Error::LeaseLost => true,
            Error::Database(error) => matches!(
                error,
                sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::Io(_)
            ),
            _ => false,
        }
    }
}

/// PostgreSQL names the constraint. SQLite's triggers raise an error with the same name as its message.
const RULES: [(&str, Refused); 10] = [
    ("claim_rule", Refused::Claim),
    ("claim_exclusive", Refused::Claim),
    ("claim_amount", Refused::Amount),
    ("claim_container", Refused::OutsideContainer),
    ("claim_inside", Refused::HasInside),
    ("claim_resource", Refused::Resource),
    ("resource_cycle", Refused::Cycle),
    ("resource_parent_site", Refused::Parent),
    ("resource_leaf", Refused::Leaf),
    ("audit_append_only", Refused::AppendOnly),
];

/// Serialisation failure, deadlock, and SQLite's two codes for "another writer is active".
const RETRY: [&str; 4] = ["40001", "40P01", "5", "517"];

/// On PostgreSQL a move may change a resource's code between reading it and writing a claim or a child below it.
const CODES: [&str; 2] = [
    "claim_resource_holds_fkey",
    "resource_parent_parent_subtree_fkey",
];

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else {
            return Error::Database(error);
        };
        let code = database.code().unwrap_or_default();
        if RETRY.contains(&code.as_ref()) {
            return Error::Retry;
        }
        let constraint = database.constraint();
        let named = RULES.iter().find(|(name, _)| match constraint {
            Some(constraint) => constraint == *name,
            // A trigger's message is the name alone. SQLite's own unique indexes put the name in a sentence.
            None => database.message() == *name,
        });
        if let Some((_, refused)) = named {
            return Error::Refused(*refused);
        }
        if database.is_unique_violation() {
            // For its one unique index on claims, SQLite's message names the columns, not the index.
            let claim = database.message().contains("claim.resource");
            return Error::Refused(if claim {
                Refused::Claim
            } else {
                Refused::Taken
            });
        }
        if constraint.is_some_and(|name| CODES.contains(&name)) {
            return Error::Retry;
        }
        Error::Database(error)
    }
}

impl From<sqlx::migrate::MigrateError> for Error {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        Error::Migration(error)
    }
}
