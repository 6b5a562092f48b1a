//! One call: what is sent, and how the answer is read.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderValue, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, Credential, Error};
use crate::headers::{self, IdempotencyKey, IfMatch};
use crate::problem::Problem;
use crate::{parse, paths};

/// The whole of an ordinary call; a stream has no such end.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// How much of a strange answer is repeated.
const EXCERPT_CHARS: usize = 200;

/// Something that was made, or had been made by an earlier call with the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created<T> {
    pub object: T,
    pub replayed: bool,
}

/// A call on its way to being sent. A mistake made on the way is kept until then.
pub(super) struct Call<'c> {
    client: &'c Client,
    request: Result<RequestBuilder, Error>,
}

impl Client {
    /// A call of the API; `path` is relative to it.
    pub(super) fn call(&self, method: Method, path: &str) -> Call<'_> {
        self.call_at(method, &format!("{}{path}", paths::API))
    }

    /// A call of any path below the base address.
    pub(super) fn call_at(&self, method: Method, path: &str) -> Call<'_> {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let call = Call {
            client: self,
            request: Ok(request),
        };
        let call = call.sign().key(self.key.as_ref());
        match self.version {
            Some(version) => call.if_match(version),
            None => call,
        }
    }
}

impl Call<'_> {
    fn change(self, change: impl FnOnce(RequestBuilder) -> Result<RequestBuilder, Error>) -> Self {
        Self {
            request: self.request.and_then(change),
            ..self
        }
    }

    fn sign(self) -> Self {
        let credential = self.client.credential.clone();
        self.change(|request| match credential {
            Credential::None => Ok(request),
            Credential::Token(token) => {
                let value = format!("Bearer {}", token.expose_secret());
                Ok(request.header(AUTHORIZATION, hidden(&value)?))
            }
            Credential::Session { cookie, csrf_token } => Ok(request
                .header(COOKIE, hidden(cookie.expose_secret())?)
                .header(headers::CSRF_TOKEN, hidden(csrf_token.expose_secret())?)),
        })
    }

    pub(super) fn query<Q: Serialize>(self, query: &Q) -> Self {
        self.change(|request| {
            let query = parse::write_query(query)
                .map_err(|error| Error::unexpected(format!("the query has no form: {error}")))?;
            let (client, request) = request.build_split();
            let mut request = request.map_err(Error::setup)?;
            if !query.is_empty() {
                request.url_mut().set_query(Some(&query));
            }
            Ok(RequestBuilder::from_parts(client, request))
        })
    }

    pub(super) fn body<B: Serialize>(self, body: &B) -> Self {
        self.change(|request| {
            let bytes = serde_json::to_vec(body)
                .map_err(|error| Error::unexpected(format!("the body has no form: {error}")))?;
            Ok(request.header(CONTENT_TYPE, "application/json").body(bytes))
        })
    }

    /// A body of another kind than JSON, which tells by itself what it is.
    pub(super) fn content(self, content: Vec<u8>) -> Self {
        self.change(|request| {
            let kind = "application/octet-stream";
            Ok(request.header(CONTENT_TYPE, kind).body(content))
        })
    }

    pub(super) fn if_match(self, version: IfMatch) -> Self {
        self.change(|request| Ok(request.header(IF_MATCH, version.to_string())))
    }

    pub(super) fn key(self, key: Option<&IdempotencyKey>) -> Self {
        self.change(|request| {
            Ok(match key {
                Some(key) => request.header(headers::IDEMPOTENCY_KEY, key.as_str()),
                None => request,
            })
        })
    }

    pub(super) fn header(self, name: &'static str, value: u64) -> Self {
        self.change(|request| Ok(request.header(name, value)))
    }

    /// Says which kind of answer is wanted.
    pub(super) fn accept(self, media_type: &'static str) -> Self {
        self.change(|request| Ok(request.header(ACCEPT, media_type)))
    }

    /// Sends it without an end to wait for, and gives the answer unread if it is a good one.
    pub(super) async fn open(self) -> Result<Response, Error> {
        let base = self.client.base_url();
        let answer = self.request?.send().await;
        let answer = answer.map_err(|error| Error::transport(error, base))?;
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(refusal(answer, base).await)
        }
    }

    async fn send(self) -> Result<Response, Error> {
        self.accept("application/json, application/problem+json")
            .change(|request| Ok(request.timeout(CALL_TIMEOUT)))
            .open()
            .await
    }

    /// Sends it; a good answer has nothing more to say.
    pub(super) async fn done(self) -> Result<(), Error> {
        self.send().await.map(|_| ())
    }

    pub(super) async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let base = self.client.base_url();
        let answer = self.send().await?;
        read(answer, base).await
    }

    pub(super) async fn created<T: DeserializeOwned>(self) -> Result<Created<T>, Error> {
        let base = self.client.base_url();
        let answer = self.send().await?;
        let replayed = answer
            .headers()
            .get(headers::IDEMPOTENCY_REPLAYED)
            .is_some_and(|value| value == "true");
        let object = read(answer, base).await?;
        Ok(Created { object, replayed })
    }

    /// Sends it, and gives the answer with its headers.
    pub(super) async fn answer(self) -> Result<Response, Error> {
        self.send().await
    }
}

/// A header that no log prints.
fn hidden(value: &str) -> Result<HeaderValue, Error> {
    let mut header = HeaderValue::from_str(value).map_err(|_| {
        Error::unexpected("the credential contains characters that no header takes")
    })?;
    header.set_sensitive(true);
    Ok(header)
}

pub(super) async fn read<T: DeserializeOwned>(answer: Response, base: &str) -> Result<T, Error> {
    let bytes = answer.bytes().await;
    let bytes = bytes.map_err(|error| Error::transport(error, base))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Error::unexpected(format!("{base} gave an answer that does not read: {error}"))
    })
}

async fn refusal(answer: Response, base: &str) -> Error {
    let status = answer.status();
    if status.is_redirection() {
        return moved(&answer, base);
    }
    let bytes = match answer.bytes().await {
        Ok(bytes) => bytes,
        Err(error) => return Error::transport(error, base),
    };
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => problem.into(),
        Err(_) => Error::unexpected(format!("{base} answered {}", said(status, &bytes))),
    }
}

fn moved(answer: &Response, base: &str) -> Error {
    let to = answer
        .headers()
        .get(reqwest::header::LOCATION)
        .and_then(|to| to.to_str().ok())
        .unwrap_or("another address");
    Error::unexpected(format!("{base} points to {to}"))
}

fn said(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let start: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(EXCERPT_CHARS)
        .collect();
    match start.trim() {
        "" => status.to_string(),
        start => format!("{status}: {start}"),
    }
}
