//! The sites of the demo: three with resource types and trees, as data, and one for the machine that it runs on.

mod bologna;
mod napoli;
pub mod this_machine;
mod torino;

use anyhow::Context;
use berth_app::inventory::{NewResource, NewType};
use berth_app::{App, Caller, NewProject, NewSite};
use berth_model::attribute::AttributeValue;
use berth_model::inventory::{Capacity, Facts};
use berth_model::reference::SiteReference;
use berth_model::site::OutsiderView;
use berth_model::{Amount, Reference};
use serde_json::Value;

use super::almanac::ZONE;
use super::people::PROJECTS;

/// Ten colours that stay distinct for the colour-blind (Paul Tol's "muted" scheme).
mod colour {
    pub const INDIGO: &str = "#332288";
    pub const CYAN: &str = "#88ccee";
    pub const TEAL: &str = "#44aa99";
    pub const GREEN: &str = "#117733";
    pub const OLIVE: &str = "#999933";
    pub const SAND: &str = "#ddcc77";
    pub const ROSE: &str = "#cc6677";
    pub const WINE: &str = "#882255";
    pub const PURPLE: &str = "#aa4499";
    pub const GREY: &str = "#dddddd";
}

#[derive(Debug)]
pub struct Site {
    pub name: &'static str,
    title: &'static str,
    outsiders_see: OutsiderView,
    kinds: Vec<Kind>,
    things: Vec<Thing>,
    /// How its queue is run, as the API takes it; none where it has no queue.
    queue: Option<Value>,
}

pub fn all() -> Vec<Site> {
    vec![
        torino::site(),
        bologna::site(),
        napoli::site(),
        this_machine::site(),
    ]
}

/// A resource type.
#[derive(Debug)]
struct Kind {
    name: &'static str,
    title: &'static str,
    colour: &'static str,
    needs_approval: bool,
    /// The booking form, written as the API takes it.
    form: Value,
}

fn kind(name: &'static str, title: &'static str, colour: &'static str) -> Kind {
    Kind {
        name,
        title,
        colour,
        needs_approval: false,
        form: Value::Array(Vec::new()),
    }
}

impl Kind {
    fn asks(self, form: Value) -> Self {
        Self { form, ..self }
    }

    fn needs_approval(self) -> Self {
        Self {
            needs_approval: true,
            ..self
        }
    }
}

/// A resource.
#[derive(Debug)]
struct Thing {
    name: String,
    kind: &'static str,
    parent: Option<String>,
    title: Option<String>,
    attributes: Vec<(&'static str, String)>,
    capacity: Option<(u64, &'static str)>,
    location: Option<String>,
    provisioning_address: Option<String>,
    monitoring_url: Option<String>,
}

fn thing(name: impl Into<String>, kind: &'static str) -> Thing {
    Thing {
        name: name.into(),
        kind,
        parent: None,
        title: None,
        attributes: Vec::new(),
        capacity: None,
        location: None,
        provisioning_address: None,
        monitoring_url: None,
    }
}

impl Thing {
    fn under(mut self, parent: impl Into<String>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    fn with(mut self, attribute: &'static str, value: impl ToString) -> Self {
        self.attributes.push((attribute, value.to_string()));
        self
    }

    fn holding(mut self, amount: u64, unit: &'static str) -> Self {
        self.capacity = Some((amount, unit));
        self
    }

    fn at(mut self, location: impl Into<String>) -> Self {
        self.location = Some(location.into());
        self
    }

    /// Where its management controller answers and where its graphs are; neither exists outside this story.
    fn managed(mut self, site: &str) -> Self {
        let host = &self.name;
        self.provisioning_address = Some(format!("redfish://{host}.bmc.{site}.example.org"));
        self.monitoring_url = Some(format!("https://grafana.{site}.example.org/d/{host}"));
        self
    }

    fn facts(&self) -> anyhow::Result<Facts> {
        let text = |value: &Option<String>| value.as_deref().map(str::parse).transpose();
        Ok(Facts {
            provisioning_address: text(&self.provisioning_address)?,
            monitoring_url: text(&self.monitoring_url)?,
            location: text(&self.location)?,
            contact: None,
        })
    }
}

/// A server's divisible parts: cores and memory are leaves of their own, so whoever takes the whole server has them too.
fn shares(server: &str, cores: u64, memory_gib: u64) -> [Thing; 2] {
    [
        thing(format!("{server}.cpu"), "cpu")
            .under(server)
            .holding(cores, "cores"),
        thing(format!("{server}.memory"), "memory")
            .under(server)
            .holding(memory_gib, "gib"),
    ]
}

/// The seven slices into which an A100 of 80 GB is cut at its finest.
fn slices(gpu: &str) -> impl Iterator<Item = Thing> {
    (0..7).map(move |slice| {
        thing(format!("{gpu}.mig{slice}"), "mig-slice")
            .under(gpu)
            .with("mig_profile", "1g.10gb")
            .with("gpu_memory_gb", 10)
    })
}

pub fn reference(site: &str) -> anyhow::Result<SiteReference> {
    Ok(Reference::Name(site.parse()?))
}

impl Site {
    /// Makes the site, its types, its resources and its projects.
    pub async fn build(&self, app: &App, admin: &Caller) -> anyhow::Result<()> {
        let new = NewSite {
            name: self.name.parse()?,
            title: self.title.parse()?,
            time_zone: ZONE.parse()?,
            outsiders_see: self.outsiders_see,
        };
        app.create_site(admin, new).await?;
        let site = reference(self.name)?;
        for kind in &self.kinds {
            let new = NewType {
                name: kind.name.parse()?,
                title: kind.title.parse()?,
                colour: kind.colour.parse()?,
                form: serde_json::from_value(kind.form.clone())
                    .with_context(|| format!("the form of {}", kind.name))?,
                needs_approval: kind.needs_approval,
            };
            app.create_type(admin, &site, new).await?;
        }
        for thing in &self.things {
            let made = app.create_resource(admin, &site, new_resource(thing)?);
            made.await
                .with_context(|| format!("{}/{}", self.name, thing.name))?;
        }
        for project in PROJECTS.iter().filter(|project| project.site == self.name) {
            let new = NewProject {
                name: project.name.parse()?,
                title: project.title.parse()?,
            };
            app.create_project(admin, &site, new).await?;
        }
        if let Some(queue) = &self.queue {
            let settings = serde_json::from_value(queue.clone()).context("the queue")?;
            app.set_queue_settings(admin, &site, None, settings).await?;
        }
        Ok(())
    }
}

fn new_resource(thing: &Thing) -> anyhow::Result<NewResource> {
    let attribute =
        |(name, value): &(&str, String)| Ok((name.parse()?, AttributeValue::from_text(value)));
    let capacity = match thing.capacity {
        Some((amount, unit)) => Some(Capacity {
            amount: Amount::new(amount)?,
            unit: unit.parse()?,
        }),
        None => None,
    };
    Ok(NewResource {
        name: thing.name.parse()?,
        kind: Reference::Name(thing.kind.parse()?),
        parent: match &thing.parent {
            Some(parent) => Some(Reference::Name(parent.parse()?)),
            None => None,
        },
        title: thing.title.as_deref().map(str::parse).transpose()?,
        attributes: thing
            .attributes
            .iter()
            .map(attribute)
            .collect::<anyhow::Result<_>>()?,
        facts: thing.facts()?,
        capacity,
    })
}
