//! A small Slurm on loopback, with which tests compare Berth's replacements of Slurm's programs.
//!
//! Daemons on this machine serve four nodes; two more nodes are configured but never up. The cluster does not read or
//! write the machine's own configuration, and is removed with its test. Users are not authenticated.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process::{self, Signal, Tethered, User};
use crate::{port, tool, wait};

/// Timeout until the nodes are ready: seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(20);

/// The nodes with a daemon, and the nodes without one.
pub const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
pub const ABSENT: [&str; 2] = ["m01", "m02"];

/// A time zone with daylight saving time that needs no zone database.
pub const ZONE: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

#[derive(Debug)]
pub struct Cluster {
    /// They end before the directory to which they write is removed.
    daemons: Vec<Tethered>,
    directory: TempDir,
}

impl Cluster {
    /// Starts a cluster, and returns when its nodes are idle.
    pub async fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut cluster = Self {
            daemons: Vec::new(),
            directory,
        };
        cluster.configure()?;
        cluster.daemon("slurmctld", &[])?;
        for node in NODES {
            cluster.daemon("slurmd", &["-N", node])?;
        }
        wait::until("Slurm's nodes to be idle", PATIENCE, async || {
            let listed = cluster.output("sinfo", &["-h", "-t", "idle", "-r", "-o", "%D"]);
            listed.is_ok_and(|text| {
                text.lines()
                    .any(|line| line.trim() == NODES.len().to_string())
            })
        })
        .await;
        Ok(cluster)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("slurm.conf")
    }

    fn configure(&self) -> Result<()> {
        let at = self.path().display();
        let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let host = host.trim().split('.').next().unwrap_or_default().to_owned();
        let user = Command::new("id").arg("-un").output()?;
        let user = String::from_utf8(user.stdout)?;
        let mut directories = fs::DirBuilder::new();
        directories.mode(0o755);
        directories.create(self.path().join("state"))?;
        let mut nodes = String::new();
        for node in NODES {
            directories.create(self.path().join(node))?;
            nodes += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=64 RealMemory=65536 \
                 Gres=gpu:a100:4 Feature=fast State=UNKNOWN\n",
                port::free()
            );
        }
        for node in ABSENT {
            nodes += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=16 RealMemory=8192 \
                 Feature=slow State=UNKNOWN\n",
                port::free()
            );
        }
        let config = format!(
            "ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/none\nCredType=cred/none\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/%n\n\
             SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.%n.pid\n\
             SlurmctldLogFile={at}/slurmctld.log\nSlurmdLogFile={at}/slurmd.%n.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
             MpiDefault=none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nReturnToService=2\n\
             SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1\n\
             GresTypes=gpu\nMaxArraySize=1000001\nMaxJobCount=2000000\nSlurmdParameters=config_overrides\nKillWait=1\n\
             {nodes}\
             PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP\n\
             PartitionName=long Nodes=m[01-02] MaxTime=7-00:00:00 DefaultTime=60 State=UP\n",
            port::free()
        );
        fs::write(self.config(), config)?;
        // Any character device can stand for a GPU, and these exist on every machine.
        let gpus =
            "NodeName=n[1-4] Name=gpu Type=a100 File=/dev/null,/dev/zero,/dev/full,/dev/random\n";
        fs::write(self.path().join("gres.conf"), gpus)?;
        Ok(())
    }

    fn daemon(&mut self, program: &str, arguments: &[&str]) -> Result<()> {
        let mut command = process::command(tool::find(program)?, User::Same, Signal::Kill);
        command
            .arg("-D")
            .arg("-f")
            .arg(self.config())
            .args(arguments);
        let output = fs::File::create(
            self.path()
                .join(format!("{program}{}.out", arguments.concat())),
        )?;
        command.stdout(output.try_clone()?).stderr(output);
        command.current_dir(self.path());
        self.daemons.push(process::spawn(command)?);
        Ok(())
    }

    /// One of Slurm's programs for this cluster, without the caller's environment, which could change its behaviour.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(tool::find(program)?);
        command.env_clear();
        command.env("PATH", "/usr/bin:/bin").env("TZ", ZONE);
        command
            .env("SLURM_CONF", self.config())
            .current_dir(self.path());
        Ok(command)
    }

    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command(program)?;
        command.args(arguments);
        command.output().with_context(|| format!("{command:?}"))
    }

    /// The output of a program, which must succeed.
    pub fn output(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self.run(program, arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} {arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Jobs that the nodes' daemons started would outlive the daemons, so the jobs end first.
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let ended = self.run("scancel", &["--me", "--full", "--signal=KILL", "--quiet"]);
            let ended = ended.and_then(|_| self.run("scancel", &["--me"]));
            let left = self.output("squeue", &["-h", "-t", "R,CG,CF,S", "-o", "%i"]);
            match (ended, left) {
                (Ok(_), Ok(left)) if !left.is_empty() => std::thread::sleep(PAUSE),
                _ => break,
            }
        }
    }
}
