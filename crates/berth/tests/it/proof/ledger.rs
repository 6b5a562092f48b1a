//! What the clients were told: the other half of the truth, kept outside the system under test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use berth_model::reservation::State;
use berth_model::{ReservationId, ResourceId, SeriesId, Status, Take};

use super::known::{Content, Known};

/// Everything that was acknowledged, to one client or, merged, to all.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub bookings: BTreeMap<ReservationId, Account>,
    pub series: BTreeMap<SeriesId, SeriesAccount>,
    pub moves: Sayings<(ResourceId, Option<ResourceId>)>,
    pub statuses: Sayings<(ResourceId, Status)>,
    /// What admins made of bookings that waited for them.
    pub decisions: Sayings<(ReservationId, State)>,
    pub counts: Counts,
}

/// What is known of one booking. Only the client that made it changes it; an admin may decide about it.
#[derive(Debug, Clone)]
pub struct Account {
    /// The idempotency key it was made with; an instance of a series has none of its own.
    pub key: Option<String>,
    /// Every change of the owner's that took effect, its making first.
    pub told: Vec<Told>,
    /// Changes of the owner's of which nobody can say whether they took effect.
    pub unsure: u64,
    /// The newest that was seen of it.
    pub last: Known,
    /// Where it was made waiting: what it is to get.
    pub waits_for: Option<BTreeMap<ResourceId, Take>>,
}

/// What is known of a series.
#[derive(Debug, Clone)]
pub struct SeriesAccount {
    pub key: String,
    pub instances: BTreeSet<ReservationId>,
}

/// One change that took effect.
#[derive(Debug, Clone)]
pub struct Told {
    /// Unknown where the answer was lost and the effect was found by looking.
    pub version: Option<u64>,
    pub state: Option<State>,
    pub content: Content,
}

impl Told {
    /// By an answer.
    pub fn answered(known: &Known) -> Self {
        Self {
            version: Some(known.version),
            state: Some(known.state),
            content: known.content.clone(),
        }
    }

    /// By looking, after the answer was lost.
    pub fn found(content: &Content) -> Self {
        Self {
            version: None,
            state: None,
            content: content.clone(),
        }
    }
}

/// Changes to what is not the client's own, which others may make at any time too.
#[derive(Debug, Clone)]
pub struct Sayings<T> {
    pub acknowledged: Vec<T>,
    /// How many answers were lost; each may have taken effect as well.
    pub unsure: u64,
}

impl<T> Default for Sayings<T> {
    fn default() -> Self {
        Self {
            acknowledged: Vec::new(),
            unsure: 0,
        }
    }
}

impl<T> Sayings<T> {
    fn absorb(&mut self, other: Self) {
        self.acknowledged.extend(other.acknowledged);
        self.unsure += other.unsure;
    }
}

/// What became of the requests.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    pub verbs: BTreeMap<&'static str, Verdicts>,
    /// Refusals by problem code.
    pub codes: BTreeMap<String, u64>,
    /// Requests that died with the server.
    pub lost: u64,
    /// Of the operations that lost an answer: how many had taken effect, had not, or cannot be told.
    pub had_happened: u64,
    pub had_not_happened: u64,
    pub cannot_tell: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Verdicts {
    pub accepted: u64,
    pub refused: u64,
}

impl Ledger {
    pub fn accept(&mut self, verb: &'static str) {
        self.counts.verbs.entry(verb).or_default().accepted += 1;
    }

    pub fn refuse(&mut self, verb: &'static str, code: &str) {
        self.counts.verbs.entry(verb).or_default().refused += 1;
        *self.counts.codes.entry(code.to_owned()).or_default() += 1;
    }

    pub fn absorb(&mut self, other: Self) {
        self.bookings.extend(other.bookings);
        self.series.extend(other.series);
        self.moves.absorb(other.moves);
        self.statuses.absorb(other.statuses);
        self.decisions.absorb(other.decisions);
        let counts = &mut self.counts;
        for (verb, verdicts) in other.counts.verbs {
            let mine = counts.verbs.entry(verb).or_default();
            mine.accepted += verdicts.accepted;
            mine.refused += verdicts.refused;
        }
        for (code, times) in other.counts.codes {
            *counts.codes.entry(code).or_default() += times;
        }
        counts.lost += other.counts.lost;
        counts.had_happened += other.counts.had_happened;
        counts.had_not_happened += other.counts.had_not_happened;
        counts.cannot_tell += other.counts.cannot_tell;
    }
}

impl Counts {
    pub fn accepted(&self) -> u64 {
        self.verbs.values().map(|verdicts| verdicts.accepted).sum()
    }

    pub fn refused(&self) -> u64 {
        self.verbs.values().map(|verdicts| verdicts.refused).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (accepted, refused) = (self.accepted(), self.refused());
        writeln!(f, "  {accepted} accepted, {refused} refused")?;
        for (verb, verdicts) in &self.verbs {
            let Verdicts { accepted, refused } = verdicts;
            writeln!(
                f,
                "    {verb:<13} {accepted:>8} accepted {refused:>8} refused"
            )?;
        }
        for (code, times) in &self.codes {
            writeln!(f, "    {times:>8} x {code}")?;
        }
        write!(
            f,
            "  {} answers lost; looked up afterwards: {} had happened, {} had not, {} cannot be told",
            self.lost, self.had_happened, self.had_not_happened, self.cannot_tell
        )
    }
}
