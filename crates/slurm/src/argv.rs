//! Command lines as the GNU C library reads them, which is how Slurm's programs read theirs: `-N2`, `-N 2`, `-HQ`,
//! `--nodes=2`, `--nodes 2`, and long names cut short as long as they mean one option only.

use crate::UsageError;

/// Whether an option is followed by a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Value,
    /// Only attached, as in `--nice=10`.
    Perhaps,
}

/// An option of a program, and what it is to the program.
#[derive(Debug, Clone, Copy)]
pub struct Opt<K: 'static> {
    pub long: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    pub key: K,
}

impl<K> Opt<K> {
    pub const fn new(long: &'static str, short: Option<char>, takes: Takes, key: K) -> Self {
        Self {
            long,
            short,
            takes,
            key,
        }
    }
}

/// Which options there are, and of those that are refused what to do instead.
pub(crate) fn help<K>(
    usage: &str,
    table: &[Opt<K>],
    refused: impl Fn(&K) -> Option<&'static str>,
) -> String {
    let (mut taken, mut not) = (String::new(), String::new());
    for option in table {
        let short = option
            .short
            .map_or("    ".to_owned(), |letter| format!("-{letter}, "));
        let value = match option.takes {
            Takes::Nothing => "",
            Takes::Value => "=VALUE",
            Takes::Perhaps => "[=VALUE]",
        };
        let name = format!("  {short}--{}{value}", option.long);
        match refused(&option.key) {
            None => taken += &format!("{name}\n"),
            Some(instead) => not += &format!("{name:<32} {instead}\n"),
        }
    }
    format!("Usage: {usage}\n\n{taken}\nNot supported by Berth, and what to do instead:\n{not}")
}

/// An option as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<K> {
    pub key: K,
    /// Its full name with dashes, for messages.
    pub name: String,
    pub value: Option<String>,
}

impl<K> Given<K> {
    /// The value, empty where none was given.
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// The value as a list between commas.
    pub fn list(&self) -> Vec<String> {
        let items = self.text().split(',').map(str::trim);
        items
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn invalid(&self, reason: impl ToString) -> UsageError {
        UsageError::invalid(&self.name, self.text(), reason)
    }
}

/// What stands on a command line besides options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// They may stand between the options.
    Anywhere,
    /// The first of them ends the options: what follows belongs to the script.
    EndOptions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed<K> {
    pub options: Vec<Given<K>>,
    pub operands: Vec<String>,
}

/// Reads a command line without the program's name.
pub fn parse<K: Copy>(
    table: &[Opt<K>],
    arguments: &[String],
    operands: Operands,
) -> Result<Parsed<K>, UsageError> {
    let mut parsed = Parsed {
        options: Vec::new(),
        operands: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            parsed.operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            parsed.options.push(read_long(table, long, &mut rest)?);
        } else if argument.len() > 1 && argument.starts_with('-') {
            read_short(table, &argument[1..], &mut rest, &mut parsed.options)?;
        } else {
            parsed.operands.push(argument.clone());
            if operands == Operands::EndOptions {
                parsed.operands.extend(rest.cloned());
                break;
            }
        }
    }
    Ok(parsed)
}

fn read_long<'a, K: Copy>(
    table: &[Opt<K>],
    text: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<Given<K>, UsageError> {
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let option = find_long(table, name, text)?;
    let name = format!("--{}", option.long);
    let value = match (option.takes, attached) {
        (Takes::Nothing, Some(_)) => return Err(UsageError::UnexpectedValue { option: name }),
        (Takes::Value, None) => match rest.next() {
            Some(value) => Some(value.clone()),
            None => return Err(UsageError::MissingValue { option: name }),
        },
        (_, attached) => attached,
    };
    Ok(Given {
        key: option.key,
        name,
        value,
    })
}

fn find_long<'t, K>(
    table: &'t [Opt<K>],
    name: &str,
    given: &str,
) -> Result<&'t Opt<K>, UsageError> {
    if let Some(option) = table.iter().find(|option| option.long == name) {
        return Ok(option);
    }
    let begun: Vec<_> = table
        .iter()
        .filter(|option| option.long.starts_with(name))
        .collect();
    match begun.as_slice() {
        [option] => Ok(option),
        [] => Err(UsageError::Unknown {
            given: format!("--{name}"),
            closest: closest(table.iter().map(|option| option.long), name)
                .map(|name| format!("--{name}")),
        }),
        several => Err(UsageError::Ambiguous {
            given: format!("--{given}"),
            possibilities: several.iter().map(|option| option.long).collect(),
        }),
    }
}

