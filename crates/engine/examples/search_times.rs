//! Measures the searches on a large site: `cargo run --release -p berth-engine --example search_times`.
//!
//! The site has 10,000 GPUs and 1,000,000 claims and is 90 % busy. The figures are for one thread and for the search
//! alone; the benchmarks measure the same queries over the network.

#![expect(clippy::print_stdout, reason = "figures are what this prints")]

use std::time::{Duration, Instant};

use berth_engine::Tree;
use berth_engine::alternatives::{Bounds, Pool, Refused, alternatives};
use berth_engine::arrange::{Booking, Wish, accept};
use berth_engine::busy::Busy;
use berth_engine::placement::{Candidate, choose};
use berth_engine::when::{Way, earliest};
use berth_model::claim::{Claim, Firmness, Holder, Standing, Take};
use berth_model::{ClaimId, ReservationId, ResourceId, SiteId, Span};
use jiff::{SignedDuration, Timestamp};

/// A small, fixed generator: the same site and the same queries at every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn resource(number: u64) -> ResourceId {
    ResourceId::from_parts(number, &[0; 10])
}

fn at(minute: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + 60 * minute as i64).expect("a moment in this century")
}

fn span(from: u64, to: u64) -> Span {
    Span::new(at(from), at(to)).expect("a span that is not empty")
}

fn claim(on: u64, span: Span) -> Claim {
    Claim {
        id: ClaimId::from_parts(0, &[0; 10]),
        site: SiteId::from_parts(0, &[0; 10]),
        resource: resource(on),
        span,
        take: Take::Exclusive,
        firmness: Firmness::Firm,
        container: None,
        holder: Holder::Reservation(ReservationId::from_parts(0, &[0; 10])),
        standing: Standing::Holding,
    }
}

const GPUS: u64 = 10_000;
const CLAIMS_EACH: u64 = 100;

/// 50 racks of 50 servers of 4 GPUs each; the GPUs are numbered first.
fn tree() -> Tree {
    let gpus = (0..GPUS).map(|gpu| (resource(gpu), Some(resource(20_000 + gpu / 4))));
    let servers = (0..GPUS / 4).map(|n| (resource(20_000 + n), Some(resource(30_000 + n / 50))));
    let racks = (0..GPUS / 200).map(|rack| (resource(30_000 + rack), None));
    Tree::new(gpus.chain(servers).chain(racks)).expect("a tree")
}

/// Bookings of 1 to 19 hours, with gaps of a ninth of that on average. Returns the end of the shortest lane.
fn claims(numbers: &mut Numbers) -> (Vec<Claim>, u64) {
    let mut claims = Vec::new();
    let mut horizon = u64::MAX;
    for gpu in 0..GPUS {
        let mut minute = numbers.below(600);
        for _ in 0..CLAIMS_EACH {
            let length = 60 + numbers.below(18 * 60);
            claims.push(claim(gpu, span(minute, minute + length)));
            minute += length + numbers.below(2 * 600 / 9);
        }
        horizon = horizon.min(minute);
    }
    (claims, horizon)
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!(
        "{name}: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
        ms(50),
        ms(99),
        ms(100)
    );
}

fn when(busy: &Busy, horizon: u64, numbers: &mut Numbers) {
    let starts = [span(0, horizon)];
    for (name, share) in [("one GPU in ten", 10), ("every GPU", 1)] {
        let (mut times, mut met, mut asked) = (Vec::new(), 0, 0);
        for _ in 0..200 {
            let model = numbers.below(share);
            let of_the_model = (0..GPUS).filter(|gpu| gpu % share == model);
            let candidates: Vec<Candidate> = of_the_model
                .map(|gpu| Candidate {
                    resource: resource(gpu),
                    cost: gpu % 3,
                })
                .collect();
            let impossible = numbers.below(2) == 0;
            let way = |count, hours| Way {
                busy,
                candidates: &candidates,
                take: Take::Exclusive,
                count,
                length: SignedDuration::from_hours(hours),
                starts: &starts,
            };
            let count = 1 + numbers.below(4) as usize;
            let many = candidates.len() / 2;
            let ways = match impossible {
                true => [way(many, 1), way(many / 2, 2)],
                false => [way(2 * count, 1), way(count, 2)],
            };
            let began = Instant::now();
            let choices = earliest(&ways, span(numbers.below(horizon / 2), horizon), 5);
            times.push(began.elapsed());
            asked += 1;
            met += usize::from(!choices.is_empty());
        }
        report(&format!("when, {name} ({met} of {asked} met)"), times);
    }
}

