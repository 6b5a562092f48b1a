//! `berth queue`, `berth why` and `berth share`: what waits, runs and has run, and how everybody stands.

pub mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

use berth_api::headers::IfMatch;
use berth_api::reference::{PersonReference, ProjectReference, WorkloadReference};
use berth_api::workloads::{
    Grant, NewGrant, QueueCount, QueueCounts, QueueNode, QueueSettingsView, Run, Share, Workload,
    WorkloadQuery,
};
use berth_model::queue::Settings;
use berth_model::workload::{Outcome, RunState, State};
use berth_model::{GrantId, Text};
use clap::{Args, Subcommand};

use super::types::read_text;
use super::{Once, Version};
use crate::arguments::Placed;
use crate::context::Context;
use crate::details::Details;
use crate::failure::usage;
use crate::pages::{Length, whole};
use crate::show;
use crate::table::{Column, Screen, Table, printable};
use crate::times::Times;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Queue {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Args)]
struct List {
    /// Only yours
    #[arg(long)]
    mine: bool,
    /// Only this person's
    #[arg(long, conflicts_with = "mine")]
    owner: Option<PersonReference>,
    /// Only of this project
    #[arg(long)]
    project: Option<ProjectReference>,
    /// Only those with this in their title, their number or their owner's name
    #[arg(long)]
    text: Option<String>,
    /// Only in these states, divided by commas; `all` for what is over, too
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    #[command(flatten)]
    length: Length,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the nodes of the queue, and what is left of them now
    Nodes,
    /// Count what waits and runs, by project, person and class
    Counts,
    /// Show how the queue is run: roles, shares, quotas, levels and profiles
    Settings,
    /// Set how the queue is run, from a file of YAML or JSON
    Set {
        /// The file, as `berth queue settings --output json` writes it; `-` reads the standard input
        file: PathBuf,
        #[command(flatten)]
        version: Version,
    },
    /// List whose work is urgent, by whose word and why
    Grants,
    /// Make somebody's work urgent, for a while and so many GPU-hours
    Grant(Give),
    /// Take a grant back
    Revoke {
        /// The grant's id
        grant: GrantId,
    },
}

#[derive(Debug, Args)]
struct Give {
    /// A project whose work is to be urgent
    #[arg(long, required_unless_present = "person")]
    project: Option<ProjectReference>,
    /// A person whose work is to be urgent
    #[arg(long, conflicts_with = "project")]
    person: Option<PersonReference>,
    /// Until when
    #[arg(long, value_name = "TIME")]
    until: String,
    /// For how many GPU-hours
    #[arg(long, value_name = "N")]
    gpu_hours: u64,
    /// Why; shown to those it delays
    #[arg(long)]
    reason: Text,
    #[command(flatten)]
    once: Once,
}

pub async fn run(queue: Queue, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let site = context.site()?;
    match queue.command {
        None => list(queue.list, context).await,
        Some(Command::Nodes) => {
            let nodes = whole(async |query| client.queue_nodes(site, &query).await).await?;
            out.show(&nodes, |screen| nodes_table(&nodes.items).render(screen))
        }
        Some(Command::Counts) => {
            let counts = client.queue_counts(site).await?;
            out.show(&counts, |screen| counts_table(&counts).render(screen))
        }
        Some(Command::Settings) => {
            let settings = client.queue_settings(site).await?;
            out.show(&settings, |screen| {
                settings_details(&settings).render(screen)
            })
        }
        Some(Command::Set { file, version }) => {
            let settings = read_settings(&read_text(&file)?)?;
            let version = match version.if_version {
                Some(version) => IfMatch::Version(version),
                None => IfMatch::Any,
            };
            let set = client.set_queue_settings(site, version, &settings).await?;
            out.show(&set, |_| {
                format!(
                    "The queue of {site} is now run as the file says (version {}).\n",
                    set.version
                )
            })
        }
        Some(Command::Grants) => {
            let grants = whole(async |query| client.grants(site, &query).await).await?;
            out.show(&grants, |screen| {
                times.render(&grants_table(&grants.items, times), screen)
            })
        }
        Some(Command::Grant(give)) => {
            let new = NewGrant {
                project: give.project,
                person: give.person,
                until: times.read_moment(&give.until)?,
                gpu_hours: give
                    .gpu_hours
                    .try_into()
                    .map_err(|error| usage(format!("--gpu-hours {error}")))?,
                reason: give.reason,
            };
            let given = client.give_grant(site, &new, give.once.key()).await?.object;
            out.show(&given, |_| {
                format!(
                    "The work of {} is urgent until {}.\n",
                    whose(&given),
                    times.moment(given.until)
                )
            })
        }
        Some(Command::Revoke { grant }) => {
            client.revoke_grant(site, grant).await?;
            out.say(&format!("Took {grant} back.\n"))
        }
    }
}

