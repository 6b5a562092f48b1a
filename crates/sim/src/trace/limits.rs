//! Limits on the size of a trace, so that an uploaded file cannot exhaust the memory.

use berth_engine::queue::Micros;

use crate::swf::SECOND;

/// The most of each thing that is read.
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
    /// The longest run or reservation. Moments are within `MOMENT` of the trace's own time origin.
    pub const LENGTH: Micros = 10 * YEAR;
    pub const MOMENT: Micros = 200 * YEAR;
}

const YEAR: Micros = 366 * 24 * 3600 * SECOND;

/// Checks that sums with this moment cannot overflow.
pub(crate) fn moment(at: Micros) -> Result<Micros, String> {
    match (-Limits::MOMENT..=Limits::MOMENT).contains(&at) {
        true => Ok(at),
        false => Err("a time is more than two hundred years away".to_owned()),
    }
}

/// Checks that a length is above zero and within the limit.
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

/// Checks that people can read a name.
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
