//! An app, a proxy in front of it, and a door that lets visitors in by a cookie or a token.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use berth_proxy::{
    Addressing, Asked, Body, Config, Credential, Failure, HostSent, Label, Limits, Own, Prefix,
    Proxy, Target, Upstream, Visitor, cookie,
};
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

pub type AppBody = UnsyncBoxBody<Bytes, Infallible>;
pub type AppAnswer = Response<AppBody>;

pub fn text(text: impl Into<Bytes>) -> AppAnswer {
    Response::new(Full::new(text.into()).boxed_unsync())
}

/// The head and the body of a request as the app got them, one line each.
pub async fn shown(request: Request<Incoming>) -> String {
    let (parts, body) = request.into_parts();
    let mut lines = vec![format!("{} {}", parts.method, parts.uri)];
    for (name, value) in &parts.headers {
        lines.push(format!(
            "{name}: {}",
            String::from_utf8_lossy(value.as_bytes())
        ));
    }
    let body = body.collect().await.expect("the whole body").to_bytes();
    lines.push(format!("[{}]", String::from_utf8_lossy(&body)));
    lines.join("\n")
}

pub struct Rig {
    pub proxy: Arc<Proxy>,
    pub front: SocketAddr,
    /// Cancelled, alice's access is over.
    pub alice: CancellationToken,
    /// Connections that the app has taken in.
    pub accepted: Arc<AtomicUsize>,
    directory: tempfile::TempDir,
}

pub const LABEL: &str = "x7f3";
pub const HOST: &str = "x7f3.berth.test";

pub fn label() -> Label {
    LABEL.parse().expect("a label")
}

pub struct Setting {
    pub addressing: Addressing,
    pub host: HostSent,
    pub prefix: Prefix,
    pub limits: Limits,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            addressing: Addressing::origins("http://berth.test").expect("an origin"),
            host: HostSent::Public,
            prefix: Prefix::Kept,
            limits: Limits::default(),
        }
    }
}

impl Rig {
    /// A session whose app answers by `app`.
    pub async fn new<F>(
        app: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = AppAnswer> + Send + 'static,
    {
        Self::set(Setting::default(), app).await
    }

    pub async fn set<F>(
        setting: Setting,
        app: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = AppAnswer> + Send + 'static,
    {
        let (rig, listener) = Self::without_app(setting).await;
        let accepted = rig.accepted.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepted.fetch_add(1, Relaxed);
                let app = app.clone();
                let service = service_fn(move |request| {
                    let answer = app(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let mut http = http1::Builder::new();
                http.half_close(true);
                let connection = http.serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection.with_upgrades());
            }
        });
        rig
    }

    /// A session whose app is still to be made, from the listener at its socket.
    pub async fn without_app(setting: Setting) -> (Self, UnixListener) {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("app.sock");
        let listener = UnixListener::bind(&socket).expect("the app's socket");
        let proxy = Arc::new(Proxy::new(Config {
            addressing: setting.addressing,
            own: Own::default(),
            limits: setting.limits,
        }));
        let target = Target {
            upstream: Upstream::unix(socket),
            host: setting.host,
            prefix: setting.prefix,
            authorization: None,
        };
        proxy.routes.put(label(), target);
        let alice = CancellationToken::new();
        let front = open_front(proxy.clone(), alice.clone()).await;
        let rig = Self {
            proxy,
            front,
            alice,
            accepted: Arc::default(),
            directory,
        };
        (rig, listener)
    }

    pub fn route(&self) -> Arc<berth_proxy::Route> {
        self.proxy.routes.get(LABEL).expect("the route")
    }

    pub fn path(&self, file: &str) -> std::path::PathBuf {
        self.directory.path().join(file)
    }
}

/// What a holder of the proxy does: asks whose it is, decides who it is, serves.
async fn open_front(proxy: Arc<Proxy>, alice: CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let (proxy, alice) = (proxy.clone(), alice.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (proxy, alice) = (proxy.clone(), alice.clone());
                async move { Ok::<_, Infallible>(door(&proxy, alice, peer, request).await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

async fn door(
    proxy: &Proxy,
    over: CancellationToken,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let refuse = |failure: Failure, status| {
        let mut page = failure.answer(request.headers());
        *page.status_mut() = status;
        page
    };
    let route = match proxy.asked(&request) {
        Asked::Elsewhere => return refuse(Failure::Nobody, StatusCode::IM_A_TEAPOT),
        Asked::Nobody | Asked::Absent(_) => return Failure::Nobody.answer(request.headers()),
        Asked::Session(route) => route,
    };
    let token = request.headers().get(AUTHORIZATION);
    let credential = if token.is_some_and(|token| token == "Bearer berth_alice") {
        Credential::Token
    } else if cookie(request.headers(), "berth_visit") == Some("alice") {
        Credential::Cookie
    } else {
        return refuse(Failure::Foreign, StatusCode::UNAUTHORIZED);
    };
    let told = (
        HeaderName::from_static("x-berth-person"),
        HeaderValue::from_static("alice"),
    );
    let visitor = Visitor {
        credential,
        address: Some(peer.ip()),
        headers: [told].into_iter().collect(),
        over,
        here: Default::default(),
    };
    proxy.serve(route, &visitor, request).await
}
