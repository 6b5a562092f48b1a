//! The words of Berth as types: sites, resources, claims, reservations and what happens to them.
//!
//! Everything here is a value. A value of one of these types is already valid: names are parsed when they
//! come in, spans are never empty, a reservation's state can only change along the drawn arrows.
//!
//! This crate must not do I/O, read a clock, or be async. Every other room depends on it.

pub mod attribute;
pub mod audit;
pub mod branding;
pub mod claim;
pub mod closure;
pub mod declared;
pub mod environment;
pub mod event;
pub mod feed;
pub mod field;
pub mod id;
pub mod inventory;
pub mod name;
pub mod notification;
pub mod parameter;
pub mod person;
pub mod policy;
pub mod queue;
pub mod recurrence;
pub mod recut;
pub mod reference;
pub mod reservation;
pub mod selection;
pub mod series;
pub mod session;
pub mod site;
pub mod span;
pub mod workload;

pub use claim::{Amount, Claim, Firmness, Holder, Standing, Take};
pub use field::{FieldError, FieldErrors};
pub use id::*;
pub use inventory::{Resource, ResourceType, Status};
pub use name::{LoginName, Name, Text};
pub use recurrence::{Pattern, Recurrence};
pub use recut::Recut;
pub use reference::Reference;
pub use selection::{Count, Selection};
pub use series::{Occurrence, Series};
pub use session::Session;
pub use span::Span;
pub use workload::{Run, Workload};
