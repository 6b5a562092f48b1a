//! The little Markdown that Berth's own documents use: headings, paragraphs, lists, code.
//!
//! Everything is escaped, raw HTML included, so a document cannot put anything into a page but text.

use std::fmt::Write;

use super::html::escape;

/// A document as HTML. Its headings begin at `<h1>`.
pub fn to_html(document: &str) -> String {
    let mut html = String::new();
    let mut lines = document.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| !line.starts_with("```"));
            let code: Vec<&str> = code.collect();
            put(
                &mut html,
                format_args!("<pre><code>{}</code></pre>\n", escape(code.join("\n"))),
            );
        } else if let Some((level, title)) = heading(line) {
            put(
                &mut html,
                format_args!("<h{level}>{}</h{level}>\n", inline(title)),
            );
        } else if is_item(line) {
            let mut items = vec![line[2..].to_owned()];
            while let Some(next) = lines.next_if(|next| is_item(next) || next.starts_with("  ")) {
                match items.last_mut() {
                    Some(last) if !is_item(next) => *last = format!("{last} {}", next.trim()),
                    _ => items.push(next[2..].to_owned()),
                }
            }
            let items: String = items
                .iter()
                .map(|i| format!("<li>{}</li>\n", inline(i)))
                .collect();
            put(&mut html, format_args!("<ul>\n{items}</ul>\n"));
        } else {
            let mut paragraph = line.trim().to_owned();
            while let Some(next) = lines.next_if(|next| is_text(next)) {
                paragraph = format!("{paragraph} {}", next.trim());
            }
            put(&mut html, format_args!("<p>{}</p>\n", inline(&paragraph)));
        }
    }
    html
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

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let title = title.strip_prefix(' ')?;
    (1..=6).contains(&level).then_some((level, title))
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ")
}

fn is_text(line: &str) -> bool {
    !line.trim().is_empty() && heading(line).is_none() && !is_item(line) && !line.starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_becomes_headings_paragraphs_lists_and_code() {
        let document = "# Title\n\nOne `a<b`\ntwo.\n\n- first\n  goes on\n- second\n\n```json\n{\"a\": 1}\n```\nEnd.";
        assert_eq!(
            to_html(document),
            "<h1>Title</h1>\n<p>One <code>a&lt;b</code> two.</p>\n\
             <ul>\n<li>first goes on</li>\n<li>second</li>\n</ul>\n\
             <pre><code>{&quot;a&quot;: 1}</code></pre>\n<p>End.</p>\n"
        );
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
            let html = to_html(evil);
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
        assert_eq!(to_html("```\nopen"), "<pre><code>open</code></pre>\n");
        assert_eq!(to_html("#no heading"), "<p>#no heading</p>\n");
        assert_eq!(to_html(""), "");
    }
}
