//! Refused bookings, counted by reason.
//!
//! A refused caller must not wait for the counting, and a count must not fail a request. So the counts are numbers in
//! memory, and a task of every server adds them to the database every few seconds. A killed server loses its newest
//! counts. That is acceptable: they are figures for a dashboard, and the refusal itself changed nothing.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use berth_model::Reference;
use berth_model::policy::Rule;
use berth_model::reference::SiteReference;
use berth_model::site::Site;
use berth_store::usage::{self, Refusals};
use berth_store::{Conn, sites};
use jiff::Timestamp;

use crate::App;
use crate::error::{Error, Result};

/// The most different reasons that are kept between two writes. There are far fewer, so more would mean a bug
/// elsewhere. The bound protects the memory.
const KEPT_MAX: usize = 10_000;
/// Time zones differ by whole quarters of an hour: within one quarter, each zone has only one date.
const QUARTER_S: i64 = 15 * 60;

/// The reasons for the refusals since the last write.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<HashMap<Reason, u64>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reason {
    site: SiteReference,
    quarter: i64,
    code: &'static str,
    rule: Option<Rule>,
}

/// The problem code of a refusal. None if the error is not a refusal: a refusal answers a request that was well-formed
/// and allowed, but could not be met.
pub fn code(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Conflict { .. } => "reservation.conflict",
        Error::NoRoom { .. } => "reservation.no_room",
        Error::Policy(_) => "policy.refused",
        Error::Blackout { .. } => "reservation.blackout",
        Error::NotActive { .. } => "reservation.status",
        Error::TooManyHolds => "reservation.too_many_holds",
        Error::TooManyWaiting { .. } => "workload.too_many_waiting",
        Error::InThePast(_) => "reservation.in_the_past",
        _ => return None,
    })
}

impl Tally {
    fn count(&self, site: &SiteReference, at: Timestamp, error: &Error) {
        let Some(code) = code(error) else {
            return;
        };
        let mut rules: Vec<Option<Rule>> = match error {
            Error::Policy(refusal) => {
                let rules = refusal.breaches.iter().map(|breach| Some(breach.rule));
                rules.collect()
            }
            _ => vec![None],
        };
        rules.sort_unstable();
        rules.dedup();
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in rules {
            let reason = Reason {
                site: site.clone(),
                quarter: at.as_second().div_euclid(QUARTER_S),
                code,
                rule,
            };
            if tally.len() < KEPT_MAX || tally.contains_key(&reason) {
                *tally.entry(reason).or_default() += 1;
            }
        }
    }

    fn take(&self) -> HashMap<Reason, u64> {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut tally)
    }

    fn put_back(&self, counted: HashMap<Reason, u64>) {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, count) in counted {
            *tally.entry(reason).or_default() += count;
        }
    }
}

impl App {
    /// Counts the answer to a booking if it is a refusal.
    pub(crate) fn tallied<T>(&self, site: &SiteReference, answer: Result<T>) -> Result<T> {
        if let Err(error) = &answer {
            self.refusals.count(site, self.now(), error);
        }
        answer
    }

    /// Adds the counts since the last write to the database.
    pub async fn write_refusals(&self) -> Result<()> {
        let counted = self.refusals.take();
        if counted.is_empty() {
            return Ok(());
        }
        let written = self.write_counted(&counted).await;
        if written.is_err() {
            self.refusals.put_back(counted);
        }
        written
    }

    async fn write_counted(&self, counted: &HashMap<Reason, u64>) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let mut known: HashMap<&SiteReference, Option<Site>> = HashMap::new();
        let mut rows: Vec<Refusals> = Vec::new();
        for (reason, count) in counted {
            if !known.contains_key(&reason.site) {
                known.insert(&reason.site, find(&mut tx, &reason.site).await?);
            }
            let Some(Some(site)) = known.get(&reason.site) else {
                continue;
            };
            let at = Timestamp::from_second(reason.quarter * QUARTER_S);
            let at = at.map_err(|error| Error::Internal(error.to_string()))?;
            rows.push(Refusals {
                site: site.id,
                day: site.time_zone.rules().to_datetime(at).date(),
                code: reason.code.to_owned(),
                rule: reason.rule.map(|rule| rule.as_str().to_owned()),
                count: *count,
            });
        }
        // All servers write in the same order, so that they never deadlock.
        rows.sort_by(|a, b| {
            (a.site, a.day, &a.code, &a.rule).cmp(&(b.site, b.day, &b.code, &b.rule))
        });
        for row in &rows {
            usage::add_refusals(&mut tx, row).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// The site of the request. None if it was renamed meanwhile.
async fn find(conn: &mut Conn, site: &SiteReference) -> Result<Option<Site>> {
    Ok(match site {
        Reference::Id(id) => sites::by_id(conn, *id).await?,
        Reference::Name(name) => sites::by_name(conn, name).await?,
    })
}
