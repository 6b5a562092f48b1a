//! Where in a session a visitor wants to go: a path below its front door, and never another host.

/// Longer ones are no place that anybody was sent to.
const MAX_BYTES: usize = 4096;

/// A path and a query, with a slash at its beginning, that lead nowhere but into the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside(String);

impl Inside {
    /// Anything that is not such a path is taken for the front door.
    pub fn read(text: &str) -> Inside {
        match is_inside(text) {
            true => Inside(text.to_owned()),
            false => Inside::front(),
        }
    }

    pub fn front() -> Inside {
        Inside("/".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_front(&self) -> bool {
        self.0 == "/"
    }
}

fn is_inside(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#';
    let path = text.split('?').next().unwrap_or_default();
    text.len() <= MAX_BYTES
        && text.starts_with('/')
        && !text.starts_with("//")
        && text.bytes().all(is_plain)
        && !path.split('/').any(leads_up)
}

/// Browsers read `%2e` as a dot.
fn leads_up(segment: &str) -> bool {
    let dots = segment.to_ascii_lowercase().replace("%2e", ".");
    dots == "." || dots == ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_the_session_is_gone_to() {
        for good in [
            "/",
            "/lab/tree/a%20b.ipynb?reset&x=//y",
            "/a/...",
            "/%2e%2e%2e",
        ] {
            assert_eq!(Inside::read(good).as_str(), good);
        }
        for evil in [
            "",
            "lab",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/../api/v1/me",
            "/a/%2E./b",
            "/a\r\nset-cookie: x=1",
            "/ä",
            "/a#b",
            &format!("/{}", "a".repeat(MAX_BYTES)),
        ] {
            assert!(Inside::read(evil).is_front(), "{evil}");
        }
    }
}
