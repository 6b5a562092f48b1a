//! A day as a picture: a row for each resource, a block for each half hour.
//!
//! What is booked on a resource takes all that is below it, and a part of all that is above it: a booked rack shows
//! on its servers, and a booked server on its rack. The picture is plain text and says with signs what colours would
//! say only to some.

use berth_api::calendar::{CalendarEntry, EntryKind};
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

    /// What `entry` means to `resource`.
    fn of(entry: &CalendarEntry, resource: ResourceId, tree: &Tree) -> Self {
        let whole = tree.is_under(resource, entry.resource.id);
        match entry.kind {
            _ if whole && entry.mine => Sign::Mine,
            EntryKind::Maintenance if whole => Sign::Maintenance,
            _ if whole && entry.amount.is_none() => Sign::Taken,
            _ if whole || tree.is_under(entry.resource.id, resource) => Sign::Part,
            _ => Sign::Free,
        }
    }
}

pub fn render(
    day: &Day,
    rows: &[&Resource],
    tree: &Tree,
    entries: &[CalendarEntry],
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
        let marks: Vec<(&CalendarEntry, Sign)> = entries
            .iter()
            .map(|entry| (entry, Sign::of(entry, row.id, tree)))
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
fn at(start: Timestamp, marks: &[(&CalendarEntry, Sign)]) -> Sign {
    let touching = marks
        .iter()
        .filter(|(entry, _)| entry.start < start + BLOCK && entry.end > start);
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
        render(&friday(), &rows, &tree, &entries, &Times::fixed(), screen)
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
