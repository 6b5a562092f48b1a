//! Submits workloads.

use berth_drivers::backend::DiskSpace;
use berth_engine::rights::Action;
use berth_model::audit::AuditEntry;
use berth_model::event::{Audience, Event, EventKind};
use berth_model::queue::QueuePolicy;
use berth_model::reference::{ProjectReference, SiteReference};
use berth_model::workload::{Ask, Counts, Program, Seats, State, Workload};
use berth_model::{FieldErrors, Name, PersonId, ProjectId, Reference, Span, WorkloadId};
use berth_store::submissions::{self, Submission};
use berth_store::{Conn, queues, reservations, workloads};
use jiff::SignedDuration;

use super::carry::told;
use super::look::WorkloadView;
use crate::App;
use crate::caller::Caller;
use crate::clock::fresh;
use crate::directory::Directory;
use crate::disk::check_space;
use crate::error::{Error, Result};
use crate::once::Made;
use crate::place::Place;
use crate::record::{By, Change};
use crate::transact::transact;

/// A submission.
#[derive(Debug, Clone)]
pub struct NewWorkload {
    pub project: Option<ProjectReference>,
    /// Name of a preset. Its variants are used if `ask` has none.
    pub profile: Option<Name>,
    /// Whether the workload is held from the beginning.
    pub is_held: bool,
    pub ask: Ask,
}

/// A checked submission that can be written.
pub(crate) struct Prepared {
    pub place: Place,
    pub workload: Workload,
    pub directory: Directory,
    /// How many workloads of one person may wait at this site.
    pub waiting_max: u32,
}

impl App {
    pub async fn submit(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewWorkload,
    ) -> Result<Made<WorkloadView>> {
        let space = self.disk_space(caller.id()).await;
        if caller.once.is_some() {
            return self.submit_once(caller, site, new, &space).await;
        }
        let mut reader = self.store.read().await?;
        let Prepared {
            place,
            workload,
            mut directory,
            waiting_max,
        } = self.prepare(&mut reader, caller, site, new).await?;
        check_space(&space, &workload.ask)?;
        let whose = (place.id(), caller.id());
        self.crowd
            .join(&mut reader, whose, waiting_max, workload.since)
            .await?;
        drop(reader);
        directory.add_person(&caller.person);
        let mut workload = self.batches.add(self, caller, workload).await?;
        workload.ask.program.environment.clear();
        Ok(Made::now(WorkloadView {
            place,
            workload,
            runs: Vec::new(),
            reason: None,
            directory,
        }))
    }

    /// Submits with an idempotency key, which the same transaction stores.
    async fn submit_once(
        &self,
        caller: &Caller,
        site: &SiteReference,
        new: NewWorkload,
        space: &DiskSpace,
    ) -> Result<Made<WorkloadView>> {
        transact!(self, tx => {
            let prepared = self.prepare(&mut tx, caller, site, new.clone()).await?;
            let Prepared { place, workload, waiting_max, .. } = prepared;
            if let Some(earlier) = self.first_time(&mut tx, caller, workload.id).await? {
                let known = workloads::get(&mut tx, place.id(), earlier).await?;
                let known = known.ok_or(Error::NotFound("workload"))?;
                return Ok(Made::before(self.view(&mut tx, place, known).await?));
            }
            check_space(space, &workload.ask)?;
            let whose = (place.id(), caller.id());
            self.crowd.join(&mut tx, whose, waiting_max, workload.since).await?;
            let number = workloads::next_numbers(&mut tx, place.id(), 1).await?;
            let workload = Workload { number, ..workload };
            submissions::insert_all(&mut tx, &[self.submission(caller, workload.clone())?]).await?;
            Ok(Made::now(self.view(&mut tx, place, workload).await?))
        })
        .inspect(|_| self.submitted.notify_one())
    }

    /// Checks a submission, and builds the workload to write. The workload gets its number when it is written.
    pub(crate) async fn prepare(
        &self,
        conn: &mut Conn,
        caller: &Caller,
        site: &SiteReference,
        new: NewWorkload,
    ) -> Result<Prepared> {
        let place = self.place(conn, caller, site, Action::Submit).await?;
        let mut directory = Directory::with_site(&place.site);
        let project = self
            .booking_project(
                conn,
                caller,
                &place,
                caller.id(),
                new.project.as_ref(),
                &mut directory,
            )
            .await?;
        let policy = queues::policy(conn, place.id()).await?;
        let ask = self
            .parse_ask(conn, &place, &policy, (caller.id(), project), &new)
            .await?;
        let seats = ask.seats.iter().filter_map(|seats| match &seats.resource {
            Reference::Id(id) => Some(*id),
            Reference::Name(_) => None,
        });
        directory
            .learn_resources(conn, seats.collect::<Vec<_>>())
            .await?;
        let now = self.now();
        let workload = Workload {
            id: WorkloadId(fresh(now)),
            site: place.id(),
            number: 0,
            owner: caller.id(),
            project,
            waiting: ask.tasks(),
            ask,
            state: if new.is_held {
                State::Held
            } else {
                State::Waiting
            },
            reason: None,
            counts: Counts::default(),
            since: now,
            ended_at: None,
            version: 1,
        };
        Ok(Prepared {
            place,
            workload,
            directory,
            waiting_max: policy.waiting_max,
        })
    }

