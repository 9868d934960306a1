//! Time that the host took from each CPU, as the kernel counts it.
//!
//! Reads /proc/stat through the root of the machine's facts; what cannot be read is unknown, not
//! zero.

use std::collections::HashMap;

use punctual_host::root::{Read, Root};

/// One step of /proc/stat: USER_HZ is 100 on every architecture in use (proc_stat(5)).
const STEP_NS: u64 = 10_000_000;

/// The counters of all CPUs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StealTicks {
    /// By CPU, in steps.
    steps: Option<HashMap<u32, u64>>,
}

impl StealTicks {
    /// Reads them.
    pub(crate) fn read(root: &Root) -> Self {
        let Read::Text(text) = root.read("/proc/stat") else { return Self::default() };
        Self { steps: Some(steps(&text)) }
    }

    /// What the host took from a CPU since `before`, ns.
    pub(crate) fn since_ns(&self, before: &Self, cpu: u32) -> Option<u64> {
        let (now, then) = (self.steps.as_ref()?.get(&cpu)?, before.steps.as_ref()?.get(&cpu)?);
        Some(now.saturating_sub(*then).saturating_mul(STEP_NS))
    }
}

/// The eighth number of each CPU's line (proc_stat(5)).
fn steps(text: &str) -> HashMap<u32, u64> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = words.next().filter(|_| !line.starts_with("cpu "))?.parse().ok()?;
        Some((cpu, words.nth(7)?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = "cpu  10 0 5 900 3 0 1 70 0 0\ncpu0 5 0 2 450 1 0 0 30 0 0\n\
                        cpu2 5 0 3 450 2 0 1 40 0 0\nintr 5 1\nctxt 7\n";

    #[test]
    fn steal_is_counted_by_cpu() {
        assert_eq!(steps(STAT), HashMap::from([(0, 30), (2, 40)]));
        let at = |text: &str| StealTicks { steps: Some(steps(text)) };
        let later = at(&STAT.replace(" 40 0 0", " 43 0 0"));
        assert_eq!(later.since_ns(&at(STAT), 2), Some(30_000_000));
        assert_eq!(later.since_ns(&at(STAT), 0), Some(0));
        assert_eq!(later.since_ns(&at(STAT), 1), None);
        assert_eq!(later.since_ns(&StealTicks::default(), 2), None);
    }

    #[test]
    fn this_machine_counts() {
        let root = Root::live();
        let before = StealTicks::read(&root);
        let cpu = punctual_os::affinity::get(0).expect("own").iter().next().expect("one");
        assert!(StealTicks::read(&root).since_ns(&before, cpu).is_some());
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in ".*(\n.*){0,4}") {
            let _ = steps(&text);
        }
    }
}
