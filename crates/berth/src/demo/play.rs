//! Plays the script: every scene is one call of a use case, by the person who does it, at the moment it happens.
//!
//! Nothing is written past the use cases, so the demo's past has the same histories, audit entries and events as a
//! real one, and what the rule refuses is refused here too.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context;
use berth_app::desk::{NewAny, Variant, WaitFor};
use berth_app::maintenance::{NewWindow, WindowChoice};
use berth_app::policies::PolicyAt;
use berth_app::queue::NewWorkload;
use berth_app::reservations::{Item, NewReservation, NewSeries, OnConflict, ReservationChange};
use berth_app::settlement::Mode;
use berth_app::{App, Caller, Error, PersonChange};
use berth_model::reference::{PersonReference, ResourceReference};
use berth_model::reservation::Privacy;
use berth_model::site::Role;
use berth_model::{Amount, Holder, Reference, ReservationId, Selection, Span, WindowId};
use berth_store::people;
use jiff::SignedDuration;

use super::people::CAST;
use super::places::reference;
use super::script::{Act, Key, Maintenance, Scene, Want, Wish};

/// What the audit log shows as the place these people came from.
const ORIGIN: &str = "the demo";

/// The people of the demo, at work in one world.
#[derive(Debug)]
pub struct Player {
    app: App,
    callers: HashMap<&'static str, Caller>,
    bookings: HashMap<Key, (&'static str, ReservationId)>,
    windows: HashMap<Key, (&'static str, WindowId)>,
    pub tally: Tally,
}

/// What came of it all.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub booked: usize,
    /// Bookings and changes that Berth refused, as it should.
    pub refused: usize,
    /// Refusals that the script did not foresee; a fresh world has none.
    pub unforeseen: Vec<String>,
}

impl Player {
    /// Finds the people in the store; those who do not exist there do nothing.
    pub async fn new(app: &App) -> anyhow::Result<Self> {
        let mut callers = HashMap::new();
        let mut reader = app.store.read().await?;
        for character in CAST {
            let found = people::by_login(&mut reader, &character.login.parse()?).await?;
            callers.extend(found.map(|person| (character.login, caller(person))));
        }
        drop(reader);
        Ok(Self {
            app: app.clone(),
            callers,
            bookings: HashMap::new(),
            windows: HashMap::new(),
            tally: Tally::default(),
        })
    }

    pub fn caller(&self, login: &str) -> Option<&Caller> {
        self.callers.get(login)
    }

    /// Plays one scene. A refusal is part of the play; only trouble with the store ends it.
    pub async fn play(&mut self, scene: Scene) -> anyhow::Result<()> {
        let told = format!("{} {}: {:?}", scene.at, scene.who, scene.act);
        let Some(caller) = self.caller(scene.who).cloned() else {
            return Ok(());
        };
        match self.act(&caller, scene.act).await {
            Ok(()) => {}
            Err(Failure::Refused(error)) if is_foreseen(&error) => self.tally.refused += 1,
            Err(Failure::Refused(error @ (Error::Store(_) | Error::Internal(_)))) => {
                return Err(error).context(told);
            }
            Err(Failure::Refused(error)) => {
                self.tally.unforeseen.push(format!("{told}: {error}"));
            }
            Err(Failure::Other(error)) => return Err(error.context(told)),
        }
        Ok(())
    }

