//! Slurm's way to write many hosts at once: `gpu[01-04,07]`, `rack[1-2]n[01-16]`, `login,gpu[1-2]`.

/// The most hosts one list stands for; Slurm itself takes no more in a range.
pub const HOSTS_MAX: usize = 65_536;
/// The longest number in a range, and the most brackets in a name.
const DIGITS_MAX: usize = 18;
const BRACKETS_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostlistError {
    #[error("`{0}` has a bracket that is not closed, or closed twice")]
    Bracket(String),
    #[error("`{0}` has something after its last bracket, which Slurm does not take")]
    After(String),
    #[error("`{0}` is not a range: write numbers as in `[01-04,07]`, the smaller one first")]
    Range(String),
    #[error("`{0}` stands for more than {HOSTS_MAX} hosts")]
    TooMany(String),
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Every host of a list, in the order in which Slurm names them.
pub fn expand(list: &str) -> Result<Vec<String>, HostlistError> {
    let mut hosts = Vec::new();
    for part in parts(list)? {
        expand_part(part, &mut hosts)?;
    }
    Ok(hosts)
}

/// Commas part hosts, but not those inside brackets.
fn parts(list: &str) -> Result<Vec<&str>, HostlistError> {
    let wrong = || HostlistError::Bracket(short(list));
    let mut parts = Vec::new();
    let (mut start, mut is_open) = (0, false);
    for (at, character) in list.char_indices() {
        match character {
            '[' if is_open => return Err(wrong()),
            ']' if !is_open => return Err(wrong()),
            '[' => is_open = true,
            ']' => is_open = false,
            ',' if !is_open => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_open {
        return Err(wrong());
    }
    parts.push(&list[start..]);
    Ok(parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect())
}

fn expand_part(part: &str, hosts: &mut Vec<String>) -> Result<(), HostlistError> {
    if part.matches('[').count() > BRACKETS_MAX {
        return Err(HostlistError::TooMany(short(part)));
    }
    if part.contains('[') && !part.ends_with(']') {
        return Err(HostlistError::After(short(part)));
    }
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after
            .split_once(']')
            .ok_or_else(|| HostlistError::Bracket(short(part)))?;
        let numbers = numbers(ranges)?;
        if names.len().saturating_mul(numbers.len()) > HOSTS_MAX {
            return Err(HostlistError::TooMany(short(part)));
        }
        let with_each = |name: &String| {
            let begin = format!("{name}{before}");
            numbers
                .iter()
                .map(move |number| format!("{begin}{number}"))
                .collect::<Vec<_>>()
        };
        names = names.iter().flat_map(with_each).collect();
        rest = after;
    }
    if hosts.len() + names.len() > HOSTS_MAX {
        return Err(HostlistError::TooMany(short(part)));
    }
    hosts.extend(names.into_iter().map(|name| name + rest));
    Ok(())
}

/// The hosts written as briefly as Slurm does, sorted: `n[1-3,8],login`.
pub fn compress<S: AsRef<str>>(hosts: &[S]) -> String {
    let mut hosts: Vec<(&str, &str)> = hosts
        .iter()
        .map(|host| {
            let host = host.as_ref();
            let digits = host.bytes().rev().take_while(u8::is_ascii_digit);
            // Longer numbers are part of the name: they would not fit an integer.
            host.split_at(host.len() - digits.count().min(DIGITS_MAX))
        })
        .collect();
    hosts.sort_by_key(|(name, number)| {
        let value: u64 = number.parse().unwrap_or_default();
        (*name, number.len(), value)
    });
    hosts.dedup();
    let mut groups: Vec<(&str, Vec<Run<'_>>)> = Vec::new();
    for (name, number) in hosts {
        let value = number.parse().ok();
        match groups.last_mut().filter(|(last, _)| *last == name) {
            Some((_, runs)) if value.is_some() && runs.iter().all(|run| run.value.is_some()) => {
                match runs.last_mut() {
                    Some(run) if run.is_followed_by(number, value) => {
                        run.last = number;
                        run.value = value;
                    }
                    _ => runs.push(Run::of(number, value)),
                }
            }
            _ => groups.push((name, vec![Run::of(number, value)])),
        }
    }
    let written = groups.iter().map(|(name, runs)| match runs.as_slice() {
        [run] if run.first == run.last => format!("{name}{}", run.first),
        runs => {
            let ranges: Vec<_> = runs.iter().map(Run::written).collect();
            format!("{name}[{}]", ranges.join(","))
        }
    });
    written.collect::<Vec<_>>().join(",")
}

/// Neighbours: the first and the last number as they are written, and the last one's value.
struct Run<'h> {
    first: &'h str,
    last: &'h str,
    value: Option<u64>,
}

impl<'h> Run<'h> {
    fn of(number: &'h str, value: Option<u64>) -> Self {
        Self {
            first: number,
            last: number,
            value,
        }
    }

    /// The next number, written as wide as the first one says.
    fn is_followed_by(&self, number: &str, value: Option<u64>) -> bool {
        let width = self.first.len();
        match (self.value, value) {
            (Some(last), Some(next)) => next == last + 1 && number == format!("{next:0width$}"),
            _ => false,
        }
    }

    fn written(&self) -> String {
        if self.first == self.last {
            self.first.to_owned()
        } else {
            format!("{}-{}", self.first, self.last)
        }
    }
}

/// The numbers of a bracket, each as wide as the first of its range is written.
fn numbers(ranges: &str) -> Result<Vec<String>, HostlistError> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let wrong = || HostlistError::Range(short(range));
        let is_number = |text: &str| {
            (1..=DIGITS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        if !is_number(low) || !is_number(high) {
            return Err(wrong());
        }
        let read = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (first, last) = (read(low)?, read(high)?);
        if first > last {
            return Err(wrong());
        }
        if (last - first) as usize >= HOSTS_MAX - numbers.len() {
            return Err(HostlistError::TooMany(short(range)));
        }
        let width = low.len();
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What is written, and what it stands for.
    const CASES: &[(&str, &str)] = &[
        ("gpu[01-04,07]", "gpu01 gpu02 gpu03 gpu04 gpu07"),
        ("gpu1", "gpu1"),
        ("a,b[1-2]", "a b1 b2"),
        ("n[1-2],m[3]", "n1 n2 m3"),
        ("r[1-2]n[01-03]", "r1n01 r1n02 r1n03 r2n01 r2n02 r2n03"),
        ("n[1-2][3-4]", "n13 n14 n23 n24"),
        ("n[8-11]", "n8 n9 n10 n11"),
        ("n[08-11]", "n08 n09 n10 n11"),
        ("n[098-101]", "n098 n099 n100 n101"),
        ("n[01-2]", "n01 n02"),
        ("n[1-003]", "n1 n2 n3"),
        ("n[001-003,5]", "n001 n002 n003 n5"),
        ("n[0-2]", "n0 n1 n2"),
        ("n[00-02]", "n00 n01 n02"),
        ("n[1,1,2]", "n1 n1 n2"),
        ("a1,a2,a1", "a1 a2 a1"),
        ("x,,y", "x y"),
        (" n1 , n2", "n1 n2"),
        ("gpu-a[1-2]", "gpu-a1 gpu-a2"),
    ];

    /// What Slurm refuses, we refuse.
    const REFUSED: &[&str] = &[
        "n[3-1]",
        "n[]",
        "n[a-c]",
        "n[-2]",
        "gpu[1-2]-ib",
        "n[1-70000]",
    ];

    #[test]
    fn lists_stand_for_what_slurm_says() {
        // Slurm reads its configuration before it does anything; this is the least it takes.
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("slurm.conf");
        std::fs::write(
            &config,
            "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1\nPartitionName=p Nodes=ALL\n",
        )
        .unwrap();
        let ask = |list: &str| {
            Command::new("scontrol")
                .args(["show", "hostnames", list])
                .env("SLURM_CONF", &config)
                .output()
                .expect("scontrol of Debian's slurm-client; scripts/setup test installs it")
        };
        for (list, wanted) in CASES {
            assert_eq!(expand(list).unwrap().join(" "), *wanted, "{list}");
            let said = ask(list);
            let said = String::from_utf8(said.stdout).unwrap();
            assert_eq!(
                said.split_whitespace().collect::<Vec<_>>().join(" "),
                *wanted,
                "{list}"
            );
        }
        for list in REFUSED {
            assert!(expand(list).is_err(), "{list}");
            let said = format!("{:?}", ask(list));
            assert!(said.contains("Invalid hostlist"), "{list}: {said}");
        }
    }

    #[test]
    fn hosts_are_written_as_briefly_as_slurm_does() {
        for (hosts, wanted) in [
            ("", ""),
            ("n1", "n1"),
            ("n1 n2 n4", "n[1-2,4]"),
            ("n3 n1 n2", "n[1-3]"),
            ("n1 n1 n2", "n[1-2]"),
            ("a b", "a,b"),
            ("x n1", "n1,x"),
            ("n01 n02 n10", "n[01-02,10]"),
            ("n08 n09 n10", "n[08-10]"),
            ("n8 n9 n10", "n[8-10]"),
            ("n98 n99 n100", "n[98-100]"),
            ("r1n1 r1n2 r2n1", "r1n[1-2],r2n1"),
            ("n1 m1 n2", "m1,n[1-2]"),
            ("gpu-1 gpu-2", "gpu-[1-2]"),
            ("a1b a2b", "a1b,a2b"),
        ] {
            let each: Vec<_> = hosts.split_whitespace().collect();
            let written = compress(&each);
            assert_eq!(written, wanted);
            let mut back = expand(&written).unwrap();
            let mut once: Vec<_> = each.into_iter().map(str::to_owned).collect();
            back.sort();
            once.sort();
            once.dedup();
            assert_eq!(back, once, "{hosts}");
        }
    }

    #[test]
    fn what_slurm_reads_in_odd_ways_is_refused_here() {
        for list in [
            "n[1",
            "n1]",
            "n[1-2",
            "n[[1]]",
            "n[1-]",
            "n[1 - 2]",
            "n[99999999999999999999]",
        ] {
            assert!(expand(list).is_err(), "{list}");
        }
    }

    #[test]
    fn no_list_is_endless() {
        assert!(matches!(
            expand("n[1-999999999]"),
            Err(HostlistError::TooMany(_))
        ));
        assert!(matches!(
            expand(&"a[1-100]".repeat(8)),
            Err(HostlistError::TooMany(_))
        ));
        assert!(matches!(
            expand(&"[1-2]".repeat(30)),
            Err(HostlistError::TooMany(_))
        ));
        let long = ["n[1-60000]"; 2].join(",");
        assert!(matches!(expand(&long), Err(HostlistError::TooMany(_))));
        assert_eq!(expand("n[1-65536]").unwrap().len(), HOSTS_MAX);
    }
}
