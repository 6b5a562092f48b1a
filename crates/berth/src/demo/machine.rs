//! The machine that the demo runs on, among its simulated ones: what runs there is real, and so is its time.

use std::path::PathBuf;
use std::sync::Arc;

use berth_app::App;
use berth_app::inventory::OwnMachine;
use berth_drivers::backend::{
    Attempt, Backend, DiskSpace, Doing, Door, Fence, Grant, Job, Life, Progress, Sign, Used,
};
use berth_drivers::environments::Shelf;
use berth_drivers::records::RunRecords;
use berth_drivers::simulated::{Simulated, World};
use berth_drivers::split::Split;
use berth_drivers::supervisors::Supervisors;
use berth_model::{PersonId, Recut, ResourceId, Text};
use jiff::Timestamp;

use super::clock::DemoClock;
use super::places::{reference, this_machine};
use super::world::Origin;
use crate::machine::{ThisMachine, move_in};

/// Why nothing begins on the machine while the demo catches up with the time in which it was not there.
const AWAY: &str = "the demo was not running";

/// What runs the demo's work: the simulated world, and this machine if it is one of the demo's.
#[derive(Debug)]
pub struct Runs {
    pub backend: Arc<dyn Backend>,
    here: Option<(Arc<Split>, OwnMachine)>,
}

impl Runs {
    pub fn new(origin: Origin, clock: &Arc<DemoClock>, machine: Option<&ThisMachine>) -> Runs {
        let simulated: Arc<dyn Backend> = Arc::new(Simulated::new(World::lively(origin.seed)));
        let Some(machine) = machine else {
            return Runs {
                backend: simulated,
                here: None,
            };
        };
        let real = InRealTime {
            clock: clock.clone(),
            here: machine.backend(),
        };
        let split = Arc::new(Split::new(Arc::new(real), Some(simulated)));
        let own = OwnMachine {
            closed: why_closed(machine),
            ..machine.own.clone()
        };
        Runs {
            backend: split.clone(),
            here: Some((split, own)),
        }
    }

    /// What still runs on the machine is found again, and nothing new begins in a past that is over.
    pub async fn stand_by(&self, app: &App) -> anyhow::Result<()> {
        let Some((split, own)) = &self.here else {
            return Ok(());
        };
        let away = OwnMachine {
            closed: Some(AWAY.parse()?),
            ..own.clone()
        };
        move_in(app, &reference(this_machine::NAME)?, &away, split).await?;
        Ok(())
    }

    /// From now on, work runs on the machine, if it can keep people apart.
    pub async fn open(&self, app: &App) -> anyhow::Result<()> {
        if let Some((split, own)) = &self.here {
            move_in(app, &reference(this_machine::NAME)?, own, split).await?;
        }
        Ok(())
    }
}

/// A machine that cannot keep people apart runs nothing in a demo, whose passwords everybody knows.
fn why_closed(machine: &ThisMachine) -> Option<Text> {
    let why = machine.can.sandbox.as_ref().err()?;
    format!("nothing runs here: {why}").parse().ok()
}

/// While the demo's clock stands in its past, a real run is no reason to look again and again.
#[derive(Debug)]
struct InRealTime {
    clock: Arc<DemoClock>,
    here: Arc<dyn Backend>,
}

