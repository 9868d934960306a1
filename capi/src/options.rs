//! `punctual_options`: how a thread is to run and wait, for a loop and for an executive alike.
//!
//! Turns the caller's numbers into `punctual`'s types; what cannot be is refused in words.

use std::ffi::c_int;
use std::time::Duration;

use punctual::core::time::{Period, Span};
use punctual::core::wait::Spin;
use punctual::loops::{LoopBuilder, LoopPhase};
use punctual::os::scheduler::SchedPolicy;
use punctual::wait_policy::Way;
use punctual::{Loop, RtThread, WaitPolicy};

use crate::border::{self, Failure};
use crate::record::{self, Record};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Options {
    size: usize,
    pub(crate) period_num_ns: u64,
    pub(crate) period_den: u64,
    phase_ns: u64,
    margin_ns: u64,
    pub(crate) watchdog_ns: u64,
    budget_share: f64,
    late_share: f64,
    phase: i32,
    wait: i32,
    cpu: i32,
    priority: i32,
    pub(crate) lock_memory: u32,
    pub(crate) hold_idle_states: u32,
    pub(crate) rehearse: u32,
    pub(crate) strict: u32,
}

const _: () = assert!(size_of::<Options>() == 96);

// SAFETY: `repr(C)`; 8 words and 8 halves of one make 96 bytes, so that there is no padding.
unsafe impl Record for Options {
    const LEAST: usize = 96;

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            period_num_ns: 0,
            period_den: 1,
            phase_ns: 0,
            margin_ns: 0,
            watchdog_ns: 0,
            budget_share: 0.1,
            late_share: 1e-3,
            phase: PHASE_DEFAULT,
            wait: WAIT_ADAPTIVE,
            cpu: -1,
            priority: 90,
            lock_memory: 1,
            hold_idle_states: 1,
            rehearse: 1,
            strict: 0,
        }
    }
}

const PHASE_DEFAULT: i32 = 0;
const PHASE_QUIET: i32 = 1;
const PHASE_ZERO: i32 = 2;
const PHASE_AT: i32 = 3;

const WAIT_ADAPTIVE: i32 = 0;
const WAIT_SLEEP: i32 = 1;
const WAIT_FIXED: i32 = 2;
const WAIT_REARM: i32 = 3;
const WAIT_SPIN: i32 = 4;

/// The latest epoch of an executive: the longest period.
const EPOCH_MAX_NS: u64 = 1 << 62;

/// A period of `num / den` ns, or why it is none.
pub(crate) fn period(num_ns: u64, den: u64) -> Result<Period, Failure> {
    let bad = || format!("a period of {num_ns}/{den} ns: from 1 ns to 2^62 ns (146 years)");
    Period::ratio(num_ns, den).ok_or_else(|| Failure::invalid(bad()))
}

fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl Options {
    /// As a loop of one period.
    pub(crate) fn of_loop(&self) -> Result<LoopBuilder, Failure> {
        let phase = match self.phase {
            PHASE_DEFAULT | PHASE_QUIET => LoopPhase::Quiet,
            PHASE_ZERO => LoopPhase::Zero,
            PHASE_AT => LoopPhase::At(self.phase_ns),
            other => return Err(Failure::invalid(format!("no phase is numbered {other}"))),
        };
        let period = period(self.period_num_ns, self.period_den)?;
        let builder = Loop::builder(period).phase(phase).thread(self.thread(period)?);
        builder.check().map_err(|why| Failure::invalid(why.to_string()))?;
        Ok(builder)
    }

    /// The epoch of an executive, ns, and how its thread runs and waits; `shortest` is the period
    /// that its wait adapts to.
    pub(crate) fn of_executive(&self, shortest: Period) -> Result<(u64, WaitPolicy), Failure> {
        if (self.period_num_ns, self.period_den) != (0, 1) {
            return Err(Failure::invalid("an executive's tasks have periods, it has none itself"));
        }
        let epoch_ns = match self.phase {
            PHASE_DEFAULT | PHASE_ZERO => 0,
            PHASE_AT if self.phase_ns <= EPOCH_MAX_NS => self.phase_ns,
            PHASE_AT => {
                return Err(Failure::invalid(format!("a phase of {} ns: too far", self.phase_ns)));
            }
            PHASE_QUIET => {
                return Err(Failure::invalid("a quiet phase is a loop's, not an executive's"));
            }
            other => return Err(Failure::invalid(format!("no phase is numbered {other}"))),
        };
        self.thread(shortest)?;
        Ok((epoch_ns, self.wait()?))
    }

    /// How the thread of a loop of this (shortest) period runs.
    fn thread(&self, period: Period) -> Result<RtThread, Failure> {
        let mut thread = match self.cpu()? {
            Some(cpu) => RtThread::cpu(cpu),
            None => RtThread::any(),
        };
        thread = match self.policy()? {
            SchedPolicy::Fifo(priority) => thread.fifo(priority),
            _ => thread.other(),
        };
        thread = match self.watchdog_ns {
            0 => thread.without_watchdog(),
            ns => thread.watchdog(Duration::from_nanos(ns)),
        };
        let memory = self.lock_memory != 0;
        thread = thread.wait(self.wait()?).lock_memory(memory);
        thread = thread.hold_idle_states(self.hold_idle_states != 0);
        if self.strict != 0 {
            thread = thread.strict();
        }
        thread.check(period).map_err(|why| Failure::invalid(why.to_string()))?;
        Ok(thread)
    }

    fn wait(&self) -> Result<WaitPolicy, Failure> {
        let wait = WaitPolicy::from(self.way()?).late_share(self.late_share);
        Ok(wait.learn_first(self.rehearse != 0))
    }

    fn way(&self) -> Result<Way, Failure> {
        Ok(match self.wait {
            WAIT_ADAPTIVE => Way::Adaptive(self.budget_share),
            WAIT_SLEEP => Way::Sleep,
            WAIT_FIXED if self.margin_ns == 0 => Way::Fixed(Spin::FIXED),
            WAIT_FIXED => Way::Fixed(span(self.margin_ns)),
            // None for 0.
            WAIT_REARM => Way::Rearm(Period::from_ns(self.margin_ns)),
            WAIT_SPIN => Way::Spin,
            other => return Err(Failure::invalid(format!("no way to wait is numbered {other}"))),
        })
    }

    /// The scheduling policy to ask for.
    pub(crate) fn policy(&self) -> Result<SchedPolicy, Failure> {
        match u8::try_from(self.priority) {
            Ok(0) => Ok(SchedPolicy::Other),
            Ok(priority @ 1..=98) => Ok(SchedPolicy::Fifo(priority)),
            _ => Err(Failure::invalid(format!(
                "priority must be from 1 to 98, or 0 for SCHED_OTHER (got {})",
                self.priority
            ))),
        }
    }

    /// The CPU to run on; `None` to leave that to the kernel.
    pub(crate) fn cpu(&self) -> Result<Option<u32>, Failure> {
        match (self.cpu, u32::try_from(self.cpu)) {
            (-1, _) => Ok(None),
            (_, Ok(cpu)) => Ok(Some(cpu)),
            (cpu, _) => Err(Failure::invalid(format!("CPU {cpu}: from 0 on, or -1 for any"))),
        }
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_options_init(options: *mut Options, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    border::enter(|| unsafe { record::init(options, size) })
}

#[cfg(test)]
impl Options {
    /// A loop of this period that is quick to create and needs no rights.
    pub(crate) fn plain(&mut self, period_ns: u64) {
        (self.period_num_ns, self.phase, self.wait) = (period_ns, PHASE_ZERO, WAIT_SLEEP);
        (self.priority, self.lock_memory, self.hold_idle_states) = (0, 0, 0);
    }

    /// With a watchdog.
    pub(crate) fn watched(&mut self, bound_ns: u64) {
        self.watchdog_ns = bound_ns;
    }

    /// At this priority.
    pub(crate) fn prefer(&mut self, priority: i32) {
        self.priority = priority;
    }

    /// On this CPU.
    pub(crate) fn pin(&mut self, cpu: i32) {
        self.cpu = cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors;

    fn words(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options { period_num_ns: 1_000_000, ..Options::blank() };
        change(&mut options);
        options.of_loop().map_or_else(|failure| failure.text.unwrap_or_default(), |_| String::new())
    }

    #[test]
    fn every_number_is_looked_at() {
        assert_eq!(words(|_| ()), "");
        assert!(words(|o| o.period_num_ns = 0).contains("0/1 ns"));
        assert!(words(|o| o.period_num_ns = (1 << 62) + 1).contains("2^62"));
        assert!(words(|o| o.period_den = 0).contains("/0 ns"));
        assert!(words(|o| o.phase = 4).contains("no phase"));
        assert!(
            words(|o| (o.phase, o.phase_ns) = (PHASE_AT, 1_000_000))
                .contains("phase must be below")
        );
        assert!(words(|o| o.wait = -1).contains("no way to wait"));
        assert!(words(|o| (o.wait, o.margin_ns) = (WAIT_FIXED, u64::MAX)).contains("margin"));
        assert!(words(|o| (o.wait, o.margin_ns) = (WAIT_REARM, 1_000_001)).contains("re-arm"));
        assert!(words(|o| o.budget_share = f64::NAN).contains("budget"));
        assert!(words(|o| o.late_share = 0.0).contains("late"));
        assert!(words(|o| o.cpu = -2).contains("CPU -2"));
        assert!(
            words(|o| o.priority = 100).contains("100") && !words(|o| o.priority = -1).is_empty()
        );
        assert!(words(|o| o.watchdog_ns = 1).contains("watchdog"));
        assert_eq!(words(|o| (o.wait, o.margin_ns, o.priority) = (WAIT_REARM, 0, 0)), "");
    }

    #[test]
    fn an_executive_has_an_epoch_and_no_period() {
        let shortest = Period::hz(1_000).expect("in range");
        let epoch = |options: Options| options.of_executive(shortest).map(|(epoch_ns, _)| epoch_ns);
        assert_eq!(epoch(Options::blank()).expect("fine"), 0);
        let at = Options { phase: PHASE_AT, phase_ns: 5_000_000, ..Options::blank() };
        assert_eq!(epoch(at).expect("fine"), 5_000_000);
        for bad in [
            Options { phase: PHASE_QUIET, ..Options::blank() },
            Options { period_num_ns: 5, ..Options::blank() },
            Options { phase: PHASE_AT, phase_ns: u64::MAX, ..Options::blank() },
        ] {
            assert_eq!(epoch(bad).expect_err("bad").errno, libc::EINVAL);
        }
    }

    #[test]
    fn a_panic_inside_is_an_error_outside() {
        border::tests::panic_next();
        // SAFETY: null is allowed.
        let answer = unsafe { punctual_options_init(std::ptr::null_mut(), 0) };
        assert_eq!(answer, -libc::ENOTRECOVERABLE);
        assert!(errors::tests::last().contains("fault"));
    }
}
