//! The programs that are measured: an app, Berth's proxy in front of it, and configurable-http-proxy.
//!
//! The first two are this very program under another name, started again as processes of their own.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use berth_proxy::{
    Addressing, Asked, Config, Credential, Failure, HostSent, Label, Limits, Own, Prefix, Proxy,
    Target, Upstream, Visitor, cookie, visit_cookie_name,
};
use berth_testkit::process::{self, Signal, Tethered, User};
use berth_testkit::{port, wait};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;

use super::load::FOLDER;
use super::{cpu, installed};

pub const PAGE_BYTES: usize = 2048;
const FILES: usize = 40;
const DOMAIN: &str = "berth.localhost";
const READY: Duration = Duration::from_secs(30);

fn label(route: usize) -> String {
    format!("s{route:05}")
}

pub fn host(route: usize) -> String {
    format!("{}.{DOMAIN}", label(route))
}

/// A page of the given length, the list of a folder, and a socket that sends back what comes.
#[derive(Debug)]
pub struct App {
    process: Tethered,
    pub port: u16,
    /// How a proxy is told where it is.
    pub tcp: String,
    pub unix: String,
}

impl App {
    pub async fn start(directory: &Path) -> Result<Self> {
        for number in 0..FILES {
            std::fs::write(directory.join(format!("notebook-{number}.ipynb")), "{}")?;
        }
        let (port, socket) = (port::free(), directory.join("app.sock"));
        let unix = socket.display().to_string();
        let process = again(&["as-app", &port.to_string(), &unix])?;
        listening(port).await;
        Ok(Self {
            process,
            port,
            tcp: format!("127.0.0.1:{port}"),
            unix,
        })
    }

    pub fn cpu_us(&self) -> Result<f64> {
        cpu::used_us(self.process.id())
    }
}

/// Berth's proxy behind the smallest server there can be.
#[derive(Debug)]
pub struct Front {
    process: Tethered,
    pub port: u16,
}

impl Front {
    pub async fn start(upstream: &str, routes: usize) -> Result<Self> {
        let port = port::free();
        let process = again(&["as-front", &port.to_string(), upstream, &routes.to_string()])?;
        listening(port).await;
        Ok(Self { process, port })
    }

    pub fn cpu_us(&self) -> Result<f64> {
        cpu::used_us(self.process.id())
    }
}

/// configurable-http-proxy, set up as JupyterHub does with a host name per person.
#[derive(Debug)]
pub struct Chp {
    process: Tethered,
    pub port: u16,
}

impl Chp {
    pub async fn start(app: &App) -> Result<Self> {
        let port = port::free();
        let mut command = process::command(installed::chp()?, User::Same, Signal::Kill);
        command.args([
            "--ip",
            "127.0.0.1",
            "--host-routing",
            "--log-level",
            "error",
        ]);
        command.arg("--port").arg(port.to_string());
        // Without it the API is open, and it says so at length.
        command.env("CONFIGPROXY_AUTH_TOKEN", "bench");
        // The API's port is the next one, and may be taken: then this fails and is run again.
        let process = process::spawn(command)?;
        listening(port).await;
        listening(port + 1).await;
        add_route(port + 1, &host(0), &app.tcp).await?;
        Ok(Self { process, port })
    }

    pub fn cpu_us(&self) -> Result<f64> {
        cpu::used_us(self.process.id())
    }
}

async fn add_route(api: u16, host: &str, app: &str) -> Result<()> {
    let body = format!("{{\"target\": \"http://{app}\"}}");
    let request = format!(
        "POST /api/routes/{host} HTTP/1.1\r\nHost: localhost\r\nAuthorization: token bench\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", api)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    Ok(())
}

/// This program, under another name.
fn again(arguments: &[&str]) -> Result<Tethered> {
    let mut command = process::command(std::env::current_exe()?, User::Same, Signal::Kill);
    command.args(arguments);
    process::spawn(command)
}

