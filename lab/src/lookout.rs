//! Looks at the machine while it is measured, and what happened between two of them.

use punctual_engine::disturbance::{Disturbance, Observation, compare};

/// Looks at the machine again and again, and keeps what happened in between.
#[derive(Debug)]
pub(crate) struct Lookout {
    before: Observation,
    happened: Vec<(u64, Disturbance)>,
}

impl Lookout {
    /// The first look, at these threads and the CPUs that they are pinned to.
    pub(crate) fn new(threads: &[(i32, u32)]) -> Self {
        Self { before: Observation::look(threads), happened: Vec::new() }
    }

    /// Another look, which counts only where `steady` holds before and after it.
    pub(crate) fn look(&mut self, threads: &[(i32, u32)], steady: impl Fn() -> bool) {
        if !steady() {
            return;
        }
        let after = Observation::look(threads);
        if !steady() {
            return;
        }
        let happened =
            compare(&self.before, &after).into_iter().map(|disturbance| (after.at_ns, disturbance));
        self.happened.extend(happened);
        self.before = after;
    }

    /// The disturbances found, each with its time on CLOCK_MONOTONIC, in ns.
    pub(crate) fn happened(self) -> Vec<(u64, Disturbance)> {
        self.happened
    }
}
