//! Sending at an exact time with the earliest-txtime-first queue (TSN).
//!
//! The queue wakes `delta` before a packet's time and hands it to the card; a wake later than that
//! loses the packet: P(drop) = P(lateness > delta), so delta ≥ Q(1 − p) for a share p of losses
//! (tc-etf(8), iproute2 6). What decides is the *tail* at delta, as an upper bound.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{Parameter, Values};
use crate::claim::bound::rounded_up;
use crate::quantity::Share;

const SOURCE: &str = "P(drop) = P(lateness > delta); delta ≥ Q(1 − p) (tc-etf(8))";

const DELTA: Parameter<Span> =
    Parameter::required("delta", "How long before its time a packet is handed over: 300us");
const LOSSES: Parameter<Share> =
    Parameter::optional("losses", "Allowed share of lost packets: 1ppm");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "tsn",
    about: "Packets that miss their time in the earliest-txtime-first queue",
    formulas: &[Formula {
        subject: "",
        formula: "P(drop) = P(lateness > delta); delta ≥ Q(1 − p)",
        decides: "tail at delta, as an upper bound",
        source: "tc-etf(8)",
    }],
    parameters: &[&DELTA, &LOSSES],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    Ok(Box::new(Etf { delta_ns: DELTA.ns(values)?, losses: LOSSES.find(values)? }))
}

/// The set-up of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Etf {
    /// The time by which a packet is handed over early, ns; ≥ 0.
    delta_ns: f64,
    /// Share of packets that may be lost; `None`: not judged.
    losses: Option<Share>,
}

impl Assess for Etf {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let largest = timing.largest_lateness()?;
        let later = timing.later_than(self.delta_ns);
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        let seen = later.words().map_or_else(String::new, |words| format!(": {words}"));
        let statement = match later.at_most() {
            Some(p) => {
                let p = rounded_up(p);
                format!("at most {p} of the packets are dropped, at 95 % confidence{seen}")
            }
            None => {
                format!("how often a wake is more than {} late is unknown", shown(self.delta_ns))
            }
        };
        let basis = later.basis().into_iter().chain([largest]);
        let impact = Application::new("tsn", SOURCE, statement, basis.collect())
            .figure("delta", self.delta_ns, "ns")
            .figure("share of packets dropped", later.at_most(), "1")
            .figure("share of packets dropped, at least", later.at_least(), "1")
            .severity([later.severity()]);
        let Some(allowed) = self.losses.map(Share::as_one) else { return Ok(impact) };
        let wanted = timing.exceeded_by(allowed);
        let mut impact = impact.figure("share that may be dropped", allowed, "1").figure(
            "delta needed",
            wanted.map(|bound| bound.above_ns),
            "ns",
        );
        if let Some(wanted) = wanted {
            impact.statement +=
                &format!("; {allowed:.1e} needs a delta of {}", shown(wanted.above_ns));
        }
        Ok(impact.demand_of_tail(&later, allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::{run_like, run_of, value};
    use crate::impact::timing::Suits;
    use crate::quantity::share;

    #[test]
    fn the_tail_at_delta_is_what_is_lost() {
        let timing = run_like(400e3, &[(100e3, 1e-2), (200e3, 1e-3), (400e3, 3e-5)]);
        let queue = |delta_ns, losses| Etf { delta_ns, losses: Some(share(losses).unwrap()) };
        let impact = queue(300e3, "1%").impact(&timing).unwrap();
        assert_eq!(value(&impact, "share of packets dropped"), 1e-3);
        assert_eq!(value(&impact, "delta needed"), 100e3, "p is at most 1 % from there on");
        assert_eq!(impact.answer, Some(Suits::Yes));
        let open = queue(300e3, "0.0001").impact(&timing).unwrap();
        assert_eq!(open.answer, Some(Suits::Unknown), "an upper bound alone shows no failure");
        let often = run_of(&[(1_000, 9_900), (350_000, 100)]);
        assert_eq!(queue(300e3, "0.0001").impact(&often).unwrap().answer, Some(Suits::No));
        assert_eq!(queue(400e3, "0.0001").impact(&timing).unwrap().answer, Some(Suits::Yes));
        let unseen = queue(500e3, "0.000001").impact(&timing).unwrap();
        assert_eq!(unseen.answer, Some(Suits::Unknown), "none was later, of too few");
        assert_eq!(unseen.figures.last().unwrap().value, None);
        let below = queue(50e3, "1%").impact(&timing).unwrap();
        assert_eq!(below.answer, Some(Suits::Unknown), "no bound that low");
    }

    #[test]
    fn of_two_runs_the_one_that_loses_more_is_the_worse_without_a_wanted_share_too() {
        let queue = Etf { delta_ns: 100e3, losses: None };
        let impact = |timing: &Timing| queue.impact(timing).unwrap();
        // The bound of the one is of a smaller lateness.
        let (often, rare) = (run_like(2e5, &[(50e3, 0.2)]), run_like(9e9, &[(100e3, 1e-5)]));
        assert!(impact(&often).is_worse_than(&impact(&rare)));
        let unknown = run_like(1e3, &[]);
        assert!(impact(&unknown).is_worse_than(&impact(&often)), "what is unknown is no better");
    }
}