/// Refused requests for some of one GPU in ten at a random time, with a search within two weeks around it.
fn refused(busy: &Busy, horizon: u64, numbers: &mut Numbers) {
    let starts = [span(0, horizon)];
    let (mut times, mut offers) = (Vec::new(), 0);
    while times.len() < 200 {
        let model = numbers.below(10);
        let of_the_model = (0..GPUS).filter(|gpu| gpu % 10 == model).map(resource);
        let cost = 0;
        let candidates: Vec<Candidate> = of_the_model
            .map(|resource| Candidate { resource, cost })
            .collect();
        let start = 10_080 + numbers.below(horizon - 3 * 10_080);
        let wish = Refused {
            pool: Pool {
                busy,
                candidates: &candidates,
                starts: &starts,
            },
            take: Take::Exclusive,
            count: 100 + numbers.below(100) as usize,
            span: span(start, start + 60),
        };
        let bounds = Bounds {
            within: span(start - 10_080, start + 10_080),
            apart: SignedDuration::from_micros(1),
            part_min: SignedDuration::from_mins(15),
            step: SignedDuration::from_mins(15),
            limit: 6,
        };
        let began = Instant::now();
        let found = alternatives(&wish, &[(wish.pool, SignedDuration::ZERO)], &bounds);
        times.push(began.elapsed());
        offers += found.len();
    }
    report(
        &format!("alternatives ({offers} offers to 200 wishes)"),
        times,
    );
}

/// An existing booking of the re-arranging lab.
struct Booked {
    id: u64,
    span: Span,
    kind: usize,
    resources: Vec<ResourceId>,
}

/// 100 GPUs of one model, filled with 1,000 movable bookings of 1 to 4 GPUs. A booking of the first kind may have all
/// GPUs, of the second the first half, of the third the last 30. `kinds` is the number of kinds used.
fn rearrange(kinds: u64, numbers: &mut Numbers) {
    let gpus: Vec<ResourceId> = (0..100).map(resource).collect();
    let tree = (0..100).map(|gpu| (resource(gpu), Some(resource(20_000 + gpu / 4))));
    let tree = tree.chain((0..25).map(|server| (resource(20_000 + server), None)));
    let mut busy = Busy::new(Tree::new(tree).expect("a tree"), |_| None, [] as [Claim; 0]);
    let open = [&gpus[..], &gpus[..50], &gpus[70..]];
    let mut standing: Vec<Booked> = Vec::new();
    let mut loads = vec![0; 12_000];
    let draw = |numbers: &mut Numbers| {
        let kind = numbers.below(kinds) as usize;
        let start = numbers.below(10_000);
        let length = 60 + numbers.below(600);
        (kind, 1 + numbers.below(4) as usize, start, start + length)
    };
    let cost = 0;
    let candidates: Vec<Vec<Candidate>> = open
        .iter()
        .map(|open| {
            open.iter()
                .map(|id| Candidate {
                    resource: *id,
                    cost,
                })
                .collect()
        })
        .collect();
    while standing.len() < 1000 {
        let (kind, count, start, end) = draw(numbers);
        let span = span(start, end);
        let Some(resources) = choose(&busy, &candidates[kind], Take::Exclusive, count, span) else {
            continue;
        };
        for id in &resources {
            busy.add(&Claim {
                resource: *id,
                ..claim(0, span)
            });
        }
        loads[start as usize..end as usize]
            .iter_mut()
            .for_each(|load| *load += count);
        let id = standing.len() as u64;
        standing.push(Booked {
            id,
            span,
            kind,
            resources,
        });
    }
    let bookings: Vec<Booking> = standing
        .iter()
        .map(|booking| Booking {
            id: ReservationId::from_parts(booking.id, &[0; 10]),
            span: booking.span,
            take: Take::Exclusive,
            candidates: open[booking.kind],
            resources: &booking.resources,
        })
        .collect();
    let (mut times, mut at_once, mut arranged, mut room, mut moves) = (Vec::new(), 0, 0, 0, 0);
    for _ in 0..500 {
        let (kind, count, start, end) = draw(numbers);
        let wish = Wish {
            span: span(start, end),
            take: Take::Exclusive,
            count,
            candidates: &candidates[kind],
        };
        let began = Instant::now();
        let plan = accept(&busy, &bookings, &wish);
        times.push(began.elapsed());
        let mut during = loads[start as usize..end as usize].iter();
        room += usize::from(during.all(|load| load + count <= 100));
        match plan {
            Some(plan) if plan.moves.is_empty() => at_once += 1,
            Some(plan) => (arranged, moves) = (arranged + 1, moves + plan.moves.len()),
            None => {}
        }
    }
    println!(
        "rearrange, {kinds} kind(s): of {} wishes {room} find enough GPUs at every moment, {at_once} are met at once, \
         {arranged} by {moves} moves",
        times.len()
    );
    report("rearrange", times);
}

fn main() {
    let mut numbers = Numbers(4);
    let (claims, horizon) = claims(&mut numbers);
    let began = Instant::now();
    let mut busy = Busy::new(tree(), |_| None, &claims);
    let built = began.elapsed();
    println!(
        "busy: {} claims built in {:.0} ms",
        claims.len(),
        built.as_secs_f64() * 1e3
    );
    let changes = claims.iter().step_by(1000).map(|claim| {
        let began = Instant::now();
        busy.remove(claim);
        busy.add(claim);
        began.elapsed()
    });
    report("busy, one claim out and in", changes.collect());
    when(&busy, horizon, &mut numbers);
    refused(&busy, horizon, &mut numbers);
    for kinds in [1, 3] {
        rearrange(kinds, &mut numbers);
    }
}
