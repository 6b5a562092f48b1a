//! Limits the disk usage of environments during their builds. The limit on a person's environments counts only finished
//! ones. Without this module, a build could fill the disk before it is finished.

use std::collections::HashMap;

use berth_drivers::environments::{Counted, Size};
use berth_model::PersonId;
use berth_model::environment::{Environment, EnvironmentState};
use berth_model::event::{Audience, EventKind};
use berth_store::environments;
use futures::{StreamExt, stream};

use super::recorded;
use crate::App;
use crate::authority::Authority;
use crate::error::Result;
use crate::record::{By, Change};

/// Bounds a pass, however many builds there are.
const ROUND_MAX: u64 = 1000;
/// Builds that are measured at the same time.
const AT_ONCE: usize = 2;

impl App {
    /// Ends the builds of this server that take their owners over the limit on environments.
    pub(crate) async fn bound_builds(&self, authority: Authority<'_>) -> Result<()> {
        let (Some(shelf), Some(limit)) = (self.shelf(), self.settings.environments_bytes_max)
        else {
            return Ok(());
        };
        let mut reader = self.store.read().await?;
        let unsettled = environments::unsettled(&mut reader, ROUND_MAX).await?;
        let building = |one: &Environment| one.state == EnvironmentState::Building;
        let mut builds = Vec::new();
        for one in unsettled.into_iter().filter(building) {
            if let Some(owner) = one.owner
                && self.is_ours(&mut reader, authority, &one).await?
            {
                builds.push((owner, one));
            }
        }
        drop(reader);
        let measured = stream::iter(builds)
            .map(async |(owner, one)| (owner, shelf.size(one.id).await, one))
            .buffered(AT_ONCE);
        let measured: Vec<_> = measured.collect().await;
        let mut taken: HashMap<PersonId, u64> = HashMap::new();
        for (owner, size, one) in measured {
            let size = match size {
                Ok(size) => size,
                Err(trouble) => {
                    tracing::warn!(%trouble, environment = %one.id, "a build could not be measured; trying again");
                    continue;
                }
            };
            let before = match taken.get(&owner) {
                Some(before) => *before,
                None => {
                    let mut reader = self.store.read().await?;
                    environments::bytes_of(&mut reader, owner).await?
                }
            };
            match why_ended(before, size, limit) {
                Some(why) => self.end_build(authority, &one, why).await?,
                None => {
                    taken.insert(owner, before.saturating_add(size.bytes));
                }
            }
        }
        Ok(())
    }

    async fn end_build(
        &self,
        authority: Authority<'_>,
        one: &Environment,
        why: String,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        authority.check(&mut tx).await?;
        let Some(before) = environments::get_locked(&mut tx, one.id).await? else {
            return Ok(());
        };
        // It may have been settled or retired meanwhile.
        if before.state != EnvironmentState::Building {
            return Ok(());
        }
        if let Some(workload) = before.workload {
            let workload = (before.site, workload);
            let reason = why.parse().ok();
            self.cancel_inside(&mut tx, By::SYSTEM, workload, reason)
                .await?;
        }
        let after = Environment {
            state: EnvironmentState::Failed,
            trouble: Some(why),
            settled_at: Some(self.now()),
            ..before.clone()
        };
        environments::update(&mut tx, &after).await?;
        let change = Change::new("environment.settle", Some(before.site), before.id)
            .before(recorded(&before))
            .after(recorded(&after))
            .tell(EventKind::EnvironmentChanged, Audience::Members);
        self.record(&mut tx, By::SYSTEM, change).await?;
        tx.commit().await?;
        self.written.notify_one();
        self.submitted.notify_one();
        Ok(())
    }
}

/// Message to the owner, if the build has to end. `before` is the size of the owner's other environments.
fn why_ended(before: u64, size: Size, limit: u64) -> Option<String> {
    let all = before.saturating_add(size.bytes);
    let mib = |bytes: u64| bytes >> 20;
    if all > limit {
        return Some(format!(
            "it was ended, because with it your environments take {} MiB and their limit is {} MiB: remove one that you no longer need, or ask for less",
            mib(all),
            mib(limit)
        ));
    }
    (size.counted == Counted::Uncountable).then(|| {
        "it was ended, because it has so many files or so deep folders that it cannot be measured"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_limit_or_cannot_be_measured_is_ended_and_what_takes_long_is_not() {
        let why = |bytes, counted| why_ended(5 << 20, Size { bytes, counted }, 10 << 20);
        assert_eq!(why(5 << 20, Counted::All), None);
        assert_eq!(why(5 << 20, Counted::InPart), None);
        let said = why((5 << 20) + 1, Counted::InPart).expect("it is too much");
        assert!(
            said.contains("take 10 MiB and their limit is 10 MiB"),
            "{said}"
        );
        assert!(why(0, Counted::Uncountable).is_some());
    }
}
