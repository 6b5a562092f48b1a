//! File names with patterns: `slurm-%A_%a.out`, `%x-%5j.log`.

/// What the patterns of a job's file names stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names<'n> {
    pub job_id: u64,
    /// The array's own id and the task's index, of a task of an array.
    pub array: Option<(u64, u32)>,
    pub job_name: &'n str,
    pub user: &'n str,
    /// The host name of the job's first node, without its domain.
    pub node: &'n str,
}

/// The widest padding of a number, as in `%10j`.
const WIDTH_MAX: usize = 10;

/// The name with every pattern replaced. A backslash anywhere means that nothing is.
pub fn expand(pattern: &str, names: &Names<'_>) -> String {
    if pattern.contains('\\') {
        let mut characters = pattern.chars();
        let each = std::iter::from_fn(|| match characters.next() {
            Some('\\') => characters.next(),
            other => other,
        });
        return each.collect();
    }
    let mut name = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        name.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let width = after[..digits].parse().unwrap_or(0).min(WIDTH_MAX);
        let number = |number: u64| format!("{number:0width$}");
        let mut letters = after[digits..].chars();
        let value = match letters.next() {
            Some('%') => "%".to_owned(),
            Some('j') => number(names.job_id),
            Some('J') => number(names.job_id),
            Some('A') => number(names.array.map_or(names.job_id, |(id, _)| id)),
            // What Slurm gives a job that is no task.
            Some('a') => number(
                names
                    .array
                    .map_or(u64::from(u32::MAX) - 1, |(_, index)| u64::from(index)),
            ),
            // The batch script is step "batch", and on the first node: task and node are 0.
            Some('s') => "batch".to_owned(),
            Some('t' | 'n') => number(0),
            Some('N') => names.node.to_owned(),
            Some('u') => names.user.to_owned(),
            Some('x') => names.job_name.to_owned(),
            _ => {
                // Not a pattern: it stays as it is.
                name.push('%');
                rest = after;
                continue;
            }
        };
        name.push_str(&value);
        rest = letters.as_str();
    }
    name + rest
}

/// The file that a job writes to if none was named.
pub fn default_output(is_array: bool) -> &'static str {
    if is_array {
        "slurm-%A_%a.out"
    } else {
        "slurm-%j.out"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_the_job_its_task_and_its_owner() {
        let names = Names {
            job_id: 128,
            array: Some((120, 7)),
            job_name: "train",
            user: "ada",
            node: "n1",
        };
        for (pattern, wanted) in [
            ("slurm-%A_%a.out", "slurm-120_7.out"),
            ("%x-%j.%N.%u", "train-128.n1.ada"),
            ("%6j%%", "000128%"),
            ("%3a", "007"),
            ("%99j", "0000000128"),
            ("100%", "100%"),
            ("%q-%", "%q-%"),
            (r"\%j", "%j"),
            (r"\\%j", r"\%j"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(expand(pattern, &names), wanted);
        }
        let alone = Names {
            array: None,
            ..names
        };
        assert_eq!(expand("%A_%a", &alone), "128_4294967294");
    }
}
