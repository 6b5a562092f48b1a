//! How long a plan takes on a large site: `cargo run --release -p berth-sim --example plan_times [QUEUED] [varied]`.
#![expect(clippy::print_stdout, reason = "figures are what this prints")]

use std::time::Instant;

use berth_sim::crowd::{Crowd, Limits};

const HOUR: i64 = 3_600_000_000;

fn main() {
    let queued = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let limits = match std::env::args().nth(2).as_deref() {
        Some("varied") => Limits::Varied,
        _ => Limits::Few,
    };
    let mut crowd = timed("made", || Crowd::new(queued.unwrap_or(100_000), limits, 1));
    timed("full", || crowd.plan());
    timed("again", || crowd.plan());
    timed("forecast", || crowd.planner.forecast(crowd.now));
    one_by_one(&mut crowd);
    crowd.advance(3 * HOUR);
    timed("full, many overdue", || crowd.plan());
    timed("again", || crowd.plan());
    one_by_one(&mut crowd);
}

fn one_by_one(crowd: &mut Crowd) {
    let (mut ends, mut arrivals) = (Vec::new(), Vec::new());
    for turn in 0..60 {
        let times = if turn % 2 == 0 {
            crowd.end_one();
            &mut ends
        } else {
            crowd.arrive();
            &mut arrivals
        };
        let started = Instant::now();
        crowd.plan();
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    for (name, mut times) in [("end", ends), ("arrival", arrivals)] {
        times.sort_by(f64::total_cmp);
        let (middle, last) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{name}: median {middle:.2} ms, longest {last:.2} ms");
    }
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    println!("{name}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    result
}
