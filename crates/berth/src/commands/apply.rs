//! `berth apply`, `berth diff` and `berth export`: a site as a file.

use std::path::{Path, PathBuf};

use berth_api::client;
use berth_api::declared::{ApplyOutcome, ApplyQuery};
use berth_api::reference::SiteReference;
use berth_api::{Code, Problem};
use berth_model::FieldErrors;
use berth_model::declared::{Act, Difference, Document, FieldDifference, Subject};
use clap::Args;

use super::types::read_text;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, ended, usage};
use crate::files::hidden::Hidden;
use crate::files::read::{SiteFile, site_file};
use crate::files::write;
use crate::output::{Format, print};
use crate::prompt;
use crate::table::printable;

/// More than this many extra things are only counted.
const EXTRA_SHOWN_MAX: usize = 20;

#[derive(Debug, Args)]
pub struct Apply {
    /// The file that declares the site, YAML or JSON (`-` for the standard input)
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

/// How a difference is dealt with, wherever it comes from.
#[derive(Debug, Clone, Args)]
pub struct How {
    /// Remove what the file does not name; without it such things are only listed
    #[arg(long)]
    pub prune: bool,
    /// Show the differences, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// Whether the document is about a part of the site only, so that what it does not name is no news.
    #[arg(skip)]
    pub is_part: bool,
}

#[derive(Debug, Args)]
pub struct Diff {
    /// The file that declares the site, YAML or JSON (`-` for the standard input)
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Show what `berth apply --prune` would do
    #[arg(long)]
    prune: bool,
}

pub async fn apply(command: Apply, context: &Context) -> anyhow::Result<()> {
    let file = read(&command.file)?;
    let site = site_of(&file.document, context)?;
    carry_out(context, &site, &file.document, Some(&file), &command.how).await
}

/// Ends with an exit code of its own where the site is not as the file says.
pub async fn diff(command: Diff, context: &Context) -> anyhow::Result<()> {
    let file = read(&command.file)?;
    let site = site_of(&file.document, context)?;
    let outcome = ask(context, &site, &file.document, Some(&file), command.prune).await?;
    context
        .out
        .show(&outcome, |_| told(&outcome, command.prune))?;
    tell_conflicts(context, &outcome)?;
    if outcome.differences.is_empty() {
        Ok(())
    } else {
        Err(ended(Exit::Differs))
    }
}

pub async fn export(context: &Context) -> anyhow::Result<()> {
    let export = context.client.export_site(context.site()?).await?;
    match context.out.format {
        Format::Json => context.out.json(&export.document),
        Format::Table | Format::Csv => print(&write::document(&export.document)),
    }
}

fn read(file: &Path) -> anyhow::Result<SiteFile> {
    let text = read_text(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    let variable = |name: &str| std::env::var(name).ok();
    site_file(&text, &name, folder, &variable).map_err(usage)
}

/// A file that names its site is meant for that one, whichever is at hand; another one must not be asked for.
fn site_of(document: &Document, context: &Context) -> anyhow::Result<SiteReference> {
    let named = document.site.as_ref().and_then(|site| site.name.clone());
    match (named, context.asked_site()) {
        (Some(name), None) => Ok(SiteReference::Name(name)),
        (_, Some(asked)) => Ok(asked.clone()),
        (None, None) => context.site().cloned(),
    }
}

/// Asks what a document would change.
async fn ask(
    context: &Context,
    site: &SiteReference,
    document: &Document,
    file: Option<&SiteFile>,
    prune: bool,
) -> anyhow::Result<ApplyOutcome> {
    let query = ApplyQuery {
        dry_run: true,
        prune,
        expected: None,
    };
    send(context, site, &query, document, file).await
}

async fn send(
    context: &Context,
    site: &SiteReference,
    query: &ApplyQuery,
    document: &Document,
    file: Option<&SiteFile>,
) -> anyhow::Result<ApplyOutcome> {
    let answered = context.client.apply_site(site, query, document).await;
    let mut outcome = answered.map_err(|error| placed(error, file))?;
    if let Some(file) = file {
        file.hidden.mask(&mut outcome);
    }
    Ok(outcome)
}

/// What the server says of a field, with the field's place in the file.
fn placed(error: client::Error, file: Option<&SiteFile>) -> anyhow::Error {
    let Some(file) = file else {
        return error.into();
    };
    match error {
        client::Error::Problem(problem)
            if problem.is(Code::RequestInvalid) && !problem.errors.is_empty() =>
        {
            let errors = FieldErrors(problem.errors.clone());
            Failure::new(Exit::of_problem(&problem), file.explain(&errors)).into()
        }
        client::Error::Problem(problem) => masked(*problem, &file.hidden).into(),
        error => error.into(),
    }
}

fn masked(mut problem: Problem, hidden: &Hidden) -> client::Error {
    problem.detail = hidden.mask_text(&problem.detail);
    problem.into()
}

/// Shows what would change, asks, and changes it: what was shown, or nothing.
pub async fn carry_out(
    context: &Context,
    site: &SiteReference,
    document: &Document,
    file: Option<&SiteFile>,
    how: &How,
) -> anyhow::Result<()> {
    let mut shown = ask(context, site, document, file, how.prune).await?;
    if how.is_part {
        shown.differences.retain(|one| one.act != Act::Extra);
    }
    let steps = steps(&shown.differences);
    let is_json = context.out.format == Format::Json;
    if !is_json {
        print(&told(&shown, how.prune))?;
    }
    tell_conflicts(context, &shown)?;
    if !shown.conflicts.is_empty() {
        if is_json {
            context.out.json(&shown)?;
        }
        return Err(ended(Exit::Conflict));
    }
    if how.dry_run || steps == 0 {
        return if is_json {
            context.out.json(&shown)
        } else {
            Ok(())
        };
    }
    if !how.yes {
        if is_json || !prompt::can_ask() {
            return Err(usage(
                "nobody is here to confirm it: look with --dry-run, then repeat it with --yes",
            ));
        }
        if !prompt::agreed(&format!(
            "Apply {steps} {} to {site}?",
            plural(steps, "change")
        ))? {
            return context.out.say("Nothing was changed.\n");
        }
    }
    let query = ApplyQuery {
        dry_run: false,
        prune: how.prune,
        expected: Some(shown.fingerprint),
    };
    let mut applied = send(context, site, &query, document, file).await?;
    if how.is_part {
        applied.differences.retain(|one| one.act != Act::Extra);
    }
    context.out.show(&applied, |_| {
        format!("Applied {steps} {}.\n", plural(steps, "change"))
    })
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

fn steps(differences: &[Difference]) -> usize {
    differences
        .iter()
        .filter(|difference| difference.act != Act::Extra)
        .count()
}

fn tell_conflicts(context: &Context, outcome: &ApplyOutcome) -> anyhow::Result<()> {
    if outcome.conflicts.is_empty() || context.out.format == Format::Json {
        return Ok(());
    }
    let table = crate::show::conflicts(&outcome.conflicts, &context.times, context.out.screen);
    print(&format!(
        "\nThese bookings are in the way; nothing can be applied while they stand:\n{table}"
    ))
}

/// The differences as people read them, a line each, and a summary.
fn told(outcome: &ApplyOutcome, prune: bool) -> String {
    let mut text = String::new();
    let mut extra = 0;
    for difference in &outcome.differences {
        if difference.act == Act::Extra {
            extra += 1;
            if extra > EXTRA_SHOWN_MAX {
                continue;
            }
        }
        text += &line(difference);
    }
    if extra > EXTRA_SHOWN_MAX {
        text += &format!(
            "  … and {} more that the file does not name\n",
            extra - EXTRA_SHOWN_MAX
        );
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let count = |act| {
        outcome
            .differences
            .iter()
            .filter(|difference| difference.act == act)
            .count()
    };
    if steps(&outcome.differences) == 0 {
        text += "Nothing to do: the site is as the file says.\n";
    } else {
        text += &format!(
            "{} to add, {} to change, {} to move, {} to remove.\n",
            count(Act::Added),
            count(Act::Changed),
            count(Act::Moved),
            count(Act::Removed)
        );
    }
    if extra > 0 && !prune {
        text += &format!(
            "{extra} not in the file; --prune would remove {}.\n",
            if extra == 1 { "it" } else { "them" }
        );
    }
    text
}

fn line(difference: &Difference) -> String {
    let sign = match difference.act {
        Act::Added => '+',
        Act::Changed => '~',
        Act::Moved => '>',
        Act::Removed => '-',
        Act::Extra => '?',
    };
    let subject = match difference.subject {
        Subject::Site => "site",
        Subject::Type => "type",
        Subject::Resource => "resource",
        Subject::Project => "project",
        Subject::Policy => "policy of",
    };
    let head = format!("{sign} {subject} {}", printable(&difference.name));
    let fields = &difference.fields;
    match difference.act {
        Act::Removed | Act::Extra => format!("{head}\n"),
        Act::Moved => {
            let place = |parent: &Option<String>| match parent {
                Some(parent) => printable(parent),
                None => "the top of the tree".to_owned(),
            };
            let way = fields
                .iter()
                .map(|field| format!("{} -> {}", place(&field.before), place(&field.after)));
            format!("{head}: {}\n", way.collect::<Vec<_>>().join(", "))
        }
        Act::Added => {
            let given = fields.iter().filter_map(|field| {
                let value = field.after.as_ref()?;
                Some(format!("{}={}", field.field, printable(value)))
            });
            format!("{head}: {}\n", given.collect::<Vec<_>>().join(", "))
        }
        Act::Changed => {
            let changed: String = fields.iter().map(changed).collect();
            format!("{head}\n{changed}")
        }
    }
}

fn changed(field: &FieldDifference) -> String {
    let value = |value: &Option<String>| match value {
        Some(value) => printable(value),
        None => "(none)".to_owned(),
    };
    format!(
        "    {}: {} -> {}\n",
        field.field,
        value(&field.before),
        value(&field.after)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(act: Act, fields: &[(&str, Option<&str>, Option<&str>)]) -> Difference {
        let field = |(field, before, after): &(&str, Option<&str>, Option<&str>)| FieldDifference {
            field: (*field).to_owned(),
            before: before.map(ToOwned::to_owned),
            after: after.map(ToOwned::to_owned),
        };
        Difference {
            act,
            subject: Subject::Resource,
            name: "gpu-01".to_owned(),
            fields: fields.iter().map(field).collect(),
        }
    }

    fn outcome(differences: Vec<Difference>) -> ApplyOutcome {
        ApplyOutcome {
            applied: false,
            fingerprint: "0".repeat(64).parse().unwrap(),
            differences,
            conflicts: Vec::new(),
        }
    }

    #[test]
    fn differences_read_like_what_will_happen() {
        let told = told(
            &outcome(vec![
                difference(
                    Act::Added,
                    &[("title", None, Some("One")), ("type", None, Some("gpu"))],
                ),
                difference(
                    Act::Changed,
                    &[
                        ("attributes.gpus", Some("4"), Some("8")),
                        ("title", None, Some("\u{1b}[31m")),
                    ],
                ),
                difference(Act::Moved, &[("parent", Some("rack-a"), None)]),
                difference(Act::Removed, &[("type", Some("gpu"), None)]),
                difference(Act::Extra, &[]),
            ]),
            false,
        );
        assert_eq!(
            told,
            "+ resource gpu-01: title=One, type=gpu\n\
             ~ resource gpu-01\n    attributes.gpus: 4 -> 8\n    title: (none) -> \u{fffd}[31m\n\
             > resource gpu-01: rack-a -> the top of the tree\n\
             - resource gpu-01\n\
             ? resource gpu-01\n\n\
             1 to add, 1 to change, 1 to move, 1 to remove.\n\
             1 not in the file; --prune would remove it.\n"
        );
    }

    #[test]
    fn nothing_to_do_is_said_so_and_many_extras_are_counted() {
        assert_eq!(
            told(&outcome(Vec::new()), false),
            "Nothing to do: the site is as the file says.\n"
        );
        let many = told(&outcome(vec![difference(Act::Extra, &[]); 30]), false);
        assert!(
            many.contains("… and 10 more") && many.contains("30 not in the file"),
            "{many}"
        );
    }
}
