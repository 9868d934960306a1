//! What a comparison says, as plain data: the key `compare`.
//!
//! The numbers of each run are `punctual_analysis::compare::RunComparison`.

use punctual_analysis::compare::{Family, RunComparison, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results compared with each other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comparison {
    /// The tests of all pairs, which hold together (Holm): every verdict and every interval is of a
    /// level that makes them do so.
    pub(crate) family: Family,
    /// The sides; the first is what the others are compared with.
    pub(crate) sides: Vec<ComparedSide>,
    /// One for each side after the first.
    pub(crate) pairs: Vec<Pair>,
}

/// One side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedSide {
    /// "A", "B", "baseline NAME", "this run".
    pub(crate) label: String,
    /// What it is made of.
    pub(crate) results: Vec<ComparedResult>,
}

/// One result of a side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedResult {
    /// Where it was read.
    pub(crate) from: String,
    /// The subcommand that measured; "samples" for a sample file alone.
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started_at: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Whether it ended before its time.
    pub(crate) incomplete: bool,
}

/// A side, compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pair {
    /// Label of the first side.
    pub(crate) a: String,
    /// Label of the other.
    pub(crate) b: String,
    /// What all its runs say together.
    pub(crate) verdict: Verdict,
    /// What else is not the same in the two.
    pub(crate) differences: Vec<Difference>,
    /// What a reader should know before believing it.
    pub(crate) notes: Vec<String>,
    /// Runs that only A has.
    pub(crate) only_in_a: Vec<String>,
    /// Runs that only B has.
    pub(crate) only_in_b: Vec<String>,
    /// The runs that both have.
    pub(crate) runs: Vec<RunComparison>,
}

/// Something that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Difference {
    /// A fact's key, or a word of the setup.
    pub(crate) what: String,
    /// In A.
    pub(crate) a: String,
    /// In B.
    pub(crate) b: String,
}
