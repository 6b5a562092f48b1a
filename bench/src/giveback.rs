//! `queue.giveback_p99_s`: how long owners wait for GPUs of their own reservations that were lent to others.
//!
//! A simulated fleet is reserved, node by node, and lent whole. Then the owners want all of it back. Time is made up and
//! goes on second by second, which is less often than the controller's bells ring; the rounds are the real ones, on a real
//! database. Most of what borrows uses up all of its grace before it goes.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use berth_app::clock::Clock;
use berth_app::controllers::ByHand;
use berth_app::queue::NewWorkload;
use berth_app::reservations::{Item, NewReservation};
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, Settings};
use berth_drivers::simulated::{Simulated, World};
use berth_model::attribute::Attributes;
use berth_model::inventory::{Facts, Resource, ResourceType};
use berth_model::parameter::Form;
use berth_model::person::TimeZone;
use berth_model::reservation::{AtEnd, Privacy};
use berth_model::site::{OutsiderView, Role};
use berth_model::{Reference, ReservationId, ResourceId, SiteId, Span, Status, TypeId};
use berth_store::{Engine, Store, inventory};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::lab::{Ground, fresh};
use crate::report::{Report, percentile, say};

const NODES: usize = 128;
const GPUS: usize = 8;
/// So many owners come in each second.
const OWNERS_PER_S: usize = 8;
const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// Longer than this nobody waits: something is wrong.
const PATIENCE_S: usize = 600;

#[derive(Debug)]
struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct Fleet {
    app: App,
    clock: Arc<Hands>,
    controllers: ByHand,
    site: SiteId,
    owner: Caller,
    borrower: Caller,
    rounds_ms: Vec<f64>,
    _ground: Ground,
}

pub async fn run(report: &mut Report) -> Result<()> {
    say(&format!(
        "queue: {} lent GPUs are wanted back by those who reserved them",
        NODES * GPUS
    ));
    let mut fleet = Fleet::build().await?;
    let reserved = fleet.reserve().await?;
    fleet.lend().await?;
    fleet.rounds_ms.clear();
    let mut waited_s = fleet.want_back(&reserved).await?;
    ensure!(
        waited_s.len() == NODES * GPUS,
        "only {} came back",
        waited_s.len()
    );
    report.add("queue.giveback_p50_s", percentile(&mut waited_s, 0.5));
    report.add("queue.giveback_p99_s", percentile(&mut waited_s, 0.99));
    let rounds_ms = &mut fleet.rounds_ms;
    report.add("queue.giveback_round_p99_ms", percentile(rounds_ms, 0.99));
    Ok(())
}

impl Fleet {
    async fn build() -> Result<Fleet> {
        let ground = Ground::new(Engine::Sqlite).await?;
        let store = Store::open(&ground.url, 4).await?;
        let clock = Arc::new(Hands(Mutex::new("2026-11-16T08:00:00Z".parse()?)));
        // It would need a minute to go, and is made to when its grace is over.
        let world = World {
            slowest_end: SignedDuration::from_mins(1),
            ..World::calm(1)
        };
        let backend = Arc::new(Simulated::new(world));
        let (vault, settings) = (Vault::from_key(&[1; 32]), Settings::default());
        let app = App::with_backend(store, clock.clone(), vault, settings, Some(backend));
        let password = "a benchmark's password".into();
        let (owner, _) = app
            .create_admin("owner".parse()?, "Owner".parse()?, Some(&password))
            .await?;
        let owner = Caller::direct(owner);
        let new = NewSite {
            name: "lab".parse()?,
            title: "The lab".parse()?,
            time_zone: TimeZone::utc(),
            outsiders_see: OutsiderView::Nothing,
        };
        let site = app.create_site(&owner, new).await?.value.site.id;
        let new = NewPerson {
            login: "borrower".parse()?,
            display_name: "Borrower".parse()?,
            email: None,
            time_zone: None,
            password: None,
        };
        let borrower = app.create_person(&owner, new).await?.value.0;
        for (person, role) in [(owner.id(), Role::SiteAdmin), (borrower.id, Role::Member)] {
            app.set_member(&owner, &site.into(), &person.into(), role)
                .await?;
        }
        let fleet = Fleet {
            controllers: ByHand::new(&app),
            app,
            clock,
            site,
            owner,
            borrower: Caller::direct(borrower),
            rounds_ms: Vec::new(),
            _ground: ground,
        };
        fleet.fill().await?;
        let roles = json!({ "roles": { "node": "node", "gpu": "gpu" } });
        fleet
            .app
            .set_queue_settings(
                &fleet.owner,
                &site.into(),
                None,
                serde_json::from_value(roles)?,
            )
            .await?;
        Ok(fleet)
    }

