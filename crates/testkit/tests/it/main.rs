//! The tests of `testkit`, in one binary, because linking takes longer than most of them.

mod arrows;
mod audit;
mod lossy;
mod postgres;
mod server;
mod tidy;
