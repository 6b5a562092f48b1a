//! Who of those who wait gets what, and when.

pub mod ground;
pub mod quota;
pub mod share;
pub mod track;

/// A moment or a length in microseconds: a plan compares millions of them.
pub type Micros = i64;
