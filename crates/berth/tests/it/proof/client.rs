//! One client: asks, asks again when the server died over its question, and writes down what it was told.
//!
//! A create is repeated with its idempotency key, a change with its `If-Match`, so that repeating is safe. Where
//! repeating is not (`extend by`), the client *seals* the booking instead: it changes the title at the version it knew.
//! If that works, the lost request never happened and never will; if not, a look tells what did. A look alone would
//! not do: a database may still be committing what a dead server asked of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use berth_api::client::{Client, Error};
use berth_api::headers::{IdempotencyKey, IfMatch};
use berth_api::members::Reason;
use berth_api::moment::Period;
use berth_api::reservations::{Extension, Reservation};
use berth_api::{Code, Problem};
use berth_app::clock::{Clock, SystemClock};
use berth_model::reservation::State;
use berth_model::{ReservationId, SeriesId, Span};
use jiff::SignedDuration;

use super::ask::{Answer, Line};
use super::known::{Content, Known};
use super::ledger::{Account, Ledger, Told};
use super::power::Progress;
use super::requests;
use super::wish::{Chance, How, Wish};
use super::world::World;

/// Refusals that are part of the game; any other is a fault of the server or of this proof.
const FAIR: [Code; 14] = [
    Code::ReservationConflict,
    Code::ReservationStatus,
    Code::ReservationInThePast,
    Code::ReservationIllegalState,
    Code::ReservationTooManyHolds,
    Code::ReservationHoldOver,
    Code::SeriesOver,
    Code::RequestInvalid,
    Code::RequestVersionMismatch,
    Code::ResourceMoveConflict,
    Code::ResourceCycle,
    Code::ResourceLeaf,
    Code::ResourceAmount,
    Code::AuthNotAllowed,
];

#[derive(Debug)]
pub struct Asker {
    pub line: Line,
    pub world: Arc<World>,
    pub progress: Arc<Progress>,
    pub chance: Chance,
    pub is_admin: bool,
    /// What its idempotency keys begin with.
    pub name: String,
    pub own: Vec<Known>,
    /// Which of its bookings belong to which series.
    pub series_of: BTreeMap<ReservationId, SeriesId>,
    pub ledger: Ledger,
}

/// What a look found of a booking whose change may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As it was, apart from what time did.
    AsBefore,
    /// The so-manieth of what it may have become.
    Became(usize),
}

impl Asker {
    pub async fn run(mut self) -> Result<Ledger> {
        while self.progress.another() {
            let now = SystemClock.now();
            let wish = self
                .chance
                .wish(&self.world, self.is_admin, &self.own, now)?;
            match wish {
                Wish::Book(wanted, how) => self.book(wanted, how).await?,
                Wish::BookSeries(first, days) => self.book_series(first, days).await?,
                Wish::Change(which, wanted) => self.change(which, wanted).await?,
                Wish::ExtendBy(which, longer) => self.extend_by(which, longer).await?,
                Wish::ExtendUntil(which, end) => {
                    let mut wanted = self.own[which].content.clone();
                    wanted.span = Span::new(wanted.span.start(), end)?;
                    self.extend_until(which, wanted).await?;
                }
                Wish::Cancel(which) => match self.series_of.get(&self.own[which].id) {
                    Some(series) if self.chance.coin() => self.cancel_series(*series).await?,
                    _ => self.cancel(which).await?,
                },
                Wish::Take(which) => self.take(which).await?,
                Wish::Look(which) => {
                    self.look(which, &[]).await?;
                    self.ledger.accept("look");
                }
                Wish::Move { what, under } => self.move_subtree(what, under).await?,
                Wish::Flip { what, to } => self.flip(what, to).await?,
                Wish::Decide => self.decide().await?,
            }
            self.own.retain(|known| is_open(known.state));
            self.progress.done();
        }
        Ok(self.ledger)
    }

