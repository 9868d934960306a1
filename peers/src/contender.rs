//! Who takes part: a name, how it is run, and whose figures count.

use punctual_core::wait::Spin;
use punctual_engine::wait_policy::WaitKind;

/// One that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Contender {
    /// One of punctual's ways to wait.
    Ours(WaitKind),
    /// The crate `spin_sleep`.
    SpinSleep,
    /// The crate `tokio`, its `interval`.
    Tokio,
    /// A plain loop of absolute sleeps.
    Nanosleep,
    /// rt-tests' program.
    Cyclictest,
    /// LinuxCNC's real-time threads.
    LinuxCnc,
}

/// The share of the CPU that `adaptive` may take by default.
pub(crate) const BUDGET: f64 = 0.1;

impl Contender {
    /// All of them; `adaptive` within `budget` comes first, the others are held against it.
    pub(crate) fn all(budget: f64) -> Vec<Self> {
        vec![
            Self::Ours(WaitKind::Adaptive(budget)),
            Self::Ours(WaitKind::Sleep),
            Self::Ours(WaitKind::Spin),
            Self::Ours(WaitKind::Fixed(Spin::FIXED)),
            Self::Ours(WaitKind::Rearm(None)),
            Self::SpinSleep,
            Self::Tokio,
            Self::Nanosleep,
            Self::Cyclictest,
            Self::LinuxCnc,
        ]
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours(way) => way.name(),
            Self::SpinSleep => "spin_sleep",
            Self::Tokio => "tokio interval",
            Self::Nanosleep => "clock_nanosleep",
            Self::Cyclictest => "cyclictest",
            Self::LinuxCnc => "linuxcnc rtapi",
        }
    }

    /// Whether it is a program of its own.
    pub(crate) const fn is_program(self) -> bool {
        matches!(self, Self::Cyclictest | Self::LinuxCnc)
    }

    /// What its figures are, and who took them.
    pub(crate) const fn figures(self) -> &'static str {
        match self {
            Self::Cyclictest => "lateness, by its own stamps",
            Self::LinuxCnc => {
                "lateness above that of its earliest wake in a block, by its own stamps"
            }
            _ => "lateness",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<_> = Contender::all(0.1).into_iter().map(Contender::name).collect();
        assert_eq!(names[0], "adaptive");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 10);
    }
}
