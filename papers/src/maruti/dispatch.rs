//! The question that the paper leaves open: a dispatch by `mdelay`, by a timer, or, as is possible
//! today, by a wait that sleeps and polls the rest?

use punctual_analysis::interval::Interval;
use punctual_analysis::plain::significant;
use punctual_analysis::scatter::Scatter;
use punctual_lab::timer::{Background, StampStore, TimerOutcome, TimerPath};

use super::timer_row;
use crate::bench::MeasuredLoop;
use crate::row::PaperRow;

/// The period of dispatches that are compared, ns.
pub(super) const PERIOD_NS: u64 = 100_000;
/// A way that scatters no more than this many times as far as the best is as good.
const AS_GOOD: f64 = 2.0;

/// A way to start work at an instant, each 100 µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispatch {
    /// The end of its ids.
    key: &'static str,
    /// Its name in sentences.
    pub(super) name: &'static str,
    /// Scatter of its lateness, µs.
    pub(super) late_us: Option<Scatter>,
    /// CPU time over wall time, %.
    pub(super) cpu: Option<f64>,
    note: &'static str,
}

impl Dispatch {
    /// A path of the timers, with NOPs behind.
    fn by_path(
        timer: Option<&TimerOutcome>,
        way: (TimerPath, StampStore),
        name: &'static str,
        note: &'static str,
    ) -> Self {
        let row = timer.and_then(|timer| timer_row(timer, way, Background::Nop, PERIOD_NS));
        Self {
            key: way.0.name(),
            name,
            late_us: row.and_then(|row| row.scatter).map(|scatter| scatter.times(1e-3)),
            cpu: row.and_then(|row| row.cpu_share).map(|share| share * 100.0),
            note,
        }
    }

    /// All ways: mdelay, a timer, and a loop whose wait has learned.
    pub(super) fn ways(timer: Option<&TimerOutcome>, learned: Option<&MeasuredLoop>) -> [Self; 3] {
        [
            Self::by_path(
                timer,
                (TimerPath::Mdelay, StampStore::Array),
                "mdelay",
                "an open question there: which is better?",
            ),
            Self::by_path(
                timer,
                (TimerPath::Sleep, StampStore::Hot),
                "a timer",
                "an open question there: which is better? the timer, perhaps, where its code and \
                 data are in the caches: its stamps stay cached here",
            ),
            Self {
                key: "adaptive",
                name: "a wait that learns",
                late_us: learned.and_then(MeasuredLoop::scatter_us),
                cpu: learned.and_then(|run| run.cpu_load).map(|share| share * 100.0),
                note: "not in the paper: sleeps, and polls the rest; nothing behind; releases each \
                       100 µs leave no phase away from the tick",
            },
        ]
    }

    /// 99 % less the least, µs.
    pub(super) fn at_99_us(&self) -> Option<Interval> {
        self.late_us?.to_p99()
    }

    /// Its rows.
    pub(super) fn rows(&self) -> [PaperRow; 3] {
        let new = |key: &str, title: &str, unit: &str, value: Option<f64>| {
            let title = format!("dispatch by {} each 100 µs: {title}", self.name);
            PaperRow::new(format!("maruti.dispatch.{}.{key}", self.key), &title, unit, "")
                .measured(value)
                .note(self.note)
        };
        let ns = |at: Option<Interval>| at.map(|at| at.value * 1e3);
        let late = self.late_us;
        [
            new("median", "median lateness", "ns", ns(late.and_then(|late| late.p50))),
            new("p99", "1 in 100", "ns", ns(late.and_then(|late| late.p99))),
            new("cost", "share of the CPU", "%", self.cpu),
        ]
    }
}

/// The goal of the paper, by the first way, mdelay: how accurate a dispatch is, and how late.
pub(super) fn goal(ways: &[Dispatch]) -> [PaperRow; 2] {
    let late = ways.first().and_then(|polled| polled.late_us);
    let ns = late.and_then(|late| late.middle()).map(|us| us.value * 1e3);
    let us = late.and_then(|late| late.p99).map(|us| us.value);
    let measured = "measured: dispatches by mdelay each 100 µs";
    [
        PaperRow::new("maruti.goal", "accuracy of a dispatch, 5 to 95 %", "ns", "100")
            .measured(ns)
            .note("\"less than 100 nanoseconds\" is what the paper expects")
            .note(measured),
        PaperRow::new("maruti.goal.latency", "latency of a dispatch, 1 in 100", "µs", "a few")
            .measured(us)
            .note("\"at most a few microseconds\" there")
            .note(measured),
    ]
}

