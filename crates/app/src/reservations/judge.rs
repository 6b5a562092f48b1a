//! What the policies of a site make of a booking: asked before the claim rule is.
//!
//! A booking that keeps them gets its terms from them: who must approve it, when it is released if nobody comes, how
//! long before and after it is held. The policies are kept in memory, and where a site has none nothing is looked up.
//! Where limits count, the person or the project is held still until the transaction ends, so that two requests at once
//! count each other.

use berth_engine::policy::{
    Accepted, Booking, Desk, Finding, LOOK_D, Ledger, Refusal, Rules, Voice,
};
use berth_engine::rights::{Action, Standing};
use berth_model::policy::{Approver, Length, Outcome, Part, Rule, Scope};
use berth_model::reservation::{
    ApprovalDecision, AskedApproval, CheckIn, Item as Held, Reservation, State,
};
use berth_model::site::Role;
use berth_model::{Claim, ClaimId, PersonId, ProjectId, Take};
use berth_store::inventory::wanted;
use berth_store::reservations::{self, Whose};
use berth_store::{Conn, projects};
use jiff::{SignedDuration, Timestamp};

use super::buffers::buffers;
use super::check::{self, Item, LENGTH_MAX};
use super::create::learn;
use crate::App;
use crate::calendar::split;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::policies::{Kept, booking, role_in, roles};

/// A week and a day: whatever the clocks do, all of a week lies this near to any moment of it.
const WEEK: SignedDuration = SignedDuration::from_hours(8 * 24);

