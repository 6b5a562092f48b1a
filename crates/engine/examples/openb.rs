//! How well the fleet is packed, by the protocol of the published tables:
//! `cargo run --release -p berth-engine --example openb -- FOLDER`, the folder being the one with the openb lists.
//!
//! Each list of pods is brought to a GPU demand of 130 % of the nodes' (with pods drawn from the list again, or with pods
//! left out), shuffled, and placed one by one; nobody leaves and nobody is asked twice. The figure is how much of the
//! GPUs is given out in the end, in per cent. The mix is that of the list, as in the published runs; `--learn` starts
//! with none instead and learns it from what was asked so far.

#![expect(clippy::print_stdout, reason = "figures are what this prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use berth_engine::fleet::{Fleet, Gpu, Gpus, Mix, Mode, Model, Models, Need, Node, Task};

const LISTS: [&str; 3] = ["default", "gpushare100", "multigpu50"];
const SEEDS: std::ops::RangeInclusive<u64> = 42..=51;
const MIB: u64 = 1 << 20;

/// Splitmix64: the same draw at every run and on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

/// The models by their numbers, in the order in which they are met.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn model(&mut self, name: &str) -> Result<Model, Box<dyn Error>> {
        let known = self.0.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        let model = u8::try_from(number).ok().and_then(Model::new);
        model.ok_or_else(|| format!("too many models, at {name}").into())
    }
}

/// The rows below the header, each with the columns of these names; a column that is not there is empty.
fn table(path: &Path, columns: &[&str]) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let places: Vec<Option<usize>> = columns
        .iter()
        .map(|column| header.iter().position(|name| name == column))
        .collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |place: &Option<usize>| place.and_then(|place| cells.get(place).copied());
        places
            .iter()
            .map(|place| cell(place).unwrap_or_default().to_owned())
            .collect()
    };
    Ok(lines.map(row).collect())
}

fn nodes(folder: &Path, names: &mut Names) -> Result<Vec<Node>, Box<dyn Error>> {
    let columns = ["cpu_milli", "memory_mib", "gpu", "model"];
    let mut nodes = Vec::new();
    for row in table(&folder.join("openb_node_list_gpu_node.csv"), &columns)? {
        let gpu = Gpu {
            model: names.model(&row[3])?,
            memory_bytes: 0,
            link: None,
            mode: Mode::Shared,
        };
        nodes.push(Node {
            cpu_milli: row[0].parse()?,
            memory_bytes: row[1].parse::<u64>()? * MIB,
            gpus: vec![gpu; row[2].parse()?],
            rack: 0,
            until_us: i64::MAX,
        });
    }
    Ok(nodes)
}

fn pods(folder: &Path, list: &str, names: &mut Names) -> Result<Vec<Task>, Box<dyn Error>> {
    let columns = [
        "cpu_milli",
        "memory_mib",
        "num_gpu",
        "gpu_milli",
        "gpu_spec",
    ];
    let mut pods = Vec::new();
    for row in table(&folder.join(format!("openb_pod_list_{list}.csv")), &columns)? {
        let models = row[4].split('|').filter(|name| !name.is_empty());
        let models: Result<Models, _> = models.map(|name| names.model(name)).collect();
        pods.push(Task {
            cpu_milli: row[0].parse()?,
            memory_bytes: row[1].parse::<u64>()? * MIB,
            gpus: match (row[2].parse()?, row[3].parse()?) {
                (0, _) => Gpus::None,
                (1, share @ ..1000) => Gpus::Share(share),
                (count, _) => Gpus::Whole(count),
            },
            models: models?,
            gpu_memory_bytes: 0,
        });
    }
    Ok(pods)
}

fn thousandths(pods: &[Task]) -> u64 {
    pods.iter()
        .map(|pod| u64::from(pod.gpus.thousandths()))
        .sum()
}

