//! Reservations, and the only ways their state can change.
//!
//! Each state is a type of its own, and its methods are the arrows that leave it: an illegal move does not compile.
//! A [`Transition`] can be made only by such a method, and it is the only thing the store takes to change a state.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::{Amount, Claim, Take};
use crate::id::{ClaimId, PersonId, ProjectId, ReservationId, ResourceId, SiteId};
use crate::name::{LoginName, Name, Text};
use crate::policy::{Approver, Length, Outcome, Scope};
use crate::selection::{Count, Selection};
use crate::series::Occurrence;
use crate::span::Span;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    pub id: ReservationId,
    pub site: SiteId,
    pub owner: PersonId,
    pub project: Option<ProjectId>,
    pub title: Text,
    pub privacy: Privacy,
    pub state: State,
    pub state_reason: Option<Text>,
    pub span: Span,
    pub items: Vec<Item>,
    /// Answers to the booking forms, by resource type. A secret shows as [`MASK`].
    pub parameters: Parameters,
    /// What it must still meet, besides its span.
    #[serde(default)]
    pub terms: Terms,
    /// Which of which series it is; none for a booking by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurrence: Option<Occurrence>,
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What a reservation was made under and must meet as time goes on. Set when it is made, from the policies of that day,
/// so that a later policy changes nothing that was promised.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Terms {
    /// Whether it needs an approver's leave; a held one, once it is taken.
    #[serde(default)]
    pub asks_leave: bool,
    /// A held one must be taken by then, a pending one decided.
    #[serde(default)]
    pub decide_by: Option<Timestamp>,
    /// What becomes of a pending one that nobody decided in time.
    #[serde(default)]
    pub undecided: Undecided,
    #[serde(default)]
    pub check_in: CheckIn,
    /// What was asked for, where any of a kind would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub any: Option<Selection>,
    /// Until then it may be given others of the same kind, so that someone else fits in. Absent once it is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub movable_until: Option<Timestamp>,
    /// What it waits for, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub wait: Option<Wait>,
    /// Every approval that is asked for, and what was decided. All must be given before it is confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<AskedApproval>,
    /// How long before its start its resources are held to set up, by claims that are not among its resources.
    #[serde(default, skip_serializing_if = "Length::is_zero")]
    pub set_up: Length,
    /// How long they are held after its end to clean up.
    #[serde(default, skip_serializing_if = "Length::is_zero")]
    pub clean_up: Length,
    /// While it is ending: when the cleaning up is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub clean_until: Option<Timestamp>,
    /// What becomes of its owner's work that still runs inside it when it ends.
    #[serde(default, skip_serializing_if = "AtEnd::is_stop")]
    pub at_end: AtEnd,
    /// Whether its idle time is lent to opportunistic work; as the site says, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lends: Option<bool>,
}

/// What becomes of work inside a reservation when that ends. It is its owner's choice, and can change while it lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// It is gone by the end.
    #[default]
    Stop,
    /// It runs on as opportunistic work, until somebody else has a claim to its place.
    Keep,
    /// It is told in time to write down how far it has come, is gone by the end, and goes on in the site's queue.
    Checkpoint,
}

impl AtEnd {
    pub fn is_stop(&self) -> bool {
        *self == AtEnd::Stop
    }
}

/// What a waiting reservation would like to have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Wait {
    pub wish: Waited,
    /// The last moment at which it could still start.
    pub until: Timestamp,
    /// For how many seconds it is offered when there is room. Without it, it is booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub offer_s: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waited {
    /// Just these, for just its time.
    Named(Vec<Wanted>),
    /// Any of a kind, somewhere in its time.
    Any {
        what: Selection,
        /// Any one of these will do, the most welcome first.
        variants: Vec<WaitedVariant>,
        #[serde(default)]
        pinned: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = WaitedResource)]
pub struct Wanted {
    pub resource: ResourceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub amount: Option<Amount>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WaitedVariant {
    pub count: Count,
    pub length_s: u32,
}

/// One approval that a reservation needs. The words of the policy that asks for it are copied, so that a later policy
/// changes neither who decides nor what silence means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AskedApproval {
    /// The policy that asks.
    pub from: Scope,
    /// Any one of them decides.
    pub approvers: BTreeSet<Approver>,
    /// May decide in their stead.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deputies: BTreeSet<Approver>,
    /// The latest time of a decision; its start, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decide_by: Option<Timestamp>,
    /// What counts as decided when nobody did by then.
    pub otherwise: Outcome,
    /// Absent while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decision: Option<ApprovalDecision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApprovalDecision {
    pub outcome: Outcome,
    pub by: LoginName,
    pub at: Timestamp,
}

