//! Applies the policies of a site to a booking, before the claim rule.
//!
//! An accepted booking gets its terms from the policies: its approvals, its release on a no-show, and its buffers. The
//! policies are cached in memory, so a site without policies causes no lookup.

use berth_engine::policy::{Accepted, Booking, Finding, Refusal, Rules};
use berth_engine::rights::Standing;
use berth_model::policy::{Approver, Length, Rule};
use berth_model::reservation::{AskedApproval, CheckIn, Item as Held, Reservation, State};
use berth_model::site::Role;
use berth_model::{Claim, ClaimId, PersonId, ProjectId, Take};
use berth_store::Conn;
use berth_store::inventory::wanted;

use super::buffers::buffers;
use super::check::{self, Item};
use super::create::learn;
use super::leave::{asked_by_policies, asked_by_types, is_by_type};
use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::policies::{Kept, booking, role_in, roles};

impl App {
    /// Judges a drafted booking: sets its terms and its first state, and adds the claims for its buffers. `directory`
    /// knows its resources, their types and its project.
    pub(crate) async fn judge(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        directory: &Directory,
        draft: &mut Reservation,
        claims: &mut Vec<Claim>,
    ) -> Result<()> {
        self.judge_beside(conn, caller, place, directory, &[], (draft, claims))
            .await
    }

    /// Judges one of several bookings that are made together. Earlier ones in `beside`, which are not written yet,
    /// count like existing bookings.
    pub(super) async fn judge_beside(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        directory: &Directory,
        beside: &[Reservation],
        (draft, claims): (&mut Reservation, &mut Vec<Claim>),
    ) -> Result<()> {
        self.expect_open(conn, caller, place, draft.span).await?;
        let hold_until = draft.terms.decide_by;
        let mut approvals = asked_by_types(draft, directory);
        let kept = self.policies_of(conn, &place.site).await?;
        if !kept.asks_nothing {
            let role = self.role_of(conn, caller, place, draft.owner).await?;
            let booking = booking(draft, role, directory);
            let accepted = self
                .accepted(conn, place, &kept, &booking, draft.project, beside)
                .await?;
            let terms = &mut draft.terms;
            (terms.set_up, terms.clean_up) = buffer_lengths(&booking.rules(&kept.policies));
            terms.check_in = accepted
                .release_at
                .map_or(CheckIn::NotAsked, CheckIn::Until);
            approvals.extend(asked_by_policies(&accepted));
        }
        // A caller who may approve the booking approves it by booking.
        self.give_leave(conn, caller, place, &mut approvals).await?;
        draft.terms.approvals = approvals;
        draft.terms.wait_for_approvals(draft.span.start());
        draft.state = match (draft.state, draft.terms.asks_leave) {
            (State::Held, _) => {
                // A hold must be accepted first; the deadline for approvals comes after that.
                draft.terms.decide_by = hold_until;
                State::Held
            }
            (_, true) => State::PendingApproval,
            (_, false) => State::Confirmed,
        };
        claims.extend(buffers(draft, self.now()));
        Ok(())
    }