async fn listening(port: u16) {
    wait::until("the port to be open", READY, async || {
        TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    })
    .await;
}

/// Plays one of the parts above, for ever, if the arguments ask for it.
pub async fn play(arguments: &[String]) -> Result<()> {
    let parts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match parts[..] {
        ["as-app", port, socket] => play_app(port.parse()?, socket).await,
        ["as-front", port, upstream, routes] => {
            play_front(port.parse()?, upstream, routes.parse()?).await
        }
        _ => bail!("there is no such part: {parts:?}"),
    }
}

async fn play_app(port: u16, socket: &str) -> Result<()> {
    let unix = UnixListener::bind(socket)?;
    let tcp = TcpListener::bind(("127.0.0.1", port)).await?;
    let page = Bytes::from(vec![b'x'; PAGE_BYTES]);
    let folder: Arc<Path> = Path::new(socket).parent().context("a folder")?.into();
    loop {
        tokio::select! {
            accepted = tcp.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                serve_app(stream, page.clone(), folder.clone());
            }
            accepted = unix.accept() => serve_app(accepted?.0, page.clone(), folder.clone()),
        }
    }
}

fn serve_app<S>(stream: S, page: Bytes, folder: Arc<Path>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let page = match request.uri().path() {
            FOLDER => list(&folder).unwrap_or_default().into(),
            _ => page.clone(),
        };
        async move { Ok::<_, Infallible>(answer(request, page)) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::spawn(connection.with_upgrades());
}

/// The folder's files with their sizes and times, as a notebook's server lists them.
fn list(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let (entry, facts) = entry.and_then(|entry| Ok((entry.file_name(), entry.metadata()?)))?;
        files.push(serde_json::json!({
            "name": entry.to_string_lossy(),
            "size": facts.len(),
            "last_modified": facts.modified()?.duration_since(UNIX_EPOCH)?.as_secs(),
            "writable": !facts.permissions().readonly(),
            "type": if facts.is_dir() { "directory" } else { "file" },
        }));
    }
    Ok(serde_json::to_string(&files)?)
}

fn answer(mut request: Request<Incoming>, page: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page));
    if !request.headers().contains_key("upgrade") {
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert("content-type", json);
        return response;
    }
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(stream) = upgrade.await else { return };
        let mut stream = TokioIo::new(stream);
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    });
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket")] {
        let value = http::HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    *response.body_mut() = Full::new(Bytes::new());
    response
}

async fn play_front(port: u16, upstream: &str, routes: usize) -> Result<()> {
    let proxy = Arc::new(Proxy::new(Config {
        addressing: Addressing::origins(&format!("http://{DOMAIN}"))?,
        own: Own::default(),
        limits: Limits::default(),
    }));
    let upstream = match upstream.parse::<SocketAddr>() {
        Ok(address) => Upstream::tcp(address)?,
        Err(_) => Upstream::unix(upstream),
    };
    for route in 0..routes {
        let target = Target {
            upstream: upstream.clone(),
            host: HostSent::Public,
            prefix: Prefix::Kept,
            authorization: None,
        };
        proxy.routes.put(label(route).parse::<Label>()?, target);
    }
    let over = CancellationToken::new();
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, peer) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (proxy, over) = (proxy.clone(), over.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (proxy, over) = (proxy.clone(), over.clone());
            async move {
                let known = cookie(request.headers(), visit_cookie_name(false)) == Some("bench");
                let route = match proxy.asked(&request) {
                    Asked::Session(route) if known => route,
                    _ => return Ok::<_, Infallible>(Failure::Nobody.answer(request.headers())),
                };
                let visitor = Visitor {
                    credential: Credential::Cookie,
                    address: Some(peer.ip()),
                    headers: HeaderMap::new(),
                    over,
                    here: Default::default(),
                };
                Ok(proxy.serve(route, &visitor, request).await)
            }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection.with_upgrades());
    }
}
