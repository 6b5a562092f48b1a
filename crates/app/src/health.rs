//! How the installation is, for whoever watches it.

use berth_store::{Engine, sequencer};
use jiff::SignedDuration;

use crate::App;
use crate::error::Result;

#[derive(Debug, Clone, Copy)]
pub struct Health {
    /// How long the oldest row has waited for its number; zero when none does.
    pub sequencer_lag: SignedDuration,
}

impl App {
    /// Asks the database something that only an up-to-date one can answer.
    pub async fn health(&self) -> Result<Health> {
        let mut reader = self.store.read().await?;
        let waiting = sequencer::waiting_since(&mut reader).await?;
        let lag = waiting.map(|since| self.now().duration_since(since));
        Ok(Health {
            sequencer_lag: lag.unwrap_or_default().max(SignedDuration::ZERO),
        })
    }

    /// Which database it is.
    pub fn store_name(&self) -> &'static str {
        match self.store.engine() {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgres",
        }
    }
}
