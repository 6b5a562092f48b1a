//! One thing in full: a label and a value in each line.

use unicode_width::UnicodeWidthStr;

use crate::table::{Colour, Screen, printable};

#[derive(Debug, Default)]
pub struct Details {
    lines: Vec<(&'static str, String)>,
}

impl Details {
    pub fn line(mut self, label: &'static str, value: impl ToString) -> Self {
        self.lines.push((label, value.to_string()));
        self
    }

    /// A line for what may be missing; nothing is said of what is not there.
    pub fn maybe(self, label: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.line(label, value),
            None => self,
        }
    }

    /// One value in each line, under the first of which the others stand.
    pub fn lines(mut self, label: &'static str, values: impl IntoIterator<Item = String>) -> Self {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        self.lines.extend(labels.zip(values));
        self
    }

    pub fn render(&self, screen: Screen) -> String {
        let width = self.lines.iter().map(|(label, _)| label.width()).max();
        let width = width.unwrap_or(0);
        let (bold, plain) = match screen.colour {
            Colour::On => ("\u{1b}[1m", "\u{1b}[0m"),
            Colour::Off => ("", ""),
        };
        self.lines
            .iter()
            .map(|(label, value)| format!("{bold}{label:<width$}{plain}  {}\n", printable(value)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_line_up_and_nothing_is_said_of_what_is_missing() {
        let details = Details::default()
            .line("Name", "gpu-01")
            .maybe("Title", None::<String>)
            .lines(
                "Attributes",
                ["gpus = 8".to_owned(), "a\u{1b}[2J = 1".to_owned()],
            );
        let screen = Screen {
            width: None,
            colour: Colour::Off,
        };
        assert_eq!(
            details.render(screen),
            "Name        gpu-01\nAttributes  gpus = 8\n            a\u{fffd}[2J = 1\n"
        );
    }
}
