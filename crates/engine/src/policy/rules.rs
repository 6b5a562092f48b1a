//! Combines the policies of many scopes into the rules for one booking. Each rule knows which policies it comes from.
//!
//! How policies combine:
//! - The policies of a site that cover the booking apply together: for each rule, the tightest value.
//! - If none of them sets a rule, the global default applies. So a site replaces a default, tighter or looser.
//! - The global ceilings always apply. A site can tighten them and never loosen them.
//! - A booking of several types obeys the rules of each.
//!
//! Limits that count bookings (their number, their hours) and required approvals apply once per policy instead: forty
//! hours in the site and ten on its GPU nodes are two limits, and both apply.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use berth_model::Name;
use berth_model::policy::{
    ApprovalRule, Length, OpeningHours, Part, Policy, Rule, Scope, Step, Who,
};
use berth_model::site::Role;

/// A value of one policy, or of several policies that are only together so tight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    pub value: T,
    /// In order, without duplicates, never empty.
    pub from: Vec<Scope>,
}

/// The value of a rule, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Length(Length),
    /// A length that is printed in hours, of any size.
    Hours(Length),
    Step(Step),
    Count(u32),
    Flag(bool),
    Who(Who),
    OpeningHours(OpeningHours),
    Approval(ApprovalRule),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Length(length) => length.fmt(f),
            Value::Hours(length) => match (length.minutes() / 60, length.minutes() % 60) {
                (hours, 0) => write!(f, "{hours} h"),
                (hours, minutes) => write!(f, "{hours} h {minutes} min"),
            },
            Value::Step(step) => step.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Flag(flag) => f.write_str(if *flag { "yes" } else { "no" }),
            Value::Who(who) => who.fmt(f),
            Value::OpeningHours(hours) => hours.fmt(f),
            Value::Approval(rule) => rule.fmt(f),
        }
    }
}

/// All policies that can apply to the bookings of one site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    pub ceilings: Policy,
    pub defaults: Policy,
    pub site: BTreeMap<Part, Policy>,
}

impl Policies {
    pub fn new(policies: impl IntoIterator<Item = (Scope, Policy)>) -> Policies {
        let mut all = Policies::default();
        for (scope, policy) in policies {
            all.set(scope, policy);
        }
        all
    }

    pub fn set(&mut self, scope: Scope, policy: Policy) {
        match scope {
            Scope::Ceilings => self.ceilings = policy,
            Scope::Defaults => self.defaults = policy,
            Scope::Site(part) => {
                self.site.insert(part, policy);
            }
        }
    }

    /// The rules for a booking with resources of each of `types`. Without types, the rules for all types.
    pub fn rules<'a>(
        &self,
        types: impl IntoIterator<Item = &'a Name>,
        role: Role,
        project: Option<&Name>,
    ) -> Rules {
        let of_type = |name| self.rules_of_type(name, role, project);
        let each = types.into_iter().map(|name| of_type(Some(name)));
        let all = each.reduce(Rules::and);
        all.unwrap_or_else(|| of_type(None))
    }

    fn rules_of_type(&self, of_type: Option<&Name>, role: Role, project: Option<&Name>) -> Rules {
        // Each combination of type, project and role, where each may be unset, is one part to look up.
        let with_none = |name: Option<&Name>| BTreeSet::from([None, name.cloned()]);
        let mut site = Rules::default();
        for resource_type in with_none(of_type) {
            for project in with_none(project) {
                for role in [None, Some(role)] {
                    let part = Part {
                        resource_type: resource_type.clone(),
                        role,
                        project: project.clone(),
                    };
                    if let Some(policy) = self.site.get(&part) {
                        site = site.and(Rules::of(policy, &Scope::Site(part)));
                    }
                }
            }
        }
        site.or(Rules::of(&self.defaults, &Scope::Defaults))
            .and(Rules::of(&self.ceilings, &Scope::Ceilings))
    }
}

/// Returns the tighter of two values. If neither is tighter, it returns their intersection.
fn tighter<T: PartialEq>(a: Limit<T>, b: Limit<T>, meet: fn(&T, &T) -> T) -> Limit<T> {
    let value = meet(&a.value, &b.value);
    match (value == a.value, value == b.value) {
        (true, false) => a,
        (false, true) => b,
        // It names the wider scope: changing the narrower one would not help.
        (true, true) if a.from <= b.from => a,
        (true, true) => b,
        (false, false) => {
            let from: BTreeSet<Scope> = a.from.into_iter().chain(b.from).collect();
            let from = from.into_iter().collect();
            Limit { value, from }
        }
    }
}

/// The entries of both maps; for a policy in both, the tighter value.
fn both<T>(
    mut a: BTreeMap<Scope, T>,
    b: BTreeMap<Scope, T>,
    meet: fn(&T, &T) -> T,
) -> BTreeMap<Scope, T> {
    for (scope, value) in b {
        match a.entry(scope) {
            Entry::Occupied(mut known) => {
                let tighter = meet(known.get(), &value);
                known.insert(tighter);
            }
            Entry::Vacant(new) => {
                new.insert(value);
            }
        }
    }
    a
}