    pub(crate) fn submission(
        &self,
        by: impl Into<By>,
        mut workload: Workload,
    ) -> Result<Submission> {
        let variables = self.take_variables(&mut workload)?;
        let change = Change::new("workload.submit", Some(workload.site), workload.id)
            .after(masked(&workload))
            .tell_only(
                EventKind::WorkloadSubmitted,
                Audience::Members,
                told(&workload),
            );
        let (entry, event) = self.written(by, change);
        let event = event.unwrap_or_else(|| unreachable!("the change was just made to tell of it"));
        // Both have the time from which the workload waits.
        Ok(Submission {
            variables,
            entry: AuditEntry {
                at: workload.since,
                ..entry
            },
            event: Event {
                at: workload.since,
                ..event
            },
            workload,
        })
    }

    async fn parse_ask(
        &self,
        conn: &mut Conn,
        place: &Place,
        policy: &QueuePolicy,
        (owner, project): (PersonId, Option<ProjectId>),
        new: &NewWorkload,
    ) -> Result<Ask> {
        let mut errors = FieldErrors::default();
        let mut ask = new.ask.clone();
        if let Some(name) = &new.profile {
            match policy.profiles.get(name) {
                Some(profile) if ask.wishes.is_empty() => {
                    ask.wishes.clone_from(&profile.wishes);
                    ask.class = profile.class;
                }
                Some(_) => {}
                None => errors.push(
                    "profile",
                    format!(
                        "there is no profile `{name}` here{}",
                        known(policy.profiles.keys())
                    ),
                ),
            }
        }
        if policy.roles.is_empty() {
            errors.push(
                "site",
                "this site has no queue: an admin has to say which of its resources are nodes",
            );
        }
        if let Some(name) = &ask.level {
            match policy.levels.get(name) {
                None => errors.push(
                    "level",
                    format!(
                        "there is no level `{name}` here{}",
                        known(policy.levels.keys())
                    ),
                ),
                Some(level) => {
                    let may = level.projects.is_empty()
                        || project.is_some_and(|id| level.projects.contains(&id));
                    if !may {
                        errors.push(
                            "level",
                            format!("the level `{name}` is not for this project"),
                        );
                    }
                }
            }
        }
        for (place, wish) in ask.wishes.iter().enumerate() {
            if wish.limit > policy.limit_max {
                let most = hours(policy.limit_max);
                errors.push(
                    format!("wishes[{place}].limit"),
                    format!("the longest limit at this site is {most}"),
                );
            }
        }
        for (number, seats) in ask.seats.iter_mut().enumerate() {
            match self.resource(conn, place.id(), &seats.resource).await {
                Ok(resource) if resource.capacity.is_some() => {
                    *seats = Seats {
                        resource: Reference::Id(resource.id),
                        amount: seats.amount,
                    };
                }
                Ok(resource) => {
                    let message = format!(
                        "`{}` is not counted: it has no capacity to take seats of",
                        resource.name
                    );
                    errors.push(format!("seats[{number}].resource"), message);
                }
                Err(Error::NotFound(_)) => {
                    errors.push(
                        format!("seats[{number}].resource"),
                        format!("there is no resource `{}` here", seats.resource),
                    );
                }
                Err(error) => return Err(error),
            }
        }
        let wanted: Vec<WorkloadId> = ask.after.iter().map(|after| after.workload).collect();
        let others = workloads::some(conn, place.id(), wanted).await?;
        for (number, after) in ask.after.iter().enumerate() {
            if !others.iter().any(|other| other.id == after.workload) {
                errors.push(
                    format!("after[{number}].workload"),
                    "there is no such workload at this site",
                );
            }
        }
        let now = self.now();
        if ask
            .deadline
            .is_some_and(|deadline| Span::new(now, deadline).is_err())
        {
            errors.push("deadline", "it is over already");
        }
        if let Some(id) = ask.inside {
            let found = reservations::get(conn, place.id(), id).await?;
            let is_own = found.as_ref().is_some_and(|found| found.owner == owner);
            if !is_own {
                errors.push("inside", "there is no such reservation of yours");
            } else if found.is_some_and(|found| found.state.is_final()) {
                errors.push("inside", "the reservation is over");
            }
        }
        if let Some(image) = &ask.program.image {
            match self.pinned_image(conn, place, owner, image).await? {
                Ok(image) => ask.program.image = Some(image),
                Err(why) => errors.push("program.image", why),
            }
        }
        let ask = errors.keep("ask", ask.check());
        Ok(errors.or(ask)?)
    }
}

/// The workload for the audit log, without its program: people put passwords there.
fn masked(workload: &Workload) -> Workload {
    let mut masked = workload.clone();
    masked.ask.program = Program::default();
    masked
}

/// The existing names, for the error message about a misspelt one.
fn known<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let names: Vec<&str> = names.map(Name::as_str).take(20).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(": there are {}", names.join(", ")),
    }
}

fn hours(length: SignedDuration) -> String {
    format!("{} hours", length.as_hours())
}
