//! What was written in the file, the environment and the flags, laid over each other and then
//! read, with every mistake on the way kept for the end.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kinds::Kind;
use super::settings::{Config, KEYS};
use super::{ConfigError, Loaded, Resolved, Source, spelling};

/// How the environment variables of Berth begin.
pub(super) const PREFIX: &str = "BERTH_";

/// Variables of Berth that are not settings of the server: they are for its client and its tests.
const NOT_SETTINGS: &[&str] = &[
    "BERTH_BINARY",
    "BERTH_CACHE",
    "BERTH_CONFIG",
    "BERTH_SERVER",
    "BERTH_SITE",
    "BERTH_TEST_POSTGRES",
    "BERTH_TOKEN",
];

/// The environment variable of a setting.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase())
}

pub(super) struct Layers {
    user_data: Option<PathBuf>,
    written: BTreeMap<&'static str, Written>,
    resolved: Vec<Resolved>,
    errors: Vec<ConfigError>,
}

/// A value as it was written, not yet understood.
struct Written {
    text: String,
    form: Form,
    place: Source,
}

enum Form {
    Text,
    Array,
    Truth,
    /// Nothing any setting could be: a table, a date.
    Other,
}

impl Written {
    fn text(text: String, place: Source) -> Self {
        Written {
            text,
            form: Form::Text,
            place,
        }
    }
}

impl Layers {
    pub(super) fn new(user_data: Option<PathBuf>) -> Self {
        Layers {
            user_data,
            written: BTreeMap::new(),
            resolved: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn add_file(&mut self, name: &str, text: &str) {
        let line = |start: usize| {
            1 + text
                .bytes()
                .take(start)
                .filter(|byte| *byte == b'\n')
                .count()
        };
        let (table, mistakes) = DeTable::parse_recoverable(text);
        if !mistakes.is_empty() {
            // What the parser recovered around a mistake would only lead to more, invented ones.
            self.errors
                .extend(mistakes.into_iter().map(|mistake| ConfigError::Syntax {
                    file: name.to_owned(),
                    line: line(mistake.span().map_or(0, |span| span.start)),
                    // The message alone: the excerpt that goes with it could show a password.
                    message: mistake.message().to_owned(),
                }));
            return;
        }
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let place = Source::File {
                name: name.to_owned(),
                line: line(key.span().start),
            };
            let (text, form) = as_text(value, text);
            self.add(key.get_ref(), Written { text, form, place });
        }
    }

    pub(super) fn add_environment(&mut self, env: &BTreeMap<String, String>) {
        for (name, text) in env {
            if !name.starts_with(PREFIX) || NOT_SETTINGS.contains(&name.as_str()) {
                continue;
            }
            let place = Source::Environment {
                variable: name.clone(),
            };
            match KEYS.iter().find(|key| variable(key) == *name) {
                Some(key) => self.add(key, Written::text(text.clone(), place)),
                None => {
                    let known = KEYS.iter().map(|key| variable(key));
                    let known = known.chain(NOT_SETTINGS.iter().map(|name| (*name).to_owned()));
                    let suggestion = spelling::nearest(name, PREFIX, known);
                    self.errors.push(ConfigError::Unknown {
                        name: name.clone(),
                        place,
                        suggestion,
                    });
                }
            }
        }
    }

    pub(super) fn add_flags(&mut self, flags: BTreeMap<&'static str, String>) {
        for (key, text) in flags {
            let place = Source::Flag {
                key: key.to_owned(),
            };
            self.add(key, Written::text(text, place));
        }
    }

    fn add(&mut self, name: &str, written: Written) {
        if let Some(key) = KEYS.iter().find(|key| **key == name) {
            self.written.insert(key, written);
            return;
        }
        let suggestion = spelling::nearest(name, "", KEYS.iter().map(|key| (*key).to_owned()));
        self.errors.push(ConfigError::Unknown {
            name: name.to_owned(),
            place: written.place,
            suggestion,
        });
    }

    /// Reads the value of one setting and notes where it came from, or what is wrong with it.
    pub(super) fn resolve<T: 'static>(
        &mut self,
        key: &'static str,
        default: &str,
        kind: &Kind<T>,
    ) -> Option<T> {
        let written = match self.written.remove(key) {
            Some(written) => written,
            None => Written::text(self.expand(default)?, Source::Default),
        };
        let fits = match written.form {
            Form::Text => true,
            Form::Array => kind.takes_arrays,
            Form::Truth => kind.takes_truth,
            Form::Other => false,
        };
        match (kind.read)(written.text.trim()).filter(|_| fits) {
            Some(value) => {
                let shown = (kind.show)(&value);
                self.resolved.push(Resolved {
                    key,
                    value: shown,
                    source: written.place,
                });
                Some(value)
            }
            None => {
                self.errors.push(ConfigError::Wrong {
                    key,
                    value: kind.show_wrong(&written.text),
                    place: written.place,
                    accepts: kind.accepts.clone(),
                });
                None
            }
        }
    }

    /// Fills in the directories of a default. Without an error of its own when `data_dir` was
    /// wrong: that one is known already.
    fn expand(&mut self, default: &str) -> Option<String> {
        if default.contains("{user_data}") && self.user_data.is_none() {
            self.errors.push(ConfigError::NoDataDir);
        }
        let user_data = self
            .user_data
            .as_ref()
            .map(|path| path.display().to_string());
        let data_dir = self.resolved.iter().find(|known| known.key == "data_dir");
        let directories = [
            ("{user_data}", user_data),
            ("{data_dir}", data_dir.map(|known| known.value.clone())),
        ];
        directories
            .into_iter()
            .try_fold(default.to_owned(), |text, (mark, directory)| {
                if text.contains(mark) {
                    Some(text.replace(mark, &directory?))
                } else {
                    Some(text)
                }
            })
    }

    /// Refuses one of two settings that mean nothing without each other. To be asked while both
    /// are still as they were written.
    pub(super) fn check_together(&mut self, one: &'static str, other: &'static str) {
        let place = |key| {
            let written = self
                .written
                .get(key)
                .filter(|written| !written.text.trim().is_empty());
            written.map(|written| written.place.clone())
        };
        let half = match (place(one), place(other)) {
            (Some(place), None) => Some((one, place, other)),
            (None, Some(place)) => Some((other, place, one)),
            _ => None,
        };
        if let Some((given, place, missing)) = half {
            self.errors.push(ConfigError::Half {
                given,
                place,
                missing,
            });
        }
    }

    pub(super) fn finish(self, config: Option<Config>) -> Result<Loaded, Vec<ConfigError>> {
        match config {
            Some(config) if self.errors.is_empty() => Ok(Loaded {
                config,
                sources: self.resolved,
            }),
            _ => Err(self.errors),
        }
    }
}

/// The text that would mean the same in an environment variable.
fn as_text(value: &Spanned<DeValue<'_>>, file: &str) -> (String, Form) {
    let scalar = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        _ => None,
    };
    let array = |value: &DeValue<'_>| {
        let items = value.as_array()?.iter().map(|item| scalar(item.get_ref()));
        Some(items.collect::<Option<Vec<_>>>()?.join(","))
    };
    if let Some(text) = scalar(value.get_ref()) {
        (text, Form::Text)
    } else if let Some(text) = array(value.get_ref()) {
        (text, Form::Array)
    } else if let DeValue::Boolean(truth) = value.get_ref() {
        (truth.to_string(), Form::Truth)
    } else {
        (
            file.get(value.span()).unwrap_or_default().to_owned(),
            Form::Other,
        )
    }
}