fn read_short<'a, K: Copy>(
    table: &[Opt<K>],
    letters: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    options: &mut Vec<Given<K>>,
) -> Result<(), UsageError> {
    let mut letters = letters.chars();
    while let Some(letter) = letters.next() {
        let option = table
            .iter()
            .find(|option| option.short == Some(letter))
            .ok_or_else(|| UsageError::Unknown {
                given: format!("-{letter}"),
                closest: None,
            })?;
        let attached = Some(letters.as_str())
            .filter(|attached| !attached.is_empty())
            .map(str::to_owned);
        let value = match option.takes {
            Takes::Nothing => None,
            Takes::Perhaps => attached,
            Takes::Value => match attached.or_else(|| rest.next().cloned()) {
                Some(value) => Some(value),
                None => {
                    return Err(UsageError::MissingValue {
                        option: format!("-{letter}"),
                    });
                }
            },
        };
        options.push(Given {
            key: option.key,
            name: format!("--{}", option.long),
            value,
        });
        if option.takes != Takes::Nothing {
            break;
        }
    }
    Ok(())
}

/// The name that was most likely meant, if any is near.
pub(crate) fn closest(
    names: impl Iterator<Item = &'static str>,
    given: &str,
) -> Option<&'static str> {
    let given = given.to_ascii_lowercase();
    names
        .map(|name| (distance(&name.to_ascii_lowercase(), &given), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// How many letters must be put in, left out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, with) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *with);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Opt<char>] = &[
        Opt::new("nodes", Some('N'), Takes::Value, 'N'),
        Opt::new("nodelist", Some('w'), Takes::Value, 'w'),
        Opt::new("hold", Some('H'), Takes::Nothing, 'H'),
        Opt::new("nice", None, Takes::Perhaps, 'n'),
    ];

    fn read(line: &str) -> Result<Parsed<char>, UsageError> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        parse(TABLE, &words, Operands::EndOptions)
    }

    fn options(line: &str) -> Vec<(char, Option<String>)> {
        let given = read(line).unwrap().options;
        given
            .into_iter()
            .map(|given| (given.key, given.value))
            .collect()
    }

    #[test]
    fn an_option_is_written_in_the_ways_of_getopt() {
        let two = |key| (key, Some("2".to_owned()));
        for line in ["-N2", "-N 2", "--nodes=2", "--nodes 2"] {
            assert_eq!(options(line), [two('N')], "{line}");
        }
        assert_eq!(options("-HN2"), [('H', None), two('N')]);
        assert_eq!(options("--nice --hol"), [('n', None), ('H', None)]);
        assert_eq!(options("--nice=2"), [two('n')]);
    }

    #[test]
    fn what_follows_the_script_is_the_scripts() {
        let parsed = read("-H run.sh -N 2 --foo").unwrap();
        assert_eq!(parsed.options.len(), 1);
        assert_eq!(parsed.operands, ["run.sh", "-N", "2", "--foo"]);
        assert_eq!(read("-- -N").unwrap().operands, ["-N"]);
    }

    #[test]
    fn what_is_unknown_is_named_with_what_was_likely_meant() {
        let said = |line: &str| read(line).unwrap_err().to_string();
        assert_eq!(
            said("--node-list=x"),
            "unrecognized option '--node-list'; did you mean '--nodelist'?"
        );
        assert_eq!(said("--wibble"), "unrecognized option '--wibble'");
        assert_eq!(said("-Z"), "unrecognized option '-Z'");
        assert_eq!(
            said("--nod=1"),
            "option '--nod=1' is ambiguous; possibilities: '--nodes' '--nodelist'"
        );
        assert_eq!(said("--nodes"), "option '--nodes' requires an argument");
        assert_eq!(
            said("--hold=1"),
            "option '--hold' doesn't allow an argument"
        );
    }

    #[test]
    fn help_tells_what_is_taken_and_what_is_not() {
        let refused = |key: &char| (*key == 'n').then_some("be patient");
        assert_eq!(
            help("test [options]", TABLE, refused),
            "Usage: test [options]\n\n  -N, --nodes=VALUE\n  -w, --nodelist=VALUE\n  -H, --hold\n\n\
             Not supported by Berth, and what to do instead:\n      --nice[=VALUE]             be patient\n"
        );
    }
}
