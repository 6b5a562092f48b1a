//! Every option of `sbatch`, and what Berth makes of it. Nothing that Slurm knows is passed over in silence.

use crate::argv::{Opt, Takes};

/// An option that Berth understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Account,
    Array,
    Begin,
    Chdir,
    Comment,
    Constraint,
    CpusPerTask,
    Deadline,
    Dependency,
    Error,
    Exclude,
    Exclusive,
    Export,
    Gpus,
    GpusPerNode,
    GpusPerTask,
    Gres,
    Help,
    Hold,
    IgnorePbs,
    Input,
    JobName,
    MailType,
    MailUser,
    Mem,
    MemPerCpu,
    MemPerGpu,
    Nice,
    NoRequeue,
    Nodelist,
    Nodes,
    Ntasks,
    NtasksPerNode,
    OpenMode,
    Output,
    Parsable,
    Partition,
    Priority,
    Qos,
    Quiet,
    Requeue,
    Reservation,
    Signal,
    Switches,
    TestOnly,
    Time,
    TimeMin,
    Usage,
    Verbose,
    Version,
    Wait,
    Wrap,
}

/// What Berth does with an option of Slurm's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Full(Key),
    /// It is refused, with what to do instead.
    Refused(&'static str),
}

use Support::{Full, Refused};
use Takes::{Nothing, Perhaps, Value};

const fn opt(long: &'static str, takes: Takes, key: Support) -> Opt<Support> {
    Opt {
        long,
        short: None,
        takes,
        key,
    }
}

const fn short(short: char, long: &'static str, takes: Takes, key: Support) -> Opt<Support> {
    Opt {
        long,
        short: Some(short),
        takes,
        key,
    }
}

const LAYOUT: &str = "Berth places tasks itself; ask for what they need with --ntasks, --cpus-per-task and --ntasks-per-node";
const AS_OTHERS: &str = "sign in as the person the job is for";
const ONE_CLUSTER: &str = "there is one queue; name a partition with --partition";
const BURST: &str = "there are no burst buffers; copy the files in the script";
const TUNING: &str = "nodes are not tuned per job; leave it out";

