//! Planning a window: first see what is in its way, then decide about each booking.

use berth_api::maintenance::{
    Choice, Decision, Elsewhere, InTheWay, MaintenancePreview, NewMaintenance,
};
use berth_api::reference::ResourceReference;
use berth_model::{ReservationId, Text};
use clap::Args;

use crate::arguments::Placed;
use crate::commands::Once;
use crate::commands::book::TimeArguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;
use crate::handle::{Handle, ending};
use crate::show;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

#[derive(Debug, Args)]
pub struct Plan {
    /// What is maintained, with all that is below it
    #[arg(required = true, value_name = "RESOURCE")]
    resources: Vec<Placed<ResourceReference>>,
    #[command(flatten)]
    time: TimeArguments,
    /// What is done
    #[arg(long, short)]
    title: Text,
    /// Go around this booking; repeat it for several
    #[arg(long, value_name = "RESERVATION")]
    keep: Vec<Handle<ReservationId>>,
    /// Give this booking others of its kind, or offer them to its owner; repeat it for several
    #[arg(long = "move", value_name = "RESERVATION")]
    shift: Vec<Handle<ReservationId>>,
    /// Cancel this booking, with notice to its owner; repeat it for several
    #[arg(long, value_name = "RESERVATION")]
    cancel: Vec<Handle<ReservationId>>,
    /// Go around every other booking
    #[arg(long, conflicts_with_all = ["move_all", "cancel_all"])]
    keep_all: bool,
    /// Move every other booking
    #[arg(long, conflicts_with = "cancel_all")]
    move_all: bool,
    /// Cancel every other booking, with notice to its owner
    #[arg(long)]
    cancel_all: bool,
    /// Say what is in the way and what the window would occupy, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    once: Once,
}

pub async fn run(plan: Plan, context: &Context) -> anyhow::Result<()> {
    let (client, times) = (&context.client, &context.times);
    let site = context.site_of_all(&plan.resources)?;
    let (start, end) = plan.time.read(times)?;
    let resources: Vec<_> = plan.resources.iter().map(|one| one.it.clone()).collect();
    let mut new = NewMaintenance {
        title: plan.title.clone(),
        resources: resources.try_into()?,
        start,
        end,
        in_the_way: Default::default(),
    };
    if plan.decides() {
        let in_the_way = client.preview_maintenance(&site, &new).await?.in_the_way;
        new.in_the_way = plan.decisions(in_the_way)?.try_into()?;
    }
    if plan.dry_run {
        let preview = client.preview_maintenance(&site, &new).await?;
        context
            .out
            .show(&preview, |screen| preview_text(&preview, times, screen))?;
        return if preview.accepted {
            Ok(())
        } else {
            Err(ended(Exit::Conflict))
        };
    }
    let made = client
        .plan_maintenance(&site, &new, plan.once.key())
        .await?;
    let window = made.object;
    context.out.show(&window, |_| {
        format!(
            "Planned the maintenance “{}”, {}.\n",
            printable(window.title.as_str()),
            super::when(&window, times)
        )
    })?;
    let id = context.typed(&window.site.name, window.id);
    context
        .out
        .note(format!("Cancel it with: berth maintenance cancel {id}"));
    Ok(())
}

impl Plan {
    fn decides(&self) -> bool {
        let one_by_one = [&self.keep, &self.shift, &self.cancel];
        self.rest().is_some() || one_by_one.into_iter().any(|said| !said.is_empty())
    }

    /// What becomes of all that nothing else was said about.
    fn rest(&self) -> Option<Choice> {
        match (self.keep_all, self.move_all, self.cancel_all) {
            (true, _, _) => Some(Choice::Keep),
            (_, true, _) => Some(Choice::Move),
            (_, _, true) => Some(Choice::Cancel),
            _ => None,
        }
    }

    /// What to do with each booking in the way, as far as it was said.
    fn decisions(&self, in_the_way: Vec<InTheWay>) -> anyhow::Result<Vec<Decision>> {
        let mut open: Vec<ReservationId> = in_the_way
            .iter()
            .filter_map(|one| one.booking.reservation)
            .collect();
        open.sort_unstable();
        open.dedup();
        let mut decisions = Vec::new();
        let said = [
            (&self.keep, Choice::Keep),
            (&self.shift, Choice::Move),
            (&self.cancel, Choice::Cancel),
        ];
        for (handles, choice) in said {
            for handle in handles {
                let reservation = handle.pick_one(open.clone(), |id| *id, "booking in the way")?;
                open.retain(|other| *other != reservation);
                decisions.push(Decision {
                    reservation,
                    choice,
                });
            }
        }
        let rest = self.rest().into_iter().flat_map(|choice| {
            open.iter().map(move |reservation| Decision {
                reservation: *reservation,
                choice,
            })
        });
        decisions.extend(rest);
        Ok(decisions)
    }
}

