//! The tests of `api`, in one binary: linking takes longer than most of them.

mod client;
mod schemas;
