//! Changing a resource. Attributes and facts that are not named stay as they are, so they are read first and written
//! back only if nobody changed them in between.

use berth_api::reference::ResourceReference;
use berth_api::resources::ResourcePatch;
use berth_model::attribute::Attributes;
use berth_model::{Name, Text};
use clap::Args;

use super::FactArguments;
use crate::arguments::{AttributeChange, Divisible, Placed};
use crate::commands::Version;
use crate::commands::person::cleared;
use crate::context::Context;

#[derive(Debug, Args)]
pub struct Edit {
    /// The resource, by name or id
    resource: Placed<ResourceReference>,
    /// A new name
    #[arg(long)]
    name: Option<Name>,
    /// What people read
    #[arg(long)]
    title: Option<Text>,
    /// Forget the title
    #[arg(long, conflicts_with = "title")]
    no_title: bool,
    /// Set an attribute, `gpus=8`, or remove it, `gpus=`; repeat it for several
    #[arg(long = "attribute", short = 'a', value_name = "NAME=VALUE")]
    attributes: Vec<AttributeChange>,
    /// How much there is to share, with its unit, as in `64:cores`
    #[arg(long, value_name = "AMOUNT:UNIT")]
    capacity: Option<Divisible>,
    /// It is booked as a whole
    #[arg(long, conflicts_with = "capacity")]
    no_capacity: bool,
    #[command(flatten)]
    facts: FactArguments,
    #[command(flatten)]
    version: Version,
}

pub async fn run(edit: Edit, context: &Context) -> anyhow::Result<()> {
    let client = &context.client;
    let site = context.site_of(&edit.resource)?;
    let mut patch = ResourcePatch {
        name: edit.name,
        title: cleared(edit.title, edit.no_title),
        capacity: cleared(edit.capacity.map(|capacity| capacity.0), edit.no_capacity),
        ..ResourcePatch::default()
    };
    let mut version = edit.version.if_match();
    if !edit.attributes.is_empty() || !edit.facts.is_empty() {
        let now = client.resource(&site, &edit.resource.it).await?;
        version = edit.version.if_match_since(now.version);
        if !edit.attributes.is_empty() {
            patch.attributes = Some(changed(now.attributes, &edit.attributes).try_into()?);
        }
        if !edit.facts.is_empty() {
            patch.facts = Some(edit.facts.laid_over(now.facts));
        }
    }
    let resource = client
        .change_resource(&site, &edit.resource.it, version, &patch)
        .await?;
    context
        .out
        .show(&resource, |_| format!("Changed {}.\n", resource.name))
}

pub fn changed(mut attributes: Attributes, changes: &[AttributeChange]) -> Attributes {
    for change in changes {
        match &change.value {
            Some(value) => attributes.insert(change.name.clone(), value.clone()),
            None => attributes.remove(&change.name),
        };
    }
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_changes() {
        let changes = |texts: &[&str]| -> Vec<AttributeChange> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let first = changed(
            Attributes::new(),
            &changes(&["gpus=8", "model=A100", "nvlink=true"]),
        );
        let then = changed(first, &changes(&["gpus=4", "nvlink="]));
        let shown: Vec<String> = then
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(shown, ["gpus=4", "model=A100"]);
    }
}
