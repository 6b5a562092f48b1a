//! A list whose length has bounds, kept by its type.

use serde::{Deserialize, Serialize};

/// Between `MIN` and `MAX` items. utoipa cannot see the bounds, so a field of this type repeats them:
/// `#[schema(value_type = Vec<T>, min_items = …, max_items = …)]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    try_from = "Vec<T>",
    into = "Vec<T>",
    bound(serialize = "T: Clone + Serialize")
)]
pub struct List<T, const MIN: usize, const MAX: usize>(Vec<T>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("takes {min} to {max} items, and has {is}")]
pub struct LengthError {
    min: usize,
    max: usize,
    is: usize,
}

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const MIN: usize, const MAX: usize> TryFrom<Vec<T>> for List<T, MIN, MAX> {
    type Error = LengthError;
    fn try_from(items: Vec<T>) -> Result<Self, LengthError> {
        if (MIN..=MAX).contains(&items.len()) {
            Ok(Self(items))
        } else {
            Err(LengthError {
                min: MIN,
                max: MAX,
                is: items.len(),
            })
        }
    }
}

impl<T, const MIN: usize, const MAX: usize> From<List<T, MIN, MAX>> for Vec<T> {
    fn from(list: List<T, MIN, MAX>) -> Self {
        list.0
    }
}

/// The empty list, where it is allowed: a type whose least length is above zero has no default.
impl<T, const MAX: usize> Default for List<T, 0, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MIN: usize, const MAX: usize> IntoIterator for List<T, MIN, MAX> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_kept_and_said() {
        type Few = List<u8, 1, 3>;
        assert_eq!(
            serde_json::from_str::<Few>("[1,2]").unwrap().as_slice(),
            [1, 2]
        );
        for bad in ["[]", "[1,2,3,4]"] {
            let said = serde_json::from_str::<Few>(bad).unwrap_err().to_string();
            assert!(said.contains("1 to 3 items"), "{said}");
        }
    }
}
