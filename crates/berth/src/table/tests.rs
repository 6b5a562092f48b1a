use super::*;

const PLAIN: Screen = Screen {
    width: None,
    colour: Colour::Off,
};

fn narrow(width: usize) -> Screen {
    Screen {
        width: Some(width),
        ..PLAIN
    }
}

fn cells<const COLUMNS: usize>(texts: [&str; COLUMNS]) -> [String; COLUMNS] {
    texts.map(str::to_owned)
}

fn reservations() -> Table<4> {
    let mut table = Table::new(
        [
            Column::left("RESOURCE"),
            Column::right("GPUS"),
            Column::left("PROJECT").shrinks(2),
            Column::left("NOTE").shrinks(1),
        ],
        "No reservations. `berth book` makes one.",
    );
    table.row(cells([
        "node-1",
        "8",
        "protein-folding",
        "retraining after the fix",
    ]));
    table.row(cells(["node-12", "16", "weather", ""]));
    table
}

/// Expected output, one string for each line.
#[track_caller]
fn shows(shown: &str, lines: &[&str]) {
    assert_eq!(shown.lines().collect::<Vec<_>>(), lines);
    assert!(shown.ends_with('\n'), "the last line is not ended");
    for line in shown.lines() {
        assert_eq!(line, line.trim_end(), "trailing spaces");
    }
}

#[test]
fn columns_line_up_and_numbers_lean_right() {
    shows(
        &reservations().render(PLAIN),
        &[
            "RESOURCE  GPUS  PROJECT          NOTE",
            "node-1       8  protein-folding  retraining after the fix",
            "node-12     16  weather",
        ],
    );
}

#[test]
fn the_least_important_column_is_shortened_first() {
    shows(
        &reservations().render(narrow(50)),
        &[
            "RESOURCE  GPUS  PROJECT          NOTE",
            "node-1       8  protein-folding  retraining after…",
            "node-12     16  weather",
        ],
    );
    shows(
        &reservations().render(narrow(35)),
        &[
            "RESOURCE  GPUS  PROJECT        NOTE",
            "node-1       8  protein-fold…  ret…",
            "node-12     16  weather",
        ],
    );
}

#[test]
fn what_may_not_shrink_is_never_cut() {
    shows(
        &reservations().render(narrow(5)),
        &[
            "RESOURCE  GPUS  PROJECT  NOTE",
            "node-1       8  protei…  ret…",
            "node-12     16  weather",
        ],
    );
}

#[test]
fn a_screen_that_is_wide_enough_changes_nothing() {
    let table = reservations();
    assert_eq!(table.render(narrow(57)), table.render(PLAIN));
    assert_ne!(table.render(narrow(56)), table.render(PLAIN));
}

#[test]
fn titles_are_bold_only_where_colour_is_on() {
    let mut table = Table::new(
        [Column::left("NAME"), Column::left("NOTE")],
        "Nothing here.",
    );
    table.row(cells(["rack-1", ""]));
    let colour = Screen {
        colour: Colour::On,
        ..PLAIN
    };
    assert_eq!(
        table.render(colour),
        "\u{1b}[1mNAME    NOTE\u{1b}[0m\nrack-1\n"
    );
    assert_eq!(table.render(PLAIN), "NAME    NOTE\nrack-1\n");
}

#[test]
fn an_empty_table_says_what_to_do() {
    let table = Table::new(
        [Column::left("NAME")],
        "No sites yet. `berth site create` makes one.",
    );
    assert_eq!(
        table.render(PLAIN),
        "No sites yet. `berth site create` makes one.\n"
    );
}

#[test]
fn wide_and_combining_characters_take_their_cells() {
    let mut table = Table::new(
        [Column::left("NAME").shrinks(1), Column::right("SEATS")],
        "None.",
    );
    table.row(cells(["会議室", "12"]));
    table.row(cells(["salle e\u{301}tage", "4"]));
    table.row(cells(["lab 🔬", "104"]));
    shows(
        &table.render(PLAIN),
        &[
            "NAME         SEATS",
            "会議室          12",
            "salle e\u{301}tage      4",
            "lab 🔬         104",
        ],
    );
    // Half a wide character does not exist: the cell stays one short and is padded.
    shows(
        &table.render(narrow(12)),
        &[
            "NAME   SEATS",
            "会議…     12",
            "sall…      4",
            "lab…     104",
        ],
    );
}

#[test]
fn a_name_cannot_write_on_the_screen() {
    let mut table = Table::new([Column::left("NAME"), Column::left("NOTE")], "None.");
    table.row(cells(["evil\u{1b}[2Jname", "two\nlines\tand \u{202e}back"]));
    shows(
        &table.render(PLAIN),
        &["NAME          NOTE", "evil�[2Jname  two lines and �back"],
    );
}

fn branch<const COLUMNS: usize>(
    texts: [&str; COLUMNS],
    children: Vec<Branch<COLUMNS>>,
) -> Branch<COLUMNS> {
    Branch {
        cells: cells(texts),
        children,
    }
}

#[test]
fn a_tree_has_guides_and_aligned_columns() {
    let mut table = Table::new(
        [
            Column::left("RESOURCE").shrinks(1),
            Column::left("STATUS"),
            Column::right("GPUS"),
        ],
        "No resources.",
    );
    table.tree(&branch(
        ["rack-1", "active", "16"],
        vec![
            branch(
                ["node-1", "active", "8"],
                vec![
                    branch(["gpu-0", "active", "1"], vec![]),
                    branch(["gpu-1 (A100 80 GB)", "maintenance", "1"], vec![]),
                ],
            ),
            branch(
                ["node-2", "active", "8"],
                vec![branch(["gpu-0", "active", "1"], vec![])],
            ),
        ],
    ));
    table.tree(&branch(["lab", "active", ""], vec![]));
    shows(
        &table.render(PLAIN),
        &[
            "RESOURCE                  STATUS       GPUS",
            "rack-1                    active         16",
            "├─ node-1                 active          8",
            "│  ├─ gpu-0               active          1",
            "│  └─ gpu-1 (A100 80 GB)  maintenance     1",
            "└─ node-2                 active          8",
            "   └─ gpu-0               active          1",
            "lab                       active",
        ],
    );
    shows(
        &table.render(narrow(32)),
        &[
            "RESOURCE       STATUS       GPUS",
            "rack-1         active         16",
            "├─ node-1      active          8",
            "│  ├─ gpu-0    active          1",
            "│  └─ gpu-1…   maintenance     1",
            "└─ node-2      active          8",
            "   └─ gpu-0    active          1",
            "lab            active",
        ],
    );
}
