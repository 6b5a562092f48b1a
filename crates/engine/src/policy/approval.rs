//! What a booking needs after it is made: who must approve it and by when, and when a no-show is released.

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
    /// The deadline of the decision.
    pub decide_by: Timestamp,
    /// The outcome if nobody decides by then.
    pub otherwise: Outcome,
}

/// A person who may be entitled to decide about an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Voice {
    pub is_site_admin: bool,
    /// Global admins set the policies of every site, so they may decide any approval.
    pub is_global_admin: bool,
    pub login: Option<LoginName>,
    /// The projects of the site that they belong to.
    pub projects: BTreeSet<Name>,
}

impl Voice {
    /// Whether this person is one of the approvers. If the policy names other approvers, the site's admins have no
    /// special right. Otherwise a site could exempt its bookings from an approval that a ceiling requires.
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
    /// The approvals for a booking of `span` requested now. Every policy that requires approval counts. So no
    /// narrower policy can exempt a booking from the approval that a wider one requires.
    pub fn approvals(&self, span: Span, now: Timestamp) -> Vec<Approval> {
        let asked = self.approval.iter().filter(|(_, rule)| {
            let limit = rule.longer_than.map(|length| length.duration());
            limit.is_none_or(|limit| limit < span.duration())
        });
        asked
            .map(|(scope, rule)| {
                let (decide_by, otherwise) = match rule.time_out {
                    // The booking must not start undecided, and silence is a rejection unless the policy defines
                    // otherwise.
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

    /// When a booking is released if nobody checks in. None if the booking is over by then: it simply ends.
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

/// The overall result of the approvals of a booking, given the decisions so far. One rejection rejects it; approval
/// needs all. None while a decision is missing before its deadline.
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
