//! The inventory: resource types, the tree of resources, and their status.

mod counts;
mod machine;
mod resources;
pub(crate) use machine::machine_of;
pub(crate) use resources::{page, tree_of};
mod status;
mod tree;
mod types;
mod write;

pub use counts::ResourceCounts;
pub use machine::{KeptMachine, OwnMachine};
pub use resources::{NewResource, ResourceChange, ResourceFilter, ResourceView};
pub use tree::Moved;
pub use types::{NewType, TypeChange};
