//! What the demo says: how far it is, where it answers, who can sign in, and what to try first.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use berth_api::about::{Demo, DemoPerson};
use berth_api::paths;

use super::people::{CAST, Character, PASSWORD};
use super::play::Tally;
use crate::output::{Format, Output, complain};
use crate::table::{Column, Table};

/// Who the suggestions are for; listed first.
const FIRST: &str = "priya";

/// The people worth trying, with what they are good for.
fn sign_ins() -> Vec<(&'static Character, &'static str)> {
    let mut people: Vec<_> = CAST
        .iter()
        .filter_map(|character| Some((character, character.try_as?)))
        .collect();
    people.sort_by_key(|(character, _)| character.login != FIRST);
    people
}

/// The same for the first page in the browser.
pub fn notice() -> Demo {
    let people = sign_ins().into_iter().map(|(character, who)| DemoPerson {
        login: character.login.to_owned(),
        password: PASSWORD.to_owned(),
        who: format!("{}, {who}", character.name),
    });
    Demo {
        people: people.collect(),
    }
}

/// How the making of the world goes: a number that counts up on a terminal, one line elsewhere.
#[derive(Debug)]
pub struct Progress {
    doing: &'static str,
    shown: Option<usize>,
}

impl Progress {
    pub fn new(doing: &'static str) -> Self {
        if !std::io::stderr().is_terminal() {
            complain(&format!("{doing} …"));
        }
        Self { doing, shown: None }
    }

    pub fn show(&mut self, percent: usize) {
        if self.shown == Some(percent) || !std::io::stderr().is_terminal() {
            return;
        }
        self.shown = Some(percent);
        let end = if percent == 100 { "\n" } else { "" };
        // A progress line that cannot be written is no reason to stop.
        write!(std::io::stderr(), "\r{} … {percent:>3} %{end}", self.doing).ok();
    }
}

pub fn tell_tally(tally: &Tally) {
    complain(&format!(
        "{} bookings made, {} attempts refused by the rules.",
        tally.booked, tally.refused
    ));
}

/// Everything a visitor needs, as one text.
pub fn welcome(address: SocketAddr, folder: &Path, free_gpu: &str) -> String {
    let address = address_for_people(address);
    let (docs, openapi) = (paths::DOCS, format!("{}{}", paths::API, paths::OPENAPI));
    let columns = [
        Column::left("LOGIN"),
        Column::left("NAME"),
        Column::left("WHO").shrinks(1),
    ];
    let mut table = Table::new(columns, "Nobody can sign in.");
    for (character, who) in sign_ins() {
        table.row([character.login, character.name, who].map(str::to_owned));
    }
    let table = table.render(Output::new(Format::Table).screen);
    let berth = this_program();
    let folder = folder.display();
    format!(
        "
Berth's demo is ready: three sites with two months of history, two queues, and people who book and submit work
while you watch. A fourth, this-machine, is this very machine: what you submit there really runs.

  {address}  the pages, for your browser
  {address}{docs}  the API, readable
  {address}{openapi}  the API for programs

Sign in with the password {PASSWORD} as one of these:

{table}
Try, in another terminal:

  {berth} login {address} --login {FIRST}
  {berth} --site torino free --type gpu --for 4h
  {berth} book torino/{free_gpu} --from 'tomorrow 09:00' --for 2h --title 'First try'
  {berth} --site this-machine session start notebook

All but that machine is made up, and it answers on this machine only. Ctrl-C stops the demo. Notebooks and jobs on
this-machine keep running; the next start finds them, and `berth session stop` ends one. The world is kept in
{folder} and carried on next time; --fresh makes a new one.
"
    )
}

/// `localhost` where that is what was listened on; people read it more easily than a number.
fn address_for_people(address: SocketAddr) -> String {
    let port = address.port();
    match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST) => {
            format!("http://localhost:{port}")
        }
        _ => format!("http://{address}"),
    }
}

/// This program as whoever started it wrote it, so that the suggestions work when pasted.
fn this_program() -> String {
    let given = std::env::args_os().next();
    let given = given.and_then(|program| program.into_string().ok());
    given.unwrap_or_else(|| "berth".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_welcome_names_the_address_the_sign_ins_and_three_commands() {
        let text = welcome(
            "127.0.0.1:8080".parse().unwrap(),
            Path::new("/tmp/x"),
            "gpu-02.gpu4",
        );
        for expected in [
            "http://localhost:8080/docs",
            PASSWORD,
            "ines",
            "olga",
            "login http://localhost:8080 --login priya",
            "book torino/gpu-02.gpu4",
            "/tmp/x",
        ] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(
            !text.contains("victor"),
            "the suspended are not sent to sign in"
        );
        assert_eq!(notice().people[0].login, FIRST);
        assert_eq!(
            address_for_people("127.0.0.2:81".parse().unwrap()),
            "http://127.0.0.2:81"
        );
    }
}
