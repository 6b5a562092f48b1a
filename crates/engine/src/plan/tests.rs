use std::collections::BTreeSet;

use berth_model::Amount;
use berth_model::attribute::AttributeValue;
use berth_model::declared::{ProjectSection, SiteSection, TypeSection};
use berth_model::inventory::{Capacity, Facts};
use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn kind(title: &str) -> TypeSection {
    TypeSection {
        title: title.parse().unwrap(),
        colour: Default::default(),
        needs_approval: false,
        form: Default::default(),
    }
}

fn resource(parent: Option<&str>, capacity: Option<u64>, gpus: f64) -> DeclaredResource {
    DeclaredResource {
        parent: parent.map(name),
        kind: name("t0"),
        title: None,
        attributes: [(name("gpus"), AttributeValue::Number(gpus))].into(),
        facts: Facts::default(),
        capacity: capacity.map(|amount| Capacity {
            amount: Amount::new(amount).unwrap(),
            unit: name("cores"),
        }),
    }
}

fn site(resources: &[(&str, Option<&str>)]) -> Declared {
    let place = |(it, parent): &(&str, Option<&str>)| (name(it), resource(*parent, None, 1.0));
    Declared {
        site: Some(SiteSection {
            name: Some(name("torino")),
            title: "Torino".parse().unwrap(),
            time_zone: "Europe/Rome".parse().unwrap(),
            outsiders_see: berth_model::site::OutsiderView::Nothing,
            accent: None,
        }),
        types: Some([(name("t0"), kind("T"))].into()),
        resources: Some(resources.iter().map(place).collect()),
        projects: Some(BTreeMap::new()),
        policies: Some(BTreeMap::new()),
    }
}

fn told(plan: &Plan) -> Vec<String> {
    let line = |difference: &Difference| {
        let fields: Vec<String> = difference
            .fields
            .iter()
            .map(|f| {
                let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
                format!("{} {}>{}", f.field, text(&f.before), text(&f.after))
            })
            .collect();
        format!(
            "{:?} {} {}",
            difference.act,
            difference.name,
            fields.join(", ")
        )
    };
    plan.differences.iter().map(line).collect()
}

#[test]
fn a_swap_puts_aside_what_would_be_dragged_along() {
    let now = site(&[("a", None), ("b", None), ("x", Some("a")), ("y", Some("x"))]);
    let wanted = site(&[("a", None), ("b", None), ("x", Some("b")), ("y", Some("a"))]);
    let plan = plan(&now, &wanted, Prune::No).unwrap();
    assert_eq!(
        plan.steps,
        [
            Step::PutAside(name("y")),
            Step::MoveResource(name("x")),
            Step::MoveResource(name("y"))
        ]
    );
    assert_eq!(told(&plan), ["Moved x parent a>b", "Moved y parent x>a"]);
}

#[test]
fn parent_and_child_change_places() {
    let now = site(&[("a", None), ("b", Some("a"))]);
    let wanted = site(&[("b", None), ("a", Some("b"))]);
    let found = plan(&now, &wanted, Prune::Yes).unwrap();
    assert_eq!(
        carried_out(&now, &wanted, &found).resources,
        wanted.resources
    );
}

#[test]
fn what_is_not_named_is_extra_until_it_is_pruned() {
    let now = site(&[("a", None), ("b", Some("a"))]);
    let wanted = site(&[("a", None)]);
    let kept = plan(&now, &wanted, Prune::No).unwrap();
    assert!(kept.is_empty());
    assert_eq!(told(&kept), ["Extra b "]);
    let pruned = plan(&now, &wanted, Prune::Yes).unwrap();
    assert_eq!(pruned.steps, [Step::RemoveResource(name("b"))]);
    let undeclared = Declared {
        resources: None,
        ..wanted
    };
    assert_eq!(
        plan(&now, &undeclared, Prune::Yes).unwrap(),
        Plan::default()
    );
}

#[test]
fn a_change_says_what_it_was_and_becomes() {
    let now = site(&[("a", None)]);
    let mut wanted = now.clone();
    if let Some(site) = &mut wanted.site {
        site.title = "Torino Lab".parse().unwrap();
        site.name = None;
    }
    let resources = wanted.resources.as_mut().unwrap();
    resources.insert(name("a"), resource(None, Some(4), 8.0));
    assert_eq!(
        told(&plan(&now, &wanted, Prune::No).unwrap()),
        [
            "Changed torino title Torino>Torino Lab",
            "Changed a attributes.gpus 1>8, capacity ->4 cores"
        ]
    );
}

