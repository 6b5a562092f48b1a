//! Kinds of values: how each is read, how it is shown, and the words that say what it accepts.
//!
//! The words stand beside the reading so that an error and the documentation cannot disagree with
//! what is really accepted.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

type Read<T> = Box<dyn Fn(&str) -> Option<T>>;
type Show<T> = Box<dyn Fn(&T) -> String>;

pub(super) struct Kind<T> {
    /// Completes the sentence "give …".
    pub accepts: String,
    /// Whether a TOML array may stand for the value; in text its items are parted by commas.
    pub takes_arrays: bool,
    /// Whether it is yes or no, which TOML has words of its own for.
    pub takes_truth: bool,
    /// Whether the text may hold a password, so that errors must not repeat it.
    pub secret: bool,
    pub read: Read<T>,
    pub show: Show<T>,
}

impl<T: 'static> Kind<T> {
    fn new(
        accepts: impl Into<String>,
        read: impl Fn(&str) -> Option<T> + 'static,
        show: impl Fn(&T) -> String + 'static,
    ) -> Self {
        Kind {
            accepts: accepts.into(),
            takes_arrays: false,
            takes_truth: false,
            secret: false,
            read: Box::new(read),
            show: Box::new(show),
        }
    }

    pub(super) fn secret(self) -> Self {
        Kind {
            secret: true,
            ..self
        }
    }

    /// Text that could not be read, as an error may show it. What is malformed cannot be masked
    /// in the right places, so all is hidden from the first sign that might lead to a password.
    pub(super) fn show_wrong(&self, text: &str) -> String {
        let sign = |character: char| ":=@".contains(character) || character.is_whitespace();
        match text.find(sign) {
            Some(start) if self.secret => format!("{}****", &text[..start]),
            _ => text.to_owned(),
        }
    }
}

/// Whatever the type itself reads.
pub(super) fn parsed<T: FromStr + Display + 'static>(accepts: &str) -> Kind<T> {
    Kind::new(accepts, |text| text.parse().ok(), T::to_string)
}

pub(super) fn text() -> Kind<String> {
    Kind::new(
        "some text",
        |text| Some(text.to_owned()).filter(|text| !text.is_empty()),
        String::clone,
    )
}

pub(super) fn path() -> Kind<PathBuf> {
    let read = |text: &str| Some(PathBuf::from(text)).filter(|_| !text.is_empty());
    Kind::new("a path", read, |path| path.display().to_string())
}

pub(super) fn truth() -> Kind<bool> {
    Kind {
        takes_truth: true,
        ..parsed("true or false")
    }
}

/// A whole number within a range, both ends included.
pub(super) fn whole<T>(range: RangeInclusive<T>) -> Kind<T>
where
    T: FromStr + Display + PartialOrd + 'static,
{
    Kind::new(
        format!("a whole number from {} to {}", range.start(), range.end()),
        move |text| text.parse().ok().filter(|number| range.contains(number)),
        T::to_string,
    )
}

/// A value that may be absent, which is written as empty text.
pub(super) fn optional<T: 'static>(kind: Kind<T>) -> Kind<Option<T>> {
    let Kind {
        accepts,
        read,
        show,
        ..
    } = kind;
    Kind::new(
        accepts,
        move |text| {
            if text.is_empty() {
                Some(None)
            } else {
                read(text).map(Some)
            }
        },
        move |value| value.as_ref().map_or_else(|| "none".to_owned(), &show),
    )
}

/// Any number of values: a TOML array, or text with commas.
pub(super) fn list<T: 'static>(kind: Kind<T>) -> Kind<Vec<T>> {
    let Kind {
        accepts,
        read,
        show,
        ..
    } = kind;
    let items = move |text: &str| {
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(&read)
            .collect()
    };
    let shown = move |values: &Vec<T>| match values.as_slice() {
        [] => "none".to_owned(),
        values => values.iter().map(&show).collect::<Vec<_>>().join(", "),
    };
    Kind {
        takes_arrays: true,
        ..Kind::new(format!("a list, each item {accepts}"), items, shown)
    }
}
