//! The machine that Berth itself runs on, in a site's inventory. The server puts it there and keeps it up to date, as the
//! system, in one transaction that changes nothing where nothing has changed.
//!
//! What admins made of it stays: its name, where it stands, attributes of their own, a status that a person set. What is
//! promised stays, too: a GPU that is gone goes out of service, and an amount is lowered only when less is promised.

mod wanted;

use std::collections::{BTreeMap, BTreeSet};

use berth_drivers::local::machine::{GpuFound, Machine};
use berth_engine::tree::Tree;
use berth_model::attribute::{AttributeValue, Attributes};
use berth_model::event::{Audience, EventKind};
use berth_model::inventory::{Capacity, Colour};
use berth_model::name::NameError;
use berth_model::queue::{QueuePolicy, Role};
use berth_model::reference::SiteReference;
use berth_model::site::Site;
use berth_model::{
    Name, Reference, Resource, ResourceId, ResourceType, SiteId, Status, Text, TypeId,
};
use berth_store::{Conn, Refused, inventory, queues, sites};
use serde_json::json;

use self::wanted::{amount_of_cores, amount_of_memory, free_name, host_name, model_name};
use super::resources::tree_of;
use crate::App;
use crate::clock::fresh;
use crate::error::{Error, Result};
use crate::record::{By, Change};
use crate::transact::transact;
use crate::version;

/// What a machine says of itself, and what its admin says of it.
#[derive(Debug, Clone)]
pub struct OwnMachine {
    /// What it is known by, whatever its host is called.
    pub identity: String,
    pub found: Machine,
    /// What is kept for the machine itself.
    pub cores_kept: u64,
    pub memory_kept_mib: u64,
    /// What it cannot do, and why, each under an attribute's name.
    pub lacks: BTreeMap<Name, String>,
    /// Why nothing new may run on it.
    pub closed: Option<Text>,
}

/// The node that the machine is, once it stands in the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptMachine {
    pub node: ResourceId,
    /// Whether more is promised of it than it has: then this is to be done again later.
    pub is_behind: bool,
}

/// Whether an amount of which too much is promised is lowered or put out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lowering {
    AtOnce,
    Later,
}

const GONE: &str = "the machine no longer has it";
const PROMISED: &str = "more of it is promised than the machine has";
/// The attribute by which the node is found again.
const IDENTITY: &str = "machine";
const DEVICE: &str = "device";

impl App {
    /// Makes sure that this machine stands in the site's inventory as it is.
    pub async fn keep_machine(
        &self,
        site: &SiteReference,
        machine: &OwnMachine,
    ) -> Result<KeptMachine> {
        match self.try_keep_machine(site, machine, Lowering::AtOnce).await {
            Err(error) if error.is_refused(Refused::Amount) => {
                self.try_keep_machine(site, machine, Lowering::Later).await
            }
            done => done,
        }
    }

    async fn try_keep_machine(
        &self,
        site: &SiteReference,
        machine: &OwnMachine,
        lowering: Lowering,
    ) -> Result<KeptMachine> {
        transact!(self, tx => {
            let site = match site {
                Reference::Id(id) => sites::by_id(&mut tx, *id).await?,
                Reference::Name(name) => sites::by_name(&mut tx, name).await?,
            };
            let site = site.ok_or(Error::NotFound("site"))?;
            inventory::hold_shape(&mut tx, site.id).await?;
            let mut keeping = Keeping::read(self, &mut tx, &site, machine, lowering).await?;
            keeping.give_roles(&mut tx).await?;
            let node = keeping.node(&mut tx).await?;
            let lacks_cores = keeping.cores(&mut tx, &node).await?;
            let lacks_memory = keeping.memory(&mut tx, &node).await?;
            keeping.gpus(&mut tx, &node).await?;
            Ok(KeptMachine { node: node.id, is_behind: lacks_cores || lacks_memory })
        })
    }

