//! `berth env prepare`: makes an environment that Berth brings along, before there is a server.
//!
//! It is made in the same sandbox, by the same program, as any other. What it comes to is a folder that appears whole,
//! called by what is in it: where it is, nothing has to be done.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use berth_app::clock::{Clock, SystemClock, random};
use berth_drivers::backend::{Backend, Fence, Grant, Job, Seen, Sign};
use berth_drivers::environments::{ABOUT, LOCK_INSIDE, Prepared, Shelf, installing};
use berth_drivers::local::disk::DiskLimits;
use berth_drivers::local::folder::Folder;
use berth_drivers::local::machine::Abilities;
use berth_drivers::local::record_key::RecordKey;
use berth_drivers::local::{Local, Settings, shelf};
use berth_model::workload::{Ask, Because, Counts, Outcome, RunPiece, RunState, State, Tasks};
use berth_model::{
    EnvironmentId, Name, PersonId, ResourceId, Run, RunId, SiteId, Workload, WorkloadId,
};
use clap::Args;
use jiff::SignedDuration;

use crate::output::complain;
use crate::table::printable;

#[derive(Debug, Args)]
pub struct Prepare {
    /// Which one
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Prepared::names()))]
    name: String,
    /// Where it is kept, instead of in the cache of this user
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// The index to take packages from, instead of the installer's own
    #[arg(long, value_name = "ADDRESS")]
    index: Option<String>,
}

const LIMIT: SignedDuration = SignedDuration::from_hours(1);
/// What keeps it takes a moment to begin; it is looked at so often before it is taken for lost.
const UNKNOWN_MAX: u32 = 300;
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How much of the log of a build that failed is shown.
const LOG_TAIL_BYTES: u64 = 4096;
/// The users of what is prepared are not those of any server: what they made is the machine's own afterwards.
const FIRST_USER: u32 = 1_900_000_000;

pub async fn run(prepare: &Prepare) -> anyhow::Result<()> {
    let prepared = Prepared::brought(&prepare.name).context("Berth brings no such environment")?;
    let key = prepared.key().context("it has no name")?;
    let folder = match &prepare.into {
        Some(folder) => std::path::absolute(folder)?,
        None => usual_folder()?,
    };
    let made = folder.join(key.as_str());
    if made.join(ABOUT).is_file() {
        complain(&format!("{} is ready in {}", prepare.name, made.display()));
        return Ok(());
    }
    let able = Abilities::look();
    if let Err(why) = &able.sandbox {
        bail!("this machine cannot make it: {why}");
    }
    if let Err(why) = &able.network {
        bail!("this machine cannot bring its packages: {why}");
    }
    private(&folder)?;
    // Whoever comes second waits, and then finds it made.
    let lock = File::create(folder.join(".lock"))?;
    lock.lock()?;
    if made.join(ABOUT).is_file() {
        return Ok(());
    }
    let work = folder.join(".work");
    shelf::sweep_out(&work).await?;
    let local = Local::new(Settings {
        folder: work.clone(),
        program: std::env::current_exe()?,
        first_user: able.users.is_ok().then_some(FIRST_USER),
        closed: Vec::new(),
        opened: Vec::new(),
        opened_names: Vec::new(),
        database_host: None,
        has_network: true,
        prepared: None,
        warm_max: 0,
        has_sandbox: true,
        sandbox_again: None,
        is_shared: false,
        disk: DiskLimits::default(),
        record_key: RecordKey::generate()?,
    })?;
    complain(&format!(
        "making the environment {}, once; this takes a few minutes",
        prepare.name
    ));
    let index = prepare.index.as_deref();
    let built = build(&local, &prepared, &key, (&work, index)).await;
    let done = match built {
        Ok(id) => keep(&local, id, prepared, &made).await,
        Err(error) => Err(error),
    };
    shelf::sweep_out(&work).await?;
    done?;
    complain(&format!("{} is ready in {}", prepare.name, made.display()));
    Ok(())
}

/// Seals what was built and puts it in its place, whole.
async fn keep(
    local: &Local,
    id: EnvironmentId,
    prepared: Prepared,
    made: &Path,
) -> anyhow::Result<()> {
    let sealed = local
        .seal(id)
        .await
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let about = Prepared {
        python: sealed.python,
        bytes: Some(sealed.bytes),
        ..prepared
    };
    let half = local.made(id);
    fs::set_permissions(&half, fs::Permissions::from_mode(0o755))?;
    write_new(&half.join(ABOUT), &serde_json::to_vec_pretty(&about)?)?;
    fs::rename(&half, made)?;
    Ok(())
}