/// In the order of the alphabet, as `sbatch --help` knows them.
pub const OPTIONS: &[Opt<Support>] = &[
    short('A', "account", Value, Full(Key::Account)),
    opt(
        "acctg-freq",
        Value,
        Refused("usage is always measured; leave it out"),
    ),
    short('a', "array", Value, Full(Key::Array)),
    opt(
        "batch",
        Value,
        Refused("the script runs on the first node of the job; use --constraint for all of them"),
    ),
    opt("bb", Value, Refused(BURST)),
    opt("bbf", Value, Refused(BURST)),
    short('b', "begin", Value, Full(Key::Begin)),
    short('D', "chdir", Value, Full(Key::Chdir)),
    opt("cluster-constraint", Value, Refused(ONE_CLUSTER)),
    short('M', "clusters", Value, Refused(ONE_CLUSTER)),
    opt("cluster", Value, Refused(ONE_CLUSTER)),
    opt("comment", Value, Full(Key::Comment)),
    short('C', "constraint", Value, Full(Key::Constraint)),
    opt(
        "container",
        Value,
        Refused("start the container in the script"),
    ),
    opt("context", Value, Refused(AS_OTHERS)),
    opt(
        "contiguous",
        Nothing,
        Refused("use --switches to keep nodes close to each other"),
    ),
    short('S', "core-spec", Value, Refused(TUNING)),
    opt("cores-per-socket", Value, Refused(LAYOUT)),
    opt("cpu-freq", Value, Refused(TUNING)),
    opt(
        "cpus-per-gpu",
        Value,
        Refused("use --cpus-per-task with --gpus-per-task"),
    ),
    short('c', "cpus-per-task", Value, Full(Key::CpusPerTask)),
    opt("deadline", Value, Full(Key::Deadline)),
    opt("delay-boot", Value, Refused("use --begin to start later")),
    short('d', "dependency", Value, Full(Key::Dependency)),
    short('m', "distribution", Value, Refused(LAYOUT)),
    short('e', "error", Value, Full(Key::Error)),
    short('x', "exclude", Value, Full(Key::Exclude)),
    opt("exclusive", Perhaps, Full(Key::Exclusive)),
    opt("export", Value, Full(Key::Export)),
    opt(
        "export-file",
        Value,
        Refused("source the file in the script, or name the variables with --export"),
    ),
    short('B', "extra-node-info", Value, Refused(LAYOUT)),
    opt(
        "get-user-env",
        Perhaps,
        Refused("begin the script with `#!/bin/bash -l`"),
    ),
    opt("gid", Value, Refused(AS_OTHERS)),
    opt(
        "gpu-bind",
        Value,
        Refused("each task sees its own GPUs with --gpus-per-task"),
    ),
    opt("gpu-freq", Value, Refused(TUNING)),
    short('G', "gpus", Value, Full(Key::Gpus)),
    opt("gpus-per-node", Value, Full(Key::GpusPerNode)),
    opt(
        "gpus-per-socket",
        Value,
        Refused("use --gpus-per-node or --gpus-per-task"),
    ),
    opt("gpus-per-task", Value, Full(Key::GpusPerTask)),
    opt("gres", Value, Full(Key::Gres)),
    opt(
        "gres-flags",
        Value,
        Refused("GPUs are given near their CPUs already; leave it out"),
    ),
    short('h', "help", Nothing, Full(Key::Help)),
    opt("hint", Value, Refused(LAYOUT)),
    short('H', "hold", Nothing, Full(Key::Hold)),
    opt("ignore-pbs", Nothing, Full(Key::IgnorePbs)),
    short('i', "input", Value, Full(Key::Input)),
    short('J', "job-name", Value, Full(Key::JobName)),
    opt(
        "kill-on-invalid-dep",
        Value,
        Refused("a job whose dependency can never be met stays and says so; end it with scancel"),
    ),
    short(
        'L',
        "licenses",
        Value,
        Refused("ask for counted resources with --gres=name:number"),
    ),
    opt("mail-type", Value, Full(Key::MailType)),
    opt("mail-user", Value, Full(Key::MailUser)),
    opt(
        "mcs-label",
        Value,
        Refused("use --exclusive to keep others off the nodes"),
    ),
    opt("mem", Value, Full(Key::Mem)),
    opt("mem-bind", Value, Refused(LAYOUT)),
    opt("mem-per-cpu", Value, Full(Key::MemPerCpu)),
    opt("mem-per-gpu", Value, Full(Key::MemPerGpu)),
    opt(
        "mincpus",
        Value,
        Refused("use --ntasks-per-node and --cpus-per-task"),
    ),
    opt("network", Value, Refused(TUNING)),
    opt("nice", Perhaps, Full(Key::Nice)),
    short(
        'k',
        "no-kill",
        Perhaps,
        Refused("a job ends when one of its nodes fails; use --requeue to start again"),
    ),
    opt("no-requeue", Nothing, Full(Key::NoRequeue)),
    short(
        'F',
        "nodefile",
        Value,
        Refused("name the nodes with --nodelist"),
    ),
    short('w', "nodelist", Value, Full(Key::Nodelist)),
    short('N', "nodes", Value, Full(Key::Nodes)),
    short('n', "ntasks", Value, Full(Key::Ntasks)),
    opt("ntasks-per-core", Value, Refused(LAYOUT)),
    opt("ntasks-per-gpu", Value, Refused("use --gpus-per-task")),
    opt("ntasks-per-node", Value, Full(Key::NtasksPerNode)),
    opt("ntasks-per-socket", Value, Refused(LAYOUT)),
    opt("ntasks-per-tres", Value, Refused("use --gpus-per-task")),
    opt("open-mode", Value, Full(Key::OpenMode)),
    short('o', "output", Value, Full(Key::Output)),
    short(
        'O',
        "overcommit",
        Nothing,
        Refused("ask for fewer CPUs with --cpus-per-task"),
    ),
    short(
        's',
        "oversubscribe",
        Nothing,
        Refused("jobs share nodes already; ask for a part of a GPU with --gres"),
    ),
    opt("parsable", Nothing, Full(Key::Parsable)),
    short('p', "partition", Value, Full(Key::Partition)),
    opt("power", Value, Refused(TUNING)),
    opt(
        "prefer",
        Value,
        Refused("use --constraint for what the job needs"),
    ),
    opt("priority", Value, Full(Key::Priority)),
    opt(
        "profile",
        Value,
        Refused("usage is always measured; leave it out"),
    ),
    opt(
        "propagate",
        Perhaps,
        Refused("set limits with ulimit in the script"),
    ),
    short('q', "qos", Value, Full(Key::Qos)),
    short('Q', "quiet", Nothing, Full(Key::Quiet)),
    opt(
        "reboot",
        Nothing,
        Refused("ask an admin to restart the node"),
    ),
    opt("requeue", Nothing, Full(Key::Requeue)),
    opt("reservation", Value, Full(Key::Reservation)),
    opt("signal", Value, Full(Key::Signal)),
    opt("sockets-per-node", Value, Refused(LAYOUT)),
    opt(
        "spread-job",
        Nothing,
        Refused("ask for more nodes with --nodes"),
    ),
    opt("switches", Value, Full(Key::Switches)),
    opt("tasks-per-node", Value, Full(Key::NtasksPerNode)),
    opt("test-only", Nothing, Full(Key::TestOnly)),
    opt("thread-spec", Value, Refused(TUNING)),
    opt("threads-per-core", Value, Refused(LAYOUT)),
    short('t', "time", Value, Full(Key::Time)),
    opt("time-min", Value, Full(Key::TimeMin)),
    opt(
        "tmp",
        Value,
        Refused("ask for scratch space with --gres where the nodes offer it"),
    ),
    opt("uid", Value, Refused(AS_OTHERS)),
    opt("usage", Nothing, Full(Key::Usage)),
    opt(
        "use-min-nodes",
        Nothing,
        Refused("ask for that number of nodes with --nodes"),
    ),
    short('v', "verbose", Nothing, Full(Key::Verbose)),
    short('V', "version", Nothing, Full(Key::Version)),
    short('W', "wait", Nothing, Full(Key::Wait)),
    opt(
        "wait-all-nodes",
        Value,
        Refused("a job starts when all of its nodes are ready; leave it out"),
    ),
    opt(
        "wckey",
        Value,
        Refused("name what the job is for with --account or --comment"),
    ),
    opt("wrap", Value, Full(Key::Wrap)),
];

