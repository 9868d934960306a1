//! The workers of a load's process: threads that each count for themselves.
//!
//! For the kinds of loads, which say what a worker does, and for the load's process, which runs
//! them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use punctual_engine::spawn;

/// The body of one worker: it returns once [`Ticket::going`] is false, or with why it gave up.
pub(super) type Work = Box<dyn FnOnce(&Ticket) -> Result<(), String> + Send>;

/// A load that is set up.
pub(super) struct Prepared {
    /// One for each worker.
    pub(super) work: Vec<Work>,
    /// A note for the reader of a report.
    pub(super) note: Option<String>,
}

impl Prepared {
    /// Work of which there is nothing to note.
    pub(super) fn new(work: Vec<Work>) -> Self {
        Self { work, note: None }
    }
}

/// A worker's own counter, alone on its cache lines (two: they are fetched in pairs).
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// The stop flag and the counter of one worker.
pub(super) struct Ticket {
    stop: Arc<AtomicBool>,
    count: Arc<Count>,
}

impl Ticket {
    /// Returns true until the worker is to end.
    pub(super) fn going(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Counts `more`.
    pub(super) fn add(&self, more: u64) {
        self.count.0.fetch_add(more, Ordering::Relaxed);
    }
}

/// Workers that run.
///
/// Each counts for itself, so that counting makes no traffic between CPUs beyond its own line.
pub(super) struct Workers {
    stop: Arc<AtomicBool>,
    counts: Vec<Arc<Count>>,
    threads: Vec<JoinHandle<()>>,
    failure: Arc<Mutex<Option<String>>>,
}

impl Workers {
    /// Starts a thread for each piece of work, named after the load.
    ///
    /// # Errors
    /// When a thread cannot be made.
    pub(super) fn start(name: &str, work: Vec<Work>) -> Result<Self, String> {
        let mut workers = Self {
            stop: Arc::default(),
            counts: Vec::new(),
            threads: Vec::new(),
            failure: Arc::default(),
        };
        for work in work {
            let count = Arc::new(Count::default());
            let ticket = Ticket { stop: Arc::clone(&workers.stop), count: Arc::clone(&count) };
            let failure = Arc::clone(&workers.failure);
            let thread = spawn::plain(&format!("load-{name}"), move || {
                if let Err(why) = work(&ticket) {
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                }
            });
            workers.threads.push(thread.map_err(|why| why.to_string())?);
            workers.counts.push(count);
        }
        Ok(workers)
    }

    /// All counts together.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.0.load(Ordering::Relaxed)).sum()
    }

    /// Asks all workers to end; does not wait for them.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Takes out the reason for which a worker gave up, in words; `None` where none did.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns true once no worker runs any more.
    pub(super) fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Runs prepared work in this process until it counted something, and gives what it counted.
    pub(in crate::load) fn run_until_counted(prepared: Prepared) -> u64 {
        let workers = Workers::start("test", prepared.work).expect("threads");
        while workers.count() == 0 && !workers.is_over() {
            std::thread::yield_now();
        }
        workers.stop();
        assert_eq!(workers.take_failure(), None);
        while !workers.is_over() {
            std::thread::yield_now();
        }
        workers.count()
    }

    #[test]
    fn workers_count_and_tell_who_gave_up() {
        let fine: Work = Box::new(|ticket| {
            while ticket.going() {
                ticket.add(2);
            }
            Ok(())
        });
        assert!(run_until_counted(Prepared::new(vec![fine])) >= 2);
        let workers =
            Workers::start("test", vec![Box::new(|_| Err("full".into()))]).expect("threads");
        while !workers.is_over() {
            std::thread::yield_now();
        }
        assert_eq!((workers.take_failure(), workers.take_failure()), (Some("full".into()), None));
    }
}
