//! Takes options one after the other and holds what they add up to.

use jiff::{Timestamp, Zoned};

use super::batch::{Batch, Exclusive, Export, Mail, Manner, Memory, OpenMode, Signal, Switches};
use super::options::Key;
use crate::amount::{self, Gres};
use crate::argv::Given;
use crate::duration::TimeLimit;
use crate::hostlist;
use crate::moment::{self, Lean};
use crate::{UsageError, signal};

/// What Slurm lowers a job's priority by if `--nice` says nothing else.
const NICE: i32 = 100;
/// The largest and smallest adjustment.
const NICE_MAX: i32 = i32::MAX - 3;

pub(super) struct Settings<'n> {
    now: &'n Zoned,
    batch: Batch,
    name: Option<String>,
    memory: Vec<(Memory, bool)>,
    /// GPUs that `--gres` asked for, beside what `--gpus-per-node` did.
    gres_gpus: Vec<Gres>,
    pub ignores_foreign: bool,
    /// What is set now comes from the environment.
    pub is_environment: bool,
}

impl<'n> Settings<'n> {
    pub fn new(now: &'n Zoned) -> Self {
        Self {
            now,
            batch: empty(),
            name: None,
            memory: Vec::new(),
            gres_gpus: Vec::new(),
            ignores_foreign: false,
            is_environment: false,
        }
    }

    pub fn set(&mut self, option: &Given<Key>) -> Result<(), UsageError> {
        let text = option.text();
        let some = || Some(text.to_owned());
        let invalid = |reason: &str| option.invalid(reason);
        let batch = &mut self.batch;
        match option.key {
            Key::Account => batch.account = some().filter(|account| !account.is_empty()),
            Key::Array if text.is_empty() => batch.array = None,
            Key::Array => batch.array = Some(parsed(option)?),
            Key::Begin => batch.begin = Some(ahead(option, self.now)?),
            Key::Chdir => batch.work_dir = some(),
            Key::Comment => batch.comment = some(),
            Key::Constraint => batch.constraint = some(),
            Key::CpusPerTask => batch.cpus_per_task = Some(positive(option)?),
            Key::Deadline => batch.deadline = Some(ahead(option, self.now)?),
            Key::Dependency if text.is_empty() => batch.dependencies = None,
            Key::Dependency => batch.dependencies = Some(parsed(option)?),
            Key::Error => batch.error = some(),
            Key::Exclude => batch.exclude = hosts(option)?,
            Key::Exclusive => {
                batch.exclusive = Some(match option.value.as_deref() {
                    None => Exclusive::Nobody,
                    Some("user") => Exclusive::SameUser,
                    Some("mcs") => return Err(invalid("Berth has no security labels; write user")),
                    Some(_) => return Err(invalid("write nothing, or user")),
                });
            }
            Key::Export => batch.export = Some(export(text)),
            Key::Gpus => batch.gpus = amount::gpus(text).map_err(invalid)?,
            Key::GpusPerNode => batch.gpus_per_node = amount::gpus(text).map_err(invalid)?,
            Key::GpusPerTask => batch.gpus_per_task = amount::gpus(text).map_err(invalid)?,
            Key::Gres => {
                let gres = amount::gres(text).map_err(invalid)?;
                (self.gres_gpus, batch.gres) =
                    gres.into_iter().partition(|gres| gres.name == "gpu");
            }
            Key::Hold => batch.is_held = true,
            Key::IgnorePbs => self.ignores_foreign = true,
            Key::Input => batch.input = some(),
            Key::JobName => self.name = some(),
            Key::MailType => batch.mail = mail(option)?,
            Key::MailUser => batch.mail_user = some().filter(|user| !user.is_empty()),
            Key::Mem => self.remember(Memory::PerNode(mib(option)?)),
            Key::MemPerCpu => self.remember(Memory::PerCpu(mib(option)?)),
            Key::MemPerGpu => self.remember(Memory::PerGpu(mib(option)?)),
            Key::Nice => batch.nice = nice(option)?,
            Key::NoRequeue => batch.requeue = Some(false),
            Key::Nodelist => batch.nodelist = hosts(option)?,
            Key::Nodes => batch.nodes = Some(amount::nodes(text).map_err(invalid)?),
            Key::Ntasks => batch.tasks = Some(positive(option)?),
            Key::NtasksPerNode => batch.tasks_per_node = Some(positive(option)?),
            Key::OpenMode => {
                batch.open_mode = Some(match text {
                    "append" | "a" => OpenMode::Append,
                    "truncate" | "t" => OpenMode::Truncate,
                    _ => return Err(invalid("write append or truncate")),
                });
            }
            Key::Output => batch.output = some(),
            Key::Parsable => batch.manner.is_parsable = true,
            Key::Partition => batch.partitions = text.split(',').map(str::to_owned).collect(),
            Key::Priority => batch.priority = priority(option)?,
            Key::Qos => batch.qos = some(),
            Key::Quiet => batch.manner.is_quiet = true,
            Key::Requeue => batch.requeue = Some(true),
            Key::Reservation => batch.reservation = some(),
            Key::Signal => batch.signal = Some(signal_before(option)?),
            Key::Switches => batch.switches = Some(switches(option)?),
            Key::TestOnly => batch.manner.is_only_a_test = true,
            Key::Time => batch.time_limit = Some(parsed(option)?),
            Key::TimeMin => batch.time_min = Some(parsed(option)?),
            Key::Verbose => batch.manner.is_verbose = true,
            Key::Wait => batch.manner.waits = true,
            // These decide what is done before there is a batch.
            Key::Help | Key::Usage | Key::Version | Key::Wrap => {}
        }
        Ok(())
    }

