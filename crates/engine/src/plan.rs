//! Plans the changes from the current site to the site that a file declares: the differences, and the order of the
//! steps.
//!
//! Names identify things, so a file never renames anything: another name is another thing. A section that the file
//! lacks is left alone. A thing that the file does not name stays too, as extra, unless it is pruned.
//!
//! The order makes every step possible after the steps before it. Parents come before children. A resource's children
//! leave before it is removed, and before it gets a capacity, which makes it a leaf. A capacity is removed before
//! children come. No step puts one resource above another unless it is above it in the end. So a resource that leaves
//! the subtree of another moving resource is first put aside, at the top of the tree. So the bookings that conflict
//! at some step are exactly those that conflict in the final tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use berth_model::declared::{
    Act, Declared, DeclaredResource, Difference, LEVELS_MAX, Subject, differing,
};
use berth_model::declared::{FieldDifference, Fields};
use berth_model::policy::Part;
use berth_model::{FieldErrors, Name};

/// Whether to remove the things that the file does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    No,
    Yes,
}

/// One change to a site. The file holds the new content of the named thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    ChangeSite,
    AddType(Name),
    ChangeType(Name),
    RemoveType(Name),
    AddResource(Name),
    /// All but its position in the tree.
    ChangeResource(Name),
    /// To the top of the tree, on its way to another parent.
    PutAside(Name),
    MoveResource(Name),
    RemoveResource(Name),
    AddProject(Name),
    ChangeProject(Name),
    RemoveProject(Name),
    /// Adds or changes a policy: a policy is set as a whole.
    SetPolicy(Part),
    RemovePolicy(Part),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// The differences for people to read, by kind and name, with the extra things.
    pub differences: Vec<Difference>,
}

type Resources = BTreeMap<Name, DeclaredResource>;

/// The changes that turn `now`, which has every section, into the state that `wanted` declares.
pub fn plan(now: &Declared, wanted: &Declared, prune: Prune) -> Result<Plan, FieldErrors> {
    let mut plan = Plan::default();
    if let Some(site) = &wanted.site {
        let fields = differing(now.site.as_ref(), Some(site));
        if !fields.is_empty() {
            let name = now.site.as_ref().and_then(|site| site.name.as_ref());
            let name = name.map(ToString::to_string).unwrap_or_default();
            plan.tell(Act::Changed, Subject::Site, name, fields);
            plan.steps.push(Step::ChangeSite);
        }
    }
    let policies = compare(now.policies.as_ref(), wanted.policies.as_ref(), prune);
    // A policy about a type or a project is removed before that thing, and set after it.
    let gone = policies.removed.iter();
    plan.steps
        .extend(gone.map(|(part, _)| Step::RemovePolicy(part.clone())));
    let types = compare(now.types.as_ref(), wanted.types.as_ref(), prune);
    plan.tell_all(Subject::Type, &types);
    plan.steps.extend(
        types
            .added
            .iter()
            .map(|(name, _)| Step::AddType(name.clone())),
    );
    plan.steps.extend(
        types
            .changed
            .iter()
            .map(|(name, _)| Step::ChangeType(name.clone())),
    );
    if let Some(after) = &wanted.resources {
        let empty = Resources::new();
        let before = now.resources.as_ref().unwrap_or(&empty);
        let merged = merged(before, after, prune);
        check(now, wanted, &merged, prune)?;
        plan.resources(before, after, prune);
    }
    plan.steps.extend(
        types
            .removed
            .iter()
            .map(|(name, _)| Step::RemoveType(name.clone())),
    );
    let projects = compare(now.projects.as_ref(), wanted.projects.as_ref(), prune);
    plan.tell_all(Subject::Project, &projects);
    plan.steps.extend(
        projects
            .removed
            .iter()
            .map(|(name, _)| Step::RemoveProject(name.clone())),
    );
    plan.steps.extend(
        projects
            .added
            .iter()
            .map(|(name, _)| Step::AddProject(name.clone())),
    );
    plan.steps.extend(
        projects
            .changed
            .iter()
            .map(|(name, _)| Step::ChangeProject(name.clone())),
    );
    plan.tell_all(Subject::Policy, &policies);
    let set = policies.added.iter().chain(&policies.changed);
    plan.steps
        .extend(set.map(|(part, _)| Step::SetPolicy(part.clone())));
    Ok(plan)
}

