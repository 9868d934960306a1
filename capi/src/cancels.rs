//! The cancel token of a run, and the thread that sets it once there is a task to be terminated.
//!
//! Setup alone: for who runs, and for who adds such a task to what runs.

#[expect(clippy::disallowed_types, reason = "setup only; no loop waits for it")]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use punctual::canceller::Canceller;
use punctual::core::executive::cancel::Token;

use crate::border::Failure;
use crate::options::Options;
use crate::run::no_thread;

/// What the tasks of a run hold, and who sets it.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "setup only; no loop waits for it")]
pub(crate) struct Cancels {
    token: Arc<Token>,
    thread: Mutex<Option<Canceller>>,
}

impl Cancels {
    /// What the tasks hold.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Has a thread set it from now on.
    pub(crate) fn start(&self, options: &Options) -> Result<(), Failure> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let started = Canceller::start(Arc::clone(&self.token), options.cpu()?);
            *thread = Some(started.map_err(|why| no_thread("cancelling", &why))?);
        }
        Ok(())
    }
}
