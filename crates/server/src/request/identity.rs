//! Who asks: an API token in the `Authorization` header, or a browser's session in a cookie.
//!
//! A browser sends the cookie along with whatever page makes it call us, so a request that changes something
//! by cookie must also prove that one of Berth's own pages made it: by the session's token in a header, which
//! another site can neither read nor set. A token in the header needs no such proof, as no browser adds it by
//! itself; where both are given, the token counts.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use berth_api::Code;
use berth_api::headers::{CSRF_TOKEN, HOST_SESSION_COOKIE, SESSION_COOKIE};
use berth_app::accounts::{SessionToken, is_token};
use berth_app::{Caller, Error, Once};
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method};

use super::address::{is_proxied, origin};
use super::{IfMatch, header};
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::server::{Server, is_secure};

/// A caller who showed who they are.
#[derive(Debug, Clone)]
pub struct Signed(pub Caller);

impl FromRequestParts<Server> for Signed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self> {
        match identify(parts, server).await {
            Identity::Known { mut caller, .. } => {
                caller.once = parts.extensions.get::<Act>().map(|Act(once)| once.clone());
                Ok(Signed(*caller))
            }
            Identity::Refused(failure) => Err(failure),
            Identity::Anonymous => Err(Failure::new(Code::AuthSignInRequired)),
        }
    }
}

/// A caller of a change that may name the version it is meant for; the caller carries it.
#[derive(Debug, Clone)]
pub struct Changing(pub Caller);

impl FromRequestParts<Server> for Changing {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self> {
        let Signed(mut caller) = Signed::from_request_parts(parts, server).await?;
        caller.version = IfMatch::from_request_parts(parts, server).await?.optional();
        Ok(Changing(caller))
    }
}

/// The idempotency key of an action, put with the request by the layer that answers repeated ones.
#[derive(Debug, Clone)]
pub(crate) struct Act(pub Once);

/// The session of a browser that is signed in; none for an API token.
#[derive(Debug, Clone)]
pub struct Session(pub Option<SessionToken>);

impl FromRequestParts<Server> for Session {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Infallible> {
        Ok(Session(match identify(parts, server).await {
            Identity::Known { session, .. } => session,
            Identity::Anonymous | Identity::Refused(_) => None,
        }))
    }
}

/// What a request shows of its sender.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Nothing at all.
    Anonymous,
    Known {
        caller: Box<Caller>,
        session: Option<SessionToken>,
    },
    /// Something that is not, or no longer, good.
    Refused(Failure),
}

/// Finds out who asks; the answer is kept with the request, since several layers want to know.
pub(crate) async fn identify(parts: &mut Parts, server: &Server) -> Identity {
    if let Some(known) = parts.extensions.get::<Identity>() {
        return known.clone();
    }
    let identity = match look(parts, server).await {
        Ok(identity) => identity,
        Err(failure) => Identity::Refused(failure),
    };
    parts.extensions.insert(identity.clone());
    identity
}

async fn look(parts: &Parts, server: &Server) -> Result<Identity> {
    let origin = origin(parts, server);
    if parts.headers.contains_key(AUTHORIZATION) {
        let secret = header(parts, AUTHORIZATION.as_str())
            .and_then(bearer)
            .ok_or_else(|| {
                Failure::new(Code::AuthTokenInvalid)
                    .detail("The Authorization header does not hold a bearer token.")
                    .hint("Send it as `Authorization: Bearer berth_…`.")
            })?;
        return Ok(Identity::Known {
            caller: Box::new(by_token(parts, server, secret, &origin).await?),
            session: None,
        });
    }
    // A neighbouring host, or a path, can set cookies of the same name, and browsers send them in any order.
    let name = cookie_name(&server.config);
    let shown: Vec<SessionToken> = cookies(&parts.headers, name)
        .map(SessionToken::new)
        .collect();
    if shown.is_empty() {
        return Ok(Identity::Anonymous);
    }
    let found = by_cookies(parts, server, &shown, &origin).await?;
    let Some((caller, token)) = found else {
        return Err(Failure::new(Code::AuthSignInRequired)
            .detail("Your session has ended.")
            .hint("Sign in again."));
    };
    expect_own_page(parts, server, &token)?;
    Ok(Identity::Known {
        caller: Box::new(caller),
        session: Some(token),
    })
}

async fn by_token(parts: &Parts, server: &Server, secret: &str, origin: &str) -> Result<Caller> {
    // A word of the hub's is no token, and takes nothing from the limit of tokens.
    if !is_token(secret) {
        return Err(Error::TokenUnknown.into());
    }
    let limit = &server.throttle.tokens;
    let admitted = limit.admit(parts, server, std::iter::once(secret))?;
    match server.app.caller_by_token(secret, origin).await {
        Ok(caller) => {
            limit.was_good(admitted, secret);
            Ok(caller)
        }
        Err(error) => {
            limit.were_bad(admitted);
            Err(error.into())
        }
    }
}

