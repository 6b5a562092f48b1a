//! Formats numbers for people.

/// A duration in a unit that gives a small number.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..3600.0 => format!("{:.1} min", seconds / 60.0),
        ..86_400.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{} d", amount(seconds / 86_400.0)),
    }
}

/// With one decimal below a hundred, otherwise with thousands separators.
pub(crate) fn amount(number: f64) -> String {
    match number.abs() {
        ..100.0 => format!("{number:.1}"),
        _ => count(number.round().abs() as u64),
    }
}

/// With thousands separators, such as 28,481.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// A number with its noun, in singular or plural.
pub(crate) fn counted(number: usize, one: &str, several: &str) -> String {
    let name = if number == 1 { one } else { several };
    format!("{} {name}", count(number as u64))
}

/// Cuts a text to at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_few_digits() {
        assert_eq!(duration(0.0), "0 s");
        assert_eq!(duration(90.0), "1.5 min");
        assert_eq!(duration(5400.0), "1.5 h");
        assert_eq!(duration(86_400.0 * 1234.0), "1,234 d");
        assert_eq!(
            (count(7), count(1234), count(1_234_567)),
            ("7".into(), "1,234".into(), "1,234,567".into())
        );
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(counted(1, "node", "nodes"), "1 node");
    }
}
