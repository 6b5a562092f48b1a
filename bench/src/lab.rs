//! The world the benchmarks run in: a site, a person with a token, and as many resources and claims as asked for.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use berth_app::accounts::NewToken;
use berth_app::clock::SystemClock;
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewSite, Settings};
use berth_model::attribute::Attributes;
use berth_model::inventory::{Facts, Resource, ResourceType};
use berth_model::parameter::Form;
use berth_model::person::{Scope, TimeZone};
use berth_model::site::OutsiderView;
use berth_model::{PersonId, ResourceId, SiteId, Status, TypeId};
use berth_store::{Engine, Store, inventory};
use berth_testkit::postgres::Database;
use berth_testkit::server::{BerthServer, Launch};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use uuid::Uuid;

pub const RESOURCES: usize = 10_000;

/// A database of either kind that goes away when dropped.
#[derive(Debug)]
pub struct Ground {
    pub url: String,
    _directory: tempfile::TempDir,
    _database: Option<Database>,
}

impl Ground {
    pub async fn new(engine: Engine) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        Ok(match engine {
            Engine::Sqlite => {
                let url = format!("sqlite:{}", directory.path().join("berth.sqlite").display());
                Self {
                    url,
                    _directory: directory,
                    _database: None,
                }
            }
            Engine::Postgres => {
                let database = Database::fresh().await;
                Self {
                    url: database.url.clone(),
                    _directory: directory,
                    _database: Some(database),
                }
            }
        })
    }
}

/// A site with flat resources, and someone who may book them.
#[derive(Debug)]
pub struct Lab {
    pub ground: Ground,
    pub site: SiteId,
    pub person: PersonId,
    pub token: String,
    pub resources: Vec<ResourceId>,
}

impl Lab {
    pub async fn build(engine: Engine, resources: usize) -> Result<Self> {
        Self::build_with(engine, resources, |_| Attributes::new()).await
    }

    /// The same, each resource with the attributes that its number gives it.
    pub async fn build_with(
        engine: Engine,
        resources: usize,
        attributes: fn(usize) -> Attributes,
    ) -> Result<Self> {
        let ground = Ground::new(engine).await?;
        let store = Store::open(&ground.url, 4).await?;
        let app = App::new(
            store.clone(),
            Arc::new(SystemClock),
            Vault::from_key(&[1; 32]),
            Settings::default(),
        );
        let password = "a benchmark's password".into();
        let (person, _) = app
            .create_admin("bench".parse()?, "Bench".parse()?, Some(&password))
            .await?;
        let caller = Caller::direct(person.clone());
        let site = NewSite {
            name: "lab".parse()?,
            title: "The lab".parse()?,
            time_zone: TimeZone::utc(),
            outsiders_see: OutsiderView::Nothing,
        };
        let site = app.create_site(&caller, site).await?.value.site;
        app.set_member(
            &caller,
            &site.id.into(),
            &person.id.into(),
            berth_model::site::Role::SiteAdmin,
        )
        .await?;
        let token = NewToken {
            label: "bench".parse()?,
            scopes: Scope::ALL.into_iter().collect(),
            expires_at: app.now() + SignedDuration::from_hours(24),
        };
        let secret = app
            .create_token(&caller, token)
            .await?
            .value
            .1
            .context("a fresh token has a secret")?;
        let resources = fill(&store, site.id, resources, attributes, app.now()).await?;
        store.close().await;
        Ok(Self {
            ground,
            site: site.id,
            person: person.id,
            token: secret.expose_secret().to_owned(),
            resources,
        })
    }

    /// Starts the release binary on this lab's database.
    pub async fn serve(&self) -> Result<BerthServer> {
        self.serve_with("").await
    }

    /// The same; `more` are lines of its configuration.
    pub async fn serve_with(&self, more: &str) -> Result<BerthServer> {
        let config = format!(
            "listen = \"127.0.0.1:{{port}}\"\ndata_dir = \"{{directory}}\"\ndatabase = \"{}\"\n\
             rate_limit_per_s = 0\nlog_filter = \"warn\"\n{more}",
            self.ground.url
        );
        Launch::new(binary()?, config).start().await
    }

    /// Lets the servers be nodes of a queue.
    pub async fn make_queue(&self) -> Result<()> {
        let store = Store::connect(&self.ground.url, 2).await?;
        let (clock, vault) = (Arc::new(SystemClock), Vault::from_key(&[1; 32]));
        let app = App::new(store.clone(), clock, vault, Settings::default());
        let mut reader = store.read().await?;
        let person = berth_store::people::get(&mut reader, self.person).await?;
        drop(reader);
        let caller = Caller::direct(person.context("the person of this lab")?);
        let settings =
            serde_json::json!({ "roles": { "server": "node" }, "waiting_max": 1_000_000 });
        let settings = serde_json::from_value(settings)?;
        app.set_queue_settings(&caller, &self.site.into(), None, settings)
            .await?;
        store.close().await;
        Ok(())
    }

    pub fn reservations_path(&self) -> String {
        format!("/api/v1/sites/{}/reservations", self.site)
    }

    pub fn series_path(&self) -> String {
        format!("/api/v1/sites/{}/series", self.site)
    }
}

async fn fill(
    store: &Store,
    site: SiteId,
    count: usize,
    attributes: fn(usize) -> Attributes,
    now: Timestamp,
) -> Result<Vec<ResourceId>> {
    let mut tx = store.begin().await?;
    let kind = ResourceType {
        id: TypeId(fresh()),
        site,
        name: "server".parse()?,
        title: "Server".parse()?,
        colour: "#1f77b4".parse()?,
        form: Form::default(),
        needs_approval: false,
        version: 1,
    };
    inventory::insert_type(&mut tx, &kind).await?;
    let mut ids = Vec::new();
    for number in 0..count {
        let resource = Resource {
            id: ResourceId(fresh()),
            site,
            parent: None,
            type_id: kind.id,
            name: format!("server-{number:05}").parse()?,
            title: None,
            attributes: attributes(number),
            facts: Facts::default(),
            capacity: None,
            status: Status::Active,
            status_reason: None,
            version: 1,
        };
        inventory::insert(&mut tx, &resource, now).await?;
        ids.push(resource.id);
    }
    tx.commit().await?;
    Ok(ids)
}

pub fn fresh() -> Uuid {
    Uuid::now_v7()
}

/// The release binary beside this one: what users run.
pub fn binary() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("berth");
    anyhow::ensure!(
        path.exists(),
        "{} is missing; build it with: cargo build --release -p berth",
        path.display()
    );
    Ok(path)
}

/// What a writing task needs to know of the lab.
#[derive(Debug, Clone)]
pub struct Address {
    pub site: SiteId,
    pub person: PersonId,
    pub resources: Arc<[ResourceId]>,
}

impl Lab {
    pub fn address(&self) -> Address {
        Address {
            site: self.site,
            person: self.person,
            resources: self.resources.as_slice().into(),
        }
    }
}
