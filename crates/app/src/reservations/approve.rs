//! Approvals: the approvers, their decisions, and the combined outcome.

use std::collections::{BTreeMap, BTreeSet};

use berth_engine::policy::{Approval, Voice, settle};
use berth_engine::rights::{Action, Standing};
use berth_model::policy::{ApprovalRule, Approver, Outcome};
use berth_model::reference::SiteReference;
use berth_model::reservation::{ApprovalDecision, AskedApproval, Reservation, State};
use berth_model::site::{Role, Site};
use berth_model::{Name, ReservationId, SiteId, Text};
use berth_store::{Conn, projects, reservations, sites};
use jiff::Timestamp;

use super::create::Booked;
use super::desk::Noted;
use super::look::{ReservationView, is_visible};
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::record::By;
use crate::transact::transact;
use crate::version;

/// More than anybody decides at once. The next request shows the rest.
const WAITING_MAX: u64 = 500;
const SITES_MAX: u64 = 10_000;

impl App {
    pub async fn approve_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
    ) -> Result<Booked> {
        self.decide_approval(caller, site, id, version, Outcome::Approve, None)
            .await
    }

    pub async fn reject_reservation(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        reason: Text,
    ) -> Result<Booked> {
        self.decide_approval(caller, site, id, version, Outcome::Reject, Some(reason))
            .await
    }

    /// Records one decision of an approver. It answers every open approval of this reservation that the caller may
    /// decide.
    async fn decide_approval(
        &self,
        caller: &Caller,
        site: &SiteReference,
        id: ReservationId,
        version: Option<u64>,
        outcome: Outcome,
        reason: Option<Text>,
    ) -> Result<Booked> {
        let decided = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeReservation).await?;
            let found = reservations::get_locked(&mut tx, place.id(), id).await?;
            let mut before = found.ok_or(Error::NotFound("reservation"))?;
            let voice = self.voice(&mut tx, caller, &place, &before.terms.approvals).await?;
            may_decide(caller, &place, &before, &voice)?;
            version::expect(version, before.version)?;
            match outcome {
                Outcome::Approve => before.state.approve()?,
                Outcome::Reject => before.state.reject()?,
            };
            let now = self.now();
            let as_it_was = before.clone();
            for asked in &mut before.terms.approvals {
                if asked.is_open() && voice.counts_for(asked) {
                    let by = caller.person.login.clone();
                    asked.decision = Some(ApprovalDecision { outcome, by, at: now });
                }
            }
            if before.terms != as_it_was.terms {
                before.terms.wait_for_approvals(before.span.start());
            } else if !before.terms.approvals.is_empty() {
                let needs = "you have decided already; it waits for the others who are asked".to_owned();
                return Err(Error::NotAllowed { needs });
            }
            let settled = match before.terms.approvals.is_empty() {
                true => Some(outcome),
                false => settled(&before, now),
            };
            let transition = match settled {
                Some(Outcome::Approve) => Some(before.state.approve()?),
                Some(Outcome::Reject) => Some(before.state.reject()?),
                None => None,
            };
            let after = match transition {
                Some(transition) => {
                    self.step(&mut tx, &By::from(caller), before, transition, reason.clone()).await?
                }
                None => {
                    let noted = Noted {
                        action: "reservation.approve_in_part",
                        kind: berth_model::event::EventKind::ReservationChanged,
                        reason: reason.clone(),
                    };
                    self.rewrite(&mut tx, caller, &as_it_was, before, noted).await?
                }
            };
            self.booked_now(&mut tx, &place, after).await
        });
        self.planned.notify_one();
        decided
    }

    /// Whether the caller is asked to approve a reservation. An approver may see it despite its privacy.
    pub(crate) async fn is_asked(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        about: &Reservation,
    ) -> Result<bool> {
        if about.terms.approvals.is_empty() {
            return Ok(false);
        }
        let approvals = &about.terms.approvals;
        let voice = self.voice(conn, caller, place, approvals).await?;
        Ok(approvals.iter().any(|asked| voice.counts_for(asked)))
    }

    /// The reservations that wait for the caller's decision, in all their sites, by start.
    pub async fn my_approvals(&self, caller: &Caller) -> Result<ReservationView> {
        caller.may(Action::SeeOwnAccount, true, "account")?;
        let mut reader = self.store.read().await?;
        let places = self.asked_places(&mut reader, caller).await?;
        let mine: BTreeMap<SiteId, BTreeSet<Name>> =
            projects::of_person(&mut reader, None, caller.id())
                .await?
                .into_iter()
                .fold(BTreeMap::new(), |mut mine, project| {
                    mine.entry(project.site).or_default().insert(project.name);
                    mine
                });
        let ids: Vec<SiteId> = places.keys().copied().collect();
        let mut waiting = reservations::pending(&mut reader, &ids, WAITING_MAX).await?;
        waiting.retain(|one| {
            let Some(place) = places.get(&one.site) else {
                return false;
            };
            let voice = Voice {
                is_site_admin: matches!(
                    place.standing,
                    Standing::SiteAdmin | Standing::GlobalAdmin
                ),
                is_global_admin: place.standing == Standing::GlobalAdmin,
                login: Some(caller.person.login.clone()),
                projects: mine.get(&one.site).cloned().unwrap_or_default(),
            };
            match one.terms.approvals.as_slice() {
                [] => voice.is_site_admin,
                asked => asked
                    .iter()
                    .any(|asked| asked.is_open() && voice.counts_for(asked)),
            }
        });
        let mut directory = Directory::default();
        for place in places.values() {
            directory.add_site(&place.site);
        }
        directory.learn_reservations(&mut reader, &waiting).await?;
        Ok(ReservationView {
            reservations: waiting,
            next: None,
            directory,
        })
    }

    /// The sites in which the caller may be asked to approve.
    pub(crate) async fn asked_places(
        &self,
        conn: &mut Conn,
        caller: &Caller,
    ) -> Result<BTreeMap<SiteId, Place>> {
        let found: Vec<(Site, Option<Role>)> = match caller.person.global_admin {
            true => sites::list_for(conn, caller.id(), true, "", SITES_MAX).await?,
            false => sites::memberships_of(conn, caller.id())
                .await?
                .into_iter()
                .map(|(site, member)| (site, Some(member.role)))
                .collect(),
        };
        let places = found
            .into_iter()
            .map(|(site, role)| (site.id, Place::of(caller, site, role)));
        Ok(places.collect())
    }
}

