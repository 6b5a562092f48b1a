//! What a node is made of, and what is left of it.

use super::need::Piece;

/// All thousandths of a GPU.
pub const UNDIVIDED: u16 = 1000;

/// A node by its place in the list the fleet was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// A GPU model by its number among the site's models, of which there can be 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Model(u8);

impl Model {
    pub const COUNT_MAX: u8 = 64;

    /// None beyond the 64th.
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

/// A set of models. The empty set is no wish at all: any model will do.
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
    /// It can be had whole, or in thousandths by those who take turns on it.
    Shared,
    /// It is cut into slices by its hardware, which are given out elsewhere: nothing here is placed on it.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gpu {
    pub model: Model,
    pub memory_bytes: u64,
    /// GPUs of one node with the same number are linked to each other directly.
    pub link: Option<u16>,
    pub mode: Mode,
}

/// What a node has in all, with nothing placed on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Gpu>,
    pub rack: u32,
    /// The next wall: whatever is placed here has ended by then. In microseconds; `i64::MAX` for none.
    pub until_us: i64,
}

/// What nodes of the same make have in common: all that a placement asks of a node but its rack and its wall.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    pub gpus: Vec<Gpu>,
    pub groups: Vec<Group>,
}

/// GPUs of a node that nothing tells apart: of one make, and linked to the same others.
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
        // More GPUs than can be counted are not there to be given out.
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

    /// What is left of a node on which nothing is placed.
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

/// What is left of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Left {
    pub cpu_milli: u64,
    pub memory_bytes: u64,
    /// Of each GPU, the thousandths that are free; none of one that is cut.
    pub gpus: Vec<u16>,
}

impl Left {
    /// The lesser of both, part by part; of a GPU that the other does not have, nothing.
    pub fn narrow(&mut self, other: &Left) {
        self.cpu_milli = self.cpu_milli.min(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.min(other.memory_bytes);
        self.gpus.resize(other.gpus.len(), 0);
        for (free, other) in self.gpus.iter_mut().zip(&other.gpus) {
            *free = (*free).min(*other);
        }
    }

    /// Whether this is no more than the other, part by part.
    pub(super) fn is_within(&self, other: &Left) -> bool {
        let mut gpus = self.gpus.iter().zip(&other.gpus);
        self.gpus.len() == other.gpus.len()
            && self.cpu_milli <= other.cpu_milli
            && self.memory_bytes <= other.memory_bytes
            && gpus.all(|(own, other)| own <= other)
    }

    /// What is left when this is taken, too; none where there is not so much.
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

    /// Whether there is room for all of these.
    pub fn holds<'a>(&self, mut pieces: impl Iterator<Item = &'a Piece>) -> bool {
        let left = pieces.try_fold(self.clone(), |left, piece| left.without(piece));
        left.is_some()
    }
}
