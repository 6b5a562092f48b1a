//! `berth submit`: work for the queue.

use std::path::PathBuf;

use berth_api::list::List;
use berth_api::reference::{ProjectReference, Reference, WorkloadReference};
use berth_api::workloads::{
    CancelWorkload, ExtendWorkload, NewWorkload, Run, Workload, WorkloadPreview,
};
use berth_model::attribute::Requirement;
use berth_model::workload::{
    After, Array, AtOnce, Class, Cores, GpuCount, Gpus, Memory, Near, OnlyIf, Program, Seats, Task,
    TaskCount, Tasks, Thousandths, Wish,
};
use berth_model::{Name, ReservationId, Text};
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, SpanRelativeTo};

use super::queue::words;
use super::types::read_text;
use super::{Acting, Once};
use crate::arguments::{Placed, SomeOf, Wanted};
use crate::context::Context;
use crate::details::Details;
use crate::failure::usage;
use crate::table::printable;
use crate::times::Times;
use crate::when::parse_duration;

/// Submit work to the queue
#[derive(Debug, Args)]
pub struct Submit {
    /// What to call it; the command's name, if left out
    #[arg(long, short = 'J')]
    title: Option<Text>,
    /// The project whose share it uses
    #[arg(long, short = 'p')]
    project: Option<ProjectReference>,
    /// A preset of the site (`berth queue settings` lists them); what else is said here goes before it
    #[arg(long)]
    profile: Option<Name>,
    /// GPUs of each task
    #[arg(long, short = 'g', value_name = "N")]
    gpus: Option<u64>,
    /// A condition on the GPUs, as in `gpu_model=A100` or `gpu_memory_gb>=40`; a bare word is the model
    #[arg(long = "gpu", visible_alias = "gpu-model", value_name = "CONDITION", value_parser = condition)]
    conditions: Vec<Requirement>,
    /// A slice of a GPU by its profile, such as `1g.10gb`
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["gpus", "share"])]
    slice: Option<Name>,
    /// A share of one GPU, in thousandths
    #[arg(long, value_name = "N", conflicts_with = "gpus")]
    share: Option<u64>,
    /// Processor cores of each task, as in `8` or `0.5`
    #[arg(long, short = 'c', value_name = "N", value_parser = cores)]
    cores: Option<Cores>,
    /// The most cores a task may use, where there are some to spare
    #[arg(long, value_name = "N", value_parser = cores)]
    cores_limit: Option<Cores>,
    /// Memory of each task, as in `16GiB`
    #[arg(long, short = 'm', value_name = "SIZE", value_parser = memory)]
    memory: Option<Memory>,
    /// The most memory a task may use, where there is some to spare
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory_limit: Option<Memory>,
    /// How many such tasks start together, or not at all
    #[arg(long, short = 'n', value_name = "N")]
    tasks: Option<u64>,
    /// How long it may run, as in `2h` or `90m`
    #[arg(long, short = 't', value_name = "LENGTH", value_parser = length)]
    time: Option<SignedDuration>,
    /// Another way in which it could be served, as in `2:4h`: so many GPUs for so long
    #[arg(long = "or", value_name = "GPUS:TIME", value_parser = alternative)]
    alternatives: Vec<(u64, SignedDuration)>,
    /// Each task in a node of its own
    #[arg(long)]
    apart: bool,
    /// How near to each other its tasks have to stand
    #[arg(long, value_enum, value_name = "WHERE")]
    near: Option<Nearness>,
    /// `guaranteed`, or `opportunistic`: fills what is idle, and makes room for everybody else
    #[arg(long, value_enum, default_value = "guaranteed")]
    class: Firmness,
    /// One of the site's levels of priority
    #[arg(long)]
    level: Option<Name>,
    /// Many tasks of the same kind, as in `0-99`, `1,3,5` or `0-99%8` for eight at a time
    #[arg(long, short = 'a', value_name = "TASKS", value_parser = array)]
    array: Option<Array>,
    /// Seats of a licence or of another counted thing, as in `matlab:2`
    #[arg(long, value_name = "THING:N")]
    seats: Vec<Wanted>,
    /// Begin only when this workload is completed; `failed:JOB`, `over:JOB` and `begun:JOB` ask for something else
    #[arg(long, value_name = "JOB", value_parser = after)]
    after: Vec<(OnlyIf, WorkloadReference)>,
    /// Inside this reservation of yours, and nowhere else
    #[arg(long, value_name = "RESERVATION")]
    inside: Option<ReservationId>,
    /// Not before this moment
    #[arg(long, value_name = "TIME")]
    not_before: Option<String>,
    /// Be over by this moment, or do not begin at all
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Hold it until `berth release`
    #[arg(long)]
    hold: bool,
    /// Do not begin again after it had to make room or its node failed
    #[arg(long)]
    no_requeue: bool,
    /// Submit nothing: check it, and say when it would begin and when it would be over
    #[arg(long)]
    dry_run: bool,
    /// A file with a script, in place of a command; `-` reads the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    script: Option<PathBuf>,
    /// A container image or a named environment
    #[arg(long)]
    image: Option<String>,
    /// A variable of its environment, as in `SEED=7`
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Where it runs
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
    /// What runs, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    once: Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Nearness {
    Rack,
    Node,
    Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Firmness {
    Guaranteed,
    Opportunistic,
}

