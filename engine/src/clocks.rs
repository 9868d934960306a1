//! The machine's clocks, ready for a loop: cycle counter where the kernel trusts it, else the vDSO.
//!
//! For loops, executives and experiments. Chooses once, at setup; never calibrates behind a hot
//! name.

mod anchored;
mod cost;
mod slew;

use std::sync::atomic::AtomicBool;
use std::{fmt, fs};

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Spin, Wait as _};
use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::timed_pause::TimedPause;

pub use anchored::{Anchored, CounterRate, PauseFault, PauseTrial, UsedPause};
pub use cost::{StampCost, wake_cost};
pub use slew::{Reading, Slew};

/// Now on CLOCK_MONOTONIC, by clock_gettime: for threads that supervise, and for what must be on
/// that clock whatever a loop stamps with.
///
/// # Real-time: in loop
#[inline]
pub fn monotonic_now() -> Instant {
    Instant::from_ns(now_ns(ClockId::Monotonic))
}

/// Waits for one instant on CLOCK_MONOTONIC: sleeps until `margin` before it, then spins. Without
/// a margin it only sleeps; with one that reaches back to now or beyond it only spins. An instant
/// that has passed is no error.
///
/// # Errors
/// `EINTR`: a signal was handled during the sleep, and the instant has not come.
///
/// # Real-time: in loop, waits
pub fn wait_until(at: Instant, margin: Span) -> Result<(), Errno> {
    let sleep_end_ns = at.as_ns().saturating_sub(margin.as_ns().max(0).unsigned_abs());
    if monotonic_now().as_ns() < sleep_end_ns {
        sleep_until_ns(sleep_end_ns)?;
    }
    if margin > Span::ZERO {
        // The sleep is over, so that this spins.
        let _wake = Spin::new(margin).until(&mut Vdso, at, &AtomicBool::new(false));
    }
    Ok(())
}

/// CLOCK_MONOTONIC by clock_gettime, for machines whose counter is not trusted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vdso;

impl Clock for Vdso {
    #[inline]
    fn now(&mut self) -> Instant {
        monotonic_now()
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        self.now()
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        sleep_until(at);
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        self.now()
    }

    #[inline]
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }

    #[inline]
    fn relax(&mut self) {
        punctual_os::cycles::relax();
    }
}

/// The clock of CLOCK_MONOTONIC to stamp with on this machine: the processor's counter where the
/// kernel trusts it, anchored to CLOCK_MONOTONIC at each wake, else clock_gettime. That of a loop
/// and an executive that are given none.
#[derive(Clone, Debug)]
pub struct MachineClock(StampSource);

/// The source of a clock's stamps.
#[derive(Clone, Debug)]
enum StampSource {
    Counter(Anchored),
    /// CLOCK_MONOTONIC itself, and why not the counter.
    Vdso(Vdso, Untrusted),
}

impl MachineClock {
    /// The counter where the kernel trusts it, else the vDSO. Takes about 50 ms: it measures the
    /// counter's rate. Where the processor has timed pauses it tries them, some 5 ms each.
    ///
    /// # Real-time: setup only
    pub fn best() -> Self {
        let mut clock = Self(match counter_trust() {
            Ok(()) => StampSource::Counter(Anchored::calibrate()),
            Err(why) => StampSource::Vdso(Vdso, why),
        });
        let pauses = TimedPause::ALL.iter().copied();
        try_pauses(&mut clock, pauses.filter(|pause| pause.is_supported()));
        clock
    }

    /// The name of the clock that stamps: `tsc`, `cntvct` or `vdso`.
    ///
    /// # Real-time: setup only
    pub fn name(&self) -> &'static str {
        match self.0 {
            StampSource::Counter(_) => punctual_os::cycles::NAME,
            StampSource::Vdso(..) => "vdso",
        }
    }

    /// Takes the counter's rate anew over all the time since calibration, which bounds it ever
    /// tighter. Between segments, never inside one.
    ///
    /// # Real-time: setup only
    pub fn discipline(&mut self) {
        if let StampSource::Counter(anchored) = &mut self.0 {
            anchored.discipline();
        }
    }
}

/// Tries these timed pauses and lets spins on this clock use the first that keeps to its deadline;
/// without any, spins poll. One that the processor lacks ends the process.
///
/// # Real-time: setup only
pub fn try_pauses(clock: &mut MachineClock, pauses: impl Iterator<Item = TimedPause>) {
    if let StampSource::Counter(anchored) = &mut clock.0 {
        anchored.try_pauses(pauses);
    }
}