impl AskedApproval {
    pub fn is_open(&self) -> bool {
        self.decision.is_none()
    }
}

impl Terms {
    /// The resources that it waits for, where it named them.
    pub fn waits_for(&self) -> impl Iterator<Item = ResourceId> {
        let named = self.wait.iter().flat_map(|wait| match &wait.wish {
            Waited::Named(named) => named.as_slice(),
            Waited::Any { .. } => &[],
        });
        named.map(|one| one.resource)
    }

    /// The last moment at which a waiting one could still start.
    fn waits_until(&self, span: Span) -> Timestamp {
        self.wait.as_ref().map_or(span.start(), |wait| wait.until)
    }

    fn silence_is_yes_at(&self, start: Timestamp) -> bool {
        self.undecided == Undecided::Approve && self.decide_by.is_some_and(|by| start <= by)
    }

    /// Sets whether leave is still asked for, until when, and what becomes of the reservation if nobody says a word any
    /// more: the first silence that means no decides, and if all mean yes, the last.
    pub fn wait_for_approvals(&mut self, start: Timestamp) {
        let open = || self.approvals.iter().filter(|approval| approval.is_open());
        self.asks_leave = open().next().is_some();
        let time_of = |outcome| {
            open()
                .filter(move |approval| approval.otherwise == outcome)
                .map(|approval| approval.decide_by.unwrap_or(start))
        };
        (self.decide_by, self.undecided) = match (
            time_of(Outcome::Reject).min(),
            time_of(Outcome::Approve).max(),
        ) {
            (Some(at), _) => (Some(at), Undecided::Reject),
            (None, Some(at)) => (Some(at), Undecided::Approve),
            (None, None) => (None, Undecided::default()),
        };
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    Approve,
    #[default]
    Reject,
}

/// Whether its owner has to say that they are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckIn {
    #[default]
    NotAsked,
    /// By this moment; otherwise it is taken for a no-show and released.
    Until(Timestamp),
    Done(Timestamp),
}

impl Reservation {
    /// All the time that its resources are held: with what they need before and after it.
    pub fn held_span(&self) -> Span {
        let (before, after) = (self.terms.set_up.duration(), self.terms.clean_up.duration());
        Span::new(self.span.start() - before, self.span.end() + after).unwrap_or(self.span)
    }

    /// Until when it may be given others of its kind; never once it has begun.
    pub fn movable_until(&self) -> Option<Timestamp> {
        let waits = matches!(self.state, State::PendingApproval | State::Confirmed);
        self.terms.movable_until.filter(|_| waits)
    }

    /// Whether this step is taken because nobody came.
    pub fn is_no_show(&self, step: Transition, now: Timestamp) -> bool {
        let absent = matches!(self.terms.check_in, CheckIn::Until(by) if by <= now);
        step.from() == State::Active
            && step.to() == State::Ending
            && absent
            && self.span.end() > now
    }
}

pub type Parameters = BTreeMap<Name, BTreeMap<Name, Value>>;

/// What stands wherever a secret's value would be.
pub const MASK: &str = "********";

/// One resource of a reservation, and the claim that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub resource: ResourceId,
    pub take: Take,
    pub claim: ClaimId,
}

impl From<&Claim> for Item {
    fn from(claim: &Claim) -> Item {
        Item {
            resource: claim.resource,
            take: claim.take,
            claim: claim.id,
        }
    }
}

/// Who in the site sees more than "busy".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Privacy {
    /// Members see title and owner.
    Site,
    /// Only the owner and the site's admins do.
    Private,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub reservation: ReservationId,
    pub at: Timestamp,
    pub from: Option<State>,
    pub to: State,
    pub span: Span,
    pub by: Option<PersonId>,
    pub reason: Option<Text>,
}

/// A legal change of state, with where it started, so that the store can compare and set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    from: State,
    to: State,
}

impl Transition {
    pub fn from(self) -> State {
        self.from
    }
    pub fn to(self) -> State {
        self.to
    }
}

/// A transition that the current state does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a reservation that is {state} cannot be {verb}")]
pub struct NotFrom {
    pub state: State,
    pub verb: &'static str,
}

