//! Determines which approvals a booking needs, and whose decision counts.

use berth_engine::policy::{Accepted, Voice};
use berth_engine::rights::{Action, Standing};
use berth_model::policy::{Approver, Outcome, Part, Scope};
use berth_model::reservation::{ApprovalDecision, AskedApproval, Reservation};
use berth_store::{Conn, projects};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;
use crate::place::Place;

impl App {
    /// Marks the approvals that the caller may decide as decided by them.
    pub(super) async fn give_leave(
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

    /// The approvals that the caller may decide. Reads the caller's projects only if an approval names a project.
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
}

/// The approvals that the types' own `needs_approval` flags require, by the site's admins.
pub(super) fn asked_by_types(draft: &Reservation, directory: &Directory) -> Vec<AskedApproval> {
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

/// Whether a type's own flag requires this approval. An approval by a policy of that type always has a deadline.
pub(super) fn is_by_type(asked: &AskedApproval) -> bool {
    asked.decide_by.is_none()
}

pub(super) fn asked_by_policies(accepted: &Accepted) -> impl Iterator<Item = AskedApproval> {
    accepted.approvals.iter().map(|approval| AskedApproval {
        from: approval.from.clone(),
        approvers: approval.rule.approvers.clone(),
        deputies: approval.rule.deputies.clone(),
        decide_by: Some(approval.decide_by),
        otherwise: approval.otherwise,
        decision: None,
    })
}
