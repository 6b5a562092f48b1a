//! Pages for people: a welcome, the guides, the API's reference, and one page for each problem.
//!
//! They are made once, when the server starts, from what is compiled in: they need no script, ask no other host
//! for anything, and show nothing that a stranger may not see. Everything that is put into one is escaped.

mod guides;
mod html;
mod markdown;
mod problems;
mod reference;
mod reset;
mod schema;
mod shell;
mod welcome;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use berth_api::about::Demo;
use berth_api::{Code, paths};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::browser;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::openapi;
use crate::server::Server;
use crate::visits::hop;
use shell::Shell;

/// Everything that is made once and served as it is.
#[derive(Debug)]
pub(crate) struct Documents {
    pub openapi: Bytes,
    pub content_security_policy: HeaderValue,
    /// The browser app's page, where this binary was built with it.
    pub app: Option<Bytes>,
    welcome: Bytes,
    reference: Bytes,
    guides: Bytes,
    problems: Bytes,
    reset: Bytes,
    shell: Shell,
}

impl Documents {
    pub fn new(config: &Config, demo: Option<&Demo>) -> Self {
        let shell = Shell::new(config);
        let document = openapi::served_under(openapi::openapi(), &shell.address);
        // The document is made of texts, numbers and maps with texts for keys, which always serialise.
        let value = serde_json::to_value(&document).unwrap_or_default();
        Self {
            openapi: serde_json::to_vec_pretty(&value).unwrap_or_default().into(),
            content_security_policy: shell::content_security_policy(),
            app: browser::page(config.base_path.as_str()),
            welcome: welcome::page(&shell, demo).into(),
            reference: reference::page(&shell, &value).into(),
            guides: guides::index(&shell).into(),
            problems: problems::index(&shell).into(),
            reset: reset::page(&shell).into(),
            shell,
        }
    }
}

/// Where the list of all problems stands.
const PROBLEMS: &str = "/docs/errors";

pub fn router() -> Router<Server> {
    Router::new()
        .route(paths::HOME, get(browser::home))
        .route(paths::WELCOME, get(welcome))
        .route(paths::OPEN_SESSION, get(hop::open))
        .route(paths::DOCS, get(reference))
        .route(paths::GUIDES, get(guides))
        .route(paths::GUIDE_PAGE, get(guide))
        .route(PROBLEMS, get(problems))
        .route(paths::RESET_PAGE, get(reset))
        .route(paths::ERROR_PAGE, get(problem))
}

pub async fn welcome(State(server): State<Server>) -> Response {
    html(server.documents.welcome.clone())
}

async fn reference(State(server): State<Server>) -> Response {
    html(server.documents.reference.clone())
}

async fn guides(State(server): State<Server>) -> Response {
    html(server.documents.guides.clone())
}

async fn guide(
    State(server): State<Server>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response> {
    let page = name
        .ok()
        .and_then(|Path(name)| guides::page(&server.documents.shell, &name));
    let page = page.ok_or_else(|| {
        Failure::new(Code::ObjectNotFound)
            .detail("There is no guide of this name.")
            .hint("/docs/guides lists all that there are.")
    })?;
    Ok(html(page.into()))
}

async fn problems(State(server): State<Server>) -> Response {
    html(server.documents.problems.clone())
}

async fn reset(State(server): State<Server>) -> Response {
    match &server.documents.app {
        Some(page) => browser::shown(page),
        None => html(server.documents.reset.clone()),
    }
}

async fn problem(
    State(server): State<Server>,
    code: Result<Path<String>, PathRejection>,
) -> Result<Response> {
    let code: Option<Code> = code.ok().and_then(|Path(code)| code.parse().ok());
    let code = code.ok_or_else(|| {
        Failure::new(Code::ObjectNotFound)
            .detail("There is no problem of this name.")
            .hint("/docs/errors lists all that there are.")
    })?;
    Ok(html(problems::page(&server.documents.shell, code).into()))
}

fn html(page: Bytes) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // They change only with the server's version; a browser may keep one while someone reads.
        (CACHE_CONTROL, "max-age=60"),
    ];
    (headers, page).into_response()
}

#[cfg(test)]
mod tests {
    use berth_api::about::DemoPerson;

    use super::*;

    fn documents(file: &str, demo: Option<&Demo>) -> Documents {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = Config::layer(Some(("t", file)), env.into_iter(), Default::default());
        Documents::new(&loaded.unwrap().config, demo)
    }

    fn text(page: &Bytes) -> &str {
        std::str::from_utf8(page).unwrap()
    }

    #[test]
    fn pages_ask_no_other_host_and_run_nothing() {
        let documents = documents("", None);
        for page in [
            &documents.welcome,
            &documents.reference,
            &documents.problems,
            &documents.reset,
        ] {
            let page = text(page);
            for foreign in [
                "<script", "src=", "@import", "url(", "<link", "<iframe", " on",
            ] {
                let inside_a_tag = page
                    .split('<')
                    .filter_map(|part| part.split_once('>'))
                    .any(|(tag, _)| format!("<{tag}").contains(foreign));
                assert!(!inside_a_tag, "{foreign}");
            }
        }
    }

    #[test]
    fn links_and_addresses_stand_below_the_base_path() {
        let config = "public_url = 'https://lab.example'\nbase_path = '/berth'";
        let documents = documents(config, None);
        let document: serde_json::Value = serde_json::from_slice(&documents.openapi).unwrap();
        assert_eq!(
            document["servers"][0]["url"],
            "https://lab.example/berth/api/v1"
        );
        for page in [
            &documents.welcome,
            &documents.reference,
            &documents.problems,
            &documents.reset,
        ] {
            for link in text(page).split("href=\"").skip(1) {
                let link = link.split('"').next().unwrap();
                let inside = link.starts_with('#') || link.starts_with("/berth");
                assert!(inside, "{link}");
            }
        }
    }

    #[test]
    fn the_demo_s_sign_ins_are_shown_and_escaped() {
        let person = DemoPerson {
            login: "ada".into(),
            password: "correct-horse".into(),
            who: "<b>admin</b> & more".into(),
        };
        let demo = Demo {
            people: vec![person],
        };
        let documents = documents("", Some(&demo));
        let page = text(&documents.welcome);
        assert!(page.contains("correct-horse"));
        assert!(page.contains("&lt;b&gt;admin&lt;/b&gt; &amp; more"));
        assert!(!page.contains("<b>admin"));
    }

    #[test]
    fn every_operation_and_every_schema_is_on_the_reference_page() {
        let documents = documents("", None);
        let document: serde_json::Value = serde_json::from_slice(&documents.openapi).unwrap();
        let page = text(&documents.reference);
        for (path, item) in document["paths"].as_object().unwrap() {
            let path = html::escape(path).to_string();
            assert!(page.contains(&path), "{path}");
            for (method, operation) in item.as_object().unwrap() {
                let id = operation["operationId"].as_str().unwrap();
                assert!(page.contains(&format!("id=\"{id}\"")), "{method} {path}");
            }
        }
        for name in document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
        {
            assert!(page.contains(&format!("id=\"schema-{name}\"")), "{name}");
        }
        let targets = page.split("href=\"#").skip(1);
        for target in targets.map(|rest| rest.split('"').next().unwrap()) {
            assert!(
                page.contains(&format!("id=\"{target}\"")),
                "#{target} leads nowhere"
            );
        }
    }
}