async fn list(list: List, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let site = context.site()?;
    let owner = match list.mine {
        true => Some(client.me().await?.person.id.into()),
        false => list.owner,
    };
    let query = WorkloadQuery {
        owner,
        project: list.project,
        text: list.text,
        state: list.state,
        ..WorkloadQuery::default()
    };
    let page = list
        .length
        .read(async |limit, cursor| {
            client
                .workloads(
                    site,
                    &WorkloadQuery {
                        limit,
                        cursor,
                        ..query.clone()
                    },
                )
                .await
        })
        .await?;
    out.show(&page, |screen| {
        let mut text = times.render(&table(&page.items, times), screen);
        text.extend(list.length.cut(&page).map(|note| format!("{note}\n")));
        text
    })
}

fn table(workloads: &[Workload], times: &Times) -> Table<7> {
    let columns = [
        Column::right("JOB"),
        Column::left("TITLE").shrinks(2),
        Column::left("WHO"),
        Column::left("STATE"),
        Column::left("SINCE"),
        Column::left("ASKS FOR").shrinks(3),
        Column::left("WHERE OR WHY").shrinks(1),
    ];
    let mut table = Table::new(columns, "Nothing waits, and nothing runs.");
    for one in workloads {
        let since = match (one.state, one.runs.first(), one.ended_at) {
            (State::Running, Some(run), _) => run.began,
            (_, _, Some(ended)) => ended,
            _ => one.since,
        };
        table.row([
            one.number.to_string(),
            one.title.to_string(),
            one.owner.login.clone(),
            state_words(one),
            times.relative(since),
            words::asks(&one.wishes),
            where_or_why(one, times),
        ]);
    }
    table
}

fn state_words(one: &Workload) -> String {
    let state = one.state.to_string().to_lowercase();
    match &one.array {
        None => state,
        Some(array) => {
            let over = one.counts.completed + one.counts.failed;
            format!("{state} {over}/{}", array.tasks.len())
        }
    }
}

