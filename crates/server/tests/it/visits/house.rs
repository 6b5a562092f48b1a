//! A server with people, a machine that runs sessions, and hands to start them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;

use berth_app::accounts::NewToken;
use berth_app::clock::SystemClock;
use berth_app::inventory::{NewResource, NewType};
use berth_app::sessions::{NewSession, SessionChange};
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, Settings};
use berth_model::inventory::Capacity;
use berth_model::person::Scope;
use berth_model::reference::SiteReference;
use berth_model::session::{Access, State};
use berth_model::site::{OutsiderView, Role};
use berth_model::{Amount, Name, Reference, SessionId};
use berth_server::config::Config;
use berth_server::serve;
use berth_store::Store;
use berth_testkit::{port, wait};
use jiff::SignedDuration;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::app::Here;
use super::browser::{Answer, Ask, Browser, PATIENCE};

pub const PASSWORD: &str = "correct horse battery";

/// `adele` administers the site, `ada` and `bob` work there, `otto` belongs elsewhere, `root` administers all.
pub struct House {
    pub app: App,
    pub machine: Arc<Here>,
    pub address: SocketAddr,
    /// Berth's own, as in a browser's bar.
    pub home: String,
    people: HashMap<&'static str, Caller>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    _directory: TempDir,
}

/// A session that runs.
#[derive(Debug, Clone)]
pub struct Open {
    pub id: SessionId,
    pub label: String,
    /// Its front door, with a slash at the end.
    pub url: String,
}