    /// Puts a resource out of service for a reason, or back in where the system itself had put it out. What a person
    /// said of it stands.
    async fn keep_status(
        &self,
        conn: &mut Conn,
        resource: &Resource,
        closed: Option<Text>,
    ) -> Result<()> {
        let by_system = match resource.status {
            Status::Active => true,
            Status::Maintenance => false,
            Status::Unavailable => {
                let newest = inventory::status_history(conn, resource.id, u64::MAX >> 1, 1).await?;
                newest
                    .first()
                    .is_some_and(|(_, change)| change.by.is_none())
            }
        };
        let status = match &closed {
            Some(_) => Status::Unavailable,
            None => Status::Active,
        };
        if !by_system || (resource.status, &resource.status_reason) == (status, &closed) {
            return Ok(());
        }
        match self
            .write_status(conn, By::SYSTEM, resource, status, closed)
            .await?
        {
            true => Ok(()),
            false => Err(version::overtaken(resource.version)),
        }
    }
}

/// One transaction's view of the site, and what is made of it.
struct Keeping<'a> {
    app: &'a App,
    site: SiteId,
    machine: &'a OwnMachine,
    lowering: Lowering,
    types: Vec<ResourceType>,
    policy: QueuePolicy,
    resources: Vec<Resource>,
    tree: Tree,
    taken: BTreeSet<Name>,
}

