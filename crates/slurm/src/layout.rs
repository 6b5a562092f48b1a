//! Columns of text as Slurm sets them: `%.18i %9P %R`, or `JobID:10,Name:.8,State`.

use crate::UsageError;
use crate::argv::closest;

/// One column: what it shows, how wide it is and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column<F> {
    pub field: F,
    /// Shorter values are padded and longer ones cut; None takes what is needed.
    pub width: Option<usize>,
    pub is_right: bool,
    pub suffix: String,
}

/// The columns of a line, and what stands before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout<F> {
    pub prefix: String,
    pub columns: Vec<Column<F>>,
}

/// The widest column that makes sense.
const WIDTH_MAX: usize = 4096;
/// How wide a column of the long form is if it does not say.
const LONG_WIDTH: usize = 20;

impl<F: Copy> Layout<F> {
    /// `%[[.]size]letter` and text between.
    pub fn short(format: &str, field: impl Fn(char) -> Option<F>) -> Result<Self, UsageError> {
        let mut layout = Self {
            prefix: String::new(),
            columns: Vec::new(),
        };
        let mut rest = format;
        while let Some((before, after)) = rest.split_once('%') {
            layout.text(before);
            let spec = after.strip_prefix('.');
            let is_right = spec.is_some();
            let spec = spec.unwrap_or(after);
            let digits = spec.bytes().take_while(u8::is_ascii_digit).count();
            let mut letters = spec[digits..].chars();
            let letter = letters.next();
            if letter == Some('%') || letter.is_none() {
                layout.text("%");
            } else {
                let found = letter.and_then(&field).ok_or_else(|| {
                    let shown: String = letter.into_iter().collect();
                    UsageError::invalid("--format", format, format!("there is no field %{shown}"))
                })?;
                layout.columns.push(Column {
                    field: found,
                    width: width(&spec[..digits]),
                    is_right,
                    suffix: String::new(),
                });
            }
            rest = letters.as_str();
        }
        layout.text(rest);
        Ok(layout)
    }

    /// `name[:[.][size][suffix]]` between commas.
    pub fn long(format: &str, names: &[(&'static str, F)]) -> Result<Self, UsageError> {
        let mut columns = Vec::new();
        for part in format.split(',') {
            let (name, spec) = match part.split_once(':') {
                Some((name, spec)) => (name, Some(spec)),
                None => (part, None),
            };
            let known = names
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            let Some((_, field)) = known else {
                let near = closest(names.iter().map(|(known, _)| *known), name);
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let reason = format!("there is no field `{name}`{near}");
                return Err(UsageError::invalid("--Format", format, reason));
            };
            let right = spec.and_then(|spec| spec.strip_prefix('.'));
            let rest = right.or(spec).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            columns.push(Column {
                field: *field,
                width: match spec {
                    None => Some(LONG_WIDTH),
                    Some(_) => width(&rest[..digits]),
                },
                is_right: right.is_some(),
                suffix: rest[digits..].to_owned(),
            });
        }
        Ok(Self {
            prefix: String::new(),
            columns,
        })
    }

    /// All fields with bars between.
    pub fn all(fields: &[F]) -> Self {
        let columns = fields.iter().enumerate().map(|(index, field)| Column {
            field: *field,
            width: None,
            is_right: false,
            suffix: if index + 1 < fields.len() { "|" } else { "" }.to_owned(),
        });
        Self {
            prefix: String::new(),
            columns: columns.collect(),
        }
    }

    fn text(&mut self, text: &str) {
        match self.columns.last_mut() {
            Some(column) => column.suffix.push_str(text),
            None => self.prefix.push_str(text),
        }
    }

    /// A line with its end.
    pub fn line(&self, value: impl Fn(F) -> Cell) -> String {
        let mut line = self.prefix.clone();
        for column in &self.columns {
            let Cell { text, is_kept } = value(column.field);
            // Words such as UNLIMITED are cut nevertheless.
            if is_kept && column.is_right && text.starts_with(|first: char| first.is_ascii_digit())
            {
                let width = column.width.unwrap_or(0);
                line.push_str(&format!("{text:>width$}"));
            } else {
                line.push_str(&fit(&text, column.width, column.is_right));
            }
            line.push_str(&column.suffix);
        }
        line.push('\n');
        line
    }

    /// Lines of several rows, below a header unless there is none to be.
    pub fn lines<R, C: Into<Cell>>(
        &self,
        rows: impl IntoIterator<Item = R>,
        header: Option<fn(F) -> &'static str>,
        value: impl Fn(F, &R) -> C,
    ) -> String {
        let mut text = header.map_or_else(String::new, |header| {
            self.line(|field| header(field).to_owned().into())
        });
        for row in rows {
            text.push_str(&self.line(|field| value(field, &row).into()));
        }
        text
    }
}

/// What stands in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    /// A number of it that stands to the right is shown whole, however narrow the column.
    pub is_kept: bool,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            is_kept: false,
        }
    }
}

fn width(digits: &str) -> Option<usize> {
    let width = digits.parse().ok();
    width
        .filter(|width| *width > 0)
        .map(|width: usize| width.min(WIDTH_MAX))
}

/// Cut or padded to a width.
pub fn fit(text: &str, width: Option<usize>, is_right: bool) -> String {
    match (width, is_right) {
        (None, _) => text.to_owned(),
        (Some(width), true) => format!("{text:>width$.width$}"),
        (Some(width), false) => format!("{text:<width$.width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(letter: char) -> Option<char> {
        "ijR".contains(letter).then_some(letter)
    }

    fn value(field: char) -> Cell {
        match field {
            'i' => "123".to_owned().into(),
            _ => "abcdefgh".to_owned().into(),
        }
    }

    #[test]
    fn short_columns_are_padded_cut_and_aligned() {
        for (format, wanted) in [
            ("%i", "123\n"),
            ("%5i|%.5i|", "123  |  123|\n"),
            ("%.3j|%3j", "abc|abc\n"),
            ("<%i> %%", "<123> %\n"),
            ("%.i %05i|", "123 123  |\n"),
            ("abc", "abc\n"),
            ("100%", "100%\n"),
            ("", "\n"),
        ] {
            let layout = Layout::short(format, letter).unwrap();
            assert_eq!(layout.line(value), wanted, "{format}");
        }
    }

    #[test]
    fn long_columns_have_names() {
        let names = [("JobID", 'i'), ("Name", 'j')];
        for (format, wanted) in [
            ("jobid,NAME:3", "123                 abc\n"),
            ("JobID:.5|,Name:4/", "  123|abcd/\n"),
            ("JobID:,Name:x", "123abcdefghx\n"),
        ] {
            let layout = Layout::long(format, &names).unwrap();
            assert_eq!(layout.line(value), wanted, "{format}");
        }
    }

    #[test]
    fn a_field_that_is_not_there_is_named() {
        let said = Layout::short("%i %é", letter).unwrap_err().to_string();
        assert!(said.contains("there is no field %é"), "{said}");
        let said = Layout::long("JobIDs", &[("JobID", 'i')]).unwrap_err();
        assert!(said.to_string().ends_with("did you mean JobID?"), "{said}");
    }
}
