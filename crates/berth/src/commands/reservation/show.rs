//! One reservation in full, and what happened to it.

use berth_api::reservations::Reservation;
use berth_model::Occurrence;
use berth_model::policy::{Approver, Length, Outcome};
use berth_model::reservation::{AskedApproval, AtEnd, CheckIn};

use super::{Named, find};
use crate::context::Context;
use crate::details::Details;
use crate::pages::whole;
use crate::show;
use crate::table::{Column, Table};
use crate::times::Times;

pub async fn one(named: &Named, context: &Context) -> anyhow::Result<()> {
    let (site, id) = find(named, context).await?;
    let reservation = context.client.reservation(&site, id).await?;
    context.out.show(&reservation, |screen| {
        details(&reservation, &context.times).render(screen) + &context.times.footnote()
    })
}

fn details(reservation: &Reservation, times: &Times) -> Details {
    let answers = reservation.parameters.iter().flat_map(|(kind, answers)| {
        answers.iter().map(move |(key, value)| match value {
            serde_json::Value::String(text) => format!("{kind}.{key} = {text}"),
            value => format!("{kind}.{key} = {value}"),
        })
    });
    Details::default()
        .line("Title", &reservation.title)
        .line("State", reservation.state)
        .maybe("Reason", reservation.state_reason.as_ref())
        .line("When", times.span(reservation.start, reservation.end))
        .line("Ends", times.relative(reservation.end))
        .lines(
            "Resources",
            reservation
                .resources
                .iter()
                .map(|one| show::taken(&one.resource, one.amount)),
        )
        .line("Owner", show::person(&reservation.owner))
        .line("Site", &reservation.site.name)
        .maybe(
            "Project",
            reservation.project.as_ref().map(|project| &project.name),
        )
        .line("Seen by", show::seen_by(reservation.privacy))
        .maybe("Series", reservation.occurrence.as_ref().map(part_of))
        .lines(
            "Approvals",
            reservation.terms.approvals.iter().map(approval),
        )
        .maybe(
            "Check-in",
            match reservation.terms.check_in {
                CheckIn::NotAsked => None,
                CheckIn::Until(by) => Some(format!("by {}, or it is released", times.moment(by))),
                CheckIn::Done(at) => Some(format!("done {}", times.moment(at))),
            },
        )
        .maybe("Set up", held(reservation.terms.set_up, "before it"))
        .maybe("Clean up", held(reservation.terms.clean_up, "after it"))
        .maybe("At the end", at_end(reservation.terms.at_end))
        .maybe("Idle time", reservation.terms.lends.map(idle))
        .lines("Parameters", answers)
        .line("Made", times.moment(reservation.created_at))
        .line("Changed", times.moment(reservation.updated_at))
        .line("Id", reservation.id)
        .line("Version", reservation.version)
}

/// Which series it is part of, and whether it still is like the others.
fn part_of(occurrence: &Occurrence) -> String {
    let differs = if occurrence.differs {
        ", and differs from it"
    } else {
        ""
    };
    format!("{}{differs}", occurrence.series)
}

/// `the site's admins: approved by adele (policy of type gpu-node)`.
fn approval(asked: &AskedApproval) -> String {
    let approvers: Vec<String> = asked.approvers.iter().map(Approver::to_string).collect();
    let so_far = match &asked.decision {
        None => "open".to_owned(),
        Some(said) => match said.outcome {
            Outcome::Approve => format!("approved by {}", said.by),
            Outcome::Reject => format!("rejected by {}", said.by),
        },
    };
    format!("{}: {so_far} ({})", approvers.join(" or "), asked.from)
}

fn held(length: Length, when: &str) -> Option<String> {
    (!length.is_zero()).then(|| format!("{length} {when}"))
}

/// What becomes of work inside; nothing is said of what always was.
fn at_end(chosen: AtEnd) -> Option<&'static str> {
    match chosen {
        AtEnd::Stop => None,
        AtEnd::Keep => Some("work inside runs on, until somebody else has a claim to its place"),
        AtEnd::Checkpoint => Some("work inside is told in time, and goes on in the site's queue"),
    }
}

fn idle(is_lent: bool) -> &'static str {
    if is_lent {
        "is lent to others"
    } else {
        "is not lent"
    }
}

pub async fn history(named: &Named, context: &Context) -> anyhow::Result<()> {
    let (site, id) = find(named, context).await?;
    let client = &context.client;
    let history = whole(async |query| client.reservation_history(&site, id, &query).await).await?;
    let times = &context.times;
    context.out.show(&history, |screen| {
        let columns = [
            Column::left("AT"),
            Column::left("STATE"),
            Column::left("TIME"),
            Column::left("BY"),
            Column::left("REASON").shrinks(1),
        ];
        let mut table = Table::new(columns, "Nothing is recorded.");
        for entry in &history.items {
            let state = match entry.from {
                Some(from) if from != entry.to => format!("{from} → {}", entry.to),
                _ => entry.to.to_string(),
            };
            table.row([
                times.moment(entry.at),
                state,
                times.span(entry.start, entry.end),
                show::by(entry.by.as_ref()),
                entry
                    .reason
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ]);
        }
        times.render(&table, screen)
    })
}
