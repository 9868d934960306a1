//! Who sets the cancel token of an executive's tasks: a thread beside it.
//!
//! For an executive in the caller's own thread with tasks that are to be terminated. Looks every
//! 2 ms ([`crate::guard::TICK`]), on another CPU where there is one, above the executive where
//! that is permitted. Never ends a task: what it says takes effect when the task returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::executive::cancel::Token;
use punctual_os::affinity;

use crate::guard;
use crate::session::Thread;
use crate::stage::{GUARD, aside};

/// A thread that sets one executive's cancel token, which its tasks hold by
/// [`crate::core::executive::cancel::Cancelling`]; it ends when this is dropped.
#[derive(Debug)]
pub struct Canceller {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Canceller {
    /// Watches the tasks that hold `token`, of an executive on `cpu` or on any.
    ///
    /// # Errors
    ///
    /// That there is no thread.
    ///
    /// # Real-time: setup only
    pub fn start(token: Arc<Token>, cpu: Option<u32>) -> std::io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&done);
        // From where the caller may run, before it pins itself to one CPU.
        let aside = aside(cpu.as_slice());
        let thread = Builder::new().name("punctual-cancel".to_owned()).spawn(move || {
            // Where it may not go aside it stays: its priority is above the executive's.
            let _beside_it = affinity::set(0, &aside);
            let _session = Thread::enter(None, GUARD);
            guard::cancel(&[&token], &over);
        })?;
        Ok(Self { done, thread: Some(thread) })
    }
}

impl Drop for Canceller {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It ends at its next look.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::clock::Clock;
    use punctual_core::dispatch::State;
    use punctual_core::executive::Ended;
    use punctual_core::executive::cancel::Cancelling;
    use punctual_core::executive::many::{Cycle, Dispatch, Flow, Many};
    use punctual_core::time::{Instant, Span};
    use punctual_core::wait::Sleep;

    use super::*;
    use crate::clocks::MachineClock;
    use crate::periodic::{OnOverrun, Period, Periodic, Task};

    /// Goes on until it is told to end, and then ends everything.
    struct Stubborn {
        clock: MachineClock,
        told_at: Option<(Instant, Instant)>,
    }

    impl Dispatch for Stubborn {
        fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
            while !cycle.cancelled() {
                std::hint::spin_loop();
            }
            self.told_at = Some((cycle.next, self.clock.now()));
            Flow::Stop
        }
    }

    #[test]
    fn a_task_beyond_its_release_is_told_and_no_earlier() {
        let task = Task::new("stubborn", Period::hz(100).expect("in range"));
        let plan = Periodic::new().task(task.policy(OnOverrun::Terminate)).build().expect("fine");
        let token = Arc::new(Token::new());
        let _canceller = Canceller::start(Arc::clone(&token), None).expect("a thread");
        let mut clock = MachineClock::best();
        let from = clock.now();
        let table = plan.table(Instant::from_ns(0));
        let mut storage = plan.storage();
        let mut state = State::begin(&table, storage.lend(), from).expect("room");
        let tasks = Stubborn { clock: clock.clone(), told_at: None };
        let tasks = Cancelling { tasks, token: &token };
        let mut many = Many { clock, wait: Sleep, tasks, observe: () };
        let end = from + Span::from_ms(60_000);
        let ended = many.run(&table, &mut state, end, &AtomicBool::new(false));
        assert_eq!(ended, Ended::Stopped);
        let (next, told) = many.tasks.tasks.told_at.expect("told");
        // The two clocks may be a little apart.
        assert!(told + Span::from_us(100) >= next, "{told:?} is before {next:?}");
    }
}