impl Open {
    /// As browsers write it in `Origin`.
    pub fn origin(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap();
        format!("{scheme}://{}", rest.split('/').next().unwrap())
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn site() -> SiteReference {
    Reference::Name(name("torino"))
}

impl House {
    /// Sessions at names below `localhost`, as they are without any configuration.
    pub async fn open() -> House {
        House::with("public_url = 'http://localhost:{port}'").await
    }

    pub async fn with(config: &str) -> House {
        let port = port::free();
        let config = config.replace("{port}", &port.to_string());
        let config = format!(
            "listen = '127.0.0.1:{port}'\nrate_limit_per_s = 0\nqueue_backend = 'local'\n{config}"
        );
        let directory = TempDir::new().unwrap();
        let env = [("HOME".to_owned(), directory.path().display().to_string())];
        let loaded = Config::layer(Some(("test", &config)), env.into_iter(), BTreeMap::new());
        let config = loaded.unwrap().config;
        let database = directory.path().join("berth.sqlite");
        let store = Store::open(&format!("sqlite:{}", database.display()), 4).await;
        let settings = Settings {
            addresses: berth_server::session_addresses(&config),
            ..Settings::default()
        };
        let machine = Arc::new(Here::new(directory.path()));
        let app = App::with_backend(
            store.unwrap(),
            Arc::new(SystemClock),
            Vault::from_key(&[7; 32]),
            settings,
            Some(machine.clone()),
        );
        let people = people(&app).await;
        furnish(&app, &people["adele"]).await;
        let home = config
            .public_url
            .as_ref()
            .map(|url| url.as_str().to_owned());
        let base = config.base_path.as_str().to_owned();
        let stop = CancellationToken::new();
        let (ready, address) = oneshot::channel();
        let serving = serve(config, app.clone(), stop.clone(), move |address| {
            ready.send(address).ok();
        });
        let task = tokio::spawn(async move { serving.await.expect("it serves") });
        House {
            app,
            machine,
            address: address.await.expect("the server starts"),
            home: home.unwrap() + &base,
            people,
            stop,
            task: Some(task),
            _directory: directory,
        }
    }

    pub fn person(&self, login: &str) -> &Caller {
        &self.people[login]
    }

    pub fn browser(&self) -> Browser {
        Browser::new(self.address)
    }

    /// A browser in which somebody is signed in to Berth; and the proof that Berth's own pages send.
    pub async fn signed_in(&self, login: &str) -> (Browser, String) {
        let browser = self.browser();
        let body = json!({"login": login, "password": PASSWORD}).to_string();
        let ask = Ask::new("POST", &format!("{}/api/v1/sign-in", self.home));
        let ask = ask.header("content-type", "application/json").body(body);
        let answer = browser.send(ask).await.expect(200);
        let proof = answer.json()["csrf_token"].as_str().unwrap().to_owned();
        (browser, proof)
    }

    /// A browser that has come in to a session.
    pub async fn inside(&self, login: &str, session: &Open) -> Browser {
        let (browser, _) = self.signed_in(login).await;
        let (_, answer) = browser.visit(&self.door(session)).await;
        assert!(answer.is_from_the_app(), "{answer:?}");
        browser
    }

    /// Berth's own way to a session.
    pub fn door(&self, session: &Open) -> String {
        format!("{}/open/{}", self.home, session.label)
    }

    /// Starts a session and waits until it lets visitors in.
    pub async fn session(&self, login: &str, named: &str) -> Open {
        let new = NewSession {
            name: Some(name(named)),
            profile: name("lab"),
            environment: None,
            project: None,
            inside: None,
        };
        let made = self
            .app
            .start_session(self.person(login), &site(), new)
            .await;
        let made = made.expect("it is started").value;
        let open = Open {
            id: made.session.id,
            label: made.session.label,
            url: made.url,
        };
        self.until(login, &open, State::Ready).await;
        open
    }

    pub async fn until(&self, login: &str, session: &Open, state: State) {
        let caller = self.person(login);
        wait::until("the session to come so far", PATIENCE, async || {
            let seen = self
                .app
                .get_session(caller, &site(), &session.id.into())
                .await;
            seen.is_ok_and(|seen| seen.session.state == state)
        })
        .await;
    }

    pub async fn change(&self, login: &str, session: &Open, change: SessionChange) {
        let caller = self.person(login);
        let changed = self
            .app
            .change_session(caller, &site(), &session.id.into(), change)
            .await;
        changed.expect("it is changed");
    }

    pub async fn share(&self, session: &Open, with: &str, access: Option<Access>) {
        let with = self.person(with).id().into();
        let share = SessionChange::Share { with, access };
        self.change("ada", session, share).await;
    }

    pub async fn token(&self, login: &str) -> String {
        let new = NewToken {
            label: "test".parse().unwrap(),
            scopes: Scope::ALL.into_iter().collect(),
            expires_at: self.app.now() + SignedDuration::from_hours(48),
        };
        let made = self.app.create_token(self.person(login), new).await;
        let (_, secret) = made.unwrap().value;
        secrecy::ExposeSecret::expose_secret(&secret.unwrap()).to_owned()
    }

    /// What one of Berth's own pages sends.
    pub async fn post(&self, browser: &Browser, proof: &str, path: &str, body: &str) -> Answer {
        let ask = Ask::new("POST", &format!("{}/api/v1{path}", self.home))
            .header("content-type", "application/json")
            .header("x-csrf-token", proof)
            .header("origin", &self.home);
        browser.send(ask.body(body.to_owned())).await
    }

    pub async fn close(mut self) {
        self.stop.cancel();
        let task = self.task.take().unwrap();
        let ended = tokio::time::timeout(PATIENCE, task).await;
        ended.expect("it stops in time").expect("it stops in order");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn people(app: &App) -> HashMap<&'static str, Caller> {
    let password: secrecy::SecretString = PASSWORD.to_owned().into();
    let root = app.create_admin(
        "root".parse().unwrap(),
        "Root".parse().unwrap(),
        Some(&password),
    );
    let root = Caller::direct(root.await.unwrap().0);
    let new = NewSite {
        name: name("torino"),
        title: "Torino".parse().unwrap(),
        time_zone: "Europe/Rome".parse().unwrap(),
        outsiders_see: OutsiderView::Nothing,
    };
    app.create_site(&root, new).await.unwrap();
    let mut people = HashMap::new();
    for (login, role) in [
        ("adele", Some(Role::SiteAdmin)),
        ("ada", Some(Role::Member)),
        ("bob", Some(Role::Member)),
        ("otto", None),
    ] {
        let new = NewPerson {
            login: login.parse().unwrap(),
            display_name: login.parse().unwrap(),
            email: None,
            time_zone: None,
            password: Some(password.clone()),
        };
        let (person, _) = app.create_person(&root, new).await.unwrap().value;
        if let Some(role) = role {
            let added = app
                .set_member(&root, &site(), &person.id.into(), role)
                .await;
            added.unwrap();
        }
        people.insert(login, Caller::direct(person));
    }
    people.insert("root", root);
    people
}

/// One machine, and a profile for sessions of the small app.
async fn furnish(app: &App, admin: &Caller) {
    for kind in ["node", "cpu", "memory"] {
        let new = NewType {
            name: name(kind),
            title: kind.parse().unwrap(),
            colour: "#1f77b4".parse().unwrap(),
            form: Default::default(),
            needs_approval: false,
        };
        app.create_type(admin, &site(), new).await.unwrap();
    }
    for (resource, kind, amount) in [
        ("n1", "node", None),
        ("n1.cpu", "cpu", Some((64, "cores"))),
        ("n1.memory", "memory", Some((256, "gib"))),
    ] {
        let new = NewResource {
            name: name(resource),
            kind: Reference::Name(name(kind)),
            parent: amount.map(|_| Reference::Name(name("n1"))),
            title: None,
            attributes: Default::default(),
            facts: Default::default(),
            capacity: amount.map(|(amount, unit)| Capacity {
                amount: Amount::new(amount).unwrap(),
                unit: unit.parse().unwrap(),
            }),
        };
        app.create_resource(admin, &site(), new).await.unwrap();
    }
    let settings = json!({
        "roles": {"node": "node", "cpu": "cores", "memory": "memory"},
        "profiles": {"lab": {
            "title": "Lab",
            "wishes": [{"task": {"cores_milli": 1000, "memory_mib": 1024}, "limit": "PT1H"}],
            "session": {"app": "tiny"},
        }},
        "apps": {"tiny": {"title": "Tiny", "command": ["tiny"], "serves": "socket"}},
    });
    let settings = serde_json::from_value(settings).unwrap();
    let set = app.set_queue_settings(admin, &site(), None, settings).await;
    set.unwrap();
}
