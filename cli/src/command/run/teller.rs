//! Lines that are said while tasks run, without anybody waiting for a reader.
//!
//! A thread of its own prints them. Who supervises hands lines over and goes on: where standard
//! error takes nothing (a full pipe, a stopped terminal) some are left out and counted, and no dead
//! task keeps its output because of that.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::output;

/// Lines that wait to be printed, at most.
const WAITING_MAX: usize = 4_096;

/// Says lines.
#[derive(Debug)]
pub(super) struct Teller {
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
    left_out: u64,
}

impl Teller {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (lines, heard) = sync_channel::<String>(WAITING_MAX);
        let print = move || heard.iter().for_each(|line| output::message(&line));
        let thread = Builder::new().name("punctual tell".to_owned()).spawn(print)?;
        Ok(Self { lines, thread, left_out: 0 })
    }

    /// Says a line soon, or never.
    pub(super) fn tell(&mut self, line: String) {
        match self.lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += 1,
        }
    }

    /// Waits until all of them are printed; how many were left out.
    pub(super) fn end(self) -> u64 {
        drop(self.lines);
        let _its_panic_is_its_own = self.thread.join();
        self.left_out
    }
}
