//! How large a trace may be: what somebody hands in must not make the reader swallow the machine.

use berth_engine::queue::Micros;

use crate::swf::SECOND;

/// The most that is read of each.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    pub const LINE_BYTES: usize = 64 << 20;
    pub const NAME_CHARS: usize = 200;
    pub const NODES: usize = 200_000;
    pub const GPUS_PER_NODE: usize = 64;
    pub const WALLS: usize = 1_000_000;
    pub const ARRIVALS: usize = 5_000_000;
    pub const TASKS: u32 = 200_000;
    /// Nothing runs or is reserved for longer, and no moment is further from the trace's own beginning of time.
    pub const LENGTH: Micros = 10 * YEAR;
    pub const MOMENT: Micros = 200 * YEAR;
}

const YEAR: Micros = 366 * 24 * 3600 * SECOND;

/// A moment that sums of times cannot overflow from.
pub(crate) fn moment(at: Micros) -> Result<Micros, String> {
    match (-Limits::MOMENT..=Limits::MOMENT).contains(&at) {
        true => Ok(at),
        false => Err("a time is more than two hundred years away".to_owned()),
    }
}

/// A length above zero.
pub(crate) fn length(of: &str, length: Micros) -> Result<Micros, String> {
    match length {
        ..=0 => Err(format!("its {of} is not above zero")),
        1..=Limits::LENGTH => Ok(length),
        _ => Err(format!("its {of} is longer than ten years")),
    }
}

pub(crate) fn at_most(what: &str, count: usize, most: usize) -> Result<(), String> {
    match count <= most {
        true => Ok(()),
        false => Err(format!("there are more than {most} {what}")),
    }
}

/// A name that people can read.
pub(crate) fn name(of: &str, name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err(format!("the name of a {of} is empty"));
    }
    if name.chars().count() > Limits::NAME_CHARS || name.chars().any(char::is_control) {
        return Err(format!(
            "the name of a {of} has more than {} characters, or some that cannot be read",
            Limits::NAME_CHARS
        ));
    }
    Ok(())
}