impl App {
    /// Judges a drafted booking: sets its terms and the state it begins in, and adds the claims that hold its buffers.
    /// `directory` knows its resources, their types and its project.
    pub(super) async fn judge(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        directory: &Directory,
        draft: &mut Reservation,
        claims: &mut Vec<Claim>,
    ) -> Result<()> {
        let hold_until = draft.terms.decide_by;
        let mut approvals = asked_by_types(draft, directory);
        let kept = self.policies_of(conn, &place.site).await?;
        if !kept.asks_nothing {
            let role = self.role_of(conn, caller, place, draft.owner).await?;
            let booking = booking(draft, role, directory);
            let accepted = self
                .accepted(conn, place, &kept, &booking, draft.project)
                .await?;
            let terms = &mut draft.terms;
            (terms.set_up, terms.clean_up) = buffer_lengths(&booking.rules(&kept.policies));
            terms.check_in = accepted
                .release_at
                .map_or(CheckIn::NotAsked, CheckIn::Until);
            approvals.extend(asked_by_policies(&accepted));
        }
        // Whoever could give their leave gives it by booking.
        self.give_leave(conn, caller, place, &mut approvals).await?;
        draft.terms.approvals = approvals;
        draft.terms.wait_for_approvals(draft.span.start());
        draft.state = match (draft.state, draft.terms.asks_leave) {
            (State::Held, _) => {
                // It must be taken first; the time for deciding comes after that.
                draft.terms.decide_by = hold_until;
                State::Held
            }
            (_, true) => State::PendingApproval,
            (_, false) => State::Confirmed,
        };
        claims.extend(buffers(draft, self.now()));
        Ok(())
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "both sides of the change, and who makes it where"
    )]
    /// Judges a reservation that is to change from `before`, and brings its terms up to date. Giving something back is
    /// never refused, and what does not change what is held is not judged: policies leave what stands alone.
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
        if before.state == State::PendingApproval {
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
            .accepted(conn, place, &kept, &booking, after.project)
            .await?;
        let terms = &mut after.terms;
        (terms.set_up, terms.clean_up) = buffer_lengths(&booking.rules(&kept.policies));
        if !matches!(terms.check_in, CheckIn::Done(_)) {
            terms.check_in = accepted
                .release_at
                .map_or(CheckIn::NotAsked, CheckIn::Until);
        }
        let is_pending = before.state == State::PendingApproval;
        let mut approvals: Vec<AskedApproval> = asked_by_policies(&accepted).collect();
        for asked in &mut approvals {
            let earlier = before.terms.approvals.iter();
            let earlier = earlier.filter(|earlier| earlier.from == asked.from && !grows);
            asked.decision = earlier
                .filter_map(|earlier| earlier.decision.clone())
                .next();
        }
        let others = before.terms.approvals.iter().filter(|earlier| {
            let is_asked_again = approvals.iter().any(|asked| asked.from == earlier.from);
            !is_asked_again
        });
        let others = others.cloned().map(|earlier| AskedApproval {
            decision: earlier.decision.clone().filter(|_| !grows || !is_pending),
            ..earlier
        });
        let others: Vec<AskedApproval> = others.collect();
        if is_pending {
            approvals.extend(others);
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

    /// Judges what a hand-over changes: who has it. How long it is and when stands already.
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
            .look(conn, place, &kept, &booking, after.project)
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

    /// Every rule that holds for a booking, and what they come to.
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
        self.look(conn, place, &kept, &booking, wish.project).await
    }

    async fn accepted(
        &self,
        conn: &mut Conn,
        place: &Place,
        kept: &Kept,
        booking: &Booking,
        project: Option<ProjectId>,
    ) -> Result<Accepted> {
        let (_, verdict) = self.look(conn, place, kept, booking, project).await?;
        verdict.map_err(|refusal| Error::Policy(Box::new(refusal)))
    }

    async fn look(
        &self,
        conn: &mut Conn,
        place: &Place,
        kept: &Kept,
        booking: &Booking,
        project: Option<ProjectId>,
    ) -> Result<(Vec<Finding>, Result<Accepted, Refusal>)> {
        let now = self.now();
        let rules = booking.rules(&kept.policies);
        let calendar = self.calendar_of(conn, &place.site).await?;
        let counts = Counts::of(&rules, project);
        counts.hold(conn, booking.person).await?;
        // First only what decides; a refusal then looks further, for a time that would do.
        for reach in [Reach::Decide, Reach::Offer] {
            let standing = self
                .counted(
                    conn,
                    place,
                    &counts,
                    booking,
                    reach.time(&rules, booking, now),
                )
                .await?;
            let desk = Desk {
                rules: &rules,
                calendar: &calendar,
                ledger: &Ledger::beside(booking, &standing, &kept.policies, &calendar),
                now,
            };
            let verdict = desk.judge(booking);
            if verdict.is_ok() || counts == Counts::NOTHING || reach == Reach::Offer {
                return Ok((desk.explain(booking), verdict));
            }
        }
        Err(Error::Internal("a booking was judged by nobody".into()))
    }

    /// What stands of those who are counted, as far as it touches this time.
    async fn counted(
        &self,
        conn: &mut Conn,
        place: &Place,
        counts: &Counts,
        booking: &Booking,
        time: (Timestamp, Timestamp),
    ) -> Result<Vec<Booking>> {
        let mut found = Vec::new();
        let whose = [
            counts.person.then_some(Whose::Person(booking.person)),
            counts.project.map(Whose::Project),
        ];
        for whose in whose.into_iter().flatten() {
            found.extend(reservations::counted(conn, place.id(), whose, time, LENGTH_MAX).await?);
        }
        found.sort_by_key(|one| one.id);
        found.dedup_by_key(|one| one.id);
        let mut directory = Directory::with_site(&place.site);
        let mut standing = self
            .bookings(conn, place.id(), &found, &mut directory)
            .await?;
        for own in standing
            .iter_mut()
            .filter(|one| one.person == booking.person)
        {
            own.role = booking.role;
        }
        Ok(standing)
    }

    async fn role_of(
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

    /// Marks what the caller may decide as decided by them.
    async fn give_leave(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        approvals: &mut [AskedApproval],
    ) -> Result<()> {
        if approvals.is_empty() {
            return Ok(());
        }
        let voice = self.voice(conn, caller, place, approvals).await?;
        for asked in approvals.iter_mut() {
            if asked.is_open() && voice.counts_for(asked) {
                asked.decision = Some(ApprovalDecision {
                    outcome: Outcome::Approve,
                    by: caller.person.login.clone(),
                    at: self.now(),
                });
            }
        }
        Ok(())
    }

    /// What the caller's word is worth where approvals are asked for. Projects are looked up only where one is asked.
    pub(super) async fn voice(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        place: &Place,
        approvals: &[AskedApproval],
    ) -> Result<Voice> {
        let may_when_asked = place
            .may(caller, Action::DecideWhenAsked, true, "reservation")
            .is_ok();
        if !may_when_asked {
            return Ok(Voice::default());
        }
        let asks_projects = approvals
            .iter()
            .flat_map(|asked| asked.approvers.iter().chain(&asked.deputies))
            .any(|approver| matches!(approver, Approver::Project(_)));
        let projects = if asks_projects {
            projects::of_person(conn, Some(place.id()), caller.id()).await?
        } else {
            Vec::new()
        };
        Ok(Voice {
            is_site_admin: place.can(caller, Action::DecideReservation),
            is_global_admin: place.standing == Standing::GlobalAdmin,
            login: Some(caller.person.login.clone()),
            projects: projects.into_iter().map(|project| project.name).collect(),
        })
    }

    /// The resources that a test of policies names, as if they were held.
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

/// Whose bookings the rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    person: bool,
    project: Option<ProjectId>,
}

impl Counts {
    const NOTHING: Counts = Counts {
        person: false,
        project: None,
    };

    fn of(rules: &Rules, project: Option<ProjectId>) -> Self {
        Self {
            person: !rules.active_bookings.is_empty()
                || !rules.person_hours_per_week.is_empty()
                || rules.gap.is_some(),
            project: project.filter(|_| !rules.project_hours_per_week.is_empty()),
        }
    }

    /// Holds those who are counted still, always in this order.
    async fn hold(&self, conn: &mut Conn, person: PersonId) -> Result<()> {
        if self.person {
            reservations::hold_person(conn, person).await?;
        }
        if let Some(project) = self.project {
            reservations::hold_project(conn, project).await?;
        }
        Ok(())
    }
}

/// How far to look for what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// What the limits on this booking count.
    Decide,
    /// All that a time near it would meet, too.
    Offer,
}