macro_rules! machine {
    ($($(#[$doc:meta])* $state:ident $word:literal { $($verb:ident $past:literal -> $to:ident),* $(,)? })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum State { $($(#[$doc])* $state,)* }

        /// One type per state; only the moves drawn here exist.
        pub mod states {
            use super::{State, Transition};
            $(
                #[derive(Debug, Clone, Copy)]
                pub struct $state(pub(super) ());
                impl $state {
                    $(pub fn $verb(self) -> Transition {
                        Transition { from: State::$state, to: State::$to }
                    })*
                }
            )*
        }

        /// The state as its type, for a `match` that offers just the moves that exist.
        #[derive(Debug, Clone, Copy)]
        pub enum Typed { $($state(states::$state),)* }

        impl State {
            pub const ALL: &[State] = &[$(State::$state),*];

            /// Every arrow of the machine: from, verb, to. The drawing in the docs comes from here.
            pub const ARROWS: &[(State, &str, State)] = &[$($((State::$state, stringify!($verb), State::$to),)*)*];

            pub fn typed(self) -> Typed {
                match self { $(State::$state => Typed::$state(states::$state(())),)* }
            }

            pub fn as_str(self) -> &'static str {
                match self { $(State::$state => $word,)* }
            }
        }
    };
}

machine! {
    /// Holds nothing yet: there was no room, and it books itself, or is offered, when there is.
    Waiting "waiting" {
        book "booked" -> Confirmed,
        ask "booked" -> PendingApproval,
        offer "offered" -> Held,
        cancel "cancelled" -> Cancelled,
        expire "given up" -> Cancelled,
    }
    /// Kept free for one person for a moment, while they make up their mind.
    Held "held" {
        take "taken" -> Confirmed,
        ask "taken" -> PendingApproval,
        cancel "cancelled" -> Cancelled,
        expire "released" -> Cancelled,
    }
    /// Waits for an admin; the claim holds meanwhile.
    PendingApproval "pending_approval" {
        approve "approved" -> Confirmed,
        reject "rejected" -> Rejected,
        cancel "cancelled" -> Cancelled,
        lapse "failed" -> Failed,
    }
    /// Promised; waits for its start.
    Confirmed "confirmed" {
        start "started" -> Starting,
        cancel "cancelled" -> Cancelled,
        lapse "failed" -> Failed,
    }
    /// Its time has come; what it needs is being made ready.
    Starting "starting" {
        ready "made active" -> Active,
        end "ended" -> Ending,
        fail "failed" -> Failed,
        cancel "cancelled" -> Ending,
    }
    /// In its owner's hands.
    Active "active" {
        end "ended" -> Ending,
        cancel "cancelled" -> Ending,
        fail "failed" -> Failed,
    }
    /// Over; what it used is being taken back.
    Ending "ending" {
        finish "finished" -> Done,
        fail "failed" -> Failed,
    }
    Done "done" {}
    Cancelled "cancelled" {}
    Rejected "rejected" {}
    Failed "failed" {}
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.as_str().replace('_', " "))
    }
}

impl State {
    /// Whether its claims stand in the rule.
    pub fn holds(self) -> bool {
        !self.is_final() && self != State::Waiting
    }

    pub fn is_final(self) -> bool {
        matches!(
            self,
            State::Done | State::Cancelled | State::Rejected | State::Failed
        )
    }

    pub fn approve(self) -> Result<Transition, NotFrom> {
        match self.typed() {
            Typed::PendingApproval(state) => Ok(state.approve()),
            _ => Err(NotFrom {
                state: self,
                verb: "approved",
            }),
        }
    }

    pub fn reject(self) -> Result<Transition, NotFrom> {
        match self.typed() {
            Typed::PendingApproval(state) => Ok(state.reject()),
            _ => Err(NotFrom {
                state: self,
                verb: "rejected",
            }),
        }
    }

    /// Making a hold a booking, which waits for leave where leave is asked for.
    pub fn take(self, asks_leave: bool) -> Result<Transition, NotFrom> {
        match self.typed() {
            Typed::Held(state) if asks_leave => Ok(state.ask()),
            Typed::Held(state) => Ok(state.take()),
            _ => Err(NotFrom {
                state: self,
                verb: "taken",
            }),
        }
    }

    /// Giving what was waited for: as an offer, or as a booking that may need leave.
    pub fn give(self, as_offer: bool, asks_leave: bool) -> Result<Transition, NotFrom> {
        match self.typed() {
            Typed::Waiting(state) if as_offer => Ok(state.offer()),
            Typed::Waiting(state) if asks_leave => Ok(state.ask()),
            Typed::Waiting(state) => Ok(state.book()),
            _ => Err(NotFrom {
                state: self,
                verb: "given what it waited for",
            }),
        }
    }

