//! Idle states of the CPUs and who chooses them: `/sys/devices/system/cpu/cpuidle`. Reads through
//! the root only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPUS, Source, number, switch};
use crate::fact::Fact;
use crate::root::Root;

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

impl IdleState {
    /// The most that leaving each state takes, us, from shallow to deep; empty where that cannot
    /// be read.
    pub fn exits_us(root: &Root) -> Vec<u64> {
        let states = states(&Source::new(root));
        states
            .value()
            .map(|states| states.iter().map(|state| state.exit_us).collect())
            .unwrap_or_default()
    }
}

impl Idle {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        let present = |fact: Fact<String>| {
            fact.and_then(|name, origin| match name.as_str() {
                "none" => Fact::absent(origin),
                _ => Fact::known(name, origin),
            })
        };
        // Read-only name first: it is there whether or not the governor can be switched.
        let governor = source
            .word(&format!("{CPUS}/cpuidle/current_governor_ro"))
            .or_else(|| source.word(&format!("{CPUS}/cpuidle/current_governor")));
        Self {
            idle_driver: present(source.word(&format!("{CPUS}/cpuidle/current_driver"))),
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