fn preview_text(preview: &MaintenancePreview, times: &Times, screen: Screen) -> String {
    let columns = [
        Column::left("IN THE WAY"),
        Column::left("RESOURCE"),
        Column::left("WHEN"),
        Column::left("BY").shrinks(1),
        Column::left("BECOMES").shrinks(2),
    ];
    let mut table = Table::new(columns, "Nothing is in the way.");
    for one in &preview.in_the_way {
        let booking = &one.booking;
        table.row([
            booking.reservation.map(ending).unwrap_or_default(),
            show::taken(&booking.resource, booking.amount),
            times.span(booking.start, booking.end),
            show::holder(booking),
            becomes(one),
        ]);
    }
    let mut text = times.render(&table, screen);
    let verdict = if preview.accepted {
        "The window can be planned; it would occupy:\n"
    } else {
        "The window cannot be planned until all of these are decided, with --keep, --move or --cancel. It would occupy:\n"
    };
    text += verdict;
    for part in &preview.parts {
        text += &format!(
            "  {} {}\n",
            part.resource.name,
            times.span(part.start, part.end)
        );
    }
    text
}

fn becomes(one: &InTheWay) -> String {
    let names = |instead: &Elsewhere| {
        let names: Vec<&str> = instead
            .resources
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        names.join(", ")
    };
    match (one.choice, &one.instead) {
        (Some(Choice::Keep), _) => "kept".to_owned(),
        (Some(Choice::Cancel), _) => "cancelled".to_owned(),
        (Some(Choice::Move), Some(to)) if to.owner_decides => {
            format!("kept; its owner is offered {}", names(to))
        }
        (Some(Choice::Move), Some(to)) => format!("moved to {}", names(to)),
        (Some(Choice::Move), None) => "nowhere to go".to_owned(),
        (None, Some(to)) if to.owner_decides => {
            format!("not decided; its owner could move to {}", names(to))
        }
        (None, Some(to)) => format!("not decided; could move to {}", names(to)),
        (None, None) => "not decided".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Client, Command};
    use crate::commands::maintenance::Maintenance;
    use clap::Parser;
    use serde_json::json;

    fn in_the_way(last: char) -> InTheWay {
        serde_json::from_value(json!({"choice": null, "instead": null, "booking": {
            "claim": "clm_01kc3v9xwbe8rv5w2n9q3m7t4h", "amount": null, "kind": "reservation", "mine": false,
            "resource": {"id": "res_01kc3v9xwbe8rv5w2n9q3m7t4h", "name": "gpu-01", "type": "gpu"},
            "start": "2026-11-20T09:00:00Z", "end": "2026-11-20T10:00:00Z",
            "reservation": format!("rsv_01kc3v9xwbe8rv5w2n9q3m7t4{last}"),
        }}))
        .unwrap()
    }

    fn typed(flags: &[&str]) -> Plan {
        let words = [
            "berth",
            "maintenance",
            "plan",
            "rack-1",
            "--for",
            "2h",
            "--title",
            "firmware",
        ];
        match Cli::try_parse_from(words.iter().chain(flags))
            .unwrap()
            .command
        {
            Command::Client(Client::Maintenance(Maintenance::Plan(plan))) => plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_booking_gets_the_choice_that_was_said_for_it() {
        let all = || {
            vec![
                in_the_way('a'),
                in_the_way('b'),
                in_the_way('c'),
                in_the_way('b'),
            ]
        };
        let choices = |flags: &[&str]| -> Vec<String> {
            let decisions = typed(flags).decisions(all()).unwrap();
            decisions
                .iter()
                .map(|one| format!("{} {:?}", ending(one.reservation), one.choice))
                .collect()
        };
        assert_eq!(choices(&["--keep", "3m7t4b"]), ["3m7t4b Keep"]);
        assert_eq!(
            choices(&["--keep", "3m7t4b", "--cancel-all"]),
            ["3m7t4b Keep", "3m7t4a Cancel", "3m7t4c Cancel"]
        );
        assert_eq!(
            choices(&["--move", "3m7t4c", "--keep-all"]),
            ["3m7t4c Move", "3m7t4a Keep", "3m7t4b Keep"]
        );
        assert!(typed(&["--cancel", "3m7t4x"]).decisions(all()).is_err());
        assert!(!typed(&[]).decides());
    }
}
