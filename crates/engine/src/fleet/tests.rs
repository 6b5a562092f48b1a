use proptest::prelude::*;

use super::*;

mod naive;

const GIB: u64 = 1 << 30;

fn model(number: u8) -> Model {
    Model::new(number).unwrap()
}

fn gpu(of: u8) -> Gpu {
    Gpu {
        model: model(of),
        memory_bytes: 16 * GIB * u64::from(of + 1),
        link: None,
        mode: Mode::Shared,
    }
}

fn node(cores: u64, gpus: Vec<Gpu>) -> Node {
    Node {
        cpu_milli: cores * 1000,
        memory_bytes: cores * 4 * GIB,
        gpus,
        rack: 0,
        until_us: i64::MAX,
    }
}

fn task(cores: u64, gpus: Gpus) -> Task {
    Task {
        cpu_milli: cores * 1000,
        memory_bytes: cores * 4 * GIB,
        gpus,
        models: Models::ANY,
        gpu_memory_bytes: 0,
    }
}

fn gang(tasks: u32, near: Near, task: Task) -> Need {
    Need {
        tasks,
        near,
        ..Need::one(task)
    }
}

/// The nodes of the pieces, in ascending order.
fn nodes_of(placement: &Placement) -> Vec<u32> {
    let mut nodes: Vec<u32> = placement.pieces.iter().map(|piece| piece.node.0).collect();
    nodes.sort_unstable();
    nodes
}

fn gpus_of(placement: &Placement) -> Vec<u16> {
    let parts = placement.pieces.iter().flat_map(|piece| &piece.gpus);
    parts.map(|part| part.gpu).collect()
}

/// Places a need and takes the placement; returns its nodes.
fn put(fleet: &mut Fleet, need: &Need) -> Option<Vec<u32>> {
    let placement = fleet.place(need)?;
    fleet.take(&placement).unwrap();
    Some(nodes_of(&placement))
}

#[test]
fn work_without_gpus_stays_off_nodes_whose_gpus_need_the_cpu() {
    let usual = task(4, Gpus::Whole(1));
    let nodes = [
        node(16, vec![gpu(0); 4]),
        node(32, vec![gpu(0); 2]),
        node(8, vec![]),
    ];
    let mut fleet = Fleet::new(&nodes, Mix::of([(usual, 1)]));
    let plain = Need::one(task(8, Gpus::None));
    let stands: Vec<_> = (0..5).map(|_| put(&mut fleet, &plain)).collect();
    let expected = [2, 1, 1, 1, 0].map(|node| Some(vec![node]));
    assert_eq!(
        stands, expected,
        "no GPUs, then CPU to spare, then what there is"
    );
}

#[test]
fn a_share_goes_where_the_gap_fits_it_and_a_large_node_stays_whole() {
    let mix = [
        (task(1, Gpus::Share(300)), 5),
        (task(1, Gpus::Share(700)), 5),
        (task(1, Gpus::Whole(1)), 5),
        (task(4, Gpus::Whole(4)), 5),
    ];
    let nodes = [node(16, vec![gpu(0); 4]), node(16, vec![gpu(0); 4])];
    let mut fleet = Fleet::new(&nodes, Mix::of(mix));
    let share = |share| Need::one(task(1, Gpus::Share(share)));
    let first = fleet.place(&share(700)).unwrap();
    fleet.take(&first).unwrap();
    let second = fleet.place(&share(300)).unwrap();
    assert_eq!(
        (nodes_of(&second), gpus_of(&second)),
        (nodes_of(&first), gpus_of(&first))
    );
    fleet.take(&second).unwrap();
    let one = Need::one(task(1, Gpus::Whole(1)));
    assert_eq!(put(&mut fleet, &one), Some(vec![0]));
    assert_eq!(
        put(&mut fleet, &Need::one(task(4, Gpus::Whole(4)))),
        Some(vec![1])
    );
}

