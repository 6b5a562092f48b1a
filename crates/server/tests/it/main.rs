//! The tests of `server`, in one binary: linking takes longer than most of them.

mod routes;
mod serving;
mod visits;