    /// Giving up: at once before the start, by way of `ending` once it runs.
    pub fn cancel(self) -> Result<Transition, NotFrom> {
        match self.typed() {
            Typed::Waiting(state) => Ok(state.cancel()),
            Typed::Held(state) => Ok(state.cancel()),
            Typed::PendingApproval(state) => Ok(state.cancel()),
            Typed::Confirmed(state) => Ok(state.cancel()),
            Typed::Starting(state) => Ok(state.cancel()),
            Typed::Active(state) => Ok(state.cancel()),
            Typed::Ending(_)
            | Typed::Done(_)
            | Typed::Cancelled(_)
            | Typed::Rejected(_)
            | Typed::Failed(_) => Err(NotFrom {
                state: self,
                verb: "cancelled",
            }),
        }
    }

    /// Whether its owner can still say that they are there.
    pub fn can_check_in(self) -> Result<(), NotFrom> {
        match self {
            State::Confirmed | State::Starting | State::Active => Ok(()),
            _ => Err(NotFrom {
                state: self,
                verb: "checked in",
            }),
        }
    }

    /// Whether its span or resources may still change.
    pub fn can_change(self) -> Result<(), NotFrom> {
        match self {
            State::PendingApproval | State::Confirmed | State::Starting | State::Active => Ok(()),
            _ => Err(NotFrom {
                state: self,
                verb: "changed",
            }),
        }
    }

    /// What the passing of time does to a reservation of this state, span and terms: the controller's one question.
    pub fn due(self, span: Span, terms: &Terms, now: Timestamp) -> Option<Transition> {
        let (begun, over) = (span.start() <= now, span.end() <= now);
        let undecided = terms.decide_by.is_some_and(|by| by <= now);
        let absent = matches!(terms.check_in, CheckIn::Until(by) if by <= now);
        let too_late = terms.waits_until(span) < now;
        match self.typed() {
            Typed::Waiting(state) if too_late => Some(state.expire()),
            Typed::Held(state) if begun || undecided => Some(state.expire()),
            Typed::PendingApproval(state) if undecided && !begun => Some(match terms.undecided {
                Undecided::Approve => state.approve(),
                Undecided::Reject => state.reject(),
            }),
            // The question stood until the start, and silence means yes.
            Typed::PendingApproval(state)
                if begun && !over && undecided && terms.silence_is_yes_at(span.start()) =>
            {
                Some(state.approve())
            }
            // Nobody decided in time; it must not start unapproved.
            Typed::PendingApproval(state) if begun => Some(state.lapse()),
            // The whole span went by while no server ran: it was never handed over.
            Typed::Confirmed(state) if over => Some(state.lapse()),
            Typed::Confirmed(state) if begun => Some(state.start()),
            Typed::Starting(state) if over => Some(state.end()),
            Typed::Starting(state) => Some(state.ready()),
            Typed::Active(state) if over || absent => Some(state.end()),
            // What it used is taken back, which may take its time.
            Typed::Ending(state) if terms.clean_until.is_none_or(|at| at <= now) => {
                Some(state.finish())
            }
            _ => None,
        }
    }

    /// When time will next matter, so that the controller can sleep until then.
    pub fn next_due(self, span: Span, terms: &Terms) -> Option<Timestamp> {
        let sooner = |at: Timestamp, other: Option<Timestamp>| other.map_or(at, |o| o.min(at));
        match self {
            // Whoever waits until the very last moment may still get it then.
            State::Waiting => {
                let until = terms.waits_until(span);
                Some(until.saturating_add(AFTER).unwrap_or(until))
            }
            State::Held | State::PendingApproval => Some(sooner(span.start(), terms.decide_by)),
            State::Ending => Some(terms.clean_until.unwrap_or(span.start())),
            State::Confirmed | State::Starting => Some(span.start()),
            State::Active => Some(match terms.check_in {
                CheckIn::Until(by) => sooner(span.end(), Some(by)),
                CheckIn::NotAsked | CheckIn::Done(_) => span.end(),
            }),
            State::Done | State::Cancelled | State::Rejected | State::Failed => None,
        }
    }
}

/// The shortest time there is.
const AFTER: SignedDuration = SignedDuration::from_micros(1);

#[cfg(test)]
mod tests;