/// Whose one of these cookies is. What Berth never made is not looked up.
async fn by_cookies(
    parts: &Parts,
    server: &Server,
    shown: &[SessionToken],
    origin: &str,
) -> Result<Option<(Caller, SessionToken)>> {
    let well_formed = shown.iter().filter(|token| token.is_well_formed());
    let tokens: Vec<SessionToken> = well_formed.cloned().collect();
    if tokens.is_empty() {
        return Ok(None);
    }
    let limit = &server.throttle.cookies;
    let admitted = limit.admit(parts, server, tokens.iter().map(SessionToken::reveal))?;
    match server.app.caller_by_sessions(&tokens, origin).await {
        Ok((caller, token)) => {
            limit.was_good(admitted, token.reveal());
            Ok(Some((caller, token)))
        }
        Err(error) => {
            limit.were_bad(admitted);
            match error {
                Error::Expired => Ok(None),
                error => Err(error.into()),
            }
        }
    }
}

/// The scheme's name is written in any case (RFC 9110); `token` is Jupyter's word for it.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    let is_ours = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    (is_ours && !token.is_empty()).then_some(token)
}

/// The name of the session's cookie. The prefix makes browsers refuse one that a neighbouring host set, but
/// they take it only over HTTPS and for the whole host.
pub fn cookie_name(config: &Config) -> &'static str {
    if is_secure(config) && config.base_path.as_str().is_empty() {
        HOST_SESSION_COOKIE
    } else {
        SESSION_COOKIE
    }
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, value)| *key == name && !value.is_empty())
        .map(|(_, value)| value)
}

fn expect_own_page(parts: &Parts, server: &Server, token: &SessionToken) -> Result<()> {
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let proof = header(parts, CSRF_TOKEN).unwrap_or_default();
    if !token.accepts_csrf(proof) {
        return Err(Failure::new(Code::AuthCsrf));
    }
    let Some(origin) = parts.headers.get(ORIGIN) else {
        return Ok(());
    };
    let public = server.config.public_url.as_ref().map(|url| url.as_str());
    let forwarded = is_proxied(parts, server).then(|| header(parts, "x-forwarded-host"));
    let forwarded = forwarded.flatten();
    let hosts = [
        header(parts, HOST.as_str()),
        parts.uri.authority().map(|authority| authority.as_str()),
        forwarded.filter(|host| server.hosts.allow(host)),
    ];
    if is_own(origin.to_str().unwrap_or_default(), public, &hosts) {
        return Ok(());
    }
    Err(Failure::new(Code::AuthCsrf)
        .detail("The request comes from a page of another address.")
        .hint("Open Berth at its own address; an administrator sets it as `public_url`."))
}

/// Whether a page's origin is our own address: the configured one, or the host that the request was sent to.
fn is_own(origin: &str, public: Option<&str>, hosts: &[Option<&str>]) -> bool {
    if public.is_some_and(|public| public.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let Some((_, host)) = origin.split_once("://") else {
        return false;
    };
    hosts
        .iter()
        .flatten()
        .any(|known| known.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file: &str) -> Config {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = Config::layer(Some(("t", file)), env.into_iter(), Default::default());
        loaded.unwrap().config
    }

    #[test]
    fn bearer_tokens_are_read_and_nothing_else() {
        assert_eq!(bearer("Bearer berth_x"), Some("berth_x"));
        assert_eq!(bearer("bearer  berth_x "), Some("berth_x"));
        assert_eq!(bearer("token berth_x"), Some("berth_x"));
        for bad in ["", "Bearer", "Bearer ", "Basic YTpi", "berth_x"] {
            assert_eq!(bearer(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "theme=dark; xberth_session=1".parse().unwrap());
        headers.append(
            COOKIE,
            "berth_session=; berth_session=abc=d".parse().unwrap(),
        );
        headers.append(COOKIE, "berth_session=e".parse().unwrap());
        let all = |headers, name| cookies(headers, name).collect::<Vec<_>>();
        assert_eq!(all(&headers, SESSION_COOKIE), ["abc=d", "e"]);
        assert!(all(&headers, HOST_SESSION_COOKIE).is_empty());
        assert!(all(&HeaderMap::new(), SESSION_COOKIE).is_empty());
    }

    #[test]
    fn the_cookie_is_bound_to_the_host_where_browsers_allow_it() {
        let secure = "public_url = 'https://berth.example.org'\n";
        assert_eq!(cookie_name(&config(secure)), HOST_SESSION_COOKIE);
        assert_eq!(cookie_name(&config("")), SESSION_COOKIE);
        let below = format!("{secure}base_path = '/lab'");
        assert_eq!(cookie_name(&config(&below)), SESSION_COOKIE);
        assert!(is_secure(&config(&below)));
    }

    #[test]
    fn an_origin_is_ours_by_configuration_or_by_host() {
        let public = Some("https://berth.example.org");
        let hosts = [Some("inner:8080"), None];
        assert!(is_own("https://berth.example.org", public, &hosts));
        assert!(is_own("http://inner:8080", None, &hosts));
        for foreign in [
            "null",
            "",
            "https://evil.example",
            "http://inner:80",
            "https://berth.example.org.evil.example",
        ] {
            assert!(!is_own(foreign, public, &hosts), "{foreign}");
        }
    }
}
