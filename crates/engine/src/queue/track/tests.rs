use proptest::prelude::*;

use super::*;
use crate::fleet::Task;
use crate::queue::fixture::{self, task};

fn piece(cpu_milli: u64, gpus: &[u16]) -> Piece {
    fixture::piece(0, cpu_milli, gpus)
}

/// Eight cores and four GPUs.
fn node() -> Track {
    Track::new(Left {
        cpu_milli: 8000,
        memory_bytes: 0,
        gpus: vec![1000; 4],
    })
}

fn fits(left: &Left, task: &Task) -> u64 {
    let free = left.gpus.iter().filter(|free| **free == 1000).count() as u64;
    let by = |have: u64, each: u64| have.checked_div(each).unwrap_or(u64::MAX);
    let gpus = u64::from(task.gpus.thousandths() / 1000);
    by(free, gpus).min(by(left.cpu_milli, task.cpu_milli))
}

#[test]
fn a_reservation_of_one_gpu_is_a_wall_to_that_gpu_alone() {
    let mut track = node();
    track.take(Taker(1), 100, 200, piece(0, &[2]));
    let views = track.views(0);
    assert_eq!(views.len(), 2);
    assert_eq!((views[0].until, &views[0].left.gpus), (100, &vec![1000; 4]));
    assert_eq!(views[1].left.gpus, [1000, 1000, 0, 1000]);
    assert_eq!(views[1].until, Micros::MAX);
    track.release(Taker(1));
    assert_eq!(track.views(0).len(), 1);
}

#[test]
fn what_ends_before_a_wall_feeds_it() {
    let mut track = node();
    track.take(Taker(1), 0, 50, piece(6000, &[0, 1, 2]));
    track.take(Taker(2), 100, 200, piece(6000, &[0, 1, 2]));
    // Two cores and a GPU are free now and stay free: the reservation takes exactly what the first taker releases
    // before it.
    assert_eq!(track.views(0).len(), 1);
    assert_eq!(track.views(0)[0].left.cpu_milli, 2000);
    let steps = track.room(
        0..Micros::MAX,
        50,
        |_| false,
        |left| fits(left, &task(1000, 1)),
    );
    let at = |at, tasks| Step { at, tasks };
    assert_eq!(steps, [at(0, 1), at(50, 4), at(51, 1), at(200, 4)]);
}

#[derive(Debug, Clone)]
struct Case {
    taken: Vec<(i64, i64, u64, Vec<u16>)>,
    length: i64,
    task: Task,
}

fn a_case() -> impl Strategy<Value = Case> {
    let gpus = prop::sample::subsequence(vec![0_u16, 1, 2, 3], 0..=4);
    let one = (0..20_i64, 1..10_i64, 0..4_u64, gpus);
    let taken = prop::collection::vec(one, 0..6);
    (taken, 1..12_i64, 0..4_u64, 0..4_u16).prop_map(|(taken, length, cores, gpus)| Case {
        taken: taken
            .into_iter()
            .map(|(from, length, cores, gpus)| (from, from + length, cores * 1000, gpus))
            .collect(),
        length,
        task: task(cores * 1000, gpus.max(u16::from(cores == 0))),
    })
}

proptest! {
    /// At every moment, the track reports the same as plain counting.
    #[test]
    fn views_and_room_are_what_counting_gives(case in a_case(), now in 0..10_i64) {
        let mut track = node();
        for (number, (from, to, cpu, gpus)) in (0..).zip(&case.taken) {
            track.take(Taker(number), *from, *to, piece(*cpu, gpus));
        }
        let least = |from: i64, to: i64| {
            let mut left = track.free_at(from);
            for at in from..to.min(40) {
                left.narrow(&track.free_at(at));
            }
            left
        };
        let views = track.views(now);
        for until in now + 1..45 {
            let view = views.iter().find(|view| until <= view.until);
            prop_assert_eq!(&view.unwrap().left, &least(now, until), "until {}", until);
        }
        let fit = |left: &Left| fits(left, &case.task);
        let steps = track.room(now..Micros::MAX, case.length, |_| false, fit);
        for at in now..45 {
            let step = steps.iter().rev().find(|step| step.at <= at);
            let counted = fits(&least(at, at + case.length), &case.task);
            prop_assert_eq!(step.unwrap().tasks, counted, "at {}", at);
        }
        for enough in 1..4 {
            let counted = (now..45).find(|at| fit(&least(*at, *at + case.length)) >= enough);
            let first = track.first(now..Micros::MAX, case.length, enough, |_| false, fit);
            prop_assert_eq!(first, counted);
        }
    }
}
