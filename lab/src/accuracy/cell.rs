//! One way to wait, and what its exits were.
//!
//! Allocates nothing while it measures. Each wait ends by the counter, after a few microseconds.

use punctual::clocks::{MachineClock, Vdso};
use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_os::polling::{self, Alignment, CounterRead, PolledExit};
use punctual_os::{cache, cycles};

use super::outcome::{AccuracyRow, LoopPeriod};
use super::sweep::{Sweep, period};
use crate::spin_exit::{FINE, SpinExit, plain};

/// Offsets in a sweep: many periods of any loop.
pub(super) const OFFSETS: usize = 512;
/// Polls of a wait whose mean distance counts.
const POLLS_MIN: u64 = 8;
/// Sweeps that quantiles are of at most: 1.6 MB.
const SWEEPS: usize = 400;
/// An exit later than this was interrupted: it is ten times what the paper aims at.
pub(super) const INTERRUPTED_NS: f64 = 1_000.0;
/// From the entry to the first target, where the entry is to be over by then.
const LEAD_NS: f64 = 1_000.0;
/// As far for exits that begin their own approach that early.
const LEAD_CORRECTED_NS: f64 = 3_000.0;
/// How often the computed delay is calibrated, 5 ms each, until it is steady.
const CALIBRATIONS: usize = 20;

/// How a wait ends.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Polled(CounterRead, Alignment),
    Vdso,
    Plain,
    Corrected(SpinExit),
}

/// What is cold at the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cold {
    Nothing,
    Data,
    Code,
}

/// One way to wait.
pub(super) struct Cell {
    exit: Exit,
    cold: Cold,
    lead_ticks: f64,
    sweep: Sweep,
    /// Where a polling loop finds its offset, in a line of its own.
    offset: Box<Line>,
    last: Option<PolledExit>,
    poll_ticks: Option<f64>,
    interrupted: u64,
    interrupted_worst_ticks: f64,
}

#[repr(align(128))]
#[derive(Debug, Default)]
struct Line(u64);

/// All ways that this machine has, with the counter as far as it is trusted.
pub(super) fn cells(clock: &mut MachineClock) -> Vec<Cell> {
    let mut cells = Vec::new();
    let tick_ns = tick_ns(clock);
    let lead = |ns: f64| ns / tick_ns;
    if clock.rate().is_some() {
        let reads = [
            CounterRead::Unordered,
            CounterRead::Fenced,
            #[cfg(target_arch = "x86_64")]
            CounterRead::WithProcessor,
        ];
        for read in reads.into_iter().filter(|read| read.is_supported()) {
            for alignment in [Alignment::Aligned, Alignment::Split] {
                let exit = Exit::Polled(read, alignment);
                cells.push(Cell::new(exit, Cold::Nothing, lead(LEAD_NS)));
            }
        }
        // Short leads, so that what is cold is still missing when the target comes.
        for cold in [Cold::Nothing, Cold::Data, Cold::Code] {
            let exit = Exit::Polled(CounterRead::Unordered, Alignment::Aligned);
            cells.push(Cell::new(exit, cold, 0.0));
        }
    }
    cells.push(Cell::new(Exit::Vdso, Cold::Nothing, lead(LEAD_NS)));
    cells.push(Cell::new(Exit::Plain, Cold::Nothing, lead(LEAD_CORRECTED_NS)));
    // Polls and links of one length are rare where others disturb the CPU.
    if let Some(exit) = (0..CALIBRATIONS).find_map(|_| SpinExit::measure(clock).ok()) {
        cells.push(Cell::new(Exit::Corrected(exit), Cold::Nothing, lead(LEAD_CORRECTED_NS)));
    }
    cells
}

/// A tick of the counter, or of CLOCK_MONOTONIC where the counter is not trusted.
pub(super) fn tick_ns(clock: &MachineClock) -> f64 {
    clock.rate().filter(|rate| rate.hz > 0.0).map_or(1.0, |rate| 1e9 / rate.hz)
}

impl Cell {
    fn new(exit: Exit, cold: Cold, lead_ticks: f64) -> Self {
        Self {
            exit,
            cold,
            lead_ticks,
            sweep: Sweep::new(OFFSETS, SWEEPS),
            offset: Box::default(),
            last: None,
            poll_ticks: None,
            interrupted: 0,
            interrupted_worst_ticks: 0.0,
        }
    }

