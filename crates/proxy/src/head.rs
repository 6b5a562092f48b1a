//! Rewrites the heads of requests and responses. Hop-by-hop headers stay on their connection, Berth's cookies and
//! tokens stay with Berth, and only Berth sets the headers that describe the visitor to the app.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Response, Uri, Version};
use hyper::body::Body as _;

use crate::body::Upload;
use crate::cookies::Own;
use crate::failure::Failure;
use crate::location;
use crate::proxy::Visitor;
use crate::routes::{Face, HostSent, Prefix, Route};

/// Whether a request asks to upgrade the connection to a WebSocket. The proxy supports no other upgrade: it passes such
/// a request on as a normal one, without the upgrade headers.
pub(crate) fn wants_socket(parts: &Parts) -> bool {
    let said = |name, word: &[u8]| {
        let mut values = parts.headers.get_all(name).iter();
        values.any(|value| list(value).any(|item| item.eq_ignore_ascii_case(word)))
    };
    parts.version == Version::HTTP_11
        && said(header::CONNECTION, b"upgrade")
        && said(header::UPGRADE, b"websocket")
}

/// Refuses ambiguous requests, and methods or targets that are not requests for a page.
pub(crate) fn check(parts: &Parts, head_bytes_max: usize) -> Result<(), Failure> {
    let is_strange = matches!(parts.method, Method::CONNECT | Method::TRACE)
        || !parts.uri.path().starts_with('/')
        || parts.version < Version::HTTP_2 && parts.uri.authority().is_some();
    if is_strange {
        return Err(Failure::Malformed);
    }
    let path = parts
        .uri
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    let lines = parts
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    if path + lines.sum::<usize>() > head_bytes_max {
        return Err(Failure::TooLong);
    }
    Ok(())
}

/// The path to request from the app. `None` if the session's own address lacks the slash at its end.
pub(crate) fn path_for_app(uri: &Uri, route: &Route) -> Option<Result<Uri, Failure>> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let base = route.face.base.as_str();
    if base == "/" {
        let bare = || PathAndQuery::try_from(path).map(Uri::from);
        return Some(if uri.authority().is_none() {
            Ok(uri.clone())
        } else {
            bare().map_err(|_| Failure::Malformed)
        });
    }
    let Some(rest) = path.strip_prefix(base) else {
        return (uri.path() != &base[..base.len() - 1]).then_some(Err(Failure::Nobody));
    };
    let wanted = match route.target.prefix {
        Prefix::Kept => path.to_owned(),
        Prefix::Stripped => format!("/{rest}"),
    };
    let uri = PathAndQuery::try_from(wanted).map(Uri::from);
    Some(uri.map_err(|_| Failure::Malformed))
}

/// Makes the request head for the app. [`frame`] sets the body's length.
pub(crate) fn for_app(parts: &mut Parts, route: &Route, visitor: &Visitor, own: &Own) {
    let headers = &mut parts.headers;
    strip_hop(headers);
    strip(headers, is_berths_to_say);
    own.strip_cookies(headers);
    own.strip_authorization(headers);
    if let Some(authorization) = &route.target.authorization {
        headers.insert(header::AUTHORIZATION, authorization.clone());
    }
    let face = &route.face;
    let host = match &route.target.host {
        HostSent::Public => face.host.clone(),
        HostSent::Fixed(host) => {
            pretend(headers, face, host);
            host.clone()
        }
    };
    headers.insert(header::HOST, host);
    headers.insert(X_FORWARDED_HOST, face.host.clone());
    headers.insert(X_FORWARDED_PROTO, face.scheme.clone());
    if let Some(address) = visitor.address.and_then(address_value) {
        headers.insert(X_FORWARDED_FOR, address);
    }
    if route.target.prefix == Prefix::Stripped
        && !face.is_isolated
        && let Ok(prefix) = HeaderValue::from_str(face.base.trim_end_matches('/'))
    {
        headers.insert(X_FORWARDED_PREFIX, prefix);
    }
    for (name, value) in &visitor.headers {
        headers.insert(name.clone(), value.clone());
    }
    parts.version = Version::HTTP_11;
}

