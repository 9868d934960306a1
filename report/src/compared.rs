//! Results held against a first one: runs by tests, other figures on a grid.
//!
//! Plain data, and what of it is worse or open.

use punctual_analysis::compare::{self, Family, RunComparison};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grid::FigureGrid;
use crate::judge::About;

/// Results compared with each other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The family of all tests of all pairs: verdicts and intervals hold together (Holm).
    pub family: Family,
    /// The sides; the first is the reference.
    pub sides: Vec<ComparedSide>,
    /// One for each side after the first.
    pub pairs: Vec<Pair>,
    /// What of the surroundings is the change that is compared, as `--changed` names it: "loads"
    /// (how they ran), "others" (what else ran on the CPU) or "period" (of the loop). Without it
    /// they withhold a verdict. Not there where nothing is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Their figures side by side, where they are of a kind that is compared by these; not there
    /// for other kinds, whose runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<FigureGrid>,
}

impl Comparison {
    /// Returns true where a side is worse than the first in some run or figure.
    pub fn is_worse(&self) -> bool {
        self.pairs
            .iter()
            .any(|pair| matches!(pair.verdict, compare::Verdict::Worse | compare::Verdict::Mixed))
            || self.grid.as_ref().is_some_and(FigureGrid::is_worse)
    }

    /// The name of the baseline that the first side is; `None` where that is no baseline.
    pub fn baseline(&self) -> Option<&str> {
        self.sides.first()?.baseline.as_deref()
    }

    /// Each run that is worse, with its sentence.
    pub fn worse(&self) -> impl Iterator<Item = (About, String)> {
        let is_worse =
            |verdict| matches!(verdict, compare::Verdict::Worse | compare::Verdict::Mixed);
        let worse = self.runs().filter(move |(_, run)| is_worse(run.verdict));
        worse.map(|(about, run)| (about, run_words(run)))
    }

    /// Each run and figure of a side that is worse than that of the first, in a sentence that names
    /// both sides.
    pub fn worse_words(&self) -> Vec<String> {
        let is_worse =
            |verdict| matches!(verdict, compare::Verdict::Worse | compare::Verdict::Mixed);
        let mut worse = Vec::new();
        for pair in &self.pairs {
            let runs = pair.runs.iter().filter(|run| is_worse(run.verdict));
            let named =
                runs.map(|run| format!("{} against {}: {}", pair.b, pair.a, run_words(run)));
            worse.extend(named);
        }
        if let Some(grid) = &self.grid {
            for (at, pair) in self.pairs.iter().enumerate() {
                let rows = grid.rows.iter().filter(|row| is_worse(row.verdict(at)));
                let named = rows.map(|row| {
                    let owner = grid.owner_words(row);
                    format!("{} against {}: {owner}: {}: worse", pair.b, pair.a, row.figure)
                });
                worse.extend(named);
            }
        }
        worse
    }

    /// Each run of which it is not known whether it is worse, with its sentence.
    pub fn open(&self) -> impl Iterator<Item = (About, String)> {
        let open = self.runs().filter(|(_, run)| run.is_open());
        open.map(|(about, run)| (about, run_words(run)))
    }

    /// All runs, each with its place.
    fn runs(&self) -> impl Iterator<Item = (About, &RunComparison)> {
        let pairs = self.pairs.iter().enumerate();
        pairs.flat_map(|(pair, sides)| {
            let runs = sides.runs.iter().enumerate();
            runs.map(move |(at, run)| (About::Run { pair, at }, run))
        })
    }
}

/// A run's name and the sentence of its comparison.
pub(crate) fn run_words(run: &RunComparison) -> String {
    format!("{}: {}", run.name, run.statement)
}

/// One side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComparedSide {
    /// "A", "B", "baseline NAME", "this run".
    pub label: String,
    /// The name of the baseline that it is; not there where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The results of this side.
    pub results: Vec<ComparedResult>,
}

/// One result of a side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ComparedResult {
    /// The path of its file.
    pub from: String,
    /// The subcommand that measured; "samples" for a sample file alone.
    pub experiment: String,
    /// The start, in UTC (RFC 3339).
    pub started_at: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// True where it ended early.
    pub incomplete: bool,
}

/// A side, compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Label of the first side.
    pub a: String,
    /// Label of the other.
    pub b: String,
    /// The verdict over all its runs.
    pub verdict: compare::Verdict,
    /// Other differences between the two sides.
    pub differences: Vec<Difference>,
    /// Warnings about the comparison.
    pub notes: Vec<String>,
    /// Runs that only A has.
    pub only_in_a: Vec<String>,
    /// Runs that only B has.
    pub only_in_b: Vec<String>,
    /// The runs that both have.
    pub runs: Vec<RunComparison>,
}

/// A difference between the two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The key of a fact, or the name of a part of the setup.
    pub what: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
}