impl Reach {
    fn time(self, rules: &Rules, booking: &Booking, now: Timestamp) -> (Timestamp, Timestamp) {
        let gap = rules.gap.as_ref().map_or(Length::ZERO, |gap| gap.value);
        let near = WEEK + gap.duration();
        let (mut from, mut to) = (booking.span.start() - near, booking.span.end() + near);
        if self == Reach::Offer {
            let far = near + SignedDuration::from_hours(24 * LOOK_D);
            (from, to) = (
                now.min(from),
                to.max(now + far).max(booking.span.end() + far),
            );
        }
        if !rules.active_bookings.is_empty() {
            (from, to) = (from.min(now), Timestamp::MAX);
        }
        (from, to)
    }
}

/// The approvals that the types' own flags ask for: the simple way, by the site's admins.
fn asked_by_types(draft: &Reservation, directory: &Directory) -> Vec<AskedApproval> {
    let items = draft.items.iter();
    let resources = items.filter_map(|item| directory.resources.get(&item.resource));
    let kinds = resources.filter_map(|resource| directory.types.get(&resource.type_id));
    let mut names: Vec<_> = kinds
        .filter(|kind| kind.needs_approval)
        .map(|kind| kind.name.clone())
        .collect();
    names.sort();
    names.dedup();
    let asked = |name| AskedApproval {
        from: Scope::Site(Part {
            resource_type: Some(name),
            ..Part::default()
        }),
        approvers: [Approver::SiteAdmins].into(),
        deputies: Default::default(),
        decide_by: None,
        otherwise: Outcome::Reject,
        decision: None,
    };
    names.into_iter().map(asked).collect()
}

fn asked_by_policies(accepted: &Accepted) -> impl Iterator<Item = AskedApproval> {
    accepted.approvals.iter().map(|approval| AskedApproval {
        from: approval.from.clone(),
        approvers: approval.rule.approvers.clone(),
        deputies: approval.rule.deputies.clone(),
        decide_by: Some(approval.decide_by),
        otherwise: approval.otherwise,
        decision: None,
    })
}

fn buffer_lengths(rules: &Rules) -> (Length, Length) {
    let length = |limit: &Option<berth_engine::policy::Limit<Length>>| {
        limit.as_ref().map_or(Length::ZERO, |limit| limit.value)
    };
    (length(&rules.buffer_before), length(&rules.buffer_after))
}

/// Who must be there by a while after the start still must, when the start moves.
fn shift_check_in(before: &Reservation, after: &mut Reservation) {
    if let CheckIn::Until(by) = before.terms.check_in {
        let by = by + after.span.start().duration_since(before.span.start());
        after.terms.check_in = match by < after.span.end() {
            true => CheckIn::Until(by),
            false => CheckIn::NotAsked,
        };
    }
}
