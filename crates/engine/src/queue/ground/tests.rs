use proptest::prelude::*;

use super::*;
use crate::fleet::Near;
use crate::queue::fixture::{self, one_gpu};

fn node(gpus: usize) -> Node {
    fixture::node(4, gpus)
}

fn need(tasks: u32, cores: u64, gpus: u16) -> Need {
    fixture::need(tasks, cores * 1000, gpus)
}

/// One GPU of a node, with one core.
fn a_piece(node: u32, gpu: u16) -> Placement {
    one_gpu(node, 1000, gpu)
}

#[test]
fn a_gap_before_a_wall_is_for_what_is_short() {
    let mut ground = Ground::new(&[node(1), node(1)], Mix::default(), 0);
    ground.take(Taker(1), 100, 200, &a_piece(0, 0));
    let on = |placement: Option<Placement>| placement.map(|placement| placement.pieces[0].node.0);
    assert_eq!(
        on(ground.place(&need(1, 1, 1), 100)),
        Some(0),
        "it fits the gap"
    );
    assert_eq!(
        on(ground.place(&need(1, 1, 1), 101)),
        Some(1),
        "it would meet the wall"
    );
    let both = need(2, 1, 1);
    assert_eq!(ground.place(&both, 100).unwrap().pieces.len(), 2);
    assert_eq!(ground.place(&both, 101), None);
    let (at, placement) = ground.earliest(&both, 101, 0, |_| false).unwrap();
    assert_eq!((at, placement.pieces.len()), (200, 2));
    ground.turn(150);
    assert_eq!(
        on(ground.place(&need(1, 1, 1), 10)),
        Some(1),
        "the reservation runs"
    );
    ground.turn(200);
    assert!(ground.place(&both, 1000).is_some());
}

#[derive(Debug, Clone)]
struct Case {
    gpus: Vec<usize>,
    taken: Vec<(u32, u16, i64, i64)>,
    need: Need,
    length: i64,
    now: i64,
}

fn a_case() -> impl Strategy<Value = Case> {
    let taken = prop::collection::vec((0..3_u32, 0..3_u16, 0..25_i64, 1..12_i64), 0..12);
    let wish = (1..4_u32, 0..3_u64, 0..3_u16);
    let gpus = prop::collection::vec(1..4_usize, 1..4);
    let near = prop::sample::select(vec![Near::Anywhere, Near::Rack, Near::Node]);
    let case = (gpus, taken, wish, near, 1..15_i64, 0..10_i64);
    case.prop_map(|(gpus, taken, wish, at_least, length, now)| Case {
        taken: taken
            .into_iter()
            .map(|(node, gpu, from, length)| (node, gpu, from, from + length))
            .filter(|(node, gpu, ..)| usize::from(*gpu) < *gpus.get(*node as usize).unwrap_or(&0))
            .collect(),
        gpus,
        need: Need {
            at_least,
            ..need(wish.0, wish.1, wish.2)
        },
        length,
        now,
    })
}

/// The ground of a case. Claims that would take something twice are skipped.
fn laid(case: &Case) -> Ground {
    let in_rack = |(number, gpus): (usize, &usize)| Node {
        rack: number as u32 / 2,
        ..node(*gpus)
    };
    let nodes: Vec<Node> = case.gpus.iter().enumerate().map(in_rack).collect();
    let mut ground = Ground::new(&nodes, Mix::default(), case.now);
    for (number, (node, gpu, from, to)) in (0..).zip(&case.taken) {
        let free = ground.tracks[*node as usize].free_during(*from, *to);
        if free.gpus[usize::from(*gpu)] == 1000 && free.cpu_milli >= 1000 {
            ground.take(Taker(number), *from, *to, &a_piece(*node, *gpu));
        }
    }
    ground
}

/// Whether all tasks could start at a moment, by counting the free resources of each node during their whole
/// length.
fn could_begin(ground: &Ground, case: &Case, at: i64) -> bool {
    let room = |node: NodeIndex| {
        let left = ground.tracks[node.0 as usize].free_during(at, at + case.length);
        ground.far.room(node, &left, &case.need)
    };
    let nodes = || (0..case.gpus.len() as u32).map(NodeIndex);
    let tasks = u64::from(case.need.tasks);
    match case.need.at_least {
        Near::Anywhere => nodes().map(room).sum::<u64>() >= tasks,
        Near::Rack => ground
            .far
            .racks()
            .any(|(_, nodes)| nodes.map(room).sum::<u64>() >= tasks),
        Near::Node | Near::Link => nodes().any(|node| room(node) >= tasks),
    }
}

/// Whether a placement takes nothing that is taken already.
fn stands(ground: &Ground, placement: &Placement, from: i64, to: i64) -> bool {
    let mut left: Vec<_> = ground
        .tracks
        .iter()
        .map(|track| track.free_during(from, to))
        .collect();
    placement.pieces.iter().all(|piece| {
        let left = &mut left[piece.node.0 as usize];
        let cpu = left.cpu_milli.checked_sub(piece.cpu_milli);
        left.cpu_milli = cpu.unwrap_or(0);
        let whole = piece.gpus.iter().all(|part| {
            let free = &mut left.gpus[usize::from(part.gpu)];
            std::mem::replace(free, 0) == 1000
        });
        cpu.is_some() && whole
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_begins_now_meets_no_wall_and_the_earliest_is_the_earliest(case in a_case()) {
        let mut ground = laid(&case);
        if let Some(placement) = ground.place(&case.need, case.length) {
            prop_assert_eq!(placement.pieces.len(), case.need.tasks as usize);
            prop_assert!(stands(&ground, &placement, case.now, case.now + case.length));
        }
        let counted = (case.now..60).find(|at| could_begin(&ground, &case, *at));
        let found = ground.earliest(&case.need, case.length, case.now, |_| false);
        prop_assert_eq!(found.as_ref().map(|(at, _)| *at), counted);
        let asked = ground.soonest(&case.need, case.length, case.now, 0, |_| false);
        prop_assert_eq!(&asked, &found, "what is remembered changes nothing");
        // Claims that are taken and released change nothing, either.
        if let Some((at, placement)) = &asked {
            ground.take(Taker(99), *at, at + case.length, placement);
            let other = ground.soonest(&case.need, case.length, case.now, 0, |_| false);
            prop_assert_eq!(&other, &ground.earliest(&case.need, case.length, case.now, |_| false));
            ground.release(Taker(99));
            let again = ground.soonest(&case.need, case.length, case.now, 0, |_| false);
            prop_assert_eq!(&again, &found);
        }
        if let Some((at, placement)) = found {
            prop_assert_eq!(placement.pieces.len(), case.need.tasks as usize);
            prop_assert!(stands(&ground, &placement, at, at + case.length));
        }
    }

    /// A ground after some time equals a new ground of that time.
    #[test]
    fn time_that_passes_changes_what_it_should(case in a_case(), later in 0..40_i64) {
        let mut ground = laid(&case);
        ground.turn(case.now + later);
        let mut anew = laid(&case);
        anew.now = case.now + later;
        for number in 0..case.gpus.len() {
            anew.look_again(NodeIndex(number as u32));
        }
        prop_assert_eq!(ground.place(&case.need, case.length), anew.place(&case.need, case.length));
    }
}
