//! `berth book`: a reservation of one or several resources.

pub mod answers;
pub mod repeat;

use std::collections::BTreeSet;

use berth_api::client::Client;
use berth_api::desk::{NewAnyReservation, WaitFor};
use berth_api::reference::{PersonReference, ProjectReference, SiteReference};
use berth_api::reservations::{NewReservation, Reservation, ReservationPreview};
use berth_model::policy::Approver;
use berth_model::reservation::{AtEnd, Privacy, State};
use berth_model::{Selection, Text};
use clap::Args;

use super::Once;
use super::when::WishArguments;
use crate::arguments::{Placed, Wanted};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;
use crate::output::Format;
use crate::show;
use crate::times::{Times, Until};
use answers::AnswerArguments;
use repeat::RepeatArguments;

#[derive(Debug, Args)]
pub struct Book {
    /// What to book: names such as `gpu-01`, with an amount of what is divisible, as in `licences:3`
    #[arg(
        required_unless_present = "any",
        conflicts_with = "any",
        value_name = "RESOURCE[:AMOUNT]"
    )]
    resources: Vec<Placed<Wanted>>,
    /// Any of a kind instead, as in `4 x A100`: a type's name, or what an attribute says
    #[arg(long, value_name = "WISH")]
    any: Option<Selection>,
    #[command(flatten)]
    wish: WishArguments,
    /// With --any: as early as possible from `--from` on, and over by then
    #[arg(
        long,
        value_name = "WHEN",
        requires = "lasting",
        conflicts_with = "resources"
    )]
    before: Option<String>,
    /// With --any: keep exactly what is found, instead of making room for others who come
    #[arg(long, conflicts_with = "resources")]
    pinned: bool,
    #[command(flatten)]
    time: TimeArguments,
    /// What it is for; the names of the resources, if left out
    #[arg(long, short)]
    title: Option<Text>,
    /// The project it belongs to
    #[arg(long)]
    project: Option<ProjectReference>,
    /// Show others in the site only that it is taken, not by whom and for what
    #[arg(long)]
    private: bool,
    /// Book for someone else (site admins)
    #[arg(long, value_name = "LOGIN")]
    on_behalf_of: Option<PersonReference>,
    #[command(flatten)]
    answers: AnswerArguments,
    #[command(flatten)]
    work: WorkArguments,
    /// Only keep it free for two minutes; `berth reservation take` then books it
    #[arg(long, conflicts_with_all = ["every", "repeat"])]
    hold: bool,
    /// Where there is no room: wait for it. It is booked when there is, or with `--wait=offer` kept free for half an
    /// hour, for you to take
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "booking",
        conflicts_with = "hold"
    )]
    wait: Option<Wait>,
    /// Say whether it would be accepted, and book nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    once: Once,
    #[command(flatten)]
    repeat: RepeatArguments,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Wait {
    Booking,
    Offer,
}

impl From<Wait> for WaitFor {
    fn from(wait: Wait) -> WaitFor {
        match wait {
            Wait::Booking => WaitFor::Booking,
            Wait::Offer => WaitFor::Offer,
        }
    }
}

/// What its owner chooses for work inside it.
#[derive(Debug, Args)]
struct WorkArguments {
    /// What becomes of your work that still runs inside it when it ends
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = AtTheEnd::Stop)]
    at_end: AtTheEnd,
    /// Whether its idle time is lent to opportunistic work
    #[arg(long, value_name = "WHETHER", value_enum, default_value_t = Lend::AsTheSite)]
    lend: Lend,
}

impl WorkArguments {
    fn at_end(&self) -> AtEnd {
        self.at_end.into()
    }

