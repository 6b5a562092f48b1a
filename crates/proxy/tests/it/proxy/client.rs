//! A client that writes bytes and reads bytes, and knows as little of HTTP as it can.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::rig::{HOST, Rig};

pub struct Client(pub TcpStream);

impl Client {
    pub async fn open(rig: &Rig) -> Self {
        Self(TcpStream::connect(rig.front).await.expect("the front"))
    }

    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.expect("to write");
    }

    /// What comes until `end` does. Nothing more of it is read.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            let byte = self.0.read_u8().await;
            let so_far = String::from_utf8_lossy(&read).into_owned();
            read.push(byte.unwrap_or_else(|_| panic!("no {end:?} in {so_far:?}")));
        }
        String::from_utf8_lossy(&read).into_owned()
    }

    /// All that comes until the other side hangs up, in whichever way.
    pub async fn read_to_end(&mut self) -> String {
        let mut read = Vec::new();
        self.0.read_to_end(&mut read).await.ok();
        String::from_utf8_lossy(&read).into_owned()
    }
}

/// The head of one of alice's requests from the session's own page, open at its end for more headers.
pub fn head(method_and_path: &str) -> String {
    format!(
        "{method_and_path} HTTP/1.1\r\nHost: {HOST}\r\nOrigin: http://{HOST}\r\nCookie: berth_visit=alice\r\n"
    )
}

/// The whole answer to alice's request with these further headers and this body.
pub async fn ask(rig: &Rig, method_and_path: &str, more: &str) -> String {
    raw(
        rig,
        format!("{}Connection: close\r\n{more}\r\n", head(method_and_path)),
    )
    .await
}

/// Whatever comes back for these bytes.
pub async fn raw(rig: &Rig, bytes: impl AsRef<[u8]>) -> String {
    let mut client = Client::open(rig).await;
    client.write(bytes).await;
    client.read_to_end().await
}

pub fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}
