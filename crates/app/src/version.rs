//! Versions: a change says which one it was made for, so that nobody overwrites what they have not seen.

use crate::error::{Error, Result};

/// Refuses a change that was made for another version than the one there is. None means "whatever it is now".
pub(crate) fn expect(wanted: Option<u64>, current: u64) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != current => Err(Error::Version { current }),
        _ => Ok(()),
    }
}

/// What to say when another change came between our look and our write.
pub(crate) fn overtaken(seen: u64) -> Error {
    Error::Version { current: seen + 1 }
}
