//! The smallest HTTP client that does the job: one keep-alive connection, a prepared request, the whole answer.
//!
//! Client and server share two cores here, so every microsecond the client spends is one the server lacks.

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body_bytes: usize,
    pub body: Vec<u8>,
}

impl Connection {
    pub async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    pub async fn post(&mut self, path: &str, token: &str, body: &str) -> Result<Answer> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.exchange(request.as_bytes()).await
    }

    pub async fn get(&mut self, path: &str, token: &str) -> Result<Answer> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        self.exchange(request.as_bytes()).await
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end])?.to_ascii_lowercase();
                let status: u16 = head.get(9..12).context("no status line")?.parse()?;
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"));
                let Some(length) = length else {
                    bail!("the answer has no content-length:\n{head}")
                };
                let length: usize = length.trim().parse()?;
                while self.buffer.len() < end + 4 + length {
                    self.fill().await?;
                }
                let body = self.buffer[end + 4..end + 4 + length].to_vec();
                return Ok(Answer {
                    status,
                    body_bytes: length,
                    body,
                });
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