impl<'a> Keeping<'a> {
    async fn read(
        app: &'a App,
        conn: &mut Conn,
        site: &Site,
        machine: &'a OwnMachine,
        lowering: Lowering,
    ) -> Result<Keeping<'a>> {
        let resources = inventory::of_site(conn, site.id).await?;
        Ok(Keeping {
            app,
            site: site.id,
            machine,
            lowering,
            types: inventory::types(conn, site.id).await?,
            policy: queues::policy(conn, site.id).await?,
            tree: tree_of(&resources)?,
            taken: resources.iter().map(|one| one.name.clone()).collect(),
            resources,
        })
    }

    /// Makes the types that the machine's parts need and the site has none of, and tells the queue what they are to it.
    async fn give_roles(&mut self, conn: &mut Conn) -> Result<()> {
        let mut roles = self.policy.roles.clone();
        roles.retain(|id, _| self.types.iter().any(|kind| kind.id == *id));
        for (role, name, title) in KINDS {
            let is_needed = role != Role::Gpu || !self.machine.found.gpus.is_empty();
            if is_needed && !roles.values().any(|known| *known == role) {
                roles.insert(self.new_type(conn, name, title).await?, role);
            }
        }
        if roles == self.policy.roles {
            return Ok(());
        }
        let after = QueuePolicy {
            roles,
            ..self.policy.clone()
        };
        if !queues::set_policy(conn, self.site, &after, self.policy.version).await? {
            return Err(version::overtaken(self.policy.version));
        }
        let change = Change::new("queue.change", Some(self.site), self.site);
        let change = change.before(&self.policy).after(&after);
        let change = change.tell_only(EventKind::QueueChanged, Audience::Members, json!({}));
        self.app.record(conn, By::SYSTEM, change).await?;
        self.policy = after;
        Ok(())
    }

    /// One of that name which the queue does not know is left alone: others' resources are of it.
    async fn new_type(&mut self, conn: &mut Conn, name: &str, title: &str) -> Result<TypeId> {
        let taken = self.types.iter().map(|kind| kind.name.clone()).collect();
        let new = ResourceType {
            id: TypeId(fresh(self.app.now())),
            site: self.site,
            name: free_name(name, &taken)?,
            title: text(title)?,
            colour: Colour::default(),
            form: Default::default(),
            needs_approval: false,
            version: 1,
        };
        self.app.write_new_type(conn, By::SYSTEM, &new).await?;
        let id = new.id;
        self.types.push(new);
        Ok(id)
    }

    /// The type that new parts of this role get: the first by name, where a site has several.
    fn kind(&self, role: Role) -> Result<TypeId> {
        let mut kinds: Vec<&ResourceType> = self.types.iter().collect();
        kinds.sort_by(|a, b| a.name.cmp(&b.name));
        let found = kinds
            .iter()
            .find(|kind| self.policy.roles.get(&kind.id) == Some(&role));
        let found = found.ok_or_else(|| Error::Internal("a role without a type".into()))?;
        Ok(found.id)
    }

    fn role(&self, resource: &Resource) -> Option<Role> {
        self.policy.roles.get(&resource.type_id).copied()
    }

    /// Those below the node that are this to the queue, by name.
    fn below(&self, node: &Resource, role: Role) -> Vec<Resource> {
        let is_meant = |one: &&Resource| {
            self.role(one) == Some(role) && self.tree.is_at_or_below(one.id, node.id)
        };
        let mut found: Vec<Resource> = self.resources.iter().filter(is_meant).cloned().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The machine itself: the one that it was before, one that somebody entered by hand under its name, or a new one.
    async fn node(&mut self, conn: &mut Conn) -> Result<Resource> {
        let OwnMachine {
            identity, found, ..
        } = self.machine;
        let host = host_name(&found.name)?;
        let known = self.resources.iter().find(|one| is_known_by(one, identity));
        let by_hand = || {
            self.resources.iter().find(|one| {
                one.name == host
                    && self.role(one) == Some(Role::Node)
                    && !one.attributes.keys().any(|key| key.as_str() == IDENTITY)
            })
        };
        let node = match known.or_else(by_hand).cloned() {
            Some(node) => {
                let attributes = self.node_attributes(&node.attributes)?;
                self.change(conn, node, |after| after.attributes = attributes)
                    .await?
            }
            None => {
                let attributes = self.node_attributes(&Attributes::new())?;
                self.make(conn, host.as_str(), Role::Node, None, |new| {
                    new.attributes = attributes
                })
                .await?
            }
        };
        let closed = self.machine.closed.clone();
        self.app.keep_status(conn, &node, closed).await?;
        Ok(node)
    }

    /// What the machine says of itself, beside what others say of it.
    fn node_attributes(&self, known: &Attributes) -> Result<Attributes> {
        let OwnMachine {
            identity,
            found,
            lacks,
            ..
        } = self.machine;
        let mut all = known.clone();
        all.retain(|key, _| !wanted::LACKS.contains(&key.as_str()));
        let number = |count: u64| AttributeValue::Number(count as f64);
        let own = [
            (IDENTITY, AttributeValue::Text(identity.clone())),
            ("cores", number(found.cores)),
            ("memory_mib", number(found.memory_mib)),
            ("gpus", number(found.gpus.len() as u64)),
        ];
        for (key, value) in own {
            all.insert(named(key)?, value);
        }
        for (key, why) in lacks {
            all.insert(key.clone(), AttributeValue::Text(wanted::shortened(why)));
        }
        Ok(all)
    }

    async fn cores(&mut self, conn: &mut Conn, node: &Resource) -> Result<bool> {
        let cores = self
            .machine
            .found
            .cores
            .saturating_sub(self.machine.cores_kept);
        let amount = |unit: &str| amount_of_cores(cores, unit);
        self.part(conn, node, Role::Cores, ("cpu", "millicores"), amount)
            .await
    }

    async fn memory(&mut self, conn: &mut Conn, node: &Resource) -> Result<bool> {
        let OwnMachine {
            found,
            memory_kept_mib,
            ..
        } = self.machine;
        let mib = found.memory_mib.saturating_sub(*memory_kept_mib);
        let amount = |unit: &str| amount_of_memory(mib, unit);
        self.part(conn, node, Role::Memory, ("memory", "mib"), amount)
            .await
    }

    /// A divisible part with as much as there is, in the unit that it has; says whether more is promised than that.
    async fn part(
        &mut self,
        conn: &mut Conn,
        node: &Resource,
        role: Role,
        (name, unit): (&str, &str),
        amount: impl Fn(&str) -> Result<berth_model::Amount>,
    ) -> Result<bool> {
        let Some(part) = self.below(node, role).into_iter().next() else {
            let capacity = Capacity {
                amount: amount(unit)?,
                unit: named(unit)?,
            };
            let name = format!("{}.{name}", node.name);
            self.make(conn, &name, role, Some(node.id), |new| {
                new.capacity = Some(capacity)
            })
            .await?;
            return Ok(false);
        };
        let unit = match &part.capacity {
            Some(capacity) => capacity.unit.clone(),
            None => named(unit)?,
        };
        let wanted = Capacity {
            amount: amount(unit.as_str())?,
            unit,
        };
        let is_lowered = part
            .capacity
            .as_ref()
            .is_some_and(|is| wanted.amount < is.amount);
        if is_lowered && self.lowering == Lowering::Later {
            self.app
                .keep_status(conn, &part, Some(text(PROMISED)?))
                .await?;
            return Ok(true);
        }
        let part = self
            .change(conn, part, |after| after.capacity = Some(wanted))
            .await?;
        self.app.keep_status(conn, &part, None).await?;
        Ok(false)
    }

    async fn gpus(&mut self, conn: &mut Conn, node: &Resource) -> Result<()> {
        let mut known = self.below(node, Role::Gpu);
        for found in &self.machine.found.gpus {
            let is_it = |one: &Resource| {
                let device = attribute(one, DEVICE);
                device
                    .is_some_and(|device| device == found.uuid || device == found.index.to_string())
            };
            let gpu = match known.iter().position(is_it) {
                Some(place) => {
                    let gpu = known.swap_remove(place);
                    let attributes = gpu_attributes(found, &gpu.attributes)?;
                    self.change(conn, gpu, |after| after.attributes = attributes)
                        .await?
                }
                None => {
                    let attributes = gpu_attributes(found, &Attributes::new())?;
                    let name = format!("{}.gpu{}", node.name, found.index);
                    let title = text(&found.model).ok();
                    self.make(conn, &name, Role::Gpu, Some(node.id), |new| {
                        (new.attributes, new.title) = (attributes, title);
                    })
                    .await?
                }
            };
            self.app.keep_status(conn, &gpu, None).await?;
        }
        // One that says of no device that it is it was never the machine's own to take away.
        for gone in known.iter().filter(|one| attribute(one, DEVICE).is_some()) {
            self.app.keep_status(conn, gone, Some(text(GONE)?)).await?;
        }
        Ok(())
    }

    async fn make(
        &mut self,
        conn: &mut Conn,
        name: &str,
        role: Role,
        parent: Option<ResourceId>,
        fill: impl FnOnce(&mut Resource),
    ) -> Result<Resource> {
        let mut new = Resource {
            id: ResourceId(fresh(self.app.now())),
            site: self.site,
            parent,
            type_id: self.kind(role)?,
            name: free_name(name, &self.taken)?,
            title: None,
            attributes: Attributes::new(),
            facts: Default::default(),
            capacity: None,
            status: Status::Active,
            status_reason: None,
            version: 1,
        };
        fill(&mut new);
        self.app.write_new_resource(conn, By::SYSTEM, &new).await?;
        self.taken.insert(new.name.clone());
        Ok(new)
    }

    /// Writes what has changed, if anything has.
    async fn change(
        &self,
        conn: &mut Conn,
        before: Resource,
        change: impl FnOnce(&mut Resource),
    ) -> Result<Resource> {
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(before);
        }
        after.version = before.version + 1;
        match self
            .app
            .write_resource(conn, By::SYSTEM, &before, &after)
            .await?
        {
            true => Ok(after),
            false => Err(version::overtaken(before.version)),
        }
    }
}

