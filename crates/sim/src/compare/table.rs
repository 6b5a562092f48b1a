//! The figures for a terminal, in eighty columns for any number of policies.

use super::Comparison;
use crate::show::shortened;

const NAME: usize = 20;
const CELL: usize = 15;
const PER_BLOCK: usize = 4;

impl Comparison {
    /// A table, with a star next to the best value of each figure.
    pub fn table(&self) -> String {
        let figures = self.figures();
        let mut text = String::new();
        let places: Vec<usize> = (0..self.tried.len()).collect();
        for block in places.chunks(PER_BLOCK) {
            if !text.is_empty() {
                text.push('\n');
            }
            let names = block.iter().map(|place| {
                let name = &self.tried[*place].candidate.name;
                format!("{} ", shortened(name, CELL - 2))
            });
            push(&mut text, "", names);
            for figure in &figures {
                let cells = block.iter().map(|place| {
                    let star = if figure.best[*place] { '*' } else { ' ' };
                    format!("{}{star}", figure.shown[*place])
                });
                push(&mut text, figure.name, cells);
            }
        }
        text
    }
}

fn push(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!("{cell:>CELL$}")).collect();
    text.push_str(format!("{name:<NAME$}{cells}").trim_end());
    text.push('\n');
}