impl Plan {
    /// Whether there is nothing to do. There may still be extra things.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn tell(&mut self, act: Act, subject: Subject, name: String, fields: Vec<FieldDifference>) {
        self.differences.push(Difference {
            act,
            subject,
            name,
            fields,
        });
    }

    fn tell_all<K: Display>(&mut self, subject: Subject, found: &Comparison<K>) {
        for (act, things) in [
            (Act::Added, &found.added),
            (Act::Changed, &found.changed),
            (Act::Removed, &found.removed),
            (Act::Extra, &found.extra),
        ] {
            for (name, fields) in things {
                self.tell(act, subject, name.to_string(), fields.clone());
            }
        }
    }

    fn resources(&mut self, before: &Resources, after: &Resources, prune: Prune) {
        let found = compare(Some(before), Some(after), prune);
        self.tell_all(Subject::Resource, &found);
        let moving: BTreeSet<&Name> = after
            .iter()
            .filter(|(name, resource)| {
                before
                    .get(*name)
                    .is_some_and(|was| was.parent != resource.parent)
            })
            .map(|(name, _)| name)
            .collect();
        for name in &moving {
            let parent = |of: &Resources| {
                let parent = of.get(*name).and_then(|resource| resource.parent.as_ref());
                parent.map(ToString::to_string)
            };
            let field = FieldDifference {
                field: "parent".to_owned(),
                before: parent(before),
                after: parent(after),
            };
            self.tell(Act::Moved, Subject::Resource, name.to_string(), vec![field]);
        }
        let is_divisible = |name: &Name| after.get(name).is_some_and(|it| it.capacity.is_some());
        let (leaves, others): (Vec<&Name>, Vec<&Name>) = found
            .changed
            .iter()
            .map(|(name, _)| name)
            .partition(|name| is_divisible(name));
        let change = |name: &&Name| Step::ChangeResource((*name).clone());
        self.steps.extend(others.iter().map(change));
        let levels = levels(before);
        let mut aside: Vec<&Name> = moving
            .iter()
            .copied()
            .filter(|name| above(before, name).any(|above| moving.contains(above)))
            .collect();
        let level = |name: &Name| levels.get(name).copied().unwrap_or_default();
        aside.sort_by_key(|name| std::cmp::Reverse(level(name)));
        self.steps
            .extend(aside.into_iter().map(|name| Step::PutAside(name.clone())));
        for name in parents_first(after) {
            if !before.contains_key(name) {
                self.steps.push(Step::AddResource(name.clone()));
            } else if moving.contains(name) {
                self.steps.push(Step::MoveResource(name.clone()));
            }
        }
        let mut removed: Vec<&Name> = found.removed.iter().map(|(name, _)| name).collect();
        removed.sort_by_key(|name| std::cmp::Reverse(level(name)));
        self.steps.extend(
            removed
                .into_iter()
                .map(|name| Step::RemoveResource(name.clone())),
        );
        self.steps.extend(leaves.iter().map(change));
    }
}

type Found<K> = Vec<(K, Vec<FieldDifference>)>;

#[derive(Debug)]
struct Comparison<K> {
    added: Found<K>,
    changed: Found<K>,
    removed: Found<K>,
    extra: Found<K>,
}

/// Compares two sets of things by name. An undeclared set has no differences.
fn compare<K: Ord + Clone, T: Fields>(
    before: Option<&BTreeMap<K, T>>,
    after: Option<&BTreeMap<K, T>>,
    prune: Prune,
) -> Comparison<K> {
    let mut found = Comparison {
        added: Vec::new(),
        changed: Vec::new(),
        removed: Vec::new(),
        extra: Vec::new(),
    };
    let Some(after) = after else {
        return found;
    };
    let was = |name: &K| before.and_then(|before| before.get(name));
    for (name, thing) in after {
        let fields = differing(was(name), Some(thing));
        if was(name).is_none() {
            found.added.push((name.clone(), fields));
        } else if !fields.is_empty() {
            found.changed.push((name.clone(), fields));
        }
    }
    for (name, thing) in before.into_iter().flatten() {
        if !after.contains_key(name) {
            match prune {
                Prune::Yes => found
                    .removed
                    .push((name.clone(), differing(Some(thing), None))),
                Prune::No => found.extra.push((name.clone(), Vec::new())),
            }
        }
    }
    found
}

