//! What a comparison says, as plain data: the key `compare`.
//!
//! The numbers of each run are `punctual_analysis::compare::RunComparison`.

use punctual_analysis::compare::{Family, RunComparison, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results compared with each other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comparison {
    /// The family of all tests of all pairs: verdicts and intervals hold together (Holm).
    pub(crate) family: Family,
    /// The sides; the first is the reference.
    pub(crate) sides: Vec<ComparedSide>,
    /// One for each side after the first.
    pub(crate) pairs: Vec<Pair>,
}

/// One side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedSide {
    /// "A", "B", "baseline NAME", "this run".
    pub(crate) label: String,
    /// Its results.
    pub(crate) results: Vec<ComparedResult>,
}

/// One result of a side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedResult {
    /// The file.
    pub(crate) from: String,
    /// The subcommand that measured; "samples" for a sample file alone.
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started_at: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Whether it ended early.
    pub(crate) incomplete: bool,
}

/// A side, compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pair {
    /// Label of the first side.
    pub(crate) a: String,
    /// Label of the other.
    pub(crate) b: String,
    /// The verdict over all its runs.
    pub(crate) verdict: Verdict,
    /// Other differences between the two sides.
    pub(crate) differences: Vec<Difference>,
    /// Warnings about the comparison.
    pub(crate) notes: Vec<String>,
    /// Runs that only A has.
    pub(crate) only_in_a: Vec<String>,
    /// Runs that only B has.
    pub(crate) only_in_b: Vec<String>,
    /// The runs that both have.
    pub(crate) runs: Vec<RunComparison>,
}

/// A difference between the two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Difference {
    /// The key of a fact, or the name of a part of the setup.
    pub(crate) what: String,
    /// In A.
    pub(crate) a: String,
    /// In B.
    pub(crate) b: String,
}
