//! The live stream: nothing lost, nothing twice, and an end when the listener is no longer welcome.

use anyhow::{Context, Result};
use berth_app::NewPerson;
use berth_app::accounts::NewToken;
use berth_model::person::Scope;
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::support::{PATIENCE, Running};

/// A stream read by hand.
struct Listening(BufReader<TcpStream>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Frame {
    id: Option<u64>,
    event: String,
    data: String,
}

impl Listening {
    async fn open(server: &Running, secret: &str, resume: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(server.address).await?;
        let request = format!(
            "GET /api/v1/events/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n{resume}\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut reading = Self(BufReader::new(stream));
        let status = reading.line().await?.context("no answer")?;
        assert!(status.contains(" 200 "), "{status}");
        while reading.line().await?.is_some_and(|line| !line.is_empty()) {}
        Ok(reading)
    }

    async fn line(&mut self) -> Result<Option<String>> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_line(&mut line));
        let count = read.await.context("the stream is silent")??;
        Ok((count > 0).then(|| line.trim_end().to_owned()))
    }

    /// The next frame; none at the end of the stream. The sizes of HTTP's chunks are no fields, so they fall out.
    async fn frame(&mut self) -> Result<Option<Frame>> {
        let mut frame = Frame::default();
        while let Some(line) = self.line().await? {
            match line.split_once(": ") {
                Some(("id", id)) => frame.id = Some(id.parse()?),
                Some(("event", kind)) => frame.event = kind.to_owned(),
                Some(("data", data)) => frame.data = data.to_owned(),
                _ if line.is_empty() && frame != Frame::default() => return Ok(Some(frame)),
                _ => {}
            }
        }
        Ok(None)
    }
}

async fn token(server: &Running) -> Result<String> {
    let now: Timestamp = server.app.now();
    let new = NewToken {
        label: "test".parse()?,
        scopes: Scope::ALL.into_iter().collect(),
        expires_at: now + SignedDuration::from_hours(1),
    };
    let made = server.app.create_token(&server.caller(), new).await?;
    let secret = made.value.1.context("a fresh token has its secret")?;
    Ok(secret.expose_secret().to_owned())
}

async fn make_person(server: &Running, login: &str) -> Result<()> {
    let new = NewPerson {
        login: login.parse()?,
        display_name: login.parse()?,
        email: None,
        time_zone: None,
        password: None,
    };
    server.app.create_person(&server.caller(), new).await?;
    Ok(())
}

/// The login of the person that an event is about.
fn login(frame: &Frame) -> Result<String> {
    let event: serde_json::Value = serde_json::from_str(&frame.data)?;
    assert_eq!(event["number"].as_u64(), frame.id);
    assert_eq!(event["kind"], frame.event);
    Ok(event["data"]["login"]
        .as_str()
        .context("a login")?
        .to_owned())
}

#[tokio::test]
async fn a_stream_that_was_cut_goes_on_without_loss_or_repeat() -> Result<()> {
    let server = Running::start("").await?;
    let secret = token(&server).await?;
    let mut live = Listening::open(&server, &secret, "").await?;
    let start = live.frame().await?.context("a start")?;
    assert_eq!(
        (start.event.as_str(), start.data.as_str()),
        ("", ""),
        "only a number"
    );
    make_person(&server, "ben").await?;
    // What was there before the stream was opened may still have been on its way to its number.
    let mut first = live.frame().await?.context("an event")?;
    while login(&first)? != "ben" {
        first = live.frame().await?.context("an event")?;
    }
    drop(live);
    make_person(&server, "cleo").await?;
    make_person(&server, "dan").await?;

    let seen = first.id.context("a number")?;
    let resume = format!("last-event-id: {seen}\r\n");
    let mut live = Listening::open(&server, &secret, &resume).await?;
    assert_eq!(live.frame().await?.and_then(|frame| frame.id), Some(seen));
    let mut heard = Vec::new();
    for _ in 0..2 {
        let frame = live.frame().await?.context("an event")?;
        heard.push((frame.id.context("a number")?, login(&frame)?));
    }
    assert_eq!(
        heard,
        [(seen + 1, "cleo".to_owned()), (seen + 2, "dan".to_owned())]
    );
    drop(live);
    server.stop().await
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams() -> Result<()> {
    let server = Running::start("").await?;
    let secret = token(&server).await?;
    let mut live = Listening::open(&server, &secret, "").await?;
    live.frame().await?.context("a start")?;
    server.stop().await?;
    while live.line().await?.is_some() {}
    Ok(())
}