    async fn fill(&self) -> Result<()> {
        let mut tx = self.app.store.begin().await?;
        let mut kinds = Vec::new();
        for name in ["node", "gpu"] {
            let kind = ResourceType {
                id: TypeId(fresh()),
                site: self.site,
                name: name.parse()?,
                title: name.parse()?,
                colour: "#1f77b4".parse()?,
                form: Form::default(),
                needs_approval: false,
                version: 1,
            };
            inventory::insert_type(&mut tx, &kind).await?;
            kinds.push(kind.id);
        }
        let resource = |name: String, kind: TypeId, parent: Option<ResourceId>| -> Result<_> {
            Ok(Resource {
                id: ResourceId(fresh()),
                site: self.site,
                parent,
                type_id: kind,
                name: name.parse()?,
                title: None,
                attributes: Attributes::new(),
                facts: Facts::default(),
                capacity: None,
                status: Status::Active,
                status_reason: None,
                version: 1,
            })
        };
        let now = self.app.now();
        for number in 0..NODES {
            let node = resource(node(number), kinds[0], None)?;
            inventory::insert(&mut tx, &node, now).await?;
            for gpu in 0..GPUS {
                let name = format!("{}.gpu{gpu}", node.name);
                let gpu = resource(name, kinds[1], Some(node.id))?;
                inventory::insert(&mut tx, &gpu, now).await?;
            }
        }
        tx.commit().await?;
        Ok(())
    }

    /// Every node is reserved by itself, and what is idle of it is lent.
    async fn reserve(&self) -> Result<Vec<ReservationId>> {
        let start = self.app.now() + SECOND;
        let span = Span::new(start, start + SignedDuration::from_hours(8))?;
        let mut reserved = Vec::new();
        for number in 0..NODES {
            let wish = NewReservation {
                title: "bench".parse()?,
                span,
                items: vec![Item {
                    resource: Reference::Name(node(number).parse()?),
                    amount: None,
                }],
                project: None,
                privacy: Privacy::Site,
                parameters: Default::default(),
                owner: None,
                hold: false,
                any: None,
                pinned: false,
                wait: None,
                at_end: AtEnd::Stop,
                lends: Some(true),
            };
            let made = self.app.book(&self.owner, &self.site.into(), &wish).await?;
            reserved.push(made.value.reservation.id);
        }
        Ok(reserved)
    }

    /// Until every GPU is lent.
    async fn lend(&mut self) -> Result<()> {
        for _ in 0..NODES * GPUS {
            self.submit(&self.borrower, None).await?;
        }
        for _ in 0..PATIENCE_S {
            self.second().await?;
            let mut reader = self.app.store.read().await?;
            let (_, running) = berth_store::workloads::counts(&mut reader).await?;
            if running == (NODES * GPUS) as u64 {
                return Ok(());
            }
        }
        anyhow::bail!("not every GPU could be lent")
    }

    /// The owners come, some each second, and each wants every GPU of their node; says how long each GPU took.
    async fn want_back(&mut self, reserved: &[ReservationId]) -> Result<Vec<f64>> {
        let mut open: Vec<(u64, Timestamp)> = Vec::new();
        let mut waited_s = Vec::new();
        let mut coming = reserved.chunks(OWNERS_PER_S);
        for _ in 0..PATIENCE_S {
            let now = self.app.now();
            for id in coming.next().unwrap_or_default() {
                for _ in 0..GPUS {
                    open.push((self.submit(&self.owner, Some(*id)).await?, now));
                }
            }
            self.second().await?;
            let mut still = Vec::new();
            for (number, since) in open {
                let (site, workload) = (self.site.into(), Reference::Name(number));
                let view = self.app.get_workload(&self.owner, &site, &workload);
                match view.await?.runs.first() {
                    Some(run) => {
                        waited_s.push(since.duration_until(run.began).as_secs_f64());
                    }
                    None => still.push((number, since)),
                }
            }
            open = still;
            if open.is_empty() && coming.len() == 0 {
                break;
            }
        }
        Ok(waited_s)
    }

    /// One GPU: inside a reservation of one's own, or wherever something is idle.
    async fn submit(&self, who: &Caller, inside: Option<ReservationId>) -> Result<u64> {
        let class = match inside {
            Some(_) => "guaranteed",
            None => "opportunistic",
        };
        let ask = json!({
            "title": "bench", "class": class, "level": null, "seats": [], "inside": inside,
            "not_before": null, "deadline": null, "after": [], "array": null, "requeue": true,
            "program": { "command": ["sleep", "6h"] },
            "wishes": [{
                "task": { "cores_milli": 1000, "memory_mib": 1024, "gpus": { "count": 1 } },
                "limit": "PT6H",
            }],
        });
        let new = NewWorkload {
            project: None,
            profile: None,
            is_held: false,
            ask: serde_json::from_value(ask).context("what is asked for")?,
        };
        let made = self.app.submit(who, &self.site.into(), new).await?;
        Ok(made.value.workload.number)
    }

    /// A second goes by, and then everything that is due happens.
    async fn second(&mut self) -> Result<()> {
        *self
            .clock
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) += SECOND;
        self.controllers.catch_up().await?;
        self.controllers.number().await?;
        let started = Instant::now();
        self.controllers.carry_queues_on().await?;
        self.rounds_ms
            .push(started.elapsed().as_secs_f64() * 1000.0);
        self.controllers.number().await?;
        Ok(())
    }
}

fn node(number: usize) -> String {
    format!("node-{number:03}")
}
