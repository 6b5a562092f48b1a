//! What `scontrol show` prints, one thing on a line, as fields.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown(BTreeMap<String, String>);

impl Shown {
    /// A word that begins like `Key=` begins a field; others belong to the one before.
    pub fn read(line: &str) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for word in line.split(' ') {
            let pair = word.split_once('=').filter(|(key, _)| {
                let is_key = |byte: u8| byte.is_ascii_alphabetic() || b":/_".contains(&byte);
                key.starts_with(|first: char| first.is_ascii_uppercase()) && key.bytes().all(is_key)
            });
            match (pair, fields.last_mut()) {
                (Some((key, value)), _) => fields.push((key.to_owned(), value.to_owned())),
                (None, Some((_, value))) if !word.is_empty() => {
                    value.push(' ');
                    value.push_str(word);
                }
                _ => {}
            }
        }
        Self(fields.into_iter().collect())
    }

    pub fn all(text: &str) -> Vec<Self> {
        let lines = text.lines().filter(|line| line.contains('='));
        lines.map(Self::read).collect()
    }

    /// Empty where Slurm shows nothing of the kind.
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// None where Slurm shows that there is none.
    pub fn some(&self, key: &str) -> Option<String> {
        let value = self.get(key);
        let is_none = ["", "(null)", "N/A", "Unknown", "None"].contains(&value);
        (!is_none).then(|| value.to_owned())
    }

    pub fn number(&self, key: &str) -> u64 {
        let value = self.get(key).split(['-', '(']).next().unwrap_or_default();
        // What is over is not counted any more.
        if value == "N/A" {
            return 0;
        }
        value.parse().unwrap_or_else(|_| panic!("{key}={value}"))
    }
}
