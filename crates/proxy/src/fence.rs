//! Checks which origin's page made a request. A browser sends a visitor's cookie with every page's requests. So a
//! request with a cookie must also come from the session's own origin, or must only follow a link.

use http::header::{HeaderMap, HeaderValue, ORIGIN};
use http::{Method, request::Parts};

use crate::failure::Failure;
use crate::proxy::Credential;

const SEC_FETCH_SITE: &str = "sec-fetch-site";
const SEC_FETCH_MODE: &str = "sec-fetch-mode";
const SEC_FETCH_DEST: &str = "sec-fetch-dest";

/// The effect of a request, as far as it decides which origins may make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Look,
    Change,
    /// Opens a socket. Browsers let other origins do this and read from it.
    Talk,
}

pub(crate) fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Refuses requests that another origin's page may have made.
pub(crate) fn check(
    parts: &Parts,
    is_upgrade: bool,
    origin: &HeaderValue,
    credential: Credential,
) -> Result<(), Failure> {
    let intent = match is_upgrade {
        true => Intent::Talk,
        false if is_safe(&parts.method) => Intent::Look,
        false => Intent::Change,
    };
    if may_come(&parts.headers, intent, origin, credential) {
        Ok(())
    } else {
        Err(Failure::Foreign)
    }
}

fn may_come(headers: &HeaderMap, intent: Intent, own: &HeaderValue, by: Credential) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next();
    if origins.next().is_some() {
        return false;
    }
    let fetch = |name| headers.get(name).map_or(&b""[..], HeaderValue::as_bytes);
    match (intent, by, origin) {
        (Intent::Talk | Intent::Change, _, Some(origin)) if origin == own => true,
        // No browser adds a token by itself, and programs send no `Origin`.
        (Intent::Talk | Intent::Change, Credential::Token, origin) => origin.is_none(),
        (Intent::Talk, Credential::Cookie, _) => false,
        // A page that hides its origin sends `null`; no script can write this other header.
        (Intent::Change, Credential::Cookie, origin) => {
            origin.is_none_or(|origin| origin == "null") && fetch(SEC_FETCH_SITE) == b"same-origin"
        }
        (Intent::Look, Credential::Token, _) => true,
        (Intent::Look, Credential::Cookie, _) => match fetch(SEC_FETCH_SITE) {
            b"same-site" | b"cross-site" => {
                fetch(SEC_FETCH_MODE) == b"navigate" && fetch(SEC_FETCH_DEST) == b"document"
            }
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Credential::{Cookie, Token};
    use Intent::{Change, Look, Talk};

    #[test]
    fn only_the_sessions_own_pages_act_by_its_visitors_cookie() {
        let own = ("origin", "https://x.b.org");
        let sibling = ("origin", "https://y.b.org");
        let hidden = ("origin", "null");
        let (same, near, far) = (
            (SEC_FETCH_SITE, "same-origin"),
            (SEC_FETCH_SITE, "same-site"),
            (SEC_FETCH_SITE, "cross-site"),
        );
        let (navigate, document) = ((SEC_FETCH_MODE, "navigate"), (SEC_FETCH_DEST, "document"));
        let frame = (SEC_FETCH_DEST, "iframe");
        for (intent, by, given, expected) in [
            (Talk, Cookie, &[own][..], true),
            (Talk, Cookie, &[], false),
            (Talk, Cookie, &[same], false),
            (Talk, Cookie, &[hidden, same], false),
            (Talk, Cookie, &[sibling], false),
            (Talk, Cookie, &[own, sibling], false),
            (
                Talk,
                Cookie,
                &[("origin", "https://x.b.org.evil.example")],
                false,
            ),
            (Talk, Cookie, &[("origin", "http://x.b.org")], false),
            (Talk, Token, &[], true),
            (Talk, Token, &[sibling], false),
            (Change, Cookie, &[own], true),
            (Change, Cookie, &[], false),
            (Change, Cookie, &[same], true),
            (Change, Cookie, &[hidden, same], true),
            (Change, Cookie, &[hidden], false),
            (Change, Cookie, &[sibling, same], false),
            (Change, Token, &[], true),
            (Change, Token, &[sibling], false),
            (Look, Cookie, &[], true),
            (Look, Cookie, &[same], true),
            (Look, Cookie, &[far, navigate, document], true),
            (Look, Cookie, &[near, navigate, document], true),
            (Look, Cookie, &[near, navigate, frame], false),
            (Look, Cookie, &[near], false),
            (Look, Cookie, &[far], false),
            (Look, Token, &[far], true),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.append(*name, HeaderValue::from_static(value));
            }
            let own = HeaderValue::from_static("https://x.b.org");
            let passes = may_come(&headers, intent, &own, by);
            assert_eq!(passes, expected, "{intent:?} {by:?} {given:?}");
        }
    }
}
