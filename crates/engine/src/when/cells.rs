//! A slice of time cut into equal cells, to find cheaply where enough candidates could start.

use std::ops::Range;

use crate::busy::Stretch;

/// As many as fit into the processor's first-level cache.
const CELLS: usize = 4096;

pub struct Cells {
    slice: Stretch,
    /// The length of a cell is this power of two.
    shift: u32,
    /// For each cell, the change from the cell before in the number of candidates that could start at some moment of
    /// it.
    some: Vec<i32>,
    /// The same for candidates that could start at every moment of it.
    every: Vec<i32>,
}

impl Cells {
    pub fn new(slice: Stretch) -> Cells {
        let length = slice.1 - slice.0;
        let mut shift = 0;
        while length >> shift >= CELLS as i64 {
            shift += 1;
        }
        Cells {
            slice,
            shift,
            some: vec![0; CELLS + 2],
            every: vec![0; CELLS + 2],
        }
    }

    /// The cells that overlap a part of the slice.
    pub fn touched_by(&self, (start, end): Stretch) -> Range<usize> {
        let cell = |at: i64| ((at - self.slice.0) >> self.shift) as usize;
        cell(start)..cell(end - 1) + 1
    }

    pub fn count(&mut self, part: Stretch) {
        let touched = self.touched_by(part);
        self.some[touched.start] += 1;
        self.some[touched.end] -= 1;
        // The part covers its first and last cell fully only if it begins and ends with them.
        let begin = |cell: usize| self.slice.0 + ((cell as i64) << self.shift);
        let first = touched.start + usize::from(begin(touched.start) < part.0);
        let end = touched.end - usize::from(begin(touched.end).min(self.slice.1) > part.1);
        if first < end {
            self.every[first] += 1;
            self.every[end] -= 1;
        }
    }

    /// The stretches in which at least `count` candidates could start at every moment, and the cells in doubt.
    pub fn judge(&self, count: usize) -> (Vec<Stretch>, Doubt) {
        let mut sure = Vec::new();
        let mut doubts_before = Vec::with_capacity(CELLS + 1);
        let (mut some, mut every, mut doubts) = (0i64, 0i64, 0);
        let wanted = i64::try_from(count).unwrap_or(i64::MAX);
        for cell in 0..CELLS {
            doubts_before.push(doubts);
            some += i64::from(self.some[cell]);
            every += i64::from(self.every[cell]);
            let start = self.slice.0 + ((cell as i64) << self.shift);
            if every >= wanted {
                sure.push((start, (start + (1 << self.shift)).min(self.slice.1)));
            } else if some >= wanted {
                doubts += 1;
            }
        }
        doubts_before.push(doubts);
        (sure, Doubt { doubts_before })
    }
}

pub struct Doubt {
    /// The number of cells in doubt before each cell; one entry more than there are cells.
    doubts_before: Vec<u32>,
}

impl Doubt {
    pub fn any(&self) -> bool {
        self.doubts_before.last().is_some_and(|doubts| *doubts > 0)
    }

    pub fn touched(&self, cells: Range<usize>) -> bool {
        self.doubts_before[cells.start] < self.doubts_before[cells.end]
    }
}