/// What the parts of a machine are to the queue, and the types they get where a site has none.
const KINDS: [(Role, &str, &str); 4] = [
    (Role::Node, "node", "Node"),
    (Role::Cores, "cpu", "Processor cores"),
    (Role::Memory, "memory", "Memory"),
    (Role::Gpu, "gpu", "GPU"),
];

/// What its admin said of it stands; by which device it is reached is the machine's to say.
fn gpu_attributes(found: &GpuFound, known: &Attributes) -> Result<Attributes> {
    let mut all = known.clone();
    let memory_gb = (found.memory_mib as f64 / 1024.0).round();
    all.insert(named(DEVICE)?, AttributeValue::Text(found.uuid.clone()));
    all.entry(named("gpu_model")?)
        .or_insert_with(|| AttributeValue::Text(model_name(&found.model)));
    all.entry(named("gpu_memory_gb")?)
        .or_insert(AttributeValue::Number(memory_gb));
    Ok(all)
}

/// The machine that a resource stands for, if it does.
pub(crate) fn machine_of(resource: &Resource) -> Option<String> {
    let machine = attribute(resource, IDENTITY)?;
    // Admins may call other things by the same name.
    uuid::Uuid::try_parse(&machine).is_ok().then_some(machine)
}

fn attribute(resource: &Resource, name: &str) -> Option<String> {
    let mut all = resource.attributes.iter();
    let found = all.find(|(key, _)| key.as_str() == name);
    found.map(|(_, value)| value.to_string())
}

fn is_known_by(resource: &Resource, identity: &str) -> bool {
    attribute(resource, IDENTITY).is_some_and(|known| known == identity)
}

fn named(text: &str) -> Result<Name> {
    text.parse()
        .map_err(|error: NameError| Error::Internal(error.to_string()))
}

fn text(words: &str) -> Result<Text> {
    words
        .parse()
        .map_err(|error: NameError| Error::Internal(error.to_string()))
}
