//! The whole-system proof: many clients hammer few resources over real HTTP while the server is killed again and
//! again, and afterwards everything that is stored is held against everything that was said.
//!
//! - [`world`] is the lab they fight over, [`ground`] the database it stands on, and how that loses its power;
//! - [`wish`] draws what to want next, [`client`] (and, for several days at once, [`series`], for the lab itself, [`upkeep`]) wants it, [`ask`] asks until
//!   there is a definite answer, and what was told goes into a [`ledger`];
//! - [`power`] is the server and the schedule of its deaths, [`listener`] follows the stream of events through them;
//! - [`stored`] reads what the database holds, as [`rows`] and with SQL of its own, and [`sweep`] looks for everything
//!   that must not be.
//!
//! Nothing here trusts the code under test: the sweep asks neither the server nor the store's constraints, only rows.
//! Sizes and seed come from the environment; see `docs/proofs/crash.md`.

pub mod ask;
pub mod by_definition;
pub mod client;
pub mod desk;
pub mod ground;
pub mod known;
pub mod ledger;
pub mod listener;
pub mod power;
pub mod requests;
pub mod rows;
pub mod run;
pub mod series;
pub mod size;
pub mod stored;
pub mod sweep;
pub mod upkeep;
pub mod wish;
pub mod world;