    async fn book(&mut self, wanted: Content, how: How) -> Result<()> {
        // A client's titles are all different.
        let key = format!("{}-{}", self.name, wanted.title.as_str().replace(' ', "-"));
        let header: IdempotencyKey = key.parse()?;
        let new = requests::booking(&wanted, how)?;
        let site = self.world.site.clone();
        let answer = self
            .ask(async |client| client.book(&site, &new, Some(&header)).await)
            .await?;
        let created = match answer.said {
            Ok(created) => created,
            Err(problem) => {
                self.refused(verb(how), &problem, answer.lost)?;
                return self.take_alternative(&problem).await;
            }
        };
        let known = Known::told(&created.object)?;
        let state = match how {
            How::Waiting(_) if created.replayed => self.born_as(known.id).await?,
            _ => known.state,
        };
        let waits_for = (state == State::Waiting).then(|| wanted.items.clone());
        let born = Known {
            version: 1,
            state,
            content: Content {
                // What waits has nothing yet.
                items: match &waits_for {
                    Some(_) => BTreeMap::new(),
                    None => wanted.items,
                },
                ..wanted
            },
            ..known.clone()
        };
        if created.replayed {
            ensure!(answer.lost > 0, "{} was made by nobody's request", known.id);
            self.ledger.counts.had_happened += 1;
        } else {
            ensure!(known == born, "asked for {born:?}, told {known:?}");
            self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
        }
        let told = Told {
            state: (!created.replayed).then_some(known.state),
            ..Told::answered(&born)
        };
        let account = Account {
            key: Some(key),
            told: vec![told],
            unsure: 0,
            last: known.clone(),
            waits_for,
        };
        let before = self.ledger.bookings.insert(known.id, account);
        ensure!(before.is_none(), "{} was made twice", known.id);
        self.ledger.accept(verb(how));
        self.own.push(known);
        Ok(())
    }

    async fn change(&mut self, which: usize, wanted: Content) -> Result<()> {
        let had = self.own[which].clone();
        let (site, id, version) = (self.world.site.clone(), had.id, had.version);
        let patch = requests::patch(&had.content, &wanted)?;
        let answer = self
            .ask(async |client| {
                let version = IfMatch::Version(version);
                client.change_reservation(&site, id, version, &patch).await
            })
            .await?;
        self.changed("change", which, &wanted, answer).await
    }

    async fn extend_until(&mut self, which: usize, wanted: Content) -> Result<()> {
        let (site, id) = (self.world.site.clone(), self.own[which].id);
        let until = Extension::Until(wanted.span.end().try_into()?);
        let answer = self
            .ask(async |client| client.extend_reservation(&site, id, until).await)
            .await?;
        self.changed("extend", which, &wanted, answer).await
    }

    /// Asked once only: a repetition could extend it twice.
    async fn extend_by(&mut self, which: usize, longer: SignedDuration) -> Result<()> {
        let (site, had) = (self.world.site.clone(), self.own[which].clone());
        let mut wanted = had.content.clone();
        let end = had.content.span.end() + longer;
        wanted.span = Span::new(had.content.span.start(), end)?;
        let by = Extension::By(Period::new(longer)?);
        let said = self
            .line
            .ask_once(async |client| client.extend_reservation(&site, had.id, by).await)
            .await?;
        match said {
            Some(said) => {
                let answer = Answer { said, lost: 0 };
                self.changed("extend", which, &wanted, answer).await
            }
            None => self.seal(which, &wanted).await,
        }
    }