fn where_or_why(one: &Workload, times: &Times) -> String {
    match (&one.waits, one.state) {
        (Some(waits), _) => match waits.promised.or(waits.forecast) {
            Some(at) => format!("{}, {}", times.relative(at), waits.words),
            None => waits.words.clone(),
        },
        (None, State::Running) => {
            let mut nodes: Vec<&str> = one
                .runs
                .iter()
                .flat_map(|run| &run.nodes)
                .map(|node| node.node.name.as_str())
                .collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes.join(" ")
        }
        (None, _) => one
            .reason
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}

/// Which workload.
#[derive(Debug, Args)]
pub struct Why {
    /// The workload, by number or id
    #[arg(value_name = "JOB")]
    workload: Placed<WorkloadReference>,
}

pub async fn why(command: Why, context: &Context) -> anyhow::Result<()> {
    let (client, out, times) = (&context.client, &context.out, &context.times);
    let site = context.site_of(&command.workload)?;
    let found = client.workload(&site, &command.workload.it).await?;
    out.show(&found, |screen| {
        details(&found, times).render(screen) + &times.footnote()
    })
}

fn details(one: &Workload, times: &Times) -> Details {
    let waits = one.waits.as_ref();
    let more = match one.runs.len() {
        0..=10 => None,
        many => Some(format!("and {} more", many - 10)),
    };
    let runs = one.runs.iter().take(10).map(|run| run_words(run, times));
    Details::default()
        .line("Job", format!("{} {}", one.number, one.title))
        .line("State", state_words(one))
        .maybe("Why", waits.map(|waits| waits.words.clone()))
        .maybe("What helps", waits.and_then(|waits| waits.remedy.clone()))
        .maybe(
            "Begins by",
            waits
                .and_then(|waits| waits.promised)
                .map(|at| times.moment_and_distance(at)),
        )
        .maybe(
            "Expected",
            waits
                .and_then(|waits| waits.forecast)
                .map(|at| times.moment_and_distance(at)),
        )
        .maybe(
            "Over by",
            waits
                .and_then(|waits| waits.ends)
                .map(|ends| words::ends(ends, times)),
        )
        .maybe("Reason", one.reason.as_ref())
        .line("Owner", show::person(&one.owner))
        .maybe(
            "Project",
            one.project.as_ref().map(|project| project.name.clone()),
        )
        .line("Asks for", words::asks(&one.wishes))
        .line("Class", show::word(one.class))
        .maybe("Level", one.level.as_ref())
        .maybe(
            "Tasks left",
            (one.waiting.len() > 1).then(|| one.waiting.to_string()),
        )
        .line("Since", times.moment_and_distance(one.since))
        .maybe(
            "Ended",
            one.ended_at.map(|at| times.moment_and_distance(at)),
        )
        .lines("Runs", runs.chain(more))
        .line("Id", one.id)
}

fn run_words(run: &Run, times: &Times) -> String {
    let mut nodes: Vec<String> = run
        .nodes
        .iter()
        .map(|node| match node.gpus.len() {
            0 => node.node.name.clone(),
            gpus => format!("{} ({gpus} GPU)", node.node.name),
        })
        .collect();
    nodes.dedup();
    let until = run.ended_at.unwrap_or(run.until);
    let state = match run.state {
        RunState::Starting => "starting".to_owned(),
        RunState::Running if run.kept_from.is_some() => format!(
            "kept after its reservation, until {} at the latest",
            times.moment(run.until)
        ),
        RunState::Running if run.is_on_loan => format!(
            "on the idle GPUs of a session, until its owner comes back, {} at the latest",
            times.moment(run.until)
        ),
        RunState::Running => format!(
            "until {} at the latest, {}",
            times.moment(run.until),
            words::ends_by(run.until_by)
        ),
        RunState::Stopping { .. } => format!("told to be gone by {}", times.moment(run.until)),
        RunState::Ended { outcome } => outcome_words(outcome),
    };
    let task = if run.attempt > 1 {
        format!("task {}, try {}", run.task, run.attempt)
    } else {
        format!("task {}", run.task)
    };
    format!(
        "{task}: {} on {}, {state}",
        times.span(run.began, until),
        nodes.join(" ")
    )
}

fn outcome_words(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed".to_owned(),
        Outcome::Failed { exit_code } => format!("failed with exit code {exit_code}"),
        Outcome::OutOfMemory => "wanted more memory than its limit".to_owned(),
        Outcome::CouldNotStart => "could not be started".to_owned(),
        Outcome::TimedOut => "its time was over".to_owned(),
        Outcome::Preempted => "made room for something firmer".to_owned(),
        Outcome::Checkpointed => "wrote down how far it came, to go on elsewhere".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::NodeFailed => "its node failed".to_owned(),
    }
}

/// Whose share.
#[derive(Debug, Args)]
pub struct ShareOf {
    /// Everybody's, people included; yours and your projects', if left out
    #[arg(long)]
    all: bool,
}

