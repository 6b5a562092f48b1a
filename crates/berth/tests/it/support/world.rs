//! Two sites and people in every role, made by the application itself before the server starts.
//!
//! `torino` is the site that the tests are about, `bologna` the one whose people must not learn of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use berth_app::accounts::NewToken;
use berth_app::clock::{Clock, SystemClock};
use berth_app::inventory::{NewResource, NewType};
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, PersonChange, Settings, SiteChange};
use berth_model::inventory::Capacity;
use berth_model::parameter::{Form, Parameter, ParameterKind};
use berth_model::person::{Person, Scope};
use berth_model::reference::SiteReference;
use berth_model::site::{OutsiderView, Role};
use berth_model::{Amount, Name, Reference};
use berth_store::Store;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;

use super::http::Who;

/// Everybody's who has one.
pub const PASSWORD: &str = "a quiet harbour at night";
/// How many people wait to be let into `torino`.
const WAITING: usize = 64;

/// Who is who: login, role in `torino`, role in `bologna`.
const PEOPLE: [(&str, Option<Role>, Option<Role>); 7] = [
    ("adele", Some(Role::SiteAdmin), None),
    ("ada", Some(Role::Member), None),
    ("bob", Some(Role::Member), None),
    ("sam", Some(Role::SiteAdmin), None),
    ("otto", None, None),
    ("bea", None, Some(Role::Member)),
    ("bruno", None, Some(Role::SiteAdmin)),
];

/// What the tests know of the world.
#[derive(Debug, Clone)]
pub struct World {
    pub torino: String,
    pub bologna: String,
    people: BTreeMap<String, Person>,
    tokens: BTreeMap<String, String>,
    /// Requests to join `torino` that nobody has decided.
    pub waiting: Vec<String>,
}

/// A clock that stands still.
#[derive(Debug)]
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}

