//! Text into HTML, so that it stays text.

use std::fmt::{self, Display, Write};

/// Shows a value as text inside an element or a quoted attribute.
pub fn escape<T: Display>(value: T) -> impl Display {
    fmt::from_fn(move |out| write!(Escaping(out), "{value}"))
}

/// Writes everything through to `0`, with the characters that mean something in HTML replaced.
struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            self.0.write_str(&rest[..at])?;
            self.0.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_taken_for_markup() {
        assert_eq!(
            escape("a <b class=\"x\" id='y'>é & co").to_string(),
            "a &lt;b class=&quot;x&quot; id=&#39;y&#39;&gt;é &amp; co"
        );
        assert_eq!(escape("plain").to_string(), "plain");
        assert_eq!(escape(42).to_string(), "42");
    }
}
