//! The figures as bars, shades and tables on a terminal.

use berth_api::usage::{
    AllUsage, LeadTimes, Outcomes, RefusalCount, Usage, UsageFigures, UsageRest, UsageSeconds,
    UsageShare,
};
use jiff::SignedDuration;

use crate::show;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;
use crate::when::duration;

const BAR_CELLS: usize = 20;
/// More points than this do not make a line clearer.
const POINTS_MAX: usize = 40;
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Every so many hours the clock is written above the week.
const LABEL_EVERY_H: usize = 6;

pub fn site(usage: &Usage, screen: Screen) -> String {
    let mut text = heading(usage);
    text += &types(usage).render(screen);
    text.push('\n');
    text += &week(&usage.week);
    for table in [people(usage), projects(usage)] {
        if !table.is_empty() {
            text.push('\n');
            text += &table.render(screen);
        }
    }
    text.push('\n');
    text += &leads(&usage.lead_times);
    text += &outcomes(usage.outcomes);
    if let Some(refusals) = usage.refusals.as_ref().filter(|all| !all.is_empty()) {
        text.push('\n');
        text += &refused(refusals).render(screen);
    }
    text
}

pub fn sites(usage: &AllUsage, times: &Times, screen: Screen) -> String {
    let columns = [
        Column::left("SITE"),
        Column::left("USED"),
        Column::right("HOURS"),
        Column::right("OF"),
        Column::right("PEOPLE"),
        Column::right("BOOKINGS"),
        Column::right("NO-SHOWS"),
        Column::right("CANCELLED"),
        Column::right("REFUSED"),
    ];
    let mut table = Table::new(columns, "There is no site yet.");
    for site in &usage.sites {
        let seconds = UsageSeconds {
            available_s: site.available_s,
            used_s: site.used_s,
        };
        table.row([
            site.site.name.clone(),
            bar(seconds),
            hours(site.used_s),
            hours(site.available_s),
            site.people.to_string(),
            site.outcomes.bookings.to_string(),
            site.outcomes.no_shows.to_string(),
            site.outcomes.cancelled.to_string(),
            site.refusals.to_string(),
        ]);
    }
    format!(
        "{}\n{}",
        times.span(usage.from, usage.to),
        times.render(&table, screen)
    )
}

fn heading(usage: &Usage) -> String {
    let zone = usage.time_zone.rules();
    let local = |at: jiff::Timestamp| at.to_zoned(zone.clone()).strftime("%-d %b %Y %H:%M");
    let whose = if usage.mine { ", your own use" } else { "" };
    format!(
        "{}{whose}: {} to {}, {}\n\n",
        printable(&usage.site.title),
        local(usage.from),
        local(usage.to),
        usage.time_zone.as_str(),
    )
}

fn types(usage: &Usage) -> Table<6> {
    let columns = [
        Column::left("TYPE"),
        Column::left("USED"),
        Column::right("HOURS"),
        Column::right("OF"),
        Column::right("RESOURCES"),
        Column::left("OVER TIME").shrinks(1),
    ];
    let mut table = Table::new(columns, "There was nothing to use.");
    let mut row = |name: String, figures: &UsageFigures| {
        let total = UsageSeconds {
            available_s: figures.available_s,
            used_s: figures.used_s,
        };
        table.row([
            name,
            bar(total),
            hours(figures.used_s),
            hours(figures.available_s),
            figures.resources.to_string(),
            line(&figures.by_bucket),
        ]);
    };
    for one in &usage.types {
        row(one.kind.name.clone(), &one.figures);
    }
    if usage.kind.is_none() && !usage.types.is_empty() {
        row("(leaves)".to_owned(), &usage.all);
    }
    table
}

/// `███▌                  17 %`.
fn bar(seconds: UsageSeconds) -> String {
    let Some(share) = seconds.utilisation() else {
        return "nothing to have".to_owned();
    };
    let eighths = (share.clamp(0.0, 1.0) * (BAR_CELLS * 8) as f64).round() as usize;
    let mut bar: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    format!("{bar:<BAR_CELLS$} {:>3.0} %", share * 100.0)
}

/// One character for each bucket, or for several where there are many.
fn line(buckets: &[UsageSeconds]) -> String {
    let at_once = buckets.len().div_ceil(POINTS_MAX).max(1);
    let point = |some: &[UsageSeconds]| {
        let sum = some
            .iter()
            .fold(UsageSeconds::default(), |sum, one| UsageSeconds {
                available_s: sum.available_s + one.available_s,
                used_s: sum.used_s + one.used_s,
            });
        match sum.utilisation() {
            None => ' ',
            Some(share) => step(&HEIGHTS, share),
        }
    };
    buckets.chunks(at_once).map(point).collect()
}