/// The answer to the question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    /// The way that takes least of the CPU of those that scatter about as little as the best.
    pub(super) name: &'static str,
    /// That, with the figures of all ways.
    pub(super) sentence: String,
}

/// The answer; `None` where one of the ways was not measured.
pub(super) fn answer(ways: &[Dispatch]) -> Option<Answer> {
    let mut known = Vec::new();
    for way in ways {
        known.push((way.name, way.at_99_us()?.value, way.cpu?));
    }
    let best = known.iter().map(|(_, us, _)| *us).reduce(f64::min)?;
    let good = known.iter().filter(|(_, us, _)| *us <= best * AS_GOOD);
    let (name, ..) = good.min_by(|a, b| a.2.total_cmp(&b.2))?;
    let words = |(name, us, cpu): &(&'static str, f64, f64)| {
        format!("{name} {} µs for {} % of the CPU", significant(*us), significant(*cpu))
    };
    let each: Vec<String> = known.iter().map(words).collect();
    let sentence = format!(
        "{name} takes least of the CPU among those that scatter at most {AS_GOOD} times as far as \
         the best: {}",
        each.join(", ")
    );
    Some(Answer { name, sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(name: &'static str, us: f64, cpu: f64) -> Dispatch {
        let exact = Some(Interval::exact(us));
        let scatter = Scatter::of_series((0..1_000).map(|at| at % 10)).expect("values");
        let late_us = Some(Scatter { least: 0.0, p99: exact, p50: exact, ..scatter });
        Dispatch { key: "key", name, late_us, cpu: Some(cpu), note: "" }
    }

    #[test]
    fn the_answer_is_the_cheapest_of_those_that_are_as_good_as_the_best() {
        let ways =
            [way("mdelay", 0.05, 99.8), way("a timer", 15.8, 13.5), way("learned", 0.09, 30.0)];
        let Answer { name, sentence: text } = answer(&ways).expect("all measured");
        assert_eq!(name, "learned");
        assert!(text.starts_with("learned takes least of the CPU among those that"), "{text}");
        let each = "at most 2 times as far as the best: mdelay 0.0500 µs for 99.8 % of the CPU, a \
                    timer 15.8 µs";
        assert!(text.contains(each), "{text}");
        let worse = [ways[0], ways[1], way("learned", 0.2, 30.0)];
        assert!(answer(&worse).is_some_and(|answer| answer.name == "mdelay"));
        assert_eq!(answer(&[ways[0], Dispatch { late_us: None, ..ways[1] }]), None);
    }

    #[test]
    fn the_goal_is_that_of_a_dispatch() {
        let late = Scatter::of_series((0..1_000).map(|at| 2_000 + at % 10 * 10)).expect("values");
        let polled = Dispatch { late_us: Some(late.times(1e-3)), ..way("mdelay", 0.05, 99.8) };
        let [accuracy, latency] = goal(&[polled, way("a timer", 15.8, 13.5)]);
        assert!(accuracy.measured.is_some_and(|ns| (80.0..=90.0).contains(&ns)), "{accuracy:?}");
        assert!(latency.measured.is_some_and(|us| (2.0..2.2).contains(&us)), "{latency:?}");
        assert!(goal(&[]).iter().all(|row| row.note.contains("not measured")));
    }

    #[test]
    fn each_way_has_its_rows_and_a_reason_where_nothing_was_measured() {
        let rows: Vec<PaperRow> =
            Dispatch::ways(None, None).iter().flat_map(Dispatch::rows).collect();
        assert_eq!(rows.len(), 9);
        assert!(rows.iter().all(|row| row.measured.is_none() && row.note.contains("not measured")));
        let late = MeasuredLoop::of_latenesses(&[40; 500], 0.3, 1);
        let [_, _, learned] = Dispatch::ways(None, Some(&late));
        let [median, p99, cost] = learned.rows();
        assert_eq!(median.id, "maruti.dispatch.adaptive.median");
        assert!(median.note.contains("no phase away from the tick"), "{median:?}");
        assert!(median.measured.is_some_and(|ns| (ns - 40.0).abs() < 1e-6), "{median:?}");
        assert!(p99.measured.is_some_and(|ns| (ns - 40.0).abs() < 1e-6), "{p99:?}");
        assert!(cost.measured.is_some_and(|percent| (percent - 30.0).abs() < 1e-9), "{cost:?}");
    }
}
