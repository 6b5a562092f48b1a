//! Logs of the Parallel Workloads Archive, in the Standard Workload Format.
//!
//! Cleaned as the published tables do: jobs without processors, run time or requested time and jobs larger than the machine are left
//! out, and run times are cut to the requested ones.

use berth_engine::queue::Micros;

use crate::Unreadable;

pub const SECOND: Micros = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    pub submit: Micros,
    /// How long it really ran.
    pub runs: Micros,
    /// How long it was allowed to.
    pub limit: Micros,
    pub processors: u32,
    pub person: i64,
}

/// The jobs of a log that fit a machine, in the order in which they came.
pub fn read(text: &str, processors: u32) -> Result<Vec<Job>, Unreadable> {
    let mut jobs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let fields = fields(line).map_err(|what| Unreadable {
            line: number + 1,
            what,
        })?;
        jobs.extend(job(&fields, processors));
    }
    jobs.sort_by_key(|job| job.submit);
    Ok(jobs)
}

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

/// None of those that the published tables leave out. The fields are as the format numbers them, from one on.
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