impl Backend for InRealTime {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        grant: &'a Grant,
        fence: Fence,
        now: Timestamp,
    ) -> Doing<'a, ()> {
        self.here.start(job, grant, fence, now)
    }

    fn stop<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.here.stop(job, fence, now)
    }

    fn prolong<'a>(&'a self, job: Job<'a>, fence: Fence, now: Timestamp) -> Doing<'a, ()> {
        self.here.prolong(job, fence, now)
    }

    fn machine(&self, nodes: &[ResourceId]) -> Option<String> {
        self.here.machine(nodes)
    }

    fn reaches(&self, machine: &str) -> bool {
        self.here.reaches(machine)
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        self.here.look(jobs, now)
    }

    fn door<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Door>> {
        self.here.door(job)
    }

    fn log<'a>(&'a self, job: Job<'a>, bytes: u64) -> Doing<'a, String> {
        self.here.log(job, bytes)
    }

    fn used<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Used>> {
        self.here.used(job)
    }

    fn shelf(&self) -> Option<&dyn Shelf> {
        self.here.shelf()
    }

    fn disk_space<'a>(&'a self, person: PersonId) -> Doing<'a, DiskSpace> {
        self.here.disk_space(person)
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
        self.here.life(job)
    }

    fn attempts(&self) -> Doing<'_, Vec<Attempt>> {
        self.here.attempts()
    }

    fn forget_attempts<'a>(&'a self, recorded: &'a [Attempt]) -> Doing<'a, ()> {
        self.here.forget_attempts(recorded)
    }

    fn can_cut(&self) -> bool {
        self.here.can_cut()
    }

    fn recut<'a>(&'a self, recut: &'a Recut, fence: Fence, now: Timestamp) -> Doing<'a, Progress> {
        self.here.recut(recut, fence, now)
    }

    fn next(&self, jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        match self.clock.is_standing() {
            true => None,
            false => self.here.next(jobs, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use berth_app::clock::Clock;
    use berth_app::vault::Vault;
    use berth_app::{Caller, Settings};
    use berth_model::{Resource, Status};
    use berth_server::config::Config;
    use berth_store::{Store, inventory, people, sites};

    use super::super::world::furnish;
    use super::*;

    async fn resources(app: &App) -> Vec<Resource> {
        let mut reader = app.store.read().await.unwrap();
        let name = this_machine::NAME.parse().unwrap();
        let site = sites::by_name(&mut reader, &name).await.unwrap().unwrap();
        inventory::of_site(&mut reader, site.id).await.unwrap()
    }

    #[tokio::test]
    async fn the_machine_stands_by_while_the_demo_catches_up_and_then_is_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let flags = [("data_dir", path.clone())].into();
        let config = Config::layer(None, std::iter::empty(), flags)
            .unwrap()
            .config;
        let vault = Vault::from_key(&[7; 32]);
        let machine = ThisMachine::look(&config, &folder.path().join("work"), &vault).unwrap();
        let store = Store::open(&format!("sqlite:{path}/demo.sqlite"), 4)
            .await
            .unwrap();
        let past = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Arc::new(DemoClock::at(past));
        let origin = Origin {
            seed: 7,
            made_at: past,
        };
        let runs = Runs::new(origin, &clock, Some(&machine));
        let app = App::with_backend(
            store,
            clock.clone(),
            vault,
            Settings::default(),
            Some(runs.backend.clone()),
        );
        furnish(&app).await.unwrap();
        runs.stand_by(&app).await.unwrap();
        let is_node = |one: &&Resource| one.parent.is_none();
        let all = resources(&app).await;
        let node = all.iter().find(is_node).unwrap();
        assert_eq!(node.status, Status::Unavailable);
        assert_eq!(node.status_reason, AWAY.parse().ok());
        clock.let_go();
        assert!(clock.now() > past);
        runs.open(&app).await.unwrap();
        let all = resources(&app).await;
        assert_eq!(all.len(), 3 + machine.own.found.gpus.len());
        let node = all.iter().find(is_node).unwrap();
        assert_eq!(node.status_reason, why_closed(&machine));
        assert_eq!(node.status == Status::Active, machine.can.sandbox.is_ok());
        let cores = all.iter().find_map(|one| match &one.capacity {
            Some(capacity) if capacity.unit.as_str() == "millicores" => Some(capacity.amount.get()),
            _ => None,
        });
        assert_eq!(cores, Some(1000 * machine.own.found.cores));
        for (login, profiles) in [("priya", true), ("kwame", true), ("olga", false)] {
            let mut reader = app.store.read().await.unwrap();
            let person = people::by_login(&mut reader, &login.parse().unwrap()).await;
            drop(reader);
            let person = Caller::direct(person.unwrap().unwrap());
            let site = reference(this_machine::NAME).unwrap();
            let seen = app.queue_settings(&person, &site).await;
            assert_eq!(seen.is_ok(), profiles, "{login}");
        }
    }
}
