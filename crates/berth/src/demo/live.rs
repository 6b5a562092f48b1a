//! While the demo runs, its people go on: every half minute someone books, extends or gives something back, so that
//! the calendar and the event stream are seen to live.
//!
//! They touch only what they booked themselves since the demo was started. What a visitor does, signed in as one of
//! them, stays as the visitor left it.

use std::time::Duration;

use berth_app::App;
use jiff::SignedDuration;
use tokio_util::sync::CancellationToken;

use super::almanac::Almanac;
use super::chance::Chance;
use super::habits::{self, EARLY_ENDS, Habit, SECOND_THOUGHTS};
use super::jobs::{self, SiteJobs};
use super::people;
use super::play::Player;
use super::queues;
use super::script::{Act, Key, Scene};
use super::world::Origin;

/// More bookings than this at a time, and people give back before they book again.
const STANDING_MAX: usize = 30;
const ATTEMPTS_MAX: usize = 5;

#[derive(Debug)]
struct Life {
    app: App,
    player: Player,
    almanac: Almanac,
    chance: Chance,
    standing: Vec<Standing>,
    made: usize,
}

/// A booking that was made since the start.
#[derive(Debug, Clone, Copy)]
struct Standing {
    key: Key,
    who: &'static str,
    habit: &'static Habit,
    decided: bool,
}

/// Lets people act now and then, until `stop`.
pub async fn run(app: App, origin: Origin, stop: CancellationToken) {
    let mut life = match Life::new(app, origin).await {
        Ok(life) => life,
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "the demo's people stay at home"
            );
            return;
        }
    };
    loop {
        let pause = Duration::from_secs(life.chance.between(20..=40).unsigned_abs());
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        // A visitor may have removed what someone meant to book; they will think of something else.
        if let Err(error) = life.moment().await {
            tracing::debug!(error = format!("{error:#}"), "someone in the demo gave up");
        }
    }
}

impl Life {
    async fn new(app: App, origin: Origin) -> anyhow::Result<Self> {
        Ok(Self {
            chance: origin.chance().fork(&app.now().to_string()),
            almanac: origin.almanac(),
            player: Player::new(&app).await?,
            app,
            standing: Vec::new(),
            made: 0,
        })
    }

    async fn moment(&mut self) -> anyhow::Result<()> {
        let waiting = self
            .standing
            .iter()
            .position(|booking| booking.habit.needs_approval && !booking.decided);
        self.submit().await?;
        match (waiting, self.standing.len()) {
            (Some(waiting), _) if self.chance.percent(40) => self.decide(waiting).await,
            (_, STANDING_MAX..) => self.think_again().await,
            (_, 4..) if self.chance.percent(35) => self.think_again().await,
            _ => self.book().await,
        }
    }

    /// Someone submits work at one of the sites.
    async fn submit(&mut self) -> anyhow::Result<()> {
        let day = self.almanac.day_of(self.app.now());
        let sites: Vec<&SiteJobs> = jobs::SITES.iter().collect();
        let jobs = self.chance.pick(&sites);
        queues::submit_one(&self.app, &mut self.player, jobs, &mut self.chance, day).await?;
        self.log_refusals();
        Ok(())
    }

    /// Someone books something. Whoever finds everything taken lets another go first.
    async fn book(&mut self) -> anyhow::Result<()> {
        let habits: Vec<&'static Habit> = habits::all().collect();
        for _ in 0..ATTEMPTS_MAX {
            let habit = self.chance.pick(&habits);
            let now = self.app.now();
            let day = self.almanac.day_of(now);
            let Some(who) = habits::someone(&mut self.chance, habit.site, day) else {
                continue;
            };
            let ahead = SignedDuration::from_mins(self.chance.between(5..=3 * 24 * 60));
            let wish = habits::wish(habit, &mut self.chance, &self.almanac, who, now + ahead);
            self.made += 1;
            let (key, booked) = (Key(self.made), self.player.tally.booked);
            self.act(who.login, Act::Book(key, wish)).await?;
            if self.player.tally.booked > booked {
                self.standing.push(Standing {
                    key,
                    who: who.login,
                    habit,
                    decided: false,
                });
                break;
            }
        }
        Ok(())
    }

    async fn decide(&mut self, place: usize) -> anyhow::Result<()> {
        let booking = &mut self.standing[place];
        booking.decided = true;
        let (key, site) = (booking.key, booking.habit.site);
        let admin = self.chance.pick(&people::admins_of(site));
        self.act(admin, Act::Approve(key)).await
    }

    /// Extends something, or gives it back.
    async fn think_again(&mut self) -> anyhow::Result<()> {
        let place = self.chance.between(0..=self.standing.len() as i64 - 1) as usize;
        let Standing { key, who, .. } = self.standing[place];
        if self.standing.len() < STANDING_MAX && self.chance.percent(50) {
            let longer = SignedDuration::from_hours(self.chance.between(1..=4));
            return self.act(who, Act::Lengthen(key, longer)).await;
        }
        self.standing.swap_remove(place);
        let reasons = [SECOND_THOUGHTS.as_slice(), &EARLY_ENDS].concat();
        let reason = self.chance.pick(&reasons);
        self.act(who, Act::Cancel(key, reason)).await
    }

    async fn act(&mut self, who: &'static str, act: Act) -> anyhow::Result<()> {
        let at = self.app.now();
        self.player.play(Scene { at, who, act }).await?;
        self.log_refusals();
        Ok(())
    }

    /// Logs what Berth refused against the script's expectation; a visitor may have changed what people count on.
    fn log_refusals(&mut self) {
        for refusal in self.player.tally.unforeseen.drain(..) {
            tracing::debug!(refusal, "someone in the demo was refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_promises, made};
    use super::*;
    use berth_app::clock::{Clock, SystemClock};

    #[tokio::test]
    async fn people_go_on_and_the_promises_hold() {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin {
            seed: 7,
            made_at: SystemClock.now(),
        };
        let (app, _) = made(&folder, origin).await;
        let mut life = Life::new(app.clone(), origin).await.unwrap();
        let mut most = 0;
        let mut most_waiting = queues::WAITING_MAX;
        for jobs in &jobs::SITES {
            let count = queues::count(&app, &life.player, jobs.site).await.unwrap();
            most_waiting = most_waiting.max(count.waiting);
        }
        for _ in 0..150 {
            life.moment().await.unwrap();
            most = most.max(life.standing.len());
        }
        assert!(life.player.tally.booked > 40, "{:?}", life.player.tally);
        assert!((10..=STANDING_MAX).contains(&most), "{most}");
        check_promises(&app).await;
        for jobs in &jobs::SITES {
            // Nothing starts here, so submissions alone would make the queue longer and longer.
            let waiting = queues::count(&app, &life.player, jobs.site)
                .await
                .unwrap()
                .waiting;
            assert!(
                (queues::WAITING_MIN..=most_waiting).contains(&waiting),
                "{}: {waiting}",
                jobs.site
            );
        }
    }
}