#[test]
fn what_cannot_stand_is_refused_by_name() {
    let said = |now: &Declared, wanted: &Declared, prune| {
        let errors = plan(now, wanted, prune).unwrap_err().0;
        let all: Vec<String> = errors
            .iter()
            .map(|e| format!("{}: {}", e.field, e.message))
            .collect();
        all.join("\n")
    };
    let now = site(&[("a", None), ("b", Some("a"))]);
    let mut leaf = site(&[]);
    leaf.resources
        .as_mut()
        .unwrap()
        .insert(name("a"), resource(None, Some(4), 1.0));
    assert!(said(&now, &leaf, Prune::No).starts_with("resources.a.capacity: "));
    assert!(plan(&now, &leaf, Prune::Yes).is_ok(), "then `b` goes");
    let mut untyped = site(&[("a", None)]);
    untyped.types = Some(BTreeMap::new());
    assert!(said(&now, &untyped, Prune::Yes).contains("no resource type `t0`"));
    assert!(
        plan(&now, &untyped, Prune::No).is_ok(),
        "the site has it, and keeps it"
    );
    let circle = site(&[("a", Some("b")), ("b", Some("a"))]);
    assert!(said(&now, &circle, Prune::No).contains("below itself"));
    let chain: Vec<String> = (0..=LEVELS_MAX).map(|n| format!("n{n:02}")).collect();
    let deep: Vec<(&str, Option<&str>)> = (0..chain.len())
        .map(|n| {
            (
                chain[n].as_str(),
                n.checked_sub(1).map(|n| chain[n].as_str()),
            )
        })
        .collect();
    assert!(plan(&site(&[]), &site(&deep[..LEVELS_MAX]), Prune::No).is_ok());
    assert!(said(&site(&[]), &site(&deep), Prune::No).contains("at most 20 levels"));
}

/// Executes a plan step by step, as the databases would: every step must be possible in its turn.
fn carried_out(now: &Declared, wanted: &Declared, plan: &Plan) -> Declared {
    let mut site = now.clone();
    let end = wanted.resources.clone().unwrap_or_default();
    let types = site.types.get_or_insert_default();
    let tree = site.resources.get_or_insert_default();
    let projects = site.projects.get_or_insert_default();
    let policies = site.policies.get_or_insert_default();
    let wanted_policies = wanted.policies.clone().unwrap_or_default();
    let wanted_types = wanted.types.clone().unwrap_or_default();
    let wanted_projects = wanted.projects.clone().unwrap_or_default();
    for step in &plan.steps {
        match step {
            Step::ChangeSite => site.site = wanted.site.clone(),
            Step::AddType(it) => {
                assert_eq!(types.insert(it.clone(), wanted_types[it].clone()), None);
            }
            Step::ChangeType(it) => {
                assert!(types.insert(it.clone(), wanted_types[it].clone()).is_some());
            }
            Step::RemoveType(it) => {
                assert!(tree.values().all(|r| r.kind != *it), "{it} is in use");
                assert!(types.remove(it).is_some());
            }
            Step::AddResource(it) => {
                assert_eq!(tree.insert(it.clone(), end[it].clone()), None);
            }
            Step::ChangeResource(it) => {
                let parent = tree[it].parent.clone();
                tree.insert(
                    it.clone(),
                    DeclaredResource {
                        parent,
                        ..end[it].clone()
                    },
                );
            }
            Step::PutAside(it) => tree.get_mut(it).unwrap().parent = None,
            Step::MoveResource(it) => tree.get_mut(it).unwrap().parent = end[it].parent.clone(),
            Step::RemoveResource(it) => {
                assert!(
                    tree.values().all(|r| r.parent.as_ref() != Some(it)),
                    "{it} has children"
                );
                assert!(tree.remove(it).is_some());
            }
            Step::AddProject(it) | Step::ChangeProject(it) => {
                projects.insert(it.clone(), wanted_projects[it].clone());
            }
            Step::RemoveProject(it) => assert!(projects.remove(it).is_some()),
            Step::SetPolicy(part) => {
                policies.insert(part.clone(), wanted_policies[part].clone());
            }
            Step::RemovePolicy(part) => assert!(policies.remove(part).is_some()),
        }
        for (it, resource) in &*tree {
            assert!(
                types.contains_key(&resource.kind),
                "{step:?}: {it} has a type"
            );
            if let Some(parent) = &resource.parent {
                assert!(
                    tree.contains_key(parent),
                    "{step:?}: {it} hangs below nothing"
                );
                assert!(
                    tree[parent].capacity.is_none(),
                    "{step:?}: {parent} is a leaf"
                );
            }
            assert!(
                above(tree, it).all(|above| above != it),
                "{step:?}: {it} is below itself"
            );
        }
    }
    site
}

