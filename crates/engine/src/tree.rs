//! A site's resources as a tree, numbered so that "the same, above or below" takes two comparisons.
//!
//! The nodes are in the order of a walk that visits each resource before its children. So a subtree is a contiguous
//! range of that order. One resource is above another exactly when its range contains the other's place. The tree is
//! a snapshot: a move makes a new one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use berth_model::{ResourceId, Status};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error("{resource} is listed twice; a resource has one place in its site's tree")]
    Twice { resource: ResourceId },
    #[error("this site has no resource {resource}")]
    Unknown { resource: ResourceId },
    #[error("{resource} is to stand under {parent}, but this site has no resource {parent}")]
    UnknownParent {
        resource: ResourceId,
        parent: ResourceId,
    },
    #[error("{resource} cannot stand under itself; choose another parent")]
    UnderItself { resource: ResourceId },
    #[error(
        "{resource} cannot stand under {under}, because {under} stands below {resource}; choose a parent outside its subtree"
    )]
    Cycle {
        resource: ResourceId,
        under: ResourceId,
    },
}

#[derive(Debug, Clone)]
pub struct Tree {
    /// In the order of the walk; the index of a node is its place.
    nodes: Vec<Node>,
    places: HashMap<ResourceId, usize>,
}

#[derive(Debug, Clone)]
struct Node {
    id: ResourceId,
    parent: Option<usize>,
    depth: usize,
    /// One past the last place of its subtree.
    end: usize,
}

type Children = BTreeMap<Option<ResourceId>, Vec<ResourceId>>;

impl Tree {
    /// The tree of a site that has no resources yet.
    pub fn empty() -> Tree {
        Tree {
            nodes: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// Builds the tree of one site from each resource and its parent, in any order.
    pub fn new(
        resources: impl IntoIterator<Item = (ResourceId, Option<ResourceId>)>,
    ) -> Result<Tree, TreeError> {
        let mut parents = BTreeMap::new();
        for (resource, parent) in resources {
            if parents.insert(resource, parent).is_some() {
                return Err(TreeError::Twice { resource });
            }
        }
        let mut children = Children::new();
        for (&resource, &parent) in &parents {
            if let Some(parent) = parent.filter(|parent| !parents.contains_key(parent)) {
                return Err(TreeError::UnknownParent { resource, parent });
            }
            children.entry(parent).or_default().push(resource);
        }
        let tree = Tree::walk(&children);
        // Any resource that the walk from the roots does not reach is in a cycle or below one.
        match parents.keys().find(|id| !tree.contains(**id)) {
            None => Ok(tree),
            Some(&unreached) => Err(circle(&parents, unreached)),
        }
    }

    fn walk(children: &Children) -> Tree {
        let below = |parent| children.get(&parent).into_iter().flatten().rev().copied();
        let mut nodes: Vec<Node> = Vec::new();
        let mut places = HashMap::new();
        let mut waiting: Vec<(ResourceId, Option<usize>)> =
            below(None).map(|root| (root, None)).collect();
        while let Some((id, parent)) = waiting.pop() {
            let place = nodes.len();
            let depth = parent.map_or(0, |parent: usize| nodes[parent].depth + 1);
            nodes.push(Node {
                id,
                parent,
                depth,
                end: place + 1,
            });
            places.insert(id, place);
            waiting.extend(below(Some(id)).map(|child| (child, Some(place))));
        }
        // Children come after their parents, so in reverse order every subtree is complete when it is read.
        for place in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[place].parent {
                nodes[parent].end = nodes[parent].end.max(nodes[place].end);
            }
        }
        Tree { nodes, places }
    }

    pub fn contains(&self, id: ResourceId) -> bool {
        self.places.contains_key(&id)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every resource, parents before their children.
    pub fn resources(&self) -> impl Iterator<Item = ResourceId> + '_ {
        self.nodes.iter().map(|node| node.id)
    }

    fn node(&self, id: ResourceId) -> Option<&Node> {
        self.places.get(&id).map(|&place| &self.nodes[place])
    }

    /// The places of `id` and all its descendants, its own place first. A place is in this range exactly when its
    /// resource is `id` or below it.
    pub fn reach(&self, id: ResourceId) -> Option<Range<usize>> {
        let place = *self.places.get(&id)?;
        Some(place..self.nodes[place].end)
    }

    /// The ancestors of `id`, nearest first.
    pub fn ancestors(&self, id: ResourceId) -> impl Iterator<Item = ResourceId> + '_ {
        let above = |node: &Node| node.parent.map(|parent| &self.nodes[parent]);
        std::iter::successors(self.node(id).and_then(above), move |node| above(node))
            .map(|node| node.id)
    }

    /// The descendants of `id`, parents before their children.
    pub fn descendants(&self, id: ResourceId) -> impl Iterator<Item = ResourceId> + '_ {
        let places = self
            .reach(id)
            .map_or(0..0, |reach| reach.start + 1..reach.end);
        self.nodes[places].iter().map(|node| node.id)
    }

    /// The number of ancestors of `id`; none if the tree lacks this resource.
    pub fn depth(&self, id: ResourceId) -> Option<usize> {
        self.node(id).map(|node| node.depth)
    }

    pub fn has_children(&self, id: ResourceId) -> bool {
        self.reach(id).is_some_and(|reach| reach.len() > 1)
    }

    pub fn is_at_or_below(&self, id: ResourceId, above: ResourceId) -> bool {
        match (self.places.get(&id), self.reach(above)) {
            (Some(place), Some(reach)) => reach.contains(place),
            _ => false,
        }
    }

    /// Whether the resources are the same, or one is above the other.
    pub fn related(&self, a: ResourceId, b: ResourceId) -> bool {
        self.is_at_or_below(a, b) || self.is_at_or_below(b, a)
    }

    /// Whether `id` may move under `new_parent` (none makes it a root) without making a cycle.
    pub fn check_move(
        &self,
        id: ResourceId,
        new_parent: Option<ResourceId>,
    ) -> Result<(), TreeError> {
        if !self.contains(id) {
            return Err(TreeError::Unknown { resource: id });
        }
        match new_parent {
            None => Ok(()),
            Some(parent) if parent == id => Err(TreeError::UnderItself { resource: id }),
            Some(parent) if !self.contains(parent) => Err(TreeError::UnknownParent {
                resource: id,
                parent,
            }),
            Some(under) if self.is_at_or_below(under, id) => Err(TreeError::Cycle {
                resource: id,
                under,
            }),
            Some(_) => Ok(()),
        }
    }

    /// The worst status on the path to the root, and the resource that has it. If several are equally bad, it names
    /// the nearest, which should be repaired first.
    pub fn effective_status(
        &self,
        id: ResourceId,
        status_of: impl Fn(ResourceId) -> Status,
    ) -> (Status, ResourceId) {
        let own = (status_of(id), id);
        self.ancestors(id)
            .map(|above| (status_of(above), above))
            .fold(
                own,
                |worst, next| if next.0 > worst.0 { next } else { worst },
            )
    }
}

/// Walks up from a resource that no root reaches until it repeats, and names the link that closes the cycle.
fn circle(parents: &BTreeMap<ResourceId, Option<ResourceId>>, from: ResourceId) -> TreeError {
    let mut seen = BTreeSet::new();
    let mut resource = from;
    while let Some(&Some(under)) = parents.get(&resource) {
        if under == resource {
            return TreeError::UnderItself { resource };
        }
        if !seen.insert(resource) {
            return TreeError::Cycle { resource, under };
        }
        resource = under;
    }
    TreeError::Unknown { resource }
}

#[cfg(test)]
#[path = "tree/tests.rs"]
mod tests;
