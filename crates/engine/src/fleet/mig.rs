//! MIG slices: which slices a GPU can still provide, and how to repartition it for one.
//!
//! A slice covers some of the GPU's memory parts and can start only at certain positions. So two GPUs with the same
//! free parts may differ in the slices they can still provide. Only free slices are ever removed. Of all ways, the
//! code takes the one that changes the fewest slices. Of equal ways it takes the one that leaves the largest slice
//! to later workloads, then the one that leaves most possible slices.

/// The profiles of a GPU model. A profile is identified by its index in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuts(&'static [Profile]);

/// One kind of slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Its number of compute parts, with `+` for more memory than usual and `+me` for the media engines.
    pub name: &'static str,
    /// Number of compute parts of the GPU.
    pub computes: u8,
    /// Number of memory parts of the GPU.
    pub memory: u8,
    /// The positions of its first memory part.
    pub positions: &'static [u8],
    /// How many slices of this profile a GPU can have at once.
    pub at_most: u8,
}

const fn profile(
    name: &'static str,
    computes: u8,
    memory: u8,
    positions: &'static [u8],
) -> Profile {
    Profile {
        name,
        computes,
        memory,
        positions,
        at_most: positions.len() as u8,
    }
}

/// A GPU has its media engines once.
const fn with_media(profile: Profile) -> Profile {
    Profile {
        at_most: 1,
        ..profile
    }
}

impl Cuts {
    /// A100, H100, H200 and other GPUs with seven compute parts and eight memory parts of any size.
    pub const SEVENTHS: Cuts = Cuts(&[
        profile("1g", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
        with_media(profile("1g+me", 1, 1, &[0, 1, 2, 3, 4, 5, 6])),
        profile("1g+", 1, 2, &[0, 2, 4, 6]),
        profile("2g", 2, 2, &[0, 2, 4]),
        profile("3g", 3, 4, &[0, 4]),
        profile("4g", 4, 4, &[0]),
        profile("7g", 7, 8, &[0]),
    ]);

    /// A30: four compute parts and four memory parts.
    pub const QUARTERS: Cuts = Cuts(&[
        profile("1g", 1, 1, &[0, 1, 2, 3]),
        with_media(profile("1g+me", 1, 1, &[0, 1, 2, 3])),
        profile("2g", 2, 2, &[0, 2]),
        with_media(profile("2g+me", 2, 2, &[0, 2])),
        profile("4g", 4, 4, &[0]),
    ]);

    pub fn profiles(self) -> impl Iterator<Item = (usize, &'static Profile)> {
        self.0.iter().enumerate()
    }

    /// The index of a profile by its name.
    pub fn named(self, name: &str) -> Option<usize> {
        self.0.iter().position(|profile| profile.name == name)
    }

    /// Whether slices can exist together: each at a position of its profile, without overlap.
    pub fn are_legal(self, slices: &[Slice]) -> bool {
        let mut taken = 0;
        slices.iter().all(|slice| {
            let parts = self.parts(*slice);
            let is_free = taken & parts == 0;
            taken |= parts;
            is_free && self.places(slice.profile).any(|place| place == *slice)
        })
    }

    /// Every possible slice of a profile.
    fn places(self, profile: usize) -> impl Iterator<Item = Slice> {
        let known = self.0.get(profile);
        let positions = known.map_or(&[][..], |known| known.positions);
        positions.iter().map(move |at| Slice { profile, at: *at })
    }

    /// The memory parts of a slice, one bit each.
    fn parts(self, slice: Slice) -> u16 {
        let memory = self
            .0
            .get(slice.profile)
            .map_or(0, |profile| profile.memory);
        let parts: u16 = (1 << memory) - 1;
        parts.checked_shl(slice.at.into()).unwrap_or(0)
    }
}

/// A GPU that can be partitioned, given by the profile that covers all of it. `7g.80gb` says which profiles it has
/// and how much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    pub cuts: Cuts,
    memory_gb: u32,
}

impl Whole {
    /// `None` if this is not such a profile.
    pub fn read(profile: &str) -> Option<Whole> {
        let (computes, memory_gb) = profile.strip_suffix("gb")?.split_once("g.")?;
        let cuts = match computes {
            "7" => Cuts::SEVENTHS,
            "4" => Cuts::QUARTERS,
            _ => return None,
        };
        let memory_gb = memory_gb.parse().ok();
        let memory_gb = memory_gb.filter(|memory| (1..=100_000).contains(memory))?;
        Some(Whole { cuts, memory_gb })
    }

