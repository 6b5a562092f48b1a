use proptest::prelude::*;

use super::*;
use crate::fixture::{resource, tree};

/// rack 0 > server 1 > GPUs 2, 3; rack 0 > server 4 > GPU 5; switch 6 > port 7.
fn lab() -> Tree {
    tree(&[
        None,
        Some(0),
        Some(1),
        Some(1),
        Some(0),
        Some(4),
        None,
        Some(6),
    ])
}

fn ids(numbers: &[u64]) -> Vec<ResourceId> {
    numbers.iter().copied().map(resource).collect()
}

#[test]
fn a_lab_knows_its_relatives() {
    let lab = lab();
    let above: Vec<_> = lab.ancestors(resource(3)).collect();
    assert_eq!(above, ids(&[1, 0]), "nearest first");
    let below: Vec<_> = lab.descendants(resource(0)).collect();
    assert_eq!(below, ids(&[1, 2, 3, 4, 5]));
    assert_eq!(lab.depth(resource(0)), Some(0));
    assert_eq!(lab.depth(resource(5)), Some(2));
    assert!(lab.related(resource(2), resource(0)));
    assert!(lab.related(resource(0), resource(2)));
    assert!(lab.related(resource(2), resource(2)));
    assert!(!lab.related(resource(2), resource(3)), "siblings");
    assert!(!lab.related(resource(0), resource(7)), "another root");
    assert!(lab.has_children(resource(6)) && !lab.has_children(resource(7)));
}

#[test]
fn a_resource_of_another_site_is_related_to_nothing() {
    let (lab, stranger) = (lab(), resource(99));
    assert!(!lab.related(stranger, resource(0)));
    assert!(!lab.related(stranger, stranger));
    assert_eq!(lab.depth(stranger), None);
    assert_eq!(lab.ancestors(stranger).count(), 0);
    assert_eq!(lab.descendants(stranger).count(), 0);
}

#[test]
fn what_is_no_tree_is_refused_by_name() {
    let build = |links: &[(u64, Option<u64>)]| {
        let links = links.iter();
        Tree::new(links.map(|(id, parent)| (resource(*id), parent.map(resource)))).unwrap_err()
    };
    assert_eq!(
        build(&[(1, None), (1, None)]),
        TreeError::Twice {
            resource: resource(1)
        }
    );
    assert_eq!(
        build(&[(1, None), (2, Some(9))]),
        TreeError::UnknownParent {
            resource: resource(2),
            parent: resource(9)
        }
    );
    assert_eq!(
        build(&[(0, None), (1, Some(1))]),
        TreeError::UnderItself {
            resource: resource(1)
        }
    );
    // 5 is below the cycle 2 > 3 > 4 > 2; the message names two links of the cycle, not 5.
    let TreeError::Cycle {
        resource: from,
        under,
    } = build(&[(2, Some(4)), (3, Some(2)), (4, Some(3)), (1, Some(2))])
    else {
        panic!("a circle");
    };
    assert!(ids(&[2, 3, 4]).contains(&from) && ids(&[2, 3, 4]).contains(&under));
}

#[test]
fn a_move_under_itself_names_both() {
    let lab = lab();
    assert_eq!(lab.check_move(resource(1), Some(resource(6))), Ok(()));
    assert_eq!(lab.check_move(resource(1), None), Ok(()));
    assert_eq!(
        lab.check_move(resource(1), Some(resource(0))),
        Ok(()),
        "where it stands already"
    );
    assert_eq!(
        lab.check_move(resource(1), Some(resource(1))),
        Err(TreeError::UnderItself {
            resource: resource(1)
        })
    );
    let refused = lab.check_move(resource(0), Some(resource(3))).unwrap_err();
    let sentence = refused.to_string();
    assert!(sentence.contains(&resource(0).to_string()), "{sentence}");
    assert!(sentence.contains(&resource(3).to_string()), "{sentence}");
    assert!(lab.check_move(resource(99), None).is_err());
    assert!(lab.check_move(resource(1), Some(resource(99))).is_err());
}

