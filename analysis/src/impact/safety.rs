//! The time that a sampled loop takes to react to something, at the worst phase.
//!
//! It happens just after a look and is seen a period later, the output leaves a period after that
//! at the latest, plus computing and lateness: T ≤ 2P + C + L. What decides is the *largest
//! lateness*, or the largest interval where that is larger, as it is when releases were missed. It
//! was observed in n cycles: a safety case needs more than an observation.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{MaybeZero, Parameter, Values};

const SOURCE: &str = "reaction ≤ 2P + C + L (sampled loop, worst phase)";

const PERIOD: Parameter<Span> =
    Parameter::optional("period", "Period of the loop [default: that of the run]");
const COMPUTE: Parameter<MaybeZero> =
    Parameter::optional("compute", "Computing time [default: none]");
const REACTION: Parameter<Span> = Parameter::optional("reaction", "Required reaction time: 5ms");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "safety",
    about: "Reaction time of a sampled loop, at the worst phase",
    formulas: &[Formula {
        subject: "",
        formula: "reaction ≤ 2P + C + L",
        decides: "largest lateness, or the largest interval where releases were missed",
        source: "by definition",
    }],
    parameters: &[&PERIOD, &COMPUTE, &REACTION],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Safety {
        period_ns: PERIOD.find_ns(values)?,
        compute_ns: COMPUTE.ns(values)?,
        limit_ns: REACTION.find_ns(values)?,
    }))
}

/// A loop that must react.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Safety {
    /// Period, ns; `None`: that of the recording.
    period_ns: Option<f64>,
    /// Computing time, ns; ≥ 0.
    compute_ns: f64,
    /// Reaction that is demanded, ns; `None`: not judged.
    limit_ns: Option<f64>,
}

impl Assess for Safety {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let (largest, gap) = (timing.largest_lateness()?, timing.longest_gap()?);
        let period_ns = timing.period_ns(self.period_ns)?;
        let basis = if gap.value_ns > largest.value_ns { gap } else { largest };
        let reaction_ns = 2.0 * period_ns + self.compute_ns + basis.value_ns;
        let statement = format!(
            "a reaction takes up to {}, as far as observed",
            Span::from_ns(reaction_ns.round() as i64)
        );
        let impact = Application::new("safety", SOURCE, statement, vec![basis])
            .figure("period", period_ns, "ns")
            .figure("computing", self.compute_ns, "ns")
            .figure("reaction", reaction_ns, "ns")
            .severity([reaction_ns]);
        Ok(match self.limit_ns {
            None => impact,
            Some(limit_ns) => {
                impact.figure("reaction allowed", limit_ns, "ns").demand(reaction_ns, limit_ns)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::{run_like, value};
    use crate::impact::timing::Suits;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // 2·1 ms + 0.2 ms + 0.05 ms.
        let safety =
            |limit| Safety { period_ns: Some(1e6), compute_ns: 2e5, limit_ns: Some(limit) };
        let timing = Timing::given(50_000.0, None);
        let impact = safety(3e6).impact(&timing).unwrap();
        assert_eq!(value(&impact, "reaction"), 2.25e6);
        assert_eq!((impact.answer, impact.margin), (Some(Suits::Yes), Some(0.25)));
        assert_eq!(safety(2e6).impact(&timing).unwrap().answer, Some(Suits::No));
    }

    #[test]
    fn a_missed_release_lengthens_it() {
        let safety = Safety { period_ns: Some(1e6), compute_ns: 0.0, limit_ns: None };
        let missed = Timing { interval_max_ns: Some(1e6), ..run_like(50e3, &[]) };
        assert_eq!(value(&safety.impact(&missed).unwrap(), "reaction"), 3e6);
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(less in 0.0f64..1e15, more in 0.0f64..1e15) {
            let safety = Safety { period_ns: Some(1e6), compute_ns: 0.0, limit_ns: Some(5e6) };
            let margin = |ns| safety.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