pub async fn share(command: ShareOf, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    let site = context.site()?;
    let mut shares = whole(async |query| client.shares(site, &query).await).await?;
    if !command.all {
        let me = client.me().await?.person.id;
        let is_mine = |share: &Share| share.person.as_ref().is_some_and(|person| person.id == me);
        let mine: Vec<_> = shares
            .items
            .iter()
            .filter(|one| is_mine(one))
            .map(|one| one.project.clone())
            .collect();
        shares
            .items
            .retain(|one| is_mine(one) || (one.person.is_none() && mine.contains(&one.project)));
    }
    out.show(&shares, |screen| shares_text(&shares.items, screen))
}

fn shares_text(shares: &[Share], screen: Screen) -> String {
    let columns = [
        Column::left("WHO"),
        Column::right("DUE"),
        Column::right("USED"),
        Column::left("OF SHARE"),
        Column::right("GPUS NOW"),
        Column::left("BECAUSE").shrinks(1),
    ];
    let mut table = Table::new(
        columns,
        "You have used nothing here lately, and so you come first.",
    );
    for one in shares {
        let project = one
            .project
            .as_ref()
            .map_or("no project", |project| project.name.as_str());
        let who = match &one.person {
            None => project.to_owned(),
            Some(person) => format!("  {}", person.login),
        };
        table.row([
            who,
            format!("{:.0} %", one.due * 100.0),
            format!("{:.0} %", one.used * 100.0),
            format!("{} {:.1} x", bar(one.of_share), one.of_share),
            format!("{}", one.gpus_milli as f64 / 1000.0),
            one.words.clone(),
        ]);
    }
    table.render(screen)
}

/// Ten cells, of which five are one's share.
fn bar(of_share: f64) -> String {
    let full = (of_share * 5.0).round().clamp(0.0, 10.0) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(10 - full))
}

fn nodes_table(nodes: &[QueueNode]) -> Table<5> {
    let columns = [
        Column::left("NODE"),
        Column::left("STATE"),
        Column::right("CORES FREE"),
        Column::right("MEMORY FREE"),
        Column::left("GPUS").shrinks(1),
    ];
    let mut table = Table::new(columns, "The queue of this site has no nodes.");
    for node in nodes {
        let state = match (node.maintenance, node.in_service, node.reserved) {
            (true, ..) => "maintenance",
            (false, false, _) => "out of service",
            (false, true, true) => "reserved",
            (false, true, false) => "open",
        };
        let gpu = |free: u16| match free {
            1000 => '□',
            0 => '■',
            _ => '◧',
        };
        let gpus: String = node.gpus.iter().map(|one| gpu(one.free)).collect();
        table.row([
            node.node.name.clone(),
            state.to_owned(),
            format!(
                "{} of {}",
                node.cores_milli_free / 1000,
                node.cores_milli / 1000
            ),
            format!(
                "{} of {}",
                words::memory(node.memory_mib_free),
                words::memory(node.memory_mib)
            ),
            format!("{gpus} {}", gpus_by_model(node)).trim().to_owned(),
        ]);
    }
    table
}

fn counts_table(counts: &QueueCounts) -> Table<5> {
    let columns = [
        Column::left("WHOSE"),
        Column::right("WAITING"),
        Column::right("HELD"),
        Column::right("RUNNING"),
        Column::right("TASKS RUNNING"),
    ];
    let mut table = Table::new(columns, "Nothing waits, and nothing runs.");
    let mut add = |whose: String, one: QueueCount| {
        let counts = [one.waiting, one.held, one.running, one.running_tasks];
        let [waiting, held, running, tasks] = counts.map(|count| count.to_string());
        table.row([whose, waiting, held, running, tasks]);
    };
    add("all".to_owned(), counts.all);
    for one in &counts.classes {
        add(show::word(one.class), one.count);
    }
    for one in &counts.projects {
        let project = one.project.as_ref();
        let project = project.map_or("no project", |project| project.name.as_str());
        add(project.to_owned(), one.count);
    }
    for one in &counts.people {
        add(one.person.login.clone(), one.count);
    }
    table
}