    /// The same kind said again replaces what was said before.
    fn remember(&mut self, memory: Memory) {
        let kind = std::mem::discriminant(&memory);
        self.memory
            .retain(|(known, _)| std::mem::discriminant(known) != kind);
        self.memory.push((memory, self.is_environment));
    }

    /// Checks what only the whole can tell.
    pub fn finish(mut self, default_name: String) -> Result<Batch, UsageError> {
        let conflict = |what: &str| Err(UsageError::Conflict(what.to_owned()));
        // What the environment says of memory gives way to any other word on it.
        if self
            .memory
            .iter()
            .any(|(_, is_environment)| !is_environment)
        {
            self.memory.retain(|(_, is_environment)| !is_environment);
        }
        let mut batch = self.batch;
        batch.memory = match self.memory.as_slice() {
            [] => None,
            [(memory, _)] => Some(*memory),
            _ => return conflict("--mem, --mem-per-cpu and --mem-per-gpu"),
        };
        batch.name = self.name.unwrap_or(default_name);
        if batch.gpus_per_node.is_empty() {
            batch.gpus_per_node = self.gres_gpus;
        } else if !self.gres_gpus.is_empty() && self.gres_gpus != batch.gpus_per_node {
            return conflict("--gres=gpu and --gpus-per-node that differ");
        }
        if let (Some(least), Some(most)) = (batch.time_min, batch.time_limit)
            && least > most
        {
            return conflict("a --time-min that is longer than --time");
        }
        if let Some(deadline) = batch.deadline {
            if deadline < self.now.timestamp() {
                return conflict("a --deadline in the past with a job to come");
            }
            if batch.begin.is_some_and(|begin| begin > deadline) {
                return conflict("a --begin that is later than --deadline");
            }
        }
        check_gpus(&batch)?;
        Ok(batch)
    }
}

