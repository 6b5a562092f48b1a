//! When a site's policies and closed times let a booking start, and how much time it then holds around itself.

use std::collections::BTreeSet;

use berth_engine::policy::Rules;
use berth_engine::rights::Action;
use berth_model::closure::ClosureKind;
use berth_model::{Name, PersonId, ResourceId, Span};
use berth_store::{Conn, closures};
use jiff::{SignedDuration, Timestamp};

use super::board::Board;
use crate::App;
use crate::caller::Caller;
use crate::error::Result;
use crate::place::Place;

/// Who asks for something, and what for.
#[derive(Debug, Clone)]
pub(super) struct For {
    pub owner: PersonId,
    /// The project's name in the site.
    pub project: Option<Name>,
}

/// The starts at which a booking of a length would be accepted, as far as rules say so.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permitted {
    /// Half-open, in order.
    pub starts: Vec<Span>,
    /// How long its resources are held before and after it.
    pub set_up: SignedDuration,
    pub clean_up: SignedDuration,
    /// None where nothing is asked.
    pub rules: Option<Rules>,
}

/// More closed times than this no site has in the two years that can be searched.
const CLOSED_MAX: u64 = 5_000;
pub(crate) const MOMENT: SignedDuration = SignedDuration::from_micros(1);

impl Permitted {
    /// All the time that a booking holds.
    pub fn around(&self, span: Span) -> Span {
        Span::new(span.start() - self.set_up, span.end() + self.clean_up).unwrap_or(span)
    }

    /// The booking in the time that it holds.
    pub fn within(&self, held: Span) -> Span {
        Span::new(held.start() + self.set_up, held.end() - self.clean_up).unwrap_or(held)
    }

    /// The starts of the time held.
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

    /// The latest time at which everybody who is asked can still agree; none where nobody is asked.
    pub fn decide_by(&self, span: Span, now: Timestamp) -> Option<Timestamp> {
        let asked = self.rules.as_ref()?.approvals(span, now);
        asked.into_iter().map(|approval| approval.decide_by).min()
    }
}

impl App {
    /// The starts in `window` of a booking of these types that is over by the window's end.
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
        if place.may_be_closed && !place.can(caller, Action::BookOverBlackouts) {
            let blackouts = Some(ClosureKind::Blackouts);
            let closed =
                closures::closed_between(conn, place.id(), blackouts, window, CLOSED_MAX).await?;
            let forbidden: Vec<Span> = closed
                .iter()
                .filter_map(|one| {
                    let span = one.closed.span;
                    Span::new(span.start() - length + MOMENT, span.end()).ok()
                })
                .collect();
            let left = permitted
                .starts
                .iter()
                .flat_map(|span| span.minus(&forbidden));
            permitted.starts = left.collect();
        }
        Ok(permitted)
    }
}

impl Board {
    /// The types of these resources.
    pub(super) fn types_of(&self, resources: impl Iterator<Item = ResourceId>) -> BTreeSet<Name> {
        let known = resources.filter_map(|id| self.resources.get(&id));
        let kinds = known.filter_map(|resource| self.types.get(&resource.type_id));
        kinds.map(|kind| kind.name.clone()).collect()
    }
}
