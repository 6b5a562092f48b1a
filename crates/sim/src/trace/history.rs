//! Berth's own history: the submissions to a site's queue, its nodes and its reservations.
//!
//! JSON lines. The first is the fleet, with the version: `{"berth-history":1,"nodes":[…],"projects":[…]}`. Then one for
//! each reservation and one for each workload, in any order. Times are RFC 3339, lengths are seconds.
//!
//! The input is untrusted: unknown keys are refused, everything has a limit, and an error names its line.

use std::collections::HashMap;
use std::fmt;

use berth_engine::fleet::{
    Gpu, Gpus, Mode, Models, Near, Node, NodeIndex, Part, Piece, Placement, Task, UNDIVIDED,
};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Class;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::limits::{Limits, at_most, length, moment, name};
use super::{Arrival, Holder, Names, Project, Taken, Trace, Wall};
use crate::Unreadable;
use crate::openb::ModelNames;
use crate::swf::SECOND;

pub const VERSION: u32 = 1;

/// One line of a history. Its `Display` writes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    Fleet(FleetLine),
    Reservation(ReservationLine),
    Workload(WorkloadLine),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetLine {
    #[serde(rename = "berth-history")]
    pub version: u32,
    /// The site's name, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    pub nodes: Vec<NodeEntry>,
    /// The projects with a weight of their own; all others have weight one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeEntry {
    pub name: String,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuEntry>,
}

/// Equal GPUs of a node, numbered from zero in the order of the entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuEntry {
    pub model: String,
    pub count: u16,
    #[serde(default)]
    pub memory_bytes: u64,
    /// GPUs with the same number are linked to each other directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectEntry {
    pub name: String,
    pub weight: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReservationLine {
    pub reservation: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// When the reservation was made.
    pub known: Timestamp,
    /// The holder: both fields, or neither if no fair share pays for it, as for maintenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub on: Vec<PartEntry>,
}

/// A part of a node. An entry without amounts is the whole node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartEntry {
    pub node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Whole GPUs, by their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Vec<u16>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadLine {
    pub workload: String,
    pub person: String,
    pub project: String,
    #[serde(default)]
    pub class: ClassEntry,
    #[serde(default)]
    pub level: i32,
    pub submit: Timestamp,
    /// `None` for a workload that has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// `None` for a workload that still runs or waits; it is assumed to run until its limit. An end without a start is
    /// a cancelled workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    pub limit_s: u64,
    #[serde(default = "one")]
    pub tasks: u32,
    #[serde(default)]
    pub near: NearEntry,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// Whole GPUs of each task, or thousandths of one, but not both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_thousandths: Option<u16>,
    /// The acceptable models; any if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(default)]
    pub gpu_memory_bytes: u64,
}

