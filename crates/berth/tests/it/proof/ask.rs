//! Asking until there is an answer: the one place that knows that the server may die over a question.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use berth_api::client::{Client, Error};
use berth_api::{Code, Problem};

use super::power::Power;

/// How often one question may stay without an answer before something is wrong.
const LOST_MAX: u64 = 100;

/// A client's line to the server.
#[derive(Debug)]
pub struct Line {
    pub client: Client,
    pub power: Arc<Power>,
}

/// A definite answer, and how many came not.
#[derive(Debug)]
pub struct Answer<T> {
    pub said: Result<T, Box<Problem>>,
    pub lost: u64,
}

impl Line {
    /// Asks until there is a definite answer. Only for what may be repeated.
    pub async fn ask<T>(
        &self,
        request: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> Result<Answer<T>> {
        let mut lost = 0;
        loop {
            if let Some(said) = self.ask_once(&request).await? {
                return Ok(Answer { said, lost });
            }
            lost += 1;
            ensure!(lost < LOST_MAX, "no answer came {lost} times");
        }
    }

    /// The answer, unless none came or the server could give none. A server may fail over a disk that is gone, but
    /// not while it lives.
    pub async fn ask_once<T>(
        &self,
        request: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> Result<Option<Result<T, Box<Problem>>>> {
        let life = self.power.life().await?;
        match request(&self.client).await {
            Ok(said) => Ok(Some(Ok(said))),
            Err(Error::Problem(problem)) if problem.status < 500 => Ok(Some(Err(problem))),
            Err(Error::Problem(problem)) if problem.is(Code::ServerUnavailable) => Ok(None),
            Err(Error::Transport { .. }) => Ok(None),
            Err(_) if !self.power.is_still(life) => Ok(None),
            Err(error) => bail!("the server failed: {error:?}"),
        }
    }
}
