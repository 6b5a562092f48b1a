//! Slurm's nodes as an inventory: from `slurm.conf`, or from what `scontrol show nodes` prints.
//!
//! A node becomes a resource with its CPUs and its memory below it as amounts, each of its GPUs as a child of its own,
//! and other generic resources as amounts. Features become attributes. Slurm's state of a node is not taken over: it is
//! told, and an admin sets the status.

use std::collections::BTreeMap;

use berth_model::attribute::{AttributeValue, Attributes};
use berth_model::declared::{Declared, DeclaredResource, Document, RESOURCES_MAX, TypeSection};
use berth_model::inventory::{Capacity, Facts};
use berth_model::{Amount, Name};
use berth_slurm::hostlist::{self, HOSTS_MAX};

use super::{BYTES_MAX, Resources, with_parents};

/// The most GPUs that one node has.
const GPUS_MAX: u64 = 1024;

/// What was found, and what an admin should know of it.
#[derive(Debug)]
pub struct Imported {
    pub document: Document,
    pub notes: Vec<String>,
}

/// One node, as far as Berth wants to know it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    cpus: u64,
    memory_mib: u64,
    /// Model and number, model empty where Slurm does not say.
    gpus: Vec<(String, u64)>,
    /// Other generic resources by name.
    others: BTreeMap<String, u64>,
    features: Vec<String>,
    state: String,
}

/// The kinds of things that a node is made of: name, title, colour.
const TYPES: [(&str, &str, &str); 5] = [
    ("node", "Node", "#1f77b4"),
    ("cpu", "CPUs of a node", "#2ca02c"),
    ("memory", "Memory of a node", "#9467bd"),
    ("gpu", "GPU", "#ff7f0e"),
    ("gres", "Generic resource of a node", "#8c564b"),
];

/// The document that adds Slurm's nodes to `site`, or brings those that are there up to date. They go below `under`;
/// without it new ones go to the top of the tree, and known ones stay where they are.
pub fn read(
    text: &str,
    file: &str,
    site: &Declared,
    under: Option<&Name>,
) -> Result<Imported, String> {
    if text.len() > BYTES_MAX {
        return Err(format!("{file}: the file is larger than {BYTES_MAX} bytes"));
    }
    let mut notes = Vec::new();
    let nodes = nodes(text, file, &mut notes)?;
    if nodes.is_empty() {
        return Err(format!(
            "{file}: there is no node in it; a line of slurm.conf or of `scontrol show nodes -o` begins with NodeName="
        ));
    }
    let mut making = Making {
        site,
        resources: Resources::new(),
        used: Vec::new(),
        notes,
    };
    for (name, node) in &nodes {
        making
            .node(name, node, under)
            .map_err(|error| format!("{file}: {error}"))?;
        if making.resources.len() > RESOURCES_MAX {
            return Err(format!(
                "{file}: the nodes make more than {RESOURCES_MAX} resources; import them in parts"
            ));
        }
    }
    let known = site.types.as_ref();
    let types = TYPES.iter().filter(|(name, ..)| making.used.contains(name));
    let mut declared = BTreeMap::new();
    for (name, title, colour) in types {
        let name: Name = parsed(name)?;
        if known.is_some_and(|known| known.contains_key(&name)) {
            continue;
        }
        let section = TypeSection {
            title: parsed(title)?,
            colour: parsed(colour)?,
            needs_approval: false,
            form: Default::default(),
        };
        declared.insert(name, section);
    }
    if let Some(under) = under
        && !site
            .resources
            .as_ref()
            .is_some_and(|all| all.contains_key(under))
    {
        return Err(format!("there is no resource `{under}` in the site"));
    }
    let declared = Declared {
        types: Some(declared),
        resources: Some(with_parents(making.resources, site)),
        ..Declared::default()
    };
    Ok(Imported {
        document: declared.nested(),
        notes: making.notes,
    })
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

struct Making<'m> {
    site: &'m Declared,
    resources: Resources,
    used: Vec<&'static str>,
    notes: Vec<String>,
}

