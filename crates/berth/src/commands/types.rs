//! `berth type`: kinds of resources, and what a booking of each asks for.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use berth_api::reference::TypeReference;
use berth_api::types::{NewType, ResourceType, TypePatch};
use berth_model::inventory::Colour;
use berth_model::parameter::{Parameter, ParameterKind};
use berth_model::{Name, Text};
use clap::{ArgAction, Subcommand};
use serde::Deserialize;

use super::{Once, Version};
use crate::arguments::Placed;
use crate::context::Context;
use crate::details::Details;
use crate::failure::usage;
use crate::pages::whole;
use crate::table::{Column, Table};

#[derive(Debug, Subcommand)]
pub enum Type {
    /// List the resource types of the site
    List,
    /// Show one type with its booking form
    Show {
        /// The type, by name or id
        #[arg(value_name = "TYPE")]
        name: Placed<TypeReference>,
    },
    /// Make a type
    Create {
        /// What people type: lower-case letters, digits, `-`, `_` and `.`
        name: Placed<Name>,
        /// What people read
        #[arg(long)]
        title: Text,
        /// Its colour in calendars, as in #1f77b4
        #[arg(long, default_value = "#1f77b4")]
        colour: Colour,
        /// A file with the questions of the booking form, JSON or TOML (`-` for the standard input)
        #[arg(long, value_name = "FILE")]
        parameters: Option<PathBuf>,
        /// Have a site admin say yes before a booking is confirmed
        #[arg(long)]
        needs_approval: bool,
        #[command(flatten)]
        once: Once,
    },
    /// Change a type
    Edit {
        /// The type, by name or id
        #[arg(value_name = "TYPE")]
        of: Placed<TypeReference>,
        /// A new name
        #[arg(long)]
        name: Option<Name>,
        /// What people read
        #[arg(long)]
        title: Option<Text>,
        /// Its colour in calendars, as in #1f77b4
        #[arg(long)]
        colour: Option<Colour>,
        /// A file with all questions of the booking form from now on, JSON or TOML
        #[arg(long, value_name = "FILE")]
        parameters: Option<PathBuf>,
        /// Whether a site admin must say yes before a booking is confirmed
        #[arg(long, value_name = "true|false", action = ArgAction::Set)]
        needs_approval: Option<bool>,
        #[command(flatten)]
        version: Version,
    },
    /// Remove a type that no resource has
    Remove {
        /// The type, by name or id
        #[arg(value_name = "TYPE")]
        name: Placed<TypeReference>,
    },
}

pub async fn run(command: Type, context: &Context) -> anyhow::Result<()> {
    let (client, out) = (&context.client, &context.out);
    match command {
        Type::List => {
            let site = context.site()?;
            let types = whole(async |query| client.types(site, &query).await).await?;
            out.show(&types, |screen| list(&types.items).render(screen))
        }
        Type::Show { name } => {
            let kind = client
                .resource_type(&context.site_of(&name)?, &name.it)
                .await?;
            out.show(&kind, |screen| details(&kind).render(screen))
        }
        Type::Create {
            name,
            title,
            colour,
            parameters,
            needs_approval,
            once,
        } => {
            let site = context.site_of(&name)?;
            let parameters = parameters.map(|file| read_parameters(&file)).transpose()?;
            let new = NewType {
                name: name.it,
                title,
                colour,
                parameters: parameters.unwrap_or_default(),
                needs_approval,
            };
            let made = client.create_type(&site, &new, once.key()).await?.object;
            out.show(&made, |_| format!("Made the type {}.\n", made.name))
        }
        Type::Edit {
            of,
            name,
            title,
            colour,
            parameters,
            needs_approval,
            version,
        } => {
            let parameters = parameters.map(|file| read_parameters(&file)).transpose()?;
            let patch = TypePatch {
                name,
                title,
                colour,
                parameters,
                needs_approval,
            };
            let site = context.site_of(&of)?;
            let kind = client
                .change_type(&site, &of.it, version.if_match(), &patch)
                .await?;
            out.show(&kind, |_| format!("Changed the type {}.\n", kind.name))
        }
        Type::Remove { name } => {
            client
                .remove_type(&context.site_of(&name)?, &name.it)
                .await?;
            out.say(&format!("Removed the type {}.\n", name.it))
        }
    }
}

