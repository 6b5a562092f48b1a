//! Someone who follows the stream of events through every death of the server, and must miss none and see none twice.

use std::sync::Arc;

use anyhow::{Result, ensure};
use berth_api::Code;
use berth_api::client::{Client, Error};
use berth_api::events::{EventStreamQuery, Position};
use futures::StreamExt;
use tokio::sync::watch;

use super::power::Power;

/// How a listener says where it was when the stream was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// `?after=`, as programs do.
    ByQuery,
    /// `Last-Event-ID`, as browsers do.
    ByHeader,
}

/// Follows from the very first event on, and tells `heard` the number of the last one. It only ends by an error:
/// whoever waits for the end of the run looks at `heard`.
pub async fn follow(
    client: Client,
    power: Arc<Power>,
    resume: Resume,
    heard: watch::Sender<u64>,
) -> Result<()> {
    let mut last = 0;
    loop {
        power.life().await?;
        let place = Position::try_from(last)?;
        let opened = match resume {
            Resume::ByQuery => {
                let query = EventStreamQuery {
                    after: Some(place),
                    site: None,
                };
                client.events_stream(&query).await
            }
            Resume::ByHeader => client.resume_events_stream(place).await,
        };
        let mut stream = match opened {
            Ok(stream) => stream,
            Err(Error::Transport { .. }) => continue,
            // A server that is out of breath says so; whoever listens comes again.
            Err(Error::Problem(problem)) if problem.is(Code::ServerUnavailable) => continue,
            Err(error) => return Err(error.into()),
        };
        while let Some(event) = stream.next().await {
            let number = match event {
                Ok(event) => event.number,
                Err(Error::Transport { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            ensure!(
                number == last + 1,
                "a listener ({resume:?}) heard event {number} after event {last}"
            );
            last = number;
            heard.send_replace(last);
        }
    }
}