fn move_wall(fleet: &mut Fleet, node: NodeIndex, until_us: i64) {
    let left = fleet.left(node).unwrap().clone();
    fleet.put(node, left, until_us);
}

#[test]
fn of_equal_nodes_the_one_with_the_nearest_wall_that_is_far_enough() {
    let nodes = [30, 10, 20, i64::MAX].map(|until_us| Node {
        until_us,
        ..node(8, vec![])
    });
    let mut fleet = Fleet::new(&nodes, Mix::default());
    let until = |until_us| Need {
        until_us,
        ..Need::one(task(1, Gpus::None))
    };
    let mut stands = |until_us| {
        fleet
            .place(&until(until_us))
            .map(|placed| nodes_of(&placed))
    };
    assert_eq!(stands(5), Some(vec![1]));
    assert_eq!(stands(20), Some(vec![2]), "ending at the wall is in time");
    assert_eq!(stands(31), Some(vec![3]));
    move_wall(&mut fleet, NodeIndex(3), 25);
    assert_eq!(fleet.place(&until(31)), None);
    assert_eq!(
        put(&mut fleet, &until(26)),
        Some(vec![0]),
        "shorter work fits where longer did not"
    );
    move_wall(&mut fleet, NodeIndex(3), 40);
    assert_eq!(
        put(&mut fleet, &until(31)),
        Some(vec![3]),
        "a refusal lasts until the wall moves"
    );
}

#[test]
fn a_gang_stands_as_near_together_as_it_can() {
    let linked = |link: u16| Gpu {
        link: Some(link),
        ..gpu(0)
    };
    let pairs = vec![linked(0), linked(1), linked(0), linked(1)];
    let nodes: Vec<Node> = [(0, vec![gpu(0); 2]), (0, vec![gpu(0); 2]), (1, pairs)]
        .into_iter()
        .map(|(rack, gpus)| Node {
            rack,
            ..node(16, gpus)
        })
        .collect();
    let mut fleet = Fleet::new(&nodes, Mix::default());
    let each = task(1, Gpus::Whole(1));
    let place = |fleet: &mut Fleet, tasks, near| fleet.place(&gang(tasks, near, each));
    let pair = place(&mut fleet, 2, Near::Link).unwrap();
    assert_eq!((nodes_of(&pair), gpus_of(&pair)), (vec![2, 2], vec![0, 2]));
    let three = place(&mut fleet, 3, Near::Link).unwrap();
    assert_eq!(
        nodes_of(&three),
        [2, 2, 2],
        "no three are linked, but a node has them"
    );
    fleet.take(&pair).unwrap();
    let four = place(&mut fleet, 4, Near::Node).unwrap();
    assert_eq!(
        nodes_of(&four),
        [0, 0, 1, 1],
        "no node has four, but a rack"
    );
    let five = place(&mut fleet, 5, Near::Rack).unwrap();
    assert_eq!(nodes_of(&five), [0, 0, 1, 1, 2], "as few racks as can be");
    assert_eq!(
        place(&mut fleet, 7, Near::Anywhere),
        None,
        "whole or not at all"
    );
    assert_eq!(place(&mut fleet, 0, Near::Anywhere).unwrap().pieces, []);
}

#[test]
fn the_gpus_of_one_task_are_linked_where_that_is_wished_and_possible() {
    let linked = |link: u16| Gpu {
        link: Some(link),
        ..gpu(0)
    };
    let nodes = [
        node(16, vec![gpu(0); 4]),
        node(16, vec![linked(0), linked(1), linked(0), linked(1)]),
    ];
    let mut fleet = Fleet::new(&nodes, Mix::default());
    let two = task(1, Gpus::Whole(2));
    let placed = fleet.place(&gang(1, Near::Link, two)).unwrap();
    assert_eq!((nodes_of(&placed), gpus_of(&placed)), (vec![1], vec![0, 2]));
    let three = task(1, Gpus::Whole(3));
    assert!(
        fleet.place(&gang(1, Near::Link, three)).is_some(),
        "a wish, not a condition"
    );
}

