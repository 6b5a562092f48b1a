//! `berth session`: web apps to work in, started, shared, kept and stopped.

use std::time::Duration;

use berth_api::reference::{PersonReference, ProjectReference, SessionReference, SiteReference};
use berth_api::sessions::{
    KeepSession, NewSession, Profile, Session, SessionQuery, ShareSession, Start, StartSession,
    StopSession, Visit,
};
use berth_model::session::{Access, State};
use berth_model::{Name, ReservationId, Text};
use clap::{Args, Subcommand, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::Once;
use super::queue::words;
use super::submit::length;
use crate::arguments::Placed;
use crate::context::Context;
use crate::details::Details;
use crate::output::print;
use crate::show;
use crate::table::{Column, Table, printable};
use crate::times::Times;

/// How often a session that begins is asked about.
const ASK_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Sessions {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Args)]
struct List {
    /// Everybody's, for admins of the site
    #[arg(long)]
    everybody: bool,
    /// Only this person's, for admins of the site
    #[arg(long)]
    owner: Option<PersonReference>,
    /// Only what waits or runs
    #[arg(long)]
    live: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what can be started
    Profiles,
    /// Start a session: a new one by its profile, or one that is stopped by its name
    Start(Begin),
    /// Show a session: how far it is, why it waits, how its starts went
    Show(Which),
    /// Print the address of a session, for a browser
    Open(Which),
    /// Print the last of what a session said
    Log(Which),
    /// Stop a session; it can be started again
    Stop {
        #[command(flatten)]
        which: Which,
        /// What its owner is told, where it is not yours
        #[arg(long)]
        reason: Option<Text>,
    },
    /// Leave a session alone for a while, however idle it is
    Keep {
        #[command(flatten)]
        which: Which,
        /// For how long, as in `2h`; a day at most
        #[arg(value_parser = length)]
        length: SignedDuration,
    },
    /// Give a session another name
    Rename {
        #[command(flatten)]
        which: Which,
        /// Its new name
        name: Name,
    },
    /// Let a colleague in, to look or to work
    Share {
        #[command(flatten)]
        which: Which,
        /// The colleague's login name
        with: PersonReference,
        /// What they may do there
        #[arg(value_enum, default_value = "edit")]
        access: Allowed,
    },
    /// Let a colleague in no more
    Unshare {
        #[command(flatten)]
        which: Which,
        /// The colleague's login name
        with: PersonReference,
    },
    /// List who came to a session, and why
    Visits(Which),
    /// Take a session that is over off the list; its files stay
    Remove(Which),
    /// Let a profile be started again that was paused
    Resume {
        /// The profile's name
        profile: Name,
    },
}

#[derive(Debug, Args)]
struct Which {
    /// The session, by name or id
    #[arg(value_name = "SESSION")]
    session: Placed<SessionReference>,
}

