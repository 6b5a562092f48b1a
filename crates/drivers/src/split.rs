//! A backend that combines two: each run goes to the backend of its nodes.
//!
//! The backend `here` runs the nodes that it is given. The backend `elsewhere`, if there is one, runs all other nodes.
//! Once a run has begun, `here` answers for it unless `elsewhere` exists and has all its nodes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use berth_model::{PersonId, Recut, ResourceId};
use futures::future::join_all;
use jiff::Timestamp;

use crate::backend::{
    Attempt, Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Progress, Sign, Trouble,
    Used,
};
use crate::environments::Shelf;
use crate::records::RunRecords;
use crate::supervisors::Supervisors;

#[derive(Debug)]
pub struct Split {
    here: Arc<dyn Backend>,
    nodes: RwLock<BTreeSet<ResourceId>>,
    elsewhere: Option<Arc<dyn Backend>>,
}

/// The backend to which a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Here,
    Elsewhere,
    /// The run has nodes of both.
    Both,
}

impl Split {
    pub fn new(here: Arc<dyn Backend>, elsewhere: Option<Arc<dyn Backend>>) -> Split {
        Split {
            here,
            nodes: RwLock::default(),
            elsewhere,
        }
    }

    /// From now on, `here` runs this node.
    pub fn take(&self, node: ResourceId) {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        nodes.insert(node);
    }

    fn way(&self, job: &Job<'_>) -> Way {
        let nodes = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        let mut pieces = job.run.pieces.iter();
        let here = pieces
            .by_ref()
            .filter(|piece| nodes.contains(&piece.node))
            .count();
        match here {
            0 => Way::Elsewhere,
            all if all == job.run.pieces.len() => Way::Here,
            _ => Way::Both,
        }
    }

    /// The backend that answers for a run that has begun.
    fn keeper(&self, job: &Job<'_>) -> &Arc<dyn Backend> {
        match (self.way(job), &self.elsewhere) {
            (Way::Elsewhere, Some(elsewhere)) => elsewhere,
            _ => &self.here,
        }
    }

    /// The indices of the jobs for which each backend answers: `here`, and `elsewhere`.
    fn parted(&self, jobs: &[Job<'_>]) -> (Vec<usize>, Vec<usize>) {
        let is_here = |place: &usize| Arc::ptr_eq(self.keeper(&jobs[*place]), &self.here);
        (0..jobs.len()).partition(is_here)
    }
}

fn refused(why: &str) -> Doing<'static, ()> {
    let trouble = Trouble::Refused(why.to_owned());
    Box::pin(async move { Err(trouble) })
}

impl Backend for Split {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        grant: &'a Grant,
        fence: Fence,
        now: Timestamp,
    ) -> Doing<'a, ()> {
        match (self.way(&job), &self.elsewhere) {
            (Way::Here, _) => self.here.start(job, grant, fence, now),
            (Way::Elsewhere, Some(elsewhere)) => elsewhere.start(job, grant, fence, now),
            (Way::Elsewhere, None) => refused("nothing runs work on the node that it was given"),
            (Way::Both, _) => refused("its nodes are not run by the same backend"),
        }
    }

    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.keeper(&job).stop(job, fence, now)
    }

    fn prolong<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.keeper(&job).prolong(job, fence, now)
    }

    fn machine(&self, nodes: &[ResourceId]) -> Option<String> {
        let own = self.nodes.read().unwrap_or_else(PoisonError::into_inner);
        match nodes.iter().all(|node| own.contains(node)) {
            true => self.here.machine(nodes),
            false => self.elsewhere.as_ref()?.machine(nodes),
        }
    }

    fn reaches(&self, machine: &str) -> bool {
        let elsewhere = self.elsewhere.as_ref();
        self.here.reaches(machine) || elsewhere.is_some_and(|one| one.reaches(machine))
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        Box::pin(async move {
            let (here, there) = self.parted(jobs);
            let looks = [(here, Some(&self.here)), (there, self.elsewhere.as_ref())];
            let looks = looks.into_iter().filter_map(|(places, backend)| {
                let backend = backend.filter(|_| !places.is_empty())?;
                Some(async move {
                    let theirs: Vec<Job<'_>> = places.iter().map(|place| jobs[*place]).collect();
                    let seen = backend.look(&theirs, now).await;
                    // A backend that does not answer must not hide the answers of the other.
                    let seen = seen.unwrap_or_else(|trouble| {
                        tracing::warn!(%trouble, "a backend could not look at what runs");
                        vec![Sign::Unreachable; theirs.len()]
                    });
                    places.into_iter().zip(seen)
                })
            });
            let mut signs = vec![Sign::Unknown; jobs.len()];
            for (place, sign) in join_all(looks).await.into_iter().flatten() {
                signs[place] = sign;
            }
            Ok(signs)
        })
    }

    fn door<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Door>> {
        self.keeper(&job).door(job)
    }

    fn log<'a>(&'a self, job: Job<'a>, bytes: u64) -> Doing<'a, String> {
        self.keeper(&job).log(job, bytes)
    }

    fn used<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Used>> {
        self.keeper(&job).used(job)
    }

    /// Built environments are kept where the runs of `here` can mount them.
    fn shelf(&self) -> Option<&dyn Shelf> {
        self.here.shelf()
    }

    /// If there is another backend, it is not known yet on which disk something new will write.
    fn disk_space<'a>(&'a self, person: PersonId) -> Doing<'a, DiskSpace> {
        match &self.elsewhere {
            Some(_) => Box::pin(async { Ok(DiskSpace::default()) }),
            None => self.here.disk_space(person),
        }
    }

    fn records(&self) -> Option<&dyn RunRecords> {
        self.here.records()
    }

    fn supervisors(&self) -> Option<&dyn Supervisors> {
        self.here.supervisors()
    }

    fn hub_socket(&self) -> Option<PathBuf> {
        self.here.hub_socket()
    }

    fn life<'a>(&'a self, job: Job<'a>) -> Doing<'a, Life> {
        self.keeper(&job).life(job)
    }

    /// Only the runs of `here` have a boundary that is Berth's own.
    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        self.here.attempts()
    }

    fn forget_attempts<'a>(&'a self, recorded: &'a [Attempt]) -> Doing<'a, ()> {
        self.here.forget_attempts(recorded)
    }

    fn can_cut(&self) -> bool {
        self.elsewhere.as_ref().is_some_and(|one| one.can_cut())
    }

    /// The GPUs of `here` are not repartitioned: a machine's own GPUs stay as its admin made them.
    fn recut<'a>(&'a self, recut: &'a Recut, fence: Fence, now: Timestamp) -> Doing<'a, Progress> {
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.recut(recut, fence, now),
            None => self.here.recut(recut, fence, now),
        }
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        let (here, there) = self.parted(jobs);
        let theirs = |places: Vec<usize>| places.into_iter().map(|place| jobs[place]).collect();
        let (here, there): (Vec<Job<'_>>, Vec<Job<'_>>) = (theirs(here), theirs(there));
        let there = self
            .elsewhere
            .as_ref()
            .and_then(|one| one.next(&there, now));
        self.here.next(&here, now).into_iter().chain(there).min()
    }
}

#[cfg(test)]
mod tests;