/// The future tree: the resources of the file, and those that it leaves alone.
fn merged<'d>(
    before: &'d Resources,
    after: &'d Resources,
    prune: Prune,
) -> BTreeMap<&'d Name, &'d DeclaredResource> {
    let kept = before.iter().filter(|_| prune == Prune::No);
    kept.chain(after).collect()
}

/// Checks that need both states: unknown types, leaves with extra children, a tree too deep.
fn check(
    now: &Declared,
    wanted: &Declared,
    merged: &BTreeMap<&Name, &DeclaredResource>,
    prune: Prune,
) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let has = |types: &Option<BTreeMap<Name, _>>, kind: &Name| {
        types.as_ref().is_some_and(|types| types.contains_key(kind))
    };
    let exists = |kind: &Name| {
        has(&wanted.types, kind)
            || (has(&now.types, kind) && (wanted.types.is_none() || prune == Prune::No))
    };
    let mut depths: BTreeMap<&Name, usize> = BTreeMap::new();
    for (name, resource) in wanted.resources.iter().flatten() {
        if !exists(&resource.kind) {
            errors.push(
                format!("resources.{name}.type"),
                format!(
                    "there is no resource type `{}` in the file or in the site",
                    resource.kind
                ),
            );
        }
        if let Some(parent) = resource
            .parent
            .as_ref()
            .filter(|parent| !merged.contains_key(parent))
        {
            errors.push(
                format!("resources.{name}"),
                format!("`{name}` is to stand under `{parent}`, which does not exist"),
            );
        }
    }
    for (name, resource) in merged {
        let parent = resource.parent.as_ref();
        if let Some(above) = parent.and_then(|parent| merged.get(parent))
            && above.capacity.is_some()
        {
            let parent = parent.map(ToString::to_string).unwrap_or_default();
            errors.push(
                format!("resources.{parent}.capacity"),
                format!(
                    "a resource with a capacity has no children, and `{name}` stands below `{parent}`; move or remove it first"
                ),
            );
        }
        if depth(name, merged, &mut depths).is_none() {
            errors.push(
                format!("resources.{name}"),
                format!(
                    "the tree has at most {LEVELS_MAX} levels, and nothing stands below itself"
                ),
            );
        }
    }
    errors.or(Some(()))
}

/// The number of ancestors of a resource; none if they are too many or form a cycle.
fn depth<'d>(
    name: &'d Name,
    tree: &BTreeMap<&'d Name, &'d DeclaredResource>,
    known: &mut BTreeMap<&'d Name, usize>,
) -> Option<usize> {
    let mut way = Vec::new();
    let mut at = Some(name);
    let mut base = 0;
    while let Some(name) = at {
        if let Some(depth) = known.get(name) {
            base = depth + 1;
            break;
        }
        way.push(name);
        if way.len() > LEVELS_MAX {
            return None;
        }
        at = tree.get(name).and_then(|resource| resource.parent.as_ref());
    }
    for name in way.into_iter().rev() {
        if base >= LEVELS_MAX {
            return None;
        }
        known.insert(name, base);
        base += 1;
    }
    known.get(name).copied()
}

/// The ancestors of a resource, nearest first. The limit ends the walk even if the links form a cycle.
fn above<'d>(tree: &'d Resources, name: &Name) -> impl Iterator<Item = &'d Name> {
    let parent = |name: &Name| tree.get(name).and_then(|resource| resource.parent.as_ref());
    std::iter::successors(parent(name), move |name| parent(name)).take(tree.len())
}

fn levels(tree: &Resources) -> BTreeMap<&Name, usize> {
    tree.keys()
        .map(|name| (name, above(tree, name).count()))
        .collect()
}

fn parents_first(tree: &Resources) -> Vec<&Name> {
    let levels = levels(tree);
    let mut names: Vec<&Name> = tree.keys().collect();
    names.sort_by_key(|name| levels.get(name).copied().unwrap_or_default());
    names
}

#[cfg(test)]
mod tests;
