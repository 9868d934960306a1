//! The names of policies and ways to wait.

use std::fmt;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use punctual_lab::waits::{WAITS, WaitRow};
use punctual_os::scheduler::SchedPolicy;

/// Scheduling policies that a loop can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyName {
    /// SCHED_OTHER
    Other,
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    Rr,
}

impl PolicyName {
    /// The policy, with this priority where it has one.
    pub(crate) fn with(self, priority: u8) -> SchedPolicy {
        match self {
            Self::Other => SchedPolicy::Other,
            Self::Fifo => SchedPolicy::Fifo(priority),
            Self::Rr => SchedPolicy::RoundRobin(priority),
        }
    }
}

/// A way to wait, by its row in the table of them.
#[derive(Clone, Copy)]
pub(crate) struct WaitName(pub(crate) &'static WaitRow);

impl ValueEnum for WaitName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [WaitName; WAITS.len()] = {
            let mut all = [WaitName(&WAITS[0]); WAITS.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = WaitName(&WAITS[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name).help(self.0.help))
    }
}

impl Default for WaitName {
    fn default() -> Self {
        Self(&WAITS[0])
    }
}

impl fmt::Debug for WaitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}