/// The pairs of an ancestor and its descendant.
fn pairs(tree: &Resources) -> BTreeSet<(Name, Name)> {
    let above_each = |it: &Name| {
        above(tree, it)
            .map(|above| (above.clone(), it.clone()))
            .collect::<Vec<_>>()
    };
    tree.keys().flat_map(above_each).collect()
}

prop_compose! {
    /// Each resource is below an earlier one in a random order, so that two such sites differ in shape too.
    fn any_site()(
        order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(),
        size in 0..9usize,
        parents in prop::collection::vec(prop::option::of(0..9usize), 9),
        capacities in prop::collection::vec(prop::option::weighted(0.3, 1..5u64), 9),
        gpus in prop::collection::vec(0..3u8, 9),
        kinds in prop::collection::vec(0..3usize, 9),
        types in prop::collection::btree_map(0..3usize, 0..2usize, 0..3),
        projects in prop::collection::btree_map(0..3usize, 0..3usize, 0..3),
    ) -> Declared {
        let mut tree: BTreeMap<Name, DeclaredResource> = BTreeMap::new();
        for place in 0..size {
            let parent = parents[place].filter(|_| place > 0).map(|n| format!("r{}", order[n % place]));
            let mut made = resource(parent.as_deref(), capacities[place], f64::from(gpus[place]));
            made.kind = name(&format!("t{}", kinds[place]));
            tree.insert(name(&format!("r{}", order[place])), made);
        }
        let parents: BTreeSet<Name> = tree.values().filter_map(|r| r.parent.clone()).collect();
        for parent in parents {
            tree.get_mut(&parent).unwrap().capacity = None;
        }
        let used = tree.values().map(|r| (r.kind.clone(), kind("used")));
        let declared = types.iter().map(|(n, title)| (name(&format!("t{n}")), kind(&format!("T{title}"))));
        let project = |(n, members): (&usize, &usize)| {
            let members = (0..*members).map(|n| format!("user{n}").parse().unwrap()).collect();
            (name(&format!("p{n}")), ProjectSection { title: "P".parse().unwrap(), members })
        };
        Declared {
            types: Some(used.chain(declared).collect()),
            projects: Some(projects.iter().map(project).collect()),
            resources: Some(tree),
            ..site(&[])
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_carried_out_gives_what_was_declared(now in any_site(), wanted in any_site()) {
        let found = plan(&now, &wanted, Prune::Yes).unwrap();
        prop_assert_eq!(carried_out(&now, &wanted, &found), wanted.clone());
        prop_assert_eq!(found.is_empty(), now == wanted);
        prop_assert_eq!(found.differences.is_empty(), now == wanted);
    }

    #[test]
    fn what_stands_as_declared_needs_no_plan(now in any_site()) {
        for prune in [Prune::No, Prune::Yes] {
            prop_assert_eq!(plan(&now, &now, prune).unwrap(), Plan::default());
        }
    }

    #[test]
    fn without_pruning_nothing_goes_and_the_second_time_there_is_nothing_to_do(
        now in any_site(), wanted in any_site(),
    ) {
        // A file may give a capacity to a resource with extra children; `plan` refuses that.
        if let Ok(found) = plan(&now, &wanted, Prune::No) {
            let after = carried_out(&now, &wanted, &found);
            let before = now.resources.as_ref().unwrap();
            let kept = after.resources.as_ref().unwrap();
            prop_assert!(before.keys().all(|it| kept.contains_key(it)));
            prop_assert!(wanted.resources.as_ref().unwrap().iter().all(|(it, r)| kept.get(it) == Some(r)));
            prop_assert!(plan(&after, &wanted, Prune::No).unwrap().is_empty());
        }
    }

    /// So a booking that conflicts at some step also conflicts in the final tree.
    #[test]
    fn no_step_brings_together_what_is_apart_in_the_end(now in any_site(), wanted in any_site()) {
        let found = plan(&now, &wanted, Prune::Yes).unwrap();
        let allowed: BTreeSet<_> = pairs(now.resources.as_ref().unwrap())
            .union(&pairs(wanted.resources.as_ref().unwrap())).cloned().collect();
        let claimed = |tree: &Resources| {
            let is_kept = |it: &Name| wanted.resources.as_ref().unwrap().contains_key(it);
            pairs(tree).into_iter().filter(|(a, b)| is_kept(a) && is_kept(b)).collect::<BTreeSet<_>>()
        };
        for steps in 0..=found.steps.len() {
            let part = Plan { steps: found.steps[..steps].to_vec(), ..Plan::default() };
            let there = carried_out(&now, &wanted, &part);
            let met = claimed(there.resources.as_ref().unwrap());
            prop_assert!(met.is_subset(&allowed), "{:?}", met.difference(&allowed));
        }
    }
}
