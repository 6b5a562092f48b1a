//! Logs of the Parallel Workloads Archive, in the Standard Workload Format.
//!
//! Cleaned as in the published tables: jobs without processors, run time or requested time and jobs larger than the
//! machine are left out, and run times are cut to the requested ones.

use berth_engine::fleet::{Gpus, Models, Near, Node, Task};
use berth_engine::queue::Micros;
use berth_engine::queue::planner::Class;

use crate::Unreadable;
use crate::trace::{Arrival, Holder, Limits, Names, Project, Trace};

pub const SECOND: Micros = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub submit: Micros,
    /// The actual run time.
    pub runs: Micros,
    /// The time limit.
    pub limit: Micros,
    pub processors: u32,
    pub person: i64,
    pub group: i64,
}

/// The jobs of a log that fit a machine, in the order of submission.
pub fn read(text: &str, processors: u32) -> Result<Vec<Job>, Unreadable> {
    let mut jobs = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let fields = fields(line).map_err(|what| Unreadable { line: at + 1, what })?;
        let length_s = Limits::LENGTH / SECOND;
        let far = |number: &usize| fields[number - 1].unsigned_abs() > length_s.unsigned_abs();
        if let Some(number) = [2, 4, 9].iter().find(|number| far(number)) {
            return Err(Unreadable {
                line: at + 1,
                what: format!("field {number} is more than ten years"),
            });
        }
        if jobs.len() >= Limits::ARRIVALS {
            return Err(Unreadable {
                line: at + 1,
                what: format!("there are more than {} jobs", Limits::ARRIVALS),
            });
        }
        jobs.extend(job(&fields, processors));
    }
    jobs.sort_by_key(|job| job.submit);
    Ok(jobs)
}

/// The machine's number of processors, from the log's header.
pub fn processors(text: &str) -> Option<u32> {
    let head = text.lines().take_while(|line| line.starts_with(';'));
    let said = |key: &str| {
        let mut values = head.clone().filter_map(|line| {
            let (name, value) = line.trim_start_matches(';').split_once(':')?;
            (name.trim() == key).then(|| value.trim().parse::<u32>().ok())?
        });
        values.next().filter(|count| *count > 0)
    };
    said("MaxProcs").or_else(|| said("MaxNodes"))
}

/// A log as a trace of nodes with one core each. Its users become the people and its groups the projects.
pub fn trace(text: &str) -> Result<Trace, Unreadable> {
    let in_head = |what: &str| Unreadable {
        line: 1,
        what: what.to_owned(),
    };
    let processors = processors(text)
        .ok_or_else(|| in_head("the log's head does not say `; MaxProcs:` or `; MaxNodes:`"))?;
    if processors as usize > Limits::NODES {
        return Err(in_head("the machine is too large to be replayed"));
    }
    let lines = text.lines().map(|line| line.split(';').next());
    let all = lines.filter(|line| line.is_some_and(|line| !line.trim().is_empty()));
    let jobs = read(text, processors)?;
    let left_out = all.count() - jobs.len();
    Ok(Trace {
        title: "Log of a machine (SWF)".to_owned(),
        left_out,
        ..of_jobs(&jobs, processors)
    })
}

/// Jobs on a machine of equal processors.
pub fn of_jobs(jobs: &[Job], processors: u32) -> Trace {
    let (mut people, mut projects) = (Names::default(), Names::default());
    let mut arrival = |job: &Job| Arrival {
        submit: job.submit,
        runs: job.runs,
        limit: job.limit,
        class: Class::Guaranteed,
        level: 0,
        task: CORE,
        tasks: job.processors,
        near: Near::Anywhere,
        owner: Holder {
            project: projects.place(&format!("group {}", job.group)),
            person: people.place(&format!("user {}", job.person)),
        },
    };
    let processor = Node {
        cpu_milli: CORE.cpu_milli,
        memory_bytes: 0,
        gpus: Vec::new(),
        rack: 0,
        until_us: i64::MAX,
    };
    Trace {
        title: String::new(),
        nodes: vec![processor; processors as usize],
        walls: Vec::new(),
        arrivals: jobs.iter().map(&mut arrival).collect(),
        people: people.into_vec(),
        projects: (projects.into_vec().into_iter())
            .map(|name| Project { name, weight: 1.0 })
            .collect(),
        left_out: 0,
    }
}

/// One core for one process.
const CORE: Task = Task {
    cpu_milli: 1000,
    memory_bytes: 0,
    gpus: Gpus::None,
    models: Models::ANY,
    gpu_memory_bytes: 0,
};

const FIELDS: usize = 18;

fn fields(line: &str) -> Result<Vec<i64>, String> {
    let number = |field: &str| {
        let parsed = field
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        parsed
            .map(|number| number as i64)
            .ok_or_else(|| format!("`{field}` is not a number"))
    };
    let fields: Vec<i64> = line
        .split_whitespace()
        .map(number)
        .collect::<Result<_, _>>()?;
    match fields.len() {
        FIELDS => Ok(fields),
        count => Err(format!("a job has {FIELDS} fields, and this line {count}")),
    }
}

/// `None` for jobs that the published tables leave out. The format numbers fields from one.
fn job(fields: &[i64], processors: u32) -> Option<Job> {
    let field = |number: usize| fields[number - 1];
    let allocated = if field(5) > 0 { field(5) } else { field(8) };
    let fits = (1..=i64::from(processors)).contains(&allocated);
    let (runs, limit) = (field(4), field(9));
    (fits && runs > 0 && limit > 0).then(|| Job {
        submit: field(2).saturating_mul(SECOND),
        runs: runs.min(limit).saturating_mul(SECOND),
        limit: limit.saturating_mul(SECOND),
        processors: allocated as u32,
        person: field(12),
        group: field(13),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_could_not_have_run_are_left_out() {
        let log = "; a comment\n\
            2 30 0 50 4 -1 -1 4 40 -1 1 9 1 -1 1 -1 -1 -1\n\
            1 10 0 50 -1 -1 -1 8 60 -1 1 7 1 -1 1 -1 -1 -1\n\
            3 40 0 -1 4 -1 -1 4 60 -1 1 7 1 -1 1 -1 -1 -1\n\
            4 50 0 10 200 -1 -1 200 60 -1 1 7 1 -1 1 -1 -1 -1\n";
        let jobs = read(log, 100).unwrap();
        let first = Job {
            submit: 10 * SECOND,
            runs: 50 * SECOND,
            limit: 60 * SECOND,
            processors: 8,
            person: 7,
            group: 1,
        };
        assert_eq!((jobs.len(), jobs[0]), (2, first));
        assert_eq!(jobs[1].runs, 40 * SECOND, "cut to what was asked for");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let told = |log: &str| read(log, 100).unwrap_err().to_string();
        assert_eq!(told("; nothing\n1 2 x\n"), "line 2: `x` is not a number");
        assert_eq!(
            told("1 2 3\n"),
            "line 1: a job has 18 fields, and this line 3"
        );
    }
}
