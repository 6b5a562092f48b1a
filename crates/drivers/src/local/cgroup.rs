//! Resource limits that the kernel enforces on a run, and the run's usage: control groups of version 1 or 2.
//!
//! A run's reserved cores become its weight when cores are scarce; its maximum is a hard limit. If this server may not
//! write the machine's groups, runs have no such limits, and `berth doctor` says so.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::backend::Used;

use super::spec::Limits;

/// Where this machine's groups are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Groups {
    /// Version 2: one tree for everything.
    Two(PathBuf),
    /// Version 1: a tree for each of `cpu`, `cpuacct`, `memory`, `pids` and `freezer`.
    One(PathBuf),
}

/// The subgroup into which a server moves itself inside a group that was delegated to it.
const ASIDE: &str = "server";
const GUARANTEED: &str = "memory.low";
const TREES: [&str; 5] = ["cpu", "cpuacct", "memory", "pids", "freezer"];

impl Groups {
    /// Finds the groups that this machine has and this process may write.
    pub fn find() -> Option<Groups> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Groups::below(Path::new("/sys/fs/cgroup"), &own)
    }

    /// `own` is the kernel's list of the groups of this process.
    pub fn below(root: &Path, own: &str) -> Option<Groups> {
        if root.join("cgroup.controllers").exists() {
            // Root may write at the top; other users only in a group that was delegated to them.
            return two_below(root).or_else(|| {
                let delegated = delegated(root, own)?;
                move_aside(&delegated).ok()?;
                two_below(&delegated)
            });
        }
        for tree in TREES {
            fs::create_dir_all(root.join(tree).join("berth")).ok()?;
        }
        let memory = root.join("memory/berth/memory.limit_in_bytes");
        memory.exists().then(|| Groups::One(root.to_owned()))
    }

    pub fn words(&self) -> &'static str {
        match self {
            Groups::Two(_) => "control groups (version 2)",
            Groups::One(_) => "control groups (version 1)",
        }
    }

    /// The ancestor of the runs' groups with the least guaranteed memory, and how much that is in bytes. The kernel
    /// protects the memory of all runs together only up to that amount. `None` if no ancestor has such a limit.
    pub fn least_guarantee_above(&self) -> Option<(PathBuf, u64)> {
        let Groups::Two(all) = self else {
            return None;
        };
        let least = guarantees_above(all).min_by_key(|(_, bytes)| *bytes)?;
        Some((least.0.to_owned(), least.1))
    }

    pub fn group(&self, name: &str) -> Group {
        Group {
            groups: self.clone(),
            name: name.to_owned(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Group {
    groups: Groups,
    name: String,
}

impl Group {
    fn folder(&self, tree: &str) -> PathBuf {
        match &self.groups {
            Groups::Two(own) => own.join(&self.name),
            Groups::One(root) => root.join(tree).join("berth").join(&self.name),
        }
    }

    pub fn make(&self, limits: &Limits) -> io::Result<()> {
        match &self.groups {
            Groups::Two(_) => {
                let folder = self.folder("");
                fs::create_dir_all(&folder)?;
                let put = |name: &str, value: String| fs::write(folder.join(name), value);
                put("cpu.weight", weight_two(limits.cores_milli).to_string())?;
                put(
                    "cpu.max",
                    format!("{} 100000", limits.cores_milli_max.max(10) * 100),
                )?;
                put(GUARANTEED, limits.memory_bytes.to_string())?;
                put("memory.max", limits.memory_bytes_max.to_string())?;
                // Denies swap, if the machine has any.
                put("memory.swap.max", "0".to_owned()).ok();
                put("pids.max", limits.processes_max.to_string())?;
                self.guarantee_above()
            }
            Groups::One(_) => {
                for tree in TREES {
                    fs::create_dir_all(self.folder(tree))?;
                }
                let put = |tree: &str, name: &str, value: u64| {
                    fs::write(self.folder(tree).join(name), value.to_string())
                };
                put("cpu", "cpu.shares", weight_one(limits.cores_milli))?;
                put("cpu", "cpu.cfs_period_us", 100_000)?;
                put(
                    "cpu",
                    "cpu.cfs_quota_us",
                    limits.cores_milli_max.max(10) * 100,
                )?;
                put(
                    "memory",
                    "memory.soft_limit_in_bytes",
                    limits.memory_bytes.min(limits.memory_bytes_max),
                )?;
                put("memory", "memory.limit_in_bytes", limits.memory_bytes_max)?;
                // Swap counts as memory, if the kernel accounts for swap at all.
                put(
                    "memory",
                    "memory.memsw.limit_in_bytes",
                    limits.memory_bytes_max,
                )
                .ok();
                put("pids", "pids.max", limits.processes_max)
            }
        }
    }

    /// Moves a process into the group. Its later children are in the group, too.
    pub fn enter(&self, process: u32) -> io::Result<()> {
        let join =
            |tree: &str| fs::write(self.folder(tree).join("cgroup.procs"), process.to_string());
        match &self.groups {
            Groups::Two(_) => join(""),
            Groups::One(_) => TREES.iter().try_for_each(|tree| join(tree)),
        }
    }

    /// `None` if the group does not exist: then the usage is unknown, which is not zero.
    pub fn used(&self) -> Option<Used> {
        let tree = match &self.groups {
            Groups::Two(_) => "",
            Groups::One(_) => "memory",
        };
        if !self.folder(tree).exists() {
            return None;
        }
        let read = |tree: &str, name: &str| fs::read_to_string(self.folder(tree).join(name)).ok();
        let number = |tree: &str, name: &str| read(tree, name)?.trim().parse().ok();
        let field = |tree: &str, name: &str, field: &str| {
            let text = read(tree, name)?;
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            let (_, value) = lines.find(|(name, _)| *name == field)?;
            value.trim().parse().ok()
        };
        let used = match &self.groups {
            Groups::Two(_) => [
                field("", "cpu.stat", "usage_usec"),
                number("", "memory.current"),
                number("", "memory.peak"),
                field("", "memory.events", "oom_kill"),
            ],
            Groups::One(_) => [
                number("cpuacct", "cpuacct.usage").map(|nanos: u64| nanos / 1000),
                number("memory", "memory.usage_in_bytes"),
                number("memory", "memory.max_usage_in_bytes"),
                field("memory", "memory.oom_control", "oom_kill"),
            ],
        };
        let [cpu_us, memory_bytes, memory_peak_bytes, out_of_memory] =
            used.map(Option::unwrap_or_default);
        Some(Used {
            cpu_us,
            memory_bytes,
            memory_peak_bytes,
            out_of_memory,
        })
    }

    pub fn processes(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.folder("pids").join("cgroup.procs"));
        let text = text.unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills everything in the group. No process escapes, because new processes are in the group, too.
    pub fn kill(&self) {
        if let Groups::Two(_) = self.groups {
            fs::write(self.folder("").join("cgroup.kill"), "1").ok();
        }
        let state = self.folder("freezer").join("freezer.state");
        fs::write(&state, "FROZEN").ok();
        for process in self.processes() {
            let process = nix::unistd::Pid::from_raw(process);
            nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).ok();
        }
        fs::write(&state, "THAWED").ok();
    }

    /// Returns whether the group is gone. It stays until everything in it has ended.
    pub fn remove(&self) -> bool {
        let trees: &[&str] = match self.groups {
            Groups::Two(_) => &[""],
            Groups::One(_) => &TREES,
        };
        let gone = |tree: &&str| {
            let folder = self.folder(tree);
            !folder.exists() || fs::remove_dir(&folder).is_ok()
        };
        let is_gone = trees.iter().filter(|tree| !gone(tree)).count() == 0;
        if is_gone {
            self.guarantee_above().ok();
        }
        is_gone
    }

    /// Updates the guarantees above. The kernel protects a group's memory only up to the guarantees of the groups above
    /// it. Supervisors of several runs call this at the same time, and each must count all groups.
    fn guarantee_above(&self) -> io::Result<()> {
        let Groups::Two(all) = &self.groups else {
            return Ok(());
        };
        let _one_at_a_time = {
            let folder = fs::File::open(all)?;
            folder.lock()?;
            folder
        };
        let mut sum: u64 = 0;
        for entry in fs::read_dir(all)? {
            let guaranteed = fs::read_to_string(entry?.path().join(GUARANTEED));
            // A group may disappear while it is counted.
            let guaranteed = guaranteed.unwrap_or_default().trim().parse().unwrap_or(0);
            sum = sum.saturating_add(guaranteed);
        }
        fs::write(all.join(GUARANTEED), sum.to_string())?;
        raise_above(all, sum);
        Ok(())
    }
}

/// Raises the guarantees of the groups above, where this process may. An admin sets the limits of a delegated group and
/// of its ancestors, and may not let us raise them. `berth doctor` compares them.
fn raise_above(all: &Path, least: u64) {
    for (above, guaranteed) in guarantees_above(all) {
        if guaranteed < least {
            fs::write(above.join(GUARANTEED), least.to_string()).ok();
        }
    }
}

/// The groups above this one, each with its guaranteed memory. The root group has no such limit.
fn guarantees_above(all: &Path) -> impl Iterator<Item = (&Path, u64)> {
    let guarantee = |group: &Path| {
        let text = fs::read_to_string(group.join(GUARANTEED)).ok()?;
        match text.trim() {
            "max" => Some(u64::MAX),
            bytes => bytes.parse().ok(),
        }
    };
    let above = all.ancestors().skip(1);
    above.map_while(move |group| Some((group, guarantee(group)?)))
}

/// Makes the group of all runs in this group, if this process may.
fn two_below(base: &Path) -> Option<Groups> {
    let all = base.join("berth");
    fs::create_dir_all(&all).ok()?;
    for folder in [base, all.as_path()] {
        let wanted = "+cpu +memory +pids";
        fs::write(folder.join("cgroup.subtree_control"), wanted).ok()?;
    }
    Some(Groups::Two(all))
}

/// The group that was delegated to this process: its own, or its parent if the process has already moved aside.
fn delegated(root: &Path, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new(path);
    let is_within = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let path = match path.ends_with(ASIDE) {
        true => path.parent()?,
        false => path,
    };
    let group = root.join(path);
    // Only the root group has no type, and this process must not move the root group's processes.
    let is_group = is_within && group.join("cgroup.type").exists();
    is_group.then_some(group)
}

/// Moves the processes aside: a group with subgroups may have no processes of its own.
fn move_aside(delegated: &Path) -> io::Result<()> {
    let aside = delegated.join(ASIDE);
    fs::create_dir_all(&aside)?;
    let processes = fs::read_to_string(delegated.join("cgroup.procs"))?;
    for process in processes.lines() {
        // A process that has ended meanwhile needs no place.
        fs::write(aside.join("cgroup.procs"), process).ok();
    }
    Ok(())
}

/// A whole core weighs 1024, and no run weighs nothing.
fn weight_one(cores_milli: u64) -> u64 {
    (cores_milli * 1024 / 1000).clamp(2, 262_144)
}

/// A whole core weighs 100.
fn weight_two(cores_milli: u64) -> u64 {
    (cores_milli / 10).clamp(1, 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_one_tree_is_told_its_limits_in_that_trees_words() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu memory pids").unwrap();
        let groups = Groups::below(root.path(), "").unwrap();
        let group = groups.group("run");
        group
            .make(&Limits {
                cores_milli: 500,
                cores_milli_max: 2000,
                memory_bytes: 1 << 30,
                memory_bytes_max: 2 << 30,
                processes_max: 512,
            })
            .unwrap();
        let read =
            |name: &str| fs::read_to_string(root.path().join("berth/run").join(name)).unwrap();
        assert_eq!(read("cpu.max"), "200000 100000");
        assert_eq!(read("cpu.weight"), "50");
        assert_eq!(read("memory.low"), (1_u64 << 30).to_string());
        assert_eq!(read("memory.max"), (2_u64 << 30).to_string());
        assert_eq!(read("pids.max"), "512");
        group.enter(17).unwrap();
        assert_eq!(group.processes(), [17]);
        let events = root.path().join("berth/run/memory.events");
        fs::write(events, "low 0\noom 3\noom_kill 2\n").unwrap();
        assert_eq!(group.used().map(|used| used.out_of_memory), Some(2));
        assert_eq!(groups.group("gone").used(), None);
    }

    /// This kernel has no memory controller of version 2, so these trees are recorded ones.
    #[test]
    fn a_guarantee_holds_on_the_groups_above_and_goes_with_the_run() {
        println!(
            "SKIPPED on this kernel: guarantees of real groups of version 2; a recorded tree stands in for them"
        );
        let root = tempfile::tempdir().unwrap();
        let service = root.path().join("system.slice/berth.service");
        fs::create_dir_all(&service).unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu memory pids").unwrap();
        // Tests run as root, and root may write every file, so a folder stands for a file that may not be written.
        fs::create_dir(root.path().join("cgroup.subtree_control")).unwrap();
        fs::write(service.join("cgroup.procs"), "41\n42\n").unwrap();
        fs::write(service.join("cgroup.type"), "domain\n").unwrap();
        fs::write(service.join(GUARANTEED), "4096\n").unwrap();
        for own in ["", "0::/", "0::/../other", "1:name=systemd:/x"] {
            assert_eq!(Groups::below(root.path(), own), None, "{own}");
        }
        let slice = root.path().join("system.slice");
        fs::write(slice.join(GUARANTEED), "0\n").unwrap();
        let groups = Groups::below(root.path(), "0::/system.slice/berth.service\n").unwrap();
        assert_eq!(groups.least_guarantee_above(), Some((slice.clone(), 0)));
        let aside = fs::read_to_string(service.join("server/cgroup.procs")).unwrap();
        assert_eq!(aside, "42", "the last that was moved");
        let again = Groups::below(root.path(), "0::/system.slice/berth.service/server\n");
        assert_eq!(again, Some(groups.clone()));
        let limits = |memory_bytes| Limits {
            cores_milli: 500,
            cores_milli_max: 500,
            memory_bytes,
            memory_bytes_max: memory_bytes,
            processes_max: 512,
        };
        let guaranteed = |folder: &Path| fs::read_to_string(folder.join(GUARANTEED)).unwrap();
        groups.group("one").make(&limits(1 << 30)).unwrap();
        groups.group("two").make(&limits(2 << 30)).unwrap();
        assert_eq!(
            guaranteed(&service.join("berth")),
            (3_u64 << 30).to_string()
        );
        assert_eq!(guaranteed(&service), (3_u64 << 30).to_string());
        assert_eq!(guaranteed(&slice), (3_u64 << 30).to_string());
        fs::write(slice.join(GUARANTEED), "max\n").unwrap();
        let least = groups.least_guarantee_above();
        assert_eq!(least, Some((service.clone(), 3 << 30)));
        let at_the_top = Groups::Two(root.path().join("berth"));
        assert_eq!(at_the_top.least_guarantee_above(), None);
        // The kernel removes a group's files with the group, but not the files of a plain folder.
        let two = service.join("berth/two");
        for file in fs::read_dir(&two).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        assert!(groups.group("two").remove());
        assert_eq!(
            guaranteed(&service.join("berth")),
            (1_u64 << 30).to_string()
        );
        assert_eq!(
            guaranteed(&service),
            (3_u64 << 30).to_string(),
            "an admin may have set it"
        );
    }
}