pub async fn run(submit: Submit, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    let site = context.site()?;
    let mut after = Vec::new();
    for (only_if, other) in &submit.after {
        let workload = match other {
            Reference::Id(id) => *id,
            number @ Reference::Name(_) => client.workload(site, number).await?.id,
        };
        after.push(After {
            workload,
            only_if: *only_if,
        });
    }
    let (key, is_dry) = (submit.once.clone(), submit.dry_run);
    let new = wanted(submit, after, context)?;
    if is_dry {
        let preview = client.preview_workload(site, &new).await?;
        return out.show(&preview, |screen| {
            previewed(&preview, &context.times).render(screen) + &context.times.footnote()
        });
    }
    let made = client.submit(site, &new, key.key()).await?.object;
    let typed = context.typed(&made.site.name, made.number);
    out.show(&made, |_| told(&made, &typed))
}

fn told(made: &Workload, typed: &str) -> String {
    let title = printable(made.title.as_str());
    let asks = words::asks(&made.wishes);
    let tasks = match made.waiting.len() {
        0 | 1 => String::new(),
        many => format!("{many} tasks of "),
    };
    format!(
        "Submitted {typed}: {title}, {tasks}{asks}.\nWhy it waits and when it begins: berth why {typed}\n"
    )
}

fn previewed(preview: &WorkloadPreview, times: &Times) -> Details {
    let waits = preview.waits.as_ref();
    let begins = match (preview.begins, waits) {
        (Some(_), None) => "at once".to_owned(),
        (Some(at), Some(_)) => times.moment_and_distance(at),
        (None, _) => "not known".to_owned(),
    };
    let wish = preview.wish.and_then(|wish| usize::try_from(wish).ok());
    let wish = wish.and_then(|wish| preview.wishes.get(wish));
    let is_choice = preview.wishes.len() > 1;
    let nodes = preview.nodes.iter().map(|node| node.name.as_str());
    let nodes = nodes.collect::<Vec<_>>().join(" ");
    Details::default()
        .line("Asks for", words::asks(&preview.wishes))
        .line("Would begin", begins)
        .maybe("Because", waits.map(|waits| waits.words.clone()))
        .maybe("What helps", waits.and_then(|waits| waits.remedy.clone()))
        .maybe(
            "Would get",
            wish.filter(|_| is_choice)
                .map(|wish| words::asks(std::slice::from_ref(wish))),
        )
        .maybe("Where", Some(nodes).filter(|nodes| !nodes.is_empty()))
        .maybe("Over by", preview.ends.map(|ends| words::ends(ends, times)))
        .line("Submitted", "nothing")
}

