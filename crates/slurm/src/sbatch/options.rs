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

const LAYOUT: &str = "Berth places tasks itself; ask for what they need with --ntasks, --cpus-per-task and --ntasks-per-node";
const AS_OTHERS: &str = "sign in as the person the job is for";
const ONE_CLUSTER: &str = "there is one queue; name a partition with --partition";
const BURST: &str = "there are no burst buffers; copy the files in the script";
const TUNING: &str = "nodes are not tuned per job; leave it out";

/// In the order of the alphabet, as `sbatch --help` knows them.
pub const OPTIONS: &[Opt<Support>] = &[
    Opt::new("account", Some('A'), Value, Full(Key::Account)),
    Opt::new(
        "acctg-freq",
        None,
        Value,
        Refused("usage is always measured; leave it out"),
    ),
    Opt::new("array", Some('a'), Value, Full(Key::Array)),
    Opt::new(
        "batch",
        None,
        Value,
        Refused("the script runs on the first node of the job; leave it out"),
    ),
    Opt::new("bb", None, Value, Refused(BURST)),
    Opt::new("bbf", None, Value, Refused(BURST)),
    Opt::new("begin", Some('b'), Value, Full(Key::Begin)),
    Opt::new("chdir", Some('D'), Value, Full(Key::Chdir)),
    Opt::new("cluster-constraint", None, Value, Refused(ONE_CLUSTER)),
    Opt::new("clusters", Some('M'), Value, Refused(ONE_CLUSTER)),
    Opt::new("cluster", None, Value, Refused(ONE_CLUSTER)),
    Opt::new("comment", None, Value, Full(Key::Comment)),
    Opt::new("constraint", Some('C'), Value, Full(Key::Constraint)),
    Opt::new(
        "container",
        None,
        Value,
        Refused("start the container in the script"),
    ),
    Opt::new("context", None, Value, Refused(AS_OTHERS)),
    Opt::new(
        "contiguous",
        None,
        Nothing,
        Refused("Berth chooses the nodes; leave it out"),
    ),
    Opt::new("core-spec", Some('S'), Value, Refused(TUNING)),
    Opt::new("cores-per-socket", None, Value, Refused(LAYOUT)),
    Opt::new("cpu-freq", None, Value, Refused(TUNING)),
    Opt::new(
        "cpus-per-gpu",
        None,
        Value,
        Refused("use --cpus-per-task with --gpus-per-task"),
    ),
    Opt::new("cpus-per-task", Some('c'), Value, Full(Key::CpusPerTask)),
    Opt::new("deadline", None, Value, Full(Key::Deadline)),
    Opt::new(
        "delay-boot",
        None,
        Value,
        Refused("use --begin to start later"),
    ),
    Opt::new("dependency", Some('d'), Value, Full(Key::Dependency)),
    Opt::new("distribution", Some('m'), Value, Refused(LAYOUT)),
    Opt::new("error", Some('e'), Value, Full(Key::Error)),
    Opt::new("exclude", Some('x'), Value, Full(Key::Exclude)),
    Opt::new("exclusive", None, Perhaps, Full(Key::Exclusive)),
    Opt::new("export", None, Value, Full(Key::Export)),
    Opt::new(
        "export-file",
        None,
        Value,
        Refused("source the file in the script, or name the variables with --export"),
    ),
    Opt::new("extra-node-info", Some('B'), Value, Refused(LAYOUT)),
    Opt::new(
        "get-user-env",
        None,
        Perhaps,
        Refused("begin the script with `#!/bin/bash -l`"),
    ),
    Opt::new("gid", None, Value, Refused(AS_OTHERS)),
    Opt::new(
        "gpu-bind",
        None,
        Value,
        Refused("each task sees its own GPUs with --gpus-per-task"),
    ),
    Opt::new("gpu-freq", None, Value, Refused(TUNING)),
    Opt::new("gpus", Some('G'), Value, Full(Key::Gpus)),
    Opt::new("gpus-per-node", None, Value, Full(Key::GpusPerNode)),
    Opt::new(
        "gpus-per-socket",
        None,
        Value,
        Refused("use --gpus-per-node or --gpus-per-task"),
    ),
    Opt::new("gpus-per-task", None, Value, Full(Key::GpusPerTask)),
    Opt::new("gres", None, Value, Full(Key::Gres)),
    Opt::new(
        "gres-flags",
        None,
        Value,
        Refused("GPUs are given near their CPUs already; leave it out"),
    ),
    Opt::new("help", Some('h'), Nothing, Full(Key::Help)),
    Opt::new("hint", None, Value, Refused(LAYOUT)),
    Opt::new("hold", Some('H'), Nothing, Full(Key::Hold)),
    Opt::new("ignore-pbs", None, Nothing, Full(Key::IgnorePbs)),
    Opt::new("input", Some('i'), Value, Full(Key::Input)),
    Opt::new("job-name", Some('J'), Value, Full(Key::JobName)),
    Opt::new(
        "kill-on-invalid-dep",
        None,
        Value,
        Refused("a job whose dependency can never be met stays and says so; end it with scancel"),
    ),
    Opt::new(
        "licenses",
        Some('L'),
        Value,
        Refused("ask for counted resources with --gres=name:number"),
    ),
    Opt::new("mail-type", None, Value, Full(Key::MailType)),
    Opt::new("mail-user", None, Value, Full(Key::MailUser)),
    Opt::new(
        "mcs-label",
        None,
        Value,
        Refused("there are no security labels; leave it out"),
    ),
    Opt::new("mem", None, Value, Full(Key::Mem)),
    Opt::new("mem-bind", None, Value, Refused(LAYOUT)),
    Opt::new("mem-per-cpu", None, Value, Full(Key::MemPerCpu)),
    Opt::new("mem-per-gpu", None, Value, Full(Key::MemPerGpu)),
    Opt::new(
        "mincpus",
        None,
        Value,
        Refused("use --ntasks-per-node and --cpus-per-task"),
    ),
    Opt::new("network", None, Value, Refused(TUNING)),
    Opt::new("nice", None, Perhaps, Full(Key::Nice)),
    Opt::new(
        "no-kill",
        Some('k'),
        Perhaps,
        Refused("a job ends when one of its nodes fails; use --requeue to start again"),
    ),
    Opt::new("no-requeue", None, Nothing, Full(Key::NoRequeue)),
    Opt::new(
        "nodefile",
        Some('F'),
        Value,
        Refused("Berth chooses the nodes; leave it out"),
    ),
    Opt::new("nodelist", Some('w'), Value, Full(Key::Nodelist)),
    Opt::new("nodes", Some('N'), Value, Full(Key::Nodes)),
    Opt::new("ntasks", Some('n'), Value, Full(Key::Ntasks)),
    Opt::new("ntasks-per-core", None, Value, Refused(LAYOUT)),
    Opt::new(
        "ntasks-per-gpu",
        None,
        Value,
        Refused("use --gpus-per-task"),
    ),
    Opt::new("ntasks-per-node", None, Value, Full(Key::NtasksPerNode)),
    Opt::new("ntasks-per-socket", None, Value, Refused(LAYOUT)),
    Opt::new(
        "ntasks-per-tres",
        None,
        Value,
        Refused("use --gpus-per-task"),
    ),
    Opt::new("open-mode", None, Value, Full(Key::OpenMode)),
    Opt::new("output", Some('o'), Value, Full(Key::Output)),
    Opt::new(
        "overcommit",
        Some('O'),
        Nothing,
        Refused("ask for fewer CPUs with --cpus-per-task"),
    ),
    Opt::new(
        "oversubscribe",
        Some('s'),
        Nothing,
        Refused("jobs share nodes already; leave it out"),
    ),
    Opt::new("parsable", None, Nothing, Full(Key::Parsable)),
    Opt::new("partition", Some('p'), Value, Full(Key::Partition)),
    Opt::new("power", None, Value, Refused(TUNING)),
    Opt::new(
        "prefer",
        None,
        Value,
        Refused("name the model of the GPUs with --gpus"),
    ),
    Opt::new("priority", None, Value, Full(Key::Priority)),
    Opt::new(
        "profile",
        None,
        Value,
        Refused("usage is always measured; leave it out"),
    ),
    Opt::new(
        "propagate",
        None,
        Perhaps,
        Refused("set limits with ulimit in the script"),
    ),
    Opt::new("qos", Some('q'), Value, Full(Key::Qos)),
    Opt::new("quiet", Some('Q'), Nothing, Full(Key::Quiet)),
    Opt::new(
        "reboot",
        None,
        Nothing,
        Refused("ask an admin to restart the node"),
    ),
    Opt::new("requeue", None, Nothing, Full(Key::Requeue)),
    Opt::new("reservation", None, Value, Full(Key::Reservation)),
    Opt::new("signal", None, Value, Full(Key::Signal)),
    Opt::new("sockets-per-node", None, Value, Refused(LAYOUT)),
    Opt::new(
        "spread-job",
        None,
        Nothing,
        Refused("ask for more nodes with --nodes"),
    ),
    Opt::new("switches", None, Value, Full(Key::Switches)),
    Opt::new("tasks-per-node", None, Value, Full(Key::NtasksPerNode)),
    Opt::new("test-only", None, Nothing, Full(Key::TestOnly)),
    Opt::new("thread-spec", None, Value, Refused(TUNING)),
    Opt::new("threads-per-core", None, Value, Refused(LAYOUT)),
    Opt::new("time", Some('t'), Value, Full(Key::Time)),
    Opt::new("time-min", None, Value, Full(Key::TimeMin)),
    Opt::new(
        "tmp",
        None,
        Value,
        Refused("ask for scratch space with --gres where the nodes offer it"),
    ),
    Opt::new("uid", None, Value, Refused(AS_OTHERS)),
    Opt::new("usage", None, Nothing, Full(Key::Usage)),
    Opt::new(
        "use-min-nodes",
        None,
        Nothing,
        Refused("ask for that number of nodes with --nodes"),
    ),
    Opt::new("verbose", Some('v'), Nothing, Full(Key::Verbose)),
    Opt::new("version", Some('V'), Nothing, Full(Key::Version)),
    Opt::new("wait", Some('W'), Nothing, Full(Key::Wait)),
    Opt::new(
        "wait-all-nodes",
        None,
        Value,
        Refused("a job starts when all of its nodes are ready; leave it out"),
    ),
    Opt::new(
        "wckey",
        None,
        Value,
        Refused("name what the job is for with --account"),
    ),
    Opt::new("wrap", None, Value, Full(Key::Wrap)),
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
