//! The tests of `slurm`, in one binary: linking takes longer than most of them.

mod any_text;
mod real;