/// Sets the body's length from the body itself, not from the client's header.
pub(crate) fn frame(parts: &mut Parts, body: &Upload) {
    let headers = &mut parts.headers;
    headers.remove(header::CONTENT_LENGTH);
    match body.size_hint().exact() {
        Some(0) if matches!(parts.method, Method::GET | Method::HEAD) => {}
        Some(length) => {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        None => {
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
    }
}

/// Makes the response head for the visitor.
pub(crate) fn for_visitor<B>(response: &mut Response<B>, route: &Route, own: &Own) {
    *response.version_mut() = Version::HTTP_11;
    let headers = response.headers_mut();
    strip_hop(headers);
    let is_isolated = route.face.is_isolated;
    strip(headers, |name| speaks_for_others(name, is_isolated));
    own.bind_cookies(headers, (!is_isolated).then_some(route.face.base.as_str()));
    if let Some(value) = headers.get(header::LOCATION)
        && let Some(corrected) = location::corrected(value, &route.face, &route.target)
    {
        headers.insert(header::LOCATION, corrected);
    }
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

fn address_value(address: IpAddr) -> Option<HeaderValue> {
    HeaderValue::try_from(address.to_canonical().to_string()).ok()
}

/// Removes hop-by-hop headers, and the headers that the `Connection` header names.
fn strip_hop(headers: &mut HeaderMap) {
    let is_plain = |word: &[u8]| {
        let known: [&[u8]; 3] = [b"keep-alive", b"close", b"upgrade"];
        known.iter().any(|known| word.eq_ignore_ascii_case(known))
    };
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(list)
        .filter(|word| !is_plain(word))
        .filter_map(|word| HeaderName::from_bytes(word).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    strip(headers, |name| {
        matches!(
            name,
            "connection"
                | "expect"
                | "http2-settings"
                | "keep-alive"
                | "proxy-authenticate"
                | "proxy-authorization"
                | "proxy-connection"
                | "te"
                | "trailer"
                | "transfer-encoding"
                | "upgrade"
        )
    });
}

/// Headers from which an app learns about its visitor. Many apps read `_` as `-`.
fn is_berths_to_say(name: &str) -> bool {
    if name.contains('_') {
        return is_berths_to_say(&name.replace('_', "-"));
    }
    name.starts_with("x-forwarded")
        || name.starts_with("x-berth-")
        || matches!(
            name,
            "forwarded"
                | "via"
                | "x-real-ip"
                | "x-scheme"
                | "x-remote-user"
                | "remote-user"
                | "x-original-url"
                | "x-rewrite-url"
        )
}

/// Headers by which an app affects more than itself: the whole domain's cookies, the way to the host, other paths.
fn speaks_for_others(name: &str, is_isolated: bool) -> bool {
    match name {
        "alt-svc" | "clear-site-data" | "strict-transport-security" => true,
        "nel" | "report-to" | "reporting-endpoints" | "service-worker-allowed" => !is_isolated,
        _ => false,
    }
}

fn strip(headers: &mut HeaderMap, unwanted: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|name| unwanted(name.as_str()))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// Makes `Origin` and `Referer` agree with `host`, which the app gets instead of its public host. An earlier check
/// ensures that they are the session's own.
fn pretend(headers: &mut HeaderMap, face: &Face, host: &HeaderValue) {
    let own = face.origin.as_bytes();
    for name in [header::ORIGIN, header::REFERER] {
        let Some(rest) = headers
            .get(&name)
            .and_then(|value| value.as_bytes().strip_prefix(own))
        else {
            continue;
        };
        if rest.is_empty() || rest.starts_with(b"/") {
            let told = [b"http://", host.as_bytes(), rest].concat();
            if let Ok(told) = HeaderValue::from_bytes(&told) {
                headers.insert(name, told);
            }
        }
    }
}

fn list(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value
        .as_bytes()
        .split(|c| *c == b',')
        .map(<[u8]>::trim_ascii)
}
