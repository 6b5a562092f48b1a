//! How people name jobs: `12`, `12_3` for a task of an array, `12_[1-5]` for several, `12_*` for all.

use std::fmt;
use std::str::FromStr;

use crate::UsageError;
use crate::array::Array;
use crate::row::Member;

/// Which tasks of an array are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tasks {
    These(Array),
    /// `12_*`
    Every,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRef {
    pub id: u64,
    /// None for the whole job.
    pub tasks: Option<Tasks>,
}

impl JobRef {
    /// Whether the job of this number, or the tasks that it stands for, are among those that are meant.
    pub fn means(&self, id: u64, member: Option<&Member>) -> bool {
        let is_whole = self.id == id && self.tasks.is_none();
        let Some(member) = member else {
            return is_whole;
        };
        let is_among = match (&self.tasks, member) {
            (None | Some(Tasks::Every), _) => true,
            (Some(Tasks::These(wanted)), Member::Task { index, .. }) => wanted.contains(*index),
            (Some(Tasks::These(wanted)), Member::Waiting { tasks, .. }) => {
                wanted.indices().any(|index| tasks.contains(index))
            }
        };
        is_whole || (self.id == member.array() && is_among)
    }
}

impl FromStr for JobRef {
    type Err = UsageError;

    fn from_str(text: &str) -> Result<Self, UsageError> {
        let wrong = || UsageError::JobId(text.to_owned());
        let (id, tasks) = match text.split_once('_') {
            Some((id, "*")) => (id, Some(Tasks::Every)),
            Some((id, tasks)) => {
                let is_list = tasks.starts_with('[') && tasks.ends_with(']');
                let is_index = tasks.bytes().all(|byte| byte.is_ascii_digit());
                if !is_list && !is_index {
                    return Err(wrong());
                }
                (id, Some(Tasks::These(tasks.parse().map_err(|_| wrong())?)))
            }
            None => (text, None),
        };
        if !id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let id = id.parse().ok().filter(|id| *id > 0).ok_or_else(wrong)?;
        Ok(Self { id, tasks })
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tasks {
            None => write!(f, "{}", self.id),
            Some(Tasks::Every) => write!(f, "{}_*", self.id),
            Some(Tasks::These(tasks)) if tasks.len() == 1 => {
                write!(f, "{}_{}", self.id, tasks.first())
            }
            Some(Tasks::These(tasks)) => write!(f, "{}_[{tasks}]", self.id),
        }
    }
}

/// A list such as `12,13_[1-5,7],14`: the commas inside brackets part indices, not jobs.
pub fn list(text: &str) -> Result<Vec<JobRef>, UsageError> {
    let mut jobs = Vec::new();
    let (mut start, mut is_open) = (0, false);
    for (at, character) in text.char_indices().chain([(text.len(), ',')]) {
        match character {
            '[' => is_open = true,
            ']' => is_open = false,
            ',' if !is_open || at == text.len() => {
                let job = text[start..at].trim();
                if !job.is_empty() {
                    jobs.push(job.parse()?);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_tasks_of_arrays_are_named_as_in_slurm() {
        for (text, wanted) in [
            ("12", "12"),
            ("12_3", "12_3"),
            ("12_[1-5]", "12_[1-5]"),
            ("12_[1,2,7]", "12_[1-2,7]"),
            ("12_*", "12_*"),
        ] {
            assert_eq!(text.parse::<JobRef>().unwrap().to_string(), wanted);
        }
        let jobs = list("12,13_[1-5,7],14_2").unwrap();
        let jobs: Vec<_> = jobs.iter().map(JobRef::to_string).collect();
        assert_eq!(jobs, ["12", "13_[1-5,7]", "14_2"]);
    }

    #[test]
    fn what_names_no_job_is_refused() {
        for text in [
            "", "abc", "0", "-1", "1 2", "1-3", "1_[1-", "1_x", "5.0", "5+1", "1_1-2",
        ] {
            let error = text.parse::<JobRef>().unwrap_err();
            assert_eq!(error, UsageError::JobId(text.to_owned()));
        }
    }
}