impl Making<'_> {
    fn node(&mut self, slurm_name: &str, node: &Node, under: Option<&Name>) -> Result<(), String> {
        let name: Name = parsed(&slurm_name.to_lowercase())?;
        if name.as_str() != slurm_name {
            self.notes.push(format!(
                "{slurm_name} is called {name} here: names are in lower case"
            ));
        }
        let mut attributes = Attributes::new();
        let mut describe = |key: &str, value: AttributeValue| -> Result<(), String> {
            attributes.insert(parsed(key)?, value);
            Ok(())
        };
        describe("cpus", AttributeValue::Number(node.cpus as f64))?;
        if node.memory_mib > 0 {
            describe("memory_mib", AttributeValue::Number(node.memory_mib as f64))?;
        }
        let gpus: u64 = node.gpus.iter().map(|(_, count)| count).sum();
        if gpus > 0 {
            describe("gpus", AttributeValue::Number(gpus as f64))?;
        }
        if let [(model, _)] = node.gpus.as_slice()
            && !model.is_empty()
        {
            describe("gpu_model", AttributeValue::from_text(model))?;
        }
        for feature in &node.features {
            if describe(
                &format!("feature.{}", feature.to_lowercase()),
                AttributeValue::Flag(true),
            )
            .is_err()
            {
                self.notes.push(format!(
                    "{slurm_name}: the feature `{feature}` cannot be an attribute, and is left out"
                ));
            }
        }
        let parent = under.cloned();
        self.put(
            name.clone(),
            "node",
            parent.as_ref(),
            under.is_some(),
            attributes,
            None,
        )?;
        self.amount(&name, "cpu", "cpu", node.cpus, "cpus")?;
        self.amount(&name, "memory", "memory", node.memory_mib, "mib")?;
        for (other, count) in &node.others {
            self.amount(&name, other, "gres", *count, other)?;
        }
        let mut number = 0;
        for (model, count) in &node.gpus {
            for _ in 0..*count {
                let mut attributes = Attributes::new();
                if !model.is_empty() {
                    attributes.insert(parsed("gpu_model")?, AttributeValue::from_text(model));
                }
                let gpu = parsed(&format!("{name}.gpu{number}"))?;
                self.put(gpu, "gpu", Some(&name), true, attributes, None)?;
                number += 1;
            }
        }
        let state = node.state.to_uppercase();
        if ["DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING"]
            .iter()
            .any(|bad| state.contains(bad))
        {
            self.notes.push(format!(
                "{slurm_name} is {state} in Slurm; `berth resource status {name} unavailable` says so here"
            ));
        }
        Ok(())
    }

    fn amount(
        &mut self,
        node: &Name,
        part: &str,
        kind: &'static str,
        amount: u64,
        unit: &str,
    ) -> Result<(), String> {
        if amount == 0 {
            return Ok(());
        }
        let capacity = Capacity {
            amount: Amount::new(amount).map_err(|error| format!("{node}: {part}: {error}"))?,
            unit: parsed(unit)?,
        };
        let name = parsed(&format!("{node}.{part}"))?;
        self.put(
            name,
            kind,
            Some(node),
            true,
            Attributes::new(),
            Some(capacity),
        )
    }

    /// What the site knows of it beyond Slurm stays.
    fn put(
        &mut self,
        name: Name,
        kind: &'static str,
        parent: Option<&Name>,
        is_placed: bool,
        attributes: Attributes,
        capacity: Option<Capacity>,
    ) -> Result<(), String> {
        if self.resources.contains_key(&name) {
            return Err(format!("`{name}` comes twice"));
        }
        if !self.used.contains(&kind) {
            self.used.push(kind);
        }
        let known = self
            .site
            .resources
            .as_ref()
            .and_then(|all| all.get(&name))
            .cloned();
        let resource = match known {
            Some(known) => DeclaredResource {
                parent: if is_placed {
                    parent.cloned()
                } else {
                    known.parent
                },
                attributes: known.attributes.into_iter().chain(attributes).collect(),
                capacity,
                ..known
            },
            None => DeclaredResource {
                parent: parent.cloned(),
                kind: parsed(kind)?,
                title: None,
                attributes,
                facts: Facts::default(),
                capacity,
            },
        };
        self.resources.insert(name, resource);
        Ok(())
    }
}

type Fields = BTreeMap<String, String>;

/// Every node of the file by its own name, with what is said of it.
fn nodes(
    text: &str,
    file: &str,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<String, Node>, String> {
    let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
    let mut defaults = Fields::new();
    for (line, entry) in entries(text) {
        let at = |error: String| format!("{file}:{line}: {error}");
        let mut fields = fields(&entry);
        let Some(list) = fields.remove("nodename") else {
            if fields.contains_key("include") || entry.to_lowercase().starts_with("include ") {
                notes.push(format!(
                    "{file}:{line}: what is included from elsewhere is not read"
                ));
            }
            continue;
        };
        if list.eq_ignore_ascii_case("default") {
            defaults.extend(fields);
            continue;
        }
        let fields: Fields = defaults.clone().into_iter().chain(fields).collect();
        let node = node(&fields).map_err(at)?;
        for host in hostlist::expand(&list).map_err(|error| at(error.to_string()))? {
            if nodes.insert(host.clone(), node.clone()).is_some() {
                return Err(at(format!("the node {host} is defined twice")));
            }
        }
        if nodes.len() > HOSTS_MAX {
            return Err(at(format!("there are more than {HOSTS_MAX} nodes")));
        }
    }
    Ok(nodes)
}

/// The logical lines with the number of their first. `slurm.conf` continues a line with `\` and has comments; what
/// `scontrol` prints without `-o` continues a node with indented lines, and a `#` in it is no comment.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    let (mut continues, mut is_printed) = (false, false);
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().copied().enumerate() {
        let is_indented = line.starts_with([' ', '\t']) && !line.trim().is_empty();
        let begins = line.trim_start().to_lowercase().starts_with("nodename=");
        if begins && !continues {
            let line = line.to_lowercase();
            let next = lines.get(index + 1).copied().unwrap_or_default();
            is_printed = line.contains(" cputot=")
                || line.contains(" nodehostname=")
                || (line.contains(" arch=") && next.starts_with(' '));
        }
        let line = if is_printed {
            line
        } else {
            without_comment(line)
        };
        let ends_open = !is_printed && line.trim_end().ends_with('\\');
        let part = line.trim_end().trim_end_matches('\\').trim();
        match entries.last_mut() {
            Some((_, entry)) if continues || (is_printed && is_indented && !begins) => {
                entry.push(' ');
                entry.push_str(part);
            }
            _ if !part.is_empty() => entries.push((index + 1, part.to_owned())),
            _ => {}
        }
        continues = ends_open;
    }
    entries
}