/// The pods of one run: as many as make 130 % of the capacity, in a random order.
fn drawn(list: &[Task], capacity: u64, seed: u64) -> Vec<Task> {
    let mut numbers = Numbers(seed);
    let mut pods = list.to_vec();
    let mut demand = thousandths(&pods);
    let wanted = capacity * 13 / 10;
    let more = demand < wanted;
    while demand > wanted {
        let pod = pods.swap_remove(numbers.below(pods.len()));
        demand -= u64::from(pod.gpus.thousandths());
    }
    let draw = || Some(list[numbers.below(list.len())]);
    let still_within = |pod: &Task| {
        demand += u64::from(pod.gpus.thousandths());
        demand <= wanted
    };
    if more {
        pods.extend(std::iter::from_fn(draw).take_while(still_within));
    }
    for last in (1..pods.len()).rev() {
        pods.swap(last, numbers.below(last + 1));
    }
    pods
}

fn mix(pods: &[Task]) -> Mix {
    Mix::of(pods.iter().map(|pod| (*pod, 1)))
}

#[derive(Clone, Copy, PartialEq)]
enum Known {
    List,
    Nothing,
}

struct Run {
    allocated: u64,
    asked: usize,
    time: Duration,
}

/// Places what can be placed. Learning is part of the time.
fn run(nodes: &[Node], list: &[Task], pods: &[Task], known: Known) -> Result<Run, Box<dyn Error>> {
    let began = Instant::now();
    let mut fleet = Fleet::new(nodes, mix(if known == Known::List { list } else { &[] }));
    let mut allocated = 0;
    for (at, pod) in pods.iter().enumerate() {
        if known == Known::Nothing && at.is_power_of_two() {
            fleet.learn(mix(&pods[..at]));
        }
        if let Some(placement) = fleet.place(&Need::one(*pod)) {
            fleet.take(&placement)?;
            allocated += u64::from(pod.gpus.thousandths());
        }
    }
    Ok(Run {
        allocated,
        asked: pods.len(),
        time: began.elapsed(),
    })
}

fn report(name: &str, capacity: u64, runs: &[Run]) {
    let share = |run: &Run| 100.0 * run.allocated as f64 / capacity as f64;
    let mean = runs.iter().map(share).sum::<f64>() / runs.len() as f64;
    let asked: usize = runs.iter().map(|run| run.asked).sum();
    let time: Duration = runs.iter().map(|run| run.time).sum();
    let each: Vec<String> = runs
        .iter()
        .map(|run| format!("{:.2}", share(run)))
        .collect();
    println!(
        "{name}: {mean:.2} % ({}), {:.2} us a placement",
        each.join(" "),
        time.as_secs_f64() * 1e6 / asked as f64
    );
}

/// The same number of GPUs as a large site has: 1,250 nodes like the most frequent one.
fn large(nodes: &[Node]) -> Vec<Node> {
    let make = |node: &Node| (node.gpus.len(), node.cpu_milli, node.memory_bytes);
    let mut counts: BTreeMap<_, (usize, &Node)> = BTreeMap::new();
    for node in nodes {
        counts.entry(make(node)).or_insert((0, node)).0 += 1;
    }
    let most = counts.into_values().max_by_key(|(count, _)| *count);
    most.map_or_else(Vec::new, |(_, node)| vec![node.clone(); 1250])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut known = Known::List;
    let mut folder = None;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--learn" => known = Known::Nothing,
            _ => folder = Some(argument),
        }
    }
    let folder = folder.ok_or("which folder are the openb lists in?")?;
    let folder = Path::new(&folder);
    let mut names = Names::default();
    let site = nodes(folder, &mut names)?;
    for (kind, nodes) in [("", &site), (", 1,250 equal nodes", &large(&site))] {
        let gpus: usize = nodes.iter().map(|node| node.gpus.len()).sum();
        let capacity = 1000 * gpus as u64;
        for name in LISTS {
            let list = pods(folder, name, &mut names)?;
            let runs: Result<Vec<Run>, _> = SEEDS
                .map(|seed| run(nodes, &list, &drawn(&list, capacity, seed), known))
                .collect();
            report(&format!("{name}{kind}"), capacity, &runs?);
        }
    }
    Ok(())
}
