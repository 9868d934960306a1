//! Sampling a signal at wrong instants: noise.
//!
//! A full-scale sine of frequency f, sampled with an rms time error σ, has a signal-to-noise ratio
//! of −20·log₁₀(2πfσ) dB (Analog Devices MT-007; Brannon, AN-501), which is (SNR − 1.76 dB)/6.02 dB
//! effective bits; N bits need σ ≤ 1/(2πf·2^N·√1.5). What decides is the *rms* about the grid: a
//! constant delay and a constant drift add no noise.

use std::f64::consts::TAU;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values, Whole};
use crate::quantity::Hertz;

const SOURCE: &str = "SNR = −20·log10(2π·f·σ) (Analog Devices MT-007, AN-501)";

const SIGNAL: Parameter<Hertz> =
    Parameter::required("signal", "Highest frequency in the signal: 1kHz");
const BITS: Parameter<Whole<1, 64>> = Parameter::optional("bits", "Required bits");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "sampling",
    about: "Signal-to-noise ratio of a signal that is sampled at varying instants",
    formulas: &[Formula {
        subject: "",
        formula: "SNR = −20·log₁₀(2πfσ) dB; N bits need σ ≤ 1/(2πf·2^N·√1.5)",
        decides: "rms about the grid: noise power; delay and drift add none",
        source: "Analog Devices MT-007, AN-501",
    }],
    parameters: &[&SIGNAL, &BITS],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    let bits = BITS.find(values)?.map(|bits| bits.0);
    Ok(Box::new(Sampling { signal: SIGNAL.value(values)?, bits }))
}

/// A sampled signal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sampling {
    /// The highest frequency in the signal.
    signal: Hertz,
    /// Bits that are wanted, in 1..=64; `None`: not judged.
    bits: Option<u32>,
}

impl Assess for Sampling {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let rms = timing.grid_rms()?;
        let omega = TAU * self.signal.as_hz();
        let noise = omega * rms.value_ns * 1e-9;
        let snr_db = (noise > 0.0).then(|| -20.0 * noise.log10());
        let enob = snr_db.map(|db| ((db - 1.76) / 6.02).max(0.0));
        let statement = match (snr_db, enob) {
            (Some(snr_db), Some(enob)) => format!(
                "a full-scale sine of {} Hz is sampled with a signal-to-noise ratio of \
                 {snr_db:.1} dB, {enob:.1} effective bits",
                self.signal.as_hz()
            ),
            _ => "no time error: no noise is added".to_owned(),
        };
        let impact = Application::new("sampling", SOURCE, statement, vec![rms.clone()])
            .figure("signal", self.signal.as_hz(), "Hz")
            .figure("signal-to-noise ratio", snr_db, "dB")
            .figure("effective bits", enob, "bit");
        Ok(match self.bits {
            None => impact,
            Some(bits) => {
                let allowed_ns = 1e9 / (omega * 2f64.powi(bits as i32) * 1.5f64.sqrt());
                impact
                    .figure("bits wanted", f64::from(bits), "bit")
                    .figure("rms allowed", allowed_ns, "ns")
                    .demand(rms.value_ns, allowed_ns)
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
    fn published_and_by_hand() {
        // (signal, σ in ns, SNR in dB). AN-501, figure 1, and MT-007: 100 MHz at 1 ps is 64 dB.
        for (signal, rms_ns, snr_db) in
            [("1kHz", 1_000.0, 44.04), ("50Hz", 10_000.0, 50.06), ("100MHz", 0.001, 64.04)]
        {
            let sampling = Sampling { signal: rate(signal).unwrap(), bits: None };
            let impact = sampling.impact(&Timing::given(rms_ns, None)).unwrap();
            let snr = value(&impact, "signal-to-noise ratio");
            assert!((snr - snr_db).abs() < 0.01, "{signal}: {snr}");
            assert_eq!(impact.answer, None);
        }
    }

    #[test]
    fn wanted_bits_are_judged_by_the_rms_that_they_allow() {
        // 1/(2π·1 kHz·2^7·√1.5) = 1.015 µs.
        let sampling = |bits| Sampling { signal: rate("1kHz").unwrap(), bits: Some(bits) };
        let timing = Timing::given(1_000.0, None);
        assert_eq!(sampling(7).impact(&timing).unwrap().answer, Some(Suits::Yes));
        assert_eq!(sampling(8).impact(&timing).unwrap().answer, Some(Suits::No));
        let allowed = value(&sampling(7).impact(&timing).unwrap(), "rms allowed");
        assert!((allowed - 1_015.23).abs() < 0.01, "{allowed}");
        let none = sampling(64).impact(&Timing::given(0.0, None)).unwrap();
        assert_eq!((none.answer, none.figures[1].value), (Some(Suits::Yes), None));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            hz in 1e-3f64..1e12, less in 0.0f64..1e15, more in 0.0f64..1e15, bits in 1u32..=64,
        ) {
            let sampling = Sampling { signal: Hertz::from_hz(hz).unwrap(), bits: Some(bits) };
            let margin = |ns| sampling.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
