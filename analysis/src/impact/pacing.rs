//! Pacing a stream: what piles up while the loop is late goes out, or must be held, at once.
//!
//! Burst = rate × J. What decides is the *largest interval*: the longest wait from wake to wake
//! above the period, missed releases included.

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values};
use crate::quantity::{BitRate, Size};

const SOURCE: &str = "burst = rate·J";

const RATE: Parameter<BitRate> = Parameter::required("rate", "Rate of the stream: 1Gbit/s");
const BUFFER: Parameter<Size> = Parameter::optional("buffer", "Size of the buffer: 8KiB");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "pacing",
    about: "Bursts of a paced stream",
    formulas: &[Formula {
        subject: "",
        formula: "burst = rate·J",
        decides: "largest interval: what accumulates meanwhile",
        source: "by definition",
    }],
    parameters: &[&RATE, &BUFFER],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Pacing { rate: RATE.value(values)?, buffer: BUFFER.find(values)? }))
}

/// A paced stream.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pacing {
    /// Rate of the stream.
    rate: BitRate,
    /// Buffer that there is; `None`: not judged.
    buffer: Option<Size>,
}

impl Assess for Pacing {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let gap = timing.longest_gap()?;
        let burst_bytes = self.rate.as_bit_s() / 8.0 * gap.value_ns * 1e-9;
        let statement = format!("bursts of up to {burst_bytes:.0} bytes above the even pace");
        let impact = Application::new("pacing", SOURCE, statement, vec![gap])
            .figure("rate", self.rate.as_bit_s(), "bit/s")
            .figure("burst", burst_bytes, "byte");
        Ok(match self.buffer {
            None => impact,
            Some(buffer) => impact
                .figure("buffer", buffer.as_bytes(), "byte")
                .demand(burst_bytes, buffer.as_bytes()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use crate::quantity::{bit_rate, size};
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        // 1 Gbit/s for 50 µs: 6 250 bytes.
        let stream =
            Pacing { rate: bit_rate("1Gbit/s").unwrap(), buffer: Some(size("8KiB").unwrap()) };
        let impact = stream.impact(&Timing::given(50_000.0, None)).unwrap();
        assert!((value(&impact, "burst") - 6_250.0).abs() < 1e-9);
        assert_eq!(impact.answer, Some(Suits::Yes));
        let more = stream.impact(&Timing::given(70_000.0, None)).unwrap();
        assert_eq!(more.answer, Some(Suits::No));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(less in 0.0f64..1e15, more in 0.0f64..1e15) {
            let stream = Pacing { rate: bit_rate("1Mbit/s").unwrap(), buffer: size("1kB").ok() };
            let margin = |ns| stream.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