    /// The index of a profile by NVIDIA's name for it on this GPU, such as `1g.10gb`.
    pub fn named(self, name: &str) -> Option<usize> {
        let mut profiles = self.cuts.profiles();
        let found = profiles.find(|(_, profile)| self.name(profile) == name);
        found.map(|(number, _)| number)
    }

    /// NVIDIA states memory in rounded gigabytes: an eighth of 141 is 18, and two of them are 35.
    fn name(self, profile: &Profile) -> String {
        let parts = self.cuts.profiles().map(|(_, profile)| profile.memory);
        let parts = u32::from(parts.max().unwrap_or(1));
        let memory_gb = (2 * self.memory_gb * u32::from(profile.memory) + parts) / (2 * parts);
        let media = if profile.name.ends_with("+me") {
            "+me"
        } else {
            ""
        };
        format!("{}g.{memory_gb}gb{media}", profile.computes)
    }
}

/// An existing or a possible slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice {
    pub profile: usize,
    /// Its first memory part.
    pub at: u8,
}

/// The slices of a GPU at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    pub busy: Vec<Slice>,
    pub free: Vec<Slice>,
}

/// Chooses the GPU that provides a slice; each GPU comes with the profile that it would provide. The fewest changes
/// win, then the GPU with the least left to provide otherwise, so that whole GPUs stay whole. Returns the index of
/// the GPU.
pub fn choose<'a>(
    gpus: impl IntoIterator<Item = (Cuts, &'a Cut, usize)>,
) -> Option<(usize, Recut)> {
    let ways = gpus
        .into_iter()
        .enumerate()
        .filter_map(|(place, (cuts, cut, profile))| {
            let recut = cut.recut(cuts, profile)?;
            Some(((recut.changes(), cut.best_left(cuts), place), recut))
        });
    let best = ways.min_by_key(|(order, _)| *order);
    best.map(|((_, _, place), recut)| (place, recut))
}

/// The changes that provide one slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recut {
    /// The slice that the workload gets.
    pub slice: Slice,
    /// Whether the slice must be created first; otherwise it exists and is free.
    pub is_new: bool,
    /// Free slices to remove first.
    pub gone: Vec<Slice>,
}

impl Recut {
    /// Number of slices to create or remove.
    pub fn changes(&self) -> usize {
        self.gone.len() + usize::from(self.is_new)
    }
}

impl Cut {
    /// How to provide a slice of a profile; `None` if busy slices prevent it.
    pub fn recut(&self, cuts: Cuts, profile: usize) -> Option<Recut> {
        let ways = cuts
            .places(profile)
            .filter_map(|slice| self.way(cuts, slice));
        ways.min_by_key(|way| {
            let (largest, places) = self.after(way).best_left(cuts);
            let leaves = std::cmp::Reverse((largest, places));
            (way.changes(), leaves, way.slice)
        })
    }

    /// How to provide exactly this slice.
    fn way(&self, cuts: Cuts, slice: Slice) -> Option<Recut> {
        if self.free.contains(&slice) {
            return Some(Recut {
                slice,
                is_new: false,
                gone: Vec::new(),
            });
        }
        let parts = cuts.parts(slice);
        let is_in_the_way = |other: &&Slice| cuts.parts(**other) & parts != 0;
        if self.busy.iter().any(|other| is_in_the_way(&other)) {
            return None;
        }
        let mut gone: Vec<Slice> = self.free.iter().filter(is_in_the_way).copied().collect();
        // Beyond the maximum of the profile, a free slice elsewhere is removed.
        let at_most = usize::from(cuts.0.get(slice.profile)?.at_most);
        let same = |other: &&Slice| other.profile == slice.profile;
        let stay = self.free.iter().filter(|other| !gone.contains(other));
        let stay: Vec<Slice> = stay.filter(same).copied().collect();
        let there = self.busy.iter().filter(same).count() + stay.len();
        let too_many = (there + 1).saturating_sub(at_most);
        gone.extend(stay.iter().take(too_many));
        (too_many <= stay.len()).then_some(Recut {
            slice,
            is_new: true,
            gone,
        })
    }

    /// The slices of the GPU after the repartition.
    pub fn after(&self, recut: &Recut) -> Cut {
        let stays = |slice: &&Slice| !recut.gone.contains(slice) && **slice != recut.slice;
        let mut busy = self.busy.clone();
        busy.push(recut.slice);
        Cut {
            busy,
            free: self.free.iter().filter(stays).copied().collect(),
        }
    }

