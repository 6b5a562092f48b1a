//! Checks whether a policy may be set: it must stay within the binding policies and must not contradict itself.

use berth_model::policy::{Length, Policy, Rule, Scope};

use super::rules::{Policies, Value, looser};

/// A value that is looser than the value of a binding policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {value} is looser than {bound} ({from}); {} accepted", self.accepts())]
pub struct Looser {
    /// The policy with this value.
    pub scope: Scope,
    pub rule: Rule,
    pub value: Value,
    /// The value of the binding policy, and that policy.
    pub bound: Value,
    pub from: Scope,
}

impl Looser {
    /// The values that could be set instead.
    pub fn accepts(&self) -> String {
        let bound = &self.bound;
        match self.rule {
            Rule::Notice | Rule::LengthMin | Rule::Gap | Rule::BufferBefore | Rule::BufferAfter => {
                format!("{bound} or more is")
            }
            Rule::Horizon
            | Rule::LengthMax
            | Rule::ActiveBookings
            | Rule::PersonHoursPerWeek
            | Rule::ProjectHoursPerWeek
            | Rule::CheckIn => format!("{bound} or less is"),
            Rule::LengthStep | Rule::StartStep => format!("multiples of {bound} are"),
            Rule::WhoMayBook => format!("{bound}, or fewer, are"),
            Rule::OpeningHours => format!("{bound}, or parts of it, are"),
            Rule::ClosedOnHolidays => format!("{bound} is"),
            Rule::Approval => "the same or a shorter length is".to_owned(),
        }
    }
}

/// Why a policy is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{}", .0.iter().map(Looser::to_string).collect::<Vec<_>>().join("; "))]
    Looser(Vec<Looser>),
    #[error(
        "length_min: at least {min} and, with what binds this policy, at most {max} leaves no length to book; {max} or less is accepted"
    )]
    NoLength { min: Length, max: Length },
}

impl Policies {
    /// Checks whether `policy` may be set for `scope`. A policy within a wider one, and every policy under the
    /// ceilings, may be equally strict or stricter. The result lists the values of narrower policies that are looser
    /// than the new policy. They are kept but have no effect there, since the tightest value holds.
    pub fn define(&self, scope: &Scope, policy: &Policy) -> Result<Vec<Looser>, Refused> {
        let mut too_loose = Vec::new();
        let mut overruled = Vec::new();
        for (other, standing) in self.all() {
            if binds(&other, scope) {
                too_loose.extend(compare(scope, policy, &other, standing));
            }
            if binds(scope, &other) {
                overruled.extend(compare(&other, standing, scope, policy));
            }
        }
        if !too_loose.is_empty() {
            return Err(Refused::Looser(too_loose));
        }
        let binding = self.all().filter(|(other, _)| binds(other, scope));
        let lengths = binding.map(|(_, standing)| standing).chain([policy]);
        let (min, max) = lengths.fold((None, None), |(min, max), each| {
            let shorter = [max, each.length_max].into_iter().flatten().min();
            (each.length_min.max(min), shorter)
        });
        match (min, max) {
            (Some(min), Some(max)) if min > max => Err(Refused::NoLength { min, max }),
            _ => Ok(overruled),
        }
    }

    fn all(&self) -> impl Iterator<Item = (Scope, &Policy)> {
        let site = self
            .site
            .iter()
            .map(|(part, policy)| (Scope::Site(part.clone()), policy));
        [
            (Scope::Ceilings, &self.ceilings),
            (Scope::Defaults, &self.defaults),
        ]
        .into_iter()
        .chain(site)
    }
}

fn compare<'a>(
    scope: &'a Scope,
    policy: &Policy,
    from: &'a Scope,
    bound: &Policy,
) -> impl Iterator<Item = Looser> + 'a {
    looser(policy, bound)
        .into_iter()
        .map(move |(rule, value, bound)| Looser {
            scope: scope.clone(),
            rule,
            value,
            bound,
            from: from.clone(),
        })
}

/// Whether `outer` binds `inner`. Defaults bind no other policy.
fn binds(outer: &Scope, inner: &Scope) -> bool {
    match (outer, inner) {
        (Scope::Ceilings, inner) => *inner != Scope::Ceilings,
        (Scope::Site(outer), Scope::Site(inner)) => outer != inner && outer.contains(inner),
        (Scope::Defaults, _) | (Scope::Site(_), _) => false,
    }
}