    /// Finds out whether a lost change made `wanted` of the booking, and makes sure that it cannot any more.
    async fn seal(&mut self, which: usize, wanted: &Content) -> Result<()> {
        self.ledger.counts.lost += 1;
        loop {
            let had = self.own[which].clone();
            let mut sealed = had.content.clone();
            sealed.title = self.chance.title()?;
            let patch = requests::patch(&had.content, &sealed)?;
            let (site, id, version) = (self.world.site.clone(), had.id, had.version);
            let answer = self
                .ask(async |client| {
                    let version = IfMatch::Version(version);
                    client.change_reservation(&site, id, version, &patch).await
                })
                .await?;
            let found = match &answer.said {
                Ok(sealed) => {
                    self.acknowledged(which, sealed)?;
                    Found::Became(0)
                }
                Err(_) => self.look(which, &[&sealed, wanted]).await?,
            };
            match found {
                Found::Became(0) => {
                    let known = &self.own[which];
                    ensure!(
                        known.content == sealed,
                        "sealed as {sealed:?}, is {known:?}"
                    );
                    self.ledger.counts.had_not_happened += 1;
                    self.ledger.refuse("extend", "lost");
                    return Ok(());
                }
                Found::Became(_) => {
                    self.ledger.counts.had_happened += 1;
                    self.ledger.accept("extend");
                    return Ok(());
                }
                // Time ended it, which waits for everything that came before.
                Found::AsBefore if self.own[which].state.can_change().is_err() => {
                    self.ledger.counts.had_not_happened += 1;
                    self.ledger.refuse("extend", "lost");
                    return Ok(());
                }
                // Time changed it meanwhile; the new version is sealed instead.
                Found::AsBefore => ensure!(
                    self.own[which].version > had.version,
                    "a change of {id} at its own version {version} was refused"
                ),
            }
        }
    }

    async fn cancel(&mut self, which: usize) -> Result<()> {
        let (site, had) = (self.world.site.clone(), self.own[which].clone());
        let reason = Reason {
            reason: Some("somebody else may have it".parse()?),
        };
        let answer = self
            .ask(async |client| client.cancel_reservation(&site, had.id, &reason).await)
            .await?;
        match &answer.said {
            Ok(cancelled) => {
                self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
                self.acknowledged(which, cancelled)?;
                let (id, state) = (had.id, self.own[which].state);
                ensure!(
                    matches!(state, State::Cancelled | State::Ending),
                    "{id} was cancelled and is {state}"
                );
                self.ledger.accept("cancel");
                Ok(())
            }
            Err(problem) if answer.lost == 0 => {
                self.look(which, &[]).await?;
                self.refused("cancel", problem, 0)
            }
            Err(problem) => self.was_cancelled(which, problem).await,
        }
    }

    /// A repeated cancellation was refused: mostly because the first one had worked.
    async fn was_cancelled(&mut self, which: usize, problem: &Problem) -> Result<()> {
        ensure!(
            problem.is(Code::ReservationIllegalState),
            "a repeated cancellation was refused: {problem}"
        );
        let had = self.own[which].state;
        let found = self.read(self.own[which].id).await?;
        let account = self.account(which)?;
        account.last = found.clone();
        match found.state {
            // What is not a booking yet may have run out by itself.
            State::Cancelled if matches!(had, State::Waiting | State::Held) => {
                account.unsure += 1;
                self.ledger.counts.cannot_tell += 1;
            }
            State::Rejected => self.ledger.counts.had_not_happened += 1,
            State::Cancelled => {
                account.told.push(Told::found(&found.content));
                self.ledger.counts.had_happened += 1;
            }
            // It ended, by us or by itself.
            State::Ending | State::Done | State::Failed => {
                account.unsure += 1;
                self.ledger.counts.cannot_tell += 1;
            }
            state => bail!("{} could not be cancelled and is {state}", found.id),
        }
        self.own[which] = found;
        self.ledger.accept("cancel");
        Ok(())
    }

