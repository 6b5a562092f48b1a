//! Claims as one person may see them.

use berth_engine::sight::{Sight, see};
use berth_engine::summary::{ClaimClass, ClaimKind};
use berth_model::reservation::{Privacy, State};
use berth_model::{Claim, PersonId, ResourceId, Text};
use berth_store::claims::{Entry, HolderKind, Occupying};

use crate::caller::Caller;
use crate::place::Place;

/// A claim, with what it is for if the viewer may know.
#[derive(Debug, Clone)]
pub struct SeenClaim {
    pub claim: Claim,
    /// None: all this viewer may know is that the time is taken.
    pub details: Option<SeenDetails>,
}

#[derive(Debug, Clone, Default)]
pub struct SeenDetails {
    pub title: Option<Text>,
    pub owner: Option<PersonId>,
    pub state: Option<State>,
    pub mine: bool,
    /// Whether it is held to set up before, or to clean up after.
    pub is_buffer: bool,
}

/// What was wanted, and a claim that stands in its way.
#[derive(Debug, Clone)]
pub struct Conflict {
    pub wanted: ResourceId,
    pub claim: SeenClaim,
}

/// What `caller` may see of a calendar entry; none if not even that it is there.
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

/// What `caller` may know of a claim that is summed up with others: no more than [`seen`] shows of it by itself.
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

/// Whether `caller` sees what kind of claim each is. To others an answer that treats kinds differently would tell it.
pub(crate) fn sees_kinds(place: &Place, caller: &Caller) -> bool {
    see(place.standing, caller.id(), None, Privacy::Site) == Sight::Full
}

impl SeenClaim {
    /// Whose it is, if the viewer may know.
    pub(crate) fn owner(&self) -> Option<PersonId> {
        self.details.as_ref().and_then(|details| details.owner)
    }
}