/// The counts of GPUs must add up, where several were given.
fn check_gpus(batch: &Batch) -> Result<(), UsageError> {
    let conflict = |what: &str| Err(UsageError::Conflict(what.to_owned()));
    let total = Batch::gpu_count(&batch.gpus);
    let per_node = Batch::gpu_count(&batch.gpus_per_node);
    let per_task = Batch::gpu_count(&batch.gpus_per_task);
    if !batch.gpus_per_task.is_empty() {
        if batch.tasks.is_none() && batch.gpus.is_empty() && batch.tasks_per_node.is_none() {
            return conflict("--gpus-per-task without --ntasks or --gpus");
        }
        if total > 0 && per_task > 0 {
            if !total.is_multiple_of(per_task) {
                return conflict("--gpus and a --gpus-per-task that it is no multiple of");
            }
            if batch
                .tasks
                .is_some_and(|tasks| u64::from(tasks) != total / per_task)
            {
                return conflict("--gpus, --gpus-per-task and --ntasks that do not add up");
            }
        }
    }
    if total > 0 && per_node > 0 {
        if !total.is_multiple_of(per_node) {
            return conflict("--gpus and a --gpus-per-node that it is no multiple of");
        }
        if let Some(nodes) = batch.nodes
            && !(u64::from(nodes.min)..=u64::from(nodes.max)).contains(&(total / per_node))
        {
            return conflict("--gpus, --gpus-per-node and --nodes that do not add up");
        }
    }
    if matches!(batch.memory, Some(Memory::PerGpu(_))) && total + per_node + per_task == 0 {
        return conflict("--mem-per-gpu without a GPU");
    }
    Ok(())
}

fn parsed<T: std::str::FromStr<Err: ToString>>(option: &Given<Key>) -> Result<T, UsageError> {
    option.text().parse().map_err(|error| option.invalid(error))
}

fn ahead(option: &Given<Key>, now: &Zoned) -> Result<Timestamp, UsageError> {
    moment::parse(option.text(), now, Lean::Ahead).map_err(|error| option.invalid(error))
}

fn positive(option: &Given<Key>) -> Result<u32, UsageError> {
    amount::positive(option.text()).map_err(|reason| option.invalid(reason))
}

fn mib(option: &Given<Key>) -> Result<u64, UsageError> {
    amount::memory_mib(option.text()).map_err(|reason| option.invalid(reason))
}

fn hosts(option: &Given<Key>) -> Result<Vec<String>, UsageError> {
    hostlist::expand(option.text()).map_err(|error| option.invalid(error))
}

fn nice(option: &Given<Key>) -> Result<i32, UsageError> {
    let Some(text) = &option.value else {
        return Ok(NICE);
    };
    let nice = text.parse().ok();
    nice.filter(|nice: &i32| nice.unsigned_abs() <= NICE_MAX.unsigned_abs())
        .ok_or_else(|| option.invalid("write a whole number, larger for a lower priority"))
}

fn priority(option: &Given<Key>) -> Result<Option<u32>, UsageError> {
    if option.text().eq_ignore_ascii_case("top") {
        return Ok(Some(u32::MAX - 1));
    }
    let priority = option
        .text()
        .parse()
        .ok()
        .filter(|priority| *priority < u32::MAX);
    priority
        .map(Some)
        .ok_or_else(|| option.invalid("write a whole number, or TOP"))
}

fn export(text: &str) -> Export {
    if text.eq_ignore_ascii_case("all") {
        return Export::All;
    }
    if text.eq_ignore_ascii_case("none") || text.eq_ignore_ascii_case("nil") {
        return Export::None;
    }
    let mut and_all = false;
    let mut variables = Vec::new();
    for part in separated(text) {
        match part.split_once('=') {
            _ if part.eq_ignore_ascii_case("all") => and_all = true,
            Some((name, value)) => variables.push((name.to_owned(), Some(value.to_owned()))),
            None if !part.is_empty() => variables.push((part, None)),
            None => {}
        }
    }
    Export::Some { and_all, variables }
}

/// Parts between commas; quotes keep the commas of a value together and are taken off.
fn separated(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for character in text.chars() {
        match (character, quote) {
            (character, Some(open)) if character == open => quote = None,
            ('"' | '\'', None) => quote = Some(character),
            (',', None) => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    part.push(character);
                }
            }
        }
    }
    parts
}

