//! The tests of `store`, in one binary: linking takes longer than most of them.

mod booking;
mod claim_rule;
mod group_commit;
mod leases;
mod races;
mod records;
mod reserve;
mod schema;
mod settings;
mod statements;
mod support;
mod transfer;
mod visits;
