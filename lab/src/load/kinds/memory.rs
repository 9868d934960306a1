//! Load `memory`: copies between two buffers, to and fro.
//!
//! At most 64 MiB a buffer and 256 MiB in all.

use crate::load::bounds::MEMORY_BYTES;
use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "memory",
    unit: "bytes",
    help: "copies large buffers, at most 256 MiB in all",
    args: None,
    workers_max: None,
    start: Start::Own(prepare),
};

/// The largest buffer, in bytes.
const BUFFER_BYTES: usize = 64 << 20;
/// Workers at most: a few fill any memory bus, and buffers stay larger than most caches.
const WORKERS_MAX: usize = 8;
/// Bytes between two looks at the flag.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of each of the two buffers of each of `workers`, whole chunks.
fn buffer_bytes(workers: usize) -> usize {
    BUFFER_BYTES.min(MEMORY_BYTES / (2 * workers)) / CHUNK_BYTES * CHUNK_BYTES
}

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let workers = setup.workers.min(WORKERS_MAX);
    let bytes = buffer_bytes(workers);
    let worker = |_| -> Work {
        // Not zeros: those would all be one page until written.
        let (mut from, mut to) = (vec![1u8; bytes], vec![2u8; bytes]);
        Box::new(move |ticket| {
            while ticket.going() {
                for (to, from) in to.chunks_mut(CHUNK_BYTES).zip(from.chunks(CHUNK_BYTES)) {
                    to.copy_from_slice(from);
                    std::hint::black_box(to);
                    ticket.add(CHUNK_BYTES as u64);
                    if !ticket.going() {
                        break;
                    }
                }
                std::mem::swap(&mut from, &mut to);
            }
            Ok(())
        })
    };
    Ok(Prepared::new((0..workers).map(worker).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_stay_within_the_bound() {
        for workers in 1..=WORKERS_MAX {
            let bytes = buffer_bytes(workers);
            assert!(bytes >= CHUNK_BYTES && 2 * workers * bytes <= MEMORY_BYTES);
        }
    }
}