fn step(signs: &[char], share: f64) -> char {
    let last = signs.len() - 1;
    let place = (share.clamp(0.0, 1.0) * last as f64).round() as usize;
    signs[place.min(last)]
}

/// The hours of the week as shades, a line for each day.
fn week(hours: &[UsageSeconds]) -> String {
    let mut scale = String::new();
    for hour in (0..24).step_by(LABEL_EVERY_H) {
        scale += &format!("{hour:<LABEL_EVERY_H$}");
    }
    let mut text = format!(
        "By hour of the week  · none  ░ ▒ ▓ more  █ all\n     {}\n",
        scale.trim_end()
    );
    for (day, hours) in DAYS.iter().zip(hours.chunks(24)) {
        let shade = |hour: &UsageSeconds| match hour.utilisation() {
            None => ' ',
            // A little is not nothing.
            Some(share) if share > 0.0 => step(&SHADES[1..], share),
            Some(_) => SHADES[0],
        };
        let line: String = hours.iter().map(shade).collect();
        text += &format!("{day}  {}\n", line.trim_end());
    }
    text
}

fn people(usage: &Usage) -> Table<4> {
    let items = usage.people.items.iter();
    let named = items.map(|one| (show::person(&one.person), &one.share));
    ranking("WHO", named.collect(), &usage.people.rest)
}

fn projects(usage: &Usage) -> Table<4> {
    let items = usage.projects.items.iter();
    let named = items.map(|one| {
        let name = one.project.as_ref().map(|project| project.name.clone());
        let name = name.unwrap_or_else(|| "(no project)".to_owned());
        (name, &one.share)
    });
    ranking("PROJECT", named.collect(), &usage.projects.rest)
}

fn ranking<'a>(
    title: &'static str,
    mut named: Vec<(String, &'a UsageShare)>,
    rest: &'a UsageRest,
) -> Table<4> {
    let columns = [
        Column::left(title).shrinks(1),
        Column::right("HOURS"),
        Column::right("BOOKINGS"),
        Column::left("OVER TIME").shrinks(2),
    ];
    let mut table = Table::new(columns, "");
    if rest.count > 0 {
        named.push((format!("{} others", rest.count), &rest.share));
    }
    // The most that anybody used in a bucket is the full height of all lines, so that they can be compared.
    let buckets = named.iter().flat_map(|(_, share)| &share.used_s_by_bucket);
    let available_s = buckets.max().copied().unwrap_or(0);
    for (name, share) in named {
        let course = share.used_s_by_bucket.iter().map(|used_s| UsageSeconds {
            available_s,
            used_s: *used_s,
        });
        table.row([
            name,
            hours(share.used_s),
            share.bookings.to_string(),
            line(&course.collect::<Vec<_>>()),
        ]);
    }
    table
}

fn leads(leads: &LeadTimes) -> String {
    let of = |percent| {
        let found = leads.quantiles.iter().find(|one| one.percent == percent);
        found.map(|one| {
            let seconds = i64::try_from(one.lead_s).unwrap_or(i64::MAX);
            // To the minute; nobody plans by the second.
            duration(SignedDuration::from_mins(seconds / 60))
        })
    };
    match (of(50), of(90)) {
        (Some(half), Some(most)) => format!(
            "Half of {} bookings were made at most {half} ahead, nine in ten at most {most}.\n",
            leads.bookings
        ),
        _ => "No booking starts in this time.\n".to_owned(),
    }
}

fn outcomes(of: Outcomes) -> String {
    let Outcomes {
        bookings,
        no_shows,
        failed,
        cancelled,
        cancelled_late,
        rejected,
    } = of;
    format!(
        "{bookings} bookings, of which {no_shows} no-shows and {failed} failed; besides {cancelled} cancelled \
         ({cancelled_late} within a day of the start) and {rejected} rejected.\n"
    )
}

fn refused(refusals: &[RefusalCount]) -> Table<3> {
    let columns = [
        Column::left("REFUSED BECAUSE"),
        Column::left("RULE"),
        Column::right("TIMES"),
    ];
    let mut table = Table::new(columns, "");
    for one in refusals {
        table.row([
            one.code.clone(),
            one.rule.clone().unwrap_or_default(),
            one.count.to_string(),
        ]);
    }
    table
}