#[test]
fn what_is_not_there_is_neither_taken_nor_given_back() {
    let nodes = [node(8, vec![gpu(0)]), node(8, vec![])];
    let mut fleet = Fleet::new(&nodes, Mix::default());
    let whole = fleet.place(&Need::one(task(8, Gpus::Whole(1)))).unwrap();
    assert_eq!(fleet.give_back(&whole), Err(Unfit::NotTaken(NodeIndex(0))));
    fleet.take(&whole).unwrap();
    assert_eq!(fleet.take(&whole), Err(Unfit::NotLeft(NodeIndex(0))));
    let mut elsewhere = whole.clone();
    elsewhere.pieces[0].node = NodeIndex(2);
    assert_eq!(fleet.take(&elsewhere), Err(Unfit::NoNode(NodeIndex(2))));
    let on_other = Piece {
        node: NodeIndex(1),
        gpus: vec![],
        ..whole.pieces[0].clone()
    };
    let half = Placement {
        pieces: vec![on_other, whole.pieces[0].clone()],
    };
    assert_eq!(fleet.take(&half), Err(Unfit::NotLeft(NodeIndex(0))));
    let untouched = fleet.left(NodeIndex(1)).map(|left| left.cpu_milli);
    assert_eq!(untouched, Some(8000), "the first half was undone");
}

#[test]
fn nothing_is_placed_on_a_gpu_that_is_cut() {
    let cut = Gpu {
        mode: Mode::Cut,
        ..gpu(0)
    };
    let mut fleet = Fleet::new(&[node(8, vec![cut, gpu(0)])], Mix::default());
    let one = Need::one(task(1, Gpus::Whole(1)));
    assert_eq!(gpus_of(&fleet.place(&one).unwrap()), [1]);
    assert_eq!(fleet.place(&Need::one(task(1, Gpus::Whole(2)))), None);
}

#[test]
fn a_mix_has_its_most_frequent_shapes_and_only_those_with_gpus() {
    let shapes = (1..200).map(|cores| (task(cores, Gpus::Whole(1)), cores));
    let plain = [(task(1, Gpus::None), 1000)];
    let all = Mix::of(shapes.clone().chain(plain));
    assert_eq!(all, Mix::of(shapes), "what has no GPUs does not count");
    assert_eq!(all.shapes(), Mix::SHAPES_MAX);
    assert_eq!(Mix::of(plain), Mix::default());
}

fn a_task() -> impl Strategy<Value = Task> {
    let gpus = prop_oneof![
        Just(Gpus::None),
        (0u16..4).prop_map(Gpus::Whole),
        prop::sample::select(vec![0, 250, 400, 500, 999, 1000, 1001]).prop_map(Gpus::Share),
    ];
    let models = prop_oneof![
        3 => Just(Models::ANY),
        1 => (0u8..3).prop_map(|of| Models::from_iter([model(of)])),
        1 => Just(Models::from_iter([model(0), model(2)])),
    ];
    let gpu_memory_bytes = prop::sample::select(vec![0, 0, 0, 20 * GIB]);
    (0u64..4, 0u64..4, gpus, models, gpu_memory_bytes).prop_map(
        |(cores, gib, gpus, models, gpu_memory_bytes)| Task {
            cpu_milli: cores * 1000,
            memory_bytes: gib * GIB,
            gpus,
            models,
            gpu_memory_bytes,
        },
    )
}

fn a_need() -> impl Strategy<Value = Need> {
    use Near::{Anywhere, Link, Node, Rack};
    let near = prop::sample::select(vec![Anywhere, Rack, Node, Link]);
    let until_us = prop::sample::select(vec![0, 10, 20, i64::MAX]);
    let tasks = prop::sample::select(vec![0, 1, 1, 1, 2, 3, 4]);
    (a_task(), tasks, near, until_us).prop_map(|(task, tasks, near, until_us)| Need {
        task,
        tasks,
        near,
        at_least: Anywhere,
        apart: false,
        until_us,
    })
}