/// How many of its GPUs are free, by model; slices are a model of their own.
fn gpus_by_model(node: &QueueNode) -> String {
    let mut models: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for gpu in &node.gpus {
        let (free, all) = models
            .entry(gpu.model.as_deref().unwrap_or("GPU"))
            .or_default();
        *free += usize::from(node.in_service && gpu.free == 1000);
        *all += 1;
    }
    let models = models.into_iter();
    let models: Vec<String> = models
        .map(|(model, (free, all))| format!("{free} of {all} {model}"))
        .collect();
    models.join(", ")
}

fn settings_details(view: &QueueSettingsView) -> Details {
    let settings = &view.settings;
    let lengths = [
        settings.half_life,
        settings.grace,
        settings.checkpoint,
        settings.run_min,
        settings.limit_max,
    ]
    .map(crate::when::duration);
    let [half_life, grace, checkpoint, run_min, limit_max] = lengths;
    let roles = settings
        .roles
        .iter()
        .map(|(kind, role)| format!("{kind} is {}", show::word(*role)));
    let shares = settings
        .shares
        .iter()
        .map(|(project, weight)| format!("{project} {}", weight.get()));
    let quotas = settings.quotas.iter().map(|quota| {
        let whose = match (&quota.project, &quota.person) {
            (Some(project), _) => project.to_string(),
            (None, Some(person)) => person.to_string(),
            (None, None) => "the site".to_owned(),
        };
        let amount = |what: &str, amount: Option<u64>| {
            amount.map(|amount| format!("{what} {}", amount as f64 / 1000.0))
        };
        let parts = [
            amount("at most GPUs", quota.amounts.gpus_milli),
            amount("own GPUs", quota.amounts.gpus_milli_guaranteed),
            amount("at most cores", quota.amounts.cores_milli),
            amount("own cores", quota.amounts.cores_milli_guaranteed),
            quota
                .amounts
                .gpu_hours_month
                .map(|hours| format!("{hours} GPU-hours a month")),
        ];
        format!(
            "{whose}: {}",
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        )
    });
    let levels = settings
        .levels
        .iter()
        .map(|(name, level)| format!("{name} ({})", level.number));
    let profiles = settings.profiles.iter().map(|(name, profile)| {
        format!(
            "{name}: {}: {}",
            profile.title,
            words::asks(&profile.wishes)
        )
    });
    Details::default()
        .lines("Roles", roles)
        .lines("Shares", shares)
        .lines("Quotas", quotas)
        .lines("Levels", levels)
        .lines("Profiles", profiles)
        .line("Half-life", half_life)
        .line("Grace", grace)
        .line("Checkpoint", checkpoint)
        .line("Runs at least", run_min)
        .line("Longest limit", limit_max)
        .line("Waiting, at most", settings.waiting_max)
        .line("Version", view.version)
}

fn read_settings(text: &str) -> anyhow::Result<Settings> {
    let read: Result<Settings, _> = serde_saphyr::from_str(text);
    read.map_err(|error| {
        usage(format!(
            "the file is not what a queue can be run by: {error}"
        ))
    })
}

fn grants_table(grants: &[Grant], times: &Times) -> Table<6> {
    let columns = [
        Column::left("WHOSE"),
        Column::left("UNTIL"),
        Column::right("GPU-HOURS"),
        Column::left("BY"),
        Column::left("WHY").shrinks(1),
        Column::left("ID"),
    ];
    let mut table = Table::new(columns, "Nobody's work is urgent.");
    for one in grants {
        table.row([
            whose(one),
            if one.revoked_at.is_some() {
                "taken back".to_owned()
            } else {
                times.moment(one.until)
            },
            one.gpu_hours.to_string(),
            one.granted_by.login.clone(),
            printable(one.reason.as_str()),
            one.id.to_string(),
        ]);
    }
    table
}

fn whose(grant: &Grant) -> String {
    match (&grant.project, &grant.person) {
        (Some(project), _) => project.name.clone(),
        (None, Some(person)) => person.login.clone(),
        (None, None) => "everybody".to_owned(),
    }
}
