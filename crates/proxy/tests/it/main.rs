//! The tests of `proxy`, in one binary: linking takes longer than most of them.

mod large;
mod proxy;
