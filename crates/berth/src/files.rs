//! Files that declare a site or a part of it, read on the client's side: YAML and JSON, CSV, Slurm's node lists.
//!
//! Every reader ends in the same document, which the server compares with the site and applies as a whole. Nothing in
//! here talks to a server, and none of it trusts what it reads: sizes, depths and expansions have limits.

pub mod csv;
pub mod hidden;
pub mod node;
pub mod read;
pub mod slurm;
pub mod write;

use std::collections::BTreeMap;

use berth_model::Name;
use berth_model::declared::{Declared, DeclaredResource, LEVELS_MAX};

/// The largest file that is read.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;

pub type Resources = BTreeMap<Name, DeclaredResource>;

/// Adds what stands above the named resources in the site now, unchanged: a part of a tree hangs below something.
pub fn with_parents(mut named: Resources, site: &Declared) -> Resources {
    let known = site.resources.iter().flatten().collect::<BTreeMap<_, _>>();
    let mut missing: Vec<Name> = named.values().filter_map(|it| it.parent.clone()).collect();
    while let Some(name) = missing.pop() {
        if let (false, Some(resource)) = (named.contains_key(&name), known.get(&name)) {
            missing.extend(resource.parent.clone());
            named.insert(name, (*resource).clone());
        }
    }
    named
}

/// Whether a resource stands below itself. A document cannot say such a thing, so it must be found before.
pub fn goes_round(named: &Resources, name: &Name) -> bool {
    let parent = |name: &Name| named.get(name).and_then(|it| it.parent.as_ref());
    std::iter::successors(parent(name), |name| parent(name))
        .take(named.len().min(LEVELS_MAX * LEVELS_MAX) + 1)
        .any(|above| above == name)
}
