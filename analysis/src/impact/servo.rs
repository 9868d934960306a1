//! A servo loop: the phase that delay costs it, and how much varying delay it tolerates.
//!
//! Phase: a delay τ turns the loop by 360°·f_c·τ at its crossover f_c; sample and hold of period h
//! counts as h/2 (Åström and Wittenmark, Computer-Controlled Systems, ch. 7 and A.1). What decides
//! is the *mean* lateness.
//! Varying delay: a loop with the closed-loop response T stays stable for every delay that varies
//! within [0, J] if |T(jω)| < 1/(Jω) at all ω (Kao and Lincoln, Automatica 40, 2004, theorem 1;
//! Cervin, Lincoln, Eker, Årzén, Buttazzo, RTCSA 2004). For L(s) = ω_c/(s(1 + s/3ω_c)) the largest
//! ω|T| is ω_c, at ω = √3·ω_c, so that J_max = 1/ω_c exactly. What decides is the *largest*
//! lateness.

use std::f64::consts::TAU;

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{MaybeZero, Parameter, Value, Values};
use crate::quantity::{Angle, Hertz};

const SOURCE: &str = "phase 360°·f_c·(h/2 + delay + mean lateness); stable for delays within J < \
                      min 1/(ω|T(jω)|) (Kao and Lincoln 2004), 1/ω_c for L = ω_c/(s(1+s/3ω_c))";

const CROSSOVER: Parameter<Hertz> =
    Parameter::required("crossover", "Crossover of the loop: 100Hz");
const PERIOD: Parameter<Span> =
    Parameter::optional("period", "Sampling period [default: that of the run]");
const DELAY: Parameter<MaybeZero> =
    Parameter::optional("delay", "From sample to actuation without any lateness [default: none]");
const PHASE_ALLOWED: Parameter<Angle> =
    Parameter::optional("phase-allowed", "Allowed loss of phase: 5deg");
const CLOSED_LOOP: Parameter<ClosedLoop> = Parameter::optional(
    "closed-loop",
    "The closed loop |T(jω)| by points RATE=MAGNITUDE: '10Hz=1.0,100Hz=0.9' [default: that of \
     ω_c/(s(1 + s/3ω_c))]",
);

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "servo",
    about: "Phase that delay costs a control loop, and how much varying delay it tolerates",
    formulas: &[
        Formula {
            subject: "phase",
            formula: "360°·f_c·(h/2 + delay + mean lateness)",
            decides: "mean lateness: a loop filters what varies",
            source: "Åström, Wittenmark, Computer-Controlled Systems",
        },
        Formula {
            subject: "stability",
            formula: "delays that vary within [0, J] are tolerated if J < min \
                     1/(ω\\|T(jω)\\|); \
                      J_max = 1/ω_c for ω_c/(s(1 + s/3ω_c))",
            decides: "largest lateness (its range, for a loop given by points): the bound is \
                      for the worst case",
            source: "Kao, Lincoln, Automatica 40 (2004); Cervin et al., RTCSA 2004",
        },
    ],
    parameters: &[&CROSSOVER, &PERIOD, &DELAY, &PHASE_ALLOWED, &CLOSED_LOOP],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Servo {
        crossover: CROSSOVER.value(values)?,
        period_ns: PERIOD.find_ns(values)?,
        delay_ns: DELAY.ns(values)?,
        phase_allowed: PHASE_ALLOWED.find(values)?,
        closed_loop: CLOSED_LOOP.find(values)?,
    }))
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
struct Servo {
    /// Crossover.
    crossover: Hertz,
    /// Sampling period, ns; `None`: that of the recording.
    period_ns: Option<f64>,
    /// From sample to actuation without any lateness, ns; ≥ 0.
    delay_ns: f64,
    /// Phase that may be lost; `None`: not judged.
    phase_allowed: Option<Angle>,
    /// The closed loop; `None`: the loop of this file's head.
    closed_loop: Option<ClosedLoop>,
}

/// |T(jω)| at some frequencies.
#[derive(Clone, Debug, PartialEq)]
struct ClosedLoop {
    points: Vec<(Hertz, f64)>,
}

impl Value for ClosedLoop {
    const NAME: &'static str = "POINTS";
    const EXAMPLE: &'static str = "10Hz=1.0,100Hz=0.9";

    fn read(text: &str) -> Result<Self, String> {
        let point = |point: &str| {
            let (hz, magnitude) =
                point.split_once('=').ok_or_else(|| format!("{point} is not RATE=MAGNITUDE"))?;
            let magnitude =
                magnitude.trim().parse().map_err(|_| format!("{magnitude} is not a magnitude"))?;
            Ok::<_, String>((Hertz::read(hz)?, magnitude))
        };
        let points: Vec<_> = text.split(',').map(point).collect::<Result<_, _>>()?;
        Self::of(points).ok_or_else(|| "a magnitude must be positive and finite".to_owned())
    }
}

impl ClosedLoop {
    /// From points (frequency, magnitude); `None` without any, or with a magnitude that is not
    /// positive and finite.
    fn of(points: Vec<(Hertz, f64)>) -> Option<Self> {
        let sound = points.iter().all(|(_, magnitude)| magnitude.is_finite() && *magnitude > 0.0);
        (sound && !points.is_empty()).then_some(Self { points })
    }

    /// min 1/(ω|T|) in ns, as far as the points tell.
    fn jitter_margin_ns(&self) -> f64 {
        let margin = |(rate, magnitude): &(Hertz, f64)| 1e9 / (TAU * rate.as_hz() * magnitude);
        self.points.iter().map(margin).fold(f64::MAX, f64::min)
    }
}

