//! Signals by their names and numbers.

const SIGNALS: &[(&str, u8)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
];

/// The name without `SIG`, of a name or a number. Numbers without a name stay numbers.
pub fn name(text: &str) -> Option<String> {
    if let Ok(number) = text.parse::<u8>() {
        let known = SIGNALS.iter().find(|(_, known)| *known == number);
        return (1..=64)
            .contains(&number)
            .then(|| known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned()));
    }
    let text = text.to_ascii_uppercase();
    let text = text.strip_prefix("SIG").unwrap_or(&text);
    let known = SIGNALS.iter().find(|(name, _)| *name == text);
    known.map(|(name, _)| (*name).to_owned())
}

/// The number on Linux of a name as [`name`] gives it.
pub fn number(name: &str) -> Option<u8> {
    let known = SIGNALS.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.parse().ok(), |(_, number)| Some(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_in_several_ways() {
        for text in ["USR1", "usr1", "SIGUSR1", "10"] {
            assert_eq!(name(text).as_deref(), Some("USR1"));
        }
        assert_eq!(number("USR1"), Some(10));
        assert_eq!(name("34").and_then(|name| number(&name)), Some(34));
        for text in ["", "FOO", "0", "65", "-1", "SIG"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
