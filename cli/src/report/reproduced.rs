//! What `reproduce` gives: a row for each figure that a paper prints.
//!
//! Plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;

/// Of `reproduce`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReproduceBody {
    /// The papers, by their short names, in the order of the rows.
    pub(crate) papers: Vec<String>,
    /// Whether the measurements were shortened by --quick.
    pub(crate) quick: bool,
    /// One for each figure that a paper prints.
    pub(crate) rows: Vec<ReproducedRow>,
    /// The loops that were measured for them, named by paper and condition; none in results of
    /// before.
    #[serde(default)]
    pub(crate) runs: Vec<Run>,
}

/// A figure of a paper beside today's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReproducedRow {
    /// Paper and figure: "nist.fig2", "wince.fig11.ce30-loaded.app.max".
    pub(crate) id: String,
    /// What the figure is.
    pub(crate) what: String,
    /// The unit of `formula` and `measured`.
    pub(crate) unit: String,
    /// As the paper prints it; empty where it shows a plot without a number.
    pub(crate) published: String,
    /// Computed from the paper's own formula and its inputs; null where it has none.
    pub(crate) formula: Option<f64>,
    /// Measured here; null where this run did not measure it, and `note` says why.
    pub(crate) measured: Option<f64>,
    /// Where the paper errs, what differs here, or why there is no measured value; may be empty.
    pub(crate) note: String,
}

impl ReproducedRow {
    /// A row of which only the paper is known.
    pub(crate) fn new(id: impl Into<String>, what: &str, unit: &str, published: &str) -> Self {
        Self {
            id: id.into(),
            what: what.to_owned(),
            unit: unit.to_owned(),
            published: published.to_owned(),
            formula: None,
            measured: None,
            note: String::new(),
        }
    }

    /// With what the paper's formula gives.
    pub(crate) fn formula(self, value: f64) -> Self {
        Self { formula: Some(value), ..self }
    }

    /// With what was measured; `missing` says why where nothing was.
    pub(crate) fn measured(self, value: Option<f64>) -> Self {
        let value = value.filter(|value| value.is_finite());
        let row = Self { measured: value, ..self };
        if value.is_some() { row } else { row.note("not measured: interrupted, or no data") }
    }

    /// With a note, after the others.
    pub(crate) fn note(mut self, text: &str) -> Self {
        if !self.note.is_empty() {
            self.note += "; ";
        }
        self.note += text;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_missing_is_explained() {
        let row = || ReproducedRow::new("p.fig1", "a time", "µs", "3").note("first");
        assert_eq!(row().measured(Some(2.0)).note, "first");
        let missing = row().measured(Some(f64::NAN));
        assert_eq!(missing.measured, None);
        assert_eq!(missing.note, "first; not measured: interrupted, or no data");
    }
}
