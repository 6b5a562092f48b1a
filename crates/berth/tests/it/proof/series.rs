//! A client that books several days at once, and gives what is left of them up at once.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use berth_api::Code;
use berth_api::headers::IdempotencyKey;
use berth_api::members::Reason;
use berth_api::series::{OnConflict, ScopeQuery, Series};
use berth_model::SeriesId;
use berth_model::reservation::State;

use super::client::Asker;
use super::known::{Content, Known};
use super::ledger::{Account, SeriesAccount, Told};
use super::requests;
use super::wish::Days;

impl Asker {
    /// Books a series. Lost answers are asked for again with the same key, as with a single booking.
    pub async fn book_series(&mut self, first: Content, days: Days) -> Result<()> {
        let key = format!("{}-{}", self.name, first.title.as_str().replace(' ', "-"));
        let header: IdempotencyKey = key.parse()?;
        let new = requests::series(&first, days)?;
        let site = self.world.site.clone();
        let answer = self
            .ask(async |client| client.book_series(&site, &new, Some(&header)).await)
            .await?;
        let created = match answer.said {
            Ok(created) => created,
            Err(problem) => return self.refused("series", &problem, answer.lost),
        };
        if created.replayed {
            ensure!(answer.lost > 0, "{key} was made by nobody's request");
            self.ledger.counts.had_happened += 1;
        } else {
            self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
        }
        self.told_of_series(key, &first, days, &created.object)?;
        self.ledger.accept("series");
        Ok(())
    }

    fn told_of_series(
        &mut self,
        key: String,
        first: &Content,
        days: Days,
        made: &Series,
    ) -> Result<()> {
        let instances = made.instances.as_deref().unwrap_or_default();
        let skipped = made.skipped.as_deref().unwrap_or_default();
        let whole = instances.len() + skipped.len() == usize::from(days.count);
        let kept = days.on_conflict == OnConflict::Skip || skipped.is_empty();
        ensure!(whole && kept, "{days:?} became {made:?}");
        for instance in instances {
            // It lies far ahead and nobody else knows it, so it is as it was made, also when it is told again.
            let mut content = first.clone();
            content.span = berth_model::Span::new(instance.start, instance.end)?;
            let born = Known {
                id: instance.reservation,
                version: 1,
                state: instance.state,
                content,
            };
            let account = Account {
                key: None,
                told: vec![Told::answered(&born)],
                unsure: 0,
                last: born.clone(),
                waits_for: None,
            };
            let before = self.ledger.bookings.insert(born.id, account);
            ensure!(before.is_none(), "{} was made twice", born.id);
            self.series_of.insert(born.id, made.id);
            self.own.push(born);
        }
        let instances: BTreeSet<_> = instances.iter().map(|one| one.reservation).collect();
        let account = SeriesAccount { key, instances };
        let before = self.ledger.series.insert(made.id, account);
        ensure!(before.is_none(), "{} was made twice", made.id);
        Ok(())
    }

    /// Cancels what is to come of a series. The answer, or a look where it was lost, says which instances that were.
    pub async fn cancel_series(&mut self, id: SeriesId) -> Result<()> {
        let site = self.world.site.clone();
        let reason = Reason { reason: None };
        let scope = ScopeQuery::default();
        let answer = self
            .ask(async |client| client.cancel_series(&site, id, scope, &reason).await)
            .await?;
        let was_done = match &answer.said {
            Ok(_) => {
                self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
                true
            }
            // Nothing is left to cancel: because the first request worked, or because time was quicker.
            Err(problem) => answer.lost > 0 && problem.is(Code::SeriesOver),
        };
        let (mut cancelled, mut unsure) = (0u64, 0u64);
        for which in 0..self.own.len() {
            let had = self.own[which].clone();
            if self.series_of.get(&had.id) != Some(&id) || !had.state.holds() {
                continue;
            }
            let found = self.read(had.id).await?;
            ensure!(
                found.content.items == had.content.items && found.version >= had.version,
                "after {had:?} came {found:?}"
            );
            let account = self.account(which)?;
            match found.state {
                State::Cancelled => {
                    account.told.push(Told {
                        state: Some(State::Cancelled),
                        ..Told::found(&found.content)
                    });
                    cancelled += 1;
                }
                // One that has begun is left alone, and then time may end it.
                _ => unsure += 1,
            }
            account.last = found.clone();
            self.own[which] = found;
        }
        match answer.said {
            Ok(_) => {
                ensure!(cancelled > 0, "{id} was cancelled and nothing of it");
                self.ledger.accept("cancel series");
            }
            Err(problem) if cancelled > 0 => {
                ensure!(
                    was_done,
                    "{id} was cancelled although it was said: {problem}"
                );
                self.ledger.counts.had_happened += 1;
                self.ledger.accept("cancel series");
            }
            Err(problem) => {
                ensure!(
                    unsure > 0 || problem.is(Code::SeriesOver),
                    "{id} could not be cancelled: {problem}"
                );
                return self.refused("cancel series", &problem, answer.lost);
            }
        }
        if cancelled == 0 && unsure == 0 {
            bail!("{id} was cancelled, and none of its instances was known");
        }
        Ok(())
    }
}
