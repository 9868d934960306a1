//! How the designs stand to each other, and what is aimed at.
//!
//! Pure: from rows to figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cell::ExecutiveRow;

/// The ratio of two rows, with warm caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// "release", "cycle", "wait".
    pub what: String,
    /// The design whose time is divided by that of "punctual".
    pub design: String,
    /// Its number of tasks.
    pub n: usize,
    /// The number of tasks of "punctual".
    pub n_punctual: usize,
    /// As measured, including the timestamps.
    pub raw: f64,
    /// With the floor subtracted from both; null if the divisor is then not positive.
    pub less_floor: Option<f64>,
    /// The target for the ratio without the floor: at least this.
    pub at_least: Option<f64>,
    /// Or at most this.
    pub at_most: Option<f64>,
    /// Whether this run reached it.
    pub reached: bool,
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// That much or more.
    AtLeast(f64),
    /// That much or less.
    AtMost(f64),
}

/// What a row has of one kind.
type Of = fn(&ExecutiveRow) -> f64;

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
pub(super) fn ratios(rows: &[ExecutiveRow]) -> Vec<Ratio> {
    let row = |design: &str, n: usize| {
        rows.iter().find(|row| row.design == design && row.n == n && !row.cold)
    };
    let ratio = |&(what, of, design, n, own, aim): &(&'static str, Of, &'static str, _, _, _)| {
        let (other, own_row) = (row(design, n)?, row("punctual", own)?);
        let less = |row: &ExecutiveRow| of(row) - row.floor_ns;
        let less_floor = (less(own_row) > 0.0).then(|| less(other) / less(own_row));
        let raw = of(other) / of(own_row);
        let (at_least, at_most) = match aim {
            Aim::AtLeast(least) => (Some(least), None),
            Aim::AtMost(most) => (None, Some(most)),
        };
        Some(Ratio {
            what: what.to_owned(),
            design: design.to_owned(),
            n,
            n_punctual: own,
            raw,
            less_floor,
            at_least,
            at_most,
            reached: reached(aim, less_floor),
        })
    };
    AIMS.iter().filter_map(ratio).collect()
}

/// Whether the aim is reached.
fn reached(aim: Aim, figure: Option<f64>) -> bool {
    match (aim, figure) {
        (Aim::AtLeast(aim), Some(figure)) => figure >= aim,
        (Aim::AtMost(aim), Some(figure)) => figure <= aim,
        // Nothing is left of the divisor: no quotient is too small, and none is known.
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(design: &'static str, n: usize, ns: f64) -> ExecutiveRow {
        ExecutiveRow {
            design: design.to_owned(),
            n,
            cold: false,
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
        let shown = |r: &Ratio| (r.what.clone(), r.raw, r.less_floor, r.reached);
        let shown: Vec<_> = figures.iter().map(shown).collect();
        let of = |what: &str, reached| (what.to_owned(), 2.0, Some(4.0), reached);
        assert_eq!(shown, [of("release", false), of("cycle", true)]);
    }

    #[test]
    fn cold_rows_are_left_out_and_no_figure_stands_on_nothing() {
        let mut cold = row("punctual", 100, 30.0);
        cold.cold = true;
        assert!(ratios(&[cold, row("ant", 100, 60.0)]).is_empty());
        let figures = ratios(&[row("punctual", 1, 20.0), row("punctual", 100_000, 25.0)]);
        assert_eq!(figures.len(), 1);
        assert_eq!((figures[0].less_floor, figures[0].reached), (None, false));
    }
}
