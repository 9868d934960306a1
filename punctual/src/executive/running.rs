//! An executive that runs in threads of its own.
//!
//! For programs that go on beside it.

use std::ops::Deref;

use punctual_core::clock::Clock;

use super::built::Executive;
use super::error::ExecutiveError;
use super::handle::Handle;
use super::shared::RunState;
use crate::error::{Error, Kind};
use crate::spawn::{self, OwnThread};
use crate::summary::Summary;

/// An executive that runs: its [`Handle`], and its end. Dropping it stops the executive and waits
/// for its end.
#[derive(Debug)]
pub struct Running {
    handle: Handle<'static>,
    thread: OwnThread<Result<Summary, Error>>,
}

impl Deref for Running {
    type Target = Handle<'static>;

    fn deref(&self) -> &Handle<'static> {
        &self.handle
    }
}

impl Running {
    /// A handle for other threads.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> Handle<'static> {
        self.handle.clone()
    }

    /// Waits until the executive has ended by itself; what it did.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn join(mut self) -> Result<Summary, Error> {
        self.end()
    }

    /// Stops the executive and waits for its end; what it did.
    ///
    /// # Errors
    /// As [`Executive::run`].
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.handle.stop();
        self.end()
    }

    fn end(&mut self) -> Result<Summary, Error> {
        self.handle.shared.ending.check_process()?;
        let ended = self.thread.join().ok_or_else(|| Error::from(ExecutiveError::NotRunning))?;
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        let _ended = self.thread.join();
    }
}

impl<C: Clock + Clone + Send + 'static> Executive<'static, C> {
    /// Runs it as [`Executive::run`] does, in threads of its own, while the caller goes on.
    ///
    /// # Errors
    /// That there is no thread; what else can be wrong [`Running::join`] says.
    ///
    /// # Real-time: setup only
    pub fn start(self) -> Result<Running, Error> {
        self.shared.ending.check_process()?;
        let handle = self.handle();
        self.shared.enter(RunState::Starting);
        let thread = spawn::plain("punctual-loop", move || self.run()).map_err(|why| {
            handle.shared.enter(RunState::Over);
            Kind::Thread(why)
        })?;
        Ok(Running { handle, thread: OwnThread::new(thread) })
    }
}
