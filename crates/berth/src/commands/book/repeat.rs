//! Booking again and again: what was typed as a rule, and what became of the series.

use std::str::FromStr;

use berth_api::moment::Moment;
use berth_api::reference::SiteReference;
use berth_api::reservations::NewReservation;
use berth_api::series::{
    Day, ForeseenInstance, NewSeries, OnConflict, Rule, Series, SkippedInstance,
};
use berth_api::{Code, Problem};
use clap::Args;
use jiff::Timestamp;

use crate::commands::Once;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{ended, usage};
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Again and again")]
pub struct RepeatArguments {
    /// Book it every `day`, `week` or `month`, or every `2 weeks`; until when say --count or --until
    #[arg(long, value_name = "PERIOD", conflicts_with_all = ["repeat", "any", "wait"])]
    every: Option<Every>,
    /// On these days: `mon,wed`; every month also `1,15`, `2tu` (second Tuesday) or `-1fr` (last Friday)
    #[arg(
        long,
        value_name = "DAYS",
        value_delimiter = ',',
        requires = "every",
        allow_hyphen_values = true
    )]
    on: Vec<On>,
    /// So many times
    #[arg(long, value_name = "N", requires = "every", conflicts_with = "until")]
    count: Option<u16>,
    /// The last day on which it may start
    #[arg(long, value_name = "DAY", requires = "every")]
    until: Option<String>,
    /// The same as a rule of RFC 5545, as in `FREQ=WEEKLY;BYDAY=MO;COUNT=10`
    #[arg(long, value_name = "RULE", conflicts_with_all = ["any", "wait"])]
    repeat: Option<Rule>,
    /// A day to leave out; repeat it for several
    #[arg(long, value_name = "DAY")]
    except: Vec<String>,
    /// Leave out what is taken and book the rest, instead of all or nothing
    #[arg(long)]
    skip_conflicts: bool,
}

/// How often: a number of days, weeks or months.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Every {
    number: u16,
    frequency: &'static str,
}

impl FromStr for Every {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a period: write `day`, `week`, `month`, or with a number `2 weeks`"
            )
        };
        let text = text.trim().to_lowercase();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number = match number {
            "" => 1,
            number => number.parse().map_err(|_| refuse())?,
        };
        let frequency = match unit.trim() {
            "day" | "days" | "d" => "DAILY",
            "week" | "weeks" | "w" => "WEEKLY",
            "month" | "months" => "MONTHLY",
            _ => return Err(refuse()),
        };
        Ok(Self { number, frequency })
    }
}

/// A day as people and RFC 5545 write it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum On {
    Weekday(String),
    DayOfMonth(i8),
}

impl FromStr for On {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_lowercase();
        if let Ok(day) = text.parse() {
            return Ok(On::DayOfMonth(day));
        }
        let start = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-".contains(c));
        let (place, name) = text.split_at(text.len() - start.len());
        let days = [
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
        ];
        let known = days
            .into_iter()
            .find(|day| name.len() >= 2 && day.starts_with(name));
        match known {
            Some(day) => Ok(On::Weekday(format!("{place}{}", day[..2].to_uppercase()))),
            None => Err(format!(
                "`{text}` is not a day: write `mon`, a day of the month, or `2tu` for the second Tuesday of it"
            )),
        }
    }
}

impl RepeatArguments {
    /// Whether a series is asked for at all.
    pub fn is_asked(&self) -> anyhow::Result<bool> {
        let is_asked = self.every.is_some() || self.repeat.is_some();
        if !is_asked && (self.skip_conflicts || !self.except.is_empty()) {
            return Err(usage(
                "--except and --skip-conflicts are for a series: say how often with --every or --repeat",
            ));
        }
        Ok(is_asked)
    }

