//! A day as a picture: a row for each resource, a block for each half hour.
//!
//! A resource is taken by what is booked on it and on everything it is part of, so that a booked rack shows on its
//! servers too. The picture is plain text and says with four signs what a colour would say only to some.

use std::collections::HashMap;

use berth_api::calendar::{CalendarEntry, EntryKind};
use berth_api::resources::Resource;
use berth_model::ResourceId;
use jiff::{SignedDuration, Timestamp, ToSpan};
use unicode_width::UnicodeWidthStr;

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

const FREE: char = '·';
const PART: char = '░';
const TAKEN: char = '█';
const MAINTENANCE: char = '▒';
const MINE: char = '▓';

const KEY: &str = "· free  ▓ yours  █ taken  ░ in part  ▒ maintenance";

pub fn render(
    day: &Day,
    resources: &[Resource],
    entries: &[CalendarEntry],
    times: &Times,
    screen: Screen,
) -> String {
    let blocks = blocks(day);
    let name_width = resources
        .iter()
        .map(|r| r.name.as_str().width())
        .max()
        .unwrap_or(0)
        .min(NAME_MAX);
    let too_wide = screen
        .width
        .is_some_and(|width| width < name_width + GAP + blocks.len());
    if resources.is_empty() || too_wide {
        return heading(day, times) + "\n";
    }
    let mut text = format!(
        "{}   {KEY}\n{:name_width$}  {}\n",
        heading(day, times),
        "",
        scale(&blocks, times)
    );
    let parents: HashMap<ResourceId, Option<ResourceId>> = resources
        .iter()
        .map(|resource| {
            (
                resource.id,
                resource.parent.as_ref().map(|parent| parent.id),
            )
        })
        .collect();
    for resource in resources {
        let relevant: Vec<&CalendarEntry> = entries
            .iter()
            .filter(|entry| covers(entry.resource.id, resource.id, &parents))
            .collect();
        let row: String = blocks.iter().map(|start| sign(*start, &relevant)).collect();
        let name = shortened(&printable(resource.name.as_str()));
        text += &format!("{name:name_width$}  {row}\n");
    }
    text
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

/// Whether a claim on `claimed` takes `resource`: it is the same, or stands above it.
fn covers(
    claimed: ResourceId,
    resource: ResourceId,
    parents: &HashMap<ResourceId, Option<ResourceId>>,
) -> bool {
    let mut next = Some(resource);
    // The server keeps the tree free of circles; a bound costs nothing and ends the loop whatever it says.
    for _ in 0..=parents.len() {
        match next {
            Some(id) if id == claimed => return true,
            Some(id) => next = parents.get(&id).copied().flatten(),
            None => return false,
        }
    }
    false
}

/// What a block shows. Where several claims touch it, the one that matters most to the reader.
fn sign(start: Timestamp, entries: &[&CalendarEntry]) -> char {
    let end = start.saturating_add(30.minutes()).unwrap_or(start);
    let rank = |sign: char| {
        [FREE, PART, TAKEN, MAINTENANCE, MINE]
            .iter()
            .position(|s| *s == sign)
    };
    entries
        .iter()
        .filter(|entry| entry.start < end && entry.end > start)
        .map(|entry| match entry.kind {
            _ if entry.mine => MINE,
            EntryKind::Maintenance => MAINTENANCE,
            _ if entry.amount.is_some() => PART,
            _ => TAKEN,
        })
        .max_by_key(|sign| rank(*sign))
        .unwrap_or(FREE)
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
        render(&friday(), &resources, &entries, &Times::fixed(), screen)
    }

    #[test]
    fn a_day_is_drawn_in_half_hours_and_a_parent_takes_its_children() {
        let expected = [
            "Friday 20 November 2026, Europe/Rome   · free  ▓ yours  █ taken  ░ in part  ▒ maintenance",
            "          0     3     6     9     12    15    18    21",
            "rack-1    ····································▒▒▒▒▒·······",
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
