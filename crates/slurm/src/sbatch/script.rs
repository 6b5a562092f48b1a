//! The `#SBATCH` lines of a script: those before its first command.

use crate::UsageError;

const MARK: &str = "#SBATCH";
/// Lines of other systems that Slurm understands in part, and Berth does not.
const OTHERS: &[&str] = &["#PBS", "#BSUB"];

/// The words of one `#SBATCH` line, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    pub line: usize,
    pub words: Vec<String>,
}

/// What a script asks for, line by line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Directives {
    pub given: Vec<Directive>,
    /// The first line with another system's mark.
    pub foreign: Option<(usize, &'static str)>,
}

/// Reads a script. One that the system could not run is refused here, as Slurm does.
pub fn read(text: &str) -> Result<Directives, UsageError> {
    let refuse = |reason: &str| Err(UsageError::Script(reason.to_owned()));
    if text.is_empty() {
        return refuse("Batch script is empty!");
    }
    if text.trim().is_empty() {
        return refuse("Batch script contains only whitespace!");
    }
    if !text.starts_with("#!") {
        return refuse(
            "This does not look like a batch script.  The first line must start with #! followed by the path to an interpreter.",
        );
    }
    if text.contains("\r\n") {
        return refuse(
            "Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).",
        );
    }
    if text.contains('\0') {
        return refuse(
            "The Slurm controller does not allow scripts that contain a NULL character '\\0'.",
        );
    }
    let mut directives = Directives::default();
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix(MARK) {
            let line = index + 1;
            let words = words(rest).map_err(|error| UsageError::Directive {
                line,
                error: Box::new(error),
            })?;
            directives.given.push(Directive { line, words });
        } else if let Some(mark) = OTHERS.iter().find(|mark| line.starts_with(**mark)) {
            directives.foreign.get_or_insert((index + 1, mark));
        } else if !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            break;
        }
    }
    Ok(directives)
}

/// Words between blanks. Quotes keep blanks together, a backslash takes the next character as it is unless that is a
/// blank, and `#` begins a comment.
fn words(line: &str) -> Result<Vec<String>, UsageError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', _) => {
                let taken = match characters.peek() {
                    Some(next) if quote.is_none() && next.is_whitespace() => None,
                    _ => characters.next(),
                };
                word.get_or_insert_default().extend(taken);
            }
            (character, Some(open)) if character == open => quote = None,
            (character, Some(_)) => word.get_or_insert_default().push(character),
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            ('#', None) => break,
            (character, None) if character.is_whitespace() => words.extend(word.take()),
            (character, None) => word.get_or_insert_default().push(character),
        }
    }
    match quote {
        Some(open) => Err(UsageError::Script(format!(
            "Unmatched `{open}` in [{}]",
            line.trim()
        ))),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str) -> Vec<String> {
        let given = read(script).unwrap().given;
        given
            .into_iter()
            .flat_map(|directive| directive.words)
            .collect()
    }

    #[test]
    fn lines_are_read_up_to_the_first_command() {
        let script = "#!/bin/sh\n#SBATCH -N 2\n# SBATCH -N 4\n##SBATCH -N 3\n#sbatch -N5\n  #SBATCH -N6\n\n   \n#SBATCH\t-t5\ntrue\n#SBATCH -J late\n";
        assert_eq!(asked(script), ["-N", "2", "-t5"]);
        assert_eq!(asked("#!/bin/sh\n#SBATCH-N2"), ["-N2"]);
        assert_eq!(asked("#!/bin/sh\n: ; #SBATCH -N2\n#SBATCH -N2\n").len(), 0);
    }

    #[test]
    fn quotes_backslashes_and_comments_are_slurms() {
        for (line, wanted) in [
            (r#"--comment="a b" -N2"#, vec!["--comment=a b", "-N2"]),
            (r#"-J 'a b'"#, vec!["-J", "a b"]),
            (r#"--comment=a"b c"d"#, vec!["--comment=ab cd"]),
            (r#"--comment="a\"b""#, vec![r#"--comment=a"b"#]),
            (r#"--comment=a\"b"#, vec![r#"--comment=a"b"#]),
            (r"--comment=a\\b", vec![r"--comment=a\b"]),
            (r"--comment=a\ b", vec!["--comment=a", "b"]),
            (r"--comment=a\#b", vec!["--comment=a#b"]),
            (r#"--comment="a#b""#, vec!["--comment=a#b"]),
            ("--comment=x#y -N2", vec!["--comment=x"]),
            (r#"--comment="" -N2"#, vec!["--comment=", "-N2"]),
            (r#"-t 5 # it's "fine""#, vec!["-t", "5"]),
        ] {
            assert_eq!(asked(&format!("#!/bin/sh\n#SBATCH {line}\n")), wanted);
        }
    }

    #[test]
    fn what_cannot_run_is_refused() {
        for script in [
            "",
            " \n",
            "echo hello\n",
            "#SBATCH -N2\n",
            "#!/bin/sh\r\n#SBATCH -N2\r\n",
            "#!/bin/sh\n#SBATCH --comment=\"open -N2\n",
        ] {
            assert!(read(script).is_err(), "{script:?}");
        }
    }

    #[test]
    fn another_systems_lines_are_noticed() {
        let read = read("#!/bin/sh\n#PBS -N x\n#BSUB -J y\n").unwrap();
        assert_eq!(read.foreign, Some((2, "#PBS")));
    }
}
