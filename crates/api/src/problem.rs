//! What is answered when a request cannot be met: RFC 9457, with a stable code and what to do.
//!
//! `title` belongs to the code and never varies; `detail` is about this one case; `hint` says what to do.
//! None of them may carry a secret or anything the caller may not see.

mod codes;

use berth_model::{FieldError, FieldErrors};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::calendar::Conflict;
use crate::desk::Alternative;
use crate::paths;
use crate::policies::{Breach, Instead};

pub use codes::{Code, UnknownCode};

/// A problem document, served as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{detail}")]
pub struct Problem {
    /// The address of the code's page.
    #[serde(rename = "type")]
    #[schema(
        format = "uri-reference",
        examples("/docs/errors/reservation.conflict")
    )]
    pub type_uri: String,
    // A text rather than a `Code`, so that an older client can read a newer server.
    /// Stable: programs match on this.
    #[schema(examples("reservation.conflict"))]
    pub code: String,
    pub title: String,
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// What was wrong in this case, as a sentence.
    pub detail: String,
    /// What to do about it.
    pub hint: String,
    /// Every field that was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The claims in the way, as far as the caller may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    /// What else could be had, the nearest to the wish first; each can be booked as things stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
    /// Every rule that the booking does not keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaches: Vec<Breach>,
    /// The nearest time that the rules would accept, where another time would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instead: Option<Instead>,
    /// The version the object has now, where the change was meant for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub version: Option<u64>,
    /// How long to wait before trying again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retry_after_s: Option<u64>,
    /// Finds this request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
}

impl Problem {
    /// The problem of this code, in its general words; say more with the methods below.
    pub fn new(code: Code) -> Self {
        Self {
            type_uri: paths::error_page(&code),
            code: code.to_string(),
            title: code.title().to_owned(),
            status: code.status(),
            detail: format!("{}.", code.title()),
            hint: code.hint().to_owned(),
            errors: Vec::new(),
            conflicts: Vec::new(),
            alternatives: Vec::new(),
            breaches: Vec::new(),
            instead: None,
            version: None,
            retry_after_s: None,
            request_id: None,
        }
    }

    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    pub fn conflicts(mut self, conflicts: Vec<Conflict>) -> Self {
        self.conflicts = conflicts;
        self
    }

    pub fn alternatives(mut self, alternatives: Vec<Alternative>) -> Self {
        self.alternatives = alternatives;
        self
    }

    pub fn breaches(mut self, breaches: Vec<Breach>, instead: Option<Instead>) -> Self {
        self.breaches = breaches;
        self.instead = instead;
        self
    }

    pub fn version(mut self, now: u64) -> Self {
        self.version = Some(now);
        self
    }

    pub fn retry_after_s(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// Puts the page's address under `base`, where Berth lives below a path or the full address is known.
    pub fn under(mut self, base: &str) -> Self {
        let page = paths::fill(paths::ERROR_PAGE, &[&self.code]);
        self.type_uri = format!("{}{page}", base.trim_end_matches('/'));
        self
    }

    pub fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }
}

impl From<FieldErrors> for Problem {
    fn from(errors: FieldErrors) -> Self {
        Self {
            detail: errors.to_string(),
            errors: errors.0,
            ..Self::new(Code::RequestInvalid)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The pages as they lie on disk, by code.
    fn pages() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "README.md")
            .map(|name| {
                name.strip_suffix(".md")
                    .expect("a Markdown page")
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let codes: BTreeSet<String> = Code::ALL.iter().map(Code::to_string).collect();
        assert_eq!(codes.len(), Code::ALL.len(), "two codes are the same");
        assert_eq!(codes, pages());
    }

    #[test]
    fn the_index_lists_every_code_with_its_status() {
        let index = include_str!("../../../docs/errors/README.md");
        for code in Code::ALL {
            let row = format!(
                "| [{code}]({code}.md) | {} | {} |",
                code.status(),
                code.title()
            );
            assert!(index.contains(&row), "docs/errors/README.md lacks: {row}");
        }
    }

    #[test]
    fn every_page_says_what_why_and_what_to_do_with_a_true_example() {
        for code in Code::ALL {
            let page = code.page();
            assert!(page.starts_with(&format!("# {code}\n")), "{code}: heading");
            let status = format!("HTTP {}", code.status());
            assert!(page.contains(&status), "{code}: {status} is missing");
            for heading in ["## What happened", "## Why", "## What to do", "## Example"] {
                assert!(page.contains(heading), "{code}: {heading} is missing");
            }
            let (_, example) = page.split_once("```json\n").expect("an example");
            let (example, _) = example.split_once("```").expect("an end of the example");
            let problem: Problem = serde_json::from_str(example)
                .unwrap_or_else(|error| panic!("{code}: the example does not read: {error}"));
            assert_eq!(problem.code, code.as_str());
            assert_eq!(problem.status, code.status(), "{code}");
            assert_eq!(problem.title, code.title(), "{code}");
            assert_eq!(problem.type_uri, Problem::new(*code).type_uri, "{code}");
            assert!(!problem.hint.is_empty() && !problem.detail.is_empty());
        }
    }

    #[test]
    fn codes_read_back_and_are_words_with_dots() {
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            let good = |c: char| c.is_ascii_lowercase() || c == '.' || c == '_';
            assert!(code.as_str().chars().all(good), "{code}");
            assert!((400..600).contains(&code.status()));
        }
        assert_eq!("no.such".parse::<Code>(), Err(UnknownCode));
    }

    #[test]
    fn field_errors_become_one_problem_that_names_them_all() {
        let mut errors = FieldErrors::default();
        errors.push("start", "is missing");
        errors.push("resources[0]", "is unknown");
        let problem = Problem::from(errors);
        assert!(problem.is(Code::RequestInvalid));
        assert_eq!(problem.errors.len(), 2);
        assert_eq!(
            problem.to_string(),
            "start: is missing; resources[0]: is unknown"
        );
    }

    #[test]
    fn on_the_wire_it_is_rfc_9457_without_empty_members() {
        let problem = Problem::new(Code::ObjectNotFound).under("https://lab.example/berth/");
        assert_eq!(
            serde_json::to_value(&problem).unwrap(),
            serde_json::json!({
                "type": "https://lab.example/berth/docs/errors/object.not_found",
                "code": "object.not_found",
                "title": "It does not exist, or you may not see it",
                "status": 404,
                "detail": "It does not exist, or you may not see it.",
                "hint": "Check the name or id, and that you belong to the site.",
            })
        );
    }

    #[test]
    fn a_newer_server_s_problem_is_still_read() {
        let text = r#"{"type":"/docs/errors/a.b","code":"a.b","title":"T","status":409,
            "detail":"D","hint":"H","neighbours":[1]}"#;
        let problem: Problem = serde_json::from_str(text).unwrap();
        assert_eq!(problem.code.parse::<Code>(), Err(UnknownCode));
    }
}
