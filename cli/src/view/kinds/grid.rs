//! Results of one kind on one grid: a row a figure, a column a result, and how sure a difference
//! is.

use punctual_analysis::interval::Interval;
use punctual_analysis::plain::significant;
use punctual_document::{Block, Column, Frame, Item, Items, ItemsKind, Table, numbers, words};
use punctual_report::grid::{Agreement, FigureGrid, GridCell, GridClaim, GridRow};
use punctual_report::reproduced::{ReproducedClaim, in_words};
use punctual_report::{ComparedSide, Comparison};

use crate::format;

/// The longest name of a figure in a terminal, beside a paper's value and without; and that value.
const NAME: usize = 30;
const NAME_ALONE: usize = 44;
const PUBLISHED: usize = 14;

/// The claims, then all figures, then how sure that is.
pub(crate) fn blocks(comparison: &Comparison, grid: &FigureGrid) -> Vec<Block> {
    let mut blocks = claims(&comparison.sides, grid);
    blocks.push(Block::Break);
    blocks.push(figures(&comparison.sides, grid));
    blocks.extend([Block::Break, Block::words(how_sure(comparison, grid))]);
    blocks
}

/// Each claim, with what every result says of it.
fn claims(sides: &[ComparedSide], grid: &FigureGrid) -> Vec<Block> {
    if grid.claims.is_empty() {
        return Vec::new();
    }
    let count = |agreement: Agreement| {
        grid.claims.iter().filter(|claim| claim.agreement() == agreement).count()
    };
    let summary = format!(
        "{} claims: {} agree, {} differ, {} undecided",
        grid.claims.len(),
        count(Agreement::Agree),
        count(Agreement::Differ),
        count(Agreement::Undecided)
    );
    let item = |claim: &GridClaim| {
        let answers = sides.iter().zip(claim.holds.iter().zip(&claim.because));
        let answer = |(side, (holds, because)): (&ComparedSide, (&Option<_>, &String))| match holds
            .map(ReproducedClaim::word_of)
        {
            Some(word) if because.is_empty() => format!("{}: {word}", side.label),
            Some(word) => format!("{}: {word} ({because})", side.label),
            None => format!("{}: not judged", side.label),
        };
        let answers: Vec<String> = answers.map(answer).collect();
        Item::new(claim.agreement().word(), format!("{}. {}", claim.claim, answers.join("; ")))
    };
    let items = grid.claims.iter().map(item).collect();
    vec![
        Block::Break,
        Block::words(summary),
        Items::new(ItemsKind::Answers, items).spaced(0, 2).at(1).into(),
    ]
}

/// All figures: with their intervals on a page, without in a terminal.
fn figures(sides: &[ComparedSide], grid: &FigureGrid) -> Block {
    let has_paper = grid.rows.iter().any(|row| !row.published.is_empty());
    let others = |columns: &mut Vec<Column>, head: &dyn Fn(&str) -> Column| {
        columns.extend(sides.iter().skip(1).map(|side| head(&side.label)));
    };
    let mut heads = vec![words("what"), words("figure"), words("unit")];
    let mut brief = vec![words("figure").at_least(NAME)];
    if has_paper {
        heads.push(words("paper"));
        brief.push(words("paper"));
    }
    for side in sides {
        heads.push(numbers(&side.label));
        brief.push(numbers(&side.label).at_least(7));
    }
    let against = |label: &str| words(&format!("{label} against {}", sides[0].label));
    others(&mut heads, &against);
    others(&mut brief, &|label| if sides.len() == 2 { words("verdict") } else { against(label) });
    let cells = |row: &GridRow| {
        let unit = RowUnit::of(row);
        let mut cells = vec![grid.owner_words(row), row.figure.clone(), unit.name.to_owned()];
        cells.extend(has_paper.then(|| row.published.clone()));
        cells.extend(row.cells.iter().map(|cell| unit.whole(*cell)));
        cells.extend(verdicts(row));
        cells
    };
    let brief_cells = |row: &GridRow| {
        let unit = RowUnit::of(row);
        let name = match grid.is_of_papers() {
            true => format!("{}, {}", in_words(&row.name, &row.figure, false), unit.name),
            false => format!("{}: {}, {}", row.name, row.figure, unit.name),
        };
        let most = if has_paper { NAME } else { NAME_ALONE };
        let mut cells = vec![shortened(&name, most)];
        cells.extend(has_paper.then(|| shortened(&row.published, PUBLISHED)));
        cells.extend(row.cells.iter().map(|cell| unit.value(*cell)));
        cells.extend(verdicts(row));
        cells
    };
    let rows = grid.rows.iter().map(cells).collect();
    let caption = "Figures side by side; in brackets the interval of each";
    let brief_rows = grid.rows.iter().map(brief_cells).collect();
    Table::new(caption, heads, rows).brief(Frame::Bare, brief, brief_rows).into()
}

fn verdicts(row: &GridRow) -> impl Iterator<Item = String> {
    (0..row.relations.len()).map(|at| row.word(at).to_owned())
}