/// Whether the caller may decide about this reservation. The site's admins decide unless a policy asks somebody else.
fn may_decide(caller: &Caller, place: &Place, about: &Reservation, voice: &Voice) -> Result<()> {
    let approvals = &about.terms.approvals;
    if approvals.iter().any(|asked| voice.counts_for(asked)) {
        return Ok(());
    }
    if !is_visible(place, caller, about) {
        return Err(Error::NotFound("reservation"));
    }
    place.may(caller, Action::DecideReservation, false, "reservation")?;
    if approvals.is_empty() || about.state != State::PendingApproval {
        return Ok(());
    }
    let asked = approvals.iter().flat_map(|asked| &asked.approvers);
    let asked: BTreeSet<String> = asked.map(Approver::to_string).collect();
    let asked: Vec<String> = asked.into_iter().collect();
    let needs = format!("this is for {} to decide", asked.join(", "));
    Err(Error::NotAllowed { needs })
}

/// The outcome so far. An approval whose deadline passed without a decision counts with its default.
fn settled(about: &Reservation, now: Timestamp) -> Option<Outcome> {
    let approval = |asked: &AskedApproval| Approval {
        rule: ApprovalRule {
            longer_than: None,
            approvers: asked.approvers.clone(),
            deputies: asked.deputies.clone(),
            time_out: None,
        },
        from: asked.from.clone(),
        decide_by: asked.decide_by.unwrap_or(about.span.start()),
        otherwise: asked.otherwise,
    };
    let asked: Vec<(Approval, Option<Outcome>)> = about
        .terms
        .approvals
        .iter()
        .map(|asked| {
            let said = asked.decision.as_ref().map(|decision| decision.outcome);
            (approval(asked), said)
        })
        .collect();
    settle(asked.iter().map(|(approval, said)| (approval, *said)), now)
}
