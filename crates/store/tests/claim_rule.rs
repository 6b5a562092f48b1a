//! The claim rule as the databases enforce it: cases by hand, and random sequences of operations beside the engine's
//! oracle. Both databases must accept and refuse exactly what the oracle does.

mod support;

#[path = "claim_rule/containers.rs"]
mod containers;
#[path = "claim_rule/drafts.rs"]
mod drafts;
#[path = "claim_rule/model.rs"]
mod model;
#[path = "claim_rule/random.rs"]
mod random;
#[path = "claim_rule/timeline.rs"]
mod timeline;
#[path = "claim_rule/tree.rs"]
mod tree;
