//! Limits the waiting workloads of one person, so nobody floods a site's queue.
//!
//! Counting before every submission would cost more than the submission. So the last count is kept, and each submission
//! through this server adds one. For these submissions the count is never too low. It is renewed when it is old, and
//! before a submission is refused. With several servers, a person may get slightly past the limit.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use berth_model::{PersonId, SiteId};
use berth_store::{Conn, workloads};
use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Result};

/// For this long, the count misses what the person submits through other servers.
const KEPT: SignedDuration = SignedDuration::from_mins(1);
/// Bounds the memory: with more people than this, all counts are dropped.
const PEOPLE_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Crowd(Mutex<HashMap<(SiteId, PersonId), Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Timestamp,
    at_most: u64,
}

impl Crowd {
    /// Counts one more waiting workload of this person, or refuses it if there are `most` already.
    pub async fn join(
        &self,
        conn: &mut Conn,
        (site, person): (SiteId, PersonId),
        most: u32,
        now: Timestamp,
    ) -> Result<()> {
        if self.add(site, person, most, now) {
            return Ok(());
        }
        let at_most = workloads::waiting_of(conn, site, person).await?;
        {
            let mut known = self.known();
            if known.len() >= PEOPLE_MAX {
                known.clear();
            }
            known.insert((site, person), Counted { at: now, at_most });
        }
        match self.add(site, person, most, now) {
            true => Ok(()),
            false => Err(Error::TooManyWaiting { most }),
        }
    }

    /// Counts one more if a recent count leaves room for it. Returns whether it did.
    fn add(&self, site: SiteId, person: PersonId, most: u32, now: Timestamp) -> bool {
        let mut known = self.known();
        let counted = known.get_mut(&(site, person));
        let fresh = counted.filter(|counted| counted.at.duration_until(now) < KEPT);
        let open = fresh.filter(|counted| counted.at_most < u64::from(most));
        open.map(|counted| counted.at_most += 1).is_some()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(SiteId, PersonId), Counted>> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
