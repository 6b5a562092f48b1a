//! The tests of `berth`, in one binary: linking takes longer than most of them.

mod admission;
mod apart;
mod cli;
mod crash;
mod crowd;
mod disk;
mod fuzz;
mod hostile;
mod hub;
mod local;
mod lossy_disk;
mod matrix;
mod openapi;
mod proof;
mod proxy;
mod secrets;
mod support;
mod two_machines;
mod two_servers;
