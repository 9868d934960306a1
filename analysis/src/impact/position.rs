//! Where a moving thing is when it is looked at, cut or triggered at the wrong instant.
//!
//! ε = v·J: the way that it goes within the time error. What decides is the *peak-to-peak* about
//! the grid; a constant delay moves the whole path and is calibrated away.

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values};
use crate::quantity::{Length, LinearSpeed};

const SOURCE: &str = "error = v·J";

const SPEED: Parameter<LinearSpeed> = Parameter::required("speed", "How fast it moves: 10m/min");
const TOLERANCE: Parameter<Length> = Parameter::optional("tolerance", "Allowed error: 10um");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "position",
    about: "Position, contour or trigger error of something that moves",
    formulas: &[Formula {
        subject: "",
        formula: "error = v·J",
        decides: "peak-to-peak about the grid: a constant delay is calibrated away",
        source: "by definition",
    }],
    parameters: &[&SPEED, &TOLERANCE],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Position { speed: SPEED.value(values)?, tolerance: TOLERANCE.find(values)? }))
}

/// A moving axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Position {
    /// Its speed.
    speed: LinearSpeed,
    /// Error that may be; `None`: not judged.
    tolerance: Option<Length>,
}

impl Assess for Position {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let spread = timing.grid_pp()?;
        let error_m = self.speed.as_m_s() * spread.value_ns * 1e-9;
        let statement = format!("positions are off by up to {:.3} µm, peak to peak", error_m * 1e6);
        let impact = Application::new("position", SOURCE, statement, vec![spread])
            .figure("speed", self.speed.as_m_s(), "m/s")
            .figure("error", error_m, "m");
        Ok(match self.tolerance {
            None => impact,
            Some(tolerance) => {
                impact.figure("tolerance", tolerance.as_m(), "m").demand(error_m, tolerance.as_m())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use crate::quantity::{length, linear_speed};
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // 10 m/min for 50 µs: 8.33 µm.
        let tolerance = Some(length("10um").unwrap());
        let axis = Position { speed: linear_speed("10m/min").unwrap(), tolerance };
        let impact = axis.impact(&Timing::given(50_000.0, None)).unwrap();
        assert!((value(&impact, "error") - 8.333_333e-6).abs() < 1e-12);
        assert!((impact.margin.unwrap() - 1.0 / 6.0).abs() < 1e-6);
        assert_eq!(impact.answer, Some(Suits::Yes));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            m_s in 1e-9f64..1e9, less in 0.0f64..1e15, more in 0.0f64..1e15,
        ) {
            let axis = Position { speed: LinearSpeed::from_m_s(m_s).unwrap(), tolerance: None };
            let error = |ns| value(&axis.impact(&Timing::given(ns, None)).unwrap(), "error");
            prop_assert!(error(less.min(more)) <= error(less.max(more)));
        }
    }
}