impl Assess for Servo {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let (mean, largest) = (timing.mean_lateness()?, timing.largest_lateness()?);
        let period_ns = timing.period_ns(self.period_ns)?;
        let crossover_hz = self.crossover.as_hz();
        let degrees = |delay_ns: f64| 360.0 * crossover_hz * delay_ns * 1e-9;
        let lost = degrees(period_ns / 2.0 + self.delay_ns + mean.value_ns);
        let by_lateness = degrees(mean.value_ns);
        // That loop has no delay of its own, so all of it counts as varying; a table's has.
        let (varying, margin_ns) = match &self.closed_loop {
            None => (largest.clone(), 1e9 / (TAU * crossover_hz)),
            Some(table) => (timing.lateness_range()?, table.jitter_margin_ns()),
        };
        let own_ns = if self.closed_loop.is_none() { self.delay_ns } else { 0.0 };
        let varying_ns = (varying.value_ns + own_ns).max(0.0);
        let stable = if varying_ns < margin_ns { "stays stable" } else { "may become unstable" };
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        let statement = format!(
            "the loop {stable}: its delay varies by up to {} of {} allowed; {lost:.2}° of phase \
            is lost at {crossover_hz} Hz, {by_lateness:.2}° of it to lateness",
            shown(varying_ns),
            shown(margin_ns),
        );
        let impact = Application::new("servo", SOURCE, statement, vec![varying, mean])
            .figure("crossover", crossover_hz, "Hz")
            .figure("period", period_ns, "ns")
            .figure("delay", self.delay_ns, "ns")
            .figure("phase lost", lost, "deg")
            .figure("phase lost to lateness", by_lateness, "deg")
            .figure("varying delay", varying_ns, "ns")
            .figure("varying delay allowed", margin_ns, "ns")
            .demand(varying_ns, margin_ns);
        Ok(match self.phase_allowed {
            Some(allowed) => impact.demand(lost.max(0.0), allowed.as_rad().to_degrees()),
            None => impact,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use crate::quantity::{angle, rate};
    use proptest::prelude::*;

    fn servo(crossover: &str) -> Servo {
        Servo {
            crossover: rate(crossover).unwrap(),
            period_ns: Some(1e6),
            delay_ns: 0.0,
            phase_allowed: None,
            closed_loop: None,
        }
    }

    #[test]
    fn by_hand() {
        // 100 Hz, 50 µs of lateness: 1.8°; 1/(2π·100 Hz) = 1.592 ms.
        let impact = servo("100Hz").impact(&Timing::given(50_000.0, None)).unwrap();
        assert!((value(&impact, "phase lost to lateness") - 1.8).abs() < 1e-9);
        assert!((value(&impact, "phase lost") - 19.8).abs() < 1e-9, "h/2 is 18°");
        assert!((value(&impact, "varying delay allowed") - 1_591_549.43).abs() < 0.01);
        assert_eq!(impact.answer, Some(Suits::Yes));
        // 1 kHz, 100 µs: 36°, and a margin of 159 µs.
        let impact = servo("1kHz").impact(&Timing::given(100_000.0, None)).unwrap();
        assert!((value(&impact, "phase lost to lateness") - 36.0).abs() < 1e-9);
        assert!((impact.margin.unwrap() - (1.0 - 100.0 / 159.154_943)).abs() < 1e-6);
        let late = servo("1kHz").impact(&Timing::given(160_000.0, None)).unwrap();
        assert_eq!(late.answer, Some(Suits::No));
    }

    #[test]
    fn a_phase_that_may_be_lost_is_judged_too() {
        let servo = Servo { phase_allowed: Some(angle("10deg").unwrap()), ..servo("100Hz") };
        let impact = servo.impact(&Timing::given(1_000.0, None)).unwrap();
        assert_eq!(impact.answer, Some(Suits::No), "18° go to sample and hold alone");
    }

    /// ω|T| of L = ω_c/(s(1 + s/3ω_c)) is ω_c at its largest, so that a table of it says the same.
    #[test]
    fn the_table_of_the_default_loop_gives_its_margin() {
        let points: Vec<(Hertz, f64)> = (1..4_000)
            .map(|i| {
                let x = f64::from(i) * 1e-3;
                let t = 1.0 / ((1.0 - x * x / 3.0).powi(2) + x * x).sqrt();
                (Hertz::from_hz(100.0 * x).unwrap(), t)
            })
            .collect();
        let margin_ns = ClosedLoop::of(points).unwrap().jitter_margin_ns();
        assert!((margin_ns / (1e9 / (TAU * 100.0)) - 1.0).abs() < 1e-6, "{margin_ns}");
        assert_eq!(ClosedLoop::of(vec![]), None);
        assert_eq!(ClosedLoop::of(vec![(rate("1Hz").unwrap(), -1.0)]), None);
    }

    #[test]
    fn without_a_period_there_is_no_answer() {
        let servo = Servo { period_ns: None, ..servo("1Hz") };
        let lack = servo.impact(&Timing::given(1.0, None)).unwrap_err();
        assert_eq!(lack.to_string(), "the data have no period");
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            hz in 1e-3f64..1e9, less in 0.0f64..1e12, more in 0.0f64..1e12,
        ) {
            let servo = Servo { crossover: Hertz::from_hz(hz).unwrap(), ..servo("1Hz") };
            let margin = |ns| servo.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
