//! The lab that everybody wants: two racks of two servers, eight people, and a token for each.

use std::sync::Arc;

use anyhow::{Context, Result};
use berth_app::accounts::NewToken;
use berth_app::clock::SystemClock;
use berth_app::inventory::{NewResource, NewType};
use berth_app::vault::Vault;
use berth_app::{App, Caller, NewPerson, NewSite, Settings};
use berth_model::inventory::{Capacity, Facts};
use berth_model::parameter::Form;
use berth_model::person::{Person, Scope, TimeZone};
use berth_model::reference::SiteReference;
use berth_model::site::{OutsiderView, Role};
use berth_model::{Amount, ResourceId};
use berth_store::Store;
use jiff::SignedDuration;
use secrecy::{ExposeSecret, SecretString};

const SITE_ADMINS: usize = 3;
const MEMBERS: usize = 5;
const CORES: u64 = 32;
/// Enough for the longest proof.
const TOKEN_LIFE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What the clients know of the lab before they begin.
#[derive(Debug, Clone)]
pub struct World {
    pub site: SiteReference,
    /// The site's admins first; clients take turns being them.
    pub people: Vec<Somebody>,
    /// Hears every event there is.
    pub global_admin: SecretString,
    pub things: Vec<Thing>,
}

#[derive(Debug, Clone)]
pub struct Somebody {
    pub token: SecretString,
    pub is_admin: bool,
}

/// One resource of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thing {
    pub id: ResourceId,
    pub kind: Kind,
    pub capacity: Option<u64>,
}

/// What a resource is, from the whole to its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Rack,
    Server,
    Gpu,
    Slice,
    Cores,
}

impl Kind {
    pub const ALL: [Kind; 5] = [
        Kind::Rack,
        Kind::Server,
        Kind::Gpu,
        Kind::Slice,
        Kind::Cores,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Rack => "rack",
            Kind::Server => "server",
            Kind::Gpu => "gpu",
            Kind::Slice => "slice",
            Kind::Cores => "cores",
        }
    }
}

impl World {
    /// Builds the lab in an empty database.
    pub async fn build(url: &str) -> Result<Self> {
        let store = Store::open(url, 4).await?;
        let app = app(store.clone());
        let (chief, _) = app
            .create_admin("chief".parse()?, "Chief".parse()?, None)
            .await?;
        let caller = Caller::direct(chief.clone());
        let site = NewSite {
            name: "lab".parse()?,
            title: "The lab".parse()?,
            time_zone: TimeZone::utc(),
            outsiders_see: OutsiderView::Nothing,
        };
        let site: SiteReference = app.create_site(&caller, site).await?.value.site.id.into();
        let mut people = Vec::new();
        for number in 0..SITE_ADMINS + MEMBERS {
            let is_admin = number < SITE_ADMINS;
            people.push(somebody(&app, &caller, &site, number, is_admin).await?);
        }
        let builder = Builder {
            app: &app,
            caller: &caller,
            site: &site,
        };
        let things = builder.build().await?;
        let global_admin = token(&app, chief).await?;
        store.close().await;
        Ok(Self {
            site,
            people,
            global_admin,
            things,
        })
    }

    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Thing> {
        self.things.iter().filter(move |thing| thing.kind == kind)
    }
}

/// The application without a server, on the machine's own clock.
pub fn app(store: Store) -> App {
    let vault = Vault::from_key(&[1; 32]);
    App::new(store, Arc::new(SystemClock), vault, Settings::default())
}

async fn somebody(
    app: &App,
    chief: &Caller,
    site: &SiteReference,
    number: usize,
    is_admin: bool,
) -> Result<Somebody> {
    let new = NewPerson {
        login: format!("person-{number}").parse()?,
        display_name: format!("Person {number}").parse()?,
        email: None,
        time_zone: None,
        password: None,
    };
    let (person, _) = app.create_person(chief, new).await?.value;
    let role = if is_admin {
        Role::SiteAdmin
    } else {
        Role::Member
    };
    app.set_member(chief, site, &person.id.into(), role).await?;
    let token = token(app, person).await?;
    Ok(Somebody { token, is_admin })
}

async fn token(app: &App, person: Person) -> Result<SecretString> {
    let new = NewToken {
        label: "proof".parse()?,
        scopes: Scope::ALL.into_iter().collect(),
        expires_at: app.now() + TOKEN_LIFE,
    };
    let made = app.create_token(&Caller::direct(person), new).await?;
    let (_, secret) = made.value;
    let secret = secret.context("a fresh token has a secret")?;
    Ok(secret.expose_secret().into())
}

/// Puts the racks up.
struct Builder<'a> {
    app: &'a App,
    caller: &'a Caller,
    site: &'a SiteReference,
}

impl Builder<'_> {
    async fn build(&self) -> Result<Vec<Thing>> {
        for kind in Kind::ALL {
            let new = NewType {
                name: kind.name().parse()?,
                title: kind.name().parse()?,
                colour: "#1f77b4".parse()?,
                form: Form::default(),
                // Who wants a whole rack asks. An admin may answer in time; else it lapses.
                needs_approval: kind == Kind::Rack,
            };
            self.app.create_type(self.caller, self.site, new).await?;
        }
        let mut things = Vec::new();
        for rack in 0..2 {
            let name = format!("r{rack}");
            let rack = self.add(&mut things, Kind::Rack, &name, None).await?;
            for server in 0..2 {
                let name = format!("{name}-s{server}");
                let server = self
                    .add(&mut things, Kind::Server, &name, Some(rack))
                    .await?;
                let cores = format!("{name}-cores");
                self.add(&mut things, Kind::Cores, &cores, Some(server))
                    .await?;
                for gpu in 0..2 {
                    let name = format!("{name}-g{gpu}");
                    let gpu = self
                        .add(&mut things, Kind::Gpu, &name, Some(server))
                        .await?;
                    let slice = format!("{name}-slice");
                    self.add(&mut things, Kind::Slice, &slice, Some(gpu))
                        .await?;
                }
            }
        }
        Ok(things)
    }

    async fn add(
        &self,
        things: &mut Vec<Thing>,
        kind: Kind,
        name: &str,
        parent: Option<ResourceId>,
    ) -> Result<ResourceId> {
        let capacity = (kind == Kind::Cores).then_some(CORES);
        let new = NewResource {
            name: name.parse()?,
            kind: kind.name().parse()?,
            parent: parent.map(Into::into),
            title: None,
            attributes: Default::default(),
            facts: Facts::default(),
            capacity: match capacity {
                Some(cores) => Some(Capacity {
                    amount: Amount::new(cores)?,
                    unit: "core".parse()?,
                }),
                None => None,
            },
        };
        let (_, view, _) = self
            .app
            .create_resource(self.caller, self.site, new)
            .await?
            .value;
        let id = view.resource.id;
        things.push(Thing { id, kind, capacity });
        Ok(id)
    }
}
