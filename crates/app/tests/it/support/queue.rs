//! A lab with a queue: four nodes in two racks, each with 16 cores, 64 GiB and four GPUs.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use berth_app::queue::{Act, NewWorkload, WorkloadView};
use berth_app::{Caller, Error, NewProject};
use berth_model::queue::{QuotaSetting, Role, Settings};
use berth_model::reference::WorkloadReference;
use berth_model::workload::{Ask, State};
use berth_model::{Name, Reference};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Lab, name, site};

pub const NODES: usize = 4;
pub const GPUS: usize = 4;

impl Lab {
    pub async fn with_queue(self) -> Self {
        for kind in ["node", "cpu", "memory", "gpu", "slice"] {
            let new = berth_app::inventory::NewType {
                name: name(kind),
                title: kind.parse().expect("text"),
                colour: "#1f77b4".parse().expect("a colour"),
                form: Default::default(),
                needs_approval: false,
            };
            self.app
                .create_type(&self.admin, &site(), new)
                .await
                .expect("a type");
        }
        for number in 0..NODES {
            let node = format!("n{number}");
            let rack = if number < 2 { "rack-a" } else { "rack-b" };
            self.add(&node, "node", Some(rack), None).await;
            self.add(&format!("{node}.cpu"), "cpu", Some(&node), Some(16))
                .await;
            self.add(&format!("{node}.memory"), "memory", Some(&node), Some(64))
                .await;
            for gpu in 0..GPUS {
                self.add(&format!("{node}.gpu{gpu}"), "gpu", Some(&node), None)
                    .await;
            }
        }
        for project in ["vision", "genome"] {
            let new = NewProject {
                name: name(project),
                title: project.parse().expect("text"),
            };
            self.app
                .create_project(&self.admin, &site(), new)
                .await
                .expect("a project");
            for person in [&self.ada, &self.bob] {
                let reference = Reference::Name(name(project));
                self.app
                    .add_project_member(&self.admin, &site(), &reference, &person.id().into())
                    .await
                    .expect("a member");
            }
        }
        self.set_queue(Vec::new()).await;
        self
    }

    pub async fn set_queue(&self, quotas: Vec<QuotaSetting>) {
        let role = |(kind, role): (&str, Role)| (name(kind), role);
        let roles = [
            ("node", Role::Node),
            ("cpu", Role::Cores),
            ("memory", Role::Memory),
            ("gpu", Role::Gpu),
            ("slice", Role::Slice),
        ];
        let settings = Settings {
            roles: roles
                .map(role)
                .into_iter()
                .collect::<BTreeMap<Name, Role>>(),
            quotas,
            ..Settings::default()
        };
        self.app
            .set_queue_settings(&self.admin, &site(), None, settings)
            .await
            .expect("settings");
    }

    /// A gang of so many tasks with so many GPUs each, that sleeps for so many minutes of its hour.
    pub fn ask(&self, tasks: u32, gpus: u16, minutes: u32) -> Value {
        json!({
            "title": "train", "class": "guaranteed", "level": null, "seats": [], "inside": null,
            "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true,
            "program": {"command": ["sleep", format!("{minutes}m")]},
            "wishes": [{
                "tasks": tasks,
                "task": {"cores_milli": 1000, "memory_mib": 1024, "gpus": {"count": gpus}},
                "limit": "PT1H",
            }],
        })
    }

    pub async fn try_submit(
        &self,
        who: &Caller,
        project: Option<&str>,
        ask: Value,
    ) -> Result<WorkloadView, Error> {
        let new = NewWorkload {
            project: project.map(|project| Reference::Name(name(project))),
            profile: None,
            is_held: false,
            ask: serde_json::from_value::<Ask>(ask).expect("an ask"),
        };
        self.app
            .submit(who, &site(), new)
            .await
            .map(|made| made.value)
    }

    pub async fn submit(&self, who: &Caller, ask: Value) -> u64 {
        self.try_submit(who, None, ask)
            .await
            .expect("it is taken")
            .workload
            .number
    }

    pub async fn workload_view(&self, number: u64) -> WorkloadView {
        let reference: WorkloadReference = Reference::Name(number);
        self.app
            .get_workload(&self.ada, &site(), &reference)
            .await
            .expect("it is there")
    }

    pub async fn state(&self, number: u64) -> State {
        self.workload_view(number).await.workload.state
    }

    pub async fn act(&self, who: &Caller, number: u64, act: Act) -> Result<WorkloadView, Error> {
        self.app
            .act_on_workload(who, &site(), &Reference::Name(number), act)
            .await
    }

    /// The same database, after the server was stopped and another was started.
    pub async fn restarted(self) -> Self {
        let app = self.another_server();
        self.controllers.into_inner().give_back().await;
        let controllers = tokio::sync::Mutex::new(berth_app::controllers::ByHand::new(&app));
        Lab {
            app,
            controllers,
            ..self
        }
    }

    /// The same lab in another simulated world.
    pub fn in_world(self, world: berth_drivers::simulated::World) -> Self {
        let lab = Lab { world, ..self };
        let app = lab.another_server();
        let controllers = tokio::sync::Mutex::new(berth_app::controllers::ByHand::new(&app));
        Lab {
            app,
            controllers,
            ..lab
        }
    }

    /// The same lab, where something else runs the work.
    pub fn run_by(self, backend: std::sync::Arc<dyn berth_drivers::backend::Backend>) -> Self {
        let app = berth_app::App::with_backend(
            self.app.store.clone(),
            self.clock.clone(),
            berth_app::vault::Vault::from_key(&[9; 32]),
            self.app.settings.clone(),
            Some(backend),
        );
        let controllers = tokio::sync::Mutex::new(berth_app::controllers::ByHand::new(&app));
        Lab {
            app,
            controllers,
            ..self
        }
    }

    /// Settles what became of environments.
    pub async fn settle(&self) {
        let mut controllers = self.controllers.lock().await;
        controllers.settle_environments().await.expect("a round");
    }

    /// One round of the queue, now.
    pub async fn round(&self) -> Option<Timestamp> {
        self.controllers
            .lock()
            .await
            .carry_queues_on()
            .await
            .expect("a round")
    }

    /// Lets the queue go on by itself until a moment, round by round.
    pub async fn run_until(&self, hours: i64) {
        let end = self.at(hours);
        let mut still = 0;
        while let Some(next) = self.round().await.filter(|next| *next <= end) {
            still = if next > self.app.now() { 0 } else { still + 1 };
            assert!(
                still < 50,
                "the queue wants to be looked at again and again, and nothing happens"
            );
            self.wait_until_moment(next.max(self.app.now())).await;
        }
        self.wait_until_moment(end).await;
        self.round().await;
    }
}

/// Lets a future go on for so many polls, and then drops it where it stands, as a kill would.
pub async fn cut<T>(future: impl Future<Output = T>, left: &mut usize) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if *left == 0 {
            return Poll::Ready(None);
        }
        *left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
