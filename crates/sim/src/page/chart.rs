//! Plots as SVG: axes with names and ticks, lines, and bars. The page draws each plot twice, for wide windows and for
//! phones, so that letters have the same size in both.

use std::fmt::Write;

use super::escaped;

/// The space for a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub class: &'static str,
    pub width: f64,
    pub height: f64,
    /// About how many ticks fit on each axis.
    x_ticks: usize,
    y_ticks: usize,
    /// Width for the names of bars.
    names: f64,
}

pub(super) const SIZES: [Size; 2] = [
    Size {
        class: "wide",
        width: 860.0,
        height: 300.0,
        x_ticks: 10,
        y_ticks: 6,
        names: 150.0,
    },
    Size {
        class: "narrow",
        width: 350.0,
        height: 260.0,
        x_ticks: 5,
        y_ticks: 5,
        names: 92.0,
    },
];

const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;
const LETTER: f64 = 6.6;

/// The texts of a plot.
pub(super) struct Words<'a> {
    pub id: &'a str,
    pub title: &'a str,
    /// A description for people who cannot see the plot.
    pub description: String,
}

/// An axis: its range, its ticks, and its name.
pub(super) struct Axis {
    pub name: String,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    fn part(&self, value: f64) -> f64 {
        let width = (self.to - self.from).max(f64::MIN_POSITIVE);
        ((value - self.from) / width).clamp(0.0, 1.0)
    }
}

/// An axis from zero, with round numbers.
pub(super) fn from_zero(name: &str, to: f64, ticks: usize, show: impl Fn(f64) -> String) -> Axis {
    let step = round_step(to / ticks.max(1) as f64);
    let count = (to / step).ceil().max(1.0);
    let tick = |place: usize| (place as f64 * step, show(place as f64 * step));
    Axis {
        name: name.to_owned(),
        from: 0.0,
        to: count * step,
        ticks: (0..=count as usize).map(tick).collect(),
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power);
    let mut enough = steps.filter(|step| *step >= least * 0.999_999);
    enough.next().unwrap_or(10.0 * power)
}

/// The line of one policy, by its index, through points of the two axes.
pub(super) struct Line {
    pub policy: usize,
    pub points: Vec<(f64, f64)>,
}

fn open(svg: &mut String, size: Size, height: f64, words: &Words<'_>) {
    let Size { class, width, .. } = size;
    let id = format!("{}-{class}", words.id);
    let _ = write!(
        svg,
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\">\
         <title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}</desc>",
        escaped(words.title),
        escaped(&words.description)
    );
}

/// Lines over two axes. The number of ticks that fit determines the vertical axis.
pub(super) fn lines(
    size: Size,
    words: &Words<'_>,
    x: impl Fn(usize) -> Axis,
    y: impl Fn(usize) -> Axis,
    lines: &[Line],
) -> String {
    let (x, y) = (x(size.x_ticks), y(size.y_ticks));
    let (right, bottom) = (size.width - RIGHT, size.height - BOTTOM);
    let across = |value: f64| LEFT + x.part(value) * (right - LEFT);
    let up = |value: f64| bottom - y.part(value) * (bottom - TOP);
    let mut svg = String::new();
    open(&mut svg, size, size.height, words);
    for (value, label) in &y.ticks {
        let at = up(*value);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            escaped(label)
        );
    }
    for (value, label) in &x.ticks {
        let at = across(*value);
        // Keeps the last label inside the picture.
        let half = label.chars().count() as f64 * LETTER / 2.0;
        let middle = at.min(size.width - half - 1.0);
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{at:.1} {bottom}v4\"/>\
             <text x=\"{middle:.1}\" y=\"{:.1}\" class=\"middle\">{}</text>",
            bottom + 17.0,
            escaped(label)
        );
    }
    let _ = write!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>\
         <text x=\"{right}\" y=\"{:.1}\" class=\"end name\">{}</text>\
         <text x=\"4\" y=\"14\" class=\"name\">{}</text>",
        size.height - 6.0,
        escaped(&x.name),
        escaped(&y.name)
    );
    for line in lines {
        let mut path = String::new();
        for (place, (one, other)) in line.points.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", across(*one), up(*other));
        }
        let _ = write!(svg, "<path class=\"line p{}\" d=\"{path}\"/>", line.policy);
    }
    svg.push_str("</svg>");
    svg
}

/// A group of bars: a name, and for each policy its index, the actual value and the target value, from 0 to 1.
pub(super) struct Group {
    pub name: String,
    pub bars: Vec<(usize, f64, f64)>,
}

const BAR: f64 = 11.0;
const GAP: f64 = 12.0;

/// Horizontal bars, one group below the other, each with a mark at its target value.
pub(super) fn bars(
    size: Size,
    words: &Words<'_>,
    x: impl Fn(usize) -> Axis,
    groups: &[Group],
) -> String {
    let x = x(size.x_ticks);
    let (left, right) = (size.names, size.width - RIGHT - 8.0);
    let group_height = |group: &Group| group.bars.len() as f64 * (BAR + 1.0) + GAP;
    let height = 6.0 + groups.iter().map(group_height).sum::<f64>() + BOTTOM;
    let bottom = height - BOTTOM;
    let across = |value: f64| left + x.part(value) * (right - left);
    let mut svg = String::new();
    open(&mut svg, size, height, words);
    for (value, label) in &x.ticks {
        let at = across(*value);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} 6V{bottom:.1}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" class=\"middle\">{}</text>",
            bottom + 17.0,
            escaped(label)
        );
    }
    let letters = ((size.names - 8.0) / LETTER) as usize;
    let mut top = 6.0 + GAP / 2.0;
    for group in groups {
        let middle = top + group.bars.len() as f64 * (BAR + 1.0) / 2.0 + 4.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" class=\"end\">{}</text>",
            left - 6.0,
            escaped(&crate::show::shortened(&group.name, letters))
        );
        for (policy, is, should) in &group.bars {
            let (to, mark) = (across(*is), across(*should));
            let _ = write!(
                svg,
                "<path class=\"bar p{policy}\" d=\"M{left} {top:.1}H{to:.1}v{BAR}H{left}z\"/>\
                 <path class=\"due-edge\" d=\"M{mark:.1} {top:.1}v{BAR}\"/>\
                 <path class=\"due\" d=\"M{mark:.1} {top:.1}v{BAR}\"/>"
            );
            top += BAR + 1.0;
        }
        top += GAP;
    }
    let _ = write!(
        svg,
        "<path class=\"axis\" d=\"M{left} 6V{bottom:.1}\"/>\
         <text x=\"{right}\" y=\"{:.1}\" class=\"end name\">{}</text></svg>",
        height - 6.0,
        escaped(&x.name)
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_largest() {
        for (to, step) in [(0.93, 0.2), (7.0, 2.0), (1234.0, 500.0), (100.0, 20.0)] {
            let axis = from_zero("", to, 5, |value| value.to_string());
            assert!(axis.to >= to && axis.to < to + step, "{to}: {}", axis.to);
            assert!(
                (axis.ticks[1].0 - step).abs() < 1e-9,
                "{to}: {:?}",
                axis.ticks
            );
        }
        let empty = from_zero("", 0.0, 5, |value| value.to_string());
        assert!(empty.to > 0.0 && empty.ticks.len() > 1);
    }
}