fn without_comment(line: &str) -> &str {
    let mut escaped = false;
    for (at, character) in line.char_indices() {
        match character {
            '#' if !escaped => return &line[..at],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

/// `Key=Value` pairs, keys in lower case. A value goes on until the next key: Slurm prints reasons with spaces.
fn fields(entry: &str) -> Fields {
    let mut fields = Fields::new();
    let mut last: Option<String> = None;
    for word in entry.split_whitespace() {
        let pair = word.split_once('=').filter(|(key, _)| {
            !key.is_empty()
                && key
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        match (pair, &last) {
            (Some((key, value)), _) => {
                let key = key.to_lowercase();
                fields.insert(key.clone(), value.trim_matches('"').to_owned());
                last = Some(key);
            }
            (None, Some(key)) => {
                if let Some(value) = fields.get_mut(key) {
                    value.push(' ');
                    value.push_str(word);
                }
            }
            (None, None) => {}
        }
    }
    fields
}

fn node(fields: &Fields) -> Result<Node, String> {
    let number = |key: &str| -> Result<Option<u64>, String> {
        let Some(text) = fields.get(key) else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| format!("{key}={text} is not a whole number"))?;
        Ok(Some(number))
    };
    let cpus = match (number("cpus")?, number("procs")?, number("cputot")?) {
        (Some(cpus), ..) | (None, Some(cpus), _) | (None, None, Some(cpus)) => cpus,
        (None, None, None) => {
            let boards = number("boards")?.unwrap_or(1);
            let sockets = number("sockets")?
                .or(number("socketsperboard")?)
                .unwrap_or(1);
            let cores = number("corespersocket")?.unwrap_or(1);
            let threads = number("threadspercore")?.unwrap_or(1);
            [boards, sockets, cores, threads]
                .into_iter()
                .try_fold(1u64, u64::checked_mul)
                .ok_or("that many CPUs no node has")?
        }
    };
    let mut node = Node {
        cpus,
        // Slurm's own default, of one mebibyte, is a way of saying nothing.
        memory_mib: number("realmemory")?.filter(|mib| *mib > 1).unwrap_or(0),
        state: fields.get("state").cloned().unwrap_or_default(),
        ..Node::default()
    };
    let features = ["availablefeatures", "activefeatures", "features", "feature"]
        .into_iter()
        .find_map(|key| fields.get(key))
        .filter(|text| *text != "(null)");
    if let Some(features) = features {
        let features = features.split([',', '&', '|']).map(str::trim);
        node.features = features
            .filter(|it| !it.is_empty())
            .map(ToOwned::to_owned)
            .collect();
    }
    if let Some(gres) = fields.get("gres").filter(|text| *text != "(null)") {
        add_gres(&mut node, gres)?;
    }
    Ok(node)
}

/// `gpu:a100:8(S:0-1),shard:16`: name, perhaps a model, perhaps a number; what is in parentheses is about wiring.
fn add_gres(node: &mut Node, gres: &str) -> Result<(), String> {
    let mut bare = String::new();
    let mut depth = 0usize;
    for character in gres.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => bare.push(other),
            _ => {}
        }
    }
    for one in bare.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let mut words: Vec<&str> = one
            .split(':')
            .map(str::trim)
            .filter(|word| *word != "no_consume")
            .collect();
        let count = match words.last().and_then(|word| counted(word)) {
            Some(count) if words.len() > 1 => {
                words.pop();
                count
            }
            _ => 1,
        };
        let Some((name, model)) = words.split_first() else {
            continue;
        };
        let wrong = || {
            format!(
                "Gres={} is not understood",
                one.chars().take(80).collect::<String>()
            )
        };
        let name = name.to_lowercase();
        if name == "gpu" {
            let total = node
                .gpus
                .iter()
                .map(|(_, count)| count)
                .sum::<u64>()
                .saturating_add(count);
            if total > GPUS_MAX {
                return Err(format!("{}: a node has at most {GPUS_MAX} GPUs", wrong()));
            }
            node.gpus.push((model.join(":"), count));
        } else {
            name.parse::<Name>().map_err(|_| wrong())?;
            let total = node.others.entry(name).or_default();
            *total = total.checked_add(count).ok_or_else(wrong)?;
        }
    }
    Ok(())
}

/// A number, perhaps in K, M, G or T of 1024.
fn counted(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match word[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        "T" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests;
