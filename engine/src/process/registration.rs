//! The task's end, in its own process: register, wait, unregister.
//!
//! For programs that a supervisor releases. Setup may fail and says why; in the loop there is one
//! system call, futex, and once in a while without a release a look whether the supervisor is still
//! there.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

use punctual_core::block::{
    ClientStep, OUTPUT_WORDS_MAX, Outputs, Source, TaskClient, TaskState, Terms, look,
};
use punctual_core::clock::Clock;
use punctual_core::cycle::Cycle;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::fork::Origin;
use punctual_os::futex::{self, Scope};
use punctual_os::mapping::{Access, Mapping};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{memory, process};

use super::request::{Request, Tie, ask};
use super::{BLOCK_VARIABLE, SUPERVISOR_VARIABLE, TASK_VARIABLE, TaskError};
use crate::clocks::MachineClock;
use crate::error::{Error, Kind};

/// The time for which a task waits without a release before it looks after its supervisor, ns; two
/// periods where that is longer.
const PATIENCE_NS: u64 = 1_000_000_000;
/// A task that never waits, because it is always behind and runs the releases that passed, blocks
/// once in this time and for so long: the kernel's limit of real-time CPU time (RLIMIT_RTTIME) is
/// for cycles that do not end.
const REST_EVERY: Span = Span::from_ms(1_000);
const REST_NS: u64 = 50_000;

/// A task that is registered with a supervisor. Of the thread that registered: that one is released
/// and gets the task's priority and CPU.
#[derive(Debug)]
pub struct Registration {
    origin: Origin,
    task: String,
    client: TaskClient<'static>,
    outputs: Option<Outputs<'static>>,
    clock: MachineClock,
    tie: Tie,
    patience_ns: u64,
    /// The instant at which it blocked last.
    rested: Instant,
    running: bool,
    of_this_thread: PhantomData<*const ()>,
}

