//! Claims as one person may see them.

use berth_engine::sight::{Sight, see};
use berth_engine::summary::{ClaimClass, ClaimKind};
use berth_model::reservation::{Privacy, State};
use berth_model::{Claim, PersonId, ResourceId, Text};
use berth_store::claims::{Entry, HolderKind, Occupying};

use crate::caller::Caller;
use crate::place::Place;

/// A claim, with its purpose if the viewer may know it.
#[derive(Debug, Clone)]
pub struct SeenClaim {
    pub claim: Claim,
    /// None if the viewer may only know that the time is taken.
    pub details: Option<SeenDetails>,
}

#[derive(Debug, Clone, Default)]
pub struct SeenDetails {
    pub title: Option<Text>,
    pub owner: Option<PersonId>,
    pub state: Option<State>,
    pub mine: bool,
    /// Whether it holds a buffer for setting up or cleaning up.
    pub is_buffer: bool,
}

/// The resource that was wanted, and a claim in its way.
#[derive(Debug, Clone)]
pub struct Conflict {
    pub wanted: ResourceId,
    pub claim: SeenClaim,
}

/// The part of a calendar entry that `caller` may see. None if they may not even know that it exists.
pub(crate) fn seen(place: &Place, caller: &Caller, entry: Entry) -> Option<SeenClaim> {
    let privacy = entry.privacy.unwrap_or(Privacy::Site);
    let details = match see(place.standing, caller.id(), entry.owner, privacy) {
        Sight::Nothing => return None,
        Sight::Busy => None,
        Sight::Full => Some(SeenDetails {
            title: entry.title,
            owner: entry.owner,
            state: entry.state,
            mine: entry.owner == Some(caller.id()),
            is_buffer: entry.is_buffer,
        }),
    };
    Some(SeenClaim {
        claim: entry.claim,
        details,
    })
}

/// The class of a claim in a sum, as far as `caller` may know it. It reveals no more than [`seen`] does.
pub(crate) fn seen_class(place: &Place, caller: &Caller, claim: &Occupying) -> Option<ClaimClass> {
    let privacy = claim.privacy.unwrap_or(Privacy::Site);
    let owner = claim.is_own.then_some(caller.id());
    match see(place.standing, caller.id(), owner, privacy) {
        Sight::Nothing => None,
        Sight::Busy => Some(ClaimClass {
            kind: ClaimKind::Busy,
            mine: false,
        }),
        Sight::Full => Some(ClaimClass {
            kind: match claim.holder {
                HolderKind::Reservation if claim.is_buffer => ClaimKind::Buffer,
                HolderKind::Reservation => ClaimKind::Reservation,
                HolderKind::Maintenance => ClaimKind::Maintenance,
                HolderKind::Workload => ClaimKind::Workload,
            },
            mine: claim.is_own,
        }),
    }
}

/// Whether `caller` may see the kind of each claim. An answer that treats kinds differently would reveal it to others.
pub(crate) fn sees_kinds(place: &Place, caller: &Caller) -> bool {
    see(place.standing, caller.id(), None, Privacy::Site) == Sight::Full
}

impl SeenClaim {
    /// The owner, if the viewer may know it.
    pub(crate) fn owner(&self) -> Option<PersonId> {
        self.details.as_ref().and_then(|details| details.owner)
    }
}
