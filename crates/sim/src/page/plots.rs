//! The plots of a comparison.

use crate::compare::{Comparison, Tried};
use crate::outcome::OverTime;
use crate::show::{amount, count, duration, percent};

use super::PROJECTS_MAX;
use super::chart::{self, Axis, Group, Line, SIZES, Size, Words, from_zero};

/// A plot with its title and explanation.
pub(super) struct Plot {
    pub title: &'static str,
    pub meaning: &'static str,
    pub figure: String,
}

pub(super) fn all(comparison: &Comparison) -> Vec<Plot> {
    let tried = &comparison.tried;
    let longest = tried.iter().map(|one| one.outcome.over_time.step).max();
    let step = longest.unwrap_or(1);
    let over_time: Vec<OverTime> = tried
        .iter()
        .map(|one| one.outcome.over_time.in_steps_of(step))
        .collect();
    let mut plots = Vec::new();
    if tried.iter().any(|one| one.outcome.gpu_used.is_some()) {
        plots.push(Plot {
            title: "GPUs used over time",
            meaning: "How much of all GPUs workloads had; what is reserved is not counted.",
            figure: utilisation("gpu", "GPUs used", tried, &over_time, |means| &means.gpu),
        });
    }
    if tried.iter().any(|one| one.outcome.cpu_used.is_some()) {
        plots.push(Plot {
            title: "CPU used over time",
            meaning: "How much of all cores workloads had; what is reserved is not counted.",
            figure: utilisation("cpu", "Cores used", tried, &over_time, |means| &means.cpu),
        });
    }
    plots.push(Plot {
        title: "How long people waited",
        meaning: "How many of the workloads waited no longer than so long. Further up and further to \
                  the left is better.",
        figure: waits(tried),
    });
    plots.push(Plot {
        title: "How many waited",
        meaning: "Workloads in the queue over time.",
        figure: queue(tried, &over_time),
    });
    if tried.iter().any(|one| !one.outcome.shares.is_empty()) {
        plots.push(Plot {
            title: "Share of use by project",
            meaning: "What each project had of all that firm work used while somebody waited. The mark across \
                      a bar is what was due by its weight; what a project did not want was due to the others.",
            figure: shares(tried),
        });
    }
    plots
}

fn figure(draw: impl Fn(Size) -> String) -> String {
    let both: Vec<String> = SIZES.into_iter().map(draw).collect();
    format!("<figure>{}</figure>", both.join("\n"))
}

fn described(tried: &[Tried], say: impl Fn(&Tried) -> String) -> String {
    let each = tried
        .iter()
        .map(|one| format!("{}: {}.", one.candidate.name, say(one)));
    each.collect::<Vec<_>>().join(" ")
}

/// Hours, days or weeks since the beginning, in the unit that gives small numbers.
fn time_axis(over_time: &[OverTime], ticks: usize) -> Axis {
    let length = |means: &OverTime| means.cpu.len() as f64 * means.step as f64 / 1e6;
    let longest_s = over_time.iter().map(length).fold(0.0, f64::max);
    let (name, unit_s) = match longest_s {
        ..7200.0 => ("minutes", 60.0),
        ..259_200.0 => ("hours", 3600.0),
        _ => ("days", 86_400.0),
    };
    let name = format!("Time since the trace began ({name})");
    let axis = from_zero(&name, longest_s / unit_s, ticks, plain);
    // The axis ends at the last moment, not at a round number.
    let to = longest_s / unit_s;
    Axis {
        ticks: axis.ticks.into_iter().filter(|(at, _)| *at <= to).collect(),
        to: to.max(f64::MIN_POSITIVE),
        ..axis
    }
}

fn plain(number: f64) -> String {
    match number.fract() == 0.0 {
        true => count(number as u64),
        false => amount(number),
    }
}

/// Coarsens the steps to as many as are visible.
fn in_steps_for(size: Size, over_time: &[OverTime]) -> Vec<OverTime> {
    let steps = over_time.iter().map(|means| means.cpu.len()).max();
    let seen = (size.width / 4.0) as usize;
    let times = steps.unwrap_or(0).div_ceil(seen).max(1);
    let coarse = |means: &OverTime| means.in_steps_of(means.step * times as i64);
    over_time.iter().map(coarse).collect()
}

/// A point in the middle of each step, in the units of [`time_axis`].
fn time_lines(over_time: &[OverTime], read: impl Fn(&OverTime) -> &[f64]) -> Vec<Line> {
    let axis = time_axis(over_time, 1);
    let longest = over_time.iter().map(|means| means.cpu.len()).max();
    let per_step = axis.to / longest.unwrap_or(1).max(1) as f64;
    let line = |(policy, means): (usize, &OverTime)| Line {
        policy,
        points: (read(means).iter().enumerate())
            .map(|(place, value)| ((place as f64 + 0.5) * per_step, *value))
            .collect(),
    };
    over_time.iter().enumerate().map(line).collect()
}

fn utilisation(
    id: &str,
    name: &str,
    tried: &[Tried],
    over_time: &[OverTime],
    read: fn(&OverTime) -> &[f64],
) -> String {
    let words = Words {
        id,
        title: &format!("{name} over time, one line for each policy"),
        description: described(tried, |one| {
            let used = match id {
                "gpu" => one.outcome.gpu_used,
                _ => one.outcome.cpu_used,
            };
            format!("{} in the mean", percent(used.unwrap_or(0.0)))
        }),
    };
    figure(|size| {
        let over_time = &in_steps_for(size, over_time);
        chart::lines(
            size,
            &words,
            |ticks| time_axis(over_time, ticks),
            |_| from_zero(name, 1.0, 5, |part| format!("{:.0} %", part * 100.0)),
            &time_lines(over_time, read),
        )
    })
}