#[derive(Debug, Args)]
struct Begin {
    /// A profile (`berth session profiles` lists them), or a session of yours that is stopped
    #[arg(value_name = "PROFILE|SESSION")]
    what: Name,
    /// What to call it
    #[arg(long)]
    name: Option<Name>,
    /// A managed environment in place of the profile's
    #[arg(long, value_name = "ENVIRONMENT")]
    environment: Option<Text>,
    /// The project whose share it uses
    #[arg(long, short = 'p')]
    project: Option<ProjectReference>,
    /// Inside this reservation of yours
    #[arg(long, value_name = "RESERVATION")]
    inside: Option<ReservationId>,
    /// Do not wait until it can be opened
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Allowed {
    /// Look; nothing that changes anything is let through
    View,
    /// All that you may do there
    Edit,
}

impl From<Allowed> for Access {
    fn from(allowed: Allowed) -> Access {
        match allowed {
            Allowed::View => Access::View,
            Allowed::Edit => Access::Edit,
        }
    }
}

pub async fn run(sessions: Sessions, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let Some(command) = sessions.command else {
        return list(sessions.list, context).await;
    };
    match command {
        Command::Profiles => {
            let profiles = client.session_profiles(context.site()?).await?;
            out.show(&profiles, |screen| {
                profiles_table(&profiles.items).render(screen)
            })
        }
        Command::Start(begin) => start(begin, context).await,
        Command::Show(which) => {
            let site = context.site_of(&which.session)?;
            let found = client.session(&site, &which.session.it).await?;
            out.show(&found, |screen| {
                details(&found, times).render(screen) + &times.footnote()
            })
        }
        Command::Open(which) => {
            let site = context.site_of(&which.session)?;
            let found = client.session(&site, &which.session.it).await?;
            out.show(&found, |_| format!("{}\n", found.url))
        }
        Command::Log(which) => {
            let site = context.site_of(&which.session)?;
            let log = client.session_log(&site, &which.session.it).await?;
            out.show(&log, |_| printable_lines(&log.text))
        }
        Command::Stop { which, reason } => {
            let site = context.site_of(&which.session)?;
            let how = StopSession { reason };
            let stopped = client.stop_session(&site, &which.session.it, &how).await?;
            out.show(&stopped, |_| {
                format!("{} is {}.\n", stopped.name, stopped.state)
            })
        }
        Command::Keep { which, length } => {
            let site = context.site_of(&which.session)?;
            let how = KeepSession { length };
            let kept = client.keep_session(&site, &which.session.it, &how).await?;
            out.show(&kept, |_| match kept.kept_until {
                Some(until) => format!(
                    "{} is left alone until {}.\n",
                    kept.name,
                    times.moment(until)
                ),
                None => format!("{} is {}.\n", kept.name, kept.state),
            })
        }
        Command::Rename { which, name } => {
            let site = context.site_of(&which.session)?;
            let renamed = client
                .rename_session(&site, &which.session.it, &name)
                .await?;
            out.show(&renamed, |_| {
                format!("It is called {} now.\n", renamed.name)
            })
        }
        Command::Share {
            which,
            with,
            access,
        } => share(context, which, with, Some(access.into())).await,
        Command::Unshare { which, with } => share(context, which, with, None).await,
        Command::Visits(which) => {
            let site = context.site_of(&which.session)?;
            let visits = client.session_visits(&site, &which.session.it).await?;
            out.show(&visits, |screen| {
                times.render(&visits_table(&visits.items, times), screen)
            })
        }
        Command::Remove(which) => {
            let site = context.site_of(&which.session)?;
            client.remove_session(&site, &which.session.it).await?;
            out.say(&format!("Took {} off the list.\n", which.session.it))
        }
        Command::Resume { profile } => {
            client
                .resume_session_profile(context.site()?, &profile)
                .await?;
            out.say(&format!("{profile} can be started again.\n"))
        }
    }
}

async fn list(list: List, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let query = SessionQuery {
        owner: list.owner,
        everybody: list.everybody,
        live: list.live,
    };
    let found = client.sessions(context.site()?, &query).await?;
    out.show(&found, |screen| {
        times.render(&table(&found.items, times), screen)
    })
}

async fn start(begin: Begin, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let site = context.site()?;
    let known = SessionReference::Name(begin.what.clone());
    let stopped = match begin.name {
        Some(_) => None,
        None => client.session(site, &known).await.ok(),
    };
    let started = match stopped.filter(|one| !is_live(one)) {
        Some(stopped) => {
            let how = StartSession {
                profile: None,
                environment: begin.environment,
                inside: begin.inside,
            };
            client.start_session(site, &stopped.id.into(), &how).await?
        }
        None => {
            let new = NewSession {
                profile: begin.what,
                name: begin.name,
                environment: begin.environment,
                project: begin.project,
                inside: begin.inside,
            };
            let key = begin.once.key();
            client.start_new_session(site, &new, key).await?.object
        }
    };
    let ready = match begin.no_wait {
        true => started,
        false => wait(context, site, started).await?,
    };
    out.show(&ready, |_| match ready.state {
        State::Ready => format!("{} is ready: {}\n", ready.name, ready.url),
        _ => format!(
            "{} is {}{}. How far it is: berth session show {}\n",
            ready.name,
            ready.state,
            why(&ready, times),
            ready.name
        ),
    })
}

/// Says what happens until it is ready or over.
async fn wait(
    context: &Context,
    site: &SiteReference,
    mut session: Session,
) -> anyhow::Result<Session> {
    let mut last = String::new();
    loop {
        let now = format!("{}{}", session.state, why(&session, &context.times));
        if now != last {
            context.out.note(format!("{}: {now}", session.name));
            last = now;
        }
        if session.state == State::Ready || !is_live(&session) {
            return Ok(session);
        }
        tokio::time::sleep(ASK_EVERY).await;
        session = context.client.session(site, &session.id.into()).await?;
    }
}

async fn share(
    context: &Context,
    which: Which,
    with: PersonReference,
    access: Option<Access>,
) -> anyhow::Result<()> {
    let site = context.site_of(&which.session)?;
    let how = ShareSession { with, access };
    let shared = context
        .client
        .share_session(&site, &which.session.it, &how)
        .await?;
    context.out.show(&shared, |_| match access {
        Some(Access::Edit) => format!("{} may work in {}.\n", how.with, shared.name),
        Some(Access::View) => format!("{} may look into {}.\n", how.with, shared.name),
        None => format!("{} comes into {} no more.\n", how.with, shared.name),
    })
}

fn is_live(session: &Session) -> bool {
    session.state.is_live()
}

/// Why it is not ready, as far as is known.
fn why(session: &Session, times: &Times) -> String {
    let waits = session.waits.as_ref();
    let because = waits.map(|waits| match waits.promised.or(waits.forecast) {
        Some(at) => format!("{} (expected {})", waits.words, times.relative(at)),
        None => waits.words.clone(),
    });
    let said = session.said.as_ref().map(ToString::to_string);
    match because.or(said) {
        Some(words) => format!(", {words}"),
        None => String::new(),
    }
}

fn table(sessions: &[Session], times: &Times) -> Table<6> {
    let columns = [
        Column::left("SESSION").shrinks(3),
        Column::left("WHO"),
        Column::left("PROFILE").shrinks(2),
        Column::left("STATE"),
        Column::left("ACTIVE"),
        Column::left("WHERE OR WHY").shrinks(1),
    ];
    let empty = "No sessions. What can be started: berth session profiles";
    let mut table = Table::new(columns, empty);
    for one in sessions {
        let place = match one.state {
            State::Ready => one.url.clone(),
            _ => one
                .said
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        table.row([
            one.name.to_string(),
            one.owner.login.clone(),
            one.profile.to_string(),
            one.state.to_string(),
            times.relative(one.active_at),
            place,
        ]);
    }
    table
}

fn details(one: &Session, times: &Times) -> Details {
    let waits = one.waits.as_ref();
    let used = one.used.as_ref().map(|used| {
        format!(
            "{} MiB of memory (at most {}), {} s of processor time",
            used.memory_mib, used.memory_peak_mib, used.cpu_s
        )
    });
    let shared = one.shared.iter().map(|with| {
        let may = match with.access {
            Access::View => "may look",
            Access::Edit => "may work",
        };
        format!("{} {may}", with.person.login)
    });
    Details::default()
        .line("Session", &one.name)
        .line("State", one.state)
        .maybe("Why", waits.map(|waits| waits.words.clone()))
        .maybe("What helps", waits.and_then(|waits| waits.remedy.clone()))
        .maybe(
            "Expected",
            waits
                .and_then(|waits| waits.promised.or(waits.forecast))
                .map(|at| times.moment_and_distance(at)),
        )
        .maybe("Said", one.said.as_ref())
        .line("Address", &one.url)
        .line("Owner", show::person(&one.owner))
        .line("Profile", &one.profile)
        .maybe("Environment", one.environment.as_ref())
        .maybe("Job", one.workload)
        .maybe("Node", one.node.as_ref().map(|node| node.name.clone()))
        .maybe("Uses", used)
        .line("Active", times.moment_and_distance(one.active_at))
        .maybe(
            "Idle until",
            one.idle_until.map(|at| times.moment_and_distance(at)),
        )
        .maybe(
            "GPUs",
            one.lends_since.map(|since| lent_words(one, since, times)),
        )
        .maybe("Over by", one.ends.map(|ends| words::ends(ends, times)))
        .lines("Shared", shared)
        .lines(
            "Starts",
            one.starts.iter().map(|start| start_words(start, times)),
        )
        .line("Id", one.id)
}

fn lent_words(one: &Session, since: Timestamp, times: &Times) -> String {
    let what = match one.is_borrowed {
        true => "lent to others",
        false => "offered to others",
    };
    format!(
        "{what} since {}, until somebody works in it again",
        times.moment(since)
    )
}

fn start_words(start: &Start, times: &Times) -> String {
    let what = match (start.ready_at, start.ended_at) {
        (Some(ready), _) => {
            let took = start.asked_at.duration_until(ready).as_secs_f32();
            format!("ready after {took:.1} s")
        }
        (None, Some(_)) if start.has_failed => "failed".to_owned(),
        (None, Some(_)) => "stopped before it was ready".to_owned(),
        (None, None) => "under way".to_owned(),
    };
    let again = if start.is_automatic {
        ", tried again by itself"
    } else {
        ""
    };
    let said = start.said.as_ref().map(|said| format!(": {said}"));
    format!(
        "{} {what}{again}{}",
        times.moment(start.asked_at),
        said.unwrap_or_default()
    )
}

fn profiles_table(profiles: &[Profile]) -> Table<5> {
    let columns = [
        Column::left("PROFILE"),
        Column::left("TITLE").shrinks(1),
        Column::left("STARTS"),
        Column::left("GIVES").shrinks(2),
        Column::left("").shrinks(3),
    ];
    let empty = "Nothing can be started here yet: an admin makes profiles with `berth queue set`.";
    let mut table = Table::new(columns, empty);
    for one in profiles {
        let app = one.app.as_ref().map(|app| app.title.to_string());
        let paused = one
            .paused
            .as_ref()
            .map(|paused| format!("paused: {}", paused.said));
        table.row([
            one.name.to_string(),
            one.title.to_string(),
            app.unwrap_or_else(|| format!("{} (missing)", one.session.app)),
            words::asks(&one.wishes),
            paused.unwrap_or_default(),
        ]);
    }
    table
}

fn visits_table(visits: &[Visit], times: &Times) -> Table<4> {
    let columns = [
        Column::left("WHO"),
        Column::left("CAME"),
        Column::left("MAY"),
        Column::left("WHY").shrinks(1),
    ];
    let mut table = Table::new(columns, "Nobody came yet.");
    for one in visits {
        table.row([
            one.person.login.clone(),
            times.relative(one.began),
            match one.access {
                Access::View => "look".to_owned(),
                Access::Edit => "work".to_owned(),
            },
            one.reason
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        ]);
    }
    table
}

/// A log as it may be shown on a terminal: somebody's program wrote it.
fn printable_lines(text: &str) -> String {
    let mut lines: String = text.lines().map(|line| printable(line) + "\n").collect();
    if lines.is_empty() {
        lines.push_str("It has said nothing.\n");
    }
    lines
}

/// `berth log JOB`.
#[derive(Debug, Args)]
pub struct Log {
    /// The workload, by number or id
    #[arg(value_name = "JOB")]
    workload: Placed<berth_api::reference::WorkloadReference>,
}

pub async fn log(command: Log, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(&command.workload)?;
    let log = context
        .client
        .workload_log(&site, &command.workload.it)
        .await?;
    match context.out.format {
        crate::output::Format::Json => context.out.json(&log),
        _ => print(&printable_lines(&log.text)),
    }
}
