//! "4 x A100": what is asked for when any of a kind will do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attribute::Requirement;
use crate::claim::{Amount, Take};
use crate::inventory::{Resource, ResourceType};
use crate::name::Text;

/// So many of what fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// A type's name, or what one of a resource's attributes says: `gpu-node`, `A100`.
    #[schema(value_type = String, examples("A100"))]
    pub what: Text,
    /// How many; one, if left out.
    #[serde(default)]
    pub count: Count,
    /// Conditions on the attributes, all of which must hold.
    #[serde(default, rename = "where", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, max_items = 20, examples(json!(["memory_gb>=40"])))]
    pub with: Vec<Requirement>,
    /// How much of each, where they are divisible; the whole of each, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
}

/// How many of a kind one booking takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Count(u16);

impl Count {
    pub const ONE: Count = Count(1);
    pub const MAX: u16 = 100;

    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Count {
    fn default() -> Self {
        Count::ONE
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u16> for Count {
    type Error = SelectionError;
    fn try_from(count: u16) -> Result<Self, SelectionError> {
        let fits = (1..=Count::MAX).contains(&count);
        fits.then_some(Count(count))
            .ok_or(SelectionError::Count(count))
    }
}

impl From<Count> for u16 {
    fn from(count: Count) -> u16 {
        count.0
    }
}

impl utoipa::PartialSchema for Count {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Count::MAX))
            .into()
    }
}
impl utoipa::ToSchema for Count {}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    #[error("`{0}` does not say what is wanted: write it like `4 x A100` or `gpu-node`")]
    Shape(String),
    #[error("{0} cannot be booked at once: take from 1 to {max}", max = Count::MAX)]
    Count(u16),
}

impl FromStr for Selection {
    type Err = SelectionError;
    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let shape = || SelectionError::Shape(text.chars().take(100).collect());
        let numbered = text
            .split_once(['x', 'X', '\u{d7}'])
            .and_then(|(count, what)| {
                let count = count.trim().parse::<u16>().ok()?;
                Some((count, what.trim()))
            });
        let (count, what) = numbered.unwrap_or((1, text.trim()));
        Ok(Selection {
            what: what.parse().map_err(|_| shape())?,
            count: count.try_into()?,
            with: Vec::new(),
            amount: None,
        })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.count, self.what)?;
        if let Some(amount) = self.amount {
            write!(f, ", {} of each", amount.get())?;
        }
        let mut with = ", with";
        for requirement in &self.with {
            write!(f, "{with} {requirement}")?;
            with = " and";
        }
        Ok(())
    }
}

impl Selection {
    /// What a booking takes of each.
    pub fn take(&self) -> Take {
        self.amount.map_or(Take::Exclusive, Take::Amount)
    }

    /// Whether a resource of this type is one of those that will do.
    pub fn is_met_by(&self, resource: &Resource, kind: &ResourceType) -> bool {
        let what = self.what.as_str();
        let is_called = kind.name.as_str().eq_ignore_ascii_case(what)
            || resource
                .attributes
                .values()
                .any(|value| value.to_string().eq_ignore_ascii_case(what));
        let has_enough = self.amount.is_none_or(|amount| {
            let capacity = resource.capacity.as_ref();
            capacity.is_some_and(|capacity| amount <= capacity.amount)
        });
        is_called
            && has_enough
            && self
                .with
                .iter()
                .all(|requirement| requirement.is_met_by(&resource.attributes))
    }

    /// By how much more than asked for it is. The smallest that will do is taken first.
    pub fn excess(&self, resource: &Resource) -> u64 {
        let attributes = self.with.iter();
        let attributes = attributes.map(|requirement| requirement.excess(&resource.attributes));
        let capacity = resource.capacity.as_ref().zip(self.amount);
        let capacity = capacity.map(|(capacity, amount)| capacity.amount.get() - amount.get());
        attributes
            .chain(capacity)
            .fold(0, |sum: u64, part| sum.saturating_add(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_it_in_several_ways() {
        for (text, count, what) in [
            ("4 x A100", 4, "A100"),
            ("4xA100", 4, "A100"),
            ("2 \u{d7} gpu-node", 2, "gpu-node"),
            ("gpu-node", 1, "gpu-node"),
            ("xeon", 1, "xeon"),
            ("8 x xeon", 8, "xeon"),
        ] {
            let read: Selection = text.parse().unwrap();
            assert_eq!(
                (read.count.get(), read.what.as_str()),
                (count, what),
                "{text}"
            );
            assert_eq!(read.to_string().parse::<Selection>().unwrap(), read);
        }
        assert_eq!(
            "0 x A100".parse::<Selection>(),
            Err(SelectionError::Count(0))
        );
        assert!("101 x A100".parse::<Selection>().is_err());
        assert!("".parse::<Selection>().is_err() && "4 x ".parse::<Selection>().is_err());
    }

    #[test]
    fn it_reads_back_as_it_is_stored() {
        let stored = serde_json::json!({"what": "A100", "count": 4, "where": ["memory_gb>=40"]});
        let read: Selection = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), stored);
        assert_eq!(read.to_string(), "4 x A100, with memory_gb>=40");
        let bad = serde_json::json!({"what": "A100", "count": 0});
        assert!(serde_json::from_value::<Selection>(bad).is_err());
    }
}