fn wanted(submit: Submit, after: Vec<After>, context: &Context) -> anyhow::Result<NewWorkload> {
    let times = &context.times;
    let moment = |text: Option<String>| text.map(|text| times.read_moment(&text)).transpose();
    let wishes = wishes(&submit)?;
    if wishes.is_empty() && submit.profile.is_none() {
        return Err(usage(
            "say what it needs: --gpus, --cores, --memory and --time, or a --profile of the site",
        ));
    }
    let name = submit
        .command
        .first()
        .map(|command| command.rsplit('/').next().unwrap_or(command));
    let title = match (submit.title, name, &submit.profile) {
        (Some(title), ..) => title,
        (None, Some(command), _) => command.parse()?,
        (None, None, Some(profile)) => profile.as_str().parse()?,
        (None, None, None) => "job".parse()?,
    };
    let list = |what: &str, error: berth_api::list::LengthError| usage(format!("{what}: {error}"));
    let seats: Vec<Seats> = submit
        .seats
        .into_iter()
        .map(|seats| {
            let amount = seats
                .amount
                .map_or_else(|| berth_model::Amount::new(1), Ok)?;
            Ok(Seats {
                resource: seats.resource,
                amount,
            })
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(NewWorkload {
        title,
        project: submit.project,
        profile: submit.profile,
        wishes: List::try_from(wishes).map_err(|error| list("--or", error))?,
        class: match submit.class {
            Firmness::Guaranteed => Class::Guaranteed,
            Firmness::Opportunistic => Class::Opportunistic,
        },
        level: submit.level,
        seats: List::try_from(seats).map_err(|error| list("--seats", error))?,
        inside: submit.inside,
        not_before: moment(submit.not_before)?,
        deadline: moment(submit.deadline)?,
        after: List::try_from(after).map_err(|error| list("--after", error))?,
        array: submit.array,
        requeue: !submit.no_requeue,
        held: submit.hold,
        program: Program {
            command: submit.command,
            script: submit.script.as_deref().map(read_text).transpose()?,
            environment: submit.environment.into_iter().collect(),
            image: submit.image,
            folder: submit.folder,
            ..Program::default()
        },
    })
}

/// What is asked for; nothing where everything is left to a profile.
fn wishes(submit: &Submit) -> anyhow::Result<Vec<Wish>> {
    let says_nothing = submit.gpus.is_none()
        && submit.slice.is_none()
        && submit.share.is_none()
        && submit.cores.is_none()
        && submit.memory.is_none()
        && submit.time.is_none();
    if says_nothing {
        return Ok(Vec::new());
    }
    let Some(limit) = submit.time else {
        return Err(usage("say how long it may run, as in `--time 2h`"));
    };
    let with = submit.conditions.clone();
    let gpus = match (submit.gpus, &submit.slice, submit.share) {
        (Some(0) | None, None, None) if with.is_empty() => None,
        (count, None, None) => Some(Gpus::Whole {
            count: GpuCount::try_from(count.unwrap_or(1))?,
            with,
        }),
        (_, Some(profile), _) => Some(Gpus::Slice {
            profile: profile.clone(),
            count: GpuCount::try_from(1)?,
            with,
        }),
        (_, None, Some(share)) => Some(Gpus::Share {
            thousandths: Thousandths::try_from(share)?,
            with,
        }),
    };
    // A GPU without a few cores and some memory is of no use to anybody.
    let many = submit.gpus.unwrap_or(1).max(1);
    let first = Wish {
        tasks: submit
            .tasks
            .map_or_else(|| Ok(TaskCount::default()), TaskCount::try_from)?,
        task: Task {
            cores_milli: submit
                .cores
                .map_or_else(|| Cores::try_from(4000 * many), Ok)?,
            cores_milli_limit: submit.cores_limit,
            memory_mib: submit
                .memory
                .map_or_else(|| Memory::try_from(16 * 1024 * many), Ok)?,
            memory_mib_limit: submit.memory_limit,
            gpus,
        },
        limit,
        near: Near::Anywhere,
        at_least: match submit.near {
            None => Near::Anywhere,
            Some(Nearness::Rack) => Near::Rack,
            Some(Nearness::Node) => Near::Node,
            Some(Nearness::Link) => Near::Link,
        },
        apart: submit.apart,
    };
    let mut wishes = vec![first];
    for (gpus, limit) in &submit.alternatives {
        let mut other = wishes[0].clone();
        let with = submit.conditions.clone();
        other.task.gpus = Some(Gpus::Whole {
            count: GpuCount::try_from(*gpus)?,
            with,
        });
        other.limit = *limit;
        wishes.push(other);
    }
    Ok(wishes)
}

fn condition(text: &str) -> Result<Requirement, String> {
    let is_word = !text.contains(['<', '>', '=', '!']);
    let text = if is_word {
        format!("gpu_model={text}")
    } else {
        text.to_owned()
    };
    text.parse()
        .map_err(|error: berth_model::attribute::RequirementError| error.to_string())
}

fn cores(text: &str) -> Result<Cores, String> {
    let shape = || format!("`{text}` is not a number of cores: write `8` or `0.5`");
    let number: f64 = text.parse().map_err(|_| shape())?;
    if !(0.001..=1e5).contains(&number) {
        return Err(shape());
    }
    Cores::try_from((number * 1000.0).round() as u64).map_err(|error| error.to_string())
}

/// In MiB: `16GiB`, `512M`, `2T`; GiB where no unit is named.
fn memory(text: &str) -> Result<Memory, String> {
    let shape = || format!("`{text}` is not an amount of memory: write `16GiB` or `512MiB`");
    let at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let each = match unit.to_ascii_lowercase().as_str() {
        "" | "g" | "gb" | "gib" => 1024.0,
        "m" | "mb" | "mib" => 1.0,
        "t" | "tb" | "tib" => 1024.0 * 1024.0,
        _ => return Err(shape()),
    };
    let number: f64 = number.trim().parse().map_err(|_| shape())?;
    if !(0.0..1e9).contains(&number) {
        return Err(shape());
    }
    Memory::try_from((number * each).ceil() as u64).map_err(|error| error.to_string())
}

/// A length of the machine's time: a day is 24 hours, whatever the clocks do.
pub(super) fn length(text: &str) -> Result<SignedDuration, String> {
    let span = parse_duration(text).map_err(|error| error.to_string())?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours());
    length.map_err(|error| error.to_string())
}

fn alternative(text: &str) -> Result<(u64, SignedDuration), String> {
    let shape = || format!("`{text}` is not another way: write `2:4h` for two GPUs for four hours");
    let (gpus, time) = text.split_once(':').ok_or_else(shape)?;
    Ok((gpus.parse().map_err(|_| shape())?, length(time)?))
}

fn array(text: &str) -> Result<Array, String> {
    let (tasks, at_once) = match text.split_once('%') {
        None => (text, None),
        Some((tasks, most)) => {
            let most: u64 = most
                .parse()
                .map_err(|_| format!("`{most}` is not a number of tasks at once"))?;
            (
                tasks,
                Some(AtOnce::try_from(most).map_err(|error| error.to_string())?),
            )
        }
    };
    let tasks = tasks
        .parse()
        .map_err(|error: berth_model::workload::TasksError| error.to_string())?;
    Ok(Array { tasks, at_once })
}

fn after(text: &str) -> Result<(OnlyIf, WorkloadReference), String> {
    let (only_if, job) = match text.split_once(':') {
        None => (OnlyIf::Completed, text),
        Some(("completed", job)) => (OnlyIf::Completed, job),
        Some(("failed", job)) => (OnlyIf::Failed, job),
        Some(("over", job)) => (OnlyIf::Over, job),
        Some(("begun", job)) => (OnlyIf::Begun, job),
        Some((word, _)) => {
            return Err(format!(
                "`{word}` is not a condition: write `completed`, `failed`, `over` or `begun`"
            ));
        }
    };
    let job = job
        .parse()
        .map_err(|_| format!("`{job}` is not a workload: give its number or its id"))?;
    Ok((only_if, job))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not a variable: write `NAME=VALUE`"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Which workload, and why it is given up.
#[derive(Debug, Args)]
pub struct Cancel {
    /// The workloads, by number or id; `12_3` or `12_[3-7,9]` for some tasks of an array
    #[arg(required = true, value_name = "JOB")]
    workloads: Vec<Placed<SomeOf>>,
    /// Why; kept with it
    #[arg(long)]
    reason: Option<Text>,
    #[command(flatten)]
    acting: Acting,
}

/// Which workloads.
#[derive(Debug, Args)]
pub struct These {
    /// The workloads, by number or id
    #[arg(required = true, value_name = "JOB")]
    workloads: Vec<Placed<WorkloadReference>>,
    #[command(flatten)]
    acting: Acting,
}

pub async fn cancel(command: Cancel, context: &Context) -> anyhow::Result<()> {
    let client = command
        .acting
        .client_for(&command.workloads, &context.client)?;
    for workload in &command.workloads {
        let site = context.site_of(workload)?;
        let SomeOf { whole, tasks } = &workload.it;
        let what = CancelWorkload {
            tasks: tasks.clone(),
            reason: command.reason.clone(),
        };
        let after = client.cancel_workload(&site, whole, &what).await?;
        context
            .out
            .show(&after, |_| cancelled(whole, tasks.as_ref(), &after))?;
    }
    Ok(())
}

fn cancelled(whole: &WorkloadReference, tasks: Option<&Tasks>, after: &Workload) -> String {
    let is_meant =
        |run: &&Run| !run.state.is_over() && tasks.is_none_or(|tasks| tasks.contains(run.task));
    let running = match after.runs.iter().filter(is_meant).count() {
        0 => String::new(),
        1 => "; one task still runs, and is told to end".to_owned(),
        some => format!("; {some} tasks still run, and are told to end"),
    };
    match tasks {
        None => format!("Cancelled {whole}{running}.\n"),
        Some(tasks) => format!("Cancelled tasks {tasks} of {whole}{running}.\n"),
    }
}

/// Which workload, and how much longer it may run.
#[derive(Debug, Args)]
pub struct Extend {
    /// The workload, by number or id
    #[arg(value_name = "JOB")]
    workload: Placed<WorkloadReference>,
    /// How much more time it gets: 30m, 2h, 1d
    #[arg(value_name = "LENGTH", value_parser = length)]
    by: SignedDuration,
    #[command(flatten)]
    acting: Acting,
}

pub async fn extend(command: Extend, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(&command.workload)?;
    let more = ExtendWorkload { by: command.by };
    let workload = &command.workload.it;
    let client = command.acting.client(&context.client);
    let after = client.extend_workload(&site, workload, &more).await?;
    context.out.show(&after, |_| {
        let live = after.runs.iter().filter(|run| !run.state.is_over());
        let until = live.map(|run| run.until).max();
        let until = until.map_or_else(String::new, |until| {
            format!(" until {} at the latest", context.times.moment(until))
        });
        format!("{workload} may run{until}.\n")
    })?;
    Ok(())
}

pub async fn hold(command: These, context: &Context) -> anyhow::Result<()> {
    let client = command
        .acting
        .client_for(&command.workloads, &context.client)?;
    for workload in &command.workloads {
        let site = context.site_of(workload)?;
        let after = client.hold_workload(&site, &workload.it).await?;
        context.out.show(&after, |_| {
            format!(
                "Holding {}: it is passed over until `berth release {}`.\n",
                workload.it, workload.it
            )
        })?;
    }
    Ok(())
}

pub async fn release(command: These, context: &Context) -> anyhow::Result<()> {
    let client = command
        .acting
        .client_for(&command.workloads, &context.client)?;
    for workload in &command.workloads {
        let site = context.site_of(workload)?;
        let after = client.release_workload(&site, &workload.it).await?;
        context.out.show(&after, |_| {
            format!("Released {}: it waits for its turn.\n", workload.it)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_read_as_they_mean_it() {
        assert_eq!(memory("16").map(Memory::get), Ok(16 * 1024));
        assert_eq!(memory("512M").map(Memory::get), Ok(512));
        assert_eq!(memory("1.5TiB").map(Memory::get), Ok(1536 * 1024));
        assert!(memory("lots").is_err());
        assert_eq!(cores("0.5").map(Cores::get), Ok(500));
        assert!(cores("0").is_err());
        assert_eq!(length("90m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(length("3d"), Ok(SignedDuration::from_hours(72)));
        assert!(length("-2h").is_err());
        assert_eq!(alternative("2:4h"), Ok((2, SignedDuration::from_hours(4))));
        assert_eq!(condition("A100").unwrap().to_string(), "gpu_model=A100");
        let read = array("0-99%8").unwrap();
        assert_eq!(
            (read.tasks.len(), read.at_once.map(AtOnce::get)),
            (100, Some(8))
        );
        assert!(matches!(
            after("failed:12"),
            Ok((OnlyIf::Failed, Reference::Name(12)))
        ));
        assert!(after("sometimes:12").is_err());
    }
}
