//! A number that a paper prints, what its own formula gives, and what was measured here.
//!
//! Plain data without a serialised form: results have a counterpart.

/// A number that a paper prints, and what was measured today.
#[derive(Clone, Debug)]
pub struct PaperRow {
    /// Paper and figure: "nist.fig2", "wince.fig11.ce30-loaded.app.max".
    pub id: String,
    /// The name of the figure.
    pub title: String,
    /// The unit of `formula` and `measured`.
    pub unit: String,
    /// As the paper prints it; empty where it shows a plot without a number.
    pub published: String,
    /// Computed from the paper's own formula and its inputs; null where it has none.
    pub formula: Option<f64>,
    /// Measured here; null where this run did not measure it, and `note` says why.
    pub measured: Option<f64>,
    /// Where the paper errs, what differs here, or why there is no measured value; may be empty.
    pub note: String,
}

/// Why nothing was measured, where nobody knows better.
pub(crate) const NO_DATA: &str = "not measured: too few data for it";
/// Why nothing was measured, where the run was over before.
pub(crate) const ENDED_EARLY: &str = "not measured: the run ended early";

impl PaperRow {
    /// A row of which only the paper is known.
    pub fn new(id: impl Into<String>, title: &str, unit: &str, published: &str) -> Self {
        Self {
            id: id.into(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            published: published.to_owned(),
            formula: None,
            measured: None,
            note: String::new(),
        }
    }

    /// With what the paper's formula gives.
    pub fn formula(self, value: f64) -> Self {
        Self { formula: Some(value), ..self }
    }

    /// With what was measured.
    pub fn measured(self, value: Option<f64>) -> Self {
        self.measured_or(value, NO_DATA)
    }

    /// Of a run that ended early: that is the reason where no better one is known.
    pub fn ended_early(self) -> Self {
        Self { note: self.note.replace(NO_DATA, ENDED_EARLY), ..self }
    }

    /// With what was measured, or a note that says why nothing was.
    pub fn measured_or(self, value: Option<f64>, why: &str) -> Self {
        let value = value.filter(|value| value.is_finite());
        let row = Self { measured: value, ..self };
        if value.is_some() { row } else { row.note(why) }
    }

    /// With a note, after the others.
    pub fn note(mut self, text: &str) -> Self {
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
        let row = || PaperRow::new("p.fig1", "a time", "µs", "3").note("first");
        assert_eq!(row().measured(Some(2.0)).note, "first");
        let missing = row().measured(Some(f64::NAN));
        assert_eq!(missing.measured, None);
        assert_eq!(missing.note, "first; not measured: too few data for it");
        assert_eq!(missing.ended_early().note, "first; not measured: the run ended early");
        assert_eq!(row().measured(Some(2.0)).ended_early().note, "first");
        let why = row().measured_or(None, "not reached").ended_early();
        assert_eq!(why.note, "first; not reached");
        assert_eq!(row().measured_or(Some(2.0), "not reached").note, "first");
    }
}
