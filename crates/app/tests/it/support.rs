//! A lab to try use cases in: either database, a clock that only moves when told, people in every role.

pub mod policy;

pub mod queue;

pub mod scripted;

pub mod series;

pub mod told;

use std::sync::{Arc, Mutex};

use berth_app::clock::Clock;
use berth_app::controllers::ByHand;
use berth_app::inventory::{NewResource, NewType};
use berth_app::reservations::{Item, NewReservation};
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, Settings};
use berth_drivers::simulated::{Simulated, World};
use berth_model::inventory::Capacity;
use berth_model::person::TimeZone;
use berth_model::reference::SiteReference;
use berth_model::reservation::{Privacy, Reservation};
use berth_model::site::{OutsiderView, Role};
use berth_model::{Amount, Name, Reference, Span};
use berth_store::leases::{self, Lease};
use berth_store::{Engine, Store};
use berth_testkit::postgres::Database;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

/// Makes one test per database of an `async fn body(Lab)`.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite { $(#[tokio::test] async fn $name() {
            super::$name(crate::support::Lab::build(berth_store::Engine::Sqlite).await).await
        })* }
        mod postgres { $(#[tokio::test] async fn $name() {
            super::$name(crate::support::Lab::build(berth_store::Engine::Postgres).await).await
        })* }
    };
}
pub(crate) use on_both;

/// The key of every server here.
pub const VAULT: [u8; 32] = [9; 32];

/// What time it is, and how much later whenever somebody looks.
#[derive(Debug)]
pub struct Hands(Mutex<(Timestamp, SignedDuration)>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        let mut hands = self.0.lock().expect("nobody panics holding the hands");
        let (now, each_look) = *hands;
        hands.0 = now + each_look;
        hands.0
    }
}

pub struct Lab {
    pub app: App,
    clock: Arc<Hands>,
    controllers: tokio::sync::Mutex<ByHand>,
    world: World,
    pub root: Caller,
    pub admin: Caller,
    pub ada: Caller,
    pub bob: Caller,
    pub outsider: Caller,
    _place: (Option<TempDir>, Option<Database>),
}

pub fn name(text: &str) -> Name {
    text.parse().expect("a good name")
}

pub fn site() -> SiteReference {
    Reference::Name(name("torino"))
}

impl Lab {
    /// `rack-a > gpu-01 > gpu-01.gpu0..1`, `rack-a > gpu-02`, and `gpu-01.cpu` with 64 cores; `strict` asks for approval.
    pub async fn build(engine: Engine) -> Self {
        let (url, place) = match engine {
            Engine::Sqlite => {
                let directory = TempDir::new().expect("a temporary directory");
                (
                    format!("sqlite:{}/berth.db", directory.path().display()),
                    (Some(directory), None),
                )
            }
            Engine::Postgres => {
                let database = Database::fresh().await;
                (database.url.clone(), (None, Some(database)))
            }
        };
        let store = Store::open(&url, 8).await.expect("the store opens");
        let start = "2026-11-16T08:00:00Z".parse().expect("a moment");
        let clock = Arc::new(Hands(Mutex::new((start, SignedDuration::ZERO))));
        let world = World::calm(1);
        let app = App::with_backend(
            store,
            clock.clone(),
            Vault::from_key(&VAULT),
            Settings::default(),
            Some(Arc::new(Simulated::new(world))),
        );
        let password = "a test's own password".into();
        let (root, _) = app
            .create_admin(
                "root".parse().expect("login"),
                "Root".parse().expect("text"),
                Some(&password),
            )
            .await
            .expect("the first admin");
        let root = Caller::direct(root);
        let new = NewSite {
            name: name("torino"),
            title: "Torino".parse().expect("text"),
            time_zone: "Europe/Rome".parse::<TimeZone>().expect("a zone"),
            outsiders_see: OutsiderView::Nothing,
        };
        app.create_site(&root, new).await.expect("a site");
        let mut people = Vec::new();
        for (login, role) in [
            ("adele", Some(Role::SiteAdmin)),
            ("ada", Some(Role::Member)),
            ("bob", Some(Role::Member)),
            ("otto", None),
        ] {
            let new = NewPerson {
                login: login.parse().expect("login"),
                display_name: login.parse().expect("text"),
                email: None,
                time_zone: None,
                password: None,
            };
            let person = app
                .create_person(&root, new)
                .await
                .expect("a person")
                .value
                .0;
            if let Some(role) = role {
                app.set_member(&root, &site(), &person.id.into(), role)
                    .await
                    .expect("a member");
            }
            people.push(Caller::direct(person));
        }
        let [admin, ada, bob, outsider] = people.try_into().expect("four people");
        let controllers = tokio::sync::Mutex::new(ByHand::new(&app));
        let lab = Self {
            app,
            clock,
            controllers,
            root,
            admin,
            ada,
            bob,
            outsider,
            world,
            _place: place,
        };
        for (kind, needs_approval) in [("server", false), ("strict", true)] {
            let new = NewType {
                name: name(kind),
                title: kind.parse().expect("text"),
                colour: "#1f77b4".parse().expect("a colour"),
                form: Default::default(),
                needs_approval,
            };
            lab.app
                .create_type(&lab.admin, &site(), new)
                .await
                .expect("a type");
        }
        for (resource, parent, cores) in [
            ("rack-a", None, None),
            ("rack-b", None, None),
            ("gpu-01", Some("rack-a"), None),
            ("gpu-02", Some("rack-a"), None),
            ("gpu-01.gpu0", Some("gpu-01"), None),
            ("gpu-01.gpu1", Some("gpu-01"), None),
            ("gpu-01.cpu", Some("gpu-01"), Some(64)),
        ] {
            lab.add(resource, "server", parent, cores).await;
        }
        lab.add("vault-01", "strict", None, None).await;
        lab
    }