/// The result of the trial of the processor's timed pauses on this clock; they need the counter.
///
/// # Real-time: setup only
pub fn pause_trial(clock: &MachineClock) -> PauseTrial {
    match &clock.0 {
        StampSource::Counter(anchored) => anchored.pauses(),
        StampSource::Vdso(..) => PauseTrial::Absent,
    }
}

/// The rate of the counter that this clock reads, with the bound of its error; `None` without
/// counter.
///
/// # Real-time: setup only
pub fn counter_rate(clock: &MachineClock) -> Option<CounterRate> {
    match &clock.0 {
        StampSource::Counter(anchored) => Some(anchored.rate()),
        StampSource::Vdso(..) => None,
    }
}

/// The reason why this clock does not read the processor's counter; `None` where it does.
///
/// # Real-time: setup only
pub fn mistrust(clock: &MachineClock) -> Option<&Untrusted> {
    match &clock.0 {
        StampSource::Counter(_) => None,
        StampSource::Vdso(_, why) => Some(why),
    }
}

impl Clock for MachineClock {
    #[inline]
    fn now(&mut self) -> Instant {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.now(),
            StampSource::Vdso(clock, _) => clock.now(),
        }
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.poll(),
            StampSource::Vdso(clock, _) => clock.poll(),
        }
    }

    #[inline]
    fn fine(&mut self) -> u64 {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.fine(),
            StampSource::Vdso(clock, _) => clock.fine(),
        }
    }

    #[inline]
    fn fine_now(&mut self) -> u64 {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.fine_now(),
            StampSource::Vdso(clock, _) => clock.fine_now(),
        }
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        sleep_until(at);
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.wake(),
            StampSource::Vdso(clock, _) => clock.wake(),
        }
    }

    #[inline]
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }

    #[inline]
    fn relax(&mut self) {
        punctual_os::cycles::relax();
    }

    #[inline]
    fn pause_until(&mut self, at: Instant) -> bool {
        match &mut self.0 {
            StampSource::Counter(clock) => clock.pause_until(at),
            StampSource::Vdso(..) => false,
        }
    }
}

/// Sleeps until `at`, or until a signal comes: whoever waits looks at the clock again.
#[inline]
fn sleep_until(at: Instant) {
    let _interrupted = sleep_until_ns(at.as_ns());
}

/// The reason why the processor's counter is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// The kernel keeps time by something else, named here: it may have seen the counter fail.
    Clocksource(String),
    /// The processor does not state that the counter's rate is constant in all states.
    NotInvariant,
    /// The kernel's clocksource or the processor's flags could not be read: the error.
    Unknown(String),
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clocksource(name) => write!(f, "the kernel keeps time by {name}"),
            Self::NotInvariant => f.write_str("the processor states no invariant counter"),
            Self::Unknown(why) => write!(f, "the kernel's clocksource could not be read: {why}"),
        }
    }
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Checks that the kernel of this machine trusts the counter now.
///
/// # Errors
/// The reason why it does not, or why that is unknown.
///
/// # Real-time: setup only
pub fn counter_trust() -> Result<(), Untrusted> {
    let source =
        fs::read_to_string(CLOCKSOURCE).map_err(|why| Untrusted::Unknown(why.to_string()))?;
    let cpuinfo =
        fs::read_to_string("/proc/cpuinfo").map_err(|why| Untrusted::Unknown(why.to_string()))?;
    judge(source.trim(), &cpuinfo)
}

/// On x86-64 the current clocksource must be `tsc` (one that the kernel demoted is not) and the
/// flags must say constant_tsc and nonstop_tsc; on AArch64 the architected timer is both.
fn judge(source: &str, cpuinfo: &str) -> Result<(), Untrusted> {
    let wanted = if cfg!(target_arch = "x86_64") { "tsc" } else { "arch_sys_counter" };
    if source != wanted {
        return Err(Untrusted::Clocksource(source.to_owned()));
    }
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let states = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
    if cfg!(target_arch = "x86_64") && !(states("constant_tsc") && states("nonstop_tsc")) {
        return Err(Untrusted::NotInvariant);
    }
    Ok(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_that_the_kernel_uses_and_that_never_changes_is_trusted() {
        let invariant = "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc sse2\n";
        assert_eq!(judge("tsc", invariant), Ok(()));
        assert_eq!(judge("hpet", invariant), Err(Untrusted::Clocksource("hpet".into())));
        assert_eq!(judge("tsc", "flags : constant_tsc\n"), Err(Untrusted::NotInvariant));
        assert_eq!(judge("tsc", ""), Err(Untrusted::NotInvariant));
        assert_eq!(judge("kvm-clock", ""), Err(Untrusted::Clocksource("kvm-clock".into())));
    }
}
