//! The visitors: requests as a browser writes them, answers read as cheaply as can be.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::door::{Door, Way};
use super::programs::host;
use crate::report::percentile;

/// A page that costs the app nothing, and one for which it lists a folder.
pub const PAGE: &str = "/page";
pub const FOLDER: &str = "/api/contents";

/// Who comes, as a browser says it.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// What is in the address bar, with the port if that says one.
    pub host: String,
    /// The key that Berth gave them.
    pub visit: String,
}

/// Visitors at one door.
#[derive(Debug, Clone)]
pub struct Load {
    door: Door,
    requests: Vec<String>,
}

/// What came of it.
#[derive(Debug)]
pub struct Run {
    pub answers: usize,
    pub took: Duration,
    latencies_ms: Vec<f64>,
}

impl Run {
    pub fn p99_ms(mut self) -> f64 {
        percentile(&mut self.latencies_ms, 0.99)
    }
}

impl Load {
    /// So many visitors of the one route there is.
    pub fn of(port: u16, visitors: usize, path: &str) -> Self {
        Self::over(1, port, visitors, path)
    }

    /// The same, spread over so many routes.
    pub fn over(routes: usize, port: u16, visitors: usize, path: &str) -> Self {
        // A prime step lands on routes far apart.
        let routes = (0..visitors).map(|visitor| visitor * 997 % routes);
        let requests = routes.map(|route| head(&at(route), path) + "\r\n");
        Self {
            door: Door::Tcp(port),
            requests: requests.collect(),
        }
    }

    /// One visitor who has so many connections open.
    pub fn by(visitor: &Visitor, door: Door, connections: usize, path: &str) -> Self {
        let request = head(visitor, path) + "\r\n";
        Self {
            door,
            requests: vec![request; connections],
        }
    }

    /// Every visitor asks again as soon as they have their answer, for as long as this takes.
    pub async fn run(&self, length: Duration) -> Result<Run> {
        let mut visitors = JoinSet::new();
        let started = Instant::now();
        for request in &self.requests {
            visitors.spawn(visit(self.door.clone(), request.clone(), started + length));
        }
        let mut latencies_ms = Vec::new();
        for outcome in visitors.join_all().await {
            latencies_ms.extend(outcome?);
        }
        Ok(Run {
            answers: latencies_ms.len(),
            took: started.elapsed(),
            latencies_ms,
        })
    }
}

fn at(route: usize) -> Visitor {
    Visitor {
        host: host(route),
        visit: "bench".to_owned(),
    }
}

fn head(visitor: &Visitor, path: &str) -> String {
    let Visitor { host, visit } = visitor;
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n\
         Accept: application/json\r\nAccept-Language: en-GB,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n\
         Referer: http://{host}/lab\r\nOrigin: http://{host}\r\nSec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors\r\n\
         Sec-Fetch-Site: same-origin\r\nCookie: _xsrf=2|0a1b2c3d|0123456789abcdef|1700000000; berth_visit={visit}\r\n"
    )
}

async fn visit(door: Door, request: String, end: Instant) -> Result<Vec<f64>> {
    let mut stream = door.open().await?;
    let mut buffer = Vec::with_capacity(64 * 1024);
    let mut latencies_ms = Vec::with_capacity(100_000);
    while Instant::now() < end {
        let asked = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        read_answer(&mut stream, &mut buffer).await?;
        latencies_ms.push(asked.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(latencies_ms)
}

/// Reads one whole answer, whose length is said in its head.
async fn read_answer(stream: &mut Way, buffer: &mut Vec<u8>) -> Result<()> {
    const LENGTH: &[u8] = b"content-length: ";
    buffer.clear();
    loop {
        ensure!(stream.read_buf(buffer).await? > 0, "hung up on");
        let end = buffer.windows(4).position(|end| end == b"\r\n\r\n");
        let Some(end) = end else { continue };
        let head = &buffer[..end];
        ensure!(
            head.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(head)
        );
        let length = head
            .windows(LENGTH.len())
            .position(|name| name.eq_ignore_ascii_case(LENGTH))
            .and_then(|place| head[place + LENGTH.len()..].split(|c| *c == b'\r').next())
            .context("an answer without its length")?;
        let length: usize = std::str::from_utf8(length)?.parse()?;
        while buffer.len() < end + 4 + length {
            ensure!(stream.read_buf(buffer).await? > 0, "hung up on");
        }
        return Ok(());
    }
}

/// How long messages take to come back, each socket sending its next one when it has.
pub async fn echo_p99_ms(port: u16, sockets: usize, messages: usize) -> Result<f64> {
    let mut talking = JoinSet::new();
    for _ in 0..sockets {
        talking.spawn(talk(port, messages));
    }
    let mut latencies_ms = Vec::new();
    for outcome in talking.join_all().await {
        latencies_ms.extend(outcome?);
    }
    Ok(percentile(&mut latencies_ms, 0.99))
}

async fn talk(port: u16, messages: usize) -> Result<Vec<f64>> {
    let mut stream = Door::Tcp(port).open().await?;
    let request = head(&at(0), "/ws")
        + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
           Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.context("no answer")?);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 101"), "no socket was opened");
    // A masked text message of 100 bytes.
    let mut message = vec![0x81, 0x80 | 100, 1, 2, 3, 4];
    message.extend([7; 100]);
    let mut echo = vec![0; message.len()];
    let mut latencies_ms = Vec::with_capacity(messages);
    for _ in 0..messages {
        let sent = Instant::now();
        stream.write_all(&message).await?;
        stream.read_exact(&mut echo).await?;
        latencies_ms.push(sent.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(latencies_ms)
}
