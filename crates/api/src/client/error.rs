//! Why a call did not do what was asked, and what to do about it.

use std::error::Error as _;

use crate::problem::{Code, Problem};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server understood, and said no.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// No answer came.
    #[error("{what}; {hint}")]
    Transport {
        what: String,
        hint: &'static str,
        /// Not a `source`: what it says at its root stands in `what` already.
        cause: reqwest::Error,
    },
    /// An answer came, but not one that Berth gives.
    #[error("{0}; check the address, and what stands between here and the server")]
    Unexpected(String),
    #[error("`{address}` is not the address of a server: {why}")]
    Address { address: String, why: String },
    #[error("the client could not be set up; check the certificates it is to trust")]
    Setup(#[source] reqwest::Error),
}

impl Error {
    /// The problem, if the server gave one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Problem(problem) => Some(problem),
            _ => None,
        }
    }

    pub fn is(&self, code: Code) -> bool {
        self.problem().is_some_and(|problem| problem.is(code))
    }

    pub(super) fn setup(source: reqwest::Error) -> Self {
        Error::Setup(source)
    }

    pub(super) fn unexpected(what: impl Into<String>) -> Self {
        Error::Unexpected(what.into())
    }

    /// Says in people's words why no answer came from `base`.
    pub(super) fn transport(source: reqwest::Error, base: &str) -> Self {
        let cause = root_cause(&source);
        let lower = cause.to_lowercase();
        let (what, hint) = if source.is_timeout() {
            (
                format!("{base} did not answer in time"),
                "try again; if it stays, look at the server's load and log",
            )
        } else if lower.contains("certificate") || lower.contains("tls") {
            (
                format!("no trusted connection to {base} ({cause})"),
                "check that the address begins as the server expects and that its certificate is trusted here",
            )
        } else if source.is_connect() {
            (
                format!("no connection to {base} ({cause})"),
                "check the address and that the server is running",
            )
        } else {
            (
                format!("the connection to {base} broke ({cause})"),
                "a change may or may not have been made: look before you repeat it",
            )
        };
        Error::Transport {
            what,
            hint,
            // The address is said already, and a query does not belong into a log.
            cause: source.without_url(),
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Error::Problem(Box::new(problem))
    }
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match error.source() {
        Some(_) => cause.to_string(),
        // The error's own words name the address, which is said already.
        None => "it was cut off".to_owned(),
    }
}
