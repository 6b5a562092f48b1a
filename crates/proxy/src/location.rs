//! Corrects redirects: an app redirects to the address it knows, and visitors need the public one.

use http::HeaderValue;

use crate::routes::{Face, HostSent, Prefix, Target};

/// The corrected `Location`. `None` if it is already right.
pub(crate) fn corrected(value: &HeaderValue, face: &Face, target: &Target) -> Option<HeaderValue> {
    // A value that is not valid text is checked all the same, because browsers guess at it, too.
    let text = String::from_utf8_lossy(value.as_bytes());
    let corrected = public(&text, face, target);
    (corrected != text).then(|| HeaderValue::from_bytes(corrected.as_bytes()).ok())?
}

fn public(text: &str, face: &Face, target: &Target) -> String {
    // Browsers remove tabs and read `\` as `/`, so the check uses the text as a browser reads it.
    let text: String = text.trim().chars().filter(|c| *c != '\t').collect();
    let slash = |c: char| c == '/' || c == '\\';
    let lower = text.to_ascii_lowercase();
    let scheme = ["http:", "https:"]
        .into_iter()
        .find(|s| lower.starts_with(s));
    let rest = &text[scheme.map_or(0, str::len)..];
    let Some(beyond) = rest
        .strip_prefix(slash)
        .and_then(|rest| rest.strip_prefix(slash))
    else {
        return match rest.strip_prefix(slash) {
            Some(path) if scheme.is_none() => public_path(path, face, target),
            _ => text,
        };
    };
    let beyond = beyond.trim_start_matches(slash);
    let end = beyond
        .find(|c| slash(c) || c == '?' || c == '#')
        .unwrap_or(beyond.len());
    let (authority, path) = beyond.split_at(end);
    let same = |host: &HeaderValue| authority.as_bytes().eq_ignore_ascii_case(host.as_bytes());
    let sent = match &target.host {
        HostSent::Public => &face.host,
        HostSent::Fixed(host) => host,
    };
    if same(&face.host) || same(sent) {
        let origin = face.origin.to_str().unwrap_or_default();
        let path = path.strip_prefix(slash).unwrap_or(path);
        return format!("{origin}{}", public_path(path, face, target));
    }
    if scheme.is_some() {
        return text;
    }
    // `//host` without a scheme is a trick to send people elsewhere: an app repeats a path that an attacker wrote. So
    // it is treated as a path.
    public_path(beyond, face, target)
}

/// `path` has no first slash.
fn public_path(path: &str, face: &Face, target: &Target) -> String {
    let is_below = path.starts_with(&face.base[1..]);
    if target.prefix == Prefix::Kept || is_below {
        return format!("/{path}");
    }
    format!("{}{path}", face.base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Addressing, Label};
    use crate::connection::Upstream;
    use crate::routes::Routes;

    fn seen(addressing: Addressing, host: HostSent, prefix: Prefix, location: &str) -> String {
        let routes = Routes::new(addressing);
        let label: Label = "x".parse().unwrap();
        let upstream = Upstream::unix("app.sock");
        routes.put(
            label,
            Target {
                upstream,
                host,
                prefix,
                authorization: None,
            },
        );
        let route = routes.get("x").unwrap();
        public(location, &route.face, &route.target)
    }

    #[test]
    fn at_an_origin_of_its_own_an_app_is_led_to_by_its_public_name() {
        let fixed = || HostSent::Fixed(HeaderValue::from_static("localhost:8888"));
        for (location, expected) in [
            ("/lab?a=b", "/lab?a=b"),
            ("lab", "lab"),
            ("?next", "?next"),
            ("http://localhost:8888/lab", "https://x.b.org/lab"),
            ("http://x.b.org/lab", "https://x.b.org/lab"),
            ("//LOCALHOST:8888", "https://x.b.org/"),
            ("https://login.example/?back", "https://login.example/?back"),
        ] {
            let addressing = Addressing::origins("https://b.org").unwrap();
            assert_eq!(
                seen(addressing, fixed(), Prefix::Kept, location),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn an_app_that_repeats_a_path_does_not_become_an_open_redirect() {
        for location in [
            "//evil.example/%2e%2e",
            "/\\evil.example/%2e%2e",
            "\\\\evil.example/%2e%2e",
            "/\t/evil.example/%2e%2e",
            "///evil.example/%2e%2e",
            " //evil.example/%2e%2e",
            "/\t\\/evil.example/%2e%2e",
        ] {
            let addressing = Addressing::origins("https://b.org").unwrap();
            let seen = seen(addressing, HostSent::Public, Prefix::Kept, location);
            assert_eq!(seen, "/evil.example/%2e%2e", "{location}");
        }
    }

    #[test]
    fn a_redirect_that_is_not_text_is_corrected_too() {
        let routes = Routes::new(Addressing::origins("https://b.org").unwrap());
        let target = Target {
            upstream: Upstream::unix("app.sock"),
            host: HostSent::Public,
            prefix: Prefix::Kept,
            authorization: None,
        };
        routes.put("x".parse().unwrap(), target);
        let route = routes.get("x").unwrap();
        let value = HeaderValue::from_bytes(b"//evil.example/\xc3\xa9").unwrap();
        let corrected = corrected(&value, &route.face, &route.target).unwrap();
        assert_eq!(corrected.as_bytes(), b"/evil.example/\xc3\xa9");
    }

    #[test]
    fn below_a_path_redirects_stay_below_it() {
        for (prefix, location, expected) in [
            (Prefix::Stripped, "/lab", "/s/x/lab"),
            (Prefix::Stripped, "/", "/s/x/"),
            (Prefix::Stripped, "/s/x/lab", "/s/x/lab"),
            (
                Prefix::Stripped,
                "http://b.org/lab",
                "https://b.org/s/x/lab",
            ),
            (Prefix::Stripped, "//evil.example/", "/s/x/evil.example/"),
            (Prefix::Kept, "/s/x/lab", "/s/x/lab"),
            (
                Prefix::Kept,
                "/hub/api/oauth2/authorize",
                "/hub/api/oauth2/authorize",
            ),
        ] {
            let addressing = Addressing::paths("https://b.org", "").unwrap();
            assert_eq!(
                seen(addressing, HostSent::Public, prefix, location),
                expected,
                "{location}"
            );
        }
    }
}
