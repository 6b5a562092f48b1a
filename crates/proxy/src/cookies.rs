//! Berth's own cookies and tokens in headers. They never reach an app, and no app can set them.

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

/// The prefixes of Berth's cookies and tokens, which distinguish them from an app's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// After `__Host-` or `__Secure-`, if a cookie has that.
    pub cookie_prefix: &'static str,
    pub token_prefix: &'static str,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            cookie_prefix: "berth_",
            token_prefix: "berth_",
        }
    }
}

/// The cookie by which a session's origin recognises its visitor. Browsers accept the `__Host-` prefix over HTTPS only,
/// and with it no neighbouring host can set the cookie.
pub fn visit_cookie_name(is_secure: bool) -> &'static str {
    if is_secure {
        "__Host-berth_visit"
    } else {
        "berth_visit"
    }
}

/// The value of a request's cookie, by its full name.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    cookies(headers, name).next()
}

/// All values of a cookie in a request: over plain HTTP a neighbouring host may have added its own.
pub fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(COOKIE).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(key, value)| *key == name && !value.is_empty())
        .map(|(_, value)| value)
}

impl Own {
    /// Removes Berth's cookies from a request, and leaves the app's in one line.
    pub fn strip_cookies(&self, headers: &mut HeaderMap) {
        let mut lines = headers.get_all(COOKIE).iter();
        let (first, more) = (lines.next(), lines.next());
        let Some(first) = first else { return };
        let is_clean = |line: &HeaderValue| pairs(line).all(|pair| !self.is_cookie(name_of(pair)));
        if more.is_none() && is_clean(first) {
            return;
        }
        let kept: Vec<&[u8]> = headers
            .get_all(COOKIE)
            .iter()
            .flat_map(pairs)
            .filter(|pair| !pair.is_empty() && !self.is_cookie(name_of(pair)))
            .collect();
        match HeaderValue::from_bytes(&kept.join(&b"; "[..])) {
            Ok(line) if !kept.is_empty() => {
                headers.insert(COOKIE, line);
            }
            _ => {
                headers.remove(COOKIE);
            }
        }
    }

    /// Removes Berth's tokens from a request, under any scheme.
    pub fn strip_authorization(&self, headers: &mut HeaderMap) {
        let is_own = |value: &HeaderValue| {
            let between = |c: &u8| !c.is_ascii_graphic() || b",=\"".contains(c);
            let mut words = value.as_bytes().split(between);
            words.any(|word| word.starts_with(self.token_prefix.as_bytes()))
        };
        if headers.get_all(AUTHORIZATION).iter().any(is_own) {
            headers.remove(AUTHORIZATION);
        }
    }

    /// Binds an app's cookies to the session's address, and drops those that it must not set. `base` is the session's
    /// base path, if it shares its origin.
    pub fn bind_cookies(&self, headers: &mut HeaderMap, base: Option<&str>) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let lines: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        headers.remove(SET_COOKIE);
        for line in lines.iter().filter_map(|line| self.bound(line, base)) {
            headers.append(SET_COOKIE, line);
        }
    }

    fn bound(&self, line: &HeaderValue, base: Option<&str>) -> Option<HeaderValue> {
        let mut parts = pairs(line);
        let pair = parts.next()?;
        // Without a name, the value could be read as another cookie's name when it comes back.
        let named = pair.contains(&b'=') && !name_of(pair).is_empty();
        if !named || self.is_cookie(name_of(pair)) {
            return None;
        }
        let is = |part: &[u8], name: &str| name_of(part).eq_ignore_ascii_case(name.as_bytes());
        let mut kept: Vec<&[u8]> = vec![pair];
        let mut path: &[u8] = b"";
        for part in parts {
            if is(part, "path") && base.is_some() {
                path = part.splitn(2, |c| *c == b'=').nth(1).unwrap_or_default();
            } else if !is(part, "domain") {
                kept.push(part);
            }
        }
        let mut bound = kept.join(&b"; "[..]);
        if let Some(base) = base {
            bound.extend_from_slice(b"; Path=");
            let path = path.trim_ascii();
            let below =
                path.starts_with(base.as_bytes()) && !path.windows(2).any(|two| two == b"..");
            bound.extend_from_slice(if below { path } else { base.as_bytes() });
        }
        HeaderValue::from_bytes(&bound).ok()
    }

    fn is_cookie(&self, name: &[u8]) -> bool {
        let without = |prefix: &[u8]| {
            let (head, rest) = name.split_at_checked(prefix.len())?;
            head.eq_ignore_ascii_case(prefix).then_some(rest)
        };
        let bare = without(b"__host-").or_else(|| without(b"__secure-"));
        let own = self.cookie_prefix.as_bytes();
        let head = bare.unwrap_or(name).get(..own.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(own))
    }
}

