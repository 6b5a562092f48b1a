//! A client that says exactly what it is told, byte by byte, and has no manners of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{interval, timeout};

#[derive(Debug)]
pub struct Raw(TcpStream);

impl Raw {
    /// Connects as 127.0.0.`from`, so that there can be many of us: all of 127.0.0.0/8 is this machine.
    pub async fn connect(from: u8, port: u16) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        let own = SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0));
        socket.bind(own).expect("an address of this machine");
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self(socket.connect(server).await.expect("a connection"))
    }

    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("send");
    }

    /// Sends as much as the other side takes just now.
    pub async fn try_send(&mut self, text: &str) {
        let patience = Duration::from_millis(200);
        timeout(patience, self.0.write_all(text.as_bytes()))
            .await
            .ok();
    }

    /// The status of the answer; 0 if the connection ends without one.
    pub async fn status(&mut self, patience: Duration) -> u16 {
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        let read = async {
            while !answer.contains(&b'\n') {
                match self.0.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => answer.extend_from_slice(&buffer[..count]),
                }
            }
        };
        timeout(patience, read)
            .await
            .expect("an answer or an end in time");
        let text = String::from_utf8_lossy(&answer);
        text.split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0)
    }

    /// Waits for the other side to give up on us.
    pub async fn expect_cut(&mut self, patience: Duration) {
        let mut rest = Vec::new();
        let cut = timeout(patience, self.0.read_to_end(&mut rest)).await;
        // Whether it said goodbye or hung up does not matter.
        cut.expect("cut off in time").ok();
    }

    /// Sends a byte now and then, so as never to be silent for long.
    pub async fn drip_until_cut(&mut self, patience: Duration) {
        let mut drops = interval(Duration::from_millis(100));
        let drip = async {
            let mut buffer = [0; 64];
            loop {
                tokio::select! {
                    _ = drops.tick() => {
                        if self.0.write_all(b"x").await.is_err() {
                            return;
                        }
                    }
                    read = self.0.read(&mut buffer) => {
                        if !matches!(read, Ok(count) if count > 0) {
                            return;
                        }
                    }
                }
            }
        };
        timeout(patience, drip).await.expect("cut off in time");
    }
}

/// Says one thing on a connection of its own; the status of the answer, or 0.
pub async fn speak(port: u16, request: &str, patience: Duration) -> u16 {
    let mut raw = Raw::connect(2, port).await;
    // The answer may come, and the connection end, before all of it is sent.
    raw.0.write_all(request.as_bytes()).await.ok();
    raw.status(patience).await
}
