//! What runs in a session: a web app that says what it was asked, echoes on a socket, and never stops talking if one
//! wants it to. And the backend that starts it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use berth_drivers::backend::{Backend, Doing, Door, Fence, Grant, Job, Sign, Trouble};
use berth_drivers::door::{self, Key};
use berth_model::RunId;
use berth_model::workload::Outcome;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::header::{CONNECTION, SET_COOKIE, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::UnixListener;
use tokio_util::task::AbortOnDropHandle;

/// Starts the app in this process, on a socket in its folder.
#[derive(Debug)]
pub struct Here {
    folder: PathBuf,
    running: Mutex<HashMap<RunId, Option<AbortOnDropHandle<()>>>>,
    /// How often it was asked for a door since it does not answer any more; none while it answers.
    unanswered: Mutex<Option<usize>>,
}

impl Here {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            running: Mutex::default(),
            unanswered: Mutex::default(),
        }
    }

    /// From now on it takes too long to find a door.
    pub fn hang(&self) {
        *self.unanswered.lock().unwrap() = Some(0);
    }

    pub fn unanswered(&self) -> Option<usize> {
        *self.unanswered.lock().unwrap()
    }

    fn socket(&self, run: RunId) -> PathBuf {
        self.folder.join(format!("{run}.sock"))
    }
}

impl Backend for Here {
    fn start<'a>(
        &'a self,
        job: Job<'a>,
        _grant: &'a Grant,
        _fence: Fence,
        _now: Timestamp,
    ) -> Doing<'a, ()> {
        let (id, socket) = (job.run.id, self.socket(job.run.id));
        let mut running = self.running.lock().unwrap();
        running.entry(id).or_insert_with(|| {
            let listener = UnixListener::bind(socket).unwrap();
            Some(AbortOnDropHandle::new(tokio::spawn(listen(listener))))
        });
        Box::pin(async { Ok(()) })
    }

    fn stop<'a>(&'a self, job: Job<'a>, _fence: Fence, _now: Timestamp) -> Doing<'a, ()> {
        self.running.lock().unwrap().insert(job.run.id, None);
        Box::pin(async { Ok(()) })
    }

    fn look<'a>(&'a self, jobs: &'a [Job<'a>], now: Timestamp) -> Doing<'a, Vec<Sign>> {
        let running = self.running.lock().unwrap();
        let sign = |job: &Job<'_>| match running.get(&job.run.id) {
            Some(Some(_)) => Sign::Running,
            Some(None) => Sign::Ended {
                at: now,
                outcome: Outcome::Cancelled,
                said: None,
            },
            None => Sign::Unknown,
        };
        let signs = jobs.iter().map(sign).collect();
        Box::pin(async { Ok(signs) })
    }

    fn door<'a>(&'a self, job: Job<'a>) -> Doing<'a, Option<Door>> {
        if let Some(times) = self.unanswered.lock().unwrap().as_mut() {
            *times += 1;
            return Box::pin(async { Err(Trouble::NoAnswer("the disk is slow".to_owned())) });
        }
        let door = Door {
            socket: self.socket(job.run.id),
            key: key(),
            has_app_token: false,
        };
        Box::pin(async { Ok(Some(door)) })
    }

    fn next(&self, _jobs: &[Job<'_>], now: Timestamp) -> Option<Timestamp> {
        now.checked_add(jiff::SignedDuration::from_millis(100)).ok()
    }
}

/// What a visitor has to show.
fn key() -> Key {
    Key::from_bytes(&[7; Key::BYTES]).unwrap()
}

async fn listen(listener: UnixListener) {
    let mut conversations = tokio::task::JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        if door::admit(&mut stream, &key()).await.is_err() {
            continue;
        }
        let conversation = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .with_upgrades();
        conversations.spawn(async move { conversation.await.ok() });
    }
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(match request.uri().path() {
        "/socket" => socket(request),
        "/endless" => endless(),
        "/cookies" => cookies(&request),
        _ => told(request).await,
    })
}

/// Says what it was asked, and how much came with it.
async fn told(request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut headers: HashMap<String, Vec<String>> = HashMap::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.entry(name.to_string()).or_default().push(value);
    }
    let bytes = body.collect().await.map(|all| all.to_bytes().len());
    let told = json!({
        "app": "tiny",
        "method": parts.method.as_str(),
        "path": parts.uri.to_string(),
        "headers": headers,
        "bytes": bytes.unwrap_or_default(),
    });
    Response::new(Full::new(Bytes::from(told.to_string())).boxed_unsync())
}

/// Echoes whatever comes.
fn socket(request: Request<Incoming>) -> Response<Body> {
    if !request.headers().contains_key(UPGRADE) {
        let mut response = Response::new(Full::default().boxed_unsync());
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        return response;
    }
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.unwrap();
        let (mut from, mut to) = tokio::io::split(TokioIo::new(upgraded));
        tokio::io::copy(&mut from, &mut to).await.ok();
    });
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    response
}

/// A word every now and then, for ever.
fn endless() -> Response<Body> {
    let words = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Some((Ok(Frame::data(Bytes::from_static(b"tick\n"))), ()))
    });
    Response::new(BodyExt::boxed_unsync(StreamBody::new(words.boxed())))
}

/// Sets the cookies that an attacker would like to.
fn cookies(request: &Request<Incoming>) -> Response<Body> {
    let host = request.headers()["host"].to_str().unwrap().to_owned();
    let domain = host.split(':').next().unwrap().split_once('.').unwrap().1;
    let mut response = Response::new(Full::default().boxed_unsync());
    for cookie in [
        format!("berth_visit=evil; Domain={domain}; Path=/"),
        "__Host-berth_visit=evil; Path=/; Secure".to_owned(),
        format!("berth_session=evil; Domain={domain}; Path=/"),
        format!("_xsrf=evil; Domain={domain}; Path=/"),
    ] {
        let value = HeaderValue::try_from(cookie).unwrap();
        response.headers_mut().append(SET_COOKIE, value);
    }
    response
}
