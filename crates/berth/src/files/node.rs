//! YAML as a tree that knows where each of its parts stands.
//!
//! Aliases are followed, but only so far: a file of a few lines cannot become gigabytes. JSON is YAML too, but for a
//! few spellings; what the YAML reader does not take is tried as JSON before it is refused.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::Spanned;

use super::BYTES_MAX;

/// Where something stands; line 0 is nowhere known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    pub line: u64,
    pub column: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub at: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub at: Place,
    pub value: Node,
}

/// What is wrong with the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub at: Place,
    pub message: String,
}

/// Reads a file's text.
pub fn parse(text: &str) -> Result<Node, Unreadable> {
    if text.len() > BYTES_MAX {
        return Err(Unreadable {
            at: Place::default(),
            message: format!("the file is larger than {BYTES_MAX} bytes"),
        });
    }
    let looks_like_json = text.trim_start().starts_with('{');
    match serde_saphyr::from_str_with_options::<Node>(text, options()) {
        Ok(node) => Ok(node),
        Err(_) if looks_like_json => serde_json::from_str::<serde_json::Value>(text)
            .map(from_json)
            .map_err(|error| Unreadable {
                at: Place {
                    line: error.line() as u64,
                    column: error.column() as u64,
                },
                message: error.to_string(),
            }),
        Err(error) => {
            let at = error.location().map(place).unwrap_or_default();
            let message = error.without_snippet().to_string();
            // The place is told before the message, in the way of all errors here.
            let message = match message.rfind(" at line ") {
                Some(end) => message[..end].to_owned(),
                None => message,
            };
            Err(Unreadable { at, message })
        }
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_events: 2_000_000,
            max_nodes: 1_000_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
            max_replay_stack_depth: 8,
        },
        strict_booleans: true,
    }
}

fn place(location: serde_saphyr::Location) -> Place {
    Place {
        line: location.line(),
        column: location.column(),
    }
}

fn from_json(value: serde_json::Value) -> Node {
    let value = match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Flag(flag),
        serde_json::Value::Number(number) => Value::Number(number),
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(from_json).collect()),
        serde_json::Value::Object(entries) => {
            let entry = |(key, value)| Entry {
                key,
                at: Place::default(),
                value: from_json(value),
            };
            Value::Map(entries.into_iter().map(entry).collect())
        }
    };
    Node {
        value,
        at: Place::default(),
    }
}

impl Node {
    /// The same without places.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Number(number) => number.clone().into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect(),
        }
    }

    /// Where a path such as `types.gpu.form[0].label` leads, as far as it leads anywhere.
    pub fn find(&self, path: &str) -> Place {
        let mut at = self.at;
        let mut node = self;
        let mut rest = path;
        loop {
            rest = rest.trim_start_matches('.');
            let next = match &node.value {
                Value::Map(entries) => step_into(entries, rest),
                Value::List(items) => step_to(items, rest),
                _ => None,
            };
            let Some((place, below, after)) = next else {
                return at;
            };
            (at, node, rest) = (place, below, after);
        }
    }

    /// Where the resource of this name stands, however deep in the tree.
    pub fn find_resource(&self, name: &str) -> Option<Place> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        entries.iter().find_map(|entry| {
            if entry.key == name {
                return Some(entry.at);
            }
            let Value::Map(fields) = &entry.value.value else {
                return None;
            };
            let children = fields.iter().find(|field| field.key == "children")?;
            children.value.find_resource(name)
        })
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }
}