fn a_node() -> impl Strategy<Value = Node> {
    let link = prop::sample::select(vec![None, None, Some(0), Some(1)]);
    let mode = prop::sample::select(vec![Mode::Shared, Mode::Shared, Mode::Shared, Mode::Cut]);
    let a_gpu = (0u8..3, link, mode).prop_map(|(of, link, mode)| Gpu {
        link,
        mode,
        ..gpu(of)
    });
    let gpus = prop::collection::vec(a_gpu, 0..4);
    let until_us = prop::sample::select(vec![5, 15, i64::MAX, i64::MAX]);
    (0u64..8, 0u64..8, gpus, 0u32..2, until_us).prop_map(|(cores, gib, gpus, rack, until_us)| {
        Node {
            cpu_milli: cores * 1000,
            memory_bytes: gib * GIB,
            gpus,
            rack,
            until_us,
        }
    })
}

fn a_mix() -> impl Strategy<Value = Mix> {
    prop::collection::vec((a_task(), 0u64..5), 0..6).prop_map(Mix::of)
}

fn all_left(fleet: &Fleet) -> Vec<Left> {
    let nodes = (0..).map_while(|node| fleet.left(NodeIndex(node)));
    nodes.cloned().collect()
}

#[test]
fn tasks_that_stand_apart_have_a_node_each() {
    let node = || node(8, Vec::new());
    let mut fleet = Fleet::new(&[node(), node(), node()], Mix::default());
    let apart = |tasks| Need {
        apart: true,
        ..gang(tasks, Near::Node, task(1, Gpus::None))
    };
    let placed = fleet.place(&apart(3)).unwrap();
    assert_eq!(nodes_of(&placed), [0, 1, 2]);
    assert_eq!(fleet.place(&apart(4)), None, "there are three nodes");
    assert!(fleet.could_hold(&apart(3)) && !fleet.could_hold(&apart(4)));
    let together = gang(4, Near::Anywhere, task(1, Gpus::None));
    assert!(
        fleet.place(&together).is_some(),
        "that says nothing of others"
    );
    fleet.take(&placed).unwrap();
    assert!(fleet.place(&apart(3)).is_some(), "others may stand there");
}

