//! The claim: a resource, a span, a holder. Everything that uses shared compute is one.

use std::num::NonZeroU64;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::id::{ClaimId, ReservationId, ResourceId, SiteId, WindowId, WorkloadId};
use crate::span::Span;

/// A positive quantity of a divisible resource, in that resource's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Amount(NonZeroU64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is a whole number from 1 to {}", Amount::MAX)]
pub struct AmountError;

impl Amount {
    /// A million million: memory is counted in MiB, and the sum of a million such claims still fits the database.
    pub const MAX: u64 = 1_000_000_000_000;

    pub fn new(value: u64) -> Result<Self, AmountError> {
        NonZeroU64::new(value)
            .filter(|value| value.get() <= Self::MAX)
            .map(Self)
            .ok_or(AmountError)
    }

    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl TryFrom<u64> for Amount {
    type Error = AmountError;
    fn try_from(value: u64) -> Result<Self, AmountError> {
        Amount::new(value)
    }
}

impl From<Amount> for u64 {
    fn from(amount: Amount) -> u64 {
        amount.get()
    }
}

impl utoipa::PartialSchema for Amount {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(Amount::MAX as i64))
            .into()
    }
}
impl utoipa::ToSchema for Amount {}

/// How much of its resource a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// All of it, and everything above and below it in the tree.
    Exclusive,
    /// A part; others may take other parts up to the resource's capacity.
    Amount(Amount),
}

impl Take {
    /// How much of it; none where all of it is taken.
    pub fn amount(self) -> Option<Amount> {
        match self {
            Take::Exclusive => None,
            Take::Amount(amount) => Some(amount),
        }
    }
}

/// Whether a claim gives way to a firmer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Firmness {
    Firm,
    /// Shortened to end when a firm claim starts; whoever runs it is told `grace` before that end.
    Yielding {
        grace: SignedDuration,
    },
}

/// On whose behalf the claim is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    Reservation(ReservationId),
    Maintenance(WindowId),
    Workload(WorkloadId),
}

/// Whether a claim still counts in the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It holds its resource for its span.
    Holding,
    /// It is over; its span says what it really occupied.
    Past,
    /// It was given up before it began, and occupied nothing.
    Void,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub id: ClaimId,
    pub site: SiteId,
    pub resource: ResourceId,
    pub span: Span,
    pub take: Take,
    pub firmness: Firmness,
    /// The claim this one stands inside; none means the site's own timeline.
    pub container: Option<ClaimId>,
    pub holder: Holder,
    pub standing: Standing,
}

impl Claim {
    /// A firm claim on the site's own timeline, as reservations and maintenance windows make them.
    pub fn firm(
        id: ClaimId,
        site: SiteId,
        resource: ResourceId,
        span: Span,
        take: Take,
        holder: Holder,
    ) -> Self {
        Self {
            id,
            site,
            resource,
            span,
            take,
            firmness: Firmness::Firm,
            container: None,
            holder,
            standing: Standing::Holding,
        }
    }
}
