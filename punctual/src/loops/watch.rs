//! The watchdog of a loop: a thread beside it.
//!
//! For a loop that asked for one. Ends with the loop, in one look of the watchdog's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::time::Span;
use punctual_os::scheduler::{self, SchedPolicy};

use super::control::Control;
use crate::watchdog::{Charge, watch};

/// The watchdog of a loop, which ends with it.
#[derive(Debug)]
pub struct Watchdog {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Watches the loop behind `control` once it is armed: one that gets nowhere for `bound` is
    /// stopped, and its thread demoted to SCHED_OTHER. The new thread runs where the calling one
    /// may.
    ///
    /// # Errors
    /// That there is no thread.
    ///
    /// # Real-time: setup only
    pub fn start(control: &Control, bound: Span) -> std::io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let (shared, over) = (Arc::clone(&control.shared), Arc::clone(&done));
        let thread = Builder::new().name("punctual-watch".to_owned()).spawn(move || {
            // Above the loop where permitted; below it still runs where it has another CPU.
            let _as_it_is = scheduler::set(0, SchedPolicy::Fifo(99));
            let progress = || shared.watched.beats();
            watch(&[Charge { watched: &shared.watched, progress, bound }], &shared.stop, &over);
        })?;
        Ok(Self { done, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It ends at its next look, in 50 ms.
            let _ended = thread.join();
        }
    }
}
