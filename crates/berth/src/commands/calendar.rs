//! `berth calendar`: who has what, as a picture of each day and an agenda below it.

mod picture;
mod tree;

use berth_api::calendar::{
    CalendarEntry, CalendarQuery, CalendarSummary, EntryKind, MaxEntries, SummaryCovers, SummaryRow,
};
use berth_api::client::all_pages;
use berth_api::moment::Moment;
use berth_api::page::Limit;
use berth_api::reference::{Reference, ResourceReference, SiteReference, TypeReference};
use berth_api::resources::{Resource, ResourceQuery};
use clap::Args;
use jiff::Zoned;

use crate::arguments::Placed;
use crate::context::Context;
use crate::failure::usage;
use crate::handle::ending;
use crate::show;
use crate::table::{Column, Screen, Table};
use crate::times::{Times, Until};
use picture::Day;
use tree::Tree;

#[derive(Debug, Args)]
pub struct Calendar {
    /// Only these resources; all of the site, if left out
    resources: Vec<Placed<ResourceReference>>,
    /// The day to begin with, as in `tomorrow`, `friday` or `2026-11-20`
    #[arg(long, value_name = "WHEN", default_value = "today")]
    from: String,
    /// Until when; the end of that day, if left out
    #[arg(long, value_name = "WHEN", conflicts_with = "days")]
    to: Option<String>,
    /// How many days to show
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=366))]
    days: Option<u16>,
    /// Only resources of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<TypeReference>,
    /// Only this resource and what is below it
    #[arg(long, value_name = "RESOURCE")]
    under: Option<ResourceReference>,
}

/// Pictures of more days than this fill screens without telling more than the agenda does.
const PICTURES_MAX: usize = 7;

pub async fn run(calendar: Calendar, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of_all(&calendar.resources)?;
    let query = query(calendar, &context.times)?;
    let (found, all) = tokio::join!(
        context.client.calendar(&site, &query),
        catalogue(context, &site),
    );
    let found = found?;
    let tree = Tree::new(&all);
    let rows = rows(&query, &all, &tree);
    let days = days(&query, &context.times)?;
    context.out.show(&found, |screen| {
        let mut text = String::new();
        if days.len() <= PICTURES_MAX {
            let marks = picture::marks(&found);
            for day in &days {
                text += &picture::render(day, &rows, &tree, &marks, &context.times, screen);
                text.push('\n');
            }
        }
        match &found.summary {
            None => text + &agenda(&found.items, &context.times, screen),
            Some(summary) => {
                if summary.covers == SummaryCovers::Workloads {
                    text += &agenda(&found.items, &context.times, screen);
                    text.push('\n');
                }
                text + &summed(summary, &context.times, screen)
            }
        }
    })
}

fn query(calendar: Calendar, times: &Times) -> anyhow::Result<CalendarQuery> {
    let length = format!("{}d", calendar.days.unwrap_or(1));
    let start = times.read(&calendar.from)?;
    let (from, to) = match &calendar.to {
        Some(to) => times.read_span(&calendar.from, Until::End(to))?,
        None => {
            let day = start.start_of_day()?;
            times.read_span(
                &day.strftime("%FT%T%:z").to_string(),
                Until::Length(&length),
            )?
        }
    };
    let resources: Vec<ResourceReference> =
        calendar.resources.into_iter().map(|one| one.it).collect();
    Ok(CalendarQuery {
        from,
        to,
        resource: resources.try_into()?,
        under: calendar.under,
        kind: calendar.kind,
        max_entries: MaxEntries::default(),
    })
}

/// All resources, since one that is not asked for may contain one that is. Someone who may not see the catalogue
/// still gets the agenda.
async fn catalogue(context: &Context, site: &SiteReference) -> Vec<Resource> {
    let all = all_pages(async |cursor| {
        let query = ResourceQuery {
            limit: Limit::LARGEST,
            cursor,
            ..ResourceQuery::default()
        };
        context.client.resources(site, &query).await
    });
    all.await.unwrap_or_default()
}

