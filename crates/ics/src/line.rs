//! Content lines: `NAME;PARAMETER=value:value`, folded at 75 octets, texts escaped.

/// The most octets of a line before its end, including the space that begins a continuation.
const FOLD_AT: usize = 75;

/// Adds one line, folded between characters and never inside one.
pub(crate) fn write(out: &mut String, line: &str) {
    let mut room = FOLD_AT;
    for letter in line.chars() {
        if letter.len_utf8() > room {
            out.push_str("\r\n ");
            room = FOLD_AT - 1;
        }
        out.push(letter);
        room -= letter.len_utf8();
    }
    out.push_str("\r\n");
}

/// Escapes a text for a property's value. Control characters have no escaped form, so they are removed.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            ';' => out.push_str("\\;"),
            ',' => out.push_str("\\,"),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

/// Reverses [`escape`]. Any other escaped character stands for itself.
pub(crate) fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n' | 'N') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            letter => out.push(letter),
        }
    }
    out
}

/// A parsed line: the name in capitals, the parameters in their original order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it begins in the file, counted from 1.
    pub number: usize,
    pub name: String,
    pub parameters: Vec<(String, String)>,
    pub value: String,
}

impl Line {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// None if the text is not a content line. The reader skips such lines, since real files contain them.
    fn parse(number: usize, text: &str) -> Option<Self> {
        let end = text.find([';', ':'])?;
        let name = text[..end].trim().to_ascii_uppercase();
        if name.is_empty() {
            return None;
        }
        let mut parameters = Vec::new();
        let mut rest = &text[end..];
        while let Some(after) = rest.strip_prefix(';') {
            let (parameter, left) = parameter(after)?;
            parameters.push(parameter);
            rest = left;
        }
        Some(Self {
            number,
            name,
            parameters,
            value: rest.strip_prefix(':')?.to_owned(),
        })
    }
}

/// One parameter, and the rest of the line. Only its first value counts: no parameter that is read here has several.
fn parameter(text: &str) -> Option<((String, String), &str)> {
    let (name, rest) = text.split_once('=')?;
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_at(rest.find([';', ':', ','])?),
    };
    // Further values of the same parameter.
    let rest = match rest.strip_prefix(',') {
        Some(more) => &more[more.find([';', ':'])?..],
        None => rest,
    };
    Some(((name.trim().to_ascii_uppercase(), value.to_owned()), rest))
}

/// The content lines of a file. Lines are joined as bytes, since some programs fold inside a character. Invalid UTF-8
/// is replaced after that.
pub(crate) fn lines(file: &[u8]) -> impl Iterator<Item = Line> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let mut physical = file
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .zip(1..)
        .peekable();
    std::iter::from_fn(move || {
        let (first, number) = physical.next()?;
        let mut logical = first.to_vec();
        while let Some((more, _)) =
            physical.next_if(|(line, _)| line.first().is_some_and(|byte| b" \t".contains(byte)))
        {
            logical.extend_from_slice(&more[1..]);
        }
        Some(Line::parse(number, &String::from_utf8_lossy(&logical)))
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<Line> {
        lines(text.as_bytes()).collect()
    }

    #[test]
    fn a_line_is_taken_apart() {
        let line = &read("dtstart;TZID=\"Europe/Rome; west\";X=a,b:2026:1\r\n")[0];
        assert_eq!(
            (line.name.as_str(), line.value.as_str()),
            ("DTSTART", "2026:1")
        );
        assert_eq!(line.parameter("TZID"), Some("Europe/Rome; west"));
        assert_eq!(line.parameter("X"), Some("a"));
        for bad in [
            "",
            "no colon",
            ":x",
            ";A=b:x",
            "A;B:c",
            "A;B=c",
            "A;B=\"c:d",
        ] {
            assert_eq!(read(bad), [], "{bad}");
        }
    }

    #[test]
    fn lines_are_joined_even_inside_a_character() {
        let mut file = b"\xef\xbb\xbfSUMMARY:caf".to_vec();
        file.extend_from_slice(b"\xc3\n \xa9\r\n\tof Torino\nUID:2");
        let read: Vec<Line> = lines(&file).collect();
        assert_eq!(read[0].value, "caféof Torino");
        assert_eq!((read[1].value.as_str(), read[1].number), ("2", 4));
    }

    #[test]
    fn texts_come_back_as_they_were() {
        assert_eq!(escape("a;b,c\\d\ne\u{7}"), "a\\;b\\,c\\\\d\\ne");
        assert_eq!(unescape("a\\;b\\,c\\\\d\\ne\\N\\x\\"), "a;b,c\\d\ne\nx");
    }

    proptest! {
        #[test]
        fn every_line_is_short_enough_and_joins_again(text in "\\PC{0,400}") {
            let mut out = String::new();
            write(&mut out, &format!("X:{text}"));
            for line in out.strip_suffix("\r\n").unwrap().split("\r\n") {
                prop_assert!(line.len() <= FOLD_AT, "{}", line.len());
            }
            prop_assert_eq!(&read(&out)[0].value, &text);
        }

        #[test]
        fn any_text_survives_escaping(text in "[^\\p{Cc}]*") {
            prop_assert_eq!(unescape(&escape(&text)), text);
        }
    }
}