/// How a variable of the environment stands for an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Its value is the option's.
    Value,
    /// That it is there is enough.
    Flag,
}

/// The variables that `sbatch` reads, and the options that they stand for.
pub const VARIABLES: &[(&str, &str, Variable)] = &[
    ("SBATCH_ACCOUNT", "account", Variable::Value),
    ("SBATCH_ACCTG_FREQ", "acctg-freq", Variable::Value),
    ("SBATCH_ARRAY_INX", "array", Variable::Value),
    ("SBATCH_BATCH", "batch", Variable::Value),
    ("SBATCH_CLUSTERS", "clusters", Variable::Value),
    ("SLURM_CLUSTERS", "clusters", Variable::Value),
    ("SBATCH_CONSTRAINT", "constraint", Variable::Value),
    ("SBATCH_CONTAINER", "container", Variable::Value),
    ("SBATCH_CORE_SPEC", "core-spec", Variable::Value),
    ("SBATCH_CPUS_PER_GPU", "cpus-per-gpu", Variable::Value),
    ("SBATCH_DELAY_BOOT", "delay-boot", Variable::Value),
    ("SBATCH_DISTRIBUTION", "distribution", Variable::Value),
    ("SBATCH_ERROR", "error", Variable::Value),
    ("SBATCH_EXCLUSIVE", "exclusive", Variable::Value),
    ("SBATCH_EXPORT", "export", Variable::Value),
    ("SBATCH_GET_USER_ENV", "get-user-env", Variable::Value),
    ("SBATCH_GPU_BIND", "gpu-bind", Variable::Value),
    ("SBATCH_GPU_FREQ", "gpu-freq", Variable::Value),
    ("SBATCH_GPUS", "gpus", Variable::Value),
    ("SBATCH_GPUS_PER_NODE", "gpus-per-node", Variable::Value),
    ("SBATCH_GPUS_PER_TASK", "gpus-per-task", Variable::Value),
    ("SBATCH_GRES", "gres", Variable::Value),
    ("SBATCH_GRES_FLAGS", "gres-flags", Variable::Value),
    ("SBATCH_HINT", "hint", Variable::Value),
    ("SLURM_HINT", "hint", Variable::Value),
    ("SBATCH_IGNORE_PBS", "ignore-pbs", Variable::Flag),
    ("SBATCH_INPUT", "input", Variable::Value),
    ("SBATCH_JOB_NAME", "job-name", Variable::Value),
    ("SBATCH_MEM_BIND", "mem-bind", Variable::Value),
    ("SBATCH_MEM_PER_CPU", "mem-per-cpu", Variable::Value),
    ("SBATCH_MEM_PER_GPU", "mem-per-gpu", Variable::Value),
    ("SBATCH_MEM_PER_NODE", "mem", Variable::Value),
    ("SBATCH_NETWORK", "network", Variable::Value),
    ("SBATCH_NO_KILL", "no-kill", Variable::Value),
    ("SBATCH_NO_REQUEUE", "no-requeue", Variable::Flag),
    ("SBATCH_OPEN_MODE", "open-mode", Variable::Value),
    ("SBATCH_OUTPUT", "output", Variable::Value),
    ("SBATCH_OVERCOMMIT", "overcommit", Variable::Flag),
    ("SBATCH_PARTITION", "partition", Variable::Value),
    ("SBATCH_POWER", "power", Variable::Value),
    ("SBATCH_PROFILE", "profile", Variable::Value),
    ("SBATCH_QOS", "qos", Variable::Value),
    ("SBATCH_REQ_SWITCH", "switches", Variable::Value),
    ("SBATCH_REQUEUE", "requeue", Variable::Flag),
    ("SBATCH_RESERVATION", "reservation", Variable::Value),
    ("SBATCH_SIGNAL", "signal", Variable::Value),
    ("SBATCH_SPREAD_JOB", "spread-job", Variable::Flag),
    ("SBATCH_THREAD_SPEC", "thread-spec", Variable::Value),
    (
        "SBATCH_THREADS_PER_CORE",
        "threads-per-core",
        Variable::Value,
    ),
    ("SBATCH_TIMELIMIT", "time", Variable::Value),
    ("SBATCH_USE_MIN_NODES", "use-min-nodes", Variable::Flag),
    ("SBATCH_WAIT", "wait", Variable::Flag),
    ("SBATCH_WAIT_ALL_NODES", "wait-all-nodes", Variable::Value),
    ("SBATCH_WCKEY", "wckey", Variable::Value),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_stands_for_an_option() {
        for (variable, option, _) in VARIABLES {
            assert!(
                OPTIONS.iter().any(|known| known.long == *option),
                "{variable}"
            );
        }
    }

    #[test]
    fn no_name_and_no_letter_is_taken_twice() {
        for (index, option) in OPTIONS.iter().enumerate() {
            for other in &OPTIONS[index + 1..] {
                assert_ne!(option.long, other.long);
                assert!(
                    option.short.is_none() || option.short != other.short,
                    "-{:?}",
                    option.short
                );
            }
        }
    }
}
