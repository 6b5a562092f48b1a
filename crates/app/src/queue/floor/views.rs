//! Views of the nodes for people.

use std::collections::HashSet;

use berth_engine::fleet::{Left, Model, NodeIndex, Placement};
use berth_model::{ResourceId, Status};

use super::super::look::{GpuView, NodeView};
use super::{Floor, MIB, Named, UNDIVIDED};

impl Floor {
    /// The nodes with the resources that remain after `held`, `reserved` and `maintained`.
    pub fn views(
        &self,
        held: &[Placement],
        reserved: &[Placement],
        maintained: &[Placement],
    ) -> Vec<NodeView> {
        let mut left: Vec<Left> = self
            .nodes
            .iter()
            .map(|node| Left {
                cpu_milli: node.cpu_milli,
                memory_bytes: node.memory_bytes,
                gpus: vec![UNDIVIDED; node.gpus.len()],
            })
            .collect();
        for piece in held
            .iter()
            .chain(reserved)
            .chain(maintained)
            .flat_map(|placement| &placement.pieces)
        {
            let Some(left) = left.get_mut(piece.node.0 as usize) else {
                continue;
            };
            left.cpu_milli = left.cpu_milli.saturating_sub(piece.cpu_milli);
            left.memory_bytes = left.memory_bytes.saturating_sub(piece.memory_bytes);
            for part in &piece.gpus {
                if let Some(free) = left.gpus.get_mut(usize::from(part.gpu)) {
                    *free = free.saturating_sub(part.thousandths);
                }
            }
        }
        let nodes = |taken: &[Placement]| -> HashSet<NodeIndex> {
            let pieces = taken.iter().flat_map(|placement| &placement.pieces);
            pieces.map(|piece| piece.node).collect()
        };
        let (reserved, maintained) = (nodes(reserved), nodes(maintained));
        let all = (0..)
            .map(NodeIndex)
            .zip(&self.nodes)
            .zip(&self.parts)
            .zip(left);
        all.map(|(((index, node), parts), left)| NodeView {
            node: parts.node,
            is_in_service: !self.out.contains_key(&index),
            is_in_maintenance: maintained.contains(&index)
                || self.out.get(&index) == Some(&Status::Maintenance),
            cores_milli: node.cpu_milli,
            cores_milli_free: left.cpu_milli,
            memory_mib: node.memory_bytes / MIB,
            memory_mib_free: left.memory_bytes / MIB,
            gpus: (parts.gpus.iter().zip(left.gpus).zip(&node.gpus))
                .map(|((id, free), gpu)| GpuView {
                    gpu: *id,
                    model: self.model_of(gpu.model),
                    free,
                })
                .collect(),
            is_reserved: reserved.contains(&index),
        })
        .collect()
    }

    /// Name of a GPU's model for people. The name of a slice includes its profile.
    fn model_of(&self, model: Model) -> Option<String> {
        let kind = self.kinds.get(usize::from(model.number()))?;
        let named = kind.attributes.get_named("gpu_model");
        let named = named.map(ToString::to_string);
        match (
            named,
            kind.profile.clone().filter(|profile| !profile.is_empty()),
        ) {
            (Some(model), Some(profile)) => Some(format!("{model} {profile}")),
            (model, profile) => model.or(profile),
        }
    }

    /// Resource ids of the nodes, in the engine's order.
    pub fn node_ids(&self) -> Vec<ResourceId> {
        self.parts.iter().map(|parts| parts.node).collect()
    }
}
