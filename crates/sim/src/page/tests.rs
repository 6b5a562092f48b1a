use berth_engine::queue::planner::{Order, Policy};

use super::*;
use crate::compare;
use crate::fixture::busy;

fn page() -> (Comparison, String) {
    let shortest = Candidate {
        policy: Policy::new(Order::Shortest),
        ..Candidate::new("<script>\"short\" & 'first'")
    };
    let all = [Candidate::new("shares"), shortest];
    let comparison = compare(&busy(80, 1), &all, &mut |_| ()).unwrap();
    let page = comparison.html();
    (comparison, page)
}

/// Checks that every tag is closed in order, and returns the tags. A bare `<` or `&` would fail here.
fn tags(page: &str) -> Vec<String> {
    let body = page.strip_prefix("<!doctype html>").unwrap();
    let (before, after) = body.split_once("<style>").unwrap();
    let (_, after) = after.split_once("</style>").unwrap();
    let text = format!("{before}{after}");
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = text.as_str();
    while let Some((plain, tagged)) = rest.split_once('<') {
        assert!(!plain.contains('>'), "{plain}");
        let (tag, after) = tagged.split_once('>').unwrap();
        rest = after;
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap();
        assert!(
            name.chars().all(|letter| letter.is_ascii_alphanumeric()),
            "<{tag}>"
        );
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
        seen.push(tag.to_owned());
    }
    assert_eq!(open, Vec::<String>::new());
    for entity in text.split('&').skip(1) {
        let name = entity.split_once(';').map(|(name, _)| name);
        let known = ["amp", "lt", "gt", "quot", "#39"];
        assert!(
            name.is_some_and(|name| known.contains(&name)),
            "&{entity:.20}"
        );
    }
    seen
}

#[test]
fn the_page_is_well_formed_and_names_every_policy_and_figure() {
    let (comparison, page) = page();
    let tags = tags(&page);
    assert!(!tags.iter().any(|tag| tag.starts_with("script")));
    for tried in &comparison.tried {
        assert!(page.contains(&escaped(&tried.candidate.name)));
    }
    for figure in comparison.figures() {
        assert!(page.contains(&escaped(figure.name)), "{}", figure.name);
    }
    // GPUs, CPU, waits, queue and shares, each for wide windows and for phones.
    let plots = tags.iter().filter(|tag| tag.contains("role=\"img\""));
    assert_eq!(plots.count(), 10);
    let titles = tags.iter().filter(|tag| tag.starts_with("title id="));
    assert_eq!(titles.count(), 10, "each says what it is");
    let lines = |policy: &str| {
        page.matches(&format!("<path class=\"line {policy}\""))
            .count()
    };
    assert_eq!(lines("p0"), lines("p1"));
    assert!(page.contains("physics &lt;&amp;&gt;"));
}

#[test]
fn the_page_needs_nothing_else() {
    let (_, page) = page();
    for outside in ["http:", "https:", "//", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn every_number_of_a_plot_is_one() {
    let (_, page) = page();
    assert!(!page.contains("NaN") && !page.contains("inf "));
    for path in page.split(" d=\"").skip(1) {
        let path = path.split('"').next().unwrap();
        let drawn = path
            .chars()
            .all(|letter| "MLHVvz -.0123456789".contains(letter));
        assert!(drawn, "{path}");
    }
}

#[test]
fn the_same_comparison_draws_the_same_page() {
    assert_eq!(page().1, page().1);
}
