//! `berth reservation`: what was booked, and what can still be done about it.

mod change;
mod find;
mod list;
mod show;

use berth_api::members::Reason;
use berth_api::reference::PersonReference;
use berth_api::reservations::{HandOver, Rejection, Reservation as ReservationObject};
use berth_model::{ReservationId, Text};
use clap::Subcommand;

use crate::arguments::Placed;
use crate::commands::Acting;
use crate::context::Context;
use crate::handle::Handle;
use find::find;

pub use change::SeenBy;

/// A reservation by its id, by the end of its id, and with or without its site.
pub type Named = Placed<Handle<ReservationId>>;

#[derive(Debug, Subcommand)]
pub enum Reservation {
    /// List your reservations, or those of the site
    List(list::List),
    /// Show one reservation in full
    Show {
        /// The reservation, by its id or the end of it
        id: Named,
    },
    /// Move the end of a reservation to later; it never makes one shorter
    Extend(change::Extend),
    /// Change a reservation: its times, resources, title and so on
    Set(change::Set),
    /// Cancel a reservation; one that runs ends now
    Cancel {
        /// The reservation, by its id or the end of it
        id: Named,
        /// Why; kept in its history
        #[arg(long)]
        reason: Option<Text>,
        #[command(flatten)]
        acting: Acting,
    },
    /// Book what you hold
    Take {
        /// The reservation, by its id or the end of it
        id: Named,
        #[command(flatten)]
        acting: Acting,
    },
    /// Say that you are there, where no-shows are released
    CheckIn {
        /// The reservation, by its id or the end of it
        id: Named,
        #[command(flatten)]
        acting: Acting,
    },
    /// Give a reservation to another member of the site
    HandOver {
        /// The reservation, by its id or the end of it
        id: Named,
        /// Who gets it, by login name
        #[arg(long, value_name = "PERSON")]
        to: PersonReference,
        /// Why; kept in its history
        #[arg(long)]
        reason: Option<Text>,
        #[command(flatten)]
        acting: Acting,
    },
    /// Approve a reservation that waits for it (site admins, or whom a policy asks)
    Approve {
        /// The reservation, by its id or the end of it
        id: Named,
        #[command(flatten)]
        acting: Acting,
    },
    /// Reject a reservation that waits for approval (site admins, or whom a policy asks)
    Reject {
        /// The reservation, by its id or the end of it
        id: Named,
        /// Why; its owner reads it
        #[arg(long)]
        reason: Text,
        #[command(flatten)]
        acting: Acting,
    },
    /// Show what happened to a reservation
    History {
        /// The reservation, by its id or the end of it
        id: Named,
    },
}

pub async fn run(command: Reservation, context: &Context) -> anyhow::Result<()> {
    let client = &context.client;
    match command {
        Reservation::List(list) => list::run(list, context).await,
        Reservation::Show { id } => show::one(&id, context).await,
        Reservation::Extend(extend) => change::extend(extend, context).await,
        Reservation::Set(set) => change::set(set, context).await,
        Reservation::Cancel { id, reason, acting } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            let cancelled = client
                .cancel_reservation(&site, id, &Reason { reason })
                .await?;
            done("Cancelled", &cancelled, context)
        }
        Reservation::Take { id, acting } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            done("Took", &client.take_reservation(&site, id).await?, context)
        }
        Reservation::CheckIn { id, acting } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            done("Checked in to", &client.check_in(&site, id).await?, context)
        }
        Reservation::HandOver {
            id,
            to,
            reason,
            acting,
        } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            let handed = client
                .hand_over(&site, id, &HandOver { to, reason })
                .await?;
            done("Handed over", &handed, context)
        }
        Reservation::Approve { id, acting } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            done(
                "Approved",
                &client.approve_reservation(&site, id).await?,
                context,
            )
        }
        Reservation::Reject { id, reason, acting } => {
            let client = acting.client(client);
            let (site, id) = find(&id, context).await?;
            let rejected = client
                .reject_reservation(&site, id, &Rejection { reason })
                .await?;
            done("Rejected", &rejected, context)
        }
        Reservation::History { id } => show::history(&id, context).await,
    }
}

/// Says what was done to which reservation.
fn done(verb: &str, reservation: &ReservationObject, context: &Context) -> anyhow::Result<()> {
    context.out.show(reservation, |_| {
        let what = crate::show::booking(reservation, &context.times);
        format!("{verb} {what}. It is {}.\n", reservation.state)
    })
}
