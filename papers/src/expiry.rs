//! From a timer's expiry to its interrupt: what an interrupt handler of the papers stamps, and user
//! space cannot.
//!
//! The kernel's own tracepoints show it, as `punctual blame` reads them: a thread sleeps to one
//! instant after the other, and of each such timer the interrupt has the time that it read. Never
//! prints.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::scatter::Scatter;
use punctual_core::time::Period;
use punctual_lab::capture::{Capture, CaptureConsumer, CaptureItem, CapturePlan, EventSet};
use punctual_lab::experiment::{
    Context, Demand, Experiment, ExperimentError, ExperimentOutcome, demand, on_measuring_thread,
};
use punctual_lab::load::LoadSpec;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process;
use punctual_trace::event::{Tid, TraceKind};

use crate::bench::Bench;
use crate::row::PaperRow;

/// Sleeps of a capture: half a second of the longest period that a paper has.
const SLEEPS: u64 = 2_000;
/// Expiries lie this part of the period after its multiples: away from timers that others have at
/// such.
const ASIDE: u64 = 3;
/// The share of the CPU that it takes at most: for the judgement of what it risks.
const BUSY: f64 = 0.3;

/// A thread that sleeps each period while the kernel's events of its CPU are recorded.
#[derive(Clone, Debug)]
struct ExpiryExperiment {
    /// The thread: its CPU, and the policy to request.
    thread: RtThread,
    /// From one expiry to the next.
    period: Period,
}

/// Times from expiry to interrupt, ns, in the order of time; or why the kernel does not show them.
type Expiries = Result<Vec<i64>, String>;

impl Experiment for ExpiryExperiment {
    type Outcome = Expiries;

    fn demands(&self) -> Vec<Demand> {
        vec![demand(&self.thread, self.period, BUSY)]
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(self, context: Context<'_, '_>) -> Result<ExperimentOutcome<Expiries>, ExperimentError> {
        let stop = context.stop;
        let plan = CapturePlan::new(EventSet::Full).without_chains();
        let plan = match self.thread.pinned_to() {
            Some(cpu) => plan.on_cpus(&[cpu]).away_from(&[cpu]),
            None => plan,
        };
        let capture = Capture::start(&plan, TimersSeen::default());
        let ExperimentOutcome { outcome: tid, end, clock, refused, disturbances, taken } =
            on_measuring_thread(&self.thread, stop, |_| sleep_each(self.period, stop))?;
        let outcome = capture.map_err(|refused| refused.to_string()).map(|capture| {
            let Some(ended) = capture.end() else { return Vec::new() };
            ended.closing.wait();
            ended.consumer.expiries_of(tid)
        });
        Ok(ExperimentOutcome { outcome, end, clock, refused, disturbances, taken })
    }
}

/// Sleeps to one instant after the other; the thread that did.
fn sleep_each(period: Period, stop: &AtomicBool) -> Tid {
    for _ in 0..SLEEPS {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let _interrupted = sleep_until_ns(next_ns(now_ns(ClockId::Monotonic), period.as_ns()));
    }
    process::tid().cast_unsigned()
}

/// The first expiry that is half a period away at least: one that has passed, while the thread was
/// late, would have no interrupt.
fn next_ns(now_ns: u64, period_ns: u64) -> u64 {
    let aside_ns = period_ns / ASIDE;
    let earliest_ns = now_ns + period_ns / 2;
    (earliest_ns.saturating_sub(aside_ns)).div_ceil(period_ns) * period_ns + aside_ns
}

/// The timers that were started and have not expired, by address, and those that have.
///
/// Bounded: of more expiries than that the rest is left out.
#[derive(Debug, Default)]
struct TimersSeen {
    /// The thread that started each, and the expiry that it requested, ns.
    started: HashMap<u64, (Tid, i64)>,
    /// The thread, and how long after the expiry the interrupt read its clock, ns.
    expired: Vec<(Tid, i64)>,
}

/// Timers and expiries of all threads that are kept at most.
const MOST: usize = 8 * SLEEPS as usize;

impl TimersSeen {
    fn see(&mut self, tid: Tid, kind: &TraceKind) {
        match *kind {
            TraceKind::TimerStart { timer, soft_expires_ns, .. } if self.started.len() < MOST => {
                self.started.insert(timer, (tid, soft_expires_ns));
            }
            TraceKind::TimerCancel { timer } => {
                self.started.remove(&timer);
            }
            TraceKind::TimerExpireEntry { timer, now_ns, .. } => {
                let started = self.started.remove(&timer);
                let expired = started.map(|(tid, expires_ns)| (tid, now_ns - expires_ns));
                self.expired.extend(expired.filter(|_| self.expired.len() < MOST));
            }
            _ => {}
        }
    }

