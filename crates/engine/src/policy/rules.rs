//! From the policies of many scopes to the rules for one booking, each of which knows where it comes from.
//!
//! How policies combine:
//! - The policies of a site whose part a booking lies in hold together, rule by rule, the tightest value of each.
//! - Where none of them speaks of a rule, the global default holds; so a site replaces a default, whichever way.
//! - The global ceilings hold always. A site tightens them and never loosens them.
//! - A booking of several types keeps the rules of each.
//!
//! What counts bookings (how many, how many hours) and what asks for approval is kept once per policy instead:
//! forty hours in the site and ten on its GPU nodes are two limits, and both hold.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use berth_model::Name;
use berth_model::policy::{
    ApprovalRule, Length, OpeningHours, Part, Policy, Rule, Scope, Step, Who,
};
use berth_model::site::Role;

/// A value that came out of one policy, or out of several that only together are so tight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit<T> {
    pub value: T,
    /// In order, without twins, never empty.
    pub from: Vec<Scope>,
}

/// The value of a rule, to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Length(Length),
    /// A length that is spoken of in hours, however many.
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

/// All policies that can concern the bookings of one site.
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

    /// The rules for a booking that takes something of each of `types`. Of no type, what holds for all.
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
        // Each way to name all, some or none of what is known of the booking is one place to look.
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

/// Which of two values leaves less room; where neither does, what is left by both.
fn tighter<T: PartialEq>(a: Limit<T>, b: Limit<T>, meet: fn(&T, &T) -> T) -> Limit<T> {
    let value = meet(&a.value, &b.value);
    match (value == a.value, value == b.value) {
        (true, false) => a,
        (false, true) => b,
        // The wider scope is named: changing the narrower one would help nobody.
        (true, true) if a.from <= b.from => a,
        (true, true) => b,
        (false, false) => {
            let from: BTreeSet<Scope> = a.from.into_iter().chain(b.from).collect();
            let from = from.into_iter().collect();
            Limit { value, from }
        }
    }
}

/// All of both; of one policy that is in both, the tighter value.
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

/// Two approvals are both asked for, so nothing needs to be merged; for the comparison only the reach counts.
fn more_often(a: &ApprovalRule, b: &ApprovalRule) -> ApprovalRule {
    let longer_than = a.longer_than.min(b.longer_than);
    ApprovalRule {
        longer_than,
        ..b.clone()
    }
}

/// One table of all rules: the field, its type, how two values of it meet, and how it is shown. From it come
/// the combined rules, how they combine, and the comparison of one policy with another.
macro_rules! table {
    (
        tightest { $($field:ident: $type:ty, $meet:expr, $rule:ident, $value:ident;)* }
        each { $($each:ident: $each_type:ty, $each_meet:expr, $each_rule:ident, $each_value:ident;)* }
    ) => {
        /// What holds for a booking.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Rules {
            $(pub $field: Option<Limit<$type>>,)*
            $(pub $each: BTreeMap<Scope, $each_type>,)*
        }

        impl Rules {
            /// What one policy says alone.
            pub fn of(policy: &Policy, scope: &Scope) -> Rules {
                Rules {
                    $($field: policy.$field.clone().map(|value| Limit { value, from: vec![scope.clone()] }),)*
                    $($each: policy.$each.iter().map(|value| (scope.clone(), value.clone())).collect(),)*
                }
            }

            /// Both hold.
            pub fn and(self, other: Rules) -> Rules {
                Rules {
                    $($field: match (self.$field, other.$field) {
                        (Some(a), Some(b)) => Some(tighter(a, b, $meet)),
                        (one, None) | (None, one) => one,
                    },)*
                    $($each: both(self.$each, other.$each, $each_meet),)*
                }
            }

            /// Where the first says nothing, the second holds.
            fn or(self, other: Rules) -> Rules {
                Rules {
                    $($field: self.$field.or(other.$field),)*
                    $($each: if self.$each.is_empty() { other.$each } else { self.$each },)*
                }
            }

            /// Every rule that holds, with its value and where it comes from.
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

        /// What `inner` says that leaves more room than `outer`: the rule, and what each of them says.
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
