//! Did you mean …?

/// The known name most like `name`, if one is like it enough that it may have been meant.
///
/// `prefix` is what all names have in common, so that it does not count as likeness.
pub(super) fn nearest(
    name: &str,
    prefix: &str,
    known: impl Iterator<Item = String>,
) -> Option<String> {
    let bare = |name: &str| name.strip_prefix(prefix).unwrap_or(name).to_lowercase();
    let typed = bare(name);
    let tolerated = (typed.chars().count() / 3).max(1);
    known
        .filter_map(|candidate| {
            let meant = bare(&candidate);
            // A beginning, such as `tls_cert`, is many letters away and yet plainly meant.
            let abbreviated = typed.len() > 2 && meant.starts_with(&typed);
            let distance = if abbreviated {
                0
            } else {
                distance(&typed, &meant)
            };
            (distance <= tolerated).then_some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of letters to add, remove or change to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // `row[n]` is the distance from the letters seen so far to the first `n` letters of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (seen, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = seen + 1;
        for (position, wanted) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[position + 1];
            row[position + 1] = changed.min(diagonal + 1).min(row[position] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edit_distances() {
        for (from, to, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn only_what_may_have_been_meant_is_suggested() {
        let known = || {
            ["listen", "log_filter", "tls_certificate"]
                .map(str::to_owned)
                .into_iter()
        };
        assert_eq!(nearest("lisen", "", known()).as_deref(), Some("listen"));
        assert_eq!(nearest("LISTEN", "", known()).as_deref(), Some("listen"));
        assert_eq!(
            nearest("tls_cert", "", known()).as_deref(),
            Some("tls_certificate")
        );
        assert_eq!(
            nearest("log-filter", "", known()).as_deref(),
            Some("log_filter")
        );
        assert_eq!(nearest("port", "", known()), None);
        assert_eq!(nearest("", "", known()), None);
        let variables = || ["BERTH_LISTEN"].map(str::to_owned).into_iter();
        assert_eq!(
            nearest("BERTH_LISTN", "BERTH_", variables()).as_deref(),
            Some("BERTH_LISTEN")
        );
        assert_eq!(nearest("BERTH_PORT", "BERTH_", variables()), None);
    }
}
