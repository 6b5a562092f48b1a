//! A lab's SQLite store with something in every table, and with everything that could get lost on the way.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use berth_model::audit::{Actor, AuditEntry};
use berth_model::branding::Logo;
use berth_model::closure::{ClosedSpan, Closure, ClosureKind};
use berth_model::environment::{Environment, EnvironmentState};
use berth_model::event::{Audience, Event, EventKind};
use berth_model::feed::{Feed, Shows};
use berth_model::inventory::{Capacity, Facts, StatusChange};
use berth_model::notification::Notification;
use berth_model::policy::{Policy, Scope};
use berth_model::reservation::{HistoryEntry, Item, Privacy, Reservation, State, Terms};
use berth_model::site::Project;
use berth_model::{
    Amount, AuditId, Claim, ClaimId, ClosureId, EnvironmentId, EventId, FeedId, Firmness, Holder,
    Name, Occurrence, PersonId, ProjectId, ReservationId, Resource, ResourceId, SecretId, Series,
    SeriesId, SiteId, Span, Standing, Status, Take, TypeId, WindowId, WorkloadId,
};
use berth_store::booking::Booking;
use berth_store::closures::Source;
use berth_store::usage::Refusals;
use berth_store::{
    Store, Tx, audit, booking, claims, closures, environments, events, feeds, idempotency,
    inventory, leases, logos, maintenance, notifications, outage_notices, policies, projects,
    readers, reservations, secrets, sequencer, series, sites, usage,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::people::{insert_membership, insert_people, insert_site, insert_type};

/// More events than one insert takes, so that batches meet.
const EVENTS: usize = 1_203;

pub struct World {
    pub store: Store,
    pub url: String,
    pub torino: SiteId,
    pub kind: TypeId,
    /// `torino`'s resources by name.
    pub resources: BTreeMap<&'static str, ResourceId>,
    pub ada: PersonId,
    /// The firm claim on `server-1`, with others inside it.
    pub container: ClaimId,
    _folder: tempfile::TempDir,
}

pub fn hour(n: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + n * 3600).expect("an hour of this century")
}

pub fn hours(from: i64, to: i64) -> Span {
    Span::new(hour(from), hour(to)).expect("hours in order")
}

pub fn fresh() -> Uuid {
    Uuid::now_v7()
}

impl World {
    /// An SQLite store with nothing in it yet.
    pub async fn empty() -> Result<(Store, String, tempfile::TempDir)> {
        let folder = tempfile::tempdir()?;
        let url = format!("sqlite:{}", folder.path().join("berth.db").display());
        Ok((Store::open(&url, 1).await?, url, folder))
    }

    pub async fn build() -> Result<World> {
        let (store, url, folder) = World::empty().await?;
        let mut tx = store.begin().await?;
        let ada = insert_people(&mut tx).await?;
        let torino = insert_site(&mut tx, "torino").await?;
        let praha = insert_site(&mut tx, "praha").await?;
        insert_membership(&mut tx, torino, ada).await?;
        let kind = insert_type(&mut tx, torino, "server").await?;
        let mut world = World {
            store: store.clone(),
            url,
            torino,
            kind,
            resources: BTreeMap::new(),
            ada,
            container: ClaimId(fresh()),
            _folder: folder,
        };
        world.insert_tree(&mut tx).await?;
        world.insert_claims(&mut tx).await?;
        world.insert_bookings(&mut tx).await?;
        // The other site has a tree of its own, and its claims never meet the first one's.
        let bench = insert_type(&mut tx, praha, "bench").await?;
        let lab = resource(praha, bench, "lab", None);
        inventory::insert(&mut tx, &lab, hour(0)).await?;
        let elsewhere = claim(praha, lab.id, hours(0, 1000));
        claims::insert(&mut tx, &[elsewhere]).await?;
        world.insert_policies(&mut tx).await?;
        world.insert_records(&mut tx).await?;
        tx.commit().await?;
        Ok(world)
    }

    pub fn claim(&self, resource: &str, span: Span) -> Claim {
        claim(self.torino, self.resources[resource], span)
    }

    pub fn resource(&self, name: &str, parent: Option<&str>) -> Resource {
        let parent = parent.map(|parent| self.resources[parent]);
        resource(self.torino, self.kind, name, parent)
    }