/// The build may have put anything there, a link to somebody else's file among others, so the file is made anew.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Runs what makes it to its end, and says how far it is.
async fn build(
    local: &Local,
    prepared: &Prepared,
    key: &Name,
    (work_folder, index): (&Path, Option<&str>),
) -> anyhow::Result<EnvironmentId> {
    let id = EnvironmentId::from_parts(millis(), &random());
    let lock = work_folder.join("lock.txt");
    fs::write(&lock, prepared.lock())?;
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644))?;
    let recipe = prepared.recipe(key);
    let (workload, run) = work(recipe.program())?;
    let grant = Grant {
        has_neighbours: false,
        has_hub: false,
        person: PersonId::from_parts(0, &[0; 10]),
        login: "berth".to_owned(),
        site: "here".to_owned(),
        project: None,
        nodes: Vec::new(),
        gpus: Vec::new(),
        environment: installing(index),
        package_index: index.map(str::to_owned),
        mounts: vec![
            Seen {
                from: local.made(id),
                to: recipe.path.clone().into(),
                is_writable: true,
            },
            Seen {
                from: lock,
                to: LOCK_INSIDE.into(),
                is_writable: false,
            },
        ],
    };
    let job = Job {
        workload: &workload,
        run: &run,
    };
    local
        .start(job, &grant, Fence(1), SystemClock.now())
        .await?;
    let log = local.folder(run.id).log();
    let (mut told, mut unknown) = (0, 0);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        told = tell(&log, told)?;
        let signs = local.look(&[job], SystemClock.now()).await?;
        match signs.first() {
            Some(Sign::Ended { outcome, .. }) if *outcome == Outcome::Completed => return Ok(id),
            Some(Sign::Unknown) if unknown < UNKNOWN_MAX => unknown += 1,
            Some(Sign::Ended { .. } | Sign::Unknown | Sign::Unreachable) | None => {
                tell(&log, told)?;
                bail!(why_not(&local.folder(run.id))?);
            }
            Some(Sign::Running) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            _ = &mut interrupted => {
                let now = SystemClock.now();
                let state = RunState::Stopping { because: Because::Cancelled, since: now };
                let told = Run { state, until: now, ..run.clone() };
                local.stop(Job { workload: &workload, run: &told }, Fence(1), now).await?;
                bail!("interrupted");
            }
        }
    }
}

/// Why the build failed, with the end of its log, because the log goes with everything else that was half-made.
fn why_not(run: &Folder) -> io::Result<String> {
    let said = run
        .end()?
        .map_or_else(|| "it was lost".to_owned(), |end| end.said);
    let log = run.log_tail(LOG_TAIL_BYTES)?;
    let lines: Vec<String> = log.lines().map(printable).collect();
    Ok(format!(
        "the environment could not be made: {said}\n{}",
        lines.join("\n")
    ))
}

/// Says the new lines of a log that tell how far it is; gives back how many bytes were read.
fn tell(log: &Path, told: u64) -> anyhow::Result<u64> {
    use std::io::Read;
    let Ok(mut file) = File::open(log) else {
        return Ok(told);
    };
    file.seek(SeekFrom::Start(told))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        return Ok(told);
    };
    for line in String::from_utf8_lossy(&bytes[..end]).lines() {
        let is_news = ["berth: ", "Collecting ", "Installing ", "ERROR: "]
            .iter()
            .any(|start| line.starts_with(start));
        if is_news {
            let short: String = line.chars().take(100).collect();
            complain(&printable(&short));
        }
    }
    Ok(told + end as u64 + 1)
}

fn millis() -> u64 {
    u64::try_from(SystemClock.now().as_millisecond()).unwrap_or(0)
}

/// A workload of nobody's, in no queue: only what the driver looks at is in it.
fn work(program: berth_model::workload::Program) -> anyhow::Result<(Workload, Run)> {
    let ask: Ask = serde_json::from_value(serde_json::json!({
        "title": "environment", "class": "guaranteed", "level": null, "seats": [], "inside": null,
        "not_before": null, "deadline": null, "after": [], "array": null, "requeue": false,
        "program": program,
        "wishes": [{"task": {"cores_milli": 1000, "cores_milli_limit": 64000, "memory_mib": 512,
            "memory_mib_limit": 4096}, "limit": "PT1H"}],
    }))?;
    let now = SystemClock.now();
    let workload = Workload {
        id: WorkloadId::from_parts(millis(), &random()),
        site: SiteId::from_parts(0, &[0; 10]),
        number: 1,
        owner: PersonId::from_parts(0, &[0; 10]),
        project: None,
        ask,
        state: State::Running,
        reason: None,
        waiting: Tasks::none(),
        counts: Counts::default(),
        since: now,
        ended_at: None,
        version: 1,
    };
    let run = Run {
        id: RunId::from_parts(millis(), &random()),
        workload: workload.id,
        site: workload.site,
        task: 0,
        attempt: 1,
        wish: 0,
        inside: None,
        kept_from: None,
        lent_by: None,
        machine: None,
        pieces: vec![RunPiece {
            node: ResourceId::from_parts(0, &[0; 10]),
            cores_milli: 1000,
            memory_mib: 512,
            gpus: Vec::new(),
        }],
        claims: Vec::new(),
        state: RunState::Running,
        began: now,
        until: now + LIMIT,
        supervisor_until: None,
        ended_at: None,
        said: None,
        version: 1,
    };
    Ok((workload, run))
}

/// Where what can be made again is kept, as `make` does it.
pub fn usual_folder() -> anyhow::Result<PathBuf> {
    let absolute = |variable| {
        let path = std::env::var_os(variable).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache = absolute("BERTH_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|cache| cache.join("berth")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/berth")));
    let cache = cache.context("no folder to keep it in: name one with --into, or set HOME")?;
    Ok(cache.join("environments"))
}

fn private(folder: &Path) -> anyhow::Result<()> {
    let mut made = fs::DirBuilder::new();
    made.recursive(true).mode(0o755).create(folder)?;
    Ok(())
}
