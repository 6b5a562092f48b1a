//! Which resource is part of which, as far as the picture needs it.

use std::collections::HashMap;

use berth_api::resources::Resource;
use berth_model::ResourceId;

pub struct Tree {
    parents: HashMap<ResourceId, ResourceId>,
}

impl Tree {
    pub fn new(resources: &[Resource]) -> Self {
        let parents = resources
            .iter()
            .filter_map(|resource| Some((resource.id, resource.parent.as_ref()?.id)));
        Self {
            parents: parents.collect(),
        }
    }

    /// Whether `resource` is `above` itself, or part of it at any depth.
    pub fn is_under(&self, resource: ResourceId, above: ResourceId) -> bool {
        let up = std::iter::successors(Some(resource), |at| self.parents.get(at).copied());
        // The server keeps the tree free of circles; the bound ends the way up whatever it says.
        up.take(self.parents.len() + 1).any(|at| at == above)
    }
}