fn least<T: Ord + Copy>(a: &T, b: &T) -> T {
    *a.min(b)
}

fn most<T: Ord + Copy>(a: &T, b: &T) -> T {
    *a.max(b)
}

/// Two approvals both apply, so nothing needs merging. The comparison considers only which bookings they cover.
fn more_often(a: &ApprovalRule, b: &ApprovalRule) -> ApprovalRule {
    let longer_than = a.longer_than.min(b.longer_than);
    ApprovalRule {
        longer_than,
        ..b.clone()
    }
}

/// One table of all rules: the field, its type, how two values of it combine, and how it is displayed. It generates
/// the combined rules, their combination, and the comparison of one policy with another.
macro_rules! table {
    (
        tightest { $($field:ident: $type:ty, $meet:expr, $rule:ident, $value:ident;)* }
        each { $($each:ident: $each_type:ty, $each_meet:expr, $each_rule:ident, $each_value:ident;)* }
    ) => {
        /// The rules for a booking.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Rules {
            $(pub $field: Option<Limit<$type>>,)*
            $(pub $each: BTreeMap<Scope, $each_type>,)*
        }

        impl Rules {
            /// The rules of one policy alone.
            pub fn of(policy: &Policy, scope: &Scope) -> Rules {
                Rules {
                    $($field: policy.$field.clone().map(|value| Limit { value, from: vec![scope.clone()] }),)*
                    $($each: policy.$each.iter().map(|value| (scope.clone(), value.clone())).collect(),)*
                }
            }

            /// Both apply.
            pub fn and(self, other: Rules) -> Rules {
                Rules {
                    $($field: match (self.$field, other.$field) {
                        (Some(a), Some(b)) => Some(tighter(a, b, $meet)),
                        (one, None) | (None, one) => one,
                    },)*
                    $($each: both(self.$each, other.$each, $each_meet),)*
                }
            }

            /// `other` applies where `self` sets nothing.
            fn or(self, other: Rules) -> Rules {
                Rules {
                    $($field: self.$field.or(other.$field),)*
                    $($each: if self.$each.is_empty() { other.$each } else { self.$each },)*
                }
            }

            /// Every rule with its value and its scopes.
            pub fn list(&self) -> Vec<(Rule, Value, Vec<Scope>)> {
                let mut all = Vec::new();
                $(if let Some(limit) = &self.$field {
                    all.push((Rule::$rule, Value::$value(limit.value.clone()), limit.from.clone()));
                })*
                $(for (scope, value) in &self.$each {
                    all.push((Rule::$each_rule, Value::$each_value(value.clone()), vec![scope.clone()]));
                })*
                all.sort_by_key(|(rule, _, _)| *rule);
                all
            }
        }

        /// The values of `inner` that are looser than in `outer`: the rule, and both values.
        pub(super) fn looser(inner: &Policy, outer: &Policy) -> Vec<(Rule, Value, Value)> {
            let mut found = Vec::new();
            $(if let (Some(ours), Some(theirs)) = (&inner.$field, &outer.$field) {
                let meet: fn(&$type, &$type) -> $type = $meet;
                if meet(theirs, ours) != *ours {
                    found.push((Rule::$rule, Value::$value(ours.clone()), Value::$value(theirs.clone())));
                }
            })*
            $(if let (Some(ours), Some(theirs)) = (&inner.$each, &outer.$each) {
                let meet: fn(&$each_type, &$each_type) -> $each_type = $each_meet;
                if meet(theirs, ours) != *ours {
                    found.push((
                        Rule::$each_rule,
                        Value::$each_value(ours.clone()),
                        Value::$each_value(theirs.clone()),
                    ));
                }
            })*
            found.sort_by_key(|(rule, _, _)| *rule);
            found
        }
    };
}

table! {
    tightest {
        who_may_book: Who, Who::and, WhoMayBook, Who;
        notice: Length, most, Notice, Length;
        horizon: Length, least, Horizon, Length;
        length_min: Length, most, LengthMin, Length;
        length_max: Length, least, LengthMax, Length;
        length_step: Step, |a, b| a.and(*b), LengthStep, Step;
        start_step: Step, |a, b| a.and(*b), StartStep, Step;
        opening_hours: OpeningHours, OpeningHours::and, OpeningHours, OpeningHours;
        closed_on_holidays: bool, most, ClosedOnHolidays, Flag;
        gap: Length, most, Gap, Length;
        buffer_before: Length, most, BufferBefore, Length;
        buffer_after: Length, most, BufferAfter, Length;
        check_in: Length, least, CheckIn, Length;
    }
    each {
        active_bookings: u32, least, ActiveBookings, Count;
        person_hours_per_week: Length, least, PersonHoursPerWeek, Hours;
        project_hours_per_week: Length, least, ProjectHoursPerWeek, Hours;
        approval: ApprovalRule, more_often, Approval, Approval;
    }
}
