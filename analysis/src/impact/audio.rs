//! Audio: how long between dropouts.
//!
//! With n buffers of B frames at the rate f_s, and C of computing, a wake may be late by
//! (n − 1)·B/f_s − C; a buffer later than that is a dropout. So the mean time between them is
//! B/(f_s·P(lateness > slack)). What decides is the *tail*: an upper bound of that probability,
//! hence a lower one of the time. Where no wake was that late it is the rule of three (about 3/n at
//! 95 %, over the extremal index), never "none". Without B it is the smallest power of two that
//! holds: no wake was later than its slack, and where a time is wanted, the lower bound is at least
//! that long.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model, Suits};
use super::{Parameter, Values, Whole};
use crate::quantity::Hertz;

const SOURCE: &str = "slack (n − 1)·B/f_s − C; time between dropouts B/(f_s·P(lateness > slack))";

const RATE: Parameter<Hertz> = Parameter::or("48kHz", "rate", "Frames per second");
const FRAMES: Parameter<Whole<1, { u32::MAX }>> =
    Parameter::optional("frames", "Frames in a buffer [default: the smallest that holds]");
const BUFFERS: Parameter<Whole<2, { u32::MAX }>> = Parameter::or("2", "buffers", "Buffers");
const COMPUTE: Parameter<Span> =
    Parameter::optional("compute", "Computing time of a buffer [default: none]");
const WANTED: Parameter<Span> =
    Parameter::optional("wanted", "Required mean time between dropouts: 1h");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "audio",
    about: "Mean time between audio dropouts (xruns)",
    formulas: &[Formula {
        subject: "",
        formula: "slack = (n − 1)·B/f_s − C; time between dropouts = B/(f_s·P(lateness > \
                  slack))",
        decides: "tail at the slack, as an upper bound; three over n where none was that late",
        source: "by definition",
    }],
    parameters: &[&RATE, &FRAMES, &BUFFERS, &COMPUTE, &WANTED],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Audio {
        rate: RATE.value(values)?,
        frames: FRAMES.find(values)?.map(|frames| frames.0),
        buffers: BUFFERS.value(values)?.0,
        compute_ns: COMPUTE.find_ns(values)?.unwrap_or(0.0),
        wanted_ns: WANTED.find_ns(values)?,
    }))
}

/// The set-up of the sound card.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Audio {
    /// Frames per second.
    rate: Hertz,
    /// Frames in a buffer, ≥ 1; `None` for the smallest that holds.
    frames: Option<u32>,
    /// Buffers, ≥ 2.
    buffers: u32,
    /// Computing time of a buffer, ns; ≥ 0.
    compute_ns: f64,
    /// Mean time between dropouts that is wanted, ns; `None`: not judged.
    wanted_ns: Option<f64>,
}

/// Buffers that sound cards have, as powers of two: 16 to 8192 frames.
const BUFFER_BITS: std::ops::RangeInclusive<u32> = 4..=13;

impl Assess for Audio {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        match self.frames {
            Some(frames) => self.of_buffer(frames, timing),
            None => self.smallest(timing),
        }
    }
}

impl Audio {
    /// The smallest buffer that holds; where none does, the largest that was tried, with its
    /// answer.
    fn smallest(&self, timing: &Timing) -> Result<Application, Lack> {
        let largest_ns = timing.largest_lateness()?.value_ns;
        let mut tried = None;
        for bits in BUFFER_BITS {
            let frames = 1 << bits;
            let impact = self.of_buffer(frames, timing)?;
            let holds = match impact.answer {
                None => self.slack_ns(frames) > largest_ns,
                Some(answer) => answer == Suits::Yes,
            };
            if holds {
                // Without a wanted time nothing is shown but that none was too late.
                let smallest = match impact.answer {
                    Some(_) => "is the smallest buffer that holds",
                    None => "is the smallest buffer that no measured wake was too late for",
                };
                let statement = format!("{frames} frames {smallest}: {}", impact.statement);
                return Ok(Application { statement, ..impact }.severity(frames.into()));
            }
            tried = Some((frames, impact));
        }
        let Some((frames, impact)) = tried else { return Err(Lack("buffer")) };
        let statement =
            format!("no buffer up to {frames} frames is shown to hold: {}", impact.statement);
        let impact = Application { statement, ..impact }.severity(f64::MAX);
        Ok(if impact.answer.is_none() { impact.unknown() } else { impact })
    }

    /// How long one buffer takes, ns.
    fn buffer_ns(&self, frames: u32) -> f64 {
        f64::from(frames) / self.rate.as_hz() * 1e9
    }

    /// How late a wake may be, ns; not above zero where no wake may be.
    fn slack_ns(&self, frames: u32) -> f64 {
        f64::from(self.buffers.saturating_sub(1)) * self.buffer_ns(frames) - self.compute_ns
    }

