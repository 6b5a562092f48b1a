//! Caches how much each class of nodes would lose by a task. A class never changes (see [`Classes`]), so a cached
//! loss stays true. A placement then reads one row of numbers.

use std::collections::{BTreeMap, HashMap};

use super::classes::{Classes, Walled, keep};
use super::mix::{Lanes, Mix};
use super::node::{Kind, Left};
use super::pick::{Bundle, Chosen, Seen, fill, room_for};

/// A bound on memory for sites where no two tasks are alike; many more than a mix has shapes. Tests use a smaller
/// one to reach it.
const ROWS_MAX: usize = if cfg!(test) { 64 } else { 1024 };

/// The loss of a class by a bundle: first the loss to later workloads, then, in the lower bits, the resources left
/// over. Less is better.
type Loss = i64;

/// The bundle does not fit.
const NO_PLACE: Loss = i64::MAX;
/// Not computed yet. Less than any loss, so that a search for the least one finds it.
const UNKNOWN: Loss = i64::MIN;

const SLACK_BITS: u32 = 16;

#[derive(Debug, Clone)]
pub(super) struct Offers {
    mix: Mix,
    /// By kind: which of the mix's shapes its GPUs serve.
    met: Vec<Vec<Lanes>>,
    /// By class; may be shorter than the list of classes.
    worth: Vec<Option<i64>>,
    rows: Vec<Row>,
    row_of: HashMap<Bundle, usize>,
    slack: Slack,
    left: Left,
    chosen: Chosen,
}

/// The losses by one bundle, by class; may be shorter than the list of classes.
#[derive(Debug, Clone, Default)]
struct Row {
    losses: Vec<Loss>,
    refused: Option<Refused>,
    /// The same for gangs, by the number of tasks and the maximum of tasks on one node.
    gangs: BTreeMap<(u32, u64), Refused>,
}

/// There was no room until `until_us`. So there is none until a later moment either, before something is freed:
/// taking never makes room. Most of a long queue is refused most of the time, and this refuses it at once.
#[derive(Debug, Clone, Copy)]
struct Refused {
    until_us: i64,
    /// The count of [`Classes::freed`] at that moment.
    freed: u64,
}

impl Refused {
    fn still(self, freed: u64, until_us: i64) -> bool {
        self.freed == freed && self.until_us <= until_us
    }
}

/// The resources left over, as parts of the largest node: the tie-break is best fit.
#[derive(Debug, Clone, Copy)]
struct Slack {
    per_cpu_milli: f64,
    per_memory_byte: f64,
    per_gpu_thousandth: f64,
}

impl Slack {
    /// A third of the range of [`SLACK_BITS`] for each of the three.
    const EACH: f64 = 21_000.0;

    fn of(kinds: &[Kind]) -> Slack {
        let per = |most: Option<u64>| Slack::EACH / most.unwrap_or(0).max(1) as f64;
        let gpus = |kind: &Kind| 1000 * kind.gpus.len() as u64;
        Slack {
            per_cpu_milli: per(kinds.iter().map(|kind| kind.cpu_milli).max()),
            per_memory_byte: per(kinds.iter().map(|kind| kind.memory_bytes).max()),
            per_gpu_thousandth: per(kinds.iter().map(gpus).max()),
        }
    }

    fn in_bits(self, left: &Left) -> i64 {
        let gpus: u64 = left.gpus.iter().map(|free| u64::from(*free)).sum();
        let parts = [
            left.cpu_milli as f64 * self.per_cpu_milli,
            left.memory_bytes as f64 * self.per_memory_byte,
            gpus as f64 * self.per_gpu_thousandth,
        ];
        parts.iter().map(|part| *part as i64).sum()
    }
}

impl Offers {
    pub fn new(mix: Mix, kinds: &[Kind]) -> Offers {
        Offers {
            met: kinds.iter().map(|kind| mix.met_by(kind)).collect(),
            mix,
            worth: Vec::new(),
            rows: Vec::new(),
            row_of: HashMap::new(),
            slack: Slack::of(kinds),
            left: Left::default(),
            chosen: Chosen::new(),
        }
    }

    #[cfg(test)]
    pub fn mix(&self) -> &Mix {
        &self.mix
    }

    /// The row of this bundle, with access to the classes.
    pub fn look<'a>(
        &'a mut self,
        kinds: &'a [Kind],
        classes: &'a Classes,
        bundle: &'a Bundle,
    ) -> Look<'a> {
        if self.rows.len() >= ROWS_MAX && !self.row_of.contains_key(bundle) {
            self.rows.clear();
            self.row_of.clear();
        }
        let row = *self.row_of.entry(*bundle).or_insert(self.rows.len());
        if row == self.rows.len() {
            self.rows.push(Row::default());
        }
        self.rows[row].losses.resize(classes.len(), UNKNOWN);
        self.worth.resize(classes.len(), None);
        Look {
            offers: self,
            row,
            kinds,
            classes,
            bundle,
        }
    }

    /// A node of this kind with the data that the mix needs.
    pub fn seen<'a>(&'a self, kinds: &'a [Kind], kind: u32) -> Seen<'a> {
        let kind = kind as usize;
        Seen {
            kind: &kinds[kind],
            mix: &self.mix,
            met: &self.met[kind],
        }
    }

    /// Follows [`Classes::forget_empty`].
    pub fn keep(&mut self, kept: &[usize]) {
        self.worth = keep(std::mem::take(&mut self.worth), kept);
        for row in &mut self.rows {
            row.losses = keep(std::mem::take(&mut row.losses), kept);
        }
    }
}