/// The resources that the picture has a row for: those asked for, also where nothing is booked.
fn rows<'a>(query: &CalendarQuery, all: &'a [Resource], tree: &Tree) -> Vec<&'a Resource> {
    let is = |reference: &ResourceReference, resource: &Resource| match reference {
        Reference::Id(id) => *id == resource.id,
        Reference::Name(name) => *name == resource.name,
    };
    let named = query.resource.as_slice();
    let top = query
        .under
        .as_ref()
        .and_then(|under| all.iter().find(|one| is(under, one)));
    let is_wanted = |resource: &&Resource| {
        let of_kind = match &query.kind {
            None => true,
            Some(Reference::Id(id)) => *id == resource.kind.id,
            Some(Reference::Name(name)) => name.as_str() == resource.kind.name,
        };
        of_kind
            && (named.is_empty() || named.iter().any(|name| is(name, resource)))
            && top.is_none_or(|top| tree.is_under(resource.id, top.id))
    };
    all.iter().filter(is_wanted).collect()
}

/// The days of the calendar that the time touches, in the person's zone.
fn days(query: &CalendarQuery, times: &Times) -> anyhow::Result<Vec<Day>> {
    let zoned = |moment: Moment| moment.get().to_zoned(times.zone().clone());
    let end = zoned(query.to);
    let mut days = Vec::new();
    let mut start = zoned(query.from).start_of_day()?;
    while start < end {
        let next = next_day(&start)?;
        days.push(Day {
            start: start.timestamp(),
            end: next.timestamp(),
        });
        start = next;
    }
    Ok(days)
}

fn next_day(start: &Zoned) -> anyhow::Result<Zoned> {
    let next = start.tomorrow().and_then(|next| next.start_of_day());
    next.map_err(|_| usage("that leads out of the calendar"))
}

/// What people look for in an agenda: bookings and windows. Work of the queue is counted, for there may be thousands.
const AGENDA_MAX: usize = 100;

fn agenda(entries: &[CalendarEntry], times: &Times, screen: Screen) -> String {
    let columns = [
        Column::left("WHEN"),
        Column::left("RESOURCE"),
        Column::left("BY").shrinks(1),
        Column::left("STATE"),
        Column::left("ID"),
    ];
    let mut table = Table::new(columns, "Nothing is booked in this time.");
    let (work, booked): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|entry| entry.kind == EntryKind::Workload);
    for entry in booked.iter().take(AGENDA_MAX) {
        table.row([
            times.span(entry.start, entry.end),
            show::taken(&entry.resource, entry.amount),
            show::holder(entry),
            entry
                .state
                .map(|state| state.to_string())
                .unwrap_or_default(),
            entry
                .reservation
                .map(ending)
                .or_else(|| entry.window.map(ending))
                .unwrap_or_default(),
        ]);
    }
    let mut text = times.render(&table, screen);
    if booked.len() > AGENDA_MAX {
        let more = booked.len() - AGENDA_MAX;
        text +=
            &format!("{more} more bookings: name resources or a shorter time, or use -o json.\n");
    }
    if !work.is_empty() {
        let claims = work.len();
        text += &format!("Claims of work in the queue: {claims}. `berth queue` lists the work.\n");
    }
    text
}