/// The unit in which people read all cells of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RowUnit<'r> {
    name: &'r str,
    /// Factor from the row's own unit to this one.
    factor: f64,
}

impl<'r> RowUnit<'r> {
    /// The largest that leaves no cell below 1. What a paper prints beside it keeps its unit.
    fn of(row: &'r GridRow) -> Self {
        let larger: &[(f64, &str)] = match row.unit.as_str() {
            _ if !row.published.is_empty() => &[],
            "ns" => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")],
            "Hz" => &[(1e6, "MHz"), (1e3, "kHz")],
            _ => &[],
        };
        let sizes = row.cells.iter().flatten().map(|cell| cell.value.value.abs());
        let least = sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        let unit = larger.iter().find(|(own, _)| least.is_finite() && least >= *own);
        match unit {
            Some(&(own, name)) => Self { name, factor: 1.0 / own },
            None => Self { name: &row.unit, factor: 1.0 },
        }
    }

    /// A value with its interval, where it has one.
    fn whole(self, cell: Option<GridCell>) -> String {
        match cell.map(|cell| cell.value.times(self.factor)) {
            None => "-".to_owned(),
            Some(Interval { value, low: None, high: None }) => significant(value),
            Some(value) => value.to_string(),
        }
    }

    fn value(self, cell: Option<GridCell>) -> String {
        cell.map_or_else(|| "-".to_owned(), |cell| significant(cell.value.value * self.factor))
    }
}

/// Words of at most so many characters.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// The tests that the verdicts rest on, and the number that chance alone would decide.
fn how_sure(comparison: &Comparison, grid: &FigureGrid) -> String {
    let tests = comparison.family.tests;
    let rows = grid.rows.iter().map(|row| row.relations.len()).sum::<usize>() as u64;
    if tests == 0 {
        return "No figure has an interval on both sides, so no difference is decided: measure \
                again with a version that gives intervals."
            .to_owned();
    }
    let chance = format::rate(tests as f64 * EACH_WRONG);
    format!(
        "{} of {} differences could be tested: intervals that do not meet, each at 98.75 %; of so \
         many, chance alone may decide up to {chance}. The interval of a highest frequency is from \
         what passed to what failed. Maxima, ranges and single figures have none and stay \
         undecided.",
        format::count(tests),
        format::count(rows),
    )
}

/// The probability that two intervals that do not meet are of equal values.
const EACH_WRONG: f64 = 0.025;

#[cfg(test)]
mod tests {
    use punctual_document::{markdown, text};
    use punctual_report::Report;

    use super::*;
    use crate::comparison::grid::{self, GridSide};

    #[test]
    fn three_results_have_a_column_each_and_every_difference_its_verdict() {
        let report = include_str!("../../../tests/results/kinds/response.json");
        let report = Report::parse(report).expect("a result");
        let labels = ["A", "B", "C"];
        let compared =
            grid::of(&labels.map(|label| GridSide { label, from: label, report: &report }));
        let compared = compared.expect("one kind").expect("a grid");
        let drawn = blocks(&compared, compared.grid.as_ref().expect("a grid"));
        let page = markdown::rendered(&drawn);
        assert!(page.contains("B against A") && page.contains("C against A"), "{page}");
        assert!(page.contains("undecided"), "{page}");
        let shown = text::rendered(&drawn).to_string();
        assert!(shown.contains("stage 1: start, median, µs"), "{shown}");
    }

    #[test]
    fn a_row_is_in_the_unit_that_leaves_none_of_its_cells_below_one() {
        let cell = |value: f64| {
            Some(GridCell { value: Interval::between(value / 2.0, value, value * 2.0), n: None })
        };
        let row = |unit: &str, published: &str, cells: [f64; 2]| GridRow {
            name: "idle".to_owned(),
            figure: "start".to_owned(),
            unit: unit.to_owned(),
            published: published.to_owned(),
            better: None,
            cells: cells.map(cell).into(),
            relations: Vec::new(),
        };
        let waits = row("ns", "", [23_855.0, 3_660_797.0]);
        let unit = RowUnit::of(&waits);
        assert_eq!(unit.name, "µs");
        assert_eq!(unit.whole(waits.cells[0]), "23.9 [11.9, 47.7]");
        assert_eq!(unit.value(waits.cells[1]), "3661");
        assert_eq!(RowUnit::of(&row("Hz", "", [6_255.0, 0.0])).name, "kHz");
        assert_eq!(RowUnit::of(&row("ns", "", [0.0, 0.0])).name, "ns");
        assert_eq!(RowUnit::of(&row("ns", "1000s", [23_855.0, 4e6])).name, "ns");
        assert_eq!(RowUnit::of(&row("ticks", "", [23_855.0, 4e6])).name, "ticks");
    }

    #[test]
    fn words_of_a_paper_are_cut_for_a_terminal_at_whole_characters() {
        assert_eq!(shortened("µµµµ", 2), "µµ…");
        assert_eq!(shortened("µµ", 2), "µµ");
    }
}
