//! `berth policy test`: a booking that nobody makes, held against every rule.

use berth_api::policies::{Instead, PolicyFindings, PolicyTest};
use berth_api::reference::{PersonReference, ProjectReference};
use clap::Args;

use crate::arguments::{Placed, Wanted};
use crate::commands::book::TimeArguments;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

#[derive(Debug, Args)]
pub struct Test {
    /// What it would take: names such as `gpu-01`, with an amount of what is divisible, as in `licences:3`
    #[arg(required = true, value_name = "RESOURCE[:AMOUNT]")]
    resources: Vec<Placed<Wanted>>,
    #[command(flatten)]
    time: TimeArguments,
    /// The project it would belong to
    #[arg(long)]
    project: Option<ProjectReference>,
    /// As whose booking (site admins)
    #[arg(long, value_name = "LOGIN")]
    on_behalf_of: Option<PersonReference>,
}

pub async fn run(test: Test, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of_all(&test.resources)?;
    let (start, end) = test.time.read(&context.times)?;
    let resources: Vec<_> = test
        .resources
        .into_iter()
        .map(|one| one.it.into())
        .collect();
    let asked = PolicyTest {
        start,
        end,
        resources: resources.try_into()?,
        project: test.project,
        on_behalf_of: test.on_behalf_of,
    };
    let found = context.client.test_policies(&site, &asked).await?;
    context
        .out
        .show(&found, |screen| shown(&found, &context.times, screen))?;
    match found.accepted {
        true => Ok(()),
        false => Err(ended(Exit::Conflict)),
    }
}

fn shown(found: &PolicyFindings, times: &Times, screen: Screen) -> String {
    let columns = [
        Column::left("RULE"),
        Column::left("KEPT"),
        Column::left("WHY").shrinks(1),
    ];
    let mut table = Table::new(columns, "No policy asks anything of such a booking.");
    for finding in &found.findings {
        table.row([
            finding.rule.to_string(),
            if finding.holds { "yes" } else { "no" }.to_owned(),
            finding.detail.clone(),
        ]);
    }
    let mut text = table.render(screen);
    let span = |at: &Instead| format!("{} {}", times.span(at.start, at.end), times.zone_name());
    text += if found.accepted {
        "The policies accept it.\n"
    } else {
        "The policies refuse it.\n"
    };
    if let Some(instead) = &found.instead {
        text += &format!("The nearest time that they accept: {}\n", span(instead));
    }
    for approval in &found.approvals {
        text += &format!("It would wait: {}\n", printable(&times.localised(approval)));
    }
    if let Some(by) = found.check_in_by {
        text += &format!("Check in by {}, or it is released.\n", times.moment(by));
    }
    if let Some(set_up) = &found.set_up {
        text += &format!("Held before it to set up: {}\n", span(set_up));
    }
    if let Some(clean_up) = &found.clean_up {
        text += &format!("Held after it to clean up: {}\n", span(clean_up));
    }
    text
}