    /// Racks, servers and GPUs; a server that moved, a resource that went, and one that is shared by amounts.
    async fn insert_tree(&mut self, tx: &mut Tx) -> Result<()> {
        let tree = [
            ("rack-1", None),
            ("rack-2", None),
            ("server-1", Some("rack-1")),
            ("gpu-1", Some("server-1")),
            ("gpu-2", Some("server-1")),
            ("slice-1", Some("gpu-2")),
            ("server-2", Some("rack-2")),
            ("old", Some("rack-2")),
            ("cores", Some("server-2")),
        ];
        for (name, parent) in tree {
            let mut new = self.resource(name, parent);
            if name == "cores" {
                new.capacity = Some(Capacity {
                    amount: Amount::new(64)?,
                    unit: "core".parse()?,
                });
            }
            inventory::insert(tx, &new, hour(0)).await?;
            self.resources.insert(name, new.id);
        }
        // A row that stands before its parent in the file, and one without a parent that had one.
        let (rack_1, rack_2) = (self.resources["rack-1"], self.resources["rack-2"]);
        let row = self.resource("row", None);
        inventory::insert(tx, &row, hour(1)).await?;
        self.resources.insert("row", row.id);
        inventory::move_subtree(tx, self.torino, rack_1, Some(row.id)).await?;
        let server_1 = self.resources["server-1"];
        inventory::move_subtree(tx, self.torino, server_1, Some(rack_2)).await?;
        let past = self.claim("old", hours(0, 2));
        claims::insert(tx, std::slice::from_ref(&past)).await?;
        claims::release(tx, &[past.id], hour(1)).await?;
        assert!(inventory::remove(tx, self.torino, self.resources["old"], hour(2)).await?);
        let change = StatusChange {
            resource: rack_1,
            status: Status::Maintenance,
            reason: Some("new fans".parse()?),
            at: hour(1),
            by: Some(self.ada),
        };
        let version = inventory::by_id(tx, self.torino, rack_1).await?;
        let version = version.context("rack-1")?.version;
        assert!(inventory::set_status(tx, &change, fresh(), version).await?);
        Ok(())
    }

    /// Claims in every standing: firm, yielding, by amount, inside a container and inside what is inside.
    async fn insert_claims(&mut self, tx: &mut Tx) -> Result<()> {
        let container = Claim {
            id: self.container,
            ..self.claim("server-1", hours(10, 20))
        };
        let inside = Claim {
            container: Some(container.id),
            firmness: Firmness::Yielding {
                grace: SignedDuration::from_secs(30),
            },
            ..self.claim("gpu-2", hours(12, 18))
        };
        let innermost = Claim {
            container: Some(inside.id),
            ..self.claim("slice-1", hours(13, 14))
        };
        let given_up = Claim {
            container: Some(container.id),
            ..self.claim("gpu-1", hours(12, 13))
        };
        // As if the innermost had been written first: the order of ids is not the order of containers.
        let innermost = Claim {
            id: ClaimId(Uuid::from_u128(1)),
            ..innermost
        };
        let all = [container, inside, innermost, given_up.clone()];
        claims::insert(tx, &all).await?;
        claims::release(tx, &[given_up.id], hour(0)).await?;
        for share in [24, 40] {
            let part = Claim {
                take: Take::Amount(Amount::new(share)?),
                ..self.claim("cores", hours(10, 20))
            };
            claims::insert(tx, &[part]).await?;
        }
        let ended = self.claim("server-1", hours(2, 6));
        claims::insert(tx, std::slice::from_ref(&ended)).await?;
        claims::release(tx, &[ended.id], hour(4)).await?;
        Ok(())
    }

    async fn insert_bookings(&mut self, tx: &mut Tx) -> Result<()> {
        let project = Project {
            id: ProjectId(fresh()),
            site: self.torino,
            name: "optics".parse()?,
            title: "Optics".parse()?,
            version: 1,
            created_at: hour(0),
        };
        projects::insert(tx, &project).await?;
        projects::add_member(tx, project.id, self.ada, hour(0)).await?;
        let booked = self.claim("gpu-1", hours(30, 40));
        claims::insert(tx, std::slice::from_ref(&booked)).await?;
        let Holder::Reservation(id) = booked.holder else {
            anyhow::bail!("claims here are held by reservations");
        };
        let reservation = Reservation {
            id,
            site: self.torino,
            owner: self.ada,
            project: Some(project.id),
            title: "Frühe Messung \u{1f52c}".parse()?,
            privacy: Privacy::Private,
            state: State::Confirmed,
            state_reason: None,
            span: booked.span,
            items: vec![Item {
                resource: booked.resource,
                take: booked.take,
                claim: booked.id,
            }],
            parameters: BTreeMap::new(),
            terms: Terms::default(),
            occurrence: Some(Occurrence {
                series: self.insert_series(tx).await?,
                start: "2027-03-01T09:00:00".parse()?,
                differs: true,
            }),
            version: 3,
            created_at: hour(0),
            updated_at: hour(1),
        };
        let history = HistoryEntry {
            reservation: id,
            at: hour(1),
            from: None,
            to: reservation.state,
            span: reservation.span,
            by: Some(self.ada),
            reason: None,
        };
        let made = Booking {
            reservation,
            history: history.clone(),
            entry: entry(self.torino, self.ada, 1_000),
            event: event(self.torino, self.ada, 10_000),
        };
        booking::insert_all(tx, &[made]).await?;
        let changed = HistoryEntry {
            from: Some(history.to),
            ..history
        };
        reservations::insert_history(tx, &changed).await?;
        let fate = serde_json::json!({"fate": "cannot_be_held"});
        outage_notices::put(tx, self.torino, id, &fate).await?;
        let secret = secrets::SealedSecret {
            id: SecretId(fresh()),
            site: self.torino,
            reservation: id,
            type_name: "server".parse()?,
            parameter: "password".parse()?,
            key_id: "key-1".into(),
            sealed: (0..=255).collect(),
        };
        secrets::put(tx, &secret).await?;
        let window = maintenance::Window {
            id: WindowId(fresh()),
            site: self.torino,
            title: "Power".parse()?,
            span: hours(50, 60),
            state: maintenance::WindowState::Planned,
            planned_by: Some(self.ada),
            created_at: hour(0),
            version: 1,
        };
        maintenance::insert(tx, &window).await?;
        let window = Claim {
            holder: Holder::Maintenance(window.id),
            ..self.claim("row", window.span)
        };
        let job = Claim {
            holder: Holder::Workload(WorkloadId(fresh())),
            ..self.claim("gpu-2", hours(30, 31))
        };
        claims::insert(tx, &[window, job]).await?;
        Ok(())
    }