    /// What makes a series of a booking.
    pub fn series(&self, first: NewReservation, times: &Times) -> anyhow::Result<NewSeries> {
        let day = |text: &String| -> anyhow::Result<Day> { Ok(times.read(text)?.date().into()) };
        let except: Vec<Day> = self.except.iter().map(day).collect::<anyhow::Result<_>>()?;
        Ok(NewSeries {
            rule: self.rule(times)?,
            except: except.try_into()?,
            on_conflict: if self.skip_conflicts {
                OnConflict::Skip
            } else {
                OnConflict::Refuse
            },
            title: first.title,
            start: whole_seconds(first.start)?,
            end: whole_seconds(first.end)?,
            resources: first.resources,
            project: first.project,
            privacy: first.privacy,
            parameters: first.parameters,
            on_behalf_of: first.on_behalf_of,
            at_end: first.at_end,
            lends: first.lends,
        })
    }

    fn rule(&self, times: &Times) -> anyhow::Result<Rule> {
        let Some(every) = self.every else {
            return match &self.repeat {
                Some(rule) => Ok(rule.clone()),
                None => Err(usage("say how often with --every or --repeat")),
            };
        };
        let mut rule = format!("FREQ={}", every.frequency);
        if every.number != 1 {
            rule += &format!(";INTERVAL={}", every.number);
        }
        let (mut weekdays, mut days) = (Vec::new(), Vec::new());
        for on in &self.on {
            match on {
                On::Weekday(day) => weekdays.push(day.clone()),
                On::DayOfMonth(day) => days.push(day.to_string()),
            }
        }
        if !weekdays.is_empty() {
            rule += &format!(";BYDAY={}", weekdays.join(","));
        }
        if !days.is_empty() {
            rule += &format!(";BYMONTHDAY={}", days.join(","));
        }
        match (self.count, &self.until) {
            (Some(count), _) => rule += &format!(";COUNT={count}"),
            (None, Some(until)) => {
                let last = times.read(until)?.date();
                rule += &format!(";UNTIL={}", last.strftime("%Y%m%d"));
            }
            (None, None) => {
                return Err(usage(
                    "say how many times with --count, or until which day with --until",
                ));
            }
        }
        rule.parse()
            .map_err(|error: berth_api::series::WordError| usage(error.to_string()))
    }
}

/// A series is kept to the second.
fn whole_seconds(moment: Moment) -> anyhow::Result<Moment> {
    Ok(Timestamp::from_second(moment.get().as_second())?.try_into()?)
}

/// Books the series, or says what booking it would do.
pub async fn run(
    new: &NewSeries,
    what: &str,
    site: &SiteReference,
    dry_run: bool,
    once: &Once,
    context: &Context,
) -> anyhow::Result<()> {
    let times = &context.times;
    if dry_run {
        let preview = context.client.preview_series(site, new).await?;
        let verdict = if preview.accepted {
            "It would be accepted.\n"
        } else {
            "It would be refused.\n"
        };
        context.out.show(&preview, |screen| {
            times.render(&foreseen(&preview.instances, times), screen) + verdict
        })?;
        return match preview.accepted {
            true => Ok(()),
            false => Err(ended(Exit::Conflict)),
        };
    }
    let booked = context.client.book_series(site, new, once.key()).await;
    let booked = booked.inspect_err(|error| {
        let taken = |problem: &Problem| problem.is(Code::ReservationConflict);
        if new.on_conflict == OnConflict::Refuse && error.problem().is_some_and(taken) {
            let help = "Nothing was booked. With --skip-conflicts, what is free of it would be.";
            context.out.note(help);
        }
    })?;
    let series = &booked.object;
    context.out.show(series, |screen| {
        let said = if booked.replayed {
            "Booked before with this key: "
        } else {
            "Booked "
        };
        let skipped = series.skipped.as_deref().unwrap_or_default();
        format!("{said}{}.\n", summary(series, what, times)) + &left_out(skipped, times, screen)
    })?;
    let id = context.typed(&series.site.name, series.id);
    context
        .out
        .note(format!("Cancel it with: berth series cancel {id}"));
    Ok(())
}

