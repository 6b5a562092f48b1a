//! A large upload through the proxy takes no memory. Alone in its program, because it looks at all of it.

use std::convert::Infallible;
use std::sync::Arc;

use berth_proxy::{
    Addressing, Asked, Config, Credential, HostSent, Limits, Own, Prefix, Proxy, Target, Upstream,
    Visitor,
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio_util::sync::CancellationToken;

const UPLOAD_BYTES: usize = 64 << 20;
const GROWTH_BYTES_MAX: usize = 16 << 20;

/// The most memory this process has had so far.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel's word");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kb.expect("a peak")
        .trim()
        .parse::<usize>()
        .expect("a number")
        * 1024
}

/// Takes its time over every part, so that whoever does not wait for it has to keep what it has not read.
async fn count(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut body = request.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("a part").data_ref().map_or(0, Bytes::len);
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
    Ok(Response::new(Full::new(Bytes::from(format!(
        "{bytes} bytes"
    )))))
}

#[tokio::test]
async fn an_upload_of_64_mb_takes_no_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("app.sock");
    let app = UnixListener::bind(&socket).expect("the app's socket");
    tokio::spawn(async move {
        let (stream, _) = app.accept().await.expect("the proxy");
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(count));
        connection.await.ok();
    });
    let proxy = Arc::new(Proxy::new(Config {
        addressing: Addressing::origins("http://berth.test").expect("an origin"),
        own: Own::default(),
        limits: Limits::default(),
    }));
    let target = Target {
        upstream: Upstream::unix(socket),
        host: HostSent::Public,
        prefix: Prefix::Kept,
        authorization: None,
    };
    proxy.routes.put("x".parse().expect("a label"), target);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let front = listener.local_addr().expect("its address");
    let serving = proxy.clone();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("the visitor");
        let service = service_fn(|request: Request<Incoming>| async {
            let Asked::Session(route) = serving.asked(&request) else {
                panic!("the session is there");
            };
            let visitor = Visitor {
                credential: Credential::Token,
                address: None,
                headers: HeaderMap::new(),
                over: CancellationToken::new(),
                here: Default::default(),
            };
            Ok::<_, Infallible>(serving.serve(route, &visitor, request).await)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connection.await.ok();
    });
    let mut visitor = TcpStream::connect(front).await.expect("the front");
    let before = peak_bytes();
    let head = format!(
        "PUT / HTTP/1.1\r\nHost: x.berth.test\r\nContent-Length: {UPLOAD_BYTES}\r\nConnection: close\r\n\r\n"
    );
    visitor.write_all(head.as_bytes()).await.expect("to write");
    let part = vec![7; 1 << 16];
    for _ in 0..UPLOAD_BYTES / part.len() {
        visitor.write_all(&part).await.expect("to write");
    }
    let mut answer = String::new();
    visitor
        .read_to_string(&mut answer)
        .await
        .expect("an answer");
    assert!(
        answer.ends_with(&format!("{UPLOAD_BYTES} bytes")),
        "{answer}"
    );
    let route = proxy.routes.get("x").expect("the route");
    assert_eq!(route.activity().bytes_in, UPLOAD_BYTES as u64);
    let growth = peak_bytes() - before;
    assert!(growth < GROWTH_BYTES_MAX, "grew by {growth} bytes");
}
