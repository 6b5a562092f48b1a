//! The inventory as a table, and from Slurm: each becomes a document, which is applied like any other.

use std::path::{Path, PathBuf};

use berth_api::declared::SiteExport;
use berth_model::Name;
use berth_model::declared::Declared;
use clap::Args;

use crate::commands::apply::{How, carry_out};
use crate::commands::types::read_text;
use crate::context::Context;
use crate::failure::usage;
use crate::files::{csv, slurm};
use crate::output::{Format, complain, print};

#[derive(Debug, Args)]
pub struct Import {
    /// A CSV file with a line for each resource (`-` for the standard input)
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
pub struct ImportSlurm {
    /// Slurm's slurm.conf, or what `scontrol show nodes -o` prints (`-` for the standard input)
    file: PathBuf,
    /// Put the nodes below this resource
    #[arg(long = "in", value_name = "RESOURCE")]
    parent: Option<Name>,
    /// Show the differences, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub async fn import(command: Import, context: &Context) -> anyhow::Result<()> {
    let site = context.site()?;
    let text = read_text(&command.file)?;
    let present = present(context).await?;
    let document = csv::read(&text, &name(&command.file), &present).map_err(usage)?;
    carry_out(context, site, &document, None, &command.how).await
}

pub async fn import_slurm(command: ImportSlurm, context: &Context) -> anyhow::Result<()> {
    let site = context.site()?;
    let text = read_text(&command.file)?;
    let present = present(context).await?;
    let imported = slurm::read(
        &text,
        &name(&command.file),
        &present,
        command.parent.as_ref(),
    );
    let imported = imported.map_err(usage)?;
    for note in &imported.notes {
        complain(&format!("note: {note}"));
    }
    let how = How {
        prune: false,
        dry_run: command.dry_run,
        yes: command.yes,
        is_part: true,
    };
    carry_out(context, site, &imported.document, None, &how).await
}

pub async fn export(context: &Context) -> anyhow::Result<()> {
    let SiteExport { document, .. } = context.client.export_site(context.site()?).await?;
    match context.out.format {
        Format::Json => context.out.json(&document.resources),
        Format::Table | Format::Csv => print(&csv::write(&document.flat()?)?),
    }
}

async fn present(context: &Context) -> anyhow::Result<Declared> {
    let export = context.client.export_site(context.site()?).await?;
    Ok(export.document.flat()?)
}

fn name(file: &Path) -> String {
    match file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => file.display().to_string(),
    }
}