/// `gpu-01, 10 times, from Mon 23 Nov 09:00–12:00 (3 h) to Mon 25 Jan 09:00–12:00 (3 h) Europe/Rome`.
fn summary(series: &Series, what: &str, times: &Times) -> String {
    let instances = series.instances.as_deref().unwrap_or_default();
    let many = match instances.len() {
        1 => "once".to_owned(),
        many => format!("{many} times"),
    };
    match (instances.first(), instances.last()) {
        (Some(first), Some(last)) => format!(
            "{}, {many}, from {} to {} {}",
            printable(what),
            times.span(first.start, first.end),
            times.span(last.start, last.end),
            times.zone_name()
        ),
        _ => format!("{}, {many}", printable(what)),
    }
}

/// What was not booked, and why as far as that is known.
pub fn left_out(skipped: &[SkippedInstance], times: &Times, screen: Screen) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let columns = [Column::left("LEFT OUT"), Column::left("BECAUSE").shrinks(1)];
    let mut table = Table::new(columns, "Nothing was left out.");
    for one in skipped {
        let why = one.refusal.as_ref();
        let why = why.map(|problem| times.localised(&problem.detail));
        table.row([times.span(one.start, one.end), why.unwrap_or_default()]);
    }
    times.render(&table, screen)
}

fn foreseen(instances: &[ForeseenInstance], times: &Times) -> Table<3> {
    let columns = [
        Column::left("WHEN"),
        Column::left("WOULD BE"),
        Column::left("REMARK").shrinks(1),
    ];
    let mut table = Table::new(columns, "There would be no instance.");
    for one in instances {
        let becomes = match (&one.refusal, one.state) {
            (Some(_), _) | (None, None) => "refused".to_owned(),
            (None, Some(state)) => state.to_string(),
        };
        let why = one.refusal.as_ref();
        let why = why.map(|problem| times.localised(&problem.detail));
        let remark = why.or_else(|| one.remark.clone()).unwrap_or_default();
        table.row([times.span(one.start, one.end), becomes, remark]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(every: &str, on: &[&str], count: Option<u16>) -> RepeatArguments {
        RepeatArguments {
            every: Some(every.parse().unwrap()),
            on: on.iter().map(|day| day.parse().unwrap()).collect(),
            count,
            until: count.is_none().then(|| "2027-01-31".to_owned()),
            repeat: None,
            except: Vec::new(),
            skip_conflicts: false,
        }
    }

    #[test]
    fn friendly_words_become_a_rule() {
        for (every, on, count, expected) in [
            (
                "week",
                &["mon", "wed"][..],
                Some(10),
                "FREQ=WEEKLY;BYDAY=MO,WE;COUNT=10",
            ),
            ("2 weeks", &[], Some(4), "FREQ=WEEKLY;INTERVAL=2;COUNT=4"),
            ("3d", &[], None, "FREQ=DAILY;INTERVAL=3;UNTIL=20270131"),
            (
                "month",
                &["1", "15"],
                Some(6),
                "FREQ=MONTHLY;BYMONTHDAY=1,15;COUNT=6",
            ),
            (
                "month",
                &["2tu", "-1friday"],
                Some(6),
                "FREQ=MONTHLY;BYDAY=-1FR,2TU;COUNT=6",
            ),
        ] {
            let rule = arguments(every, on, count).rule(&Times::fixed()).unwrap();
            assert_eq!(rule.to_string(), expected);
        }
        for bad in ["", "fortnight", "0.5 weeks", "year"] {
            assert!(bad.parse::<Every>().is_err(), "{bad}");
        }
        for bad in ["", "m", "someday", "2"] {
            assert!(bad == "2" || bad.parse::<On>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_series_has_an_end() {
        let endless = RepeatArguments {
            until: None,
            ..arguments("week", &[], None)
        };
        let said = endless.rule(&Times::fixed()).unwrap_err().to_string();
        assert!(said.contains("--count"), "{said}");
    }
}
