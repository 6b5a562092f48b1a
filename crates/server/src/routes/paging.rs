//! Where a list goes on. Cursors are opaque to clients; what stands in them is said here.
//!
//! A use case is asked for one item more than a page holds: if it comes, there is a next page.

use std::str::FromStr;

use berth_api::page::{Cursor, Limit, Page, PageQuery};
use berth_model::FieldErrors;
use jiff::Timestamp;

use crate::failure::{Failure, Result};

/// How many to ask for: one more than the page holds.
pub fn one_more(limit: Limit) -> u64 {
    u64::from(limit.get()) + 1
}

/// The name after which a list ordered by names goes on; from the beginning, the one before all names.
pub fn after_name(cursor: Option<&Cursor>) -> Result<String> {
    match cursor {
        None => Ok(String::new()),
        Some(cursor) => cursor.place().map_err(|_| not_of_this_list()),
    }
}

/// What a cursor was made of, in a list ordered by something that is not a name.
pub fn place<P: FromStr>(cursor: Option<&Cursor>) -> Result<Option<P>> {
    let read = |cursor: &Cursor| cursor.place().ok()?.parse().ok();
    cursor
        .map(|cursor| read(cursor).ok_or_else(not_of_this_list))
        .transpose()
}

/// The number before which a list goes on that is read from its newest entry backwards.
pub fn before_number(cursor: Option<&Cursor>) -> Result<u64> {
    Ok(place(cursor)?.unwrap_or(u64::MAX))
}

/// A place in a list ordered by start: of two that start together, the id says which comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByStart<I>(pub Timestamp, pub I);

impl<I: std::fmt::Display> std::fmt::Display for ByStart<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.as_microsecond(), self.1)
    }
}

#[derive(Debug)]
pub struct NoPlace;

impl<I: FromStr> FromStr for ByStart<I> {
    type Err = NoPlace;
    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let (start, id) = text.split_once(' ').ok_or(NoPlace)?;
        let start = start.parse().map_err(|_| NoPlace)?;
        let start = Timestamp::from_microsecond(start).map_err(|_| NoPlace)?;
        Ok(Self(start, id.parse().map_err(|_| NoPlace)?))
    }
}

/// A page out of a short list that was read whole, in the order of a key that no two items share.
pub fn out_of_all<T>(
    mut items: Vec<T>,
    query: &PageQuery,
    key: impl Fn(&T) -> String,
) -> Result<Page<T>> {
    let after = after_name(query.cursor.as_ref())?;
    items.retain(|item| key(item) > after);
    items.sort_by_cached_key(&key);
    Ok(Page::cut(items, query.limit, key))
}

fn not_of_this_list() -> Failure {
    let message = "is not a cursor of this list: leave it out to start from the beginning";
    FieldErrors::one("cursor", message).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::ReservationId;

    #[test]
    fn a_place_by_start_reads_back() {
        let id: ReservationId = "rsv_01kc3v9xwbe8rv5w2n9q3m7t4h".parse().unwrap();
        let place_of = ByStart("2026-11-20T09:00:00.000001Z".parse().unwrap(), id);
        let cursor = Cursor::after(&place_of.to_string());
        assert_eq!(place(Some(&cursor)).unwrap(), Some(place_of));
        assert_eq!(place::<ByStart<ReservationId>>(None).unwrap(), None);
        for made_up in [
            "",
            "7",
            "x rsv_01kc3v9xwbe8rv5w2n9q3m7t4h",
            "9223372036854775807 y",
        ] {
            let cursor = Cursor::after(made_up);
            let refused = place::<ByStart<ReservationId>>(Some(&cursor)).unwrap_err();
            assert_eq!(refused.status(), 422, "{made_up}");
        }
    }

    #[test]
    fn a_short_list_is_read_page_by_page() {
        let all = || vec!["cy", "ada", "bo"];
        let limit = Limit::try_from(2).unwrap();
        let read =
            |cursor| out_of_all(all(), &PageQuery { limit, cursor }, |name| name.to_string());
        let first = read(None).unwrap();
        assert_eq!(first.items, ["ada", "bo"]);
        let last = read(first.next).unwrap();
        assert_eq!((last.items, last.next), (vec!["cy"], None));
    }
}