/// Whole hours, or tenths where there are few.
fn hours(seconds: u64) -> String {
    let hours = seconds as f64 / 3600.0;
    if hours > 0.0 && hours < 10.0 {
        format!("{hours:.1} h")
    } else {
        format!("{hours:.0} h")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Colour;
    use serde_json::{Value, json};

    fn seconds(available_s: u64, used_s: u64) -> UsageSeconds {
        UsageSeconds {
            available_s,
            used_s,
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(seconds(100, 0)), format!("{:20}   0 %", ""));
        assert_eq!(bar(seconds(100, 50)), format!("{:20}  50 %", "██████████"));
        assert_eq!(bar(seconds(100, 3)), format!("{:20}   3 %", "▋"));
        assert_eq!(bar(seconds(7, 7)), format!("{} 100 %", "█".repeat(20)));
        assert_eq!(bar(seconds(0, 0)), "nothing to have");
    }

    #[test]
    fn a_line_has_no_more_points_than_help() {
        assert_eq!(line(&[seconds(4, 0), seconds(4, 4), seconds(0, 0)]), "▁█ ");
        let many = vec![seconds(10, 5); 400];
        assert_eq!(line(&many).chars().count(), 40);
    }

    #[test]
    fn a_week_is_seven_lines_of_hours() {
        let mut hours = vec![seconds(3600, 0); 168];
        hours[9] = seconds(3600, 3600);
        hours[10] = seconds(3600, 1);
        let drawn = week(&hours);
        let monday = drawn.lines().nth(2).unwrap_or_default();
        assert_eq!(monday, "Mon  ·········█░·············");
        assert_eq!(drawn.lines().count(), 9);
    }

    fn usage() -> Usage {
        let figures = json!({
            "resources": 2, "available_s": 172_800, "used_s": 43_200, "utilisation": 0.25,
            "by_bucket": [{"available_s": 172_800, "used_s": 43_200}],
        });
        let kind = json!({"id": "typ_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu", "title": "GPU"});
        let mut of_type = figures.clone();
        of_type["type"] = kind;
        let rest = json!({"count": 3, "used_s": 1800, "used_s_by_bucket": [1800], "bookings": 4});
        let hours: Vec<Value> = (0..168)
            .map(|_| json!({"available_s": 0, "used_s": 0}))
            .collect();
        serde_json::from_value(json!({
            "site": {"id": "sit_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "torino", "title": "Torino"},
            "from": "2026-11-15T23:00:00Z", "to": "2026-11-16T23:00:00Z", "time_zone": "Europe/Rome",
            "bucket": "day", "mine": false, "type": null,
            "buckets": [{"start": "2026-11-15T23:00:00Z", "end": "2026-11-16T23:00:00Z"}],
            "all": figures, "types": [of_type],
            "people": {"items": [], "rest": rest},
            "projects": {"items": [{"project": null, "used_s": 41_400, "used_s_by_bucket": [41_400], "bookings": 2}],
                "rest": {"count": 0, "used_s": 0, "used_s_by_bucket": [0], "bookings": 0}},
            "week": hours,
            "lead_times": {"bookings": 6,
                "quantiles": [{"percent": 50, "lead_s": 7200}, {"percent": 90, "lead_s": 90_000}],
                "histogram": []},
            "outcomes": {"bookings": 6, "no_shows": 1, "failed": 0, "cancelled": 2, "cancelled_late": 1, "rejected": 0},
            "refusals": [{"code": "policy.refused", "rule": "length_max", "count": 9}],
        }))
        .unwrap()
    }

    #[test]
    fn everything_is_told_on_one_screen() {
        let screen = Screen {
            width: None,
            colour: Colour::Off,
        };
        let text = site(&usage(), screen);
        for expected in [
            "Torino: 16 Nov 2026 00:00 to 17 Nov 2026 00:00, Europe/Rome",
            " 25 %",
            "3 others  0.5 h",
            "(no project)",
            "Half of 6 bookings were made at most 2 h ahead, nine in ten at most 1 d 1 h.",
            "6 bookings, of which 1 no-shows and 0 failed; besides 2 cancelled (1 within a day of the start)",
            "policy.refused   length_max      9",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn a_spreadsheet_gets_a_row_for_each_bucket_and_type() {
        let rows = super::super::table::as_csv(&usage()).unwrap();
        assert_eq!(
            rows,
            "start,end,type,available_s,used_s,utilisation\n\
             2026-11-15T23:00:00Z,2026-11-16T23:00:00Z,,172800,43200,0.2500\n\
             2026-11-15T23:00:00Z,2026-11-16T23:00:00Z,gpu,172800,43200,0.2500\n"
        );
    }
}
