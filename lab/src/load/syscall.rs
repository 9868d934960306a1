//! Load `syscall`: the cheapest real system call, over and over.

use super::setup::Setup;
use super::work::{Prepared, Work};

/// Calls between two looks at the flag.
const CALLS: u64 = 256;

/// Sets it up.
pub(super) fn prepare(setup: &Setup) -> Prepared {
    let worker = |_| -> Work {
        Box::new(|ticket| {
            while ticket.going() {
                for _ in 0..CALLS {
                    std::hint::black_box(punctual_os::process::parent());
                }
                ticket.add(CALLS);
            }
            Ok(())
        })
    };
    Prepared::new("calls", (0..setup.workers).map(worker).collect())
}
