//! Reservations in a list: one's own in all sites, or everyone's in one.

use berth_api::reference::{PersonReference, ResourceReference};
use berth_api::reservations::{MyReservationQuery, Reservation, ReservationQuery};
use berth_model::reservation::State;
use clap::Args;

use crate::arguments;
use crate::context::Context;
use crate::handle::ending;
use crate::pages::Length;
use crate::show;
use crate::table::{Column, Table};
use crate::times::Times;

#[derive(Debug, Args)]
pub struct List {
    /// Everyone's in the site at hand, instead of your own in all sites
    #[arg(long, short)]
    everyone: bool,
    /// Those of this person in the site at hand
    #[arg(long, value_name = "LOGIN")]
    owner: Option<PersonReference>,
    /// Those of this resource in the site at hand
    #[arg(long)]
    resource: Option<ResourceReference>,
    /// Only in this state, as in `pending-approval`; repeat it for several
    #[arg(long = "state", value_parser = arguments::state)]
    states: Vec<State>,
    /// Only those that end after this
    #[arg(long, value_name = "WHEN", default_value = "now")]
    from: String,
    /// Only those that start before this
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// Those that are over too
    #[arg(long, conflicts_with = "from")]
    past: bool,
    #[command(flatten)]
    length: Length,
}

pub async fn run(list: List, context: &Context) -> anyhow::Result<()> {
    let (client, times) = (&context.client, &context.times);
    let from = if list.past {
        None
    } else {
        Some(times.read_moment(&list.from)?)
    };
    let to = list
        .to
        .as_deref()
        .map(|to| times.read_moment(to))
        .transpose()?;
    let state: berth_api::list::List<State, 0, 9> = list.states.try_into()?;
    let in_site = list.everyone || list.owner.is_some() || list.resource.is_some();
    let page = if in_site {
        let site = context.site()?;
        let (owner, resource) = (list.owner, list.resource);
        let query = ReservationQuery {
            state,
            owner,
            resource,
            from,
            to,
            ..Default::default()
        };
        list.length
            .read(async |limit, cursor| {
                client
                    .reservations(
                        site,
                        &ReservationQuery {
                            limit,
                            cursor,
                            ..query.clone()
                        },
                    )
                    .await
            })
            .await?
    } else {
        let query = MyReservationQuery {
            state,
            from,
            to,
            ..Default::default()
        };
        list.length
            .read(async |limit, cursor| {
                client
                    .my_reservations(&MyReservationQuery {
                        limit,
                        cursor,
                        ..query.clone()
                    })
                    .await
            })
            .await?
    };
    context.out.show(&page, |screen| {
        times.render(&table(&page.items, in_site, times), screen)
    })?;
    if let Some(more) = list.length.cut(&page) {
        context.out.note(more);
    }
    Ok(())
}

fn table(reservations: &[Reservation], in_site: bool, times: &Times) -> Table<7> {
    let columns = [
        Column::left("ID"),
        Column::left(if in_site { "OWNER" } else { "SITE" }),
        Column::left("RESOURCES").shrinks(2),
        Column::left("START"),
        Column::left("END"),
        Column::left("STATE"),
        Column::left("TITLE").shrinks(1),
    ];
    let mut table = Table::new(
        columns,
        "There are no reservations. `berth book RESOURCE --for 2h` makes one.",
    );
    for reservation in reservations {
        let whose = if in_site {
            &reservation.owner.login
        } else {
            &reservation.site.name
        };
        table.row([
            ending(reservation.id),
            whose.clone(),
            show::wanted(reservation),
            times.moment(reservation.start),
            end(reservation, times),
            reservation.state.to_string(),
            title(reservation),
        ]);
    }
    table
}

/// Its title, marked where it is one of a series.
fn title(reservation: &Reservation) -> String {
    match reservation.occurrence {
        Some(_) => format!("↻ {}", reservation.title),
        None => reservation.title.to_string(),
    }
}

/// When it ends; for one that runs also how soon, because that is what its owner looks for.
fn end(reservation: &Reservation, times: &Times) -> String {
    match reservation.state {
        State::Active | State::Starting => show::expires(reservation.end, times),
        _ => times.moment(reservation.end),
    }
}
