//! What follows once a booking is made: who must approve it and until when, and when a no-show is released.

use std::collections::BTreeSet;

use berth_model::policy::{ApprovalRule, Approver, Outcome, Scope};
use berth_model::reservation::AskedApproval;
use berth_model::{LoginName, Name, Span};
use jiff::Timestamp;

use super::rules::Rules;

/// An approval that a booking needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub rule: ApprovalRule,
    pub from: Scope,
    /// The latest time of a decision.
    pub decide_by: Timestamp,
    /// What counts as decided when nobody did by then.
    pub otherwise: Outcome,
}

/// Somebody whose word may count where approval is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Voice {
    pub is_site_admin: bool,
    /// They set what binds every site, so they may decide whatever is asked.
    pub is_global_admin: bool,
    pub login: Option<LoginName>,
    /// The projects of the site that they are in.
    pub projects: BTreeSet<Name>,
}

impl Voice {
    /// Whether they are among those who are asked. The admins of a site are no more than others where the policy asks
    /// somebody else: otherwise a site could spare its bookings an approval that a ceiling asks for.
    pub fn counts_for(&self, asked: &AskedApproval) -> bool {
        let is_asked = |approver: &Approver| match approver {
            Approver::SiteAdmins => self.is_site_admin,
            Approver::Project(name) => self.projects.contains(name),
            Approver::Person(login) => self.login.as_ref() == Some(login),
        };
        self.is_global_admin || asked.approvers.iter().chain(&asked.deputies).any(is_asked)
    }
}

impl Rules {
    /// What a booking of `span` that is asked for now needs. Every policy that asks for approval is heard, so
    /// that no narrower one can spare a booking the approval that a wider one asks for.
    pub fn approvals(&self, span: Span, now: Timestamp) -> Vec<Approval> {
        let asked = self.approval.iter().filter(|(_, rule)| {
            let limit = rule.longer_than.map(|length| length.duration());
            limit.is_none_or(|limit| limit < span.duration())
        });
        asked
            .map(|(scope, rule)| {
                let (decide_by, otherwise) = match rule.time_out {
                    // It must not start undecided, and silence is no yes unless the policy says so.
                    None => (span.start(), Outcome::Reject),
                    Some(time_out) => {
                        let after = now + time_out.after.duration();
                        (after.min(span.start()), time_out.outcome)
                    }
                };
                Approval {
                    rule: rule.clone(),
                    from: scope.clone(),
                    decide_by,
                    otherwise,
                }
            })
            .collect()
    }

    /// When a booking is released if nobody checks in. One that is over by then simply ends.
    pub fn release_at(&self, span: Span) -> Option<Timestamp> {
        let limit = self.check_in.as_ref()?;
        let release = span.start() + limit.value.duration();
        (release < span.end()).then_some(release)
    }

    /// Whether a booking is a no-show by now.
    pub fn is_no_show(&self, span: Span, checked_in: Option<Timestamp>, now: Timestamp) -> bool {
        let release = self.release_at(span);
        release.is_some_and(|release| release <= now && checked_in.is_none_or(|at| release < at))
    }
}

/// What the approvals of a booking come to, each with what was decided so far: one no is a no, and a yes needs
/// all. None while a decision is missing whose time has not run out.
pub fn settle<'a>(
    approvals: impl IntoIterator<Item = (&'a Approval, Option<Outcome>)>,
    now: Timestamp,
) -> Option<Outcome> {
    let mut all = Some(Outcome::Approve);
    for (approval, decided) in approvals {
        let in_time = now < approval.decide_by;
        match decided.or((!in_time).then_some(approval.otherwise)) {
            Some(Outcome::Reject) => return Some(Outcome::Reject),
            Some(Outcome::Approve) => {}
            None => all = None,
        }
    }
    all
}