    /// What lateness does to a buffer of so many frames.
    fn of_buffer(&self, frames: u32, timing: &Timing) -> Result<Application, Lack> {
        let largest = timing.largest_lateness()?;
        let buffer_ns = self.buffer_ns(frames);
        let slack_ns = self.slack_ns(frames);
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        let bound = timing.p_above(slack_ns).filter(|_| slack_ns > 0.0);
        let between_ns = bound.map(|bound| buffer_ns / bound.p);
        let statement = match between_ns {
            _ if slack_ns <= 0.0 => format!(
                "the computing time exceeds the buffers by {}: every buffer drops out",
                shown(-slack_ns)
            ),
            Some(between_ns) => format!(
                "a wake may be {} late; dropouts are at least {} apart on average",
                shown(slack_ns),
                seconds(between_ns)
            ),
            None => {
                format!("a wake may be {} late; how often one is later is unknown", shown(slack_ns))
            }
        };
        let basis = bound.map(|bound| timing.tail(bound)).into_iter().chain([largest.clone()]);
        let impact = Application::new("audio", SOURCE, statement, basis.collect())
            .figure("buffer", f64::from(frames), "frames")
            .figure("length of a buffer", buffer_ns, "ns")
            .figure("slack", slack_ns, "ns")
            .figure("share of later cycles, at most", bound.map(|bound| bound.p), "1")
            .figure("mean time between dropouts, at least", between_ns, "ns")
            // What is unknown is no better than anything.
            .severity(between_ns.map_or(f64::MAX, |between_ns| -between_ns));
        Ok(match (self.wanted_ns, between_ns) {
            _ if slack_ns <= 0.0 => impact.demand(self.compute_ns, 0.0),
            (None, _) => impact,
            (Some(wanted_ns), Some(between_ns)) if between_ns > wanted_ns => {
                impact.demand(wanted_ns, between_ns)
            }
            // A bound that is too high does not prove failure where none was seen.
            (Some(_), _) if largest.value_ns <= slack_ns => impact.unknown(),
            (Some(wanted_ns), Some(between_ns)) => impact.demand(wanted_ns, between_ns),
            (Some(_), None) => impact.unknown(),
        })
    }
}

/// A long time in the unit that people wait in.
fn seconds(ns: f64) -> String {
    match ns / 1e9 {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::{run_like, value};
    use crate::quantity::rate;

    fn audio(frames: u32, wanted_ns: Option<f64>) -> Audio {
        let rate = rate("48kHz").unwrap();
        Audio { rate, frames: Some(frames), buffers: 2, compute_ns: 0.0, wanted_ns }
    }

    #[test]
    fn never_late_is_three_over_n() {
        // 64 frames at 48 kHz: 1.333 ms. 10⁶ cycles, none that late: p ≤ 3.0e-6, so 445 s.
        let timing = Timing::given(500_000.0, Some(1_000_000));
        let impact = audio(64, Some(60e9)).impact(&timing).unwrap();
        assert!((value(&impact, "slack") - 1_333_333.3).abs() < 0.1);
        let between_s = value(&impact, "mean time between dropouts, at least") * 1e-9;
        assert!((between_s - 1.333_333e-3 / 2.995_73e-6).abs() < 0.01, "{between_s}");
        assert_eq!(impact.answer, Some(Suits::Yes));
        let hour = audio(64, Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!(hour.answer, Some(Suits::Unknown), "too short to say");
    }

    #[test]
    fn what_was_seen_later_than_the_slack_counts() {
        // P(lateness > 1 ms) ≤ 0.01 by the run: at least 0.133 s apart.
        let impact = audio(64, Some(1e9)).impact(&run_like(2e6, &[(1e6, 0.01)])).unwrap();
        let between_s = value(&impact, "mean time between dropouts, at least") * 1e-9;
        assert!((between_s - 0.133_333).abs() < 1e-6, "{between_s}");
        assert_eq!(impact.answer, Some(Suits::No));
        assert!(impact.basis[0].words().starts_with("L1"), "{}", impact.basis[0].words());
    }

    #[test]
    fn the_smallest_buffer_is_the_first_that_no_wake_was_too_late_for() {
        let any = |wanted_ns| Audio { frames: None, ..audio(1, wanted_ns) };
        // 1.5 ms: 64 frames are 1.33 ms, 128 are 2.67 ms.
        let timing = Timing::given(1_500_000.0, Some(1_000_000));
        let impact = any(None).impact(&timing).unwrap();
        assert!(impact.statement.starts_with("128 frames is the smallest"), "{}", impact.statement);
        assert_eq!((value(&impact, "buffer"), impact.answer), (128.0, None));
        // An hour takes buffers of 3 600 s · 2.996e-6, 10.8 ms, and more.
        let hour = any(Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!((value(&hour, "buffer"), hour.answer), (1_024.0, Some(Suits::Yes)));
        let never = any(Some(1e18)).impact(&timing).unwrap();
        assert_eq!(never.answer, Some(Suits::Unknown), "too short to say");
        assert!(never.statement.starts_with("no buffer up to 8192"), "{}", never.statement);
        let stalled = any(None).impact(&Timing::given(1e9, Some(1_000))).unwrap();
        assert_eq!(stalled.answer, Some(Suits::Unknown));
    }

    #[test]
    fn of_two_runs_the_one_with_more_dropouts_is_the_worse_whatever_its_worst_wake() {
        let (rare, often) = (run_like(9e9, &[(1e6, 1e-5)]), run_like(5e6, &[(1e6, 0.1)]));
        let impact = |timing: &Timing| audio(64, None).impact(timing).unwrap();
        assert!(impact(&often).is_worse_than(&impact(&rare)));
        assert!(!impact(&rare).is_worse_than(&impact(&often)));
    }

    #[test]
    fn no_slack_is_no() {
        let tight = Audio { compute_ns: 2e6, ..audio(64, None) };
        let impact = tight.impact(&Timing::given(0.0, Some(1_000_000))).unwrap();
        assert_eq!(impact.answer, Some(Suits::No));
        let nothing = audio(64, Some(1.0)).impact(&Timing::given(1e3, None)).unwrap();
        assert_eq!(nothing.answer, Some(Suits::Unknown), "n was not given");
    }
}
