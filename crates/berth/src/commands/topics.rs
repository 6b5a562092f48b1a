//! What `berth help TOPIC` explains beside the commands.

use crate::exit::Exit;

pub fn exit_codes() -> String {
    format!(
        "What the exit codes of `berth` mean. They do not change from version to version.\n\n{}",
        Exit::table()
    )
}

pub const TIMES: &str = "\
How to write times. They are read in the time zone of your profile (--zone names another one), and shown in it.

  now                     this moment
  +2h  -30m  +1d12h       from this moment on, or back from it
  14:30  9am              the next time a clock shows this
  today  tomorrow 09:00   a day, from its start or at a clock time
  fri 9:00  next monday   a weekday: the coming one; with `next` never today
  2026-11-20              a date, from its start
  2026-11-20 09:00        a date and a clock time
  2026-11-20T09:00+01:00  with an offset, or a zone in brackets: [Europe/Rome]

After --to, a clock time alone is the next one after the start, and `+2h` counts from the start:
`--from 'tomorrow 09:00' --to 12:00` ends at noon of that day.

Lengths of time are written 2h, 90m, 1h30m, 1d, 1w. A day is a day of the calendar: from nine o'clock to nine
o'clock, also when the clocks change in between. A time that the clocks skip or repeat is never guessed at; the
error names both readings.";

pub const NAMES: &str = "\
How to name things.

Sites, types, resources and projects have names, such as `gpu-01`, and ids, such as `res_01kc…`; either does.
A name belongs to the site at hand: the one before it, as in `torino/gpu-01`, else that of --site, else BERTH_SITE,
else the one chosen with `berth site use`.

Reservations, maintenance windows, requests to join and tokens have ids only. Lists show the last six characters of
an id, and wherever an id is wanted its last six characters or more do. Berth then looks among your own reservations
in all sites, those that still hold something first, and after them in the site at hand. If several ids end so, it
lists them and does nothing.

People are named by their login.";

/// Prints a topic that was called as a command.
pub fn print(text: &str) -> anyhow::Result<()> {
    crate::output::print(&format!("{}\n", text.trim_end()))
}
