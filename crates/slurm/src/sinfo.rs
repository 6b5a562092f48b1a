//! `sinfo`: partitions and nodes, those alike on one line.

mod field;
mod json;
mod row;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::UsageError;
use crate::argv::{self, Given, Operands, Opt, Takes};
use crate::hostlist;
use crate::layout::Layout;
use crate::state::NodeState;
pub use field::Field;
use field::Group;
pub use row::{NodeRow, PartitionRow, Reason};

/// How wide the columns of names are at least; they grow with the longest.
const NAME_WIDTH: usize = 9;

/// What somebody wants of `sinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Help,
    Usage,
    Version,
    List(Box<Sinfo>),
}

/// Which nodes, and how. An empty list asks for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sinfo {
    pub partitions: Vec<String>,
    pub nodes: Vec<String>,
    /// Words for states, in lower case.
    states: Vec<String>,
    pub is_json: bool,
    is_responding: Option<bool>,
    has_no_header: bool,
    is_long: bool,
    is_by_node: bool,
    is_exact: bool,
    is_reasons: bool,
    is_summary: bool,
    layout: Option<Layout<Field>>,
    sort: Option<Vec<(char, bool)>>,
}

impl Default for Layout<Field> {
    fn default() -> Self {
        Self::all(&[])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Dead,
    Exact,
    Format,
    LongFormat,
    Help,
    Json,
    Long,
    Node,
    Nodes,
    NoHeader,
    Nothing,
    Partition,
    Reasons,
    Responding,
    Sort,
    States,
    Summarize,
    Usage,
    Version,
    Refused(&'static str),
}

const ONE_CLUSTER: Key = Key::Refused("there is one inventory; leave it out");

const OPTIONS: &[Opt<Key>] = &[
    Opt::new("all", Some('a'), Takes::Nothing, Key::Nothing),
    Opt::new("cluster", None, Takes::Value, ONE_CLUSTER),
    Opt::new("clusters", Some('M'), Takes::Value, ONE_CLUSTER),
    Opt::new("dead", Some('d'), Takes::Nothing, Key::Dead),
    Opt::new("exact", Some('e'), Takes::Nothing, Key::Exact),
    Opt::new("federation", None, Takes::Nothing, ONE_CLUSTER),
    Opt::new("format", Some('o'), Takes::Value, Key::Format),
    Opt::new("Format", Some('O'), Takes::Value, Key::LongFormat),
    Opt::new("help", None, Takes::Nothing, Key::Help),
    Opt::new("hide", None, Takes::Nothing, Key::Nothing),
    Opt::new(
        "iterate",
        Some('i'),
        Takes::Value,
        Key::Refused("run it under watch(1)"),
    ),
    Opt::new("json", None, Takes::Nothing, Key::Json),
    Opt::new("list-reasons", Some('R'), Takes::Nothing, Key::Reasons),
    Opt::new("local", None, Takes::Nothing, Key::Nothing),
    Opt::new("long", Some('l'), Takes::Nothing, Key::Long),
    Opt::new("noconvert", None, Takes::Nothing, Key::Nothing),
    Opt::new("Node", Some('N'), Takes::Nothing, Key::Node),
    Opt::new("nodes", Some('n'), Takes::Value, Key::Nodes),
    Opt::new("noheader", Some('h'), Takes::Nothing, Key::NoHeader),
    Opt::new("partition", Some('p'), Takes::Value, Key::Partition),
    Opt::new(
        "reservation",
        Some('T'),
        Takes::Nothing,
        Key::Refused("look at them with `berth reservation list`"),
    ),
    Opt::new("responding", Some('r'), Takes::Nothing, Key::Responding),
    Opt::new("sort", Some('S'), Takes::Value, Key::Sort),
    Opt::new("states", Some('t'), Takes::Value, Key::States),
    Opt::new("summarize", Some('s'), Takes::Nothing, Key::Summarize),
    Opt::new("usage", None, Takes::Nothing, Key::Usage),
    Opt::new("verbose", Some('v'), Takes::Nothing, Key::Nothing),
    Opt::new("version", Some('V'), Takes::Nothing, Key::Version),
    Opt::new("yaml", None, Takes::Nothing, Key::Refused("use --json")),
];

/// Which options there are.
pub fn help() -> String {
    argv::help("sinfo [options]", OPTIONS, |key| match key {
        Key::Refused(instead) => Some(instead),
        _ => None,
    })
}

/// Reads a command line without the program's name.
pub fn read(arguments: &[String]) -> Result<Asked, UsageError> {
    let parsed = argv::parse(OPTIONS, arguments, Operands::Anywhere)?;
    if let Some(word) = parsed.operands.first() {
        return Err(UsageError::Operand(word.clone()));
    }
    let mut sinfo = Sinfo::default();
    for option in &parsed.options {
        match option.key {
            Key::Help => return Ok(Asked::Help),
            Key::Usage => return Ok(Asked::Usage),
            Key::Version => return Ok(Asked::Version),
            Key::Dead => sinfo.is_responding = Some(false),
            Key::Exact => sinfo.is_exact = true,
            Key::Format if option.text() == "%all" => {
                let letters = field::LETTERS.chars().filter_map(field::of_letter);
                sinfo.layout = Some(Layout::all(&letters.collect::<Vec<_>>()));
            }
            Key::Format => sinfo.layout = Some(Layout::short(option.text(), field::of_letter)?),
            Key::LongFormat => sinfo.layout = Some(Layout::long(option.text(), field::NAMES)?),
            Key::Json => sinfo.is_json = true,
            Key::Long => sinfo.is_long = true,
            Key::Node => sinfo.is_by_node = true,
            Key::Nodes => {
                let hosts = hostlist::expand(option.text());
                sinfo.nodes = hosts.map_err(|error| option.invalid(error))?;
            }
            Key::NoHeader => sinfo.has_no_header = true,
            Key::Nothing => {}
            Key::Partition => sinfo.partitions = option.list(),
            Key::Reasons => sinfo.is_reasons = true,
            Key::Responding => sinfo.is_responding = Some(true),
            Key::Sort => sinfo.sort = Some(read_sort(option)?),
            Key::States => sinfo.states = read_states(option)?,
            Key::Summarize => sinfo.is_summary = true,
            Key::Refused(instead) => {
                return Err(UsageError::Unsupported {
                    option: option.name.clone(),
                    instead: instead.to_owned(),
                });
            }
        }
    }
    Ok(Asked::List(Box::new(sinfo)))
}

fn read_states(option: &Given<Key>) -> Result<Vec<String>, UsageError> {
    let words: Vec<_> = option
        .list()
        .iter()
        .map(|word| word.to_lowercase())
        .collect();
    if words.iter().any(|word| word == "all") {
        return Ok(Vec::new());
    }
    match words.iter().find(|word| !NodeState::is_known(word)) {
        None => Ok(words),
        Some(wrong) => {
            let known: Vec<_> = NodeState::ALL.iter().map(|state| state.long()).collect();
            let known = known.join(",");
            Err(option.invalid(format!("{wrong} is no state; they are {known}")))
        }
    }
}

fn read_sort(option: &Given<Key>) -> Result<Vec<(char, bool)>, UsageError> {
    let keys = option.text().split(',').map(|key| {
        let mut letters = key.trim_start_matches(['+', '-', '#']).chars();
        match (letters.next(), letters.next()) {
            // What stands behind `#` keeps the order in which it was configured.
            (Some('P'), None) if key.contains('#') => Ok(('#', key.starts_with('-'))),
            (Some(letter), None) if "PRtTNDcmEwu".contains(letter) => {
                Ok((letter, key.starts_with('-')))
            }
            _ => Err(option.invalid(format!("cannot sort by `{key}`"))),
        }
    });
    keys.collect()
}

impl Sinfo {
    /// What is printed of these partitions, in their order, and of the nodes in them.
    pub fn render(
        &self,
        partitions: &[PartitionRow],
        nodes: &[NodeRow],
        now: Timestamp,
        zone: &TimeZone,
    ) -> String {
        let shown: Vec<&PartitionRow> = partitions
            .iter()
            .filter(|row| self.partitions.is_empty() || self.partitions.contains(&row.name))
            .collect();
        if self.is_json {
            return json::document(&shown, nodes);
        }
        let by_name: BTreeMap<&str, &NodeRow> = nodes
            .iter()
            .map(|node| (node.name.as_str(), node))
            .collect();
        let layout = self.layout(partitions, nodes);
        let mut groups = self.groups(&shown, &by_name, &layout, zone);
        self.sort(&mut groups, partitions);
        let header: Option<fn(Field) -> &'static str> =
            (!self.has_no_header).then_some(field::header);
        let lines = layout.lines(groups.iter(), header, |field, group| {
            field::value(field, group, zone)
        });
        if self.is_long && !self.has_no_header {
            return crate::heading(now, zone) + &lines;
        }
        lines
    }

    fn layout(&self, partitions: &[PartitionRow], nodes: &[NodeRow]) -> Layout<Field> {
        if let Some(layout) = &self.layout {
            return layout.clone();
        }
        let names = partitions.iter();
        let name = names.map(|row| row.name.chars().count() + usize::from(row.is_default));
        let name = name.max().unwrap_or(0).max(NAME_WIDTH);
        let node = nodes.iter().map(|row| row.name.chars().count());
        let node = node.max().unwrap_or(0).max(NAME_WIDTH);
        let format = match (self.is_reasons, self.is_by_node, self.is_long) {
            (true, _, false) => "%20E %9u %19H %N".to_owned(),
            (true, _, true) => "%20E %12U %19H %6t %N".to_owned(),
            (_, true, false) => format!("%{node}N %.6D %.{name}P %6t"),
            (_, true, true) => {
                format!("%{node}N %.6D %.{name}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E")
            }
            _ if self.is_summary => format!("%{name}P %.5a %.10l %.16F %N"),
            (_, _, true) => {
                format!("%{name}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N")
            }
            _ => format!("%{name}P %.5a %.10l %.6D %.6t %N"),
        };
        Layout::short(&format, field::of_letter).unwrap_or_default()
    }

    fn wants(&self, node: &NodeRow) -> bool {
        (self.nodes.is_empty() || self.nodes.contains(&node.name))
            && self.is_responding.is_none_or(|is| is == node.is_responding)
            && (self.states.is_empty()
                || self.states.iter().any(|word| node.state.is_meant_by(word)))
            && (!self.is_reasons || !node.state.is_usable())
    }

    /// Nodes that look alike in every column that divides, together.
    fn groups<'r>(
        &self,
        partitions: &[&'r PartitionRow],
        nodes: &BTreeMap<&str, &'r NodeRow>,
        layout: &Layout<Field>,
        zone: &TimeZone,
    ) -> Vec<Group<'r>> {
        let mut keys: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let mut groups: Vec<Group<'r>> = Vec::new();
        for partition in partitions {
            let members = partition.nodes.iter();
            let mut members: Vec<Vec<&NodeRow>> = members
                .filter_map(|name| nodes.get(name.as_str()).copied())
                .filter(|node| self.wants(node))
                .map(|node| vec![node])
                .collect();
            // A partition of which nothing is to be shown is still there.
            if members.is_empty() && !self.is_by_node && !self.is_reasons {
                members.push(Vec::new());
            }
            for member in members {
                let alone = Group {
                    partition,
                    nodes: member,
                };
                let mut key: Vec<String> = layout
                    .columns
                    .iter()
                    .filter(|column| field::divides(column.field, self.is_exact))
                    .map(|column| field::value(column.field, &alone, zone))
                    .collect();
                if self.is_by_node {
                    key.extend(alone.nodes.iter().map(|node| node.name.clone()));
                }
                match keys.get(&key) {
                    Some(at) => {
                        let together = &mut groups[*at].nodes;
                        for node in alone.nodes {
                            if !together.iter().any(|known| known.name == node.name) {
                                together.push(node);
                            }
                        }
                    }
                    None => {
                        keys.insert(key, groups.len());
                        groups.push(alone);
                    }
                }
            }
        }
        groups
    }

    fn sort(&self, groups: &mut [Group<'_>], partitions: &[PartitionRow]) {
        let place = |group: &Group<'_>| {
            let name = &group.partition.name;
            partitions.iter().position(|row| row.name == *name)
        };
        let state = |group: &Group<'_>| {
            let first = group.nodes.first();
            first.map_or(0, |node| {
                node.state.order() + if node.is_responding { 0 } else { 0x800 }
            })
        };
        let default = if self.is_by_node {
            vec![('N', false), ('#', false)]
        } else {
            vec![('#', false), ('t', true)]
        };
        // The least important key first: sorting is stable.
        for (letter, is_down) in self.sort.as_ref().unwrap_or(&default).iter().rev() {
            let text = |letter: char| {
                move |group: &Group<'_>| field::value(Field::Letter(letter), group, &TimeZone::UTC)
            };
            match letter {
                '#' => groups.sort_by_key(place),
                't' | 'T' if *is_down => groups.sort_by_key(|group| Reverse(state(group))),
                't' | 'T' => groups.sort_by_key(state),
                'D' => groups.sort_by_key(|group| group.nodes.len()),
                'c' => groups.sort_by_key(|group| group.nodes.iter().map(|n| n.cpus).min()),
                'm' => groups.sort_by_key(|group| group.nodes.iter().map(|n| n.memory_mib).min()),
                'N' => {
                    groups.sort_by_key(|group| group.nodes.first().map(|node| natural(&node.name)))
                }
                letter => groups.sort_by_key(text(*letter)),
            }
            if *is_down && !matches!(letter, 't' | 'T') {
                groups.reverse();
            }
        }
    }
}

/// Names in the order of the numbers in which they end.
fn natural(name: &str) -> (String, usize, u64) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (text, number) = name.split_at(name.len() - digits);
    (text.to_owned(), digits, number.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests;
