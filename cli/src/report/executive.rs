//! What an executive costs, as rows and figures of a report.
//!
//! Plain data; measured and compared in `punctual_lab::executive`.

use punctual_lab::executive::{self, Aim};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One way to keep periodic tasks, with one number of tasks that are all due at once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExecutiveRow {
    /// "punctual"; "art-linux": the sorted wait queue; "ant": the six tables; "heap": a 4-ary heap;
    /// "wheel": a hierarchical timing wheel.
    pub(crate) design: String,
    /// How many tasks.
    pub(crate) n: usize,
    /// Whether all cache lines of the design were flushed before each measured stretch.
    pub(crate) cold: bool,
    /// Cycles measured in parts, and as many measured as a whole.
    pub(crate) cycles: usize,
    /// All tasks become ready. All times here are medians with the stamps in them.
    pub(crate) release_ns: f64,
    /// The first task is found.
    pub(crate) dispatch_ns: f64,
    /// The last of n tasks waits for its next release.
    pub(crate) wait_ns: f64,
    /// The release, then dispatch and wait of each task, measured as a whole.
    pub(crate) cycle_ns: f64,
    /// Two stamps with nothing between.
    pub(crate) floor_ns: f64,
}

/// How two rows stand to each other, warm.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Ratio {
    /// "release", "cycle", "wait".
    pub(crate) what: String,
    /// Whose time is divided by that of "punctual".
    pub(crate) design: String,
    /// Its number of tasks.
    pub(crate) n: usize,
    /// The number of tasks of "punctual".
    pub(crate) n_punctual: usize,
    /// As measured, the stamps included.
    pub(crate) raw: f64,
    /// With the floor taken off both; null where nothing is left to divide by.
    pub(crate) less_floor: Option<f64>,
    /// What the project aims at for the figure less the floor: so much at least.
    pub(crate) at_least: Option<f64>,
    /// Or so much at most.
    pub(crate) at_most: Option<f64>,
    /// Whether this run reached it.
    pub(crate) reached: bool,
}

/// What one turn of the executive's loop adds to the bare wait, with one task that does nothing and
/// the adaptive wait.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Turn {
    /// The period.
    pub(crate) period_ns: u64,
    /// Cycles of each loop.
    pub(crate) cycles: usize,
    /// Median from a wait's return to the next call, of a loop that only waits.
    pub(crate) bare_ns: f64,
    /// The same of the executive.
    pub(crate) executive_ns: f64,
    /// The difference.
    pub(crate) adds_ns: f64,
    /// What the project aims at: so much at most.
    pub(crate) at_most_ns: f64,
    /// Whether this run reached it.
    pub(crate) reached: bool,
}

impl From<&executive::Row> for ExecutiveRow {
    fn from(row: &executive::Row) -> Self {
        Self {
            design: row.design.to_owned(),
            n: row.cell.n,
            cold: row.cell.cold,
            cycles: row.cycles,
            release_ns: row.release_ns,
            dispatch_ns: row.dispatch_ns,
            wait_ns: row.wait_ns,
            cycle_ns: row.cycle_ns,
            floor_ns: row.floor_ns,
        }
    }
}

impl From<&executive::Ratio> for Ratio {
    fn from(ratio: &executive::Ratio) -> Self {
        let (at_least, at_most) = match ratio.aim {
            Aim::AtLeast(aim) => (Some(aim), None),
            Aim::AtMost(aim) => (None, Some(aim)),
        };
        Self {
            what: ratio.what.to_owned(),
            design: ratio.design.to_owned(),
            n: ratio.n.0,
            n_punctual: ratio.n.1,
            raw: ratio.raw,
            less_floor: ratio.less_floor,
            at_least,
            at_most,
            reached: ratio.reached(),
        }
    }
}

impl From<&executive::Turn> for Turn {
    fn from(turn: &executive::Turn) -> Self {
        Self {
            period_ns: turn.period_ns,
            cycles: turn.cycles,
            bare_ns: turn.bare_ns,
            executive_ns: turn.executive_ns,
            adds_ns: turn.adds_ns(),
            at_most_ns: executive::Turn::AIM_NS,
            reached: turn.adds_ns() <= executive::Turn::AIM_NS,
        }
    }
}
