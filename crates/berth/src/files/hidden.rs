//! Values that a file only points at: `{ from_env: NAME }` and `{ from_file: PATH }` instead of a text.
//!
//! They are read here, on the client's side, sent to the server as any other value, and never printed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use berth_api::declared::ApplyOutcome;
use berth_model::declared::{Difference, FieldDifference, Subject};

use super::node::{Node, Value};

/// What is shown instead of a value.
pub const MASK: &str = "(hidden)";
/// The longest value that is read from elsewhere, in bytes.
const VALUE_MAX: u64 = 64 * 1024;
/// A shorter value may be part of any word; masking it wherever it occurs would hide the words.
const TELLTALE_CHARS: usize = 4;

/// Which fields came from elsewhere, and the values themselves.
#[derive(Clone, Default)]
pub struct Hidden {
    fields: BTreeSet<(Subject, String, String)>,
    paths: BTreeSet<String>,
    values: BTreeSet<String>,
}

/// Without the values, so that no message can carry them by accident.
impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(&self.paths).finish()
    }
}

impl Hidden {
    /// Puts the values in place of what points at them. `folder` is where relative paths begin; `variable` reads the
    /// environment. An error names the path in the file at which it stands.
    pub fn resolve(
        &mut self,
        node: &mut Node,
        folder: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), (String, String)> {
        self.walk(node, &mut Vec::new(), folder, variable)
    }

    fn walk(
        &mut self,
        node: &mut Node,
        path: &mut Vec<String>,
        folder: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), (String, String)> {
        if let Some((how, from)) = pointer(node) {
            let value = match how {
                "from_env" => variable(&from)
                    .ok_or_else(|| format!("the environment variable {from} is not set")),
                _ => read_value(&folder.join(&from)),
            };
            let value = value.map_err(|error| (dotted(path), error))?;
            self.fields.extend(field_of(path));
            self.paths.insert(dotted(path));
            self.values.insert(value.clone());
            node.value = Value::Text(value);
            return Ok(());
        }
        match &mut node.value {
            Value::Map(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    self.walk(&mut entry.value, path, folder, variable)?;
                    path.pop();
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    path.push(format!("[{index}]"));
                    self.walk(item, path, folder, variable)?;
                    path.pop();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether what stands at this path of the file must not be printed.
    pub fn covers(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// A text without any of the values.
    pub fn mask_text(&self, text: &str) -> String {
        let long = self
            .values
            .iter()
            .filter(|value| value.chars().count() >= TELLTALE_CHARS);
        long.fold(text.to_owned(), |text, value| {
            text.replace(value.as_str(), MASK)
        })
    }

    pub fn mask(&self, outcome: &mut ApplyOutcome) {
        for difference in &mut outcome.differences {
            self.mask_difference(difference);
        }
    }

    fn mask_difference(&self, difference: &mut Difference) {
        let Difference {
            subject,
            name,
            fields,
            ..
        } = difference;
        let name = if *subject == Subject::Site { "" } else { name };
        for FieldDifference {
            field,
            before,
            after,
        } in fields
        {
            let field = if field.starts_with("form.") {
                "form"
            } else {
                field
            };
            let known = (*subject, name.to_owned(), field.to_owned());
            let is_hidden = self.fields.contains(&known);
            for value in [before, after].into_iter().flatten() {
                *value = if is_hidden {
                    MASK.to_owned()
                } else {
                    self.mask_text(value)
                };
            }
        }
    }
}

fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        if !text.is_empty() && !part.starts_with('[') {
            text.push('.');
        }
        text += part;
    }
    text
}

/// The one key of a map that stands for a value elsewhere.
fn pointer(node: &Node) -> Option<(&'static str, String)> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let [entry] = entries.as_slice() else {
        return None;
    };
    let how = ["from_env", "from_file"]
        .into_iter()
        .find(|how| *how == entry.key)?;
    match &entry.value.value {
        Value::Text(from) => Some((how, from.clone())),
        _ => None,
    }
}

/// What the differences call the field at this path.
fn field_of(path: &[String]) -> Option<(Subject, String, String)> {
    let (section, mut rest) = path.split_first()?;
    let subject = match section.as_str() {
        "site" => return Some((Subject::Site, String::new(), rest.first()?.clone())),
        "types" => Subject::Type,
        "resources" => Subject::Resource,
        "projects" => Subject::Project,
        _ => return None,
    };
    let mut name;
    (name, rest) = rest.split_first()?;
    while let [children, child, below @ ..] = rest
        && subject == Subject::Resource
        && children == "children"
    {
        (name, rest) = (child, below);
    }
    // The members of a project are told as one field, and so, here, is a whole form.
    if subject == Subject::Type && rest.first().is_some_and(|part| part == "form") {
        return Some((subject, name.clone(), "form".to_owned()));
    }
    let field: Vec<&str> = rest
        .iter()
        .map(String::as_str)
        .filter(|part| !part.starts_with('['))
        .collect();
    Some((subject, name.clone(), field.join(".")))
}

fn read_value(file: &Path) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", file.display());
    let mut text = Vec::new();
    let opened = File::open(file).map_err(cannot)?;
    opened
        .take(VALUE_MAX + 1)
        .read_to_end(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > VALUE_MAX {
        return Err(format!(
            "{} is larger than {VALUE_MAX} bytes",
            file.display()
        ));
    }
    let text =
        String::from_utf8(text).map_err(|_| format!("{} is not UTF-8 text", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
