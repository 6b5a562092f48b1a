//! `SLURM_*` for what runs, so that scripts written for Slurm find what they look for.

use std::path::PathBuf;
use std::sync::Arc;

use berth_drivers::backend::{
    Attempt, Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Progress, Sign, Used,
};
use berth_drivers::environments::Shelf;
use berth_drivers::records::RunRecords;
use berth_drivers::supervisors::Supervisors;
use berth_model::{PersonId, Recut, ResourceId, workload};
use berth_slurm::environment::{self, ArrayTask, JobNode};
use jiff::Timestamp;

/// A backend that tells what it starts the same as Slurm would.
#[derive(Debug)]
pub struct WithVariables<B>(pub B);

impl<B: Backend> Backend for WithVariables<Arc<B>> {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        grant: &'a Grant,
        fence: Fence,
        now: Timestamp,
    ) -> Doing<'a, ()> {
        Box::pin(async move {
            let mut grant = grant.clone();
            let own = environment::variables(&described(job, &grant));
            // What it sees of GPUs is the backend's own to say.
            let own = own
                .into_iter()
                .filter(|(name, _)| name.starts_with("SLURM"));
            grant
                .environment
                .extend(own.map(|(name, value)| (name.to_owned(), value)));
            self.0.start(job, &grant, fence, now).await
        })
    }

    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.0.stop(job, fence, now)
    }

    fn prolong<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.0.prolong(job, fence, now)
    }

    fn machine(&self, nodes: &[ResourceId]) -> Option<String> {
        self.0.machine(nodes)
    }

    fn reaches(&self, machine: &str) -> bool {
        self.0.reaches(machine)
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        self.0.look(jobs, now)
    }

    fn door<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Door>> {
        self.0.door(job)
    }

    fn log<'a>(&'a self, job: Job<'a>, bytes: u64) -> Doing<'a, String> {
        self.0.log(job, bytes)
    }

    fn used<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Used>> {
        self.0.used(job)
    }

    fn disk_space<'a>(&'a self, person: PersonId) -> Doing<'a, DiskSpace> {
        self.0.disk_space(person)
    }

    fn records(&self) -> Option<&dyn RunRecords> {
        self.0.records()
    }

    fn supervisors(&self) -> Option<&dyn Supervisors> {
        self.0.supervisors()
    }

    fn hub_socket(&self) -> Option<PathBuf> {
        self.0.hub_socket()
    }

    fn life<'a>(&'a self, job: Job<'a>) -> Doing<'a, Life> {
        self.0.life(job)
    }

    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        self.0.attempts()
    }

    fn forget_attempts<'a>(&'a self, recorded: &'a [Attempt]) -> Doing<'a, ()> {
        self.0.forget_attempts(recorded)
    }

    fn can_cut(&self) -> bool {
        self.0.can_cut()
    }

    fn recut<'a>(&'a self, recut: &'a Recut, fence: Fence, now: Timestamp) -> Doing<'a, Progress> {
        self.0.recut(recut, fence, now)
    }

    fn shelf(&self) -> Option<&dyn Shelf> {
        self.0.shelf()
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        self.0.next(jobs, now)
    }
}

fn described(job: Job<'_>, grant: &Grant) -> environment::Job {
    let Job { workload, run } = job;
    let ask = &workload.ask;
    let wish = ask.wishes.get(run.wish);
    let cpus = |milli: u64| u32::try_from(milli.div_ceil(1000)).unwrap_or(u32::MAX);
    let mut nodes: Vec<JobNode> = Vec::new();
    for (name, piece) in grant.nodes.iter().zip(&run.pieces) {
        match nodes.iter_mut().find(|node| node.name == *name) {
            Some(node) => {
                node.cpus += cpus(piece.cores_milli);
                node.tasks += 1;
            }
            None => nodes.push(JobNode {
                name: name.clone(),
                cpus: cpus(piece.cores_milli),
                tasks: 1,
            }),
        }
    }
    let gpus = wish.and_then(|wish| match wish.task.gpus.as_ref()? {
        workload::Gpus::Whole { count, .. } | workload::Gpus::Slice { count, .. } => {
            Some(count.get().to_string())
        }
        workload::Gpus::Share { .. } => None,
    });
    let array = ask.array.as_ref().map(|array| {
        let numbers: Vec<u32> = array.tasks.iter().take(2).collect();
        let (first, second) = (numbers.first().copied(), numbers.get(1).copied());
        ArrayTask {
            job_id: workload.number,
            index: run.task,
            count: u32::try_from(array.tasks.len()).unwrap_or(u32::MAX),
            min: first.unwrap_or(run.task),
            max: array.tasks.iter().last().unwrap_or(run.task),
            step: first
                .zip(second)
                .map_or(1, |(first, second)| second - first),
        }
    });
    environment::Job {
        id: workload.number,
        name: ask.title.to_string(),
        user: grant.login.clone(),
        uid: 1000,
        gid: 1000,
        account: grant.project.clone(),
        partition: grant.site.clone(),
        qos: ask.level.as_ref().map(ToString::to_string),
        reservation: run.inside.map(|id| id.to_string()),
        cluster: "berth".to_owned(),
        array,
        tasks: wish.map_or(1, |wish| wish.tasks.get()),
        tasks_per_node: None,
        cpus_per_task: wish.map(|wish| cpus(wish.task.cores_milli.get())),
        memory_per_node_mib: wish.map(|wish| wish.task.memory_mib.get()),
        memory_per_cpu_mib: None,
        memory_per_gpu_mib: None,
        gpus: None,
        gpus_per_node: None,
        gpus_per_task: gpus,
        gpu_numbers: (0..).zip(&grant.gpus).map(|(number, _)| number).collect(),
        gpu_devices: grant.gpus.clone(),
        submit_dir: ask
            .program
            .folder
            .clone()
            .unwrap_or_else(|| format!("/home/{}", grant.login)),
        submit_host: "berth".to_owned(),
        dependency: None,
        restarts: run.attempt.saturating_sub(1),
        start_s: Some(run.began.as_second()),
        end_s: Some(run.until.as_second()),
        nodes,
    }
}
