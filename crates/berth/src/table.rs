//! Tables and trees for terminals.
//!
//! Columns line up by what a character takes on the screen, not by bytes; a table that is too wide
//! gives up space in the columns its caller can spare, and nowhere else; and nothing a user typed
//! into a name can move the cursor or colour the screen.
//!
//! Pure: a table becomes a `String`. Measuring the terminal, deciding about colour and printing
//! are the caller's.

#[cfg(test)]
mod tests;

use unicode_width::UnicodeWidthStr;

/// What the output is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Cells in a line; `None` when nobody looks at lines, as in a pipe or a file.
    pub width: Option<usize>,
    pub colour: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// One column: its title, the side its cells lean to, and whether it can be shortened.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    title: &'static str,
    side: Side,
    shrinks: Option<u8>,
}

impl Column {
    /// A column of words.
    pub const fn left(title: &'static str) -> Self {
        Column {
            title,
            side: Side::Left,
            shrinks: None,
        }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str) -> Self {
        Column {
            title,
            side: Side::Right,
            shrinks: None,
        }
    }

    /// Lets the column be shortened where the screen is too narrow, the lowest `turn` first and
    /// never below its title. Columns without a turn are always shown in full.
    pub const fn shrinks(mut self, turn: u8) -> Self {
        self.shrinks = Some(turn);
        self
    }

    fn narrowest(&self) -> usize {
        self.title.width().max(SHORTEST_CELL)
    }
}

/// Room for three letters and the ellipsis: less tells nobody anything.
const SHORTEST_CELL: usize = 4;
const GAP: usize = 2;

/// A branch of a tree: its own cells, the first of which carries the guides, and what is below.
#[derive(Debug, Clone)]
pub struct Branch<const COLUMNS: usize> {
    pub cells: [String; COLUMNS],
    pub children: Vec<Branch<COLUMNS>>,
}

/// Rows under titles. The number of columns is part of the type, so no row can miss a cell.
#[derive(Debug, Clone)]
pub struct Table<const COLUMNS: usize> {
    columns: [Column; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
    when_empty: String,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table without rows; `when_empty` is the sentence shown for as long as it stays so, and
    /// should say what to do about it.
    pub fn new(columns: [Column; COLUMNS], when_empty: impl Into<String>) -> Self {
        Table {
            columns,
            rows: Vec::new(),
            when_empty: when_empty.into(),
        }
    }

    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| printable(&cell)));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a whole tree, one row for each branch, with guides in the first column.
    pub fn tree(&mut self, root: &Branch<COLUMNS>) {
        self.branch(root, "", "");
    }

    /// `guide` leads the branch itself, `margin` the rows below it.
    fn branch(&mut self, branch: &Branch<COLUMNS>, guide: &str, margin: &str) {
        let mut cells = branch.cells.clone();
        if let Some(label) = cells.first_mut() {
            label.insert_str(0, guide);
        }
        self.row(cells);
        let last = branch.children.len().saturating_sub(1);
        for (position, child) in branch.children.iter().enumerate() {
            let (guide, below) = if position == last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            self.branch(
                child,
                &format!("{margin}{guide}"),
                &format!("{margin}{below}"),
            );
        }
    }

    /// The whole table, every line ended; the sentence for an empty one if it has no rows.
    pub fn render(&self, screen: Screen) -> String {
        if self.rows.is_empty() {
            return format!("{}\n", self.when_empty);
        }
        let widths = self.widths(screen.width);
        let titles = self.line(&self.columns.map(|column| column.title.to_owned()), &widths);
        let mut out = match screen.colour {
            Colour::On => format!("\u{1b}[1m{titles}\u{1b}[0m\n"),
            Colour::Off => format!("{titles}\n"),
        };
        for row in &self.rows {
            out.push_str(&self.line(row, &widths));
            out.push('\n');
        }
        out
    }

    /// As wide as the widest cell; where that is too much, the columns that may shrink give back
    /// what is missing, one after the other. If even that is too little, lines run over: cutting
    /// what the caller held to be essential would be worse than a wrapped line.
    fn widths(&self, screen: Option<usize>) -> [usize; COLUMNS] {
        let mut widths = self.columns.map(|column| column.title.width());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let needed = widths.iter().sum::<usize>() + GAP * COLUMNS.saturating_sub(1);
        let mut missing = needed.saturating_sub(screen.unwrap_or(usize::MAX));
        let mut turns: Vec<(u8, usize)> = self
            .columns
            .iter()
            .enumerate()
            .filter_map(|(position, column)| Some((column.shrinks?, position)))
            .collect();
        turns.sort_unstable();
        for (_, position) in turns {
            let spare = widths[position].saturating_sub(self.columns[position].narrowest());
            let given = spare.min(missing);
            widths[position] -= given;
            missing -= given;
        }
        widths
    }

    fn line(&self, cells: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
        let mut line = String::new();
        for (position, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if position > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let cell = shortened(cell, *width);
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            let (before, after) = match self.columns[position].side {
                Side::Left => ("", padding.as_str()),
                Side::Right => (padding.as_str(), ""),
            };
            line.extend([before, &cell, after]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The text itself if it fits into `width` cells, else as much of its beginning as does, with an
/// ellipsis.
fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let end = text
        .char_indices()
        .map(|(start, character)| start + character.len_utf8())
        .take_while(|end| text[..*end].width() <= room)
        .last()
        .unwrap_or(0);
    format!("{}…", text[..end].trim_end())
}

/// One line that shows what it holds. Line breaks and tabs become spaces; control characters and
/// the marks that reorder text, with which a name could rewrite the screen around it, become `�`.
pub fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    };
    text.chars().map(shown).collect()
}