impl Registration {
    /// Registers with the supervisor that started this process. `task` is the name that the caller
    /// takes itself for; `None` for whatever it was started as.
    ///
    /// Takes about 50 ms where the counter's rate has to be measured. The memory of the block stays
    /// mapped until the process ends.
    ///
    /// # Errors
    ///
    /// No supervisor started it, or the memory that it handed over is no task block.
    ///
    /// # Real-time: setup only
    pub fn from_env(task: Option<&str>) -> Result<Self, Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let number = |name: &str| variable(name).and_then(|number| number.parse::<i32>().ok());
        let (Some(supervisor), Some(number), Some(is)) =
            (number(SUPERVISOR_VARIABLE), number(BLOCK_VARIABLE), variable(TASK_VARIABLE))
        else {
            return Err(TaskError::NotStarted.into());
        };
        if let Some(expected) = task.filter(|expected| *expected != is) {
            return Err(TaskError::OtherTask(expected.to_owned(), is).into());
        }
        // A program with file capabilities has lost the tie that its supervisor made.
        process::end_with_parent().map_err(TaskError::Memory)?;
        if process::parent() != supervisor {
            return Err(TaskError::NotChild(supervisor).into());
        }
        let block = descriptor::duplicate(number).map_err(TaskError::Memory)?;
        // What this process starts is not the task.
        descriptor::keep_from_children(number).map_err(TaskError::Memory)?;
        Ok(Self::attach(is, &block, Tie::Parent(supervisor))?)
    }

    /// Joins the running supervisor of this name as one of its tasks that has no program.
    ///
    /// # Errors
    ///
    /// There is no such supervisor, or it is another user's, or it refuses.
    ///
    /// # Real-time: setup only
    pub fn join(supervisor: &str, task: &str) -> Result<Self, Error> {
        let request = Request::Join(task.to_owned());
        let (connection, [block, _]) = ask(supervisor, &request)?;
        let block = block.ok_or_else(|| TaskError::Refused("no task block came".to_owned()))?;
        Ok(Self::attach(task.to_owned(), &block, Tie::Connection(connection))?)
    }

    fn attach(task: String, block: &Descriptor, tie: Tie) -> Result<Self, TaskError> {
        let mapping =
            Mapping::of(block.number(), None, Access::Write).map_err(TaskError::Memory)?;
        // For as long as the process: a cycle borrows from it.
        let mapping: &'static Mapping = Box::leak(Box::new(mapping));
        let words = mapping.words();
        let mut client = TaskClient::open(words).map_err(TaskError::Block)?;
        if look(words).is_none_or(|seen| seen.state != TaskState::Empty) {
            return Err(TaskError::Taken);
        }
        // Paid here: the counter's rate, the first touch of stack and code.
        let mut clock = MachineClock::best();
        let (_first, rested) = (clock.wake(), clock.now());
        memory::prefault_stack();
        let period_ns = client.terms().releases.period().as_ns();
        let outputs = client.outputs().filter(|outputs| outputs.words() > 0);
        client.ask(process::tid().unsigned_abs().into());
        Ok(Self {
            origin: Origin::here(),
            task,
            client,
            outputs,
            clock,
            tie,
            patience_ns: PATIENCE_NS.max(period_ns.saturating_mul(2)),
            rested,
            running: false,
            of_this_thread: PhantomData,
        })
    }

    /// The name of its task.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The terms of its releases, as the supervisor has them: period, burst and output.
    ///
    /// # Real-time: in loop
    pub fn terms(&self) -> &Terms {
        self.client.terms()
    }

    /// Now, by the clock that cycles are stamped with.
    ///
    /// # Real-time: in loop
    pub fn now(&mut self) -> Instant {
        self.clock.now()
    }

    /// Ends the cycle before, if any, and waits for the next one.
    ///
    /// # Errors
    ///
    /// No release will come any more: the supervisor ended this task, which is to exit
    /// ([`Error::errno`] is ECANCELED), or is gone (EPIPE). Then nobody releases the task any more,
    /// writes its safe value or watches it, and its thread is SCHED_OTHER.
    ///
    /// # Real-time: in loop, waits
    pub fn wait(&mut self) -> Result<Cycle<'_>, Error> {
        if !self.origin.is_here() {
            return Err(Kind::Forked.into());
        }
        if self.done().is_some_and(|finish| finish - self.rested >= REST_EVERY) {
            self.rest();
        }
        let mut waited = false;
        loop {
            match self.client.turn() {
                ClientStep::Run => {
                    let start = self.clock.wake();
                    if waited {
                        self.rested = start;
                    }
                    self.running = true;
                    return Ok(self.client.begin(start));
                }
                ClientStep::Ended => return Err(TaskError::Ended.into()),
                ClientStep::Wait(seen) => {
                    let until_ns = now_ns(ClockId::Monotonic).saturating_add(self.patience_ns);
                    futex::wait_until(self.client.bell(), seen, Scope::Machine, until_ns);
                    waited = true;
                    if now_ns(ClockId::Monotonic) >= until_ns && !self.tie.holds() {
                        // The priority was the supervisor's to give, as long as it watches it.
                        let _demoted = scheduler::set(0, SchedPolicy::Other);
                        return Err(TaskError::Gone.into());
                    }
                }
            }
        }
    }

    /// Returns true where the cycle that runs is to come to its end, for a caller that does not
    /// keep it: as [`Cycle::cancelled`].
    ///
    /// # Real-time: in loop
    pub fn cancelled(&self) -> bool {
        self.running && self.client.cancelled()
    }

    /// Ends the cycle that runs; when, if there is one.
    fn done(&mut self) -> Option<Instant> {
        if !self.running || !self.origin.is_here() {
            return None;
        }
        let finish = self.client.end(&mut self.clock);
        self.running = false;
        Some(finish)
    }

    /// Blocks for a moment: nobody wakes this word.
    fn rest(&mut self) {
        let word = AtomicU64::new(0);
        let until_ns = now_ns(ClockId::Monotonic).saturating_add(REST_NS);
        futex::wait_until(&word, 0, Scope::Process, until_ns);
        self.rested = self.clock.now();
    }

    /// Gives out `bytes`, whole, as this task's output; the rest of a longer output is zero. False
    /// where that is longer than the task's output, and in a child that fork(2) made. Until the
    /// next one, or until the safe value takes over, readers see this one.
    ///
    /// # Real-time: in loop
    pub fn commit(&mut self, bytes: &[u8]) -> bool {
        let fits = |outputs: &Outputs<'_>| bytes.len() <= 8 * outputs.words();
        let Some(outputs) = self.outputs.filter(fits).filter(|_| self.origin.is_here()) else {
            return false;
        };
        let mut words = [0u64; OUTPUT_WORDS_MAX];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        outputs.commit(&words[..outputs.words()], Source::Task);
        true
    }

    /// Ends the cycle before, and gets up: the supervisor releases this task no more, and its
    /// outputs are the safe value's.
    ///
    /// # Real-time: setup only
    pub fn unregister(self) {
        drop(self);
    }

    /// As [`Registration::unregister`], in the middle of a cycle, which then counts as missed: for
    /// work done elsewhere that has ended without an answer.
    ///
    /// # Real-time: setup only
    pub fn abandon(mut self) {
        self.running = false;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The block is the supervisor's and the task's: a child that fork(2) made is neither.
        if self.origin.is_here() {
            self.done();
            self.client.leave();
        }
    }
}
