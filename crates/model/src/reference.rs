//! How a request points at something: by its id or by its name, whichever the person has at hand.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::environment::EnvironmentName;
use crate::{
    ClosureId, EnvironmentId, LoginName, Name, PersonId, ProjectId, ResourceId, SessionId, SiteId,
    TypeId, WorkloadId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};

/// An id, or else a name. A text that reads as an id of the wanted kind is one: ids are opaque and
/// nobody gives a machine such a name, so the doubt never arises in practice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reference<I, N> {
    Id(I),
    Name(N),
}

pub type PersonReference = Reference<PersonId, LoginName>;
pub type SiteReference = Reference<SiteId, Name>;
pub type ProjectReference = Reference<ProjectId, Name>;
pub type TypeReference = Reference<TypeId, Name>;
pub type ResourceReference = Reference<ResourceId, Name>;
pub type ClosureReference = Reference<ClosureId, Name>;
/// A session by its id, or one's own by its name.
pub type SessionReference = Reference<SessionId, Name>;
/// An environment by its id, or as people write it: `torch`, `torch@2`, `~ada/torch`.
pub type EnvironmentReference = Reference<EnvironmentId, EnvironmentName>;
/// A workload by its id, or by its number in its site.
pub type WorkloadReference = Reference<WorkloadId, u64>;

impl<I, N> From<I> for Reference<I, N> {
    fn from(id: I) -> Self {
        Reference::Id(id)
    }
}

impl<I: FromStr, N: FromStr> FromStr for Reference<I, N> {
    type Err = N::Err;
    fn from_str(text: &str) -> Result<Self, N::Err> {
        match text.parse() {
            Ok(id) => Ok(Reference::Id(id)),
            Err(_) => text.parse().map(Reference::Name),
        }
    }
}

impl<I: fmt::Display, N: fmt::Display> fmt::Display for Reference<I, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Id(id) => id.fmt(f),
            Reference::Name(name) => name.fmt(f),
        }
    }
}

impl<I: fmt::Display, N: fmt::Display> Serialize for Reference<I, N> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de, I: FromStr, N: FromStr<Err: fmt::Display>> Deserialize<'de> for Reference<I, N> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Every id is also within the pattern of a name, so the name's schema describes both.
impl<I, N: utoipa::PartialSchema> utoipa::PartialSchema for Reference<I, N> {
    fn schema() -> RefOr<Schema> {
        N::schema()
    }
}

impl<I: utoipa::ToSchema, N: utoipa::ToSchema> utoipa::ToSchema for Reference<I, N> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(I::name().replace("Id", "Reference"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use utoipa::ToSchema;

    #[test]
    fn ids_and_names_both_point_at_something() {
        let id = "res_01kc3v9xwbe8rv5w2n9q3m7t4h";
        assert!(matches!(id.parse(), Ok(ResourceReference::Id(_))));
        assert!(matches!("gpu-01".parse(), Ok(ResourceReference::Name(_))));
        for text in [id, "gpu-01"] {
            let read: ResourceReference = text.parse().unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_in_the_words_of_the_name() {
        let error = serde_json::from_str::<PersonReference>("\"Ada L\"").unwrap_err();
        assert!(error.to_string().contains("not a login name"), "{error}");
    }

    #[test]
    fn each_kind_has_a_schema_of_its_own() {
        assert_eq!(PersonReference::name(), "PersonReference");
        assert_eq!(ResourceReference::name(), "ResourceReference");
    }
}
