//! A day as a picture: a row for each resource, a block for each half hour.
//!
//! What is booked on a resource takes all that is below it, and a part of all that is above it: a booked rack shows
//! on its servers, and a booked server on its rack. The picture is plain text and says with signs what colours would
//! say only to some.

use berth_api::calendar::{Calendar, CalendarEntry, EntryKind, SummaryRow, SummaryStep};
use berth_api::resources::Resource;
use berth_model::ResourceId;
use jiff::{SignedDuration, Timestamp};
use unicode_width::UnicodeWidthStr;

use super::tree::Tree;
use crate::table::{Screen, printable};
use crate::times::Times;

#[derive(Debug, Clone, Copy)]
pub struct Day {
    pub start: Timestamp,
    pub end: Timestamp,
}

const BLOCK: SignedDuration = SignedDuration::from_mins(30);
/// A label every three hours leaves room for its digits.
const LABEL_EVERY_H: i8 = 3;
const NAME_MAX: usize = 24;
const GAP: usize = 2;

/// What a block shows. Where several claims touch it, the last of these that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Free,
    Part,
    Taken,
    Maintenance,
    Mine,
}

const KEY: &str = "· free  ▓ yours  █ taken  ░ in part  ▒ maintenance";

/// What is drawn: an entry, or a step of a summary.
#[derive(Debug)]
pub struct Mark {
    resource: ResourceId,
    start: Timestamp,
    end: Timestamp,
    kind: EntryKind,
    mine: bool,
    is_whole: bool,
}

impl Mark {
    fn of_entry(entry: &CalendarEntry) -> Self {
        Self {
            resource: entry.resource.id,
            start: entry.start,
            end: entry.end,
            kind: entry.kind,
            mine: entry.mine,
            is_whole: entry.amount.is_none(),
        }
    }

    /// A step is whole only where nothing is left at any moment of it, and yours or maintenance only where all of it is.
    fn of_step(row: &SummaryRow, step: &SummaryStep, length: SignedDuration) -> Self {
        let only = match step.parts.as_slice() {
            [part] if step.is_full => Some(part),
            _ => None,
        };
        Self {
            resource: row.resource.id,
            start: step.start,
            end: step.start + length,
            kind: only.map_or(EntryKind::Busy, |part| part.kind),
            mine: only.is_some_and(|part| part.mine),
            is_whole: step.is_full,
        }
    }
}

/// Everything that a calendar says is taken.
pub fn marks(calendar: &Calendar) -> Vec<Mark> {
    let mut marks: Vec<Mark> = calendar.items.iter().map(Mark::of_entry).collect();
    if let Some(summary) = &calendar.summary {
        let length = SignedDuration::from_secs(i64::try_from(summary.step_s).unwrap_or(i64::MAX));
        let steps = summary
            .rows
            .iter()
            .flat_map(|row| row.steps.iter().map(move |step| (row, step)));
        marks.extend(steps.map(|(row, step)| Mark::of_step(row, step, length)));
    }
    marks
}

impl Sign {
    fn letter(self) -> char {
        match self {
            Sign::Free => '·',
            Sign::Part => '░',
            Sign::Taken => '█',
            Sign::Maintenance => '▒',
            Sign::Mine => '▓',
        }
    }

    /// What `mark` means to `resource`.
    fn of(mark: &Mark, resource: ResourceId, tree: &Tree) -> Self {
        let whole = tree.is_under(resource, mark.resource);
        match mark.kind {
            _ if whole && mark.mine => Sign::Mine,
            EntryKind::Maintenance if whole => Sign::Maintenance,
            _ if whole && mark.is_whole => Sign::Taken,
            _ if whole || tree.is_under(mark.resource, resource) => Sign::Part,
            _ => Sign::Free,
        }
    }
}

pub fn render(
    day: &Day,
    rows: &[&Resource],
    tree: &Tree,
    marks: &[Mark],
    times: &Times,
    screen: Screen,
) -> String {
    let blocks = blocks(day);
    let names = rows.iter().map(|row| row.name.as_str().width());
    let name_width = names.max().unwrap_or(0).min(NAME_MAX);
    let needed = name_width + GAP + blocks.len();
    let heading = heading(day, times);
    if rows.is_empty() || screen.width.is_some_and(|width| width < needed) {
        return format!("{heading}\n");
    }
    let scale = scale(&blocks, times);
    let mut text = format!("{heading}   {KEY}\n{:name_width$}  {scale}\n", "");
    for row in rows {
        let marks: Vec<(&Mark, Sign)> = marks
            .iter()
            .map(|mark| (mark, Sign::of(mark, row.id, tree)))
            .filter(|(_, sign)| *sign != Sign::Free)
            .collect();
        let name = shortened(&printable(row.name.as_str()));
        let line: String = blocks
            .iter()
            .map(|start| at(*start, &marks).letter())
            .collect();
        text += &format!("{name:name_width$}  {line}\n");
    }
    text
}

/// The sign of the block that begins at `start`.
fn at(start: Timestamp, marks: &[(&Mark, Sign)]) -> Sign {
    let touching = marks
        .iter()
        .filter(|(mark, _)| mark.start < start + BLOCK && mark.end > start);
    touching.map(|(_, sign)| *sign).max().unwrap_or(Sign::Free)
}

fn heading(day: &Day, times: &Times) -> String {
    let start = day.start.to_zoned(times.zone().clone());
    format!("{}, {}", start.strftime("%A %-d %B %Y"), times.zone_name())
}

/// The starts of all blocks; a day on which the clocks change has more or fewer.
fn blocks(day: &Day) -> Vec<Timestamp> {
    let mut starts = Vec::new();
    let mut at = day.start;
    while at < day.end {
        starts.push(at);
        at += BLOCK;
    }
    starts
}

