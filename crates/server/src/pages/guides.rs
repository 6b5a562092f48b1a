//! The documentation for people, as pages: the browser app links to them where a question arises.

use std::fmt::Write;

use berth_api::paths;

use super::html::escape;
use super::markdown;
use super::shell::Shell;

macro_rules! guides {
    ($($name:literal)*) => {
        /// Each by its name, as Markdown.
        const GUIDES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../docs/", $name, ".md")))),*];
    };
}

guides! {
    "desk" "queue" "sessions" "jupyterhub" "environments" "disk-space" "series" "calendars" "notifications" "policies" "files" "rights" "usage" "cli" "configuration"
}

/// All of them, by the titles that they have.
pub fn index(shell: &Shell) -> String {
    let mut items = String::new();
    for (name, text) in GUIDES {
        let page = escape(format!("{}{}", shell.base, paths::guide_page(name)));
        let title = text.lines().next().unwrap_or(name);
        let title = markdown::inline(title.trim_start_matches("# "));
        writeln!(items, "<li><a href=\"{page}\">{title}</a></li>").unwrap_or_default();
    }
    let content = format!("<h1>Guides</h1>\n<ul>\n{items}</ul>\n");
    shell.page("Guides · Berth", content)
}

/// One of them; none if there is none of this name.
pub fn page(shell: &Shell, name: &str) -> Option<String> {
    let (_, text) = GUIDES.iter().find(|(known, _)| *known == name)?;
    let content = markdown::to_html(text, |to| address(shell, to));
    Some(shell.page(&format!("{name} · Berth"), content))
}

/// Where a link in a document leads on this server.
pub fn address(shell: &Shell, to: &str) -> Option<String> {
    if to.starts_with("https://") || to.starts_with('#') {
        return Some(to.to_owned());
    }
    if to == "openapi.json" {
        return Some(format!("{}{}", shell.base, paths::DOCS));
    }
    let file = to.split('#').next()?.trim_start_matches("../");
    if matches!(file, "errors" | "errors/" | "errors/README.md") {
        return Some(format!("{}{}", shell.base, super::PROBLEMS));
    }
    let name = file.strip_suffix(".md")?;
    let path = match name.strip_prefix("errors/") {
        Some(code) => paths::error_page(&code),
        None => {
            GUIDES.iter().find(|(known, _)| *known == name)?;
            paths::guide_page(&name)
        }
    };
    Some(format!("{}{path}", shell.base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guide_is_a_page_and_on_the_list() {
        let env = [("HOME".to_owned(), "/home/ada".to_owned())];
        let config = "base_path = \"/berth\"";
        let loaded =
            crate::config::Config::layer(Some(("t", config)), env.into_iter(), Default::default());
        let shell = Shell::new(&loaded.unwrap().config);
        let index = index(&shell);
        for (name, _) in GUIDES {
            let page = page(&shell, name).unwrap();
            assert_eq!(page.matches("<h1>").count(), 1, "{name}");
            assert!(
                !page.contains(".md\""),
                "{name} has a link that leads nowhere"
            );
            assert!(!page.contains("&lt;!--"), "{name} shows a comment");
            assert!(index.contains(&format!("\"/berth/docs/{name}\"")), "{name}");
        }
        assert_eq!(page(&shell, "nothing"), None);
    }
}
