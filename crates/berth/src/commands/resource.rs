//! `berth resource`: the tree of a site, its parts and their status.

mod count;
mod edit;
mod files;
mod list;
mod show;

use berth_api::attributes::Where;
use berth_api::reference::{ResourceReference, TypeReference};
use berth_api::resources::{MoveResource, NewResource, ResourceQuery, StatusPatch};
use berth_model::inventory::Facts;
use berth_model::{Name, Status, Text};
use clap::{Args, Subcommand};

use super::{Once, Version};
use crate::arguments::{self, AttributeChange, Divisible, Placed};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::ended;

#[derive(Debug, Subcommand)]
pub enum Resource {
    /// Show the resources as a tree, with what is free now
    Tree(Filter),
    /// List the resources, with what is free now
    List(Filter),
    /// Count the resources by type and model, and those that are free now
    Count,
    /// Show one resource in full
    Show {
        /// The resource, by name or id
        resource: Placed<ResourceReference>,
    },
    /// Add a resource
    Add(Add),
    /// Change a resource
    Edit(edit::Edit),
    /// Move a resource, with all that is below it, to another place in the tree
    Move(Move),
    /// Remove a resource that nothing uses
    Remove {
        /// The resource, by name or id
        resource: Placed<ResourceReference>,
    },
    /// Add and change resources from a CSV file, after showing what that changes
    Import(files::Import),
    /// Add and change resources from Slurm's list of nodes, after showing what that changes
    ImportSlurm(files::ImportSlurm),
    /// Write the resources as CSV
    Export,
    /// Say whether a resource takes new bookings
    Status(SetStatus),
    /// Show how a resource's status changed
    History {
        /// The resource, by name or id
        resource: Placed<ResourceReference>,
    },
}

#[derive(Debug, Args)]
pub struct Filter {
    /// Only resources of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<TypeReference>,
    /// Only resources that meet this, as in `gpus>=4` or `gpu_model=A100`; repeat it for several
    #[arg(long = "where", value_name = "REQUIREMENT")]
    requirements: Vec<Where>,
    /// Only resources with this status: active, maintenance or unavailable
    #[arg(long, value_parser = arguments::status)]
    status: Option<Status>,
    /// Only this resource and what is below it
    #[arg(long, value_name = "RESOURCE")]
    under: Option<ResourceReference>,
}

impl Filter {
    fn query(self) -> anyhow::Result<ResourceQuery> {
        Ok(ResourceQuery {
            kind: self.kind,
            requirements: self.requirements.try_into()?,
            status: self.status,
            under: self.under,
            ..ResourceQuery::default()
        })
    }
}

#[derive(Debug, Args)]
pub struct Add {
    /// What people type: lower-case letters, digits, `-`, `_` and `.`
    name: Placed<Name>,
    /// What it is
    #[arg(long = "type", value_name = "TYPE")]
    kind: TypeReference,
    /// What it is part of; the top of the tree, if left out
    #[arg(long = "in", value_name = "RESOURCE")]
    parent: Option<ResourceReference>,
    /// What people read
    #[arg(long)]
    title: Option<Text>,
    /// What describes it for matching, as in `gpus=8`; repeat it for several
    #[arg(long = "attribute", short = 'a', value_name = "NAME=VALUE")]
    attributes: Vec<AttributeChange>,
    /// How much there is to share, with its unit, as in `64:cores`; without it the whole is booked
    #[arg(long, value_name = "AMOUNT:UNIT")]
    capacity: Option<Divisible>,
    #[command(flatten)]
    facts: FactArguments,
    #[command(flatten)]
    once: Once,
}

/// Where other systems and people find the resource.
#[derive(Debug, Clone, Args)]
pub struct FactArguments {
    /// Where it stands
    #[arg(long)]
    location: Option<Text>,
    /// Whom to ask about it
    #[arg(long)]
    contact: Option<Text>,
    /// A page that shows how it is doing
    #[arg(long, value_name = "URL")]
    monitoring_url: Option<Text>,
    /// Where provisioning reaches it; shown to admins only
    #[arg(long, value_name = "ADDRESS")]
    provisioning_address: Option<Text>,
}

impl FactArguments {
    fn is_empty(&self) -> bool {
        self.laid_over(Facts::default()) == Facts::default()
    }

    /// What was said, over what is known already.
    fn laid_over(&self, known: Facts) -> Facts {
        Facts {
            location: self.location.clone().or(known.location),
            contact: self.contact.clone().or(known.contact),
            monitoring_url: self.monitoring_url.clone().or(known.monitoring_url),
            provisioning_address: self
                .provisioning_address
                .clone()
                .or(known.provisioning_address),
        }
    }
}

