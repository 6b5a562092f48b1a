//! Claims as one person may see them.

use berth_engine::sight::{Sight, see};
use berth_model::reservation::{Privacy, State};
use berth_model::{Claim, PersonId, ResourceId, Text};
use berth_store::claims::Entry;

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

impl SeenClaim {
    /// Whose it is, if the viewer may know.
    pub(crate) fn owner(&self) -> Option<PersonId> {
        self.details.as_ref().and_then(|details| details.owner)
    }
}