proptest! {
    /// With each task on a node of its own, there is a placement exactly if enough nodes have room for one task.
    #[test]
    fn tasks_apart_are_placed_wherever_there_are_enough_nodes(
        nodes in prop::collection::vec(a_node(), 1..6), mix in a_mix(), before in prop::collection::vec(a_need(), 0..4),
        need in a_need()
    ) {
        let mut fleet = Fleet::new(&nodes, mix);
        for one in before {
            if let Some(placement) = fleet.place(&one) {
                fleet.take(&placement).unwrap();
            }
        }
        let need = Need { apart: true, near: need.near.min(Near::Rack), tasks: need.tasks.max(1), ..need };
        let left = all_left(&fleet);
        let has_room = |index: u32| {
            let node = NodeIndex(index);
            nodes[index as usize].until_us >= need.until_us && fleet.room(node, &left[index as usize], &need) > 0
        };
        let open = (0..nodes.len() as u32).filter(|index| has_room(*index)).count();
        let placed = fleet.place(&need);
        prop_assert_eq!(placed.is_some(), open >= need.tasks as usize);
        prop_assert_eq!(all_left(&fleet), left, "looking takes nothing");
        prop_assert_eq!(fleet.place(&need), placed.clone(), "and changes no answer");
        if let Some(placement) = placed {
            let mut stands = nodes_of(&placement);
            stands.dedup();
            prop_assert_eq!(stands.len(), need.tasks as usize);
            prop_assert!(fleet.take(&placement).is_ok());
        }
    }

    /// There is a placement exactly if an exhaustive search finds one, and it matches the need.
    #[test]
    fn a_place_is_found_wherever_there_is_one(
        nodes in prop::collection::vec(a_node(), 1..4), mix in a_mix(),
        needs in prop::collection::vec(a_need(), 1..10),
    ) {
        let mut fleet = Fleet::new(&nodes, mix);
        for need in needs {
            let left = all_left(&fleet);
            let placed = fleet.place(&need);
            prop_assert_eq!(all_left(&fleet), left.clone(), "asking takes nothing");
            prop_assert_eq!(placed.is_some(), naive::fits(&nodes, &left, &need));
            for until_us in [i64::MAX, 10, 0] {
                let need = Need { until_us, ..need };
                let found = fleet.place(&need).is_some();
                prop_assert_eq!(found, naive::fits(&nodes, &left, &need));
            }
            let Some(placed) = placed else { continue };
            prop_assert!(naive::is_what_was_asked_for(&nodes, &need, &placed));
            fleet.take(&placed).unwrap();
            let rest = naive::without(&left, &placed);
            prop_assert_eq!(Some(all_left(&fleet)), rest, "nothing is had twice");
        }
    }

    /// A preference for one node or one link is met whenever possible.
    #[test]
    fn a_gang_that_fits_one_node_and_wishes_it_stands_in_one(
        nodes in prop::collection::vec(a_node(), 1..4), mix in a_mix(), need in a_need(),
    ) {
        let mut fleet = Fleet::new(&nodes, mix);
        let in_one = nodes.iter().any(|node| {
            let left = all_left(&Fleet::new(std::slice::from_ref(node), Mix::default()));
            naive::fits(std::slice::from_ref(node), &left, &need)
        });
        if need.near >= Near::Node && need.tasks > 0 && in_one {
            let mut stands = nodes_of(&fleet.place(&need).unwrap());
            stands.dedup();
            prop_assert_eq!(stands.len(), 1);
        }
    }

    /// Tasks that must run near each other do. There is a placement exactly if one such part of the fleet has room for
    /// all tasks.
    #[test]
    fn what_has_to_stand_near_stands_near_or_waits(
        nodes in prop::collection::vec(a_node(), 1..4), mix in a_mix(), need in a_need(),
        at_least in prop::sample::select(vec![Near::Rack, Near::Node, Near::Link]),
    ) {
        let need = Need { at_least, tasks: need.tasks.max(1), ..need };
        let mut fleet = Fleet::new(&nodes, mix);
        // Only the nodes of one rack, one node, or the GPUs of one link group are available.
        let fits = |is_in: &dyn Fn(usize, &Node, Option<&Gpu>) -> bool| {
            let mut nodes = nodes.clone();
            for (number, node) in nodes.iter_mut().enumerate() {
                let before = node.clone();
                if !is_in(number, &before, None) {
                    node.until_us = i64::MIN;
                }
                for gpu in node.gpus.iter_mut().filter(|gpu| !is_in(number, &before, Some(gpu))) {
                    gpu.mode = Mode::Cut;
                }
            }
            let left = all_left(&Fleet::new(&nodes, Mix::default()));
            naive::fits(&nodes, &left, &need)
        };
        let several = need.tasks * need.task.gpus.thousandths().div_ceil(1000) > 1;
        let mut groups: Vec<Gpu> = nodes.iter().flat_map(|node| node.gpus.clone()).collect();
        groups.retain(|gpu| gpu.link.is_some());
        let alike = |one: &Gpu, other: &Gpu| (one.model, one.memory_bytes, one.link) == (other.model, other.memory_bytes, other.link);
        let expected = match at_least {
            Near::Rack => (0..2).any(|rack| fits(&|_, node, _| node.rack == rack)),
            Near::Link if several => (0..nodes.len()).any(|at| groups.iter().any(|group| {
                fits(&|number, _, gpu| number == at && gpu.is_none_or(|gpu| alike(gpu, group)))
            })),
            _ => (0..nodes.len()).any(|at| fits(&|number, _, _| number == at)),
        };
        let placed = fleet.place(&need);
        prop_assert_eq!(placed.is_some(), expected);
        let Some(placed) = placed else { return Ok(()) };
        let mut stands = nodes_of(&placed);
        stands.dedup();
        let racks = stands.iter().map(|node| nodes[*node as usize].rack);
        let racks: std::collections::BTreeSet<u32> = racks.collect();
        prop_assert_eq!(racks.len(), 1);
        prop_assert!(at_least == Near::Rack || stands.len() == 1);
    }

    /// After any placements are taken and given back, the free resources are the same as before, and caches change no
    /// answer.
    #[test]
    fn what_is_given_back_is_as_if_never_taken(
        nodes in prop::collection::vec(a_node(), 1..5), mix in a_mix(),
        needs in prop::collection::vec((a_need(), any::<bool>()), 1..12),
    ) {
        let mut fleet = Fleet::new(&nodes, mix.clone());
        let mut stay = Vec::new();
        let mut leave = Vec::new();
        for (need, stays) in &needs {
            let Some(placed) = fleet.place(need) else { continue };
            fleet.take(&placed).unwrap();
            if *stays { stay.push(placed) } else { leave.push(placed) }
        }
        for placed in &leave {
            fleet.give_back(placed).unwrap();
        }
        let mut fresh = Fleet::new(&nodes, mix);
        for placed in &stay {
            fresh.take(placed).unwrap();
        }
        prop_assert_eq!(all_left(&fleet), all_left(&fresh));
        for (need, _) in &needs {
            prop_assert_eq!(fleet.place(need), fresh.place(need));
        }
        for placed in &stay {
            fleet.give_back(placed).unwrap();
        }
        prop_assert_eq!(all_left(&fleet), all_left(&Fleet::new(&nodes, Mix::default())));
    }

    /// The order of the list does not matter for nodes that differ only in their number.
    #[test]
    fn equal_nodes_may_stand_in_any_order(
        nodes in prop::collection::vec(a_node(), 1..4), mix in a_mix(), need in a_need(),
        copies in 1usize..4,
    ) {
        let together: Vec<Node> =
            nodes.iter().flat_map(|node| vec![node.clone(); copies]).collect();
        let in_turn: Vec<Node> = nodes.iter().cloned().cycle().take(copies * nodes.len()).collect();
        let makes = |nodes: &[Node], placed: Option<Placement>| {
            let mut makes: Vec<Node> = Vec::new();
            for node in placed.iter().flat_map(nodes_of) {
                makes.push(nodes[node as usize].clone());
            }
            makes
        };
        let one = Need { tasks: 1, ..need };
        let first = Fleet::new(&together, mix.clone()).place(&one);
        let second = Fleet::new(&in_turn, mix).place(&one);
        prop_assert_eq!(makes(&together, first), makes(&in_turn, second));
    }

    /// A fleet that has dropped cached answers after many states answers like a new one.
    #[test]
    fn forgetting_changes_no_answer(
        nodes in prop::collection::vec(a_node(), 1..3), mix in a_mix(),
        needs in prop::collection::vec(a_need(), 1..4),
    ) {
        let mut fleet = Fleet::new(&nodes, mix.clone());
        for milli in 1..300 {
            let task = Task { cpu_milli: milli, ..task(0, Gpus::None) };
            let Some(placed) = fleet.place(&Need::one(task)) else { continue };
            fleet.take(&placed).unwrap();
            fleet.give_back(&placed).unwrap();
        }
        for need in &needs {
            prop_assert_eq!(fleet.place(need), Fleet::new(&nodes, mix.clone()).place(need));
        }
    }
}
