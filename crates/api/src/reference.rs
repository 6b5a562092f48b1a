//! How a request points at something: by its id or by its name, whichever the person has at hand.

pub use berth_model::reference::{
    ClosureReference, EnvironmentReference, PersonReference, ProjectReference, Reference,
    ResourceReference, SessionReference, SiteReference, TypeReference, WorkloadReference,
};
