//! How much of one person's waits, so that nobody floods a site's queue.
//!
//! To count before every submission would cost more than the submission. So what was counted is kept, with everything
//! submitted here since added to it: never less than the truth for what came through this server, and counted anew
//! before anybody is refused, or when it is old. Through several servers somebody may get a little over their most.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use berth_model::{PersonId, SiteId};
use berth_store::{Conn, workloads};
use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Result};

/// For so long what others submitted for the same person elsewhere is not seen.
const KEPT: SignedDuration = SignedDuration::from_mins(1);
/// More than this many people are not remembered: a bound on memory.
const PEOPLE_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Crowd(Mutex<HashMap<(SiteId, PersonId), Counted>>);

#[derive(Debug, Clone, Copy)]
struct Counted {
    at: Timestamp,
    at_most: u64,
}

impl Crowd {
    /// Counts one more of this person, unless that were more than they may have.
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

    /// Whether there is room for one more as far as is known.
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