/// What is too much to list, a line for each resource.
fn summed(summary: &CalendarSummary, times: &Times, screen: Screen) -> String {
    let what = match summary.covers {
        SummaryCovers::Workloads => "Work of the queue is",
        SummaryCovers::All => "Everything is",
    };
    let length = step_length(summary.step_s);
    let columns = [
        Column::left("RESOURCE"),
        Column::right("MOST IN A STEP"),
        Column::right("MOST TAKEN"),
        Column::right("STEPS TAKEN"),
        Column::right("OF THEM FULL"),
    ];
    let mut table = Table::new(columns, "Nothing is booked in this time.");
    for row in &summary.rows {
        let claims = row
            .steps
            .iter()
            .map(|step| step.parts.iter().map(|part| part.claims).sum::<u64>());
        table.row([
            row.resource.name.to_string(),
            claims.max().unwrap_or(0).to_string(),
            most_taken(row),
            row.steps.len().to_string(),
            row.steps
                .iter()
                .filter(|step| step.is_full)
                .count()
                .to_string(),
        ]);
    }
    format!(
        "{what} summed by {length}: too much to list. Ask for fewer resources or a shorter time to see each claim.\n{}",
        times.render(&table, screen)
    )
}

/// The most that is taken at one moment of any step.
fn most_taken(row: &SummaryRow) -> String {
    let amounts: Option<Vec<u64>> = row
        .steps
        .iter()
        .map(|step| step.taken.map(|amount| amount.get()))
        .collect();
    amounts
        .and_then(|amounts| amounts.into_iter().max())
        .map_or("all".to_owned(), |amount| amount.to_string())
}

fn step_length(seconds: u64) -> String {
    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;
    match seconds {
        _ if seconds.is_multiple_of(DAY) => format!("{} d", seconds / DAY),
        _ if seconds.is_multiple_of(HOUR) => format!("{} h", seconds / HOUR),
        _ => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(from: &str, to: Option<&str>, length: Option<u16>) -> anyhow::Result<CalendarQuery> {
        let calendar = Calendar {
            resources: Vec::new(),
            from: from.into(),
            to: to.map(Into::into),
            days: length,
            kind: None,
            under: None,
        };
        query(calendar, &Times::fixed())
    }

    #[test]
    fn a_day_is_shown_whole_unless_an_end_is_said() {
        let day = typed("today", None, None).unwrap();
        assert_eq!(day.from.to_string(), "2026-11-14T23:00:00Z");
        assert_eq!(day.to.to_string(), "2026-11-15T23:00:00Z");
        let from_now = typed("now", None, None).unwrap();
        assert_eq!(from_now.from, day.from);
        let morning = typed("tomorrow 08:00", Some("12:00"), None).unwrap();
        assert_eq!(morning.to.to_string(), "2026-11-16T11:00:00Z");
    }

    #[test]
    fn what_is_summed_has_a_line_for_each_resource() {
        let resource = |name: &str| serde_json::json!({"id": "res_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": name, "type": "cpu"});
        let step = |taken: Option<u64>, is_full: bool, claims: u64| {
            serde_json::json!({"start": "2026-11-20T08:00:00Z", "taken": taken, "is_full": is_full,
                "parts": [{"kind": "workload", "mine": false, "claims": claims, "taken": taken}]})
        };
        let summary: CalendarSummary = serde_json::from_value(serde_json::json!({
            "step_s": 7200, "covers": "workloads", "rows": [
                {"resource": resource("cores"), "steps": [step(Some(12), false, 31), step(Some(16), true, 7)]},
                {"resource": resource("gpu0"), "steps": [step(None, false, 2)]},
            ],
        }))
        .unwrap();
        let screen = Screen {
            width: None,
            colour: crate::table::Colour::Off,
        };
        let text = summed(&summary, &Times::fixed(), screen);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("Work of the queue is summed by 2 h: too much to list."));
        let cells =
            |line: &str| -> Vec<String> { line.split_whitespace().map(Into::into).collect() };
        assert_eq!(cells(lines[2]), ["cores", "31", "16", "2", "1"]);
        assert_eq!(cells(lines[3]), ["gpu0", "2", "all", "1", "0"]);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let query = typed("2027-03-27", None, Some(3)).unwrap();
        let days = days(&query, &Times::fixed()).unwrap();
        let hours: Vec<i64> = days
            .iter()
            .map(|day| day.end.duration_since(day.start).as_hours())
            .collect();
        assert_eq!(hours, [24, 23, 24]);
    }
}