#[test]
fn a_child_inherits_the_worst_status_above_it() {
    let lab = lab();
    let status = |rack, server, gpu| {
        lab.effective_status(resource(2), |id| match id {
            id if id == resource(0) => rack,
            id if id == resource(1) => server,
            _ => gpu,
        })
    };
    use Status::{Active, Maintenance, Unavailable};
    for (statuses, worst, cause) in [
        ((Active, Active, Active), Active, 2),
        ((Maintenance, Active, Active), Maintenance, 0),
        ((Maintenance, Unavailable, Active), Unavailable, 1),
        ((Unavailable, Maintenance, Maintenance), Unavailable, 0),
        ((Maintenance, Maintenance, Active), Maintenance, 1),
        ((Maintenance, Active, Maintenance), Maintenance, 2),
    ] {
        assert_eq!(
            status(statuses.0, statuses.1, statuses.2),
            (worst, resource(cause)),
            "{statuses:?}"
        );
    }
}

/// Resources 0..n, each under an earlier one or at the root.
fn parents(most: usize) -> impl Strategy<Value = Vec<Option<u64>>> {
    prop::collection::vec(any::<prop::sample::Index>(), 1..most).prop_map(|draws| {
        let parent = |(place, draw): (usize, prop::sample::Index)| match draw.index(place + 1) {
            0 => None,
            above => Some(above as u64 - 1),
        };
        draws.into_iter().enumerate().map(parent).collect()
    })
}

fn walk_up(parents: &[Option<u64>], from: u64) -> Vec<u64> {
    std::iter::successors(Some(from), |&id| parents[id as usize]).collect()
}

proptest! {
    #[test]
    fn numbers_agree_with_walking_up(parents in parents(40)) {
        let tree = tree(&parents);
        let all = 0..parents.len() as u64;
        prop_assert_eq!(tree.len(), parents.len());
        for a in all.clone() {
            let way = walk_up(&parents, a);
            prop_assert_eq!(tree.ancestors(resource(a)).collect::<Vec<_>>(), ids(&way[1..]));
            prop_assert_eq!(tree.depth(resource(a)), Some(way.len() - 1));
            let mut below: Vec<_> = tree.descendants(resource(a)).collect();
            below.sort();
            let expected: Vec<u64> =
                all.clone().filter(|b| *b != a && walk_up(&parents, *b).contains(&a)).collect();
            prop_assert_eq!(below, ids(&expected));
            for b in all.clone() {
                let related = way.contains(&b) || walk_up(&parents, b).contains(&a);
                prop_assert_eq!(tree.related(resource(a), resource(b)), related);
            }
        }
    }

    /// A move is refused exactly when the resulting links would form no tree.
    #[test]
    fn a_checked_move_makes_a_tree(
        parents in parents(20),
        moved: prop::sample::Index,
        target: prop::sample::Index,
    ) {
        let moved = moved.index(parents.len());
        let target = target.index(parents.len()) as u64;
        let mut after = parents.clone();
        after[moved] = Some(target);
        let links = (0..).zip(&after).map(|(id, parent)| (resource(id), parent.map(resource)));
        let checked = tree(&parents).check_move(resource(moved as u64), Some(resource(target)));
        prop_assert_eq!(checked.is_ok(), Tree::new(links).is_ok());
    }
}

#[test]
fn ten_thousand_resources_may_hang_very_deep() {
    let chain_of_racks = |id: u64| {
        (id > 0).then(|| {
            if id.is_multiple_of(10) {
                id - 10
            } else {
                id / 10 * 10
            }
        })
    };
    let links = (0..10_000).map(|id| (resource(id), chain_of_racks(id).map(resource)));
    let tree = Tree::new(links).unwrap();
    assert_eq!(tree.depth(resource(9_990)), Some(999));
    assert_eq!(tree.descendants(resource(0)).count(), 9_999);
    let related = (0..1_000_000u64).filter(|n| {
        let (a, b) = (n * 7919 % 10_000, n * 104_729 % 10_000);
        tree.related(resource(a), resource(b))
    });
    assert!(related.count() > 0);
}