    pub async fn add(&self, resource: &str, kind: &str, parent: Option<&str>, cores: Option<u64>) {
        let new = NewResource {
            name: name(resource),
            kind: Reference::Name(name(kind)),
            parent: parent.map(|parent| Reference::Name(name(parent))),
            title: None,
            attributes: Default::default(),
            facts: Default::default(),
            capacity: cores.map(|cores| Capacity {
                amount: Amount::new(cores).expect("cores"),
                unit: name("cores"),
            }),
        };
        self.app
            .create_resource(&self.admin, &site(), new)
            .await
            .expect("a resource");
    }

    /// Another server on the same database, by the same clock.
    pub fn another_server(&self) -> App {
        let (store, vault) = (self.app.store.clone(), Vault::from_key(&VAULT));
        let backend = Arc::new(Simulated::new(self.world));
        App::with_backend(
            store,
            self.clock.clone(),
            vault,
            Settings::default(),
            Some(backend),
        )
    }

    /// The same lab, whose work is run by something else.
    pub fn with_backend(self, backend: Arc<dyn berth_drivers::backend::Backend>) -> Self {
        let settings = self.app.settings.clone();
        self.with(settings, VAULT, Some(backend))
    }

    /// The same, after the key file was replaced.
    pub fn with_another_key(self, backend: Arc<dyn berth_drivers::backend::Backend>) -> Self {
        let settings = self.app.settings.clone();
        self.with(settings, [1; 32], Some(backend))
    }

    /// The same lab with other settings. Nothing runs its work.
    pub fn with_settings(self, settings: Settings) -> Self {
        self.with(settings, VAULT, None)
    }

    pub fn with(
        self,
        settings: Settings,
        key: [u8; 32],
        backend: Option<Arc<dyn berth_drivers::backend::Backend>>,
    ) -> Self {
        let (store, vault) = (self.app.store.clone(), Vault::from_key(&key));
        let app = App::with_backend(store, self.clock.clone(), vault, settings, backend);
        let controllers = tokio::sync::Mutex::new(ByHand::new(&app));
        Lab {
            app,
            controllers,
            ..self
        }
    }

    /// The same database and the same work, after the server was killed and another was started.
    pub async fn succeeded_by(self, backend: Arc<dyn berth_drivers::backend::Backend>) -> Self {
        let Lab {
            controllers, app, ..
        } = &self;
        let fresh = ByHand::new(app);
        let before = std::mem::replace(&mut *controllers.lock().await, fresh);
        before.give_back().await;
        self.with_backend(backend)
    }

    /// Removes what has run out by now.
    pub async fn sweep(&self) {
        let swept = self.controllers.lock().await.sweep().await;
        swept.expect("a sweep");
    }

