//! The process tree below a process: found through the parent ids, and killed.
//!
//! Only machines without a sandbox need this, because the end of a sandbox ends everything in it. A process that wants
//! to kill its tree first adopts orphans; then no process escapes by letting its parent exit.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::time::Duration;

use berth_model::RunId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Maximum that is read of a process's environment, which may have many megabytes.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;

/// From now on, orphans below this process become its own children.
pub fn take_in_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// Kills everything below this process.
pub async fn end_all() {
    let own = std::process::id().cast_signed();
    end(|| below(own, &processes())).await;
}

/// Kills every process with this run's id in its environment, for a run without any other trace.
pub async fn end_those_of(run: RunId) {
    let mark = format!("BERTH_RUN={run}");
    let is_marked = |process: &i32| {
        let environment = environment(*process).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == mark.as_bytes())
    };
    end(|| {
        let all = processes().into_iter();
        all.filter(|one| one.is_alive)
            .map(|one| one.id)
            .filter(is_marked)
            .collect()
    })
    .await;
}

/// Reads the beginning of a process's environment. The run's id is in it, because Berth's own variables come first.
fn environment(process: i32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{process}/environ"))?;
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Kills until none is left, because a process may start others before it dies.
async fn end(left: impl Fn() -> Vec<i32>) {
    for _ in 0..200 {
        let left = left();
        if left.is_empty() {
            return;
        }
        for process in left {
            kill(Pid::from_raw(process), Signal::SIGKILL).ok();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[derive(Debug, Clone, Copy)]
struct Process {
    id: i32,
    parent: i32,
    /// A zombie has ended but is still listed until its parent reaps it.
    is_alive: bool,
}

fn processes() -> Vec<Process> {
    let Ok(listed) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let process = |entry: io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        let id = name.to_str()?.parse().ok()?;
        read(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    };
    listed.filter_map(process).collect()
}

/// Parses a `stat` file. The program's name is in brackets, and may itself hold brackets and spaces.
fn read(id: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some(Process {
        id,
        is_alive: !matches!(fields.next()?, "Z" | "X"),
        parent: fields.next()?.parse().ok()?,
    })
}

fn below(root: i32, all: &[Process]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.id);
            if child.is_alive {
                found.push(child.id);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_is_found_whatever_it_calls_itself() {
        let listed = [
            (10, "10 (berth) S 1 10"),
            (11, "11 (a) b) S 10 11"),
            (12, "12 (sh) S 11 12"),
            (13, "13 (gone) Z 10 13"),
            (14, "14 (of somebody else) S 1 14"),
        ];
        let all: Vec<Process> = listed.map(|(id, stat)| read(id, stat).unwrap()).to_vec();
        let mut found = below(10, &all);
        found.sort_unstable();
        assert_eq!(found, [11, 12]);
    }
}