    fn lends(&self) -> Option<bool> {
        self.lend.into()
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum AtTheEnd {
    /// It is gone by the end
    Stop,
    /// It runs on, opportunistically, until somebody else has a claim to its place
    Keep,
    /// It is told in time to write down how far it has come, and goes on in the site's queue
    Checkpoint,
}

impl From<AtTheEnd> for AtEnd {
    fn from(chosen: AtTheEnd) -> AtEnd {
        match chosen {
            AtTheEnd::Stop => AtEnd::Stop,
            AtTheEnd::Keep => AtEnd::Keep,
            AtTheEnd::Checkpoint => AtEnd::Checkpoint,
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum Lend {
    /// It is lent
    Yes,
    /// It is kept for yourself
    No,
    /// As the site says
    AsTheSite,
}

impl From<Lend> for Option<bool> {
    fn from(chosen: Lend) -> Option<bool> {
        match chosen {
            Lend::Yes => Some(true),
            Lend::No => Some(false),
            Lend::AsTheSite => None,
        }
    }
}

/// A time that begins, and ends or lasts.
#[derive(Debug, Args)]
pub struct TimeArguments {
    /// When it starts, as in `tomorrow 09:00`, `+2h` or `2026-11-20T09:00` (see `berth help times`)
    #[arg(long, value_name = "WHEN", default_value = "now")]
    from: String,
    /// When it ends; a clock time alone is the next one after the start
    #[arg(
        long,
        value_name = "WHEN",
        required_unless_present = "lasting",
        conflicts_with = "lasting"
    )]
    to: Option<String>,
    /// How long it lasts, as in `3h`, `90m` or `1d`
    #[arg(long = "for", id = "lasting", value_name = "DURATION")]
    lasting: Option<String>,
}

impl TimeArguments {
    pub fn read(
        &self,
        times: &Times,
    ) -> anyhow::Result<(berth_api::moment::Moment, berth_api::moment::Moment)> {
        let until = match (&self.to, &self.lasting) {
            (Some(end), _) => Until::End(end),
            (None, length) => Until::Length(length.as_deref().unwrap_or_default()),
        };
        times.read_span(&self.from, until)
    }
}

pub async fn run(mut book: Book, context: &Context) -> anyhow::Result<()> {
    if let Some(what) = book.any.take() {
        return run_any(book, what, context).await;
    }
    let site = context.site_of_all(&book.resources)?;
    let (dry_run, once) = (book.dry_run, book.once.clone());
    if book.repeat.is_asked()? {
        return run_series(book, &site, context).await;
    }
    let new = request(book, &context.client, &site, &context.times).await?;
    if dry_run {
        return preview(&new, &site, context).await;
    }
    let booked = context.client.book(&site, &new, once.key()).await?;
    tell(&booked.object, booked.replayed, context)
}

fn tell(reservation: &Reservation, replayed: bool, context: &Context) -> anyhow::Result<()> {
    context.out.show(reservation, |_| {
        sentence(reservation, replayed, &context.times)
    })?;
    let id = context.typed(&reservation.site.name, reservation.id);
    context.out.note(match reservation.state {
        State::Waiting => format!("Wait no longer with: berth reservation cancel {id}"),
        State::Held => format!("Book it within two minutes: berth reservation take {id}"),
        _ => format!("Cancel it with: berth reservation cancel {id}"),
    });
    Ok(())
}

/// The same, again and again.
async fn run_series(mut book: Book, site: &SiteReference, context: &Context) -> anyhow::Result<()> {
    let repeat = std::mem::take(&mut book.repeat);
    let (dry_run, once, what) = (book.dry_run, book.once.clone(), names(&book.resources));
    let first = request(book, &context.client, site, &context.times).await?;
    let new = repeat.series(first, &context.times)?;
    repeat::run(&new, &what, site, dry_run, &once, context).await
}

async fn run_any(book: Book, what: Selection, context: &Context) -> anyhow::Result<()> {
    let site = context.site()?;
    let (dry_run, once) = (book.dry_run, book.once.clone());
    let new = request_any(book, &what, &context.client, site, &context.times).await?;
    if dry_run {
        let preview = context.client.preview_any(site, &new).await?;
        return tell_preview(&preview, context);
    }
    let booked = context.client.book_any(site, &new, once.key()).await?;
    tell(&booked.object, booked.replayed, context)
}

/// A fixed time is a window that is just as long.
async fn request_any(
    book: Book,
    what: &Selection,
    client: &Client,
    site: &SiteReference,
    times: &Times,
) -> anyhow::Result<NewAnyReservation> {
    let (start, end, lasting) = match (&book.before, &book.time.lasting) {
        (Some(before), Some(lasting)) => {
            let start = times.read_moment(&book.time.from)?;
            (start, times.read_moment(before)?, lasting.clone())
        }
        _ => {
            let (start, end) = book.time.read(times)?;
            let length = end.get().duration_since(start.get());
            (start, end, format!("{}s", length.as_secs()))
        }
    };
    let title = match book.title {
        Some(title) => title,
        None => what.to_string().parse()?,
    };
    Ok(NewAnyReservation {
        title,
        wish: book.wish.wish(what, &lasting, start, Some(end), times)?,
        pinned: book.pinned,
        project: book.project,
        privacy: if book.private {
            Privacy::Private
        } else {
            Privacy::Site
        },
        parameters: book.answers.read(client, site).await?,
        on_behalf_of: book.on_behalf_of,
        hold: book.hold,
        wait: book.wait.map(Into::into),
        at_end: book.work.at_end(),
        lends: book.work.lends(),
    })
}

async fn request(
    book: Book,
    client: &Client,
    site: &SiteReference,
    times: &Times,
) -> anyhow::Result<NewReservation> {
    // What can be wrong without asking is told before anyone is asked.
    let (start, end) = book.time.read(times)?;
    let title = match book.title {
        Some(title) => title,
        None => names(&book.resources).parse()?,
    };
    let resources: Vec<_> = book
        .resources
        .into_iter()
        .map(|wanted| wanted.it.into())
        .collect();
    Ok(NewReservation {
        title,
        start,
        end,
        resources: resources.try_into()?,
        project: book.project,
        privacy: if book.private {
            Privacy::Private
        } else {
            Privacy::Site
        },
        parameters: book.answers.read(client, site).await?,
        on_behalf_of: book.on_behalf_of,
        hold: book.hold,
        wait: book.wait.map(Into::into),
        at_end: book.work.at_end(),
        lends: book.work.lends(),
    })
}

fn names(resources: &[Placed<Wanted>]) -> String {
    let names: Vec<String> = resources
        .iter()
        .map(|wanted| wanted.it.resource.to_string())
        .collect();
    let all = names.join(", ");
    match all.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &all[..end]),
        None => all,
    }
}

async fn preview(
    new: &NewReservation,
    site: &SiteReference,
    context: &Context,
) -> anyhow::Result<()> {
    let preview = context.client.preview_booking(site, new).await?;
    tell_preview(&preview, context)
}

fn tell_preview(preview: &ReservationPreview, context: &Context) -> anyhow::Result<()> {
    match preview.refusal.clone() {
        None => context.out.show(preview, |_| match preview.state {
            Some(State::PendingApproval) => {
                "It would be accepted, and wait for an admin to approve it.\n".to_owned()
            }
            _ => "It would be accepted.\n".to_owned(),
        }),
        Some(refusal) if context.out.format == Format::Json => {
            context.out.json(preview)?;
            Err(ended(Exit::of_problem(&refusal)))
        }
        Some(refusal) => Err(refusal.into()),
    }
}

/// What was done, in one sentence.
fn sentence(reservation: &Reservation, replayed: bool, times: &Times) -> String {
    let what = show::booking(reservation, times);
    match reservation.state {
        _ if replayed => format!(
            "Booked before with this key: {what}. It is {}.\n",
            reservation.state
        ),
        State::Waiting => {
            format!(
                "There is no room yet; it waits. {} is booked when there is.\n",
                reservation.title
            )
        }
        State::Held => format!("Held {what}.\n"),
        State::PendingApproval => {
            format!(
                "Asked for {what}. It is held for you until {} decides.\n",
                deciding(reservation)
            )
        }
        _ => format!("Booked {what}.\n"),
    }
}

/// Who must say yes: an admin of the site, unless its policies ask somebody else.
fn deciding(reservation: &Reservation) -> String {
    let asked = &reservation.terms.approvals;
    let asked = asked.iter().filter(|asked| asked.is_open());
    let asked: BTreeSet<String> = asked
        .map(|asked| {
            let approvers = asked.approvers.iter().map(|approver| match approver {
                Approver::SiteAdmins => format!("an admin of {}", reservation.site.name),
                other => other.to_string(),
            });
            approvers.collect::<Vec<_>>().join(" or ")
        })
        .collect();
    if asked.is_empty() {
        return format!("an admin of {}", reservation.site.name);
    }
    asked.into_iter().collect::<Vec<_>>().join(", and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Client as ClientCommand, Command};
    use berth_api::Credential;
    use clap::Parser;

    fn typed(line: &str) -> Book {
        let words = std::iter::once("berth").chain(line.split('|'));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Client(ClientCommand::Book(book)) => book,
            other => panic!("{other:?}"),
        }
    }

    async fn asked(line: &str) -> serde_json::Value {
        // No parameters are given, so nobody is asked for a form.
        let client = Client::new("http://localhost:1", Credential::None).unwrap();
        let site = "torino".parse().unwrap();
        let new = request(typed(line), &client, &site, &Times::fixed())
            .await
            .unwrap();
        serde_json::to_value(new).unwrap()
    }

    #[tokio::test]
    async fn what_is_typed_becomes_a_request() {
        assert_eq!(
            asked("book|gpu-01|licences:3|--from|fri 09:00|--for|3h|--private|--project|vision")
                .await,
            serde_json::json!({
                "title": "gpu-01, licences",
                "start": "2026-11-20T08:00:00Z",
                "end": "2026-11-20T11:00:00Z",
                "resources": [{"resource": "gpu-01"}, {"resource": "licences", "amount": 3}],
                "project": "vision",
                "privacy": "private",
                "parameters": {},
            })
        );
        let chosen = asked("book|gpu-01|--for|3h|--at-end|keep|--lend|no").await;
        assert_eq!(
            (&chosen["at_end"], &chosen["lends"]),
            (&"keep".into(), &false.into())
        );
        let now = asked("book|gpu-01|--to|12:00|--title|fine tuning").await;
        assert_eq!(now["start"], "2026-11-15T09:28:00Z");
        assert_eq!(now["end"], "2026-11-15T11:00:00Z");
    }

    #[tokio::test]
    async fn any_of_a_kind_is_asked_for_at_a_time_or_before_one() {
        let asked = async |line: &str| {
            let client = Client::new("http://localhost:1", Credential::None).unwrap();
            let site = "torino".parse().unwrap();
            let mut book = typed(line);
            let what = book.any.take().unwrap();
            let new = request_any(book, &what, &client, &site, &Times::fixed()).await;
            serde_json::to_value(new.unwrap()).unwrap()
        };
        let fixed = asked("book|--any|4 x A100|--from|fri 09:00|--to|12:00|--pinned").await;
        assert_eq!(fixed["title"], "4 x A100");
        assert_eq!(fixed["pinned"], true);
        assert_eq!(
            fixed["wish"],
            serde_json::json!({
                "what": "A100",
                "where": [],
                "variants": [{"count": 4, "for": "PT3H"}],
                "earliest": "2026-11-20T08:00:00Z",
                "before": "2026-11-20T11:00:00Z",
            })
        );
        let early = asked("book|--any|A100|--for|6h|--before|fri 18:00").await;
        assert_eq!(early["wish"]["earliest"], "2026-11-15T09:28:00Z");
        assert_eq!(early["wish"]["before"], "2026-11-20T17:00:00Z");
        assert_eq!(early["wish"]["variants"][0]["for"], "PT6H");
    }

    #[test]
    fn an_end_must_be_said_in_one_way() {
        let refused = |line: &str| {
            Cli::try_parse_from(std::iter::once("berth").chain(line.split('|'))).is_err()
        };
        assert!(refused("book|gpu-01"));
        assert!(refused("book|gpu-01|--to|12:00|--for|2h"));
        assert!(refused("book|--for|2h"));
        assert!(refused("book|gpu-01|--any|2 x gpu|--for|2h"));
        assert!(refused("book|gpu-01|--for|2h|--before|fri"));
    }
}
