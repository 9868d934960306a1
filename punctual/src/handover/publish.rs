//! The place where a change is handed to the loop, and what was there before comes back.
//!
//! For the publishing thread. The flag says whose the place is, so that no thread ever waits for
//! its lock, which is there because it needs no unsafe code. (A ring or a channel between the two
//! would make the loop spin while a sender that it keeps from running is halfway through.)

use std::fmt;
#[expect(
    clippy::disallowed_types,
    reason = "the flag says whose it is: no thread ever waits for it"
)]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::Change;
use super::refused::Refused;

/// How often the publisher looks whether its change is taken, ns.
const LOOK_NS: u64 = 500_000;

/// Where changes are handed over.
#[expect(
    clippy::disallowed_types,
    reason = "the flag says whose it is: no thread ever waits for it"
)]
pub struct Handover<B> {
    /// 0 while the place is the publisher's; otherwise it is the loop's, which should have so many
    /// nanoseconds of time for the switch.
    pub(super) request_ns: AtomicU64,
    pub(super) place: Mutex<Option<Box<Change<B>>>>,
    /// No loop will take anything any more.
    over: AtomicBool,
    /// No change will come any more.
    pub(super) last: AtomicBool,
    publishing: AtomicBool,
}

/// The change as it was taken, holding what ran before; or why not, and the change as it was.
pub type Answer<B> = Result<Box<Change<B>>, (Refused, Box<Change<B>>)>;

impl<B> fmt::Debug for Handover<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover")
            .field("request_ns", &self.request_ns)
            .field("over", &self.over)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl<B> Default for Handover<B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<B> Handover<B> {
    /// A place for the changes of one executive, which runs now or will.
    ///
    /// # Real-time: setup only
    #[expect(clippy::disallowed_types, reason = "no thread ever waits for it")]
    pub fn new() -> Self {
        Self {
            request_ns: AtomicU64::new(0),
            place: Mutex::new(None),
            over: AtomicBool::new(false),
            last: AtomicBool::new(false),
            publishing: AtomicBool::new(false),
        }
    }

    /// Hands `change` to the loop, and waits until that has taken it; then it holds what ran
    /// before. Waits also for a loop that has yet to begin.
    ///
    /// # Errors
    ///
    /// Why it did not take effect, and the change as it was; nothing is changed then.
    ///
    /// # Real-time: setup only
    pub fn publish(&self, change: Box<Change<B>>) -> Answer<B> {
        self.offer(change)?;
        loop {
            if let Some(answer) = self.answer() {
                return answer;
            }
            // A signal that cuts this short costs an extra look.
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
        }
    }

    /// Hands `change` to the loop, and goes on: [`Handover::answer`] says what became of it.
    ///
    /// # Errors
    ///
    /// That another one is under way, or none will be taken, and the change.
    ///
    /// # Real-time: setup only
    pub fn offer(&self, change: Box<Change<B>>) -> Result<(), (Refused, Box<Change<B>>)> {
        if self.last.load(Ordering::Relaxed) {
            return Err((Refused::Ended, change));
        }
        if self.publishing.swap(true, Ordering::Acquire) {
            return Err((Refused::Busy, change));
        }
        let room_ns = change.room_ns();
        self.put(Some(change));
        self.request_ns.store(room_ns, Ordering::Release);
        Ok(())
    }

    /// What became of the change that was offered; `None` while the loop has not answered, and when
    /// nothing was offered. Given once, to the thread that offered it.
    ///
    /// # Real-time: setup only
    pub fn answer(&self) -> Option<Answer<B>> {
        if !self.publishing.load(Ordering::Acquire) {
            return None;
        }
        // In this order: what is over answered before.
        let over = self.over.load(Ordering::Acquire);
        let taken = self.request_ns.load(Ordering::Acquire) == 0;
        if !taken && !over {
            return None;
        }
        self.request_ns.store(0, Ordering::Relaxed);
        let change = self.put(None);
        self.publishing.store(false, Ordering::Release);
        let mut change = change?;
        Some(match change.refused.take().map(Refused::Mismatch) {
            _ if !taken => Err((Refused::Ended, change)),
            Some(why) => Err((why, change)),
            None => Ok(change),
        })
    }

    /// What is in the place, for something else.
    fn put(&self, change: Option<Box<Change<B>>>) -> Option<Box<Change<B>>> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, change)
    }

    /// No change will come any more: the loop need not look for one.
    ///
    /// # Real-time: setup only
    pub fn finish(&self) {
        self.last.store(true, Ordering::Release);
        if !self.publishing.load(Ordering::Acquire) {
            self.request_ns.store(1, Ordering::Release);
        }
    }

    /// No loop will take anything any more: a change that waits is refused. For whoever runs the
    /// loop, when that has ended, however it did.
    ///
    /// # Real-time: setup only
    pub fn close(&self) {
        self.over.store(true, Ordering::Release);
    }
}
