//! Loops of this process on one CPU disturb each other: starting the second one gives a warning.
//!
//! Setup only. Knows nothing of other processes.

#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
use std::sync::Mutex;
use std::sync::PoisonError;

use punctual_os::fork::Origin;

/// The CPUs that loops are pinned to, each with its process: a child that fork(2) made has those of
/// its parent in memory.
#[expect(clippy::disallowed_types, reason = "setup; no loop waits for it")]
static LOOPS: Mutex<Vec<(Origin, u32)>> = Mutex::new(Vec::new());

/// A loop that is pinned to a CPU, until this is dropped.
#[derive(Debug)]
pub struct Neighbour(Option<(Origin, u32)>);

impl Neighbour {
    /// A loop on `cpu`, and what is to be warning of the others there.
    ///
    /// # Real-time: setup only
    pub fn enter(cpu: Option<u32>) -> (Self, Option<String>) {
        let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
        let own = cpu.map(|cpu| (Origin::here(), cpu));
        let others = loops.iter().filter(|pinned| Some(**pinned) == own).count();
        loops.extend(own);
        let warning = cpu.filter(|_| others > 0).map(|cpu| {
            format!(
                "CPU {cpu} has {} loops of this process: each makes the others late by what it \
                 runs, microseconds at least; give each a CPU of its own, or make them tasks of \
                 one Executive",
                others + 1
            )
        });
        (Self(own), warning)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        if self.0.is_some_and(|(origin, _)| !origin.is_here()) {
            return;
        }
        let mut loops = LOOPS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = loops.iter().position(|own| Some(*own) == self.0) {
            loops.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_loop_on_a_cpu_gets_a_warning() {
        // A CPU that no other test has.
        let cpu = Some(u32::MAX);
        let (first, warning) = Neighbour::enter(cpu);
        assert_eq!(warning, None);
        let (second, warning) = Neighbour::enter(cpu);
        assert!(warning.is_some_and(|warning| warning.contains("has 2 loops")));
        drop((first, second));
        assert_eq!(Neighbour::enter(cpu).1, None);
        assert_eq!(Neighbour::enter(None).1, None);
    }
}
