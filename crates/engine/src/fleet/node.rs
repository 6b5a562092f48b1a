//! The resources of a node, in all and free.

use super::need::Piece;

/// A whole GPU in thousandths.
pub const UNDIVIDED: u16 = 1000;

/// A node by its index in the list that the fleet was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// A GPU model by its number among the site's models; a site has at most 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Model(u8);

impl Model {
    pub const COUNT_MAX: u8 = 64;

    /// `None` beyond the 64th.
    pub fn new(number: u8) -> Option<Model> {
        (number < Model::COUNT_MAX).then_some(Model(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }

    fn bit(self) -> u64 {
        1 << self.0
    }
}

/// A set of models. The empty set accepts any model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Models(u64);

impl Models {
    pub const ANY: Models = Models(0);

    pub fn accept(self, model: Model) -> bool {
        self == Models::ANY || self.0 & model.bit() != 0
    }
}

impl FromIterator<Model> for Models {
    fn from_iter<T: IntoIterator<Item = Model>>(models: T) -> Models {
        Models(models.into_iter().fold(0, |set, model| set | model.bit()))
    }
}

/// How a GPU is divided at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// It is given out whole, or in thousandths to workloads that share it in time.
    Shared,
    /// It is partitioned into MIG slices, which other code gives out: the fleet places nothing on it.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu {
    pub model: Model,
    pub memory_bytes: u64,
    /// GPUs of one node with the same number have a direct link to each other.
    pub link: Option<u16>,
    pub mode: Mode,
}

/// All resources of a node, with nothing placed on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Gpu>,
    pub rack: u32,
    /// The wall: each placement on this node must end by this moment. In microseconds; `i64::MAX` for none.
    pub until_us: i64,
}

/// The common properties of equal nodes: everything that matters for a placement, except rack and wall.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Gpu>,
    pub groups: Vec<Group>,
}

/// Interchangeable GPUs of a node: the same model and memory, linked to the same others.
#[derive(Debug, Clone)]
pub(super) struct Group {
    model: Model,
    memory_bytes: u64,
    pub linked: bool,
    pub gpus: Vec<u16>,
}

impl Group {
    pub fn meets(&self, models: Models, memory_bytes: u64) -> bool {
        models.accept(self.model) && self.memory_bytes >= memory_bytes
    }
}

impl Kind {
    pub fn of(node: &Node) -> Kind {
        // GPUs beyond the range of their number are ignored.
        let gpus: Vec<Gpu> = node
            .gpus
            .iter()
            .copied()
            .take(usize::from(u16::MAX))
            .collect();
        let mut groups: Vec<(Gpu, Vec<u16>)> = Vec::new();
        for (number, gpu) in (0..).zip(&gpus) {
            let whole = Gpu {
                mode: Mode::Shared,
                ..*gpu
            };
            match groups.iter_mut().find(|(first, _)| *first == whole) {
                Some((_, members)) => members.push(number),
                None => groups.push((whole, vec![number])),
            }
        }
        let group = |(first, gpus): (Gpu, Vec<u16>)| Group {
            model: first.model,
            memory_bytes: first.memory_bytes,
            linked: first.link.is_some(),
            gpus,
        };
        Kind {
            cpu_milli: node.cpu_milli,
            memory_bytes: node.memory_bytes,
            groups: groups.into_iter().map(group).collect(),
            gpus,
        }
    }

    /// The free resources of a node on which nothing is placed.
    pub fn all(&self) -> Left {
        let thousandths = |gpu: &Gpu| match gpu.mode {
            Mode::Shared => UNDIVIDED,
            Mode::Cut => 0,
        };
        Left {
            cpu_milli: self.cpu_milli,
            memory_bytes: self.memory_bytes,
            gpus: self.gpus.iter().map(thousandths).collect(),
        }
    }
}

/// The free resources of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Left {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// The free thousandths of each GPU; zero for a GPU in [`Mode::Cut`].
    pub gpus: Vec<u16>,
}

impl Left {
    /// Takes the minimum of each part. A GPU that the other does not have counts as zero.
    pub fn narrow(&mut self, other: &Left) {
        self.cpu_milli = self.cpu_milli.min(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.min(other.memory_bytes);
        self.gpus.resize(other.gpus.len(), 0);
        for (free, other) in self.gpus.iter_mut().zip(&other.gpus) {
            *free = (*free).min(*other);
        }
    }

    /// Whether no part exceeds the same part of the other.
    pub(super) fn is_within(&self, other: &Left) -> bool {
        let mut gpus = self.gpus.iter().zip(&other.gpus);
        self.gpus.len() == other.gpus.len()
            && self.cpu_milli <= other.cpu_milli
            && self.memory_bytes <= other.memory_bytes
            && gpus.all(|(own, other)| own <= other)
    }

    /// The rest after this piece; `None` if there is not enough.
    pub(super) fn without(&self, piece: &Piece) -> Option<Left> {
        let mut gpus = self.gpus.clone();
        for part in &piece.gpus {
            let free = gpus.get_mut(usize::from(part.gpu))?;
            *free = free.checked_sub(part.thousandths)?;
        }
        Some(Left {
            cpu_milli: self.cpu_milli.checked_sub(piece.cpu_milli)?,
            memory_bytes: self.memory_bytes.checked_sub(piece.memory_bytes)?,
            gpus,
        })
    }

    /// Whether there is room for all pieces together.
    pub fn holds<'a>(&self, mut pieces: impl Iterator<Item = &'a Piece>) -> bool {
        let left = pieces.try_fold(self.clone(), |left, piece| left.without(piece));
        left.is_some()
    }
}
