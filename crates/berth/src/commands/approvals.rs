//! `berth approvals`: what waits for your word.

use berth_api::reservations::Reservation;

use crate::context::Context;
use crate::handle::ending;
use crate::show;
use crate::table::{Column, Table};
use crate::times::Times;

pub async fn run(context: &Context) -> anyhow::Result<()> {
    let waiting = context.client.my_approvals().await?;
    let times = &context.times;
    context.out.show(&waiting, |screen| {
        times.render(&table(&waiting.items, times), screen)
    })?;
    if let Some(first) = waiting.items.first() {
        let id = context.typed(&first.site.name, ending(first.id));
        context.out.note(format!(
            "Decide with: berth reservation approve {id}, or reject {id} --reason WHY"
        ));
    }
    Ok(())
}

fn table(waiting: &[Reservation], times: &Times) -> Table<7> {
    let columns = [
        Column::left("ID"),
        Column::left("SITE"),
        Column::left("OWNER"),
        Column::left("RESOURCES").shrinks(2),
        Column::left("WHEN"),
        Column::left("DECIDE BY"),
        Column::left("TITLE").shrinks(1),
    ];
    let mut table = Table::new(columns, "No approvals wait for you.");
    for one in waiting {
        table.row([
            ending(one.id),
            one.site.name.clone(),
            one.owner.login.clone(),
            show::resources(&one.resources),
            times.span(one.start, one.end),
            times.moment(one.terms.decide_by.unwrap_or(one.start)),
            one.title.to_string(),
        ]);
    }
    table
}
