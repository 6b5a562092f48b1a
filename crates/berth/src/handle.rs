//! Ids as people type them.
//!
//! The rule, the same for reservations, maintenance windows, requests to join and tokens: an id may be shortened to
//! its ending, at least its last six characters, which is what lists show. The beginning would not do: it holds the
//! time at which the thing was made, so neighbours in a list share it. An ending that fits several is never guessed
//! at; the command lists them and does nothing.

use std::fmt::Display;
use std::str::FromStr;

use crate::exit::Exit;
use crate::failure::{Failure, not_found};

/// How much of an id lists show, and the least that is accepted.
const ENDING: usize = 6;
const ID_DIGITS: usize = 26;

/// An id, or the end of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle<I> {
    Id(I),
    Ending(String),
}

impl<I: FromStr<Err: Display>> FromStr for Handle<I> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(id) => Ok(Handle::Id(id)),
            Err(_) if is_ending(text) => Ok(Handle::Ending(text.to_owned())),
            Err(error) => Err(format!(
                "{error}; its last {ENDING} characters or more do as well"
            )),
        }
    }
}

fn is_ending(text: &str) -> bool {
    (ENDING..ID_DIGITS).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// What lists show of an id.
pub fn ending(id: impl Display) -> String {
    let text = id.to_string();
    text[text.len().saturating_sub(ENDING)..].to_owned()
}

impl<I: Copy + PartialEq + Display> Handle<I> {
    fn names(&self, id: I) -> bool {
        match self {
            Handle::Id(known) => *known == id,
            Handle::Ending(ending) => id.to_string().ends_with(ending.as_str()),
        }
    }

    /// The one it names among several; none if there is none.
    pub fn pick<T>(&self, all: Vec<T>, id: impl Fn(&T) -> I) -> anyhow::Result<Option<T>> {
        let mut named: Vec<T> = all.into_iter().filter(|one| self.names(id(one))).collect();
        if named.len() > 1 {
            let ids: Vec<String> = named.iter().map(|one| id(one).to_string()).collect();
            let message = format!(
                "`{self}` is the end of several ids; give more of the one you mean: {}",
                ids.join(", ")
            );
            return Err(Failure::new(Exit::Usage, message).into());
        }
        Ok(named.pop())
    }

    /// The one it names, which must be there; `what` says what was looked for, and where.
    pub fn pick_one<T>(&self, all: Vec<T>, id: impl Fn(&T) -> I, what: &str) -> anyhow::Result<T> {
        self.pick(all, id)?
            .ok_or_else(|| not_found(format!("there is no {what} whose id ends in `{self}`")))
    }
}

impl<I: Display> Display for Handle<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Handle::Id(id) => id.fmt(f),
            Handle::Ending(ending) => ending.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::ReservationId;

    fn id(text: &str) -> ReservationId {
        text.parse().unwrap()
    }

    fn read(text: &str) -> Result<Handle<ReservationId>, String> {
        text.parse()
    }

    #[test]
    fn an_ending_names_the_one_id_that_has_it() {
        let ids = vec![
            id("rsv_01kc3v9xwbe8rv5w2n9q3m7t4h"),
            id("rsv_01kc3v9xwbe8rv5w2n9q3m7t4j"),
            id("rsv_01kc3v9xwbe8rv5w2n9p3m7t4h"),
        ];
        let pick = |text| read(text).unwrap().pick(ids.clone(), |id| *id);
        assert_eq!(pick("3m7t4j").unwrap(), Some(ids[1]));
        assert_eq!(pick("9q3m7t4h").unwrap(), Some(ids[0]));
        assert_eq!(pick("000000").unwrap(), None);
        let said = pick("3m7t4h").unwrap_err().to_string();
        assert!(said.contains("several ids"), "{said}");
        assert_eq!(ending(ids[1]), "3m7t4j");
    }

    #[test]
    fn what_cannot_be_an_id_is_refused_before_anyone_is_asked() {
        assert!(matches!(
            read("rsv_01kc3v9xwbe8rv5w2n9q3m7t4h"),
            Ok(Handle::Id(_))
        ));
        for bad in [
            "",
            "3m7t4",
            "res_01kc3v9xwbe8rv5w2n9q3m7t4h",
            "3M7T4H",
            "fine tuning",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
