//! Lists come in pages, each with the cursor of the next.

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use crate::text::text;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Pass it as `cursor` to read on; null on the last page.
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// A page that is the whole list.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

text! {
    /// Where the next page begins. Opaque: only the server that wrote it can read it.
    Cursor,
    1..=400,
    "^[A-Za-z0-9_-]{1,400}$",
    |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
    "is not a cursor of this list: leave it out to start from the beginning"
}

/// How many items a page holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Limit(u16);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a page holds 1 to {} items", Limit::MAX)]
pub struct LimitError;

impl Limit {
    pub const MAX: u16 = 500;
    pub const DEFAULT: Limit = Limit(100);
    pub const LARGEST: Limit = Limit(Self::MAX);

    pub fn get(self) -> u16 {
        self.0
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<u16> for Limit {
    type Error = LimitError;
    fn try_from(limit: u16) -> Result<Self, LimitError> {
        if (1..=Self::MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(LimitError)
        }
    }
}

impl From<Limit> for u16 {
    fn from(limit: Limit) -> u16 {
        limit.0
    }
}

impl utoipa::PartialSchema for Limit {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Self::MAX))
            .default(Some(Self::DEFAULT.0.into()))
            .into()
    }
}
impl ToSchema for Limit {}

/// The query of a list without filters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    #[param(inline)]
    #[serde(default)]
    pub limit: Limit,
    #[param(inline)]
    pub cursor: Option<Cursor>,
}

/// The query of a request that can be tried without effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DryRunQuery {
    /// Say what would happen, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_says_so() {
        let page = serde_json::to_value(Page::whole(vec![1, 2])).unwrap();
        assert_eq!(page, serde_json::json!({"items": [1, 2], "next": null}));
    }

    #[test]
    fn limits_and_cursors_have_bounds() {
        let read = serde_html_form::from_str::<PageQuery>;
        assert_eq!(read("").unwrap().limit.get(), 100);
        assert_eq!(read("limit=500&cursor=aB-_9").unwrap().limit.get(), 500);
        for bad in [
            "limit=0",
            "limit=501",
            "limit=x",
            "limit=70000",
            "cursor=%00",
            "cursor=",
            "page=2",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
