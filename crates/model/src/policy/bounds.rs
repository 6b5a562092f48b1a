//! How many of one thing a policy may name, kept where it is read.

use std::collections::BTreeSet;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub trait Counted {
    fn count(&self) -> usize;
}

impl<T> Counted for BTreeSet<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T> Counted for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<C: Counted> Counted for Option<C> {
    fn count(&self) -> usize {
        self.as_ref().map_or(0, C::count)
    }
}

pub fn at_most<'de, const MAX: usize, D, C>(deserializer: D) -> Result<C, D::Error>
where
    D: Deserializer<'de>,
    C: Deserialize<'de> + Counted,
{
    let all = C::deserialize(deserializer)?;
    match all.count() {
        count if count > MAX => Err(D::Error::custom(format_args!(
            "{count} are named here; a policy takes at most {MAX}"
        ))),
        _ => Ok(all),
    }
}
