//! Repartitions GPUs (MIG) step by step. Each step is a transaction of its own, under the controller's lease.
//!
//! A repartition first claims the slices to remove and the new slice, and takes them out of service, so nobody else is
//! promised them. The server then polls the backend until the repartition is done or refused. After a success, the old
//! slices leave the inventory. After a failure, the new slice leaves it, and everything is as before. A server that
//! takes over continues from the database row.

use berth_drivers::backend::{Fence, Progress, Trouble};
use berth_model::event::{Audience, EventKind};
use berth_model::recut::{CutOutcome, Recut};
use berth_model::{
    Claim, ClaimId, Holder, Name, RecutId, Resource, ResourceId, Span, Status, Take, Text,
};
use berth_store::leases::{self, Lease};
use berth_store::{Conn, Error as StoreError, claims, inventory, recuts, workloads};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::calls::in_time;
use super::carry::is_refused;
use super::plan::Plan;
use super::plan::cuts::{CUT_MAX, NewCut};
use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::reservations::Softer;

/// Pause after a repartition could not begin, or after its progress could not be read.
const BACK_OFF: SignedDuration = SignedDuration::from_secs(15);

impl App {
    /// Begins a repartition of one GPU, if that helps a waiting workload. Returns whether it did.
    pub(super) async fn cut_anew(&self, lease: &Lease, plan: &mut Plan) -> Result<bool> {
        if !self.backend.as_ref().is_some_and(|one| one.can_cut()) {
            return Ok(false);
        }
        while let Some(new) = plan.next_cut(self.now()) {
            let begun = match Box::pin(self.begin_cut(lease, &new)).await {
                Err(error) if is_refused(&error) => false,
                begun => begun?,
            };
            if begun {
                return Ok(true);
            }
            // Another change came first. The plan knows it after the pause.
            plan.cutting.rest(new.gpu.id, self.now() + BACK_OFF, None);
        }
        Ok(false)
    }

    async fn begin_cut(&self, lease: &Lease, new: &NewCut) -> Result<bool> {
        let now = self.now();
        let Ok(span) = Span::new(now, now + CUT_MAX) else {
            return Ok(false);
        };
        let site = new.gpu.site;
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        let workload = workloads::get_locked(&mut tx, site, new.workload.id).await?;
        let waits = workload.is_some_and(|known| known.waiting.first().is_some());
        if !waits || is_reserved(&mut tx, new, now).await? {
            return Ok(false);
        }
        let Some(slice) = slice(new, now) else {
            return Ok(false);
        };
        self.write_new_resource(&mut tx, By::SYSTEM, &slice).await?;
        for id in &new.gone {
            let gone = inventory::by_id(&mut tx, site, *id).await?;
            let Some(gone) = gone.filter(|gone| gone.status == Status::Active) else {
                return Ok(false);
            };
            let reason = slice.status_reason.clone();
            let written =
                self.write_status(&mut tx, By::SYSTEM, &gone, Status::Maintenance, reason);
            if !written.await? {
                return Ok(false);
            }
        }
        let all = std::iter::once(slice.id).chain(new.gone.iter().copied());
        let claim = |resource: ResourceId| {
            let (id, holder) = (ClaimId(fresh(now)), Holder::Workload(new.workload.id));
            Claim::firm(id, site, resource, span, Take::Exclusive, holder)
        };
        let wanted: Vec<Claim> = all.map(claim).collect();
        self.hold(&mut tx, &By::SYSTEM, &wanted, Softer::LeftAlone)
            .await?;
        let recut = Recut {
            id: RecutId(fresh(now)),
            site,
            workload: new.workload.id,
            gpu: new.gpu.id,
            slice: slice.id,
            gone: new.gone.clone(),
            profile: new.profile.clone(),
            at: new.at,
            claims: wanted.iter().map(|claim| claim.id).collect(),
            began: now,
            until: span.end(),
            ended: None,
        };
        recuts::insert(&mut tx, &recut).await?;
        self.tell_cut(&mut tx, EventKind::CutBegun, &recut).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(true)
    }

