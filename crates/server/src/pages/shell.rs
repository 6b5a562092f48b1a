//! What all pages share: the frame around the content, the style, and the policy that lets nothing else in.

use std::fmt::Display;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use berth_api::paths;
use http::HeaderValue;
use sha2::{Digest, Sha256};

use super::PROBLEMS;
use super::html::escape;
use crate::config::Config;

const STYLE: &str = include_str!("pages.css");

/// The frame of every page, and where the server stands.
#[derive(Debug, Clone)]
pub struct Shell {
    /// What stands before every path of a link.
    pub base: String,
    /// Where to reach the server: its full address if that is known, else its path.
    pub address: String,
    /// An address to type, even where the configuration names none.
    pub example: String,
}

impl Shell {
    pub fn new(config: &Config) -> Self {
        let base = config.base_path.as_str().to_owned();
        let scheme = if config.tls().is_some() {
            "https"
        } else {
            "http"
        };
        let example = match &config.public_url {
            Some(url) => format!("{url}{base}"),
            None if config.listen.ip().is_loopback() => {
                format!("{scheme}://localhost:{}{base}", config.listen.port())
            }
            None => format!("{scheme}://{}{base}", config.listen),
        };
        Self {
            address: crate::server::address(config),
            base,
            example,
        }
    }

    /// A whole page. `content` is HTML already; the title is not.
    pub fn page(&self, title: &str, content: impl Display) -> String {
        let base = escape(&self.base);
        let (guides, docs, api) = (paths::GUIDES, paths::DOCS, paths::API);
        let openapi = paths::OPENAPI;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <header><a class=\"mark\" href=\"{base}/\">Berth</a>\n\
             <nav><a href=\"{base}{guides}\">Guides</a> <a href=\"{base}{docs}\">API</a> <a href=\"{base}{PROBLEMS}\">Problems</a> \
             <a href=\"{base}{api}{openapi}\">OpenAPI</a></nav></header>\n\
             <main>\n{content}</main>\n\
             <footer>Berth {}</footer>\n</body>\n</html>\n",
            escape(title),
            env!("CARGO_PKG_VERSION"),
        )
    }
}

/// Nothing may be loaded, run, framed or sent anywhere; of style, only our own.
pub fn content_security_policy() -> HeaderValue {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    // Base64 and our own words are all visible ASCII.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_admits_the_style_and_nothing_else() {
        let policy = content_security_policy();
        let policy = policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"));
        assert!(policy.ends_with("frame-ancestors 'none'"));
        assert!(!STYLE.contains("</style"), "it would end the element early");
    }
}
