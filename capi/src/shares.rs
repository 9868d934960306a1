//! What the whole process holds for its loops: memory locked, idle states held off.
//!
//! For the creation of loops and the runs of executives: the first that asks gets it for all, and
//! the last that goes gives it back. Setup only.

#[expect(
    clippy::disallowed_types,
    reason = "setup and destruction only; no loop waits for it"
)]
use std::sync::Mutex;
use std::sync::PoisonError;

use punctual::session::{Process, Refusal};

/// One thing that the process holds.
struct Held {
    users: usize,
    process: Option<Process>,
}

const NOTHING: Held = Held { users: 0, process: None };

/// Memory, and idle states.
#[expect(clippy::disallowed_types, reason = "setup and destruction only; no loop waits for it")]
static HELD: Mutex<[Held; 2]> = Mutex::new([NOTHING, NOTHING]);

/// A part in what the process holds, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    which: [bool; 2],
}

impl Share {
    /// A part in locked memory, in idle states held off, or in both; and what was refused.
    pub(crate) fn take(memory: bool, idle_states: bool) -> (Self, Vec<Refusal>) {
        let which = [memory, idle_states];
        let mut refused = Vec::new();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, held) in held.iter_mut().enumerate().filter(|(index, _)| which[*index]) {
            held.users += 1;
            let process = held.process.get_or_insert_with(|| Process::ask(index == 0, index == 1));
            refused.extend_from_slice(process.refused());
        }
        (Self { which }, refused)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, held) in held.iter_mut().enumerate().filter(|(index, _)| self.which[*index]) {
            held.users -= 1;
            if held.users == 0 {
                held.process = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> [usize; 2] {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        [held[0].users, held[1].users]
    }

    #[test]
    fn the_last_one_gives_it_back() {
        // Other tests of this process hold nothing of this.
        let (first, _) = Share::take(false, true);
        let (second, _) = Share::take(false, true);
        assert_eq!(users()[1], 2);
        drop(first);
        assert_eq!(users()[1], 1);
        assert!(HELD.lock().expect("no panic")[1].process.is_some());
        drop(second);
        assert!(HELD.lock().expect("no panic")[1].process.is_none());
        let (nothing, refused) = Share::take(false, false);
        assert!(refused.is_empty() && users()[1] == 0);
        drop(nothing);
    }
}
