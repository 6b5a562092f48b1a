//! A site as a file: read out whole, compared with a file, and made what the file declares.

use berth_model::declared::{Difference, Document};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::calendar::Conflict;
use crate::schemas;
use crate::text::text;

text! {
    /// Stands for a site as it was read: it changes with everything that a file declares.
    Fingerprint,
    64..=64,
    "^[0-9a-f]{64}$",
    |text| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
    "is not the fingerprint of a site: repeat the one that a dry run gave"
}

/// A site as a file declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SiteExport {
    /// Of the site as it is in this document.
    pub fingerprint: Fingerprint,
    #[schema(value_type = schemas::Document)]
    pub document: Document,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ApplyQuery {
    /// Say what would happen, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// Remove what the document's sections do not name. Without it such things stay, and are listed as extra.
    #[serde(default)]
    pub prune: bool,
    /// Change the site only if it still has this fingerprint, which a dry run gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub expected: Option<Fingerprint>,
}

/// What a document changed, or would change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApplyOutcome {
    /// Whether the site is as declared now; false for a dry run.
    pub applied: bool,
    /// Of the site as it is now.
    pub fingerprint: Fingerprint,
    /// Everything that was not as declared. Empty when there is nothing to do.
    pub differences: Vec<Difference>,
    /// The bookings in the way, 100 of them at most; empty if it is possible.
    pub conflicts: Vec<Conflict>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_64_digits() {
        let good = "0123456789abcdef".repeat(4);
        let query: ApplyQuery =
            crate::parse::query(&format!("prune=true&expected={good}")).unwrap();
        assert_eq!(query.expected.map(String::from), Some(good));
        for bad in ["", "x", &"A".repeat(64)] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