    /// Polls all repartitions in progress. Returns whether one of them is over.
    pub(super) async fn see_what_is_cut(&self, lease: &Lease, plan: &mut Plan) -> Result<bool> {
        let Some(backend) = &self.backend else {
            return Ok(false);
        };
        let mut is_over = false;
        let mut again: Option<Timestamp> = None;
        for recut in plan.cutting.live.clone() {
            let now = self.now();
            let later = now + BACK_OFF;
            let outcome = match in_time(backend.recut(&recut, Fence(lease.fence), now)).await {
                Ok(Progress::UnderWay { again: then }) => Err(then),
                Ok(Progress::Done) => Ok(CutOutcome::Done),
                Err(Trouble::Refused(why)) => {
                    tracing::warn!(%why, cut = %recut.id, "a GPU could not be cut; it stays as it is");
                    Ok(CutOutcome::Failed)
                }
                Err(Trouble::NoAnswer(why)) => {
                    tracing::warn!(%why, cut = %recut.id, "how far a GPU is cut is not known; asking again");
                    Err(later)
                }
                Err(Trouble::Unreachable) => Err(later),
                Err(Trouble::Fenced) => return Err(Error::Store(StoreError::Retry)),
            };
            let then = match outcome {
                Err(then) => Some(then),
                Ok(outcome) if Box::pin(self.end_cut(lease, &recut, outcome)).await? => {
                    is_over = true;
                    None
                }
                Ok(_) => Some(later),
            };
            again = again.into_iter().chain(then).min();
        }
        plan.cutting.again = again;
        Ok(is_over)
    }

    /// Ends a repartition. The old slices leave the inventory, or the new slice does after a failure. Returns whether
    /// this could be written. If a slice was promised just before it went out of service, everything stays until that
    /// is settled.
    async fn end_cut(&self, lease: &Lease, recut: &Recut, outcome: CutOutcome) -> Result<bool> {
        let now = self.now();
        let mut tx = self.store.begin().await?;
        leases::check(&mut tx, lease).await?;
        if !recuts::end(&mut tx, recut.id, now, outcome).await? {
            return Ok(true);
        }
        claims::release(&mut tx, &recut.claims, now).await?;
        let slice = std::slice::from_ref(&recut.slice);
        let (leave, serve) = match outcome {
            CutOutcome::Done => (recut.gone.as_slice(), slice),
            CutOutcome::Failed => (slice, recut.gone.as_slice()),
        };
        for id in leave {
            if let Some(gone) = inventory::by_id(&mut tx, recut.site, *id).await?
                && !self.write_off_resource(&mut tx, By::SYSTEM, &gone).await?
            {
                tracing::warn!(resource = %gone.name, cut = %recut.id, "a slice that is cut away is still promised");
                return Ok(false);
            }
        }
        for id in serve {
            // Keep a status that an admin set meanwhile.
            let known = inventory::by_id(&mut tx, recut.site, *id).await?;
            let known = known.filter(|known| known.status == Status::Maintenance);
            if let Some(known) = known
                && !self
                    .write_status(&mut tx, By::SYSTEM, &known, Status::Active, None)
                    .await?
            {
                return Ok(false);
            }
        }
        let ended = Recut {
            ended: Some((now, outcome)),
            ..recut.clone()
        };
        self.tell_cut(&mut tx, EventKind::CutEnded, &ended).await?;
        tx.commit().await?;
        self.written.notify_one();
        Ok(true)
    }

    /// The event's subject is the workload, because it holds the claims.
    async fn tell_cut(&self, conn: &mut Conn, kind: EventKind, recut: &Recut) -> Result<()> {
        let told = json!({
            "cut": recut.id, "workload": recut.workload, "gpu": recut.gpu, "slice": recut.slice, "gone": recut.gone,
            "profile": recut.profile, "until": recut.until, "outcome": recut.ended.map(|(_, outcome)| outcome),
        });
        let change = Change::new("cut", Some(recut.site), recut.workload);
        let change = change.tell_only(kind, Audience::Members, told);
        self.announce(conn, change).await
    }
}

/// Whether a slice to remove, or the whole GPU, is reserved now or later.
async fn is_reserved(conn: &mut Conn, new: &NewCut, now: Timestamp) -> Result<bool> {
    let Ok(ever) = Span::new(now, Timestamp::MAX) else {
        return Ok(false);
    };
    let held = claims::overlapping(conn, new.gpu.id, ever, None, u64::MAX >> 1).await?;
    let in_the_way = |claim: &Claim| {
        matches!(claim.holder, Holder::Reservation(_)) && !new.stays.contains(&claim.resource)
    };
    Ok(held.iter().any(in_the_way))
}

/// The new slice, out of service until it exists.
fn slice(new: &NewCut, now: Timestamp) -> Option<Resource> {
    let name = format!("{}.{}-{}", new.gpu.name, new.profile, new.at);
    let reason = format!(
        "being cut into {} for workload {}",
        new.profile, new.workload.number
    );
    Some(Resource {
        id: ResourceId(fresh(now)),
        site: new.gpu.site,
        parent: Some(new.gpu.id),
        type_id: new.kind,
        name: name.parse::<Name>().ok()?,
        title: None,
        attributes: new.attributes.clone(),
        facts: Default::default(),
        capacity: None,
        status: Status::Maintenance,
        status_reason: reason.parse::<Text>().ok(),
        version: 1,
    })
}