    /// The largest slice that the GPU can still provide, and the number of slices that it could provide at all.
    fn best_left(&self, cuts: Cuts) -> ((u8, u8), usize) {
        let mut largest = (0, 0);
        let mut places = 0;
        for (number, profile) in cuts.profiles() {
            let ways = cuts
                .places(number)
                .filter_map(|slice| self.way(cuts, slice));
            let count = ways.count();
            places += count;
            if count > 0 {
                largest = largest.max((profile.computes, profile.memory));
            }
        }
        (largest, places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every possible set of slices of a GPU.
    fn layouts(cuts: Cuts) -> Vec<Vec<Slice>> {
        let all: Vec<Slice> = (0..cuts.0.len()).flat_map(|one| cuts.places(one)).collect();
        let mut layouts: Vec<Vec<Slice>> = vec![Vec::new()];
        for slice in all {
            let with = |layout: &Vec<Slice>| {
                let mut with = layout.clone();
                with.push(slice);
                is_legal(cuts, &with).then_some(with)
            };
            let more: Vec<Vec<Slice>> = layouts.iter().filter_map(with).collect();
            layouts.extend(more);
        }
        layouts
    }

    /// Whether slices do not overlap, compute parts suffice, and no profile exceeds its maximum.
    fn is_legal(cuts: Cuts, slices: &[Slice]) -> bool {
        let mut parts = 0_u32;
        let mut computes = 0;
        for slice in slices {
            let profile = cuts.0[slice.profile];
            let own = ((1_u32 << profile.memory) - 1) << slice.at;
            if parts & own != 0 || !profile.positions.contains(&slice.at) {
                return false;
            }
            parts |= own;
            computes += profile.computes;
        }
        let whole = cuts.0.iter().map(|profile| profile.computes).max().unwrap();
        let fits = (0..cuts.0.len()).all(|number| {
            let count = slices
                .iter()
                .filter(|slice| slice.profile == number)
                .count();
            count <= usize::from(cuts.0[number].at_most)
        });
        computes <= whole && fits
    }

    /// The least number of changes that provides a profile, by trying to remove each set of free slices.
    fn fewest_changes(cuts: Cuts, cut: &Cut, profile: usize) -> Option<usize> {
        if cut.free.iter().any(|slice| slice.profile == profile) {
            return Some(0);
        }
        let sets = 0..1_u32 << cut.free.len();
        let enough = |set: &u32| {
            let stays = cut.free.iter().enumerate();
            let stays = stays.filter(|(number, _)| set >> number & 1 == 0);
            let mut slices: Vec<Slice> = stays.map(|(_, slice)| *slice).collect();
            slices.extend(&cut.busy);
            cuts.places(profile).any(|slice| {
                let mut with = slices.clone();
                with.push(slice);
                is_legal(cuts, &with)
            })
        };
        let changes = sets.filter(enough).map(|set| set.count_ones() as usize + 1);
        changes.min()
    }

    fn check_all(cuts: Cuts, layouts: impl Iterator<Item = Vec<Slice>>) -> usize {
        let mut checked = 0;
        for layout in layouts {
            for set in 0..1_u32 << layout.len() {
                let part = |busy: u32| {
                    let numbered = layout.iter().enumerate();
                    let part = numbered.filter(|(number, _)| set >> number & 1 == busy);
                    part.map(|(_, slice)| *slice).collect()
                };
                let cut = Cut {
                    busy: part(1),
                    free: part(0),
                };
                for profile in 0..cuts.0.len() {
                    let recut = cut.recut(cuts, profile);
                    assert_eq!(
                        recut.as_ref().map(Recut::changes),
                        fewest_changes(cuts, &cut, profile),
                        "{cut:?} for {profile}"
                    );
                    checked += 1;
                    let Some(recut) = recut else { continue };
                    let after = cut.after(&recut);
                    let all: Vec<Slice> = after.busy.iter().chain(&after.free).copied().collect();
                    assert!(is_legal(cuts, &all), "{after:?}");
                    assert!(cut.busy.iter().all(|slice| after.busy.contains(slice)));
                    assert_eq!(after.busy.len(), cut.busy.len() + 1);
                }
            }
        }
        checked
    }

    #[test]
    fn whatever_can_be_had_is_had_by_the_fewest_changes() {
        let quarters = layouts(Cuts::QUARTERS);
        assert!(check_all(Cuts::QUARTERS, quarters.into_iter()) > 1000);
        // The smaller GPU covers the media engines; here they would only repeat the result of the smallest slice.
        let media = Cuts::SEVENTHS.named("1g+me").unwrap();
        let plain = |layout: &Vec<Slice>| layout.iter().all(|slice| slice.profile != media);
        let sevenths = layouts(Cuts::SEVENTHS).into_iter().filter(plain);
        assert!(check_all(Cuts::SEVENTHS, sevenths) > 10_000);
    }

    #[test]
    fn the_largest_slice_is_left_to_those_who_come_next() {
        let cuts = Cuts::SEVENTHS;
        let [one, two, three, four, seven] =
            ["1g", "2g", "3g", "4g", "7g"].map(|name| cuts.named(name).unwrap());
        let mut cut = Cut::default();
        let mut take = |profile: usize| {
            let recut = cut.recut(cuts, profile)?;
            cut = cut.after(&recut);
            Some(recut.slice.at)
        };
        assert_eq!(take(one), Some(6), "a four and a pair are left");
        assert_eq!(take(one), Some(4));
        assert_eq!(take(four), Some(0));
        assert_eq!(take(three), None);
        assert_eq!(take(two), None, "what is left stands in no pair");
        assert_eq!(take(one), Some(5));
        assert_eq!(take(seven), None);
    }

    #[test]
    fn only_what_is_free_is_cut_anew() {
        let cuts = Cuts::SEVENTHS;
        let [one, three] = ["1g", "3g"].map(|name| cuts.named(name).unwrap());
        let at = |at: u8| Slice { profile: one, at };
        let cut = Cut {
            busy: vec![at(1)],
            free: vec![at(0), at(4), at(6)],
        };
        let recut = cut.recut(cuts, three).unwrap();
        assert_eq!((recut.slice.at, recut.is_new), (4, true));
        assert_eq!(recut.gone, [at(4), at(6)]);
        let recut = cut.recut(cuts, one).unwrap();
        assert_eq!((recut.is_new, recut.gone.len()), (false, 0));
        assert_eq!(
            recut.slice,
            at(0),
            "beside what is busy, so that the other half stays whole"
        );
    }

    #[test]
    fn what_is_whole_stays_whole() {
        let cuts = Cuts::SEVENTHS;
        let two = cuts.named("2g").unwrap();
        let at = |at: u8| Slice { profile: two, at };
        let whole = Cut::default();
        let half = Cut {
            busy: vec![at(0)],
            free: Vec::new(),
        };
        let ready = Cut {
            busy: vec![at(0)],
            free: vec![at(2)],
        };
        let chosen = |gpus: &[&Cut], profile: &str| {
            let profile = cuts.named(profile).unwrap();
            let gpus = gpus.iter().map(|cut| (cuts, *cut, profile));
            choose(gpus).map(|(place, recut)| (place, recut.changes()))
        };
        assert_eq!(
            chosen(&[&whole, &half, &ready], "2g"),
            Some((2, 0)),
            "it is there already"
        );
        assert_eq!(chosen(&[&whole, &half], "2g"), Some((1, 1)));
        assert_eq!(chosen(&[&half, &ready, &whole], "7g"), Some((2, 1)));
        assert_eq!(chosen(&[&half, &ready], "7g"), None);
    }

    #[test]
    fn profiles_have_the_names_that_their_maker_gives_them() {
        let names = |whole: &str| {
            let whole = Whole::read(whole).unwrap();
            let profiles = whole.cuts.profiles();
            let names = profiles.map(|(_, profile)| whole.name(profile));
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            names("7g.80gb"),
            "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
        );
        assert_eq!(
            names("7g.141gb"),
            "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb"
        );
        assert_eq!(
            names("4g.24gb"),
            "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb"
        );
        let small = Whole::read("7g.40gb").unwrap();
        assert_eq!(small.named("1g.10gb"), Cuts::SEVENTHS.named("1g+"));
        assert_eq!(small.named("3g.40gb"), None);
        for nonsense in [
            "",
            "7g",
            "3g.40gb",
            "7g.0gb",
            "7g.80",
            "7g.-1gb",
            "7g.9999999gb",
        ] {
            assert_eq!(Whole::read(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn slices_that_overlap_or_stand_where_none_may_are_not_legal() {
        let cuts = Cuts::SEVENTHS;
        let slice = |name: &str, at: u8| Slice {
            profile: cuts.named(name).unwrap(),
            at,
        };
        assert!(cuts.are_legal(&[slice("4g", 0), slice("3g", 4)]));
        assert!(!cuts.are_legal(&[slice("3g", 0), slice("2g", 2)]));
        assert!(!cuts.are_legal(&[slice("3g", 2)]));
        assert!(!cuts.are_legal(&[slice("1g", 200)]));
    }
}
