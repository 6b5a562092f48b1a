//! Berth's own documents as HTML.
//!
//! Everything is escaped, raw HTML included, so a document cannot put anything into a page but text.

use std::fmt::Write;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::html::escape;

/// A document as HTML. Its headings begin at `<h1>`. `address` says where a link leads; what leads nowhere here stays
/// text.
pub fn to_html(document: &str, address: impl Fn(&str) -> Option<String>) -> String {
    let parser = Parser::new_ext(document, Options::ENABLE_TABLES);
    // Of links in links Markdown knows none, so one mark is enough.
    let mut is_dropped = false;
    // The pages load no pictures, and show no words in their place.
    let mut is_picture = false;
    let events = parser.flat_map(|event| match event {
        Event::Start(Tag::Image { .. }) => {
            is_picture = true;
            Vec::new()
        }
        Event::End(TagEnd::Image) => {
            is_picture = false;
            Vec::new()
        }
        _ if is_picture => Vec::new(),
        Event::Html(text) | Event::InlineHtml(text) => {
            vec![Event::Text(without_comments(text))]
        }
        Event::Start(Tag::Link {
            link_type,
            dest_url,
            title,
            id,
        }) => match address(&dest_url) {
            Some(address) => {
                let dest_url = CowStr::from(address);
                vec![Event::Start(Tag::Link {
                    link_type,
                    dest_url,
                    title,
                    id,
                })]
            }
            None => {
                is_dropped = true;
                Vec::new()
            }
        },
        Event::End(TagEnd::Link) if std::mem::take(&mut is_dropped) => Vec::new(),
        Event::Start(Tag::Table(columns)) => {
            let open = Event::Html("<div class=\"wide\">".into());
            vec![open, Event::Start(Tag::Table(columns))]
        }
        Event::End(TagEnd::Table) => {
            vec![Event::End(TagEnd::Table), Event::Html("</div>\n".into())]
        }
        other => vec![other],
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

/// Comments are for whoever edits a document.
fn without_comments(text: CowStr<'_>) -> CowStr<'_> {
    let is_comment = text.trim_start().starts_with("<!--");
    if is_comment { "".into() } else { text }
}

/// One line as HTML: text, and code between backticks.
pub fn inline(text: &str) -> String {
    let mut html = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            put(&mut html, format_args!("<code>{}</code>", escape(part)));
        } else {
            put(&mut html, format_args!("{}", escape(part)));
        }
    }
    html
}

fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    html.write_fmt(text).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_headings_paragraphs_lists_and_code() {
        let document = "# Title\n\nOne `a<b`\ntwo.\n\n- first\n  goes on\n- second\n\n```json\n{\"a\": 1}\n```\nEnd.";
        let html = to_html(document, |_| None);
        for part in [
            "<h1>Title</h1>",
            "<code>a&lt;b</code>",
            "<li>first\ngoes on</li>",
            "{\"a\": 1}\n</code></pre>",
            "<p>End.</p>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }

    #[test]
    fn links_lead_where_they_are_told_or_stay_text() {
        let address = |to: &str| (to == "desk.md").then(|| "/docs/desk".to_owned());
        let html = to_html("[the desk](desk.md) and [elsewhere](../x.md)", address);
        assert_eq!(
            html,
            "<p><a href=\"/docs/desk\">the desk</a> and elsewhere</p>\n"
        );
        let table = to_html("| a | b |\n|---|---|\n| 1 | 2 |", |_| None);
        assert!(table.starts_with("<div class=\"wide\"><table>"), "{table}");
    }

    #[test]
    fn nothing_gets_through_as_markup() {
        for evil in [
            "<script>alert(1)</script>",
            "# <img onerror=x>",
            "- <b>",
            "```\n<i>\n```",
            "`<u>`",
        ] {
            let html = to_html(evil, |_| None);
            let ours = ["p", "h1", "ul", "li", "pre", "code"];
            for tag in html.split('<').skip(1) {
                let name: String = tag
                    .trim_start_matches('/')
                    .chars()
                    .take_while(|c| *c != '>')
                    .collect();
                assert!(ours.contains(&name.as_str()), "{evil}: {html}");
            }
        }
    }

    #[test]
    fn odd_ends_do_not_lose_text() {
        assert_eq!(inline("a `b"), "a <code>b</code>");
        assert!(to_html("```\nopen", |_| None).contains("open"));
        assert_eq!(to_html("#no heading", |_| None), "<p>#no heading</p>\n");
        assert_eq!(to_html("", |_| None), "");
    }
}