fn one() -> u32 {
    1
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassEntry {
    Opportunistic,
    #[default]
    Guaranteed,
    Urgent,
    /// Ran inside its owner's reservation, so the queue never saw it.
    Reserved,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NearEntry {
    #[default]
    Anywhere,
    Rack,
    Node,
    Link,
}

impl Line {
    pub fn parse(text: &str) -> Result<Line, String> {
        /// The kind of a line, which decides the keys it may have.
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "berth-history")]
            version: Option<u32>,
            reservation: Option<serde::de::IgnoredAny>,
            workload: Option<serde::de::IgnoredAny>,
        }
        let plain = |error: serde_json::Error| {
            let told = error.to_string();
            told.replace(" at line 1 column ", " at column ")
        };
        let kind: Kind = serde_json::from_str(text).map_err(plain)?;
        match kind {
            Kind {
                version: Some(VERSION),
                ..
            } => serde_json::from_str(text).map(Line::Fleet).map_err(plain),
            Kind {
                version: Some(version),
                ..
            } => Err(format!(
                "this history is of version {version}, and version {VERSION} is the one that is read"
            )),
            Kind {
                reservation: Some(_),
                ..
            } => serde_json::from_str(text)
                .map(Line::Reservation)
                .map_err(plain),
            Kind {
                workload: Some(_), ..
            } => serde_json::from_str(text)
                .map(Line::Workload)
                .map_err(plain),
            _ => Err(
                "a line has one of the keys `berth-history`, `reservation` and `workload`"
                    .to_owned(),
            ),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Line::Fleet(line) => serde_json::to_string(line),
            Line::Reservation(line) => serde_json::to_string(line),
            Line::Workload(line) => serde_json::to_string(line),
        };
        to.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

pub fn read(text: &str) -> Result<Trace, Unreadable> {
    let mut reader = Reader::default();
    for (number, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let read = at_most("bytes in this line", text.len(), Limits::LINE_BYTES)
            .and_then(|()| Line::parse(text))
            .and_then(|line| reader.take(number, line));
        read.map_err(|what| Unreadable { line: number, what })?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    site: Option<String>,
    nodes: Vec<Node>,
    node_names: Names,
    models: ModelNames,
    people: Names,
    projects: Names,
    weights: HashMap<String, f64>,
    walls: Vec<(usize, Wall)>,
    arrivals: Vec<Arrival>,
    left_out: usize,
}

impl Reader {
    fn take(&mut self, number: usize, line: Line) -> Result<(), String> {
        match (line, &self.site) {
            (Line::Fleet(fleet), None) => self.fleet(fleet),
            (Line::Fleet(_), Some(_)) => Err("the fleet was told before".to_owned()),
            (_, None) => Err("the first line has to be the fleet's, with `berth-history`".into()),
            (Line::Reservation(reservation), _) => self.reservation(number, reservation),
            (Line::Workload(workload), _) => self.workload(workload),
        }
    }

    fn fleet(&mut self, fleet: FleetLine) -> Result<(), String> {
        at_most("nodes", fleet.nodes.len(), Limits::NODES)?;
        let mut racks = Names::default();
        for entry in &fleet.nodes {
            name("node", &entry.name)?;
            if self.node_names.find(&entry.name).is_some() {
                return Err(format!("there are two nodes named `{}`", entry.name));
            }
            self.node_names.place(&entry.name);
            let node = self.node(entry, &mut racks);
            self.nodes
                .push(node.map_err(|what| format!("node `{}`: {what}", entry.name))?);
        }
        for ProjectEntry {
            name: project,
            weight,
        } in fleet.projects
        {
            name("project", &project)?;
            if !(weight.is_finite() && weight > 0.0) {
                return Err(format!("the weight of `{project}` is not above zero"));
            }
            self.weights.insert(project, weight);
        }
        self.site = Some(fleet.site);
        Ok(())
    }

    fn node(&mut self, entry: &NodeEntry, racks: &mut Names) -> Result<Node, String> {
        let count = entry.gpus.iter().map(|gpus| usize::from(gpus.count)).sum();
        at_most("GPUs", count, Limits::GPUS_PER_NODE)?;
        let mut gpus = Vec::new();
        for entry in &entry.gpus {
            name("model", &entry.model)?;
            let model = self.models.number(&entry.model);
            let gpu = Gpu {
                model: model.ok_or_else(|| format!("`{}` is one model too many", entry.model))?,
                memory_bytes: entry.memory_bytes,
                link: entry.link,
                mode: Mode::Shared,
            };
            gpus.extend(vec![gpu; usize::from(entry.count)]);
        }
        // A node of unknown rack counts as a rack of its own.
        let rack = entry.rack.clone();
        let rack = rack.unwrap_or_else(|| format!("\n{}", entry.name));
        Ok(Node {
            cpu_milli: entry.cpu_milli,
            memory_bytes: entry.memory_bytes,
            gpus,
            rack: racks.place(&rack) as u32,
            until_us: i64::MAX,
        })
    }

    fn holder(&mut self, person: &str, project: &str) -> Result<Holder, String> {
        name("person", person)?;
        name("project", project)?;
        Ok(Holder {
            project: self.projects.place(project),
            person: self.people.place(person),
        })
    }

    fn reservation(&mut self, number: usize, line: ReservationLine) -> Result<(), String> {
        at_most("reservations", self.walls.len() + 1, Limits::WALLS)?;
        let (from, to) = (micros(line.from)?, micros(line.to)?);
        length("time", to - from)?;
        let holder = match (&line.person, &line.project) {
            (Some(person), Some(project)) => Some(self.holder(person, project)?),
            (None, None) => None,
            _ => return Err("a reservation has a person and a project, or neither".to_owned()),
        };
        let pieces = line.on.iter().map(|part| self.piece(part));
        let placement = Placement {
            pieces: pieces.collect::<Result<_, _>>()?,
        };
        let wall = Wall {
            from,
            to,
            known: micros(line.known)?.min(from),
            placement,
            holder,
        };
        self.walls.push((number, wall));
        Ok(())
    }

    fn piece(&self, part: &PartEntry) -> Result<Piece, String> {
        let known = self.node_names.find(&part.node);
        let place = known.ok_or_else(|| format!("there is no node `{}`", part.node))?;
        let node = &self.nodes[place];
        let is_whole =
            part.cpu_milli.is_none() && part.memory_bytes.is_none() && part.gpus.is_none();
        let all = || (0..node.gpus.len() as u16).collect();
        let gpus: Vec<u16> = match (&part.gpus, is_whole) {
            (Some(gpus), _) => gpus.clone(),
            (None, true) => all(),
            (None, false) => Vec::new(),
        };
        let missing = gpus
            .iter()
            .find(|gpu| usize::from(**gpu) >= node.gpus.len());
        if let Some(gpu) = missing {
            return Err(format!("node `{}` has no GPU {gpu}", part.node));
        }
        let unless =
            |amount: Option<u64>, all: u64| amount.unwrap_or(if is_whole { all } else { 0 });
        let whole = |gpu| Part {
            gpu,
            thousandths: UNDIVIDED,
        };
        Ok(Piece {
            node: NodeIndex(place as u32),
            cpu_milli: unless(part.cpu_milli, node.cpu_milli),
            memory_bytes: unless(part.memory_bytes, node.memory_bytes),
            gpus: gpus.into_iter().map(whole).collect(),
        })
    }

    fn workload(&mut self, line: WorkloadLine) -> Result<(), String> {
        at_most("workloads", self.arrivals.len() + 1, Limits::ARRIVALS)?;
        let owner = self.holder(&line.person, &line.project)?;
        let task = self.task(&line)?;
        if !(1..=Limits::TASKS).contains(&line.tasks) {
            return Err(format!("its tasks are not 1 to {}", Limits::TASKS));
        }
        let limit = i64::try_from(line.limit_s).unwrap_or(i64::MAX);
        let limit = length("limit", limit.saturating_mul(SECOND))?;
        let submit = micros(line.submit)?;
        let runs = match (line.start, line.end) {
            (Some(start), Some(end)) if end > start => (micros(end)? - micros(start)?).min(limit),
            (Some(start), Some(end)) if end < start => {
                return Err("it ends before it starts".to_owned());
            }
            (_, None) => limit,
            // It was cancelled while it waited, or ended at once: there is nothing to replay.
            _ => 0,
        };
        if line.start.is_some_and(|start| start < line.submit) {
            return Err("it starts before it is submitted".to_owned());
        }
        let class = match line.class {
            ClassEntry::Opportunistic => Class::Opportunistic,
            ClassEntry::Guaranteed => Class::Guaranteed,
            ClassEntry::Urgent => Class::Urgent,
            ClassEntry::Reserved => {
                self.left_out += 1;
                return Ok(());
            }
        };
        if runs == 0 {
            self.left_out += 1;
            return Ok(());
        }
        self.arrivals.push(Arrival {
            submit,
            runs,
            limit,
            class,
            level: line.level,
            task,
            tasks: line.tasks,
            near: match line.near {
                NearEntry::Anywhere => Near::Anywhere,
                NearEntry::Rack => Near::Rack,
                NearEntry::Node => Near::Node,
                NearEntry::Link => Near::Link,
            },
            owner,
        });
        Ok(())
    }

    fn task(&mut self, line: &WorkloadLine) -> Result<Task, String> {
        let gpus = match (line.gpus, line.gpu_thousandths) {
            (None | Some(0), None | Some(0)) => Gpus::None,
            (Some(count), None) => Gpus::Whole(count),
            (None, Some(share @ 1..UNDIVIDED)) => Gpus::Share(share),
            (None, Some(_)) => return Err("`gpu_thousandths` are less than 1000".to_owned()),
            (Some(_), Some(_)) => {
                return Err("it asks for whole GPUs and for thousandths of one".to_owned());
            }
        };
        let model = |name: &String| {
            let model = self.models.number(name);
            model.ok_or_else(|| format!("`{name}` is one model too many"))
        };
        Ok(Task {
            cpu_milli: line.cpu_milli,
            memory_bytes: line.memory_bytes,
            gpus,
            models: line
                .models
                .iter()
                .map(model)
                .collect::<Result<Models, _>>()?,
            gpu_memory_bytes: line.gpu_memory_bytes,
        })
    }

    fn finish(mut self) -> Result<Trace, Unreadable> {
        let Some(site) = self.site.take() else {
            return Err(Unreadable {
                line: 1,
                what: "the history is empty".to_owned(),
            });
        };
        self.walls.sort_by_key(|(_, wall)| (wall.from, wall.to));
        self.refuse_what_is_reserved_twice()?;
        self.arrivals.sort_by_key(|arrival| arrival.submit);
        let project = |name: String| Project {
            weight: self.weights.get(&name).copied().unwrap_or(1.0),
            name,
        };
        Ok(Trace {
            title: match site.is_empty() {
                true => "Berth's history".to_owned(),
                false => format!("Berth's history of {site}"),
            },
            nodes: self.nodes,
            walls: self.walls.into_iter().map(|(_, wall)| wall).collect(),
            arrivals: self.arrivals,
            people: self.people.into_vec(),
            projects: self.projects.into_vec().into_iter().map(project).collect(),
            left_out: self.left_out,
        })
    }

    /// Berth never reserves anything twice. A foreign file's reservations might, and then no plan could keep them.
    fn refuse_what_is_reserved_twice(&self) -> Result<(), Unreadable> {
        let mut taken = vec![Taken::default(); self.nodes.len()];
        let mut ends: Vec<(Micros, usize)> = Vec::new();
        for (place, (_, wall)) in self.walls.iter().enumerate() {
            ends.push((wall.to, place));
        }
        ends.sort_unstable();
        let mut over = ends.into_iter().peekable();
        for (line, wall) in &self.walls {
            while let Some((_, place)) = over.next_if(|(to, _)| *to <= wall.from) {
                for piece in &self.walls[place].1.placement.pieces {
                    taken[piece.node.0 as usize].remove(piece);
                }
            }
            for piece in &wall.placement.pieces {
                let place = piece.node.0 as usize;
                taken[place].add(piece);
                if !taken[place].fits(&self.nodes[place]) {
                    let what = "with the reservations beside it, it takes more of a node than \
                                the node has";
                    return Err(Unreadable {
                        line: *line,
                        what: what.to_owned(),
                    });
                }
            }
        }
        Ok(())
    }
}

fn micros(at: Timestamp) -> Result<Micros, String> {
    moment(at.as_microsecond())
}

#[cfg(test)]
mod tests;
