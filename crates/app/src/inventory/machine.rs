//! Keeps the machine that Berth runs on in a site's inventory. The server enters and updates it as the system, in one
//! transaction that writes nothing if nothing has changed.
//!
//! Changes by admins stay: the name, the place in the tree, their own attributes, a status that a person set. Promises
//! stay, too: a GPU that is gone goes out of service, and an amount is lowered only when less of it is promised.

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

/// The figures of a machine, and its admin's settings.
#[derive(Debug, Clone)]
pub struct OwnMachine {
    /// Identifies the machine, even if its host name changes.
    pub identity: String,
    pub found: Machine,
    /// Cores and memory reserved for the machine itself.
    pub cores_kept: u64,
    pub memory_kept_mib: u64,
    /// The functions that the machine lacks, by attribute name, each with the reason.
    pub lacks: BTreeMap<Name, String>,
    /// The reason why no new run may start on the machine.
    pub closed: Option<Text>,
}

/// The machine's node in the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptMachine {
    pub node: ResourceId,
    /// Whether more is promised than the machine has. Then the caller must repeat this later.
    pub is_behind: bool,
}

/// How to treat an amount that is promised beyond what the machine has: lower it, or put it out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lowering {
    AtOnce,
    Later,
}

const GONE: &str = "the machine no longer has it";
const PROMISED: &str = "more of it is promised than the machine has";
/// The attribute that identifies the node.
const IDENTITY: &str = "machine";
const DEVICE: &str = "device";

impl App {
    /// Brings this machine's entry in the site's inventory up to date.
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

    /// Puts a resource out of service for a reason. Puts it back in service only if the system had put it out; a status
    /// that a person set stays.
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

/// The site as one transaction sees it, and the changes to it.
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

    /// Creates the types that the site lacks for the machine's parts, and sets their roles in the queue's policy.
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

    /// Never reuses a type that has this name but no role in the queue: other resources have this type.
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

    /// The type for new parts of this role. If a site has several, the first by name.
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

    /// The resources with this role below the node, by name.
    fn below(&self, node: &Resource, role: Role) -> Vec<Resource> {
        let is_meant = |one: &&Resource| {
            self.role(one) == Some(role) && self.tree.is_at_or_below(one.id, node.id)
        };
        let mut found: Vec<Resource> = self.resources.iter().filter(is_meant).cloned().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The machine's node: the known one, one that a person entered under the host's name, or a new one.
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

    /// The attributes that the machine reports, added to those that others set.
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

    /// Updates a divisible part to the machine's amount, in the part's unit. Returns whether more than that is
    /// promised.
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
        // A GPU without a device attribute was not entered by the machine, so the machine never puts it out of
        // service.
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

    /// Writes the resource if it has changed.
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

/// The roles of a machine's parts in the queue, and the types for a site that has none.
const KINDS: [(Role, &str, &str); 4] = [
    (Role::Node, "node", "Node"),
    (Role::Cores, "cpu", "Processor cores"),
    (Role::Memory, "memory", "Memory"),
    (Role::Gpu, "gpu", "GPU"),
];

/// The attributes that the admin set stay; only the device is always set by the machine.
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

/// The identity of the machine that a resource stands for, if any.
pub(crate) fn machine_of(resource: &Resource) -> Option<String> {
    let machine = attribute(resource, IDENTITY)?;
    // Admins may use the same attribute name for something else.
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
