//! Asking a person: in the open, or for a secret without showing what is typed.
//!
//! Questions go to stderr, so that stdout stays free for data. Where nobody can be asked because the input is a pipe,
//! the error says how to give the answer instead.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};

use crate::exit::Exit;
use crate::failure::{Failure, usage};

/// Whether someone is there to answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks for a line; an empty one means `default`, if there is one.
pub fn line(question: &str, default: Option<&str>) -> anyhow::Result<String> {
    match default {
        Some(default) => ask(&format!("{question} [{default}]: "))?,
        None => ask(&format!("{question}: "))?,
    }
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match (answer.trim(), default) {
        ("", Some(default)) => Ok(default.to_owned()),
        ("", None) => Err(usage(format!("{question}: nothing was given"))),
        (answer, _) => Ok(answer.to_owned()),
    }
}

/// Asks yes or no; only a clear yes is one.
pub fn agreed(question: &str) -> anyhow::Result<bool> {
    let answer = line(&format!("{question} (yes or no)"), Some("no"))?;
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a secret, without showing it.
pub fn secret(question: &str) -> anyhow::Result<SecretString> {
    ask(&format!("{question}: "))?;
    let _silence = Silence::begin()?;
    let typed = read_silently(&mut io::stdin().lock());
    writeln!(io::stderr())?;
    let typed = SecretString::from(typed?);
    if typed.expose_secret().is_empty() {
        return Err(usage(format!("{question}: nothing was given")));
    }
    Ok(typed)
}

/// Asks for a new secret twice, since nobody sees a slip of the finger.
pub fn new_secret(question: &str) -> anyhow::Result<SecretString> {
    let first = secret(question)?;
    let again = secret(&format!("{question}, again"))?;
    if first.expose_secret() != again.expose_secret() {
        return Err(usage("the two are not the same; try again"));
    }
    Ok(first)
}

/// The next line of the input, for a secret that a program passes in.
pub fn secret_from_stdin() -> anyhow::Result<SecretString> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text)?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(usage(
            "a secret was to come on the standard input, but nothing came",
        ));
    }
    Ok(text.to_owned().into())
}

fn ask(question: &str) -> anyhow::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    Ok(stderr.flush()?)
}

/// The terminal without echo, until this is dropped.
///
/// Ctrl-C comes as a letter meanwhile: if it ended the process, the terminal would stay mute.
struct Silence {
    before: Termios,
}

impl Silence {
    fn begin() -> anyhow::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut mute = before.clone();
        mute.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Flush, &mute)?;
        Ok(Self { before })
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        tcsetattr(io::stdin(), OptionalActions::Now, &self.before).ok();
    }
}

/// Reads to the end of the line as a terminal would, with the keys that correct and give up.
fn read_silently(input: &mut impl Read) -> anyhow::Result<String> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const BACKSPACE: u8 = 8;
    const KILL: u8 = 21;
    const DELETE: u8 = 127;
    let mut typed: Vec<u8> = Vec::new();
    let mut byte = [0];
    loop {
        let ended = input.read(&mut byte)? == 0;
        match byte[0] {
            _ if ended => break,
            b'\n' | b'\r' | END => break,
            INTERRUPT => return Err(Failure::new(Exit::Interrupted, "given up").into()),
            KILL => typed.clear(),
            BACKSPACE | DELETE => remove_last_character(&mut typed),
            other => typed.push(other),
        }
    }
    String::from_utf8(typed).map_err(|_| usage("what was typed is not UTF-8 text"))
}

/// A character may take several bytes, of which all but the first look like `10xxxxxx`.
fn remove_last_character(typed: &mut Vec<u8>) {
    while let Some(byte) = typed.pop() {
        if byte & 0b1100_0000 != 0b1000_0000 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_typed_with_corrections() {
        let read = |keys: &[u8]| read_silently(&mut &keys[..]);
        assert_eq!(read(b"hunter2\nmore").unwrap(), "hunter2");
        assert_eq!(read(b"wrong\x15right\r").unwrap(), "right");
        assert_eq!(read("aé\u{7f}b\n".as_bytes()).unwrap(), "ab");
        assert_eq!(read(b"no end").unwrap(), "no end");
        let given_up = read(b"abc\x03").unwrap_err();
        assert_eq!(crate::failure::exit_of(&given_up), Exit::Interrupted);
    }
}
