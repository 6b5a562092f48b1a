//! A real server on a port of its own, over a database of its own; and HTTP by hand, to see the bytes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use berth_api::{Client, Credential};
use berth_app::clock::SystemClock;
use berth_app::vault::Vault;
use berth_app::{App, Caller, Settings};
use berth_model::person::Person;
use berth_server::config::Config;
use berth_server::{ServeError, serve};
use berth_store::Store;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const PASSWORD: &str = "correct horse battery";

/// Longer than anything here takes, shorter than anyone waits for a stuck test.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Running {
    pub address: SocketAddr,
    pub app: App,
    pub admin: Person,
    pub stop: CancellationToken,
    pub task: JoinHandle<Result<(), ServeError>>,
    _directory: TempDir,
}

impl Running {
    /// Starts a server with this configuration; its address and database are the test's own.
    pub async fn start(config: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let home = directory.path().display().to_string();
        let env = [("HOME".to_owned(), home)].into_iter();
        let flags = BTreeMap::from([("listen", "127.0.0.1:0".to_owned())]);
        let loaded = Config::layer(Some(("test", config)), env, flags);
        let config = loaded
            .map_err(|errors| anyhow::anyhow!("{errors:?}"))?
            .config;
        let database = directory.path().join("berth.sqlite");
        let store = Store::open(&format!("sqlite:{}", database.display()), 4).await?;
        let vault = Vault::from_key(&[7; 32]);
        let app = App::new(store, Arc::new(SystemClock), vault, Settings::default());
        let password = PASSWORD.to_owned().into();
        let (admin, _) = app
            .create_admin("ada".parse()?, "Ada".parse()?, Some(&password))
            .await?;
        let stop = CancellationToken::new();
        let (ready, address) = oneshot::channel();
        let serving = serve(config, app.clone(), stop.clone(), move |address| {
            ready.send(address).ok();
        });
        let task = tokio::spawn(serving);
        let address = address.await.context("the server did not start")?;
        Ok(Self {
            address,
            app,
            admin,
            stop,
            task,
            _directory: directory,
        })
    }

    pub fn caller(&self) -> Caller {
        Caller::direct(self.admin.clone())
    }

    pub fn client(&self, base: &str) -> Result<Client> {
        Ok(Client::new(
            &format!("http://{}{base}", self.address),
            Credential::None,
        )?)
    }

    /// Sends one request on a connection of its own.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Answer> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len(),
        );
        self.send_bytes(request.as_bytes()).await
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, "", "").await
    }

    /// Writes these bytes and reads until the server closes the connection.
    pub async fn send_bytes(&self, request: &[u8]) -> Result<Answer> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(request).await?;
        Answer::read(&mut stream).await
    }

    /// An orderly stop, and how serving ended.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.task).await;
        ended.context("the server did not stop")???;
        Ok(())
    }
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    pub async fn read(stream: &mut TcpStream) -> Result<Self> {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
        read.context("the server neither answered nor closed")??;
        let text = String::from_utf8(bytes)?;
        let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok(Self {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.body).with_context(|| format!("not JSON: {}", self.body))
    }

    /// Checks that this is a problem of this code, as every problem must be.
    pub fn expect_problem(&self, status: u16, code: &str) -> Result<serde_json::Value> {
        let problem = self.json()?;
        assert_eq!(
            (self.status, problem["code"].as_str()),
            (status, Some(code)),
            "{self:?}"
        );
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(problem["status"], status);
        assert!(
            problem["hint"]
                .as_str()
                .is_some_and(|hint| !hint.is_empty())
        );
        Ok(problem)
    }
}
