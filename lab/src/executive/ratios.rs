//! How the designs stand to each other, and what is aimed at.
//!
//! Pure: from rows to figures.

use super::cell::Row;

/// One figure of two rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// What is compared: "release", "cycle", "wait".
    pub what: &'static str,
    /// The design that is divided by punctual's; "punctual" for the same with other numbers.
    pub design: &'static str,
    /// Its number of tasks, and the number of those of punctual.
    pub n: (usize, usize),
    /// As measured, the stamps included.
    pub raw: f64,
    /// With the floor taken off both; `None` where nothing is left of the divisor.
    pub less_floor: Option<f64>,
    /// What is aimed at, of the figure less the floor.
    pub aim: Aim,
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// That much or more.
    AtLeast(f64),
    /// That much or less.
    AtMost(f64),
}

/// What a row has of one kind.
type Of = fn(&Row) -> f64;

/// What is compared with what: kind, design, its n, punctual's n, aim.
const AIMS: [(&str, Of, &str, usize, usize, Aim); 7] = [
    ("release", |row| row.release_ns, "art-linux", 100, 100, Aim::AtLeast(5.0)),
    ("release", |row| row.release_ns, "ant", 100, 100, Aim::AtLeast(5.0)),
    ("release", |row| row.release_ns, "art-linux", 1_000, 1_000, Aim::AtLeast(30.0)),
    ("release", |row| row.release_ns, "ant", 1_000, 1_000, Aim::AtLeast(30.0)),
    ("cycle", |row| row.cycle_ns, "art-linux", 100, 100, Aim::AtLeast(25.0)),
    ("cycle", |row| row.cycle_ns, "ant", 100, 100, Aim::AtLeast(2.0)),
    ("wait", |row| row.wait_ns, "punctual", 100_000, 1, Aim::AtMost(2.0)),
];

/// The figures that these rows allow, of warm designs.
pub fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let row = |design: &str, n: usize| {
        rows.iter().find(|row| row.design == design && row.cell.n == n && !row.cell.cold)
    };
    let ratio = |&(what, of, design, n, own, aim): &(&'static str, Of, &'static str, _, _, _)| {
        let (other, own_row) = (row(design, n)?, row("punctual", own)?);
        let less = |row: &Row| of(row) - row.floor_ns;
        let less_floor = (less(own_row) > 0.0).then(|| less(other) / less(own_row));
        let raw = of(other) / of(own_row);
        Some(Ratio { what, design, n: (n, own), raw, less_floor, aim })
    };
    AIMS.iter().filter_map(ratio).collect()
}

impl Ratio {
    /// Whether the aim is reached.
    pub fn reached(&self) -> bool {
        match (self.aim, self.less_floor) {
            (Aim::AtLeast(aim), Some(figure)) => figure >= aim,
            (Aim::AtMost(aim), Some(figure)) => figure <= aim,
            // Nothing is left of the divisor: no quotient is too small, and none is known.
            (_, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::*;

    fn row(design: &'static str, n: usize, ns: f64) -> Row {
        Row {
            design,
            cell: Cell { n, cold: false },
            cycles: 9,
            release_ns: ns,
            dispatch_ns: ns,
            wait_ns: ns,
            cycle_ns: ns,
            floor_ns: 20.0,
        }
    }

    #[test]
    fn the_floor_is_taken_off_both_sides() {
        let rows = [row("punctual", 100, 30.0), row("ant", 100, 60.0), row("ant", 50, 9.0)];
        let figures = ratios(&rows);
        let told = |r: &Ratio| (r.what, r.raw, r.less_floor, r.reached());
        let told: Vec<_> = figures.iter().map(told).collect();
        assert_eq!(told, [("release", 2.0, Some(4.0), false), ("cycle", 2.0, Some(4.0), true)]);
    }

    #[test]
    fn cold_rows_are_left_out_and_no_figure_stands_on_nothing() {
        let mut cold = row("punctual", 100, 30.0);
        cold.cell.cold = true;
        assert!(ratios(&[cold, row("ant", 100, 60.0)]).is_empty());
        let figures = ratios(&[row("punctual", 1, 20.0), row("punctual", 100_000, 25.0)]);
        assert_eq!(figures.len(), 1);
        assert_eq!((figures[0].less_floor, figures[0].reached()), (None, false));
    }
}
