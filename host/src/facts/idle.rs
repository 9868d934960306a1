//! Idle states of the CPUs and who chooses them: `/sys/devices/system/cpu/cpuidle`. Reads through
//! the root only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPUS, Source, number, switch};
use crate::fact::Fact;
use crate::root::Root;

/// Who chooses the states, or [`NO_DRIVER`].
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const NO_DRIVER: &str = "none";

/// More states than any driver has (the kernel's own bound is 10).
const MAX_STATES: u32 = 16;

/// Idle states and who chooses them: `/sys/devices/system/cpu/cpuidle` and the states of one CPU
/// (admin-guide/pm/cpuidle).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Idle {
    /// The cpuidle driver; absent where none is loaded.
    pub idle_driver: Fact<String>,
    /// Who chooses the state.
    pub idle_governor: Fact<String>,
    /// The states of the first online CPU, from shallow to deep.
    pub idle_states: Fact<Vec<IdleState>>,
}

/// One idle state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// As the driver calls it, such as `POLL`, `C1E`, `WFI`.
    pub name: String,
    /// The most that leaving it takes, as the driver says, in microseconds.
    pub exit_us: u64,
    /// True where it was switched off.
    pub disabled: bool,
}

/// The most that leaving the state takes into which x86 halts without a driver, us: C1, which
/// processors may deepen to C1E by themselves (15 us at most in the tables of
/// drivers/idle/intel_idle.c, Linux 6.18).
const HALT_EXIT_US: u64 = 15;

impl IdleState {
    /// The most that leaving each state takes, us, from shallow to deep; that of the one which the
    /// kernel itself has where no driver chooses (none is loaded, or `cpuidle.off=1`); empty where
    /// that cannot be read. On x86 alone: elsewhere a CPU may take its cluster with it, whose time
    /// its own states do not have (PSCI, OS-initiated mode).
    pub fn exits_us(root: &Root) -> Vec<u64> {
        if !cfg!(target_arch = "x86_64") {
            return Vec::new();
        }
        let source = Source::new(root);
        let states = states(&source);
        if let Some(states) = states.value() {
            return states.iter().map(|state| state.exit_us).collect();
        }
        let halts = match source.word(DRIVER) {
            Fact::Known { value: driver, .. } => driver == NO_DRIVER,
            // Where CPUs are to be seen at all.
            Fact::Absent { .. } => source.word(&format!("{CPUS}/online")).value().is_some(),
            Fact::Unreadable { .. } => false,
        };
        if halts { vec![HALT_EXIT_US] } else { Vec::new() }
    }
}

impl Idle {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let present = |fact: Fact<String>| {
            fact.and_then(|name, origin| match name.as_str() {
                NO_DRIVER => Fact::absent(origin),
                _ => Fact::known(name, origin),
            })
        };
        // Read-only name first: it is there whether or not the governor can be switched.
        let governor = source
            .word(&format!("{CPUS}/cpuidle/current_governor_ro"))
            .or_else(|| source.word(&format!("{CPUS}/cpuidle/current_governor")));
        Self {
            idle_driver: present(source.word(DRIVER)),
            idle_governor: present(governor),
            idle_states: states(source),
        }
    }
}

fn states(source: &Source<'_>) -> Fact<Vec<IdleState>> {
    let first = source.online.first().unwrap_or(0);
    let at = format!("{CPUS}/cpu{first}/cpuidle");
    let mut states = Vec::new();
    for state in 0..MAX_STATES {
        let state = format!("{at}/state{state}");
        let (name, exit) = match (
            source.word(&format!("{state}/name")),
            source.parsed(&format!("{state}/latency"), number::<u64>),
        ) {
            (Fact::Known { value: name, .. }, Fact::Known { value: exit, .. }) => (name, exit),
            (Fact::Unreadable { origin, why }, _) | (_, Fact::Unreadable { origin, why }) => {
                return Fact::unreadable(origin, why);
            }
            _ => break,
        };
        let disabled = source.parsed(&format!("{state}/disable"), switch);
        let disabled = disabled.value().copied().unwrap_or(false);
        states.push(IdleState { name, exit_us: exit, disabled });
    }
    if states.is_empty() { Fact::absent(at) } else { Fact::known(states, format!("{at}/state*")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn without_a_driver_x86_halts_and_what_is_not_known_has_no_bound() {
        let exits_us = |files: &[(&str, &str)]| IdleState::exits_us(&Tree::of(files).root());
        let state = "/sys/devices/system/cpu/cpu0/cpuidle/state0";
        let (name, latency) = (format!("{state}/name"), format!("{state}/latency"));
        assert_eq!(
            exits_us(&[(DRIVER, "intel_idle\n"), (&name, "C6\n"), (&latency, "133\n")]),
            [133]
        );
        assert_eq!(exits_us(&[(DRIVER, "none\n")]), [HALT_EXIT_US]);
        assert_eq!(exits_us(&[("/sys/devices/system/cpu/online", "0-1\n")]), [HALT_EXIT_US]);
        assert_eq!(exits_us(&[(DRIVER, "intel_idle\n")]), [0; 0]);
        assert_eq!(exits_us(&[]), [0; 0]);
    }
}
