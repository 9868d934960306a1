//! Counting a quadrature encoder in software.
//!
//! Two edges between two looks are one too many to tell the direction: edges may come no faster
//! than one per longest wait from look to look, f ≤ 1/(P + J). What decides is the *largest
//! interval*, which is at most the peak-to-peak about the grid unless a release was missed; then it
//! holds the missed periods too, as it must.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values};
use crate::quantity::Hertz;

const SOURCE: &str = "f ≤ 1/(P + J): at most one edge between two looks";

const PERIOD: Parameter<Span> =
    Parameter::optional("period", "Polling period [default: that of the run]");
const EDGES: Parameter<Hertz> =
    Parameter::optional("edges", "Edges per second that must be counted: 20kHz");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "quadrature",
    about: "Edges of an encoder that software can count",
    formulas: &[Formula {
        subject: "",
        formula: "f ≤ 1/(P + J)",
        decides: "largest interval: the longest wait from look to look, missed releases \
                  included",
        source: "by definition",
    }],
    parameters: &[&PERIOD, &EDGES],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Quadrature { period_ns: PERIOD.find_ns(values)?, edges: EDGES.find(values)? }))
}

/// An encoder read by software.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quadrature {
    /// Period of the looks, ns; `None`: that of the recording.
    period_ns: Option<f64>,
    /// Edges per second that must be counted; `None`: not judged.
    edges: Option<Hertz>,
}

impl Assess for Quadrature {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let gap = timing.longest_gap()?;
        let period_ns = timing.period_ns(self.period_ns)?;
        let longest_ns = period_ns + gap.value_ns;
        let edges_hz = 1e9 / longest_ns;
        let statement = format!("up to {edges_hz:.0} edges/s are counted without loss");
        let impact = Application::new("quadrature", SOURCE, statement, vec![gap])
            .figure("period", period_ns, "ns")
            .figure("longest wait between looks", longest_ns, "ns")
            .figure("highest edge rate", edges_hz, "Hz")
            .severity([longest_ns]);
        Ok(match self.edges {
            None => impact,
            Some(wanted) => impact
                .figure("edge rate wanted", wanted.as_hz(), "Hz")
                .demand(wanted.as_hz(), edges_hz),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use crate::quantity::rate;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // 25 µs + 15 µs: 25 000 edges a second.
        let edges = Some(rate("20kHz").unwrap());
        let looks = Quadrature { period_ns: Some(25_000.0), edges };
        let impact = looks.impact(&Timing::given(15_000.0, None)).unwrap();
        assert!((value(&impact, "highest edge rate") - 25_000.0).abs() < 1e-9);
        assert!((impact.margin.unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(impact.answer, Some(Suits::Yes));
        let late = looks.impact(&Timing::given(25_000.0, None)).unwrap();
        assert_eq!((late.answer, late.margin), (Some(Suits::No), Some(0.0)), "none to spare");
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            ns in 1.0f64..1e12, hz in 1e-3f64..1e9, less in 0.0f64..1e15, more in 0.0f64..1e15,
        ) {
            let looks = Quadrature { period_ns: Some(ns), edges: Hertz::from_hz(hz) };
            let margin = |ns| looks.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