#[derive(Debug)]
pub(super) struct Look<'a> {
    offers: &'a mut Offers,
    row: usize,
    kinds: &'a [Kind],
    classes: &'a Classes,
    bundle: &'a Bundle,
}

impl Look<'_> {
    /// The node with the least loss by the bundle, of all nodes with their wall at this moment or later.
    pub fn best(mut self, until_us: i64) -> Option<u32> {
        let freed = self.classes.freed();
        let refused = self.offers.rows[self.row].refused;
        if refused.is_some_and(|refused| refused.still(freed, until_us)) {
            return None;
        }
        let mut best: Option<(Loss, Walled)> = None;
        let mut least = NO_PLACE - 1;
        // The row is moved out of its table while it is read: a plan spends most of its time in this loop.
        let mut losses = std::mem::take(&mut self.offers.rows[self.row].losses);
        for (class, known) in losses.iter_mut().enumerate() {
            if *known > least || !self.classes.reaches(class, until_us) {
                continue;
            }
            if *known == UNKNOWN {
                *known = self.look_at(class);
            }
            if *known > least {
                continue;
            }
            let nearest = self.classes.nearest_wall(class, until_us);
            let Some(node) = nearest else { continue };
            if best.is_none_or(|best| (*known, node) < best) {
                best = Some((*known, node));
                least = *known;
            }
        }
        let row = &mut self.offers.rows[self.row];
        row.losses = losses;
        row.refused = best.is_none().then_some(Refused { until_us, freed });
        best.map(|(_, (_, node))| node)
    }

    /// Whether there is room for `count` bundles on the nodes with their wall at this moment or later.
    pub fn has_room(mut self, count: u32, most_in_a_node: u64, until_us: i64) -> bool {
        let freed = self.classes.freed();
        let gang = (count, most_in_a_node);
        let refused = self.offers.rows[self.row].gangs.get(&gang);
        if refused.is_some_and(|refused| refused.still(freed, until_us)) {
            return false;
        }
        let mut more = u64::from(count);
        for class in 0..self.classes.len() {
            if !self.classes.reaches(class, until_us) || self.loss(class) == NO_PLACE {
                continue;
            }
            let state = self.classes.state(class);
            let kind = &self.kinds[state.kind as usize];
            let most = more.min(most_in_a_node);
            let each = room_for(kind, &state.left, &self.bundle.task, most).max(1);
            let nodes = self
                .classes
                .count_reaching(class, until_us, more.div_ceil(each));
            more = more.saturating_sub(each.saturating_mul(nodes));
            if more == 0 {
                return true;
            }
        }
        let refused = Refused { until_us, freed };
        self.offers.rows[self.row].gangs.insert(gang, refused);
        false
    }

    /// The node with the least loss by the bundle, of these.
    pub fn best_of(mut self, nodes: impl Iterator<Item = Walled>) -> Option<u32> {
        let losses = nodes.map(|node| (self.loss(self.classes.of(node.1)), node));
        let places = losses.filter(|(loss, _)| *loss != NO_PLACE);
        places.min().map(|(_, (_, node))| node)
    }

    /// The GPUs that the bundle gets on this node.
    pub fn chosen(&mut self, node: u32) -> &[u16] {
        let class = self.classes.of(node);
        self.fill(class);
        &self.offers.chosen
    }

    fn loss(&mut self, class: usize) -> Loss {
        let known = self.offers.rows[self.row].losses[class];
        if known != UNKNOWN {
            return known;
        }
        let loss = self.look_at(class);
        self.offers.rows[self.row].losses[class] = loss;
        loss
    }

    fn look_at(&mut self, class: usize) -> Loss {
        if !self.fill(class) {
            return NO_PLACE;
        }
        let lost = self.worth_before(class) - self.seen(class).worth(&self.offers.left);
        (lost << SLACK_BITS) + self.offers.slack.in_bits(&self.offers.left)
    }

    fn worth_before(&mut self, class: usize) -> i64 {
        if let Some(worth) = self.offers.worth[class] {
            return worth;
        }
        let worth = self.seen(class).worth(&self.classes.state(class).left);
        self.offers.worth[class] = Some(worth);
        worth
    }

    fn seen(&self, class: usize) -> Seen<'_> {
        self.offers.seen(self.kinds, self.classes.state(class).kind)
    }

    /// Writes the remaining resources and the chosen GPUs to the buffers of `offers`.
    fn fill(&mut self, class: usize) -> bool {
        let mut left = std::mem::take(&mut self.offers.left);
        let mut chosen = std::mem::take(&mut self.offers.chosen);
        left.clone_from(&self.classes.state(class).left);
        let fits = fill(self.seen(class), &mut left, self.bundle, &mut chosen);
        self.offers.left = left;
        self.offers.chosen = chosen;
        fits
    }
}
