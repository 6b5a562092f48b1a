//! What somebody knows of a booking, whether a client was told it or the database holds it.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use berth_model::reservation::{self, State};
use berth_model::{ReservationId, ResourceId, Span, Take, Text};

/// What its owner asked for: when, what, and under which title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub title: Text,
    pub span: Span,
    pub items: BTreeMap<ResourceId, Take>,
}

/// A booking as it was at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub id: ReservationId,
    pub version: u64,
    pub state: State,
    pub content: Content,
}

/// Whether an arrow is drawn by time, or by an admin, and not by the booking's owner.
fn is_not_the_owners(from: State, verb: &str) -> bool {
    match from {
        // What it waits for comes by itself.
        State::Waiting => verb != "cancel",
        State::Held => verb == "expire",
        State::PendingApproval => ["approve", "reject", "lapse"].contains(&verb),
        _ => ["start", "ready", "end", "finish", "lapse"].contains(&verb),
    }
}

impl Known {
    /// What an answer says.
    pub fn told(answer: &berth_api::reservations::Reservation) -> Result<Self> {
        let items: BTreeMap<ResourceId, Take> = answer
            .resources
            .iter()
            .map(|item| {
                let take = item.amount.map_or(Take::Exclusive, Take::Amount);
                (item.resource.id, take)
            })
            .collect();
        ensure!(
            items.len() == answer.resources.len(),
            "{} names a resource twice",
            answer.id
        );
        Ok(Self {
            id: answer.id,
            version: answer.version,
            state: answer.state,
            content: Content {
                title: answer.title.clone(),
                span: Span::new(answer.start, answer.end)?,
                items,
            },
        })
    }

    /// Whether `later` can have come of this without its owner.
    pub fn can_become(&self, later: &Known) -> bool {
        let Some(steps) = later.version.checked_sub(self.version) else {
            return false;
        };
        let (had, has) = (&self.content, &later.content);
        // What ends early, or lapses, gives the rest of its time back.
        let keeps_its_end = has.span.end() == had.span.end()
            || (later.state.is_final() && steps > 0 && has.span.end() < had.span.end());
        self.id == later.id
            && had.title == has.title
            && (had.items == has.items || self.state == State::Waiting)
            && had.span.start() == has.span.start()
            && keeps_its_end
            && after_steps_of_others(self.state, steps).contains(&later.state)
    }
}

impl From<&reservation::Reservation> for Known {
    fn from(stored: &reservation::Reservation) -> Self {
        Self {
            id: stored.id,
            version: stored.version,
            state: stored.state,
            content: Content {
                title: stored.title.clone(),
                span: stored.span,
                items: stored
                    .items
                    .iter()
                    .map(|item| (item.resource, item.take))
                    .collect(),
            },
        }
    }
}

/// The states that this many steps lead to that are not the owner's.
fn after_steps_of_others(from: State, steps: u64) -> Vec<State> {
    let mut reached = vec![from];
    for _ in 0..steps {
        let onward = State::ARROWS
            .iter()
            .filter(|(state, verb, _)| reached.contains(state) && is_not_the_owners(*state, verb));
        reached = onward.map(|(_, _, to)| *to).collect();
        if reached.is_empty() {
            break;
        }
    }
    reached
}
