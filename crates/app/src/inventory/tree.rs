//! Moves a subtree. Refuses a move that would make claims conflict, and lists them.

use berth_engine::rights::Action;
use berth_engine::rule::conflicts;
use berth_engine::tree::Tree;
use berth_model::declared::LEVELS_MAX;
use berth_model::reference::{ResourceReference, SiteReference};
use berth_model::{Claim, Resource, ResourceId};
use berth_store::{Conn, Refused, claims, inventory};

use super::ResourceView;
use super::resources::tree_of;
use crate::App;
use crate::caller::Caller;
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::seen::Conflict;
use crate::settlement::Mode;
use crate::transact::transact;

/// The result of a move or of its preview.
#[derive(Debug, Clone)]
pub struct Moved {
    pub place: Place,
    pub view: ResourceView,
    /// The claims that would conflict. Always empty if the move was carried out.
    pub conflicts: Vec<Conflict>,
    pub directory: Directory,
}

impl App {
    pub async fn move_resource(
        &self,
        caller: &Caller,
        site: &SiteReference,
        resource: &ResourceReference,
        parent: Option<&ResourceReference>,
        mode: Mode,
    ) -> Result<Moved> {
        let attempted = transact!(self, tx => {
            let place = self.place(&mut tx, caller, site, Action::SeeCatalogue).await?;
            place.may(caller, Action::ManageInventory, false, "resource")?;
            let before = self.resource(&mut tx, place.id(), resource).await?;
            caller.expects(before.version)?;
            let parent = match parent {
                Some(parent) => Some(self.resource(&mut tx, place.id(), parent).await?),
                None => None,
            };
            let mut directory = Directory::with_site(&place.site);
            let resources = inventory::of_site(&mut tx, place.id()).await?;
            let under = parent.as_ref().map(|parent| parent.id);
            let tree = tree_of(&resources)?;
            tree.check_move(before.id, under).map_err(|_| Error::Cycle)?;
            check_levels(&tree, before.id, under)?;
            let conflicts = self
                .would_meet(&mut tx, &place, caller, &resources, before.id, under, &mut directory)
                .await?;
            if mode == Mode::Apply {
                if !conflicts.is_empty() {
                    return Err(Error::MoveConflict { conflicts, directory: Box::new(directory) });
                }
                inventory::move_subtree(&mut tx, place.id(), before.id, under).await?;
                let from = resources.iter().find(|known| Some(known.id) == before.parent);
                let named = |resource: &'_ Resource| (resource.id, resource.name.clone());
                let (from, to) = (from.map(named), parent.as_ref().map(named));
                self.tell_move(&mut tx, caller, &before, from, to).await?;
            }
            let view = self.resource_view(&mut tx, &place, before.id, &mut directory).await?;
            Ok(Moved { place, view, conflicts, directory })
        });
        match attempted {
            // A booking was made between the check and the move, and the database refused the move.
            Err(error)
                if error.is_refused(Refused::Claim)
                    || error.is_refused(Refused::OutsideContainer) =>
            {
                Err(Error::MoveConflict {
                    conflicts: Vec::new(),
                    directory: Box::default(),
                })
            }
            other => other,
        }
    }

    /// The pairs of claims that would conflict if `moved` were under `under`.
    #[expect(
        clippy::too_many_arguments,
        reason = "one question with all it depends on"
    )]
    async fn would_meet(
        &self,
        conn: &mut Conn,
        place: &Place,
        caller: &Caller,
        resources: &[Resource],
        moved: ResourceId,
        under: Option<ResourceId>,
        directory: &mut Directory,
    ) -> Result<Vec<Conflict>> {
        let parent_of = |resource: &Resource| {
            if resource.id == moved {
                under
            } else {
                resource.parent
            }
        };
        let after = Tree::new(
            resources
                .iter()
                .map(|resource| (resource.id, parent_of(resource))),
        )
        .map_err(|_| Error::Cycle)?;
        let going = claims::holding_below(conn, moved).await?;
        let standing = claims::holding_on(conn, after.ancestors(moved).collect()).await?;
        let mut met: Vec<(&Claim, &Claim)> = Vec::new();
        for mine in &going {
            met.extend(
                standing
                    .iter()
                    .filter(|theirs| conflicts(&after, mine, theirs))
                    .map(|theirs| (mine, theirs)),
            );
        }
        let pairs = met
            .into_iter()
            .map(|(mine, theirs)| (mine.resource, theirs.clone()))
            .collect();
        self.explain(conn, place, caller, pairs, directory).await
    }
}

/// Refuses a move that would make the tree deeper than both databases can number.
fn check_levels(tree: &Tree, moved: ResourceId, under: Option<ResourceId>) -> Result<()> {
    let depth = |id| tree.depth(id).unwrap_or(0);
    let height = tree
        .descendants(moved)
        .map(|id| depth(id) - depth(moved))
        .max()
        .unwrap_or(0);
    let levels = under.map_or(0, |under| depth(under) + 1) + height + 1;
    if levels > LEVELS_MAX {
        Err(Error::TooDeep)
    } else {
        Ok(())
    }
}