/// The hours above the blocks, as the clocks show them.
fn scale(blocks: &[Timestamp], times: &Times) -> String {
    let mut line = String::new();
    for (position, start) in blocks.iter().enumerate() {
        let at = start.to_zoned(times.zone().clone());
        let begins_a_label = at.minute() == 0 && at.hour() % LABEL_EVERY_H == 0;
        if begins_a_label && line.len() <= position {
            line += &" ".repeat(position - line.len());
            line += &at.hour().to_string();
        }
    }
    line
}

fn shortened(name: &str) -> String {
    if name.width() <= NAME_MAX {
        return name.to_owned();
    }
    // Names are ASCII, one cell for each letter.
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Colour;
    use serde_json::{Value, json};

    fn id(number: u8) -> String {
        format!("res_01kc3v9xwbe8rv5w2n9q3m7t4{number}")
    }

    fn resource(number: u8, name: &str, parent: Option<u8>) -> Resource {
        let parent = parent.map(|number| json!({"id": id(number), "name": "x", "type": "rack"}));
        serde_json::from_value(json!({
            "id": id(number), "name": name, "title": null, "parent": parent,
            "site": {"id": "sit_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "torino", "title": "Torino"},
            "type": {"id": "typ_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu", "title": "GPU"},
            "attributes": {}, "facts": {}, "capacity": null, "status": "ACTIVE", "status_reason": null,
            "effective_status": "ACTIVE", "status_from": null, "version": 1
        }))
        .unwrap()
    }

    fn entry(resource: u8, from: &str, to: &str, more: Value) -> CalendarEntry {
        let mut entry = json!({
            "claim": "clm_01kc3v9xwbe8rv5w2n9q3m7t4h", "amount": null, "kind": "reservation", "mine": false,
            "resource": {"id": id(resource), "name": "x", "type": "gpu"},
            "start": format!("2026-11-20T{from}Z"), "end": format!("2026-11-20T{to}Z"),
        });
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    fn friday() -> Day {
        Day {
            start: "2026-11-19T23:00:00Z".parse().unwrap(),
            end: "2026-11-20T23:00:00Z".parse().unwrap(),
        }
    }

    fn drawn(width: Option<usize>) -> String {
        let resources = [
            resource(1, "rack-1", None),
            resource(2, "gpu-01", Some(1)),
            resource(3, "gpu-02", Some(1)),
            resource(4, "licences", None),
        ];
        let entries = [
            entry(2, "08:00:00", "11:00:00", json!({"mine": true})),
            entry(1, "17:00:00", "19:15:00", json!({"kind": "maintenance"})),
            entry(3, "08:10:00", "08:20:00", json!({"kind": "busy"})),
            entry(4, "11:00:00", "23:00:00", json!({"amount": 3})),
        ];
        let screen = Screen {
            width,
            colour: Colour::Off,
        };
        let rows: Vec<&Resource> = resources.iter().collect();
        let tree = Tree::new(&resources);
        let marks: Vec<Mark> = entries.iter().map(Mark::of_entry).collect();
        render(&friday(), &rows, &tree, &marks, &Times::fixed(), screen)
    }

    #[test]
    fn a_day_is_drawn_in_half_hours_and_what_is_booked_shows_above_and_below() {
        let expected = [
            "Friday 20 November 2026, Europe/Rome   · free  ▓ yours  █ taken  ░ in part  ▒ maintenance",
            "          0     3     6     9     12    15    18    21",
            "rack-1    ··················░░░░░░············▒▒▒▒▒·······",
            "gpu-01    ··················▓▓▓▓▓▓············▒▒▒▒▒·······",
            "gpu-02    ··················█·················▒▒▒▒▒·······",
            "licences  ························░░░░░░░░░░░░░░░░░░░░░░░░",
        ];
        assert_eq!(drawn(None).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn steps_of_a_summary_are_drawn_as_what_is_sure_of_them() {
        let steps = |hour: u8, is_full: bool, mine: bool| {
            json!({"start": format!("2026-11-20T{hour:02}:00:00Z"), "taken": 16, "is_full": is_full,
                "parts": [{"kind": "workload", "mine": mine, "claims": 31, "taken": 16}]})
        };
        let resource_1 = resource(1, "cores", None);
        let calendar: Calendar = serde_json::from_value(json!({
            "items": [], "summary": {"step_s": 3600, "covers": "workloads", "rows": [{
                "resource": {"id": id(1), "name": "cores", "type": "cpu"},
                "steps": [steps(8, false, true), steps(9, true, false), steps(10, true, true)],
            }]},
        }))
        .unwrap();
        let screen = Screen {
            width: None,
            colour: Colour::Off,
        };
        let tree = Tree::new(std::slice::from_ref(&resource_1));
        let drawn = render(
            &friday(),
            &[&resource_1],
            &tree,
            &marks(&calendar),
            &Times::fixed(),
            screen,
        );
        assert_eq!(
            drawn.lines().last().unwrap(),
            "cores  ··················░░██▓▓························"
        );
    }

    #[test]
    fn on_a_narrow_screen_only_the_agenda_is_left() {
        assert_eq!(drawn(Some(40)), "Friday 20 November 2026, Europe/Rome\n");
    }

    #[test]
    fn a_day_with_25_hours_has_two_blocks_more_and_its_clock_goes_back() {
        let sunday = Day {
            start: "2026-10-24T22:00:00Z".parse().unwrap(),
            end: "2026-10-25T23:00:00Z".parse().unwrap(),
        };
        let starts = blocks(&sunday);
        assert_eq!(starts.len(), 50);
        assert!(scale(&starts, &Times::fixed()).starts_with("0       3     6"));
    }
}
