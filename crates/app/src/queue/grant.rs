//! Data that the backend needs to launch a workload: its owner, and the names of its nodes and GPUs.

use berth_drivers::backend::Grant;
use berth_model::workload::{Run, Workload};
use berth_store::{inventory, people, projects, sites};

use super::floor::Named;
use crate::App;
use crate::error::Result;

/// Attribute of a GPU with the name that its machine uses: a number or a UUID.
const DEVICE: &str = "device";

impl App {
    pub(super) async fn granted(&self, workload: &Workload, run: &Run) -> Result<Grant> {
        let mut reader = self.store.read().await?;
        let owner = people::get(&mut reader, workload.owner).await?;
        let site = sites::by_id(&mut reader, workload.site).await?;
        let project = match workload.project {
            None => None,
            Some(project) => projects::by_id(&mut reader, workload.site, project).await?,
        };
        let gpus = run.pieces.iter().flat_map(|piece| &piece.gpus);
        let gpus: Vec<_> = gpus.map(|held| held.gpu).collect();
        let nodes: Vec<_> = run.pieces.iter().map(|piece| piece.node).collect();
        let wanted = nodes.iter().chain(&gpus).copied().collect();
        let known = inventory::named(&mut reader, wanted).await?;
        let find = |id| known.iter().find(|one| one.id == id);
        let device = |id| Some(find(id)?.attributes.get_named(DEVICE)?.to_string());
        let name = |id| Some(find(id)?.name.to_string());
        let around = self.surroundings(&mut reader, workload).await?;
        let hub = self.hub_variables(&mut reader, workload, run).await?;
        let has_neighbours = people::are_several(&mut reader).await?;
        let has_hub = !hub.is_empty();
        let environment = around.variables.into_iter().chain(hub);
        Ok(Grant {
            person: workload.owner,
            login: owner.map_or_else(|| "nobody".to_owned(), |owner| owner.login.to_string()),
            has_neighbours,
            site: site.map_or_else(String::new, |site| site.name.to_string()),
            project: project.map(|project| project.name.to_string()),
            nodes: nodes.into_iter().filter_map(name).collect(),
            gpus: gpus.into_iter().filter_map(device).collect(),
            environment: environment.collect(),
            mounts: around.mounts,
            has_hub,
            package_index: around.package_index,
        })
    }
}
