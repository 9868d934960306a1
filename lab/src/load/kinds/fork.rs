//! Load `fork`: processes that end in their first instruction, each awaited.
//!
//! A worker has one such process at a time, so that as many live as there are workers: as a load of
//! its own at most [`WORKERS_MAX`], as a part of `linuxcnc` one for each CPU that is not isolated.

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process::fork_and_wait;

use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "fork",
    unit: "forks",
    help: "forks and reaps child processes, at most four at a time",
    args: None,
    workers_max: Some(WORKERS_MAX),
    start: Start::Own(prepare),
};

/// Workers, and thereby processes alive, of the load of this name.
const WORKERS_MAX: usize = 4;
/// After a refusal (no room for a process just now) the next try comes so much later, in ns.
const RETRY_NS: u64 = 10_000_000;
/// After so many refusals in a row a worker gives up.
const REFUSALS_MAX: u32 = 100;

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let worker = |_| -> Work {
        Box::new(|ticket| {
            let mut refusals = 0;
            while ticket.going() {
                match fork_and_wait() {
                    Ok(()) => {
                        refusals = 0;
                        ticket.add(1);
                    }
                    Err(why) if refusals == REFUSALS_MAX => return Err(format!("fork: {why}")),
                    Err(_) => {
                        refusals += 1;
                        // Woken early by a signal it only tries again sooner.
                        let _ = sleep_until_ns(now_ns(ClockId::Monotonic) + RETRY_NS);
                    }
                }
            }
            Ok(())
        })
    };
    Ok(Prepared::new((0..setup.workers).map(worker).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadBounds;
    use crate::load::kinds::linuxcnc;
    use crate::load::row::Part;
    use std::time::Duration;

    #[test]
    fn it_has_four_workers_alone_and_one_for_each_cpu_in_the_mix_of_linuxcnc() {
        let bounds = LoadBounds::new(Duration::from_secs(1), (0..16).collect());
        let workers = |setup: &Setup| prepare(setup).expect("nothing is needed").work.len();
        assert_eq!(workers(&ROW.setup(&bounds)), WORKERS_MAX);
        let Start::Parts(parts) = linuxcnc::ROW.start else { panic!("it has parts") };
        let is_fork = |setup: &Setup| setup.name == ROW.name;
        let setups = parts(&bounds).into_iter().filter_map(|part: Part| part.setup);
        let counts: Vec<usize> = setups.filter(is_fork).map(|setup| workers(&setup)).collect();
        assert_eq!(counts, [16]);
    }
}