fn pairs(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    line.as_bytes()
        .split(|c| *c == b';')
        .map(<[u8]>::trim_ascii)
}

fn name_of(pair: &[u8]) -> &[u8] {
    let name = pair.split(|c| *c == b'=').next().unwrap_or_default();
    unquoted(name.trim_ascii())
}

fn unquoted(word: &[u8]) -> &[u8] {
    word.strip_prefix(b"\"").unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        headers
    }

    fn all(headers: &HeaderMap, name: http::HeaderName) -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| value.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn berths_cookies_stay_behind_and_the_apps_go_on() {
        for (lines, expected) in [
            (
                &["_xsrf=1; berth_session=s; a=b=c"][..],
                &["_xsrf=1; a=b=c"][..],
            ),
            (&["_xsrf=1; a=2"], &["_xsrf=1; a=2"]),
            (&["a=1", "b=2", "__Host-berth_visit=v"], &["a=1; b=2"]),
            (
                &["__host-BERTH_visit=v;__Secure-berth_x=y; \tberth_z=1"],
                &[],
            ),
            (&["a=\"; berth_session=s\""], &["a=\""]),
            (
                &["\"berth_session\"=s; berth_session; = ; x=1"],
                &["=; x=1"],
            ),
            (&["berthold=1; my_berth_=2"], &["berthold=1; my_berth_=2"]),
            (&[], &[]),
        ] {
            let mut headers = headers(COOKIE, lines);
            Own::default().strip_cookies(&mut headers);
            assert_eq!(
                all(&headers, COOKIE).join("|").replace("= ;", "=;"),
                expected.join("|"),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn berths_tokens_stay_behind_and_the_apps_go_on() {
        for (value, passes) in [
            ("Bearer berth_abc", false),
            ("bearer   berth_abc", false),
            ("token berth_abc", false),
            ("Token token=\"berth_abc\"", false),
            ("berth_abc", false),
            ("Bearer \"berth_abc\"", false),
            ("token 0123berth_", true),
            ("Basic dXNlcjpwYXNz", true),
        ] {
            let mut headers = headers(AUTHORIZATION, &[value]);
            Own::default().strip_authorization(&mut headers);
            assert_eq!(headers.contains_key(AUTHORIZATION), passes, "{value}");
        }
    }

    #[test]
    fn an_app_sets_cookies_for_its_own_address_only() {
        for (line, alone, shared) in [
            ("a=1", Some("a=1"), Some("a=1; Path=/s/x/")),
            (
                "a=1; Domain=.example.org; Path=/; HttpOnly",
                Some("a=1; Path=/; HttpOnly"),
                Some("a=1; HttpOnly; Path=/s/x/"),
            ),
            (
                "a=1; dOmAiN = example.org",
                Some("a=1"),
                Some("a=1; Path=/s/x/"),
            ),
            (
                "a=1; path=/s/x/lab",
                Some("a=1; path=/s/x/lab"),
                Some("a=1; Path=/s/x/lab"),
            ),
            (
                "a=1; path=/s/x/../y",
                Some("a=1; path=/s/x/../y"),
                Some("a=1; Path=/s/x/"),
            ),
            ("berth_session=evil; Path=/", None, None),
            ("__Host-berth_visit=evil; Path=/; Secure", None, None),
            (" BERTH_visit =evil", None, None),
            ("=berth_session=evil", None, None),
            ("berth_session", None, None),
        ] {
            for (base, expected) in [(None, alone), (Some("/s/x/"), shared)] {
                let mut headers = headers(SET_COOKIE, &[line, "kept=1; Path=/s/x/"]);
                Own::default().bind_cookies(&mut headers, base);
                let mut set = all(&headers, SET_COOKIE);
                assert_eq!(set.pop().as_deref(), Some("kept=1; Path=/s/x/"), "{line}");
                assert_eq!(set.pop().as_deref(), expected, "{line}");
            }
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let headers = headers(COOKIE, &["xberth_visit=1; berth_visit=abc=d", "other=2"]);
        assert_eq!(cookie(&headers, visit_cookie_name(false)), Some("abc=d"));
        assert_eq!(cookie(&headers, visit_cookie_name(true)), None);
        assert_eq!(cookie(&headers, "other"), Some("2"));
    }
}
