//! Disturbances of the machine during a run that no sample shows: suspend, clock steps, CPUs that
//! went away, a clocksource that the kernel gave up.
//!
//! For experiments, from a thread beside the loop. Looking is apart from judging: [`compare`] is
//! pure, so that each disturbance can be shown to it.

use std::fmt;
use std::fs;

use punctual_core::time::Span;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};

/// The state of the machine at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// CLOCK_MONOTONIC, in ns.
    pub at_ns: u64,
    /// CLOCK_BOOTTIME − CLOCK_MONOTONIC, in ns: all the time spent in suspend.
    pub suspended_ns: i64,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, in ns.
    pub time_of_day_ns: i64,
    /// The differences are off by at most this, in ns: they are read one after the other.
    pub off_ns: i64,
    /// The kernel's clocksource; `None` when that cannot be read.
    pub clocksource: Option<String>,
    /// Each watched thread, the CPU that it was pinned to, and true where it still is.
    pub pinned: Vec<(i32, u32, bool)>,
}

impl Observation {
    /// Looks at the machine and at `threads`, each with the CPU that it was pinned to.
    ///
    /// # Real-time: reader side
    pub fn look(threads: &[(i32, u32)]) -> Self {
        let (suspended_ns, suspended_off_ns) = ahead(ClockId::Boottime);
        let (time_of_day_ns, time_of_day_off_ns) = ahead(ClockId::Realtime);
        Self {
            at_ns: now_ns(ClockId::Monotonic),
            suspended_ns,
            time_of_day_ns,
            off_ns: suspended_off_ns.max(time_of_day_off_ns),
            clocksource: fs::read_to_string(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            )
            .ok()
            .map(|name| name.trim().to_owned()),
            pinned: threads
                .iter()
                .map(|&(tid, cpu)| (tid, cpu, affinity::get(tid) == Ok(CpuMask::one(cpu))))
                .collect(),
        }
    }
}

/// Readings of which the one in the narrowest bracket counts: one that was preempted is wide.
const READINGS: usize = 5;

/// The lead of a clock over CLOCK_MONOTONIC, and the bound of its error, ns.
fn ahead(id: ClockId) -> (i64, i64) {
    let read = || {
        let before = now_ns(ClockId::Monotonic);
        let clock = now_ns(id).cast_signed();
        let width = now_ns(ClockId::Monotonic) - before;
        (clock - (before + width / 2).cast_signed(), (width / 2 + 1).cast_signed())
    };
    (1..READINGS)
        .map(|_| read())
        .fold(read(), |best, next| if next.1 < best.1 { next } else { best })
}

/// Something that happened between two observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// The machine was suspended for this long.
    Suspended(Span),
    /// The time of day was set by this much. CLOCK_MONOTONIC, and so the grid, did not move.
    ClockStep(Span),
    /// The kernel keeps time by something else now: stamps of the counter may be wrong from here.
    Clocksource(String),
    /// A thread lost the CPU that it was pinned to: it went offline, or somebody moved the thread.
    CpuLost(u32),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspended(span) => write!(f, "the machine was suspended for {span}"),
            Self::ClockStep(span) => write!(f, "the time of day was set by {span}"),
            Self::Clocksource(name) => write!(f, "the kernel changed its clocksource to {name}"),
            Self::CpuLost(cpu) => write!(f, "the loop lost CPU {cpu}: offline, or moved"),
        }
    }
}

/// The shortest suspend that is reported, beyond what the readings are off by.
const SUSPEND_MIN: Span = Span::from_us(500);

/// A change of the time of day beyond this share of the time between is a step, not slewing: chrony
/// slews by up to 8.3 %.
const SLEW_MAX: f64 = 0.1;
const STEP_MIN: Span = Span::from_ms(2);

/// The disturbances between `before` and `after`.
///
/// # Real-time: reader side
pub fn compare(before: &Observation, after: &Observation) -> Vec<Disturbance> {
    let mut happened = Vec::new();
    let off_ns = before.off_ns.saturating_add(after.off_ns);
    let suspended = Span::from_ns(after.suspended_ns - before.suspended_ns);
    if suspended.as_ns() >= SUSPEND_MIN.as_ns().saturating_add(off_ns) {
        happened.push(Disturbance::Suspended(suspended));
    }
    // Suspend moves the time of day against CLOCK_MONOTONIC as well.
    let step_ns = after.time_of_day_ns - before.time_of_day_ns - suspended.as_ns();
    let slewed_ns = (after.at_ns.saturating_sub(before.at_ns)) as f64 * SLEW_MAX;
    let least_ns = STEP_MIN.as_ns().saturating_add(off_ns.saturating_mul(2));
    if step_ns.unsigned_abs() as f64 > slewed_ns.max(least_ns as f64) {
        happened.push(Disturbance::ClockStep(Span::from_ns(step_ns)));
    }
    if let (Some(old), Some(new)) = (&before.clocksource, &after.clocksource)
        && old != new
    {
        happened.push(Disturbance::Clocksource(new.clone()));
    }
    for (was, is) in before.pinned.iter().zip(&after.pinned) {
        if was.2 && !is.2 {
            happened.push(Disturbance::CpuLost(is.1));
        }
    }
    happened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Observation {
        Observation {
            at_ns: 1_000_000_000,
            suspended_ns: 7,
            time_of_day_ns: 1_700_000_000_000_000_000,
            off_ns: 100,
            clocksource: Some("tsc".into()),
            pinned: vec![(10, 3, true)],
        }
    }

    fn later(ms: u64) -> Observation {
        Observation { at_ns: quiet().at_ns + ms * 1_000_000, ..quiet() }
    }

    #[test]
    fn nothing_is_nothing_and_slewing_is_no_step() {
        assert_eq!(compare(&quiet(), &later(100)), []);
        let mut slewed = later(100);
        slewed.time_of_day_ns += 8_000_000;
        assert_eq!(compare(&quiet(), &slewed), []);
    }

    #[test]
    fn suspend_is_told_from_a_step_of_the_time_of_day() {
        let hour_ns = 3_600_000_000_000;
        let mut after = later(100);
        after.suspended_ns += hour_ns;
        after.time_of_day_ns += hour_ns;
        assert_eq!(compare(&quiet(), &after), [Disturbance::Suspended(Span::from_ns(hour_ns))]);
        let mut after = later(100);
        after.time_of_day_ns -= hour_ns;
        assert_eq!(compare(&quiet(), &after), [Disturbance::ClockStep(Span::from_ns(-hour_ns))]);
    }

    #[test]
    fn a_reader_that_was_preempted_sees_no_suspend_and_no_step() {
        let mut after = later(100);
        after.suspended_ns += 7_000_000;
        after.off_ns = 7_000_000;
        assert_eq!(compare(&quiet(), &after), []);
    }

    #[test]
    fn a_lost_cpu_and_a_new_clocksource_are_seen_once() {
        let mut after = later(100);
        after.pinned[0].2 = false;
        after.clocksource = Some("hpet".into());
        let happened = compare(&quiet(), &after);
        assert_eq!(happened, [Disturbance::Clocksource("hpet".into()), Disturbance::CpuLost(3)]);
        assert_eq!(compare(&after, &after), []);
    }

    #[test]
    fn this_machine_now_is_not_disturbed() {
        let look = || Observation::look(&[]);
        assert_eq!(compare(&look(), &look()), []);
    }
}