    /// Asks until there is a definite answer, and counts those that were lost on the way.
    pub async fn ask<T>(
        &mut self,
        request: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> Result<Answer<T>> {
        let answer = self.line.ask(request).await?;
        self.ledger.counts.lost += answer.lost;
        Ok(answer)
    }

    /// Takes in the answer to a change that was to make `wanted` of a booking.
    async fn changed(
        &mut self,
        verb: &'static str,
        which: usize,
        wanted: &Content,
        answer: Answer<Reservation>,
    ) -> Result<()> {
        match answer.said {
            Ok(changed) => {
                self.acknowledged(which, &changed)?;
                let known = &self.own[which];
                ensure!(
                    known.content == *wanted,
                    "wanted {wanted:?}, told {known:?}"
                );
                self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
                self.ledger.accept(verb);
                Ok(())
            }
            Err(problem) if answer.lost == 0 => {
                if is_about_state(&problem) {
                    self.look(which, &[]).await?;
                }
                self.refused(verb, &problem, 0)
            }
            // The first may have worked, and that may be why the repetition did not.
            Err(problem) => match self.look(which, &[wanted]).await? {
                Found::AsBefore => self.refused(verb, &problem, answer.lost),
                Found::Became(_) => {
                    self.ledger.counts.had_happened += 1;
                    self.ledger.accept(verb);
                    Ok(())
                }
            },
        }
    }

    /// Writes down what an answer says about a booking of ours.
    pub fn acknowledged(&mut self, which: usize, answer: &Reservation) -> Result<()> {
        let known = Known::told(answer)?;
        let had = &self.own[which];
        ensure!(
            known.id == had.id && known.version > had.version,
            "after {had:?} came {known:?}"
        );
        self.own[which] = known.clone();
        let account = self.account(which)?;
        account.told.push(Told::answered(&known));
        account.last = known;
        Ok(())
    }

    /// Reads a booking again. It is as it was, apart from what time did, or it is one of those it may have become.
    pub async fn look(&mut self, which: usize, may_be: &[&Content]) -> Result<Found> {
        let had = self.own[which].clone();
        let found = self.read(had.id).await?;
        let as_before = had.can_become(&found);
        // What time made of it afterwards is no concern here; the sweep sees every step.
        let became = may_be.iter().position(|content| {
            let then = Known {
                content: (*content).clone(),
                version: had.version + 1,
                ..had.clone()
            };
            then.can_become(&found) || (**content == found.content && found.version > had.version)
        });
        let known = match (as_before, became) {
            (true, _) => Found::AsBefore,
            (false, Some(nth)) => Found::Became(nth),
            (false, None) => bail!("neither {had:?} nor one of {may_be:?} is {found:?}"),
        };
        let account = self.account(which)?;
        account.last = found.clone();
        if let Found::Became(nth) = known {
            account.told.push(Told::found(may_be[nth]));
        }
        self.own[which] = found;
        Ok(known)
    }

    pub async fn read(&mut self, id: ReservationId) -> Result<Known> {
        let site = self.world.site.clone();
        let answer = self
            .ask(async |client| client.reservation(&site, id).await)
            .await?;
        match answer.said {
            Ok(found) => Known::told(&found),
            Err(problem) => bail!("{id}, which was acknowledged, cannot be read: {problem}"),
        }
    }

    pub fn account(&mut self, which: usize) -> Result<&mut Account> {
        let id = self.own[which].id;
        match self.ledger.bookings.get_mut(&id) {
            Some(account) => Ok(account),
            None => bail!("{id} is not in the ledger"),
        }
    }

    pub fn refused(&mut self, verb: &'static str, problem: &Problem, lost: u64) -> Result<()> {
        let fair = FAIR.iter().any(|code| problem.is(*code));
        ensure!(
            fair,
            "{verb} was refused with {}: {problem:?}",
            problem.code
        );
        self.ledger.counts.had_not_happened += u64::from(lost > 0);
        self.ledger.refuse(verb, &problem.code);
        Ok(())
    }
}

fn verb(how: How) -> &'static str {
    match how {
        How::Outright => "book",
        How::Held => "hold",
        How::Waiting(_) => "wait",
    }
}

/// Whether anything can still be done with a booking in this state.
fn is_open(state: State) -> bool {
    state.can_change().is_ok() || matches!(state, State::Waiting | State::Held)
}

/// Whether a refusal says that the booking is no longer as it was known.
fn is_about_state(problem: &Problem) -> bool {
    [Code::RequestVersionMismatch, Code::ReservationIllegalState]
        .into_iter()
        .any(|code| problem.is(code))
}