    /// Those of a thread, ns, in the order of time.
    fn expiries_of(self, tid: Tid) -> Vec<i64> {
        self.expired.into_iter().filter(|(own, _)| *own == tid).map(|(_, ns)| ns).collect()
    }
}

impl CaptureConsumer for TimersSeen {
    fn take(&mut self, item: CaptureItem<'_>) {
        if let CaptureItem::Event(event) = item {
            self.see(event.tid, &event.kind);
        }
    }
}

/// The rows that begin with `id`: the median and 1 in 100 of the times from a timer's expiry to its
/// interrupt, on the measured CPU with nothing beside it, each period.
///
/// # Errors
/// Why it cannot be measured.
pub(crate) fn measured<B: Bench>(
    bench: &mut B,
    id: &str,
    period_ns: u64,
) -> Result<[PaperRow; 2], B::Error> {
    let thread = bench.thread();
    let found = match Period::from_ns(period_ns) {
        Some(period) => bench.measure(ExpiryExperiment { thread, period })?,
        None => None,
    };
    Ok(rows(id, period_ns, found.map(|(expiries, _)| expiries)))
}

fn rows(id: &str, period_ns: u64, found: Option<Expiries>) -> [PaperRow; 2] {
    let refused = found.as_ref().and_then(|found| found.as_ref().err()).map(|why| {
        format!(
            "not measured: {why}; where that is allowed, punctual blame shows it of any loop, by \
             the same events"
        )
    });
    let times = found.and_then(Result::ok).unwrap_or_default();
    let n = times.len();
    let scatter = Scatter::of_series(times);
    let us = |at: Option<f64>| at.map(|ns| ns / 1e3);
    let values = [
        ("", "median", us(scatter.and_then(|scatter| Some(scatter.p50?.value)))),
        (".p99", "1 in 100", us(scatter.and_then(|scatter| Some(scatter.p99?.value)))),
    ];
    values.map(|(end, quantile, value)| {
        let title = format!(
            "a timer's expiry to its interrupt each {} µs, {quantile}, nothing beside it",
            period_ns / 1_000
        );
        let row = PaperRow::new(format!("{id}{end}"), &title, "µs", "");
        let row = match &refused {
            Some(why) => row.measured_or(value, why),
            None => row.measured(value),
        };
        row.note(&format!(
            "the stamp of an interrupt handler there; here the clock that the kernel's own \
             interrupt read, by its events hrtimer_start and hrtimer_expire_entry of {n} sleeps, \
             whose recording takes part of it"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(timer: u64, soft_expires_ns: i64) -> TraceKind {
        let expires_ns = soft_expires_ns + 50_000;
        TraceKind::TimerStart { timer, function: Default::default(), expires_ns, soft_expires_ns }
    }

    fn expired(timer: u64, now_ns: i64) -> TraceKind {
        TraceKind::TimerExpireEntry { timer, function: Default::default(), now_ns }
    }

    #[test]
    fn an_interrupt_is_as_late_as_it_read_after_what_its_own_thread_requested() {
        let mut seen = TimersSeen::default();
        for (tid, kind) in [
            (7, started(0xa, 1_000)),
            (9, started(0xb, 1_500)),
            // The interrupt comes while another thread runs.
            (0, expired(0xa, 3_500)),
            (0, expired(0xb, 9_000)),
            (7, started(0xa, 10_000)),
            (7, TraceKind::TimerCancel { timer: 0xa }),
            (0, expired(0xa, 99_000)),
            (7, started(0xa, 20_000)),
            (7, expired(0xa, 21_200)),
        ] {
            seen.see(tid, &kind);
        }
        assert_eq!(seen.expiries_of(7), [2_500, 1_200]);
    }

    #[test]
    fn no_sleep_begins_at_an_expiry_that_has_passed_or_is_too_near() {
        for now_ns in (0..400_000).step_by(700) {
            let next_ns = next_ns(now_ns, 100_000);
            assert!((50_000..150_000).contains(&(next_ns - now_ns)), "{now_ns}: {next_ns}");
            assert_eq!(next_ns % 100_000, 33_333);
        }
    }

    #[test]
    fn what_the_kernel_does_not_show_has_a_reason_and_a_way() {
        let refused = "kernel.perf_event_paranoid is 3".to_owned();
        for row in rows("wince.fig5.interrupt", 200_000, Some(Err(refused))) {
            assert!(row.measured.is_none() && row.note.contains("paranoid is 3"), "{row:?}");
            assert!(row.note.contains("punctual blame shows it"), "{row:?}");
        }
        let times: Vec<i64> = (0..2_000).map(|at| 1_000 + at % 100).collect();
        let [median, rare] = rows("wince.fig5.interrupt", 200_000, Some(Ok(times)));
        assert!(median.measured.is_some_and(|us| (1.0..1.1).contains(&us)), "{median:?}");
        assert!(rare.measured > median.measured && rare.note.contains("of 2000 sleeps"));
        assert_ne!(median.title, rare.title);
    }
}
