//! What a job waits for: `afterok:12:13,afterany:14_*`, or `singleton?after:12+5` where one of them is enough.

use std::fmt;
use std::str::FromStr;

use crate::job_id::JobRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It has started or was cancelled, so many minutes ago.
    After { minutes: u32 },
    /// It has ended, however.
    AfterAny,
    /// It has ended well.
    AfterOk,
    /// It has failed.
    AfterNotOk,
    /// The task of the same index has ended well.
    AfterCorr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dependency {
    On {
        when: When,
        job: JobRef,
    },
    /// No other job of the same name and person runs or waits before it.
    Singleton,
}

/// What must have happened before a job may start: all of it, or any of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependencies {
    pub is_any_enough: bool,
    pub on: Vec<Dependency>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DependencyError {
    #[error(
        "`{0}` is none of after, afterany, afterok, afternotok or aftercorr with job ids, or singleton"
    )]
    Form(String),
    #[error("`,` (all of them) and `?` (any of them) cannot be mixed")]
    Mixed,
    #[error("afterburstbuffer is not supported by Berth, which has no burst buffers")]
    BurstBuffer,
}

impl FromStr for Dependencies {
    type Err = DependencyError;

    fn from_str(text: &str) -> Result<Self, DependencyError> {
        let is_any_enough = text.contains('?');
        if is_any_enough && text.contains(',') {
            return Err(DependencyError::Mixed);
        }
        let mut on = Vec::new();
        for part in text.split([',', '?']) {
            dependency(part, &mut on)?;
        }
        Ok(Self { is_any_enough, on })
    }
}

fn dependency(text: &str, on: &mut Vec<Dependency>) -> Result<(), DependencyError> {
    let wrong = || DependencyError::Form(text.to_owned());
    if text.eq_ignore_ascii_case("singleton") {
        on.push(Dependency::Singleton);
        return Ok(());
    }
    let (word, jobs) = text.split_once(':').ok_or_else(wrong)?;
    let mut when = match word.to_ascii_lowercase().as_str() {
        "after" => When::After { minutes: 0 },
        "afterany" => When::AfterAny,
        "afterok" => When::AfterOk,
        "afternotok" => When::AfterNotOk,
        "aftercorr" => When::AfterCorr,
        "afterburstbuffer" => return Err(DependencyError::BurstBuffer),
        _ => return Err(wrong()),
    };
    for job in jobs.split(':') {
        let job = match (&mut when, job.split_once('+')) {
            // In Slurm a delay holds for the jobs that follow it, until the next delay.
            (When::After { minutes }, Some((job, delay))) => {
                *minutes = delay.parse().map_err(|_| wrong())?;
                job
            }
            _ => job,
        };
        let job = job.parse().map_err(|_| wrong())?;
        on.push(Dependency::On { when, job });
    }
    Ok(())
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::On { when, job } = self else {
            return f.write_str("singleton");
        };
        match when {
            When::After { minutes: 0 } => write!(f, "after:{job}"),
            When::After { minutes } => write!(f, "after:{job}+{minutes}"),
            When::AfterAny => write!(f, "afterany:{job}"),
            When::AfterOk => write!(f, "afterok:{job}"),
            When::AfterNotOk => write!(f, "afternotok:{job}"),
            When::AfterCorr => write!(f, "aftercorr:{job}"),
        }
    }
}

/// As `squeue` and `scontrol` write what is still waited for.
impl fmt::Display for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = if self.is_any_enough { "?" } else { "," };
        for (index, dependency) in self.on.iter().enumerate() {
            let between = if index == 0 { "" } else { between };
            write!(f, "{between}{dependency}(unfulfilled)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_written_as_in_slurm() {
        for (text, wanted) in [
            ("afterok:1", "afterok:1"),
            ("AFTEROK:1", "afterok:1"),
            ("afterany:1:2", "afterany:1,afterany:2"),
            ("after:1+5", "after:1+5"),
            ("after:1+5:2", "after:1+5,after:2+5"),
            ("aftercorr:1_2", "aftercorr:1_2"),
            ("afterok:1_*", "afterok:1_*"),
            ("singleton", "singleton"),
            ("singleton,afternotok:1", "singleton,afternotok:1"),
            ("afterok:1?afterany:2", "afterok:1?afterany:2"),
        ] {
            let read: Dependencies = text.parse().unwrap();
            assert_eq!(read.to_string().replace("(unfulfilled)", ""), wanted);
        }
    }

    #[test]
    fn what_is_no_dependency_is_refused() {
        for text in [
            "",
            "afterok",
            "afterok:",
            "afterok:x",
            "foo:1",
            "afterok:1,",
            ",afterok:1",
            "afterok:1 ",
            "afterok:1:",
            "afterok:0",
            "singleton:1",
            "after:1+x",
            "expand:1",
            "afterok:1+5",
            "afterok:1,afterany:2?after:2",
            "afterburstbuffer:1",
        ] {
            assert!(text.parse::<Dependencies>().is_err(), "{text}");
        }
    }
}
