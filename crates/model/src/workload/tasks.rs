//! A set of task numbers, written as ranges (`0-99,200`): an array of a hundred thousand takes a few bytes.

use std::fmt;
use std::str::FromStr;

/// Disjoint, ascending, never touching each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tasks(Vec<(u32, u32)>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TasksError {
    #[error("`{0}` is not a set of tasks: write it like `0-99`, `1,3,5` or `0-30:2`")]
    Shape(String),
    #[error("an array has at most {} tasks, and this has {has}", Tasks::MAX)]
    TooMany { has: u64 },
}

impl Tasks {
    pub const MAX: u64 = 100_000;
    /// More than any set of that many tasks takes.
    const TEXT_MAX: usize = 1_000_000;
    /// The most ranges that may be asked for: a set of odd numbers is long to write, and written often.
    pub const RANGES_MAX: usize = 1000;

    pub fn none() -> Tasks {
        Tasks(Vec::new())
    }

    pub fn one(task: u32) -> Tasks {
        Tasks(vec![(task, task)])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> u64 {
        self.0
            .iter()
            .map(|(from, to)| u64::from(to - from) + 1)
            .sum()
    }

    pub fn ranges(&self) -> usize {
        self.0.len()
    }

    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|(from, _)| *from)
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(from, to)| *from..=*to)
    }

    pub fn contains(&self, task: u32) -> bool {
        let at = self.0.partition_point(|(_, to)| *to < task);
        self.0.get(at).is_some_and(|(from, _)| *from <= task)
    }

    /// Takes one out; says whether it was there.
    pub fn remove(&mut self, task: u32) -> bool {
        let at = self.0.partition_point(|(_, to)| *to < task);
        let Some((from, to)) = self.0.get(at).copied().filter(|(from, _)| *from <= task) else {
            return false;
        };
        let before = (from < task).then(|| (from, task - 1));
        let after = (task < to).then(|| (task + 1, to));
        self.0.splice(at..=at, before.into_iter().chain(after));
        true
    }

    /// Takes these out, whether or not they were there.
    pub fn remove_all(&mut self, others: &Tasks) {
        let mut left = Vec::new();
        let mut others = others.0.iter().copied().peekable();
        for (mut from, to) in self.0.drain(..) {
            let mut is_left = true;
            while let Some((first, last)) = others.peek().copied().filter(|(first, _)| *first <= to)
            {
                if last >= from {
                    if first > from {
                        left.push((from, first - 1));
                    }
                    if last >= to {
                        is_left = false;
                        break;
                    }
                    from = last + 1;
                }
                others.next();
            }
            if is_left {
                left.push((from, to));
            }
        }
        self.0 = left;
    }

    pub fn insert(&mut self, task: u32) {
        if self.contains(task) {
            return;
        }
        let at = self.0.partition_point(|(_, to)| *to < task);
        let joins_before = at > 0 && self.0[at - 1].1.checked_add(1) == Some(task);
        let joins_after = self
            .0
            .get(at)
            .is_some_and(|(from, _)| task.checked_add(1) == Some(*from));
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = task,
            (false, true) => self.0[at].0 = task,
            (false, false) => self.0.insert(at, (task, task)),
        }
    }
}

impl FromIterator<u32> for Tasks {
    fn from_iter<I: IntoIterator<Item = u32>>(all: I) -> Tasks {
        let mut tasks = Tasks::none();
        all.into_iter().for_each(|task| tasks.insert(task));
        tasks
    }
}

impl FromStr for Tasks {
    type Err = TasksError;
    fn from_str(text: &str) -> Result<Tasks, TasksError> {
        let shape = || TasksError::Shape(text.chars().take(64).collect());
        if text.len() > Tasks::TEXT_MAX {
            return Err(shape());
        }
        if text.is_empty() {
            return Ok(Tasks::none());
        }
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| shape());
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut count: u64 = 0;
        for part in text.split(',') {
            let (range, step) = part
                .split_once(':')
                .map_or((part, None), |(range, step)| (range, Some(step)));
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let (from, to) = (number(from)?, number(to)?);
            let step = step.map_or(Ok(1), number)?;
            if to < from || step == 0 {
                return Err(shape());
            }
            count += u64::from(to - from) / u64::from(step) + 1;
            if count > Tasks::MAX {
                return Err(TasksError::TooMany { has: count });
            }
            match step {
                1 => ranges.push((from, to)),
                step => ranges.extend((from..=to).step_by(step as usize).map(|one| (one, one))),
            }
        }
        ranges.sort_unstable();
        let mut tasks: Vec<(u32, u32)> = Vec::new();
        for (from, to) in ranges {
            match tasks.last_mut() {
                Some(last) if u64::from(from) <= u64::from(last.1) + 1 => last.1 = last.1.max(to),
                _ => tasks.push((from, to)),
            }
        }
        Ok(Tasks(tasks))
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (from, to)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match from == to {
                true => write!(f, "{comma}{from}")?,
                false => write!(f, "{comma}{from}-{to}")?,
            }
        }
        Ok(())
    }
}

impl TryFrom<String> for Tasks {
    type Error = TasksError;
    fn try_from(text: String) -> Result<Tasks, TasksError> {
        text.parse()
    }
}

impl From<Tasks> for String {
    fn from(tasks: Tasks) -> String {
        tasks.to_string()
    }
}

impl utoipa::PartialSchema for Tasks {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .max_length(Some(10_000))
            .pattern(Some(
                "^([0-9]+(-[0-9]+)?(:[0-9]+)?(,[0-9]+(-[0-9]+)?(:[0-9]+)?)*)?$",
            ))
            .examples(["0-99"])
            .into()
    }
}
impl utoipa::ToSchema for Tasks {}