    async fn insert_series(&self, tx: &mut Tx) -> Result<SeriesId> {
        let pattern = json!({
            "start": "2027-03-01T09:00:00", "length": "PT8H", "time_zone": "Europe/Rome",
            "recurrence": "FREQ=WEEKLY;COUNT=3", "except": ["2027-03-08T09:00:00"],
        });
        let made = Series {
            id: SeriesId(fresh()),
            site: self.torino,
            owner: self.ada,
            title: "Frühe Messung".parse()?,
            privacy: Privacy::Private,
            pattern: serde_json::from_value(pattern)?,
            ends: hour(40),
            version: 2,
            created_at: hour(0),
            updated_at: hour(1),
        };
        series::insert(tx, &made).await?;
        Ok(made.id)
    }

    /// Audit entries and events with and without a number, and the small tables around them.
    async fn insert_policies(&mut self, tx: &mut Tx) -> Result<()> {
        let versions = [
            (None, Scope::Ceilings, 1, Some(Policy::default())),
            (Some(self.torino), Scope::SITE, 1, Some(Policy::default())),
            (Some(self.torino), Scope::SITE, 2, None),
        ];
        for (site, scope, version, policy) in versions {
            policies::touch_site(tx, self.torino).await?;
            let version = policies::Version {
                site,
                scope,
                version,
                policy,
                set_by: Some(self.ada),
                set_at: hour(1),
                reason: Some("the power bill".parse()?),
            };
            policies::insert(tx, fresh(), &version).await?;
        }
        Ok(())
    }

    async fn insert_records(&mut self, tx: &mut Tx) -> Result<()> {
        for n in 0..40 {
            audit::insert(tx, &entry(self.torino, self.ada, n)).await?;
        }
        for n in 0..EVENTS {
            events::insert(tx, &event(self.torino, self.ada, n)).await?;
        }
        while sequencer::step(tx).await? > 0 {}
        for n in 40..43 {
            audit::insert(tx, &entry(self.torino, self.ada, n)).await?;
            events::insert(tx, &event(self.torino, self.ada, EVENTS + n)).await?;
        }
        // Text keys that a language would order in another way than bytes are ordered.
        for key in ["a", "B", "é", "zz", "Z", "-", "_a"] {
            idempotency::claim(tx, self.ada, key, b"print", "rsv_x", hour(0)).await?;
        }
        for name in ["sequencer", "controller", "a.b", "a-b"] {
            let name: Name = name.parse()?;
            leases::acquire(tx, &name, "host-1", 30).await?;
        }
        self.insert_notifications(tx).await?;
        self.insert_queue(tx).await?;
        self.insert_calendars(tx).await
    }
}

impl World {
    async fn insert_notifications(&self, tx: &mut Tx) -> Result<()> {
        for number in [3, 700] {
            let told = event(self.torino, self.ada, number);
            let told = Notification {
                person: self.ada,
                number: number as u64,
                kind: told.kind,
                site: told.site.filter(|_| number > 3),
                subject: told.subject,
                at: told.at,
                data: told.data,
                read_at: (number == 3).then(|| hour(1)),
            };
            notifications::insert(tx, &told).await?;
        }
        readers::begin(tx, "notifications", 700).await?;
        readers::begin(tx, "reminders", 1_800_000_000_000_000).await?;
        Ok(())
    }