pub fn app(store: &Store, clock: Arc<dyn Clock>) -> App {
    let vault = Vault::from_key(&[7; 32]);
    App::new(store.clone(), clock, vault, Settings::default())
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

impl World {
    pub async fn build(url: &str) -> Self {
        let store = Store::open(url, 4).await.expect("the store opens");
        let app = app(&store, Arc::new(SystemClock));
        let password = PASSWORD.into();
        let root = app
            .create_admin(
                "root".parse().expect("a login"),
                "Root".parse().expect("text"),
                Some(&password),
            )
            .await
            .expect("the first admin")
            .0;
        let mut builder = Builder {
            app,
            store,
            root: Caller::direct(root.clone()),
            people: BTreeMap::from([("root".to_owned(), root)]),
            tokens: BTreeMap::new(),
        };
        builder.build().await
    }

    pub fn id(&self, login: &str) -> String {
        self.people[login].id.to_string()
    }

    /// Somebody with an API token: `ada`, or one of the special ones (see [`Builder::make_tokens`]).
    pub fn who(&self, token: &str) -> Who {
        Who::Token(self.token(token).to_owned())
    }

    pub fn token(&self, token: &str) -> &str {
        &self.tokens[token]
    }
}

struct Builder {
    app: App,
    store: Store,
    root: Caller,
    people: BTreeMap<String, Person>,
    tokens: BTreeMap<String, String>,
}

impl Builder {
    async fn build(&mut self) -> World {
        let torino = self.make_site("torino").await;
        let bologna = self.make_site("bologna").await;
        for (login, in_torino, in_bologna) in PEOPLE {
            // Passwords are dear to hash, and only `ada` signs in with one beside `root`.
            let person = self.make_person(login, login == "ada").await;
            for (site, role) in [(&torino, in_torino), (&bologna, in_bologna)] {
                if let Some(role) = role {
                    let person = person.id.into();
                    let set = self.app.set_member(&self.root, site, &person, role);
                    set.await.expect("a member");
                }
            }
        }
        self.make_tokens().await;
        self.suspend("sam").await;
        self.stock_torino(&torino).await;
        let task = serde_json::json!({"cores_milli": 1000, "memory_mib": 1024});
        let settings = serde_json::json!({
            "roles": {"server": "node"},
            "profiles": {"notebook": {
                "title": "Notebook",
                "wishes": [{"task": task, "limit": "PT1H"}],
                "session": {"app": "notebook"},
            }},
            "apps": {"notebook": {"title": "Notebook", "command": ["notebook"], "serves": "socket"}},
        });
        let settings = serde_json::from_value(settings).expect("settings");
        let set = self
            .app
            .set_queue_settings(&self.root, &torino, None, settings);
        set.await.expect("a queue");
        self.make_type(&bologna, "server", Form::default(), false)
            .await;
        self.make_resource(&bologna, "gpu-01", "server", None, None)
            .await;
        let waiting = self.queue_at(&torino).await;
        self.store.close().await;
        World {
            torino: torino.to_string(),
            bologna: bologna.to_string(),
            people: std::mem::take(&mut self.people),
            tokens: std::mem::take(&mut self.tokens),
            waiting,
        }
    }

    async fn make_site(&self, site: &str) -> SiteReference {
        let new = NewSite {
            name: name(site),
            title: format!("The lab of {site}").parse().expect("text"),
            time_zone: "Europe/Rome".parse().expect("a zone"),
            outsiders_see: OutsiderView::Nothing,
        };
        let made = self.app.create_site(&self.root, new).await;
        made.expect("a site").value.site.id.into()
    }

    async fn make_person(&mut self, login: &str, signs_in: bool) -> Person {
        let new = NewPerson {
            login: login.parse().expect("a login"),
            display_name: login.parse().expect("text"),
            email: None,
            time_zone: None,
            password: signs_in.then(|| PASSWORD.into()),
        };
        let made = self.app.create_person(&self.root, new).await;
        let (person, _) = made.expect("a person").value;
        self.people.insert(login.to_owned(), person.clone());
        person
    }

    async fn suspend(&mut self, login: &str) {
        let change = PersonChange {
            suspended: Some(true),
            ..PersonChange::default()
        };
        let person = self.people[login].id.into();
        let changed = self.app.update_person(&self.root, &person, None, change);
        changed.await.expect("a suspended person");
    }

    /// A full token for everyone, and of `root` and `ada` some that are good for less or for nothing.
    async fn make_tokens(&mut self) {
        let all = Scope::ALL;
        for login in self.people.keys().cloned().collect::<Vec<_>>() {
            self.make_token(&login, &login, &all).await;
        }
        self.make_token("root, read", "root", &[Scope::Read]).await;
        self.make_token("root, read and book", "root", &[Scope::Read, Scope::Book])
            .await;
        self.make_token("ada, read and book", "ada", &[Scope::Read, Scope::Book])
            .await;
        let revoked = self.make_token("revoked", "root", &all).await;
        let done = self.app.revoke_token(&self.root, None, revoked).await;
        done.expect("a revoked token");
        // Nobody can make a token that has expired, but somebody could have, the day before yesterday.
        let now = self.app.now();
        let then = now - SignedDuration::from_hours(48);
        let past = std::mem::replace(&mut self.app, app(&self.store, Arc::new(Stopped(then))));
        self.make_token("expired", "root", &all).await;
        self.app = past;
    }

    async fn make_token(
        &mut self,
        label: &str,
        owner: &str,
        scopes: &[Scope],
    ) -> berth_model::TokenId {
        let new = NewToken {
            label: label.parse().expect("text"),
            scopes: scopes.iter().copied().collect(),
            expires_at: self.app.now() + SignedDuration::from_hours(24),
        };
        let caller = Caller::direct(self.people[owner].clone());
        let made = self.app.create_token(&caller, new).await;
        let (token, secret) = made.expect("a token").value;
        let secret = secret.expect("a fresh token has a secret");
        self.tokens
            .insert(label.to_owned(), secret.expose_secret().to_owned());
        token.id
    }

    async fn make_type(&self, site: &SiteReference, kind: &str, form: Form, needs_approval: bool) {
        let new = NewType {
            name: name(kind),
            title: format!("A {kind}").parse().expect("text"),
            colour: "#1f77b4".parse().expect("a colour"),
            form,
            needs_approval,
        };
        let made = self.app.create_type(&self.root, site, new).await;
        made.expect("a type");
    }

    async fn make_resource(
        &self,
        site: &SiteReference,
        resource: &str,
        kind: &str,
        parent: Option<&str>,
        amount: Option<u64>,
    ) {
        let capacity = amount.map(|amount| Capacity {
            amount: Amount::new(amount).expect("an amount"),
            unit: name("seat"),
        });
        let new = NewResource {
            name: name(resource),
            kind: Reference::Name(name(kind)),
            parent: parent.map(|parent| Reference::Name(name(parent))),
            title: None,
            attributes: Default::default(),
            facts: Default::default(),
            capacity,
        };
        let made = self.app.create_resource(&self.root, site, new).await;
        made.expect("a resource");
    }

    /// `rack-a > gpu-01, gpu-02`; `rack-b`; `press`; ten `seats`; and `vault-01`, which nobody gets without approval.
    async fn stock_torino(&self, site: &SiteReference) {
        let ask = |key: &str, kind| Parameter {
            key: name(key),
            label: key.parse().expect("text"),
            help: None,
            required: false,
            kind,
        };
        let questions = vec![
            ask("image", ParameterKind::Text { max_length: None }),
            ask("root-password", ParameterKind::Secret {}),
        ];
        let form = Form::try_from(questions).expect("a form");
        self.make_type(site, "server", form, false).await;
        self.make_type(site, "strict", Form::default(), true).await;
        for (resource, kind, parent, amount) in [
            ("rack-a", "server", None, None),
            ("rack-b", "server", None, None),
            ("gpu-01", "server", Some("rack-a"), None),
            ("gpu-02", "server", Some("rack-a"), None),
            ("press", "server", None, None),
            ("seats", "server", None, Some(10)),
            ("vault-01", "strict", None, None),
        ] {
            self.make_resource(site, resource, kind, parent, amount)
                .await;
        }
    }

    /// People who asked to join while the site showed its name.
    async fn queue_at(&mut self, site: &SiteReference) -> Vec<String> {
        self.show(site, OutsiderView::Name).await;
        let mut waiting = Vec::new();
        for number in 0..WAITING {
            let person = self.make_person(&format!("waiting-{number}"), false).await;
            let asked = self
                .app
                .ask_to_join(&Caller::direct(person), site, None)
                .await;
            waiting.push(asked.expect("a request").value.1.id.to_string());
        }
        self.show(site, OutsiderView::Nothing).await;
        waiting
    }

    async fn show(&self, site: &SiteReference, view: OutsiderView) {
        let change = SiteChange {
            outsiders_see: Some(view),
            ..SiteChange::default()
        };
        let changed = self.app.update_site(&self.root, site, None, change).await;
        changed.expect("the site changes");
    }
}
