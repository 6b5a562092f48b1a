//! A client at the booking desk: it waits, holds and takes, and where it is an admin, decides about what others ask.

use anyhow::{Result, bail, ensure};
use berth_api::Problem;
use berth_api::page::PageQuery;
use berth_api::reservations::Rejection;
use berth_model::ReservationId;
use berth_model::reservation::State;

use super::client::Asker;
use super::ledger::{Account, Told};

impl Asker {
    /// The state in which a booking was made, whatever became of it since.
    pub async fn born_as(&mut self, id: ReservationId) -> Result<State> {
        let site = self.world.site.clone();
        let query = PageQuery::default();
        let answer = self
            .ask(async |client| client.reservation_history(&site, id, &query).await)
            .await?;
        match answer.said {
            Ok(history) => match history.items.first() {
                Some(first) => Ok(first.to),
                None => bail!("{id} has no beginning"),
            },
            Err(problem) => bail!("the history of {id} cannot be read: {problem}"),
        }
    }

    /// A refusal with `hold` keeps the nearest alternatives free; the client takes one of them.
    pub async fn take_alternative(&mut self, problem: &Problem) -> Result<()> {
        let held = problem.alternatives.iter().flat_map(|one| &one.holds);
        let held: Vec<ReservationId> = held.copied().collect();
        for id in held {
            let found = self.read(id).await?;
            // It is the caller's, and as it was made or already over.
            let over = found.state == State::Cancelled;
            ensure!(
                over || (found.state == State::Held && found.version == 1),
                "{found:?} was held a moment ago"
            );
            if over {
                continue;
            }
            let account = Account {
                key: None,
                told: vec![Told::answered(&found)],
                unsure: 0,
                last: found.clone(),
                waits_for: None,
            };
            let before = self.ledger.bookings.insert(id, account);
            ensure!(before.is_none(), "{id} was held twice");
            self.own.push(found);
        }
        Ok(())
    }

    /// Takes what is held for it.
    pub async fn take(&mut self, which: usize) -> Result<()> {
        let (site, had) = (self.world.site.clone(), self.own[which].clone());
        let answer = self
            .ask(async |client| client.take_reservation(&site, had.id).await)
            .await?;
        match &answer.said {
            Ok(taken) => {
                self.ledger.counts.had_not_happened += u64::from(answer.lost > 0);
                self.acknowledged(which, taken)?;
                let known = &self.own[which];
                ensure!(
                    known.content == had.content,
                    "{had:?} was taken and is {known:?}"
                );
                self.ledger.accept("take");
                return Ok(());
            }
            Err(problem) if answer.lost == 0 => {
                self.look(which, &[]).await?;
                return self.refused("take", problem, 0);
            }
            Err(_) => {}
        }
        // The first may have worked, and that may be why the repetition did not.
        let found = self.read(had.id).await?;
        let was_taken = !matches!(found.state, State::Held | State::Cancelled);
        let account = self.account(which)?;
        account.last = found.clone();
        if was_taken {
            account.told.push(Told::found(&had.content));
            self.ledger.counts.had_happened += 1;
            self.ledger.accept("take");
        } else {
            self.ledger.counts.had_not_happened += 1;
            self.ledger.refuse("take", "lost");
        }
        self.own[which] = found;
        Ok(())
    }

    /// Decides about one of those that wait for an admin. Several may want to at once; the first word counts.
    pub async fn decide(&mut self) -> Result<()> {
        let answer = self.ask(async |client| client.my_approvals().await).await?;
        let waiting = match answer.said {
            Ok(page) => page.items,
            Err(problem) => bail!("the approvals cannot be read: {problem}"),
        };
        let Some(asked) = self.chance.one_of(&waiting) else {
            self.ledger.accept("look");
            return Ok(());
        };
        let (site, id) = (self.world.site.clone(), asked.id);
        let yes = self.chance.coin();
        let rejection = Rejection {
            reason: "others need it more".parse()?,
        };
        let answer = self
            .ask(async |client| {
                if yes {
                    client.approve_reservation(&site, id).await
                } else {
                    client.reject_reservation(&site, id, &rejection).await
                }
            })
            .await?;
        self.ledger.decisions.unsure += answer.lost;
        match answer.said {
            Ok(decided) => {
                let to = if yes {
                    State::Confirmed
                } else {
                    State::Rejected
                };
                ensure!(
                    decided.state == to,
                    "{id} was to be {to}, and is {decided:?}"
                );
                self.ledger.decisions.acknowledged.push((id, to));
                self.ledger.accept("decide");
                Ok(())
            }
            Err(problem) => self.refused("decide", &problem, 0),
        }
    }
}