    async fn insert_calendars(&self, tx: &mut Tx) -> Result<()> {
        for (n, shows) in [Shows::Mine, Shows::Site(self.torino)]
            .into_iter()
            .enumerate()
        {
            let feed = Feed {
                id: FeedId(fresh()),
                person: self.ada,
                label: "my “phone”".parse()?,
                shows,
                created_at: hour(0),
                last_read_at: (n == 0).then(|| hour(1)),
            };
            feeds::insert(tx, &feed, &[n as u8; 32]).await?;
        }
        for (day, rule) in [(16, None), (17, Some("length_max".to_owned()))] {
            let refusals = Refusals {
                site: self.torino,
                day: jiff::civil::date(2026, 11, day),
                code: "policy.refused".into(),
                rule,
                count: 3,
            };
            usage::add_refusals(tx, &refusals).await?;
        }
        let logo = Logo::read(b"<svg/>".to_vec())?;
        let version = sites::by_id(tx, self.torino)
            .await?
            .context("a site")?
            .version;
        assert!(logos::set(tx, self.torino, version, &logo, "0123").await?);
        let closure = Closure {
            id: ClosureId(fresh()),
            site: self.torino,
            name: "campus".parse()?,
            kind: ClosureKind::Blackouts,
            address: Some("https://www.example.org/x.ics".into()),
            notes: vec!["“Fête” is odd.".into()],
            read_at: hour(0),
            tried_at: hour(1),
            trouble: Some("it could not be reached".into()),
            created_at: hour(0),
            version: 2,
        };
        let source = Source {
            text: "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n".into(),
            etag: Some("\"7\"".into()),
            due_at: hour(2),
        };
        closures::insert(tx, &closure, &source).await?;
        let closed = |n| -> Result<ClosedSpan> {
            Ok(ClosedSpan {
                span: hours(n, n + 1),
                title: format!("Fête {n}").parse()?,
            })
        };
        let spans = [closed(3)?, closed(5)?];
        closures::set_spans(tx, &closure, &spans).await?;
        let base = Environment {
            id: EnvironmentId(fresh()),
            site: self.torino,
            owner: None,
            name: "torch".parse()?,
            version: 1,
            base: None,
            packages: vec!["torch>=2.1".parse()?],
            path: "torch/1".into(),
            prepared: Some("torch-0123".parse()?),
            workload: None,
            state: EnvironmentState::Ready,
            trouble: None,
            python: Some("3.11.2".into()),
            bytes: Some(1 << 33),
            is_on_disk: false,
            created_by: None,
            created_at: hour(0),
            settled_at: Some(hour(1)),
        };
        let extended = Environment {
            id: EnvironmentId(fresh()),
            version: 2,
            base: Some(base.id),
            path: "torch/2".into(),
            prepared: None,
            state: EnvironmentState::Failed,
            trouble: Some("there is no such package".into()),
            is_on_disk: true,
            ..base.clone()
        };
        environments::insert(tx, &base).await?;
        environments::insert(tx, &extended).await?;
        Ok(())
    }
}

pub fn entry(site: SiteId, by: PersonId, n: usize) -> AuditEntry {
    AuditEntry {
        id: AuditId(fresh()),
        at: hour(n as i64),
        actor: if n.is_multiple_of(2) {
            Actor::Person(by)
        } else {
            Actor::System
        },
        origin: Some("192.0.2.7".into()),
        site: (!n.is_multiple_of(3)).then_some(site),
        action: "resource.change".into(),
        subject: format!("res_{n}"),
        before: None,
        after: Some(json!({"title": "Rëck \"1\"\n", "n": n})),
        reason: None,
    }
}

pub fn event(site: SiteId, person: PersonId, n: usize) -> Event {
    Event {
        id: EventId(fresh()),
        at: hour(0),
        kind: EventKind::ResourceChanged,
        site: Some(site),
        subject: format!("res_{n}"),
        audience: if n.is_multiple_of(2) {
            Audience::Members
        } else {
            Audience::Person(person)
        },
        data: json!({"n": n}),
    }
}

fn claim(site: SiteId, resource: ResourceId, span: Span) -> Claim {
    Claim {
        id: ClaimId(fresh()),
        site,
        resource,
        span,
        take: Take::Exclusive,
        firmness: Firmness::Firm,
        container: None,
        holder: Holder::Reservation(ReservationId(fresh())),
        standing: Standing::Holding,
    }
}

pub fn resource(site: SiteId, kind: TypeId, name: &str, parent: Option<ResourceId>) -> Resource {
    Resource {
        id: ResourceId(fresh()),
        site,
        parent,
        type_id: kind,
        name: name.parse().expect("a name"),
        title: None,
        attributes: BTreeMap::new(),
        facts: Facts::default(),
        capacity: None,
        status: Status::Active,
        status_reason: None,
        version: 1,
    }
}