fn mail(option: &Given<Key>) -> Result<Vec<Mail>, UsageError> {
    let mut mail = Vec::new();
    for word in option.text().split(',') {
        match word.to_ascii_uppercase().as_str() {
            "NONE" => return Ok(Vec::new()),
            "BEGIN" => mail.push(Mail::Begin),
            "END" => mail.push(Mail::End),
            "FAIL" => mail.push(Mail::Fail),
            "REQUEUE" => mail.push(Mail::Requeue),
            "INVALID_DEPEND" => mail.push(Mail::InvalidDependency),
            "STAGE_OUT" => mail.push(Mail::StageOut),
            "TIME_LIMIT" => mail.push(Mail::TimeLimit),
            "TIME_LIMIT_90" => mail.push(Mail::TimeLimitPercent(90)),
            "TIME_LIMIT_80" => mail.push(Mail::TimeLimitPercent(80)),
            "TIME_LIMIT_50" => mail.push(Mail::TimeLimitPercent(50)),
            "ARRAY_TASKS" => mail.push(Mail::ArrayTasks),
            "ALL" => mail.extend([
                Mail::Begin,
                Mail::End,
                Mail::Fail,
                Mail::Requeue,
                Mail::InvalidDependency,
                Mail::StageOut,
            ]),
            _ => {
                return Err(option.invalid(
                    "write NONE, BEGIN, END, FAIL, REQUEUE, ALL, INVALID_DEPEND, STAGE_OUT, \
                     TIME_LIMIT, TIME_LIMIT_90, TIME_LIMIT_80, TIME_LIMIT_50 or ARRAY_TASKS",
                ));
            }
        }
    }
    mail.sort();
    mail.dedup();
    Ok(mail)
}

/// `[[R][B]:]USR1[@seconds]`; a minute before the end unless said otherwise.
fn signal_before(option: &Given<Key>) -> Result<Signal, UsageError> {
    let wrong = || option.invalid("write [[R][B]:]signal[@seconds], as in B:USR1@120");
    let (flags, rest) = option.text().split_once(':').unwrap_or(("", option.text()));
    if !flags.chars().all(|flag| flag == 'R' || flag == 'B') {
        return Err(wrong());
    }
    let (name, seconds) = match rest.split_once('@') {
        Some((name, seconds)) => (name, seconds.parse().map_err(|_| wrong())?),
        None => (rest, 60),
    };
    Ok(Signal {
        name: signal::name(name).ok_or_else(wrong)?,
        seconds_before: seconds,
        is_for_shell: flags.contains('B'),
        is_for_reservation: flags.contains('R'),
    })
}

fn switches(option: &Given<Key>) -> Result<Switches, UsageError> {
    let wrong = || option.invalid("write count[@time], as in 1@30");
    let (count, wait) = match option.text().split_once('@') {
        Some((count, wait)) => (count, Some(wait.parse::<TimeLimit>().map_err(|_| wrong())?)),
        None => (option.text(), None),
    };
    let count = amount::positive(count).map_err(|_| wrong())?;
    Ok(Switches { count, wait })
}

fn empty() -> Batch {
    Batch {
        name: String::new(),
        account: None,
        partitions: Vec::new(),
        qos: None,
        reservation: None,
        nodes: None,
        tasks: None,
        tasks_per_node: None,
        cpus_per_task: None,
        memory: None,
        gpus: Vec::new(),
        gpus_per_node: Vec::new(),
        gpus_per_task: Vec::new(),
        gres: Vec::new(),
        time_limit: None,
        time_min: None,
        array: None,
        dependencies: None,
        begin: None,
        deadline: None,
        output: None,
        error: None,
        input: None,
        open_mode: None,
        work_dir: None,
        comment: None,
        constraint: None,
        requeue: None,
        is_held: false,
        exclusive: None,
        nice: 0,
        priority: None,
        nodelist: Vec::new(),
        exclude: Vec::new(),
        mail: Vec::new(),
        mail_user: None,
        signal: None,
        switches: None,
        export: None,
        manner: Manner::default(),
    }
}