    /// Judges a reservation that changes from `before`, and updates its terms. A change that only gives back is never
    /// refused. A change that neither grows the claims nor names another project is not judged, because policies do not
    /// affect existing bookings.
    #[expect(
        clippy::too_many_arguments,
        reason = "both sides of the change, and who makes it where"
    )]
    pub(super) async fn judge_change(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        directory: &Directory,
        before: &Reservation,
        after: &mut Reservation,
        grows: bool,
    ) -> Result<()> {
        shift_check_in(before, after);
        let is_pending = before.state == State::PendingApproval;
        let mut by_types = Vec::new();
        if is_pending {
            // A resource that was added may be of a type that needs its own approval.
            by_types = asked_by_types(after, directory);
            by_types.retain(|new| {
                let mut known = before.terms.approvals.iter();
                !known.any(|known| is_by_type(known) && known.from == new.from)
            });
            self.give_leave(conn, caller, place, &mut by_types).await?;
            after.terms.approvals.extend(by_types.clone());
            after.terms.wait_for_approvals(after.span.start());
        }
        let kept = self.policies_of(conn, &place.site).await?;
        if kept.asks_nothing || !(grows || before.project != after.project) {
            return Ok(());
        }
        let role = self.role_of(conn, caller, place, after.owner).await?;
        let booking = Booking {
            stands_from: Some(before.span.start()),
            ..booking(after, role, directory)
        };
        let accepted = self
            .accepted(conn, place, &kept, &booking, after.project, &[])
            .await?;
        let terms = &mut after.terms;
        (terms.set_up, terms.clean_up) = buffer_lengths(&booking.rules(&kept.policies));
        if !matches!(terms.check_in, CheckIn::Done(_)) {
            terms.check_in = accepted
                .release_at
                .map_or(CheckIn::NotAsked, CheckIn::Until);
        }
        let mut approvals: Vec<AskedApproval> = asked_by_policies(&accepted).collect();
        for asked in &mut approvals {
            let earlier = before.terms.approvals.iter();
            let earlier = earlier
                .filter(|earlier| earlier.from == asked.from && !is_by_type(earlier) && !grows);
            asked.decision = earlier
                .filter_map(|earlier| earlier.decision.clone())
                .next();
        }
        let others = before.terms.approvals.iter().filter(|earlier| {
            let is_asked_again = approvals.iter().any(|asked| asked.from == earlier.from);
            is_by_type(earlier) || !is_asked_again
        });
        let others = others.cloned().map(|earlier| AskedApproval {
            decision: earlier.decision.clone().filter(|_| !grows || !is_pending),
            ..earlier
        });
        let others: Vec<AskedApproval> = others.collect();
        if is_pending {
            approvals.extend(others);
            approvals.extend(by_types);
            after.terms.approvals = approvals;
            after.terms.wait_for_approvals(after.span.start());
            return Ok(());
        }
        self.give_leave(conn, caller, place, &mut approvals).await?;
        if let Some(open) = approvals.iter().find(|asked| asked.is_open()) {
            let who: Vec<String> = open.approvers.iter().map(Approver::to_string).collect();
            let needs = format!(
                "this needs approval by {} ({}): ask them to change it, or make a new reservation",
                who.join(" or "),
                open.from
            );
            return Err(Error::NotAllowed { needs });
        }
        approvals.extend(others);
        after.terms.approvals = approvals;
        Ok(())
    }

    /// Judges the new owner in a hand-over. The length and the time were judged before.
    pub(super) async fn judge_hand_over(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        after: &Reservation,
    ) -> Result<()> {
        let kept = self.policies_of(conn, &place.site).await?;
        if kept.asks_nothing {
            return Ok(());
        }
        let mut directory = Directory::with_site(&place.site);
        directory
            .learn_reservations(conn, std::slice::from_ref(after))
            .await?;
        let role = self.role_of(conn, caller, place, after.owner).await?;
        let booking = Booking {
            stands_from: Some(after.span.start()),
            ..booking(after, role, &directory)
        };
        let (findings, _) = self
            .look(conn, place, &kept, &booking, after.project, &[])
            .await?;
        let about_the_person = [
            Rule::WhoMayBook,
            Rule::ActiveBookings,
            Rule::PersonHoursPerWeek,
            Rule::Gap,
        ];
        let breaches: Vec<_> = findings
            .into_iter()
            .filter(|finding| about_the_person.contains(&finding.rule))
            .flat_map(|finding| finding.breaches)
            .collect();
        if breaches.is_empty() {
            return Ok(());
        }
        Err(Error::Policy(Box::new(Refusal {
            breaches,
            instead: None,
        })))
    }

    /// Every rule that applies to a booking, and the verdict.
    pub(crate) async fn examine(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        directory: &Directory,
        wish: &Reservation,
    ) -> Result<(Vec<Finding>, Result<Accepted, Refusal>)> {
        let kept = self.policies_of(conn, &place.site).await?;
        let role = self.role_of(conn, caller, place, wish.owner).await?;
        let booking = booking(wish, role, directory);
        self.look(conn, place, &kept, &booking, wish.project, &[])
            .await
    }

    async fn accepted(
        &self,
        conn: &mut Conn,
        place: &Place,
        kept: &Kept,
        booking: &Booking,
        project: Option<ProjectId>,
        beside: &[Reservation],
    ) -> Result<Accepted> {
        let (_, verdict) = self
            .look(conn, place, kept, booking, project, beside)
            .await?;
        verdict.map_err(|refusal| Error::Policy(Box::new(refusal)))
    }

    pub(super) async fn role_of(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        person: PersonId,
    ) -> Result<Role> {
        if person != caller.id() {
            let roles = roles(conn, place.id(), [person].into()).await?;
            return Ok(role_in(&roles, person));
        }
        Ok(match place.standing {
            Standing::SiteAdmin | Standing::GlobalAdmin => Role::SiteAdmin,
            Standing::Member | Standing::Outsider(_) => Role::Member,
        })
    }

    /// The resources that a policy test names, as if they were held.
    pub(crate) async fn looked_up(
        &self,
        conn: &mut Conn,
        place: &Place,
        items: &[Item],
        directory: &mut Directory,
    ) -> Result<Vec<Held>> {
        let references: Vec<_> = items.iter().map(|item| item.resource.clone()).collect();
        let (ids, names) = split(&references);
        let found = wanted(conn, place.id(), ids, names).await?;
        let matched = check::matched(items, &found)?;
        let resources: Vec<_> = matched.iter().map(|(wanted, _)| *wanted).collect();
        learn(directory, &resources);
        let held = |(wanted, take): &(&berth_store::inventory::Wanted, Take)| Held {
            resource: wanted.resource.id,
            take: *take,
            claim: ClaimId(fresh(self.now())),
        };
        Ok(matched.iter().map(held).collect())
    }
}

pub(super) fn buffer_lengths(rules: &Rules) -> (Length, Length) {
    let length = |limit: &Option<berth_engine::policy::Limit<Length>>| {
        limit.as_ref().map_or(Length::ZERO, |limit| limit.value)
    };
    (length(&rules.buffer_before), length(&rules.buffer_after))
}

/// Moves the check-in deadline along with the start.
fn shift_check_in(before: &Reservation, after: &mut Reservation) {
    if let CheckIn::Until(by) = before.terms.check_in {
        let by = by + after.span.start().duration_since(before.span.start());
        after.terms.check_in = match by < after.span.end() {
            true => CheckIn::Until(by),
            false => CheckIn::NotAsked,
        };
    }
}