fn queue(tried: &[Tried], over_time: &[OverTime]) -> String {
    let most = over_time.iter().flat_map(|means| &means.waiting);
    let most = most.copied().fold(0.0, f64::max);
    let words = Words {
        id: "queue",
        title: "Workloads waiting over time, one line for each policy",
        description: described(tried, |one| {
            let most = one.outcome.over_time.waiting.iter().copied();
            format!("at most {} wait", plain(most.fold(0.0, f64::max).ceil()))
        }),
    };
    figure(|size| {
        let over_time = &in_steps_for(size, over_time);
        chart::lines(
            size,
            &words,
            |ticks| time_axis(over_time, ticks),
            |ticks| from_zero("Workloads waiting", most, ticks, plain),
            &time_lines(over_time, |means| &means.waiting),
        )
    })
}

const MARKS: &[(f64, &str)] = &[
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (36_000.0, "10 h"),
    (345_600.0, "4 d"),
    (3_456_000.0, "40 d"),
    (34_560_000.0, "400 d"),
];

/// A logarithmic axis; each tick is about ten times the one before.
fn wait_axis(longest_s: f64, ticks: usize) -> Axis {
    let within = MARKS.iter().filter(|(at, _)| *at <= longest_s);
    let every = within.clone().count().div_ceil(ticks.max(1) + 1).max(1);
    let marks = within.step_by(every);
    Axis {
        name: "Waited at most (logarithmic)".to_owned(),
        from: 0.0,
        to: longest_s.max(10.0).log10(),
        ticks: marks
            .map(|(at, name)| (at.log10(), (*name).to_owned()))
            .collect(),
    }
}

fn waits(tried: &[Tried]) -> String {
    const POINTS: usize = 240;
    let longest = tried.iter().map(|one| one.outcome.waits.max_s);
    let longest = longest.fold(0.0, f64::max);
    let to = wait_axis(longest, 1).to;
    let line = |(policy, one): (usize, &Tried)| {
        let waits = &one.outcome.waits_s;
        let point = |place: usize| {
            let at = to * place as f64 / POINTS as f64;
            let within = waits.partition_point(|wait| *wait <= 10_f64.powf(at) * 1.000_001);
            (at, within as f64 / waits.len().max(1) as f64)
        };
        let points = (0..=POINTS).map(point).collect();
        Line { policy, points }
    };
    let lines: Vec<Line> = tried.iter().enumerate().map(line).collect();
    let words = Words {
        id: "waits",
        title: "Part of the workloads that waited no longer than so long, one line for each policy",
        description: described(tried, |one| {
            let waits = &one.outcome.waits;
            format!(
                "half waited at most {}, nine of ten at most {}, all at most {}",
                duration(waits.median_s),
                duration(waits.p90_s),
                duration(waits.max_s)
            )
        }),
    };
    figure(|size| {
        chart::lines(
            size,
            &words,
            |ticks| wait_axis(longest, ticks),
            |_| from_zero("Workloads", 1.0, 5, |part| format!("{:.0} %", part * 100.0)),
            &lines,
        )
    })
}

/// The projects with the largest shares, and all others together.
fn share_groups(tried: &[Tried]) -> Vec<Group> {
    let mut largest: Vec<(String, f64)> = Vec::new();
    for share in tried.iter().flat_map(|one| &one.outcome.shares) {
        let size = share.used.max(share.due);
        match largest.iter_mut().find(|(name, _)| *name == share.project) {
            Some((_, known)) => *known = known.max(size),
            None => largest.push((share.project.clone(), size)),
        }
    }
    largest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let rest = largest.split_off(largest.len().min(PROJECTS_MAX));
    let bars = |is_of: &dyn Fn(&str) -> bool| {
        let bar = |(policy, one): (usize, &Tried)| {
            let shares = one.outcome.shares.iter();
            let (used, due) = shares
                .filter(|share| is_of(&share.project))
                .fold((0.0, 0.0), |(used, due), share| {
                    (used + share.used, due + share.due)
                });
            (policy, used, due)
        };
        tried.iter().enumerate().map(bar).collect()
    };
    let mut groups: Vec<Group> = largest
        .iter()
        .map(|(name, _)| Group {
            name: name.clone(),
            bars: bars(&|project| project == name),
        })
        .collect();
    if !rest.is_empty() {
        groups.push(Group {
            name: format!("{} others", rest.len()),
            bars: bars(&|project| !largest.iter().any(|(name, _)| name == project)),
        });
    }
    groups
}

fn shares(tried: &[Tried]) -> String {
    let groups = share_groups(tried);
    let words = Words {
        id: "shares",
        title: "Share of use by project, one bar for each policy, with a mark at what was due",
        description: described(tried, |one| {
            let shares = one.outcome.shares.iter().take(PROJECTS_MAX).map(|share| {
                let (used, due) = (percent(share.used), percent(share.due));
                format!("{} had {used} and was due {due}", share.project)
            });
            shares.collect::<Vec<_>>().join(", ")
        }),
    };
    let bars = groups.iter().flat_map(|group| &group.bars);
    let most = bars.fold(0.0, |most: f64, (_, used, due)| most.max(*used).max(*due));
    figure(|size| {
        let show = |part: f64| format!("{:.0} %", part * 100.0);
        chart::bars(
            size,
            &words,
            |ticks| from_zero("Share of use", most.max(0.05), ticks, show),
            &groups,
        )
    })
}