    /// One round of the sessions, now.
    pub async fn follow_sessions(&self) -> Option<Timestamp> {
        self.try_follow_sessions().await.expect("a round")
    }

    pub async fn try_follow_sessions(&self) -> berth_app::Result<Option<Timestamp>> {
        self.controllers.lock().await.carry_sessions_on().await
    }

    /// A moment so many hours after the lab was opened.
    pub fn at(&self, hours: i64) -> Timestamp {
        let start: Timestamp = "2026-11-16T08:00:00Z".parse().expect("a moment");
        start + SignedDuration::from_hours(hours)
    }

    pub fn span(&self, from: i64, to: i64) -> Span {
        Span::new(self.at(from), self.at(to)).expect("a span")
    }

    /// Sets the clock, and lets everything that is due by then happen.
    pub async fn wait_until(&self, hours: i64) {
        self.wait_until_moment(self.at(hours)).await;
    }

    pub fn set_clock(&self, at: Timestamp) {
        self.hands().0 = at;
    }

    /// Time passes while things are done, as it really does.
    pub fn let_time_pass(&self, each_look: SignedDuration) {
        self.hands().1 = each_look;
    }

    fn hands(&self) -> std::sync::MutexGuard<'_, (Timestamp, SignedDuration)> {
        self.clock
            .0
            .lock()
            .expect("nobody panics holding the hands")
    }

    pub async fn wait_until_moment(&self, at: Timestamp) {
        self.set_clock(at);
        let mut controllers = self.controllers.lock().await;
        controllers
            .catch_up()
            .await
            .expect("the reservations are carried on");
        controllers.number().await.expect("events are numbered");
    }

    /// Lets everybody be told of what happened so far; the first time, of what happens from now on.
    pub async fn notify(&self) {
        self.try_notify().await.expect("everybody is told");
    }

    pub async fn try_notify(&self) -> berth_app::Result<()> {
        self.controllers.lock().await.notify().await
    }

    /// Another server takes a controller over, as if whoever ran it had been silent for too long.
    pub async fn usurp(&self, controller: &str) -> Lease {
        let controller = name(controller);
        if let Some(database) = &self._place.1 {
            let sql = format!("UPDATE lease SET until = 0 WHERE name = '{controller}'");
            database.execute(&sql).expect("the lease runs out");
        }
        let mut tx = self.app.store.begin().await.expect("a transaction");
        if self.app.store.engine() == Engine::Sqlite {
            let ours = leases::acquire(&mut tx, &controller, "this machine", 5).await;
            let ours = ours.expect("a lease").expect("it is ours");
            leases::give_back(&mut tx, &ours).await.expect("it is free");
        }
        let taken = leases::acquire(&mut tx, &controller, "another", 600).await;
        tx.commit().await.expect("it is kept");
        taken.expect("a lease").expect("it was free")
    }

    pub fn wish(&self, resources: &[&str], from: i64, to: i64) -> NewReservation {
        let items = resources
            .iter()
            .map(|resource| match resource.split_once(':') {
                None => Item {
                    resource: Reference::Name(name(resource)),
                    amount: None,
                },
                Some((resource, amount)) => Item {
                    resource: Reference::Name(name(resource)),
                    amount: Amount::new(amount.parse().expect("a number")).ok(),
                },
            });
        NewReservation {
            title: "a test".parse().expect("text"),
            span: self.span(from, to),
            items: items.collect(),
            project: None,
            privacy: Privacy::Site,
            parameters: Default::default(),
            owner: None,
            hold: false,
            any: None,
            pinned: false,
            wait: None,
            at_end: Default::default(),
            lends: None,
        }
    }

    pub async fn try_book(
        &self,
        who: &Caller,
        resources: &[&str],
        from: i64,
        to: i64,
    ) -> berth_app::Result<Reservation> {
        let wish = self.wish(resources, from, to);
        Ok(self.app.book(who, &site(), &wish).await?.value.reservation)
    }

    pub async fn book(&self, who: &Caller, resources: &[&str], from: i64, to: i64) -> Reservation {
        self.try_book(who, resources, from, to)
            .await
            .expect("the booking is accepted")
    }

    pub async fn read(&self, id: berth_model::ReservationId) -> Reservation {
        self.app
            .get_reservation(&self.admin, &site(), id)
            .await
            .expect("it is there")
            .reservation
    }
}
