//! Alibaba's GPU cluster of 1,213 nodes, and how well its pods are packed.
//!
//! The protocol of the published table: a list of pods is scaled to a GPU demand of 130 % of the nodes' capacity, by
//! drawing pods from it again or by leaving pods out. The list is shuffled, and the pods are placed one by one; none
//! leaves and none is retried. The figure is the allocated part of the GPUs at the end. The fleet knows the mix of the
//! list, as in the published runs.

use berth_engine::fleet::{Fleet, Gpu, Gpus, Mix, Mode, Model, Models, Near, Need, Node, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Class;

use crate::Unreadable;
use crate::random::Random;
use crate::swf::SECOND;
use crate::trace::{Arrival, Holder, Limits, Names, Project, Trace, moment};

const MIB: u64 = 1 << 20;
/// The demand, as a fraction of the capacity.
const DEMAND: (u64, u64) = (13, 10);

/// The models by number, in the order of their first use.
#[derive(Debug, Clone, Default)]
pub struct ModelNames(Vec<String>);

impl ModelNames {
    pub(crate) fn number(&mut self, name: &str) -> Option<Model> {
        let known = self.0.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u8::try_from(number).ok().and_then(Model::new)
    }
}

/// A row of a list, with the selected columns. A column that the list lacks is empty.
struct Row {
    line: usize,
    cells: Vec<String>,
}

fn rows(text: &str, columns: &[&str]) -> Result<Vec<Row>, Unreadable> {
    let unreadable = |error: csv::Error| Unreadable {
        line: error.position().map_or(1, |at| at.line() as usize),
        what: error.to_string(),
    };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(unreadable)?.clone();
    let place = |column: &&str| header.iter().position(|name| name == *column);
    let places: Vec<Option<usize>> = columns.iter().map(place).collect();
    let row = |record: csv::StringRecord| {
        let cell = |place: &Option<usize>| place.and_then(|place| record.get(place));
        Row {
            line: record.position().map_or(1, |at| at.line() as usize),
            cells: places
                .iter()
                .map(|place| cell(place).unwrap_or_default().to_owned())
                .collect(),
        }
    };
    let records = reader.records();
    records
        .map(|record| record.map(row).map_err(unreadable))
        .collect()
}

impl Row {
    fn number<T: std::str::FromStr>(&self, place: usize) -> Result<T, Unreadable> {
        let cell = &self.cells[place];
        cell.parse()
            .map_err(|_| self.wrong(format!("`{cell}` is not a number that fits")))
    }

    fn wrong(&self, what: String) -> Unreadable {
        Unreadable {
            line: self.line,
            what,
        }
    }

    fn model(&self, models: &mut ModelNames, name: &str) -> Result<Model, Unreadable> {
        let model = models.number(name);
        model.ok_or_else(|| self.wrong(format!("`{name}` is one model too many")))
    }
}

pub fn nodes(text: &str, models: &mut ModelNames) -> Result<Vec<Node>, Unreadable> {
    let columns = ["cpu_milli", "memory_mib", "gpu", "model"];
    let node = |row: Row| {
        let gpu = Gpu {
            model: row.model(models, &row.cells[3])?,
            memory_bytes: 0,
            link: None,
            mode: Mode::Shared,
        };
        let count: u16 = row.number(2)?;
        if usize::from(count) > Limits::GPUS_PER_NODE {
            return Err(row.wrong(format!("{count} GPUs are too many for a node")));
        }
        Ok(Node {
            cpu_milli: row.number(0)?,
            memory_bytes: row.number::<u64>(1)?.saturating_mul(MIB),
            gpus: vec![gpu; usize::from(count)],
            rack: 0,
            until_us: i64::MAX,
        })
    };
    rows(text, &columns)?.into_iter().map(node).collect()
}

/// The nodes and pods of two lists as a trace. Pods are submitted at their creation and run from their scheduling to
/// their deletion. The lists have no time limits: people ask for round times, so the limit is the next of one hour,
/// two, four and so on. Best-effort pods are opportunistic. The lists name no people, and the qualities of service
/// become the projects.
pub fn trace(nodes: &str, pods: &str) -> Result<Trace, Unreadable> {
    let mut models = ModelNames::default();
    let nodes = self::nodes(nodes, &mut models)?;
    let tasks = self::pods(pods, &mut models)?;
    let columns = ["qos", "creation_time", "scheduled_time", "deletion_time"];
    let mut projects = Names::default();
    let mut arrivals = Vec::new();
    let mut left_out = 0;
    for (row, task) in rows(pods, &columns)?.iter().zip(tasks) {
        if row.cells[1].is_empty() || row.cells[3].is_empty() {
            let what = "the list has no times (`creation_time`, `deletion_time`): it can be \
                        packed, but not replayed";
            return Err(row.wrong(what.to_owned()));
        }
        let created: Micros = row.number(1)?;
        let deleted: Micros = row.number(3)?;
        let scheduled = match row.cells[2].is_empty() {
            true => created,
            false => row.number(2)?,
        };
        let seconds = |at: Micros| at.checked_mul(SECOND).and_then(|at| moment(at).ok());
        let times = seconds(created)
            .zip(seconds(deleted))
            .zip(seconds(scheduled));
        let Some(((submit, deleted), scheduled)) = times else {
            return Err(row.wrong("a time is more than two hundred years away".to_owned()));
        };
        if deleted <= scheduled {
            left_out += 1;
            continue;
        }
        let runs = (deleted - scheduled).min(Limits::LENGTH);
        let qos = match row.cells[0].as_str() {
            "" => "all",
            qos => qos,
        };
        arrivals.push(Arrival {
            submit,
            runs,
            limit: asked(runs),
            class: match qos {
                "BE" => Class::Opportunistic,
                _ => Class::Guaranteed,
            },
            level: 0,
            task,
            tasks: 1,
            near: Near::Anywhere,
            owner: Holder {
                project: projects.place(qos),
                person: 0,
            },
        });
    }
    arrivals.sort_by_key(|arrival| arrival.submit);
    Ok(Trace {
        title: "GPU cluster (openb)".to_owned(),
        nodes,
        walls: Vec::new(),
        arrivals,
        people: vec!["everybody".to_owned()],
        projects: (projects.into_vec().into_iter())
            .map(|name| Project { name, weight: 1.0 })
            .collect(),
        left_out,
    })
}

/// The round time limit of a workload with this run time.
fn asked(runs: Micros) -> Micros {
    const HOUR: Micros = 3600 * SECOND;
    let mut hours = std::iter::successors(Some(HOUR), |hours| hours.checked_mul(2));
    let enough = hours.find(|hours| *hours >= runs);
    enough.unwrap_or(runs)
}

pub fn pods(text: &str, models: &mut ModelNames) -> Result<Vec<Task>, Unreadable> {
    let columns = [
        "cpu_milli",
        "memory_mib",
        "num_gpu",
        "gpu_milli",
        "gpu_spec",
    ];
    let pod = |row: Row| {
        let named = row.cells[4].split('|').filter(|name| !name.is_empty());
        let accepted: Result<Models, Unreadable> =
            named.map(|name| row.model(models, name)).collect();
        Ok(Task {
            cpu_milli: row.number(0)?,
            memory_bytes: row.number::<u64>(1)?.saturating_mul(MIB),
            gpus: match (row.number(2)?, row.number(3)?) {
                (0, _) => Gpus::None,
                (1, share @ ..1000) => Gpus::Share(share),
                (count, _) => Gpus::Whole(count),
            },
            models: accepted?,
            gpu_memory_bytes: 0,
        })
    };
    rows(text, &columns)?.into_iter().map(pod).collect()
}

fn thousandths(pods: &[Task]) -> u64 {
    let each = pods.iter().map(|pod| u64::from(pod.gpus.thousandths()));
    each.sum()
}

/// The pods of one run: enough for the demand, in a random order.
pub fn drawn(list: &[Task], nodes: &[Node], seed: u64) -> Vec<Task> {
    let mut random = Random::new(seed);
    let mut pods = list.to_vec();
    let mut demand = thousandths(&pods);
    let wanted = capacity(nodes) * DEMAND.0 / DEMAND.1;
    let is_short = demand < wanted;
    while demand > wanted {
        let pod = pods.swap_remove(random.below(pods.len()));
        demand -= u64::from(pod.gpus.thousandths());
    }
    let draw = || list.get(random.below(list.len())).copied();
    let still_within = |pod: &Task| {
        demand += u64::from(pod.gpus.thousandths());
        demand <= wanted
    };
    if is_short {
        pods.extend(std::iter::from_fn(draw).take_while(still_within));
    }
    random.shuffle(&mut pods);
    pods
}

fn capacity(nodes: &[Node]) -> u64 {
    let gpus: usize = nodes.iter().map(|node| node.gpus.len()).sum();
    1000 * gpus as u64
}

/// The allocated part of the GPUs after placing these pods one by one, in per cent.
pub fn allocated(nodes: &[Node], list: &[Task], pods: &[Task]) -> f64 {
    let mix = Mix::of(list.iter().map(|pod| (*pod, 1)));
    let mut fleet = Fleet::new(nodes, mix);
    let mut given = 0;
    for pod in pods {
        let placement = fleet.place(&Need::one(*pod));
        if placement.is_some_and(|placement| fleet.take(&placement).is_ok()) {
            given += u64::from(pod.gpus.thousandths());
        }
    }
    100.0 * given as f64 / capacity(nodes).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\n\
        a,64000,1000,2,V100\n\
        b,64000,1000,2,T4\n";
    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n\
        p1,1000,10,1,500,\n\
        p2,1000,10,2,1000,T4\n\
        p3,1000,10,0,0,\n";

    #[test]
    fn lists_are_read_and_asked_for_a_third_more_than_there_is() {
        let mut models = ModelNames::default();
        let nodes = nodes(NODES, &mut models).unwrap();
        let pods = pods(PODS, &mut models).unwrap();
        assert_eq!((nodes.len(), nodes[1].gpus.len()), (2, 2));
        assert_eq!(pods[0].gpus, Gpus::Share(500));
        assert!(pods[1].models.accept(nodes[1].gpus[0].model));
        assert!(!pods[1].models.accept(nodes[0].gpus[0].model));
        let drawn = drawn(&pods, &nodes, 42);
        let demand = thousandths(&drawn);
        assert!((3000..=5200).contains(&demand), "{demand}");
        let share = allocated(&nodes, &pods, &drawn);
        assert!((50.0..=100.0).contains(&share), "{share}");
        assert_eq!(
            share,
            allocated(&nodes, &pods, &drawn),
            "the same at every run"
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let wrong = NODES.replace("b,64000", "b,many");
        let told = super::nodes(&wrong, &mut ModelNames::default()).unwrap_err();
        assert_eq!(told.to_string(), "line 3: `many` is not a number that fits");
    }
}
