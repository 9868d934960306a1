//! Pulse-width modulation by software: how many steps of brightness or torque are real.
//!
//! A pulse whose edges are off by J in a period T has T/J steps that can be told apart: log₂(T/J)
//! effective bits. What decides is the *peak-to-peak* about the grid: both edges move within it.

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values, Whole};
use crate::quantity::Hertz;

const SOURCE: &str = "effective bits log2(T/J)";

const PULSES: Parameter<Hertz> = Parameter::required("pulses", "Pulses per second: 1kHz");
const BITS: Parameter<Whole<1, 64>> = Parameter::optional("bits", "Required bits");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "pwm",
    about: "Effective bits of pulse-width modulation by software",
    formulas: &[Formula {
        subject: "",
        formula: "effective bits log₂(T/J)",
        decides: "peak-to-peak about the grid: both edges move in it",
        source: "by definition",
    }],
    parameters: &[&PULSES, &BITS],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    let bits = BITS.find(values)?.map(|bits| bits.0);
    Ok(Box::new(Pwm { pulses: PULSES.value(values)?, bits }))
}

/// A modulated signal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pwm {
    /// Pulses per second.
    pulses: Hertz,
    /// Bits that are wanted, in 1..=64; `None`: not judged.
    bits: Option<u32>,
}

impl Assess for Pwm {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let spread = timing.grid_pp()?;
        let pulse_ns = 1e9 / self.pulses.as_hz();
        let spread_ns = spread.value_ns;
        let bits = (spread_ns > 0.0).then(|| (pulse_ns / spread_ns).log2().max(0.0));
        let statement = match bits {
            Some(bits) => format!("pulses of {} Hz have {bits:.1} bits", self.pulses.as_hz()),
            None => "no time error: no bits are lost".to_owned(),
        };
        let impact = Application::new("pwm", SOURCE, statement, vec![spread])
            .figure("pulses", self.pulses.as_hz(), "Hz")
            .figure("effective bits", bits, "bit");
        Ok(match self.bits {
            None => impact,
            Some(wanted) => {
                let allowed_ns = pulse_ns / 2f64.powi(wanted as i32);
                impact
                    .figure("bits wanted", f64::from(wanted), "bit")
                    .figure("peak-to-peak allowed", allowed_ns, "ns")
                    .demand(spread_ns, allowed_ns)
            }
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
        // 1 ms in steps of 10 µs: 6.64 bits.
        let pwm = |bits| Pwm { pulses: rate("1kHz").unwrap(), bits: Some(bits) };
        let timing = Timing::given(10_000.0, None);
        let impact = pwm(6).impact(&timing).unwrap();
        assert!((value(&impact, "effective bits") - 6.643_856).abs() < 1e-6);
        assert_eq!(impact.answer, Some(Suits::Yes));
        assert_eq!(pwm(7).impact(&timing).unwrap().answer, Some(Suits::No));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            hz in 1e-3f64..1e9, less in 0.0f64..1e15, more in 0.0f64..1e15, bits in 1u32..=64,
        ) {
            let pwm = Pwm { pulses: Hertz::from_hz(hz).unwrap(), bits: Some(bits) };
            let margin = |ns| pwm.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