fn list(types: &[ResourceType]) -> Table<5> {
    let columns = [
        Column::left("NAME"),
        Column::left("TITLE").shrinks(2),
        Column::left("COLOUR"),
        Column::left("APPROVAL"),
        Column::left("ASKS FOR").shrinks(1),
    ];
    let mut table = Table::new(
        columns,
        "This site has no resource types. `berth type create NAME --title TITLE` makes one.",
    );
    for kind in types {
        let keys: Vec<&str> = kind.parameters.iter().map(|p| p.key.as_str()).collect();
        table.row([
            kind.name.to_string(),
            kind.title.to_string(),
            String::from(kind.colour.clone()),
            if kind.needs_approval { "needed" } else { "no" }.to_owned(),
            keys.join(", "),
        ]);
    }
    table
}

fn details(kind: &ResourceType) -> Details {
    Details::default()
        .line("Name", &kind.name)
        .line("Title", &kind.title)
        .line("Site", &kind.site.name)
        .line("Colour", String::from(kind.colour.clone()))
        .line(
            "Approval",
            if kind.needs_approval {
                "an admin must say yes"
            } else {
                "not needed"
            },
        )
        .lines("Asks for", kind.parameters.iter().map(question))
        .line("Id", kind.id)
        .line("Version", kind.version)
}

/// A question of the form in a line: `image (text, required): Operating system`.
fn question(parameter: &Parameter) -> String {
    let required = if parameter.required { ", required" } else { "" };
    let help = parameter
        .help
        .as_ref()
        .map(|help| format!(" — {help}"))
        .unwrap_or_default();
    format!(
        "{} ({}{required}): {}{help}",
        parameter.key,
        kind(&parameter.kind),
        parameter.label
    )
}

fn kind(kind: &ParameterKind) -> String {
    fn bounds<T: ToString>(min: &Option<T>, max: &Option<T>) -> String {
        match (min, max) {
            (None, None) => String::new(),
            (min, max) => {
                let end = |value: &Option<T>| value.as_ref().map(T::to_string).unwrap_or_default();
                format!(" {}..{}", end(min), end(max))
            }
        }
    }
    match kind {
        ParameterKind::Text { .. } => "text".to_owned(),
        ParameterKind::Number { min, max, integer } => {
            let what = if *integer { "whole number" } else { "number" };
            format!("{what}{}", bounds(min, max))
        }
        ParameterKind::Choice { options } => {
            let options: Vec<&str> = options.iter().map(Text::as_str).collect();
            format!("one of {}", options.join(" | "))
        }
        ParameterKind::Boolean {} => "true or false".to_owned(),
        ParameterKind::Date { min, max } => format!("date{}", bounds(min, max)),
        ParameterKind::Secret {} => "secret".to_owned(),
    }
}

/// Reads the questions of a form: a list, or a table with the list under `parameters`; JSON or TOML.
fn read_parameters(file: &Path) -> anyhow::Result<Vec<Parameter>> {
    let text = read_text(file)?;
    parse_parameters(&text).map_err(|why| usage(format!("{}: {why}", file.display())))
}

pub fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        return std::io::read_to_string(std::io::stdin()).context("cannot read the standard input");
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParameterFile {
    parameters: Vec<Parameter>,
}

fn parse_parameters(text: &str) -> Result<Vec<Parameter>, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match text.trim_start().chars().next() {
        // In TOML too a table can begin with a bracket: `[[parameters]]`.
        Some('[') if !text.trim_start().starts_with("[[") => {
            serde_json::from_str(text).map_err(|error| said(&error))
        }
        Some('{') => {
            let file: ParameterFile = serde_json::from_str(text).map_err(|error| said(&error))?;
            Ok(file.parameters)
        }
        _ => {
            let file: ParameterFile = toml::from_str(text).map_err(|error| said(&error))?;
            Ok(file.parameters)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_from_json_and_from_toml() {
        let list = r#"[{"key": "image", "label": "Image", "required": true, "kind": {"choice": {"options": ["a"]}}}]"#;
        let from_list = parse_parameters(list).unwrap();
        let from_table = parse_parameters(&format!(r#"{{"parameters": {list}}}"#)).unwrap();
        let toml = "[[parameters]]\nkey = \"image\"\nlabel = \"Image\"\nrequired = true\nkind = { choice = { options = [\"a\"] } }\n";
        assert_eq!(from_list, from_table);
        assert_eq!(from_list, parse_parameters(toml).unwrap());
        assert_eq!(question(&from_list[0]), "image (one of a, required): Image");
        for bad in [
            "",
            "[",
            "{}",
            "parameters = 3",
            "[[parameters]]\nkey = \"x\"",
        ] {
            assert!(parse_parameters(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bounds_are_shown_where_there_are_some() {
        let number = ParameterKind::Number {
            min: Some(1.0),
            max: None,
            integer: true,
        };
        assert_eq!(kind(&number), "whole number 1..");
        assert_eq!(
            kind(&ParameterKind::Date {
                min: None,
                max: None
            }),
            "date"
        );
    }
}
