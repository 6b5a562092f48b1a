//! A plain HTTP client: what is sent and what comes back, with nothing between.
//!
//! The typed client of `berth_api` is for those who want things done; tests want to see each header and each byte.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// What somebody shows of themselves.
#[derive(Debug, Clone)]
pub enum Who {
    Nobody,
    Token(String),
    /// A browser: `name=value` of the cookie, and what its pages send along.
    Browser {
        cookie: String,
        csrf: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct Http {
    pub client: reqwest::Client,
    /// Where the API is.
    pub base: String,
}

#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// Empty for a live stream, which has no end.
    pub text: String,
}

/// Short, because it is read in the messages of failed tests.
impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.text)
    }
}

impl Answer {
    pub async fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let text = match kind {
            Some(kind) if kind.starts_with("text/event-stream") => String::new(),
            _ => response.text().await.expect("the whole answer"),
        };
        Self {
            status,
            headers,
            text,
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The problem's code; empty if the answer is no problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer itself, if it is what was hoped for.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl Http {
    /// The API of a server at this address (`http://127.0.0.1:8080`, or with a path).
    pub fn new(address: &str) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build();
        Self::with(client.expect("a client"), address)
    }

    pub fn with(client: reqwest::Client, address: &str) -> Self {
        Self {
            client,
            base: format!("{address}{}", berth_api::paths::API),
        }
    }

    /// A request to a path of the API, signed.
    pub fn request(&self, who: &Who, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.client.request(method, format!("{}{path}", self.base));
        match who {
            Who::Nobody => request,
            Who::Token(token) => request.bearer_auth(token),
            Who::Browser { cookie, csrf } => {
                let request = request.header("cookie", cookie);
                match csrf {
                    Some(csrf) => request.header("x-csrf-token", csrf),
                    None => request,
                }
            }
        }
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        Answer::of(request.send().await.expect("an answer")).await
    }

    pub async fn get(&self, who: &Who, path: &str) -> Answer {
        self.send(self.request(who, "GET", path)).await
    }

    pub async fn post(&self, who: &Who, path: &str, body: &Value) -> Answer {
        self.send(self.request(who, "POST", path).json(body)).await
    }

    /// Makes something, and gives the value that was answered.
    pub async fn make(&self, who: &Who, path: &str, body: &Value) -> Value {
        self.post(who, path, body).await.expect(201).json()
    }

    /// Signs a browser in; it sends its pages' token along.
    pub async fn sign_in(&self, login: &str, password: &str) -> Who {
        let body = serde_json::json!({ "login": login, "password": password });
        let answer = self.post(&Who::Nobody, "/sign-in", &body).await.expect(200);
        let set = answer.header("set-cookie").expect("a cookie");
        let cookie = set.split(';').next().unwrap_or_default().to_owned();
        let csrf = answer.json()["csrf_token"].as_str().map(str::to_owned);
        Who::Browser { cookie, csrf }
    }
}
