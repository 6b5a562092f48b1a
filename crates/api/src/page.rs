//! Lists come in pages, each with the cursor of the next.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{IntoParams, ToSchema};

use crate::text::{TextError, text};

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

    /// The page out of `items`, of which one more than `limit` was looked for: if it came, there is a next
    /// page, which begins after the place of this page's last item.
    pub fn cut(mut items: Vec<T>, limit: Limit, place: impl FnOnce(&T) -> String) -> Self {
        let limit = usize::from(limit.get());
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next = last.map(|last| Cursor::after(&place(last)));
        Self { items, next }
    }

    /// The same page of other items, as when stored rows become answers.
    pub fn map<U>(self, convert: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(convert).collect(),
            next: self.next,
        }
    }
}

text! {
    /// Where the next page begins. Opaque: only the server that wrote it can read it.
    Cursor,
    1..=400,
    "^[A-Za-z0-9_-]{1,400}$",
    |text| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
    NOT_A_CURSOR
}

const NOT_A_CURSOR: &str = "is not a cursor of this list: leave it out to start from the beginning";

impl Cursor {
    /// The cursor of what comes after `place`: a name or a number that the list is ordered by.
    pub fn after(place: &str) -> Self {
        Self(URL_SAFE_NO_PAD.encode(place))
    }

    /// The place it was made of. A cursor that was not made by [`Cursor::after`] has none.
    pub fn place(&self) -> Result<String, TextError> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.0).ok();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.filter(|text| !text.contains('\0'))
            .ok_or(TextError(NOT_A_CURSOR))
    }
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
    fn a_page_is_cut_where_more_follows() {
        let limit = Limit::try_from(2).unwrap();
        let page = Page::cut(vec!["ada", "bo", "cy"], limit, |name| name.to_string());
        assert_eq!(page.items, ["ada", "bo"]);
        assert_eq!(page.next.unwrap().place().unwrap(), "bo");
        let last = Page::cut(vec!["cy", "di"], limit, |name| name.to_string());
        assert_eq!((last.items.len(), last.next), (2, None));
    }

    #[test]
    fn a_cursor_keeps_its_place_in_letters_that_fit_an_address() {
        for place in ["a", "ada.l@lab_x-1", "Ü/%", &"x".repeat(200)] {
            let cursor = Cursor::after(place);
            assert_eq!(cursor.as_str().parse::<Cursor>().as_ref(), Ok(&cursor));
            assert_eq!(cursor.place().as_deref(), Ok(place));
        }
        for made_up in ["A", "AA_-_", "_____w", "AA"] {
            assert!(
                made_up.parse::<Cursor>().unwrap().place().is_err(),
                "{made_up}"
            );
        }
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