    async fn act(&mut self, caller: &Caller, act: Act) -> Result<(), Failure> {
        match act {
            Act::Book(key, wish) => self.book(caller, key, &wish).await?,
            Act::Repeat(key, wish, weeks) => self.repeat(caller, key, &wish, weeks).await?,
            Act::BookAny(key, wish, what) => self.book_any(caller, key, &wish, what).await?,
            Act::Wait(key, wish) => self.wait(caller, key, &wish).await?,
            Act::SetPolicy { site, part, asks } => {
                let part = serde_json::from_value(part).context("a part")?;
                let policy = serde_json::from_value(asks).context("a policy")?;
                let at = PolicyAt::Site(reference(site)?, part);
                self.app
                    .set_policy(caller, &at, Some(&policy), None, None, Mode::Apply)
                    .await?;
            }
            Act::Lengthen(key, by) => {
                self.change(caller, key, |span| (None, Some(span.end() + by)))
                    .await?
            }
            Act::Move(key, by) => self.reschedule(caller, key, by).await?,
            Act::Cancel(key, reason) => {
                if let Some((site, id)) = self.bookings.get(&key) {
                    let reason = Some(reason.parse()?);
                    self.app
                        .cancel_reservation(caller, &reference(site)?, *id, None, reason)
                        .await?;
                }
            }
            Act::Approve(key) => {
                if let Some((site, id)) = self.bookings.get(&key) {
                    self.app
                        .approve_reservation(caller, &reference(site)?, *id, None)
                        .await?;
                }
            }
            Act::Reject(key, reason) => {
                if let Some((site, id)) = self.bookings.get(&key) {
                    self.app
                        .reject_reservation(caller, &reference(site)?, *id, None, reason.parse()?)
                        .await?;
                }
            }
            Act::SetStatus(thing, status, reason) => {
                let site = reference(thing.site)?;
                let resource = Reference::Name(thing.name.parse()?);
                let reason = reason.map(str::parse).transpose()?;
                self.app
                    .set_status(caller, &site, &resource, None, status, reason)
                    .await?;
            }
            Act::PlanMaintenance(key, window) => self.plan(caller, key, &window).await?,
            Act::CallOffMaintenance(key, reason) => {
                if let Some((site, id)) = self.windows.get(&key) {
                    let reason = Some(reason.parse()?);
                    self.app
                        .cancel_window(caller, &reference(site)?, *id, reason)
                        .await?;
                }
            }
            Act::Submit { site, project, ask } => {
                let project = project
                    .map(|name| name.parse().map(Reference::Name))
                    .transpose()?;
                let new = NewWorkload {
                    project,
                    profile: None,
                    is_held: false,
                    ask: serde_json::from_value(ask).context("what somebody submits")?,
                };
                self.app.submit(caller, &reference(site)?, new).await?;
            }
            Act::AskToJoin { site, message } => {
                self.app
                    .ask_to_join(caller, &reference(site)?, Some(message.parse()?))
                    .await?;
            }
            Act::LetIn { site, login } => {
                self.answer(caller, site, login, Some(Role::Member), None)
                    .await?;
                join_project(&self.app, caller, site, login).await?;
            }
            Act::TurnAway {
                site,
                login,
                reason,
            } => self.answer(caller, site, login, None, Some(reason)).await?,
            Act::RemoveMember { site, login } => {
                self.app
                    .remove_member(caller, &reference(site)?, &person(login)?, Mode::Apply)
                    .await?;
                self.callers.remove(login);
            }
            Act::Suspend(login) => {
                let change = PersonChange {
                    suspended: Some(true),
                    ..PersonChange::default()
                };
                self.app
                    .update_person(caller, &person(login)?, None, change)
                    .await?;
                self.callers.remove(login);
            }
        }
        Ok(())
    }

