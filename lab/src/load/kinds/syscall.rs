//! Load `syscall`: the cheapest real system call, over and over.

use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "syscall",
    unit: "calls",
    help: "calls the cheapest real system call",
    args: None,
    workers_max: None,
    start: Start::Own(prepare),
};

/// Calls between two looks at the flag.
const CALLS: u64 = 256;

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
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
    Ok(Prepared::new((0..setup.workers).map(worker).collect()))
}
