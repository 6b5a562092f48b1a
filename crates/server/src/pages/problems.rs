//! The pages that the `type` of a problem leads to.

use std::fmt::Write;

use berth_api::{Code, paths};

use super::html::escape;
use super::shell::Shell;
use super::{guides, markdown};

/// Everything that can go wrong, by status. The first row of each has an anchor.
pub fn index(shell: &Shell) -> String {
    let mut codes: Vec<Code> = Code::ALL.to_vec();
    codes.sort_by_key(|code| (code.status(), code.as_str()));
    let mut rows = String::new();
    for same in codes.chunk_by(|one, other| one.status() == other.status()) {
        let mut anchor = format!(" id=\"http-{}\"", same[0].status());
        for code in same {
            let page = escape(format!("{}{}", shell.base, paths::error_page(code)));
            writeln!(
                rows,
                "<tr{}><td class=\"number\">{}</td><td><a href=\"{page}\"><code>{code}</code></a></td><td>{}</td></tr>",
                std::mem::take(&mut anchor),
                code.status(),
                escape(code.title()),
            )
            .unwrap_or_default();
        }
    }
    let content = format!(
        "<h1>Problems</h1>\n\
         <p class=\"lead\">What cannot be done comes back as <code>application/problem+json</code> (RFC 9457). Its \
         <code>code</code> is stable: programs match on it.</p>\n\
         <div class=\"wide\"><table>\n<thead><tr><th class=\"number\">HTTP</th><th>Code</th><th>Meaning</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    );
    shell.page("Problems · Berth", content)
}

pub fn page(shell: &Shell, code: Code) -> String {
    let content = markdown::to_html(code.page(), |to| guides::address(shell, to));
    shell.page(&format!("{code} · Berth"), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_its_heading_and_example() {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let loaded = crate::config::Config::layer(None, env.into_iter(), Default::default());
        let shell = Shell::new(&loaded.unwrap().config);
        let index = index(&shell);
        for code in Code::ALL {
            let page = page(&shell, *code);
            assert!(page.contains(&format!("<h1>{code}</h1>")), "{code}");
            assert!(
                page.contains("<pre><code class=\"language-json\">{"),
                "{code}"
            );
            assert!(index.contains(&format!("/docs/errors/{code}\"")), "{code}");
            let anchor = format!("id=\"http-{}\"", code.status());
            assert_eq!(index.matches(&anchor).count(), 1, "{code}");
        }
    }
}
