//! The claim rule as the databases enforce it: cases by hand, and random sequences of operations beside the engine's
//! oracle. Both databases must accept and refuse exactly what the oracle does.

mod containers;
mod drafts;
mod model;
mod random;
mod timeline;
mod tree;
