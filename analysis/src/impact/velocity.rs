//! A speed that is computed by dividing the way by the *nominal* period.
//!
//! δv/v = δt/h: the speed is wrong by as much as the time from look to look was. What decides is
//! the *largest |interval|*; its standard deviation is the usual ripple. Dividing by the measured
//! time instead makes both vanish.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values};
use crate::quantity::Share;

const SOURCE: &str = "δv/v = δt/h for a speed by differencing with the nominal period";

const PERIOD: Parameter<Span> =
    Parameter::optional("period", "Nominal period [default: that of the run]");
const TOLERANCE: Parameter<Share> = Parameter::optional("tolerance", "Allowed ripple: 5%");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "velocity",
    about: "Ripple of a speed that is computed with the nominal period",
    formulas: &[Formula {
        subject: "",
        formula: "δv/v = δt/h",
        decides: "largest \\|interval\\|; its standard deviation is the usual ripple",
        source: "by definition",
    }],
    parameters: &[&PERIOD, &TOLERANCE],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    let tolerance = TOLERANCE.find(values)?;
    Ok(Box::new(Velocity { period_ns: PERIOD.find_ns(values)?, tolerance }))
}

/// A speed computed from positions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Velocity {
    /// Nominal period, ns; `None`: that of the recording.
    period_ns: Option<f64>,
    /// Ripple that may be; `None`: not judged.
    tolerance: Option<Share>,
}

impl Assess for Velocity {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let (largest, usual) = (timing.largest_interval()?, timing.interval_stddev()?);
        let period_ns = timing.period_ns(self.period_ns)?;
        let (worst, rms) = (largest.value_ns / period_ns, usual.value_ns / period_ns);
        let statement = format!(
            "a speed computed with the nominal period is off by up to {:.3} %, {:.3} % rms; \
             dividing by the measured time avoids this",
            worst * 100.0,
            rms * 100.0
        );
        let impact = Application::new("velocity", SOURCE, statement, vec![largest, usual])
            .figure("period", period_ns, "ns")
            .figure("largest ripple", worst, "1")
            .figure("rms ripple", rms, "1")
            .severity([worst, rms]);
        Ok(match self.tolerance {
            None => impact,
            Some(share) => {
                impact.figure("tolerance", share.as_one(), "1").demand(worst, share.as_one())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use crate::quantity::share;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // 50 µs of 1 ms: 5 %.
        let tolerance = Some(share("5%").unwrap());
        let speed = Velocity { period_ns: Some(1e6), tolerance };
        let impact = speed.impact(&Timing::given(50_000.0, None)).unwrap();
        assert!((value(&impact, "largest ripple") - 0.05).abs() < 1e-12);
        assert_eq!(impact.answer, Some(Suits::No), "none to spare");
        let less = speed.impact(&Timing::given(10_000.0, None)).unwrap();
        assert_eq!(less.answer, Some(Suits::Yes));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            ns in 1.0f64..1e12, less in 0.0f64..1e15, more in 0.0f64..1e15,
        ) {
            let speed = Velocity { period_ns: Some(ns), tolerance: Some(share("1%").unwrap()) };
            let margin = |ns| speed.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
