//! Prints messages while tasks run, so that the supervisor never waits for standard error.
//!
//! A thread of its own prints them; the supervisor queues lines and goes on. While standard error
//! is blocked (a full pipe, a stopped terminal), lines that do not fit in the queue are dropped and
//! counted, so that the safe values of a dead task are written in time.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use punctual::spawn;

use crate::output;

/// The most lines that wait to be printed.
const WAITING_MAX: usize = 4_096;

/// Prints lines.
#[derive(Debug)]
pub(super) struct Printer {
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
    dropped: u64,
}

impl Printer {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (lines, received) = sync_channel::<String>(WAITING_MAX);
        let print = move || received.iter().for_each(|line| output::message(&line));
        let thread = spawn::plain("punctual-print", print)?;
        Ok(Self { lines, thread, dropped: 0 })
    }

    /// Queues a line; drops it where the queue is full.
    pub(super) fn print(&mut self, line: String) {
        match self.lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.dropped += 1,
        }
    }

    /// Waits until all of them are printed; gives the number of dropped lines.
    pub(super) fn end(self) -> u64 {
        drop(self.lines);
        let _its_panic_is_its_own = self.thread.join();
        self.dropped
    }
}
