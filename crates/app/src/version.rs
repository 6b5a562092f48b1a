//! Versions: a change names the version that it was made for, so that nobody overwrites an unseen change.

use crate::error::{Error, Result};

/// Refuses a change that was made for another version than the current one. None accepts any version.
pub(crate) fn expect(wanted: Option<u64>, current: u64) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != current => Err(Error::Version { current }),
        _ => Ok(()),
    }
}

/// The error when another change came between the read and the write.
pub(crate) fn overtaken(seen: u64) -> Error {
    Error::Version { current: seen + 1 }
}
