//! The starts that a site's policies and closed times permit, and the buffers around a booking.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::placement::Candidate;
use berth_engine::policy::Rules;
use berth_model::reservation::Reservation;
use berth_model::{Name, PersonId, ResourceId, Span};
use berth_store::{Conn, projects};
use jiff::{SignedDuration, Timestamp};

use super::board::Board;
use crate::App;
use crate::caller::Caller;
use crate::error::Result;
use crate::place::Place;

/// The owner of a request, and its project.
#[derive(Debug, Clone)]
pub(crate) struct For {
    pub owner: PersonId,
    /// The project's name in the site.
    pub project: Option<Name>,
}

/// The starts at which the rules would accept a booking of one length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permitted {
    /// Half-open spans, in order.
    pub starts: Vec<Span>,
    /// How long the resources are held before and after the booking.
    pub set_up: SignedDuration,
    pub clean_up: SignedDuration,
    /// None if no policy applies.
    pub rules: Option<Rules>,
}

pub(crate) const MOMENT: SignedDuration = SignedDuration::from_micros(1);

impl Permitted {
    /// All the time that a booking holds, including buffers.
    pub fn around(&self, span: Span) -> Span {
        Span::new(span.start() - self.set_up, span.end() + self.clean_up).unwrap_or(span)
    }

    /// The booking's own time within the time that it holds.
    pub fn within(&self, held: Span) -> Span {
        Span::new(held.start() + self.set_up, held.end() - self.clean_up).unwrap_or(held)
    }

    /// The starts of the held time, that is, with the set-up buffer.
    pub fn held_starts(&self) -> Vec<Span> {
        let shifted = |span: &Span| {
            Span::new(span.start() - self.set_up, span.end() - self.set_up).unwrap_or(*span)
        };
        self.starts.iter().map(shifted).collect()
    }

    pub fn has_buffers(&self) -> bool {
        self.set_up.is_positive() || self.clean_up.is_positive()
    }

    pub fn contains(&self, start: Timestamp) -> bool {
        let next = self.starts.partition_point(|span| span.end() <= start);
        self.starts
            .get(next)
            .is_some_and(|span| span.start() <= start)
    }

    /// The latest time at which all approvals can still be given. None if no approval is needed.
    pub fn decide_by(&self, span: Span, now: Timestamp) -> Option<Timestamp> {
        let asked = self.rules.as_ref()?.approvals(span, now);
        asked.into_iter().map(|approval| approval.decide_by).min()
    }
}

impl App {
    /// The permitted starts in `window` of a booking of these types that ends within the window.
    #[expect(
        clippy::too_many_arguments,
        reason = "who asks for what, where and when"
    )]
    pub(super) async fn permitted(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        of: &For,
        types: BTreeSet<Name>,
        length: SignedDuration,
        window: Span,
    ) -> Result<Permitted> {
        let last = window.end() - length + MOMENT;
        let Ok(starts) = Span::new(window.start(), last) else {
            return Ok(Permitted::default());
        };
        let asked = self
            .permitted_by_policy(
                conn,
                caller,
                place,
                of.owner,
                of.project.clone(),
                types,
                length,
                starts,
            )
            .await?;
        let mut permitted = asked.unwrap_or_else(|| Permitted {
            starts: vec![starts],
            ..Permitted::default()
        });
        let closed = self.blackouts(conn, caller, place, window).await?;
        if !closed.is_empty() {
            let would_meet =
                |span: &Span| Span::new(span.start() - length + MOMENT, span.end()).ok();
            let forbidden: Vec<Span> = closed.iter().filter_map(would_meet).collect();
            let open = permitted.starts.iter();
            permitted.starts = open.flat_map(|span| span.minus(&forbidden)).collect();
        }
        Ok(permitted)
    }
}

impl App {
    /// The owner and the project of an existing reservation.
    pub(crate) async fn booked_for(&self, conn: &mut Conn, of: &Reservation) -> Result<For> {
        let named = projects::named(conn, of.project.into_iter().collect()).await?;
        Ok(For {
            owner: of.owner,
            project: named.into_iter().next().map(|project| project.name),
        })
    }
}

/// A set of types, and the candidates of these types.
pub(super) type TypeSet = (BTreeSet<Name>, Vec<Candidate>);

/// With more types than this, the search tries each type alone and all types together, not every set of types.
const TYPES_COMBINED_MAX: usize = 3;

impl App {
    /// The sets of types that a booking of some of these candidates could take. Policies apply only to the types that a
    /// booking takes. Without policies, one set of all types is enough.
    pub(super) async fn type_sets(
        &self,
        conn: &mut Conn,
        place: &Place,
        board: &Board,
        candidates: &[Candidate],
    ) -> Result<Vec<TypeSet>> {
        let mut by_type: BTreeMap<Name, Vec<Candidate>> = BTreeMap::new();
        for candidate in candidates {
            if let Some(name) = board.type_name(candidate.resource) {
                by_type.entry(name.clone()).or_default().push(*candidate);
            }
        }
        if by_type.len() > 1 && self.policies_of(conn, &place.site).await?.asks_nothing {
            let types = by_type.into_keys().collect();
            return Ok(vec![(types, candidates.to_vec())]);
        }
        Ok(combined(&by_type))
    }
}

/// Small sets first; among equal sizes, the sets that exceed the wish least.
fn combined(by_type: &BTreeMap<Name, Vec<Candidate>>) -> Vec<TypeSet> {
    let types: Vec<&Name> = by_type.keys().collect();
    let each = types.iter().map(|name| BTreeSet::from([(*name).clone()]));
    let every = || types.iter().map(|name| (*name).clone()).collect();
    let sets: Vec<BTreeSet<Name>> = match types.len() {
        0 | 1 => each.collect(),
        2..=TYPES_COMBINED_MAX => (1_u32..1 << types.len())
            .map(|set| {
                let chosen = types.iter().enumerate();
                let chosen = chosen.filter(|(number, _)| set & (1 << number) != 0);
                chosen.map(|(_, name)| (*name).clone()).collect()
            })
            .collect(),
        _ => each.chain([every()]).collect(),
    };
    let sets = sets.into_iter();
    let with_candidates = |types: BTreeSet<Name>| {
        let found = types.iter().filter_map(|name| by_type.get(name));
        let candidates: Vec<Candidate> = found.flatten().copied().collect();
        (types, candidates)
    };
    let mut sets: Vec<TypeSet> = sets.map(with_candidates).collect();
    sets.sort_by_key(|(types, candidates)| {
        let cost = candidates.iter().map(|one| one.cost).min();
        (types.len(), cost, types.clone())
    });
    sets
}

impl Board {
    /// The types of these resources.
    pub(super) fn types_of(&self, resources: impl Iterator<Item = ResourceId>) -> BTreeSet<Name> {
        let known = resources.filter_map(|id| self.type_name(id));
        known.cloned().collect()
    }

    pub(super) fn type_name(&self, resource: ResourceId) -> Option<&Name> {
        let resource = self.resources.get(&resource)?;
        Some(&self.types.get(&resource.type_id)?.name)
    }
}
