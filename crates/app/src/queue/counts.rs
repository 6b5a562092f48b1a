//! Counts of waiting and running workloads by project, owner and class. The database counts, so a long queue costs no
//! memory.

use std::collections::BTreeMap;

use berth_engine::rights::Action;
use berth_model::reference::SiteReference;
use berth_model::workload::{Class, State};
use berth_model::{PersonId, ProjectId};
use berth_store::workloads::{self, Alike};

use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::Result;

/// Workloads that are not over, by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub waiting: u64,
    pub held: u64,
    pub running: u64,
    /// Counts tasks: an array is one workload, however many of its tasks run.
    pub running_tasks: u64,
}

impl Count {
    fn add(&mut self, alike: &Alike) {
        let of = match alike.state {
            State::Waiting => &mut self.waiting,
            State::Held => &mut self.held,
            State::Running => &mut self.running,
            State::Completed | State::Failed | State::Cancelled => return,
        };
        *of += alike.workloads;
        self.running_tasks += alike.running;
    }
}

#[derive(Debug, Clone, Default)]
pub struct QueueCounts {
    pub all: Count,
    pub projects: BTreeMap<Option<ProjectId>, Count>,
    pub people: BTreeMap<PersonId, Count>,
    pub classes: BTreeMap<Class, Count>,
    pub directory: Directory,
}

impl App {
    pub async fn count_queue(&self, caller: &Caller, site: &SiteReference) -> Result<QueueCounts> {
        let mut reader = self.store.read().await?;
        let place = self
            .place(&mut reader, caller, site, Action::SeeQueue)
            .await?;
        let mut counts = QueueCounts::default();
        for alike in workloads::alike(&mut reader, place.id()).await? {
            counts.all.add(&alike);
            counts
                .projects
                .entry(alike.project)
                .or_default()
                .add(&alike);
            counts.people.entry(alike.owner).or_default().add(&alike);
            counts.classes.entry(alike.class).or_default().add(&alike);
        }
        let mut directory = Directory::with_site(&place.site);
        let people: Vec<PersonId> = counts.people.keys().copied().collect();
        directory.learn_people(&mut reader, people).await?;
        let projects: Vec<ProjectId> = counts.projects.keys().copied().flatten().collect();
        directory.learn_projects(&mut reader, projects).await?;
        Ok(QueueCounts {
            directory,
            ..counts
        })
    }
}