    /// Tries the choices in turn; each that is taken counts as refused.
    async fn book(&mut self, caller: &Caller, key: Key, wish: &Wish) -> Result<(), Failure> {
        let site = reference(wish.site)?;
        for choice in &wish.choices {
            match self.app.book(caller, &site, &booking(wish, choice)?).await {
                Ok(made) => {
                    self.note(key, wish, made.value.reservation.id);
                    return Ok(());
                }
                Err(Error::Conflict { .. } | Error::NotActive { .. }) => self.tally.refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The same every week; its first instance stands for it.
    async fn repeat(
        &mut self,
        caller: &Caller,
        key: Key,
        wish: &Wish,
        weeks: u16,
    ) -> Result<(), Failure> {
        let new = NewSeries {
            first: booking(wish, first_choice(wish)?)?,
            rule: format!("FREQ=WEEKLY;COUNT={weeks}")
                .parse()
                .context("a rule")?,
            except: Default::default(),
            on_conflict: OnConflict::Skip,
        };
        let site = reference(wish.site)?;
        let made = self.app.book_series(caller, &site, &new).await?.value;
        self.tally.booked += made.instances.len();
        if let Some(first) = made.instances.first() {
            self.bookings.insert(key, (wish.site, first.id));
        }
        Ok(())
    }

    async fn book_any(
        &mut self,
        caller: &Caller,
        key: Key,
        wish: &Wish,
        what: &str,
    ) -> Result<(), Failure> {
        let what: Selection = what.parse().context("a selection")?;
        let variant = Variant {
            count: what.count,
            length: wish.span.duration(),
        };
        let definite = booking(wish, &[])?;
        let new = NewAny {
            wish: berth_app::desk::Wish::new(what, vec![variant], wish.span)
                .map_err(Error::from)?,
            pinned: false,
            title: definite.title,
            project: definite.project,
            privacy: definite.privacy,
            parameters: definite.parameters,
            owner: None,
            hold: false,
            wait: None,
            at_end: definite.at_end,
            lends: definite.lends,
        };
        let site = reference(wish.site)?;
        let made = self.app.book_any(caller, &site, &new).await?;
        self.note(key, wish, made.value.reservation.id);
        Ok(())
    }

    async fn wait(&mut self, caller: &Caller, key: Key, wish: &Wish) -> Result<(), Failure> {
        let mut new = booking(wish, first_choice(wish)?)?;
        new.wait = Some(WaitFor::Booking);
        let made = self.app.book(caller, &reference(wish.site)?, &new).await?;
        self.note(key, wish, made.value.reservation.id);
        Ok(())
    }

    fn note(&mut self, key: Key, wish: &Wish, id: ReservationId) {
        self.tally.booked += 1;
        self.bookings.insert(key, (wish.site, id));
    }

    async fn reschedule(
        &mut self,
        caller: &Caller,
        key: Key,
        by: SignedDuration,
    ) -> Result<(), Failure> {
        self.change(caller, key, |span| {
            (Some(span.start() + by), Some(span.end() + by))
        })
        .await
    }

    /// Changes the times of a booking, if it was ever made.
    async fn change(
        &mut self,
        caller: &Caller,
        key: Key,
        times: impl Fn(Span) -> (Option<jiff::Timestamp>, Option<jiff::Timestamp>),
    ) -> Result<(), Failure> {
        let Some((site, id)) = self.bookings.get(&key) else {
            return Ok(());
        };
        let site = reference(site)?;
        let found = self.app.get_reservation(caller, &site, *id).await?;
        let (start, end) = times(found.reservation.span);
        let change = ReservationChange {
            start,
            end,
            ..ReservationChange::default()
        };
        let changed = self
            .app
            .change_reservation(caller, &site, *id, None, &change);
        match changed.await {
            Ok(_) => Ok(()),
            // It began while they were thinking, and its start can no longer change.
            Err(Error::Invalid(_)) => {
                self.tally.refused += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at what is in the way first, as the command line and the pages do, and decides for each.
    async fn plan(
        &mut self,
        caller: &Caller,
        key: Key,
        window: &Maintenance,
    ) -> Result<(), Failure> {
        let site = reference(window.site)?;
        let resources = window
            .resources
            .iter()
            .map(|name| Ok(Reference::Name(name.parse()?)));
        let mut new = NewWindow {
            title: window.title.parse()?,
            span: window.span,
            resources: resources.collect::<anyhow::Result<_>>()?,
            decisions: BTreeMap::new(),
        };
        let preview = self.app.preview_window(caller, &site, &new).await?;
        let mut in_the_way: Vec<(Option<Key>, ReservationId)> = preview
            .in_the_way
            .iter()
            .filter_map(|met| match met.conflict.claim.claim.holder {
                Holder::Reservation(id) => Some((self.key_of(id), id)),
                Holder::Maintenance(_) | Holder::Workload(_) => None,
            })
            .collect();
        // By the order in which they were written, which does not depend on how the database numbers them.
        in_the_way.sort();
        in_the_way.dedup();
        let turns = [WindowChoice::Keep, WindowChoice::Cancel]
            .into_iter()
            .cycle();
        new.decisions = in_the_way
            .into_iter()
            .map(|(_, id)| id)
            .zip(turns)
            .collect();
        let made = self.app.plan_window(caller, &site, &new).await?;
        self.windows
            .insert(key, (window.site, made.value.window.id));
        Ok(())
    }

    fn key_of(&self, id: ReservationId) -> Option<Key> {
        let mut bookings = self.bookings.iter();
        bookings
            .find(|(_, (_, booked))| *booked == id)
            .map(|(key, _)| *key)
    }

    async fn answer(
        &self,
        caller: &Caller,
        site: &str,
        login: &str,
        role: Option<Role>,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        let site = reference(site)?;
        let (_, requests) = self.app.list_join_requests(caller, &site).await?;
        let asked = requests
            .into_iter()
            .find(|(_, person)| person.login.as_str() == login);
        if let Some((request, _)) = asked {
            let reason = reason.map(str::parse).transpose()?;
            self.app
                .decide_join(caller, &site, request.id, role, reason)
                .await?;
        }
        Ok(())
    }
}

/// Someone as the app knows them, acting from here.
pub fn caller(person: berth_model::person::Person) -> Caller {
    Caller {
        origin: ORIGIN.to_owned(),
        ..Caller::direct(person)
    }
}

pub fn person(login: &str) -> anyhow::Result<PersonReference> {
    Ok(Reference::Name(login.parse()?))
}

/// Puts a member into the project they work for there.
pub async fn join_project(
    app: &App,
    admin: &Caller,
    site: &str,
    login: &str,
) -> anyhow::Result<()> {
    let character = CAST.iter().find(|character| character.login == login);
    if let Some(project) = character.and_then(|character| character.project_in(site)) {
        let (site, project) = (reference(site)?, Reference::Name(project.parse()?));
        app.add_project_member(admin, &site, &project, &person(login)?)
            .await?;
    }
    Ok(())
}

fn first_choice(wish: &Wish) -> anyhow::Result<&[Want]> {
    let first = wish.choices.first().context("a wish for nothing")?;
    Ok(first)
}

fn booking(wish: &Wish, choice: &[Want]) -> anyhow::Result<NewReservation> {
    let item = |want: &Want| {
        Ok(Item {
            resource: ResourceReference::Name(want.resource.parse()?),
            amount: want.amount.map(Amount::new).transpose()?,
        })
    };
    Ok(NewReservation {
        title: wish.title.parse()?,
        span: wish.span,
        items: choice.iter().map(item).collect::<anyhow::Result<_>>()?,
        project: match wish.project {
            Some(project) => Some(Reference::Name(project.parse()?)),
            None => None,
        },
        privacy: if wish.private {
            Privacy::Private
        } else {
            Privacy::Site
        },
        parameters: serde_json::from_value(wish.answers.clone())?,
        owner: None,
        hold: false,
        any: None,
        pinned: false,
        wait: None,
        at_end: Default::default(),
        lends: None,
    })
}

/// Refusals that belong to the life of a busy site.
fn is_foreseen(error: &Error) -> bool {
    matches!(
        error,
        Error::Conflict { .. }
            | Error::NotActive { .. }
            | Error::State(_)
            | Error::InThePast(_)
            | Error::Policy(_)
            // Lengthening what an admin approved needs an admin.
            | Error::NotAllowed { .. }
    )
}

/// Why an act did not happen: Berth said no, or the demo's own words were wrong.
#[derive(Debug)]
enum Failure {
    Refused(Error),
    Other(anyhow::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<berth_model::name::NameError> for Failure {
    fn from(error: berth_model::name::NameError) -> Self {
        Self::Other(error.into())
    }
}
