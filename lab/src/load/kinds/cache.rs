//! Load `cache`: chases pointers through a ring of cache lines and dirties each.
//!
//! At most 16 MiB a worker and 256 MiB in all: more than the cache that a core has for itself,
//! often more than the one that cores share.

use super::cpu::Numbers;
use crate::load::bounds::MEMORY_BYTES;
use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "cache",
    unit: "lines",
    help: "follows pointers through more memory than a CPU's own cache, and dirties lines",
    args: None,
    workers_max: None,
    start: Start::Own(prepare),
};

/// One line of 64 bytes; the first word says which comes next.
type Line = [u32; 16];
/// The largest ring, in bytes.
const RING_BYTES: usize = 16 << 20;
/// Workers at most, so that a ring is never small.
const WORKERS_MAX: usize = 32;
/// Lines between two looks at the flag.
const CHASE: u64 = 1024;

/// A single ring through `lines` lines, at least 1, in an order that no prefetcher guesses
/// (Sattolo's shuffle: one cycle, all lines on it).
fn ring(lines: usize, seed: u64) -> Vec<Line> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut numbers = Numbers::new(seed);
    for last in (1..order.len()).rev() {
        order.swap(last, numbers.below(last as u32) as usize);
    }
    order.into_iter().map(|next| [next; 16]).collect()
}

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let workers = setup.workers.min(WORKERS_MAX);
    // The shuffle needs one word a line beside the line.
    let lines = RING_BYTES.min(MEMORY_BYTES / workers * 8 / 9) / size_of::<Line>();
    let worker = |seed: usize| -> Work {
        let mut ring = ring(lines, seed as u64);
        Box::new(move |ticket| {
            let mut at = 0;
            while ticket.going() {
                for _ in 0..CHASE {
                    let line = &mut ring[at];
                    line[1] = line[1].wrapping_add(1);
                    at = line[0] as usize;
                }
                ticket.add(CHASE);
            }
            std::hint::black_box(&ring);
            Ok(())
        })
    };
    Ok(Prepared::new((0..workers).map(worker).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_meets_every_line_once() {
        for lines in [1, 2, 3, 100, 1009] {
            let ring = ring(lines, 5);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at], true));
                at = ring[at][0] as usize;
            }
            assert_eq!(at, 0);
        }
    }
}