    /// One sweep over all offsets: a few milliseconds.
    pub(super) fn round(&mut self, clock: &mut MachineClock, tick_ns: f64) {
        self.sweep.begin();
        clock.wake();
        for offset in 0..OFFSETS {
            let ticks = self.lead_ticks + offset as f64;
            let error = match self.exit {
                Exit::Polled(read, alignment) => self.polled(read, alignment, ticks),
                Exit::Vdso => {
                    in_ns(&mut Vdso, ticks * tick_ns, |clock, target| while clock.now() < target {})
                }
                Exit::Plain => in_ns(clock, ticks * tick_ns, plain),
                Exit::Corrected(exit) => in_ns(clock, ticks * tick_ns, |clock, target| {
                    while target - clock.poll() > exit.before() {}
                    exit.leave(clock, target);
                }),
            };
            let error = match self.exit {
                Exit::Polled(..) => error,
                _ => error / tick_ns,
            };
            self.take(error, INTERRUPTED_NS / tick_ns);
        }
    }

    /// Waits so many ticks by a loop of known code; the error in ticks.
    #[inline]
    fn polled(&mut self, read: CounterRead, alignment: Alignment, ticks: f64) -> f64 {
        self.offset.0 = ticks as u64;
        match (self.cold, &self.last) {
            (Cold::Data, _) => cache::flush(std::slice::from_ref(&*self.offset)),
            (Cold::Code, Some(last)) => last.flush_code(),
            _ => {}
        }
        let from = cycles::ordered();
        let exit = polling::leave_at(read, alignment, from, &self.offset.0);
        self.last = Some(exit);
        if exit.polls >= POLLS_MIN {
            let poll_ticks = exit.polled.wrapping_sub(from) as f64 / exit.polls as f64;
            self.poll_ticks = Some(self.poll_ticks.map_or(poll_ticks, |of| of.min(poll_ticks)));
        }
        exit.stamp.wrapping_sub(from.wrapping_add(ticks as u64)).cast_signed() as f64
    }

    /// Takes an error in ticks.
    #[inline]
    fn take(&mut self, error: f64, interrupted_from: f64) {
        if error < interrupted_from {
            self.sweep.push(error);
        } else {
            self.interrupted += 1;
            self.interrupted_worst_ticks = self.interrupted_worst_ticks.max(error);
            self.sweep.push(f64::NAN);
        }
    }

    /// What was measured; `None` where nothing was.
    pub(super) fn row(&self, tick_ns: f64) -> Option<AccuracyRow> {
        let spread = self.sweep.spread()?;
        let curve = self.sweep.curve();
        let (exit, code) = self.names();
        let known = |error: &f64| error.is_finite().then_some(*error);
        Some(AccuracyRow {
            exit: exit.to_owned(),
            code: code.map(str::to_owned),
            cache: match self.cold {
                Cold::Nothing => "warm",
                Cold::Data => "cold data",
                Cold::Code => "cold code",
            }
            .to_owned(),
            lead_ticks: self.lead_ticks,
            offsets: OFFSETS as u64,
            sweeps: self.sweep.swept(),
            n: self.sweep.count(),
            interrupted: self.interrupted,
            interrupted_worst_ns: (self.interrupted > 0)
                .then_some(self.interrupted_worst_ticks * tick_ns),
            min_ticks: spread.min,
            p5_ticks: spread.p5,
            p50_ticks: spread.p50,
            p95_ticks: spread.p95,
            max_ticks: spread.max,
            poll_ticks: self.poll_ticks,
            period: period(&curve).map(|(ticks, share)| LoopPeriod { ticks, share }),
            curve: curve.iter().map(known).collect(),
        })
    }

    fn names(&self) -> (&'static str, Option<&'static str>) {
        let arm = cfg!(target_arch = "aarch64");
        match self.exit {
            Exit::Polled(read, alignment) => {
                let name = match read {
                    CounterRead::Unordered if arm => "cntvct",
                    CounterRead::Unordered => "rdtsc",
                    CounterRead::Fenced if arm => "isb+cntvct",
                    CounterRead::Fenced => "lfence+rdtsc",
                    #[cfg(target_arch = "x86_64")]
                    CounterRead::WithProcessor => "rdtscp",
                };
                let code = match alignment {
                    Alignment::Aligned => "aligned",
                    Alignment::Split => "split",
                };
                (name, Some(code))
            }
            Exit::Vdso => ("vdso", None),
            Exit::Plain => ("plain", None),
            Exit::Corrected(_) => ("corrected", None),
        }
    }
}

/// Waits so many ns on `clock` by `exit`; the error in ns.
#[inline]
fn in_ns<C: Clock>(clock: &mut C, ns: f64, exit: impl FnOnce(&mut C, Instant)) -> f64 {
    let target = clock.now() + Span::from_ns(ns as i64);
    exit(clock, target);
    let late = clock.fine_now().wrapping_sub(target.as_ns().wrapping_mul(FINE));
    late.cast_signed() as f64 / FINE as f64
}