/// Names have dots in them, so the longest key that fits is the one that is meant.
fn step_into<'n, 'p>(entries: &'n [Entry], path: &'p str) -> Option<(Place, &'n Node, &'p str)> {
    let fits = |entry: &&Entry| {
        path.strip_prefix(entry.key.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let entry = entries
        .iter()
        .filter(fits)
        .max_by_key(|entry| entry.key.len())?;
    Some((entry.at, &entry.value, &path[entry.key.len()..]))
}

fn step_to<'n, 'p>(items: &'n [Node], path: &'p str) -> Option<(Place, &'n Node, &'p str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    let item = items.get(index.parse::<usize>().ok()?)?;
    Some((item.at, item, rest))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Node {
            at: place(found.referenced),
            value: found.value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true, false, a list or a map")
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        let number = Number::from_f64(number);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            map.push(Entry {
                at: place(key.referenced),
                key: key.value,
                value: entries.next_value()?,
            });
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
version: 1
types:
  gpu:
    title: \"GPU\"
    form:
      - key: image
        label: 7
resources:
  rack-a:
    type: rack
    children:
      gpu-01: {type: gpu}
      gpu-01.cpu: {type: cpu, capacity: {amount: 8, unit: cores}}
";

    fn at(line: u64, column: u64) -> Place {
        Place { line, column }
    }

    #[test]
    fn every_part_knows_its_place() {
        let node = parse(FILE).unwrap();
        assert_eq!(node.find("version"), at(1, 1));
        assert_eq!(node.find("types.gpu.form[0].label"), at(7, 9));
        assert_eq!(node.find("resources.rack-a.children.gpu-01"), at(12, 7));
        assert_eq!(
            node.find("resources.rack-a.children.gpu-01.cpu.capacity"),
            at(13, 31)
        );
        assert_eq!(
            node.find("types.gpu.nonsense"),
            at(3, 3),
            "as far as it leads"
        );
        let resources = node.get("resources").unwrap();
        assert_eq!(resources.find_resource("gpu-01.cpu"), Some(at(13, 7)));
        assert_eq!(resources.find_resource("type"), None);
    }

    #[test]
    fn words_are_not_taken_for_flags_and_quoted_numbers_stay_texts() {
        let node =
            parse("a: yes\nb: no\nc: true\nd: \"8\"\ne: 8\nf: ~\ng: 08\nh: 1e3\n1: x").unwrap();
        assert_eq!(
            node.to_json(),
            serde_json::json!({"a": "yes", "b": "no", "c": true, "d": "8", "e": 8, "f": null,
                "g": node.get("g").unwrap().to_json(), "h": 1000.0, "1": "x"})
        );
    }

    #[test]
    fn json_is_read_with_its_places_and_with_its_own_spellings() {
        let node = parse("{\n  \"version\": 1,\n  \"site\": {\"title\": \"T\"}\n}\n").unwrap();
        assert_eq!(node.find("site.title").line, 3);
        let tabs = parse("{\n\t\"a\": \"\\u00e9\\/\\ud83d\\ude00\"\n}").unwrap();
        assert_eq!(tabs.to_json(), serde_json::json!({"a": "é/😀"}));
        let broken = parse("{\n  \"a\": \n").unwrap_err();
        assert_eq!(broken.at.line, 3);
    }

    #[test]
    fn what_cannot_be_read_says_where() {
        for (text, line) in [
            ("a: 1\nb: [1,\n", 3),
            ("a: 1\na: 2\n", 2),
            ("a: 1\n\tb: 2\n", 2),
            ("a: *nowhere\n", 1),
            ("a: .inf\n", 1),
        ] {
            let error = parse(text).expect_err(text);
            assert!(
                error.at.line.abs_diff(line) <= 1 && error.at.line > 0,
                "{text:?}: {error:?}"
            );
        }
        assert!(parse("--- 1\n--- 2\n").is_err(), "two documents");
    }

    #[test]
    fn a_small_file_cannot_become_a_large_one() {
        let mut bomb = "l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*l{}", level - 1); 8].join(", ");
            bomb += &format!("l{level}: &l{level} [{aliases}]\n");
        }
        parse(&bomb).expect_err("a billion laughs");
        parse(&"[".repeat(100_000)).expect_err("a deep one");
        parse(&format!("a: {}", "{b: ".repeat(1000))).expect_err("another deep one");
        let shared = parse("a: &it {x: 1}\nb: *it\n").unwrap();
        assert_eq!(shared.to_json()["b"], serde_json::json!({"x": 1}));
    }
}
