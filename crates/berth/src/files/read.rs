//! The file that declares a site, from its text to a document that is sound by itself.

use std::path::Path;

use berth_model::FieldErrors;
use berth_model::declared::Document;

use super::hidden::{Hidden, MASK};
use super::node::{self, Node, Place};

/// A file that was read.
#[derive(Debug)]
pub struct SiteFile {
    pub document: Document,
    pub hidden: Hidden,
    source: Source,
}

/// What errors point into.
#[derive(Debug)]
struct Source {
    name: String,
    lines: Vec<String>,
    node: Node,
}

/// Reads the text of the file `name`. Values that it points at are looked for below `folder` and by `variable`.
pub fn site_file(
    text: &str,
    name: &str,
    folder: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<SiteFile, String> {
    let lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let mut node =
        node::parse(text).map_err(|error| show(name, &lines, error.at, &error.message))?;
    let mut hidden = Hidden::default();
    let resolved = hidden.resolve(&mut node, folder, variable);
    let source = Source {
        name: name.to_owned(),
        lines,
        node,
    };
    resolved.map_err(|(path, message)| source.complain(&path, &message))?;
    let read = serde_path_to_error::deserialize::<_, Document>(source.node.to_json());
    let document = read.map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let message = error.inner().to_string();
        let unknown = message
            .strip_prefix("unknown field `")
            .and_then(|rest| rest.split('`').next());
        let (place, path) = match unknown {
            // The key that is too much has a place of its own; the complaint is about what it stands in.
            Some(key) => {
                let path = path
                    .strip_suffix(key)
                    .unwrap_or(&path)
                    .trim_end_matches('.')
                    .to_owned();
                (source.node.find(&format!("{path}.{key}")), path)
            }
            None => (source.node.find(&path), path),
        };
        let message = if hidden.covers(&path) {
            format!("the value is not acceptable here, and is not shown: {MASK}")
        } else {
            hidden.mask_text(&message)
        };
        source.complain_at(place, &path, &message)
    })?;
    if let Err(errors) = document.clone().flat() {
        return Err(source.explain(&errors, &hidden));
    }
    Ok(SiteFile {
        document,
        hidden,
        source,
    })
}

impl SiteFile {
    /// The server's complaints about fields, each with its place in the file.
    pub fn explain(&self, errors: &FieldErrors) -> String {
        self.source.explain(errors, &self.hidden)
    }
}

impl Source {
    fn explain(&self, errors: &FieldErrors, hidden: &Hidden) -> String {
        let lines: Vec<String> = errors
            .0
            .iter()
            .map(|error| self.complain(&error.field, &hidden.mask_text(&error.message)))
            .collect();
        lines.join("\n")
    }

    fn complain(&self, path: &str, message: &str) -> String {
        let place = self
            .named_resource(path)
            .unwrap_or_else(|| self.node.find(path));
        self.complain_at(place, path, message)
    }

    fn complain_at(&self, place: Place, path: &str, message: &str) -> String {
        let message = match path {
            "" => message.to_owned(),
            path => format!("{path}: {message}"),
        };
        show(&self.name, &self.lines, place, &message)
    }

    /// The server speaks of resources by name alone: it has laid the tree flat.
    fn named_resource(&self, path: &str) -> Option<Place> {
        let resources = self.node.get("resources")?;
        let rest = path.strip_prefix("resources.")?;
        if resources.get(rest.split('.').next()?).is_some() {
            return None;
        }
        let mut name = rest;
        loop {
            if let Some(place) = resources.find_resource(name) {
                return Some(place);
            }
            name = name.rsplit_once('.')?.0;
        }
    }
}

/// `site.yaml:12:5: message`, and the line itself below it.
fn show(name: &str, lines: &[String], at: Place, message: &str) -> String {
    if at.line == 0 {
        return format!("{name}: {message}");
    }
    let Place { line, column } = at;
    let said = format!("{name}:{line}:{column}: {message}");
    let index = usize::try_from(line - 1).unwrap_or(usize::MAX);
    match lines
        .get(index)
        .map(|line| line.trim_end())
        .filter(|line| !line.is_empty())
    {
        Some(text) => {
            let text: String = text.chars().take(120).collect();
            format!("{said}\n{line:>6} | {text}")
        }
        None => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SiteFile, String> {
        let variable = |name: &str| (name == "ADDRESS").then(|| "10.0.0.7-canary".to_owned());
        site_file(text, "site.yaml", Path::new("."), &variable)
    }

    #[track_caller]
    fn refused(text: &str, wanted: &str) {
        let said = read(text).expect_err(text);
        assert!(said.contains(wanted), "{said}");
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_line() {
        refused(
            "version: 1\ntypes:\n  gpu:\n    titel: GPU\n",
            "site.yaml:4:5: types.gpu: unknown field `titel`, expected one of",
        );
        refused(
            "version: 1\ntypes:\n  gpu:\n    titel: GPU\n",
            "\n     4 |     titel: GPU",
        );
        refused(
            "version: 3\n",
            "site.yaml:1:1: version: this Berth reads files that say `version: 1`",
        );
        refused(
            "version: 1\nmembers: {}\n",
            "site.yaml:2:1: unknown field `members`",
        );
        refused(
            "version: 1\nresources:\n  GPU: {type: gpu}\n",
            "`GPU` is not a name",
        );
        refused(
            "version: 1\nresources:\n  a:\n    type: t\n    children:\n      b: {type: t}\n  b: {type: t}\n",
            "site.yaml:7:3: resources.b: `b` stands in the file twice",
        );
        refused(
            "version: 1\ntypes:\n  a: {title: 5}\n",
            "site.yaml:3:7: types.a.title: invalid type",
        );
        refused("version: 1\nversion: 1\n", "site.yaml:2:1: ");
    }

    #[test]
    fn a_value_from_elsewhere_is_used_and_never_shown() {
        let text = "version: 1\nresources:\n  a:\n    type: t\n    facts:\n      provisioning_address: {from_env: ADDRESS}\n";
        let file = read(text).unwrap();
        let resources = file.document.resources.as_ref().unwrap();
        let facts = &resources.values().next().unwrap().facts;
        assert_eq!(
            facts.provisioning_address.as_ref().unwrap().as_str(),
            "10.0.0.7-canary"
        );
        assert!(!format!("{:?}", file.hidden).contains("canary"));
        let explained = file.explain(&FieldErrors::one("resources.a.facts", "no 10.0.0.7-canary"));
        assert!(
            explained.contains("site.yaml:5:5") && !explained.contains("canary"),
            "{explained}"
        );

        refused(
            "version: 1\nsite: {title: {from_env: NOWHERE}}\n",
            "site.yaml:2:8: site.title: the environment variable NOWHERE is not set",
        );
        refused(
            "version: 1\nsite: {title: {from_file: no-such-file}}\n",
            "cannot read ./no-such-file",
        );
        let wrong = "version: 1\nresources:\n  a: {type: {from_env: ADDRESS}, capacity: {from_env: ADDRESS}}\n";
        let said = read(wrong).unwrap_err();
        assert!(said.contains(MASK) && !said.contains("canary"), "{said}");
    }

    #[test]
    fn the_server_s_words_find_their_place_in_a_nested_file() {
        let file = read("version: 1\nresources:\n  rack:\n    type: r\n    children:\n      gpu-01.a:\n        type: g\n").unwrap();
        let said = file.explain(&FieldErrors::one(
            "resources.gpu-01.a.type",
            "there is no such type",
        ));
        assert!(
            said.starts_with("site.yaml:6:7: resources.gpu-01.a.type: there is no such type"),
            "{said}"
        );
    }
}