#[derive(Debug, Args)]
pub struct Move {
    /// The resource, by name or id
    resource: Placed<ResourceReference>,
    /// Its new parent
    #[arg(long = "in", value_name = "RESOURCE", required_unless_present = "top")]
    parent: Option<ResourceReference>,
    /// To the top of the tree
    #[arg(long, conflicts_with = "parent")]
    top: bool,
    /// Say whether it is possible, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub struct SetStatus {
    /// The resource, by name or id
    resource: Placed<ResourceReference>,
    /// Its status from now on: active, maintenance or unavailable
    #[arg(value_parser = arguments::status)]
    status: Status,
    /// Why; shown to those who would book it
    #[arg(long)]
    reason: Option<Text>,
    #[command(flatten)]
    version: Version,
}

pub async fn run(command: Resource, context: &Context) -> anyhow::Result<()> {
    match command {
        Resource::Tree(filter) => list::tree(filter, context).await,
        Resource::List(filter) => list::list(filter, context).await,
        Resource::Count => count::run(context).await,
        Resource::Show { resource } => show::one(&resource, context).await,
        Resource::Add(new) => add(new, context).await,
        Resource::Edit(edit) => edit::run(edit, context).await,
        Resource::Move(to) => move_it(to, context).await,
        Resource::Remove { resource } => {
            let site = context.site_of(&resource)?;
            context.client.remove_resource(&site, &resource.it).await?;
            context.out.say(&format!("Removed {}.\n", resource.it))
        }
        Resource::Import(import) => files::import(import, context).await,
        Resource::ImportSlurm(import) => files::import_slurm(import, context).await,
        Resource::Export => files::export(context).await,
        Resource::Status(status) => set_status(status, context).await,
        Resource::History { resource } => show::history(&resource, context).await,
    }
}

async fn add(new: Add, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(&new.name)?;
    let request = NewResource {
        name: new.name.it,
        kind: new.kind,
        parent: new.parent,
        title: new.title,
        attributes: edit::changed(Default::default(), &new.attributes).try_into()?,
        facts: new.facts.laid_over(Facts::default()),
        capacity: new.capacity.map(|capacity| capacity.0),
    };
    let made = context
        .client
        .create_resource(&site, &request, new.once.key())
        .await?
        .object;
    context.out.show(&made, |_| {
        let place = match &made.parent {
            Some(parent) => format!(" in {}", parent.name),
            None => String::new(),
        };
        format!("Added {}{place}.\n", made.name)
    })
}

async fn move_it(to: Move, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(&to.resource)?;
    let request = MoveResource {
        parent: to.parent.clone(),
    };
    let resource = &to.resource.it;
    let place = to.parent.map_or_else(
        || "the top of the tree".to_owned(),
        |parent| parent.to_string(),
    );
    if !to.dry_run {
        let outcome = context
            .client
            .move_resource(&site, resource, &request)
            .await?;
        return context
            .out
            .show(&outcome, |_| format!("Moved {resource} to {place}.\n"));
    }
    let outcome = context
        .client
        .preview_move(&site, resource, &request)
        .await?;
    context.out.show(&outcome, |screen| {
        if outcome.conflicts.is_empty() {
            format!("{resource} can move to {place}.\n")
        } else {
            let table = crate::show::conflicts(&outcome.conflicts, &context.times, screen);
            format!("In {place} these bookings would collide:\n{table}")
        }
    })?;
    if outcome.conflicts.is_empty() {
        Ok(())
    } else {
        Err(ended(Exit::Conflict))
    }
}

async fn set_status(status: SetStatus, context: &Context) -> anyhow::Result<()> {
    let site = context.site_of(&status.resource)?;
    let patch = StatusPatch {
        status: status.status,
        reason: status.reason,
    };
    let version = status.version.if_match();
    let resource = context
        .client
        .set_status(&site, &status.resource.it, version, &patch)
        .await?;
    context.out.show(&resource, |_| {
        format!("{} is now {}.\n", resource.name, resource.status)
    })?;
    if let Some(above) = &resource.status_from {
        context.out.note(format!(
            "It counts as {}, because {} above it is.",
            resource.effective_status, above.name
        ));
    }
    if resource.status != Status::Active {
        context
            .out
            .note("Nothing new is booked on it or below it; standing bookings stay valid.");
    }
    Ok(())
}
