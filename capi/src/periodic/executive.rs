//! What a `punctual_periodic` is: its tasks, and who changes, runs and reads them.
//!
//! Setup and readers; the run is `run.rs`'s.

#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};

use punctual::loops::Control;
use punctual::os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual::periodic::Task;

use super::book::{Book, Built, Entry};
use super::live::{Changed, Live};
use crate::border::{Exclusive, Failure};
use crate::owned::mark;
use crate::room::Room;
use crate::run::Told;
use crate::task::Callback;

/// How often one that waits for a run or a change to be over looks again, ns.
const LOOK_NS: u64 = 500_000;

/// An executive.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(crate) struct Executive {
    /// One call at a time changes the tasks.
    changes: Exclusive<()>,
    /// One call at a time runs them: of the last run.
    pub(super) runs: Exclusive<Told>,
    book: Mutex<Book>,
    pub(crate) remote: Control,
}

impl Executive {
    /// The tasks as they are. Held for moments only.
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more task; its index.
    pub(super) fn add(&self, name: String, task: Task, callback: Callback) -> Result<u32, Failure> {
        let entry = Entry::new(name, task, callback);
        let mut index = 0;
        self.change(|entries| {
            index = u32::try_from(entries.len())
                .map_err(|_| Failure::new(libc::E2BIG, "too many tasks"))?;
            entries.push(Some(entry.clone()));
            Ok(())
        })?;
        Ok(index)
    }

    /// Takes a task away.
    pub(super) fn remove(&self, task: u32) -> Result<(), Failure> {
        self.change(|entries| {
            let entry = entries.get_mut(task as usize).and_then(Option::take);
            entry.map(drop).ok_or(Failure::bare(libc::ENOENT))
        })
    }

    /// Changes the tasks, those of a run as well: all or nothing. What fails changes nothing.
    fn change(
        &self,
        mut change: impl FnMut(&mut Vec<Option<Entry>>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.changes.with(|()| {
            loop {
                let mut book = self.book();
                if book.lent {
                    let text = "beside a calendar that runs, tasks stay as they are";
                    return Err(Failure::new(libc::EBUSY, text));
                }
                let live = book.live.clone();
                if live.as_ref().is_some_and(|live| live.is_of(mark())) {
                    let text = "a task cannot change its own executive while it runs";
                    return Err(Failure::new(libc::EDEADLK, text));
                }
                let Some(built) = &book.built else { return change(&mut book.entries) };
                let mut entries = book.entries.clone();
                change(&mut entries)?;
                let (next, ranks) = built.then(&entries, book.overload)?;
                let Some(live) = live else {
                    (book.entries, book.built) = (entries, Some(next));
                    return Ok(());
                };
                live.check(&next)?;
                book.changing = true;
                // The loop answers in its own time; readers read meanwhile.
                drop(book);
                match self.hand_over(&live, (next, ranks), entries)? {
                    Changed::Taken => return Ok(()),
                    // Once more: there may be another run by then.
                    Changed::Ended => pause(),
                }
            }
        })
    }

    /// Hands a change over, and keeps what it has changed.
    fn hand_over(
        &self,
        live: &Live,
        (next, ranks): (Built, Vec<Option<u32>>),
        entries: Vec<Option<Entry>>,
    ) -> Result<Changed, Failure> {
        /// Over on every way out, a panic's too.
        struct UnderWay<'e>(&'e Executive);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                self.0.book().changing = false;
            }
        }
        let _under_way = UnderWay(self);
        let changed = live.publish(&next, ranks)?;
        if matches!(changed, Changed::Taken) {
            let mut book = self.book();
            (book.entries, book.built) = (entries, Some(next));
        }
        Ok(changed)
    }

    /// Looks at the tasks while no change of them is under way. For who holds `runs`: what waits
    /// for a loop then waits for one that is over, and hears so.
    pub(super) fn unchanged<R>(
        &self,
        look: impl FnOnce(&mut Book) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        loop {
            let mut book = self.book();
            if !book.changing {
                return look(&mut book);
            }
            drop(book);
            pause();
        }
    }

    pub(super) fn allow_overload(&self) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut book = self.book();
            not_yet_built(&book)?;
            book.overload = true;
            Ok(())
        })
    }

    /// Checks all tasks and lays them out.
    pub(super) fn build(&self) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut book = self.book();
            not_yet_built(&book)?;
            book.built = Some(Built::of(&book.entries, book.overload)?);
            Ok(())
        })
    }

    /// Where the page of a task is.
    pub(super) fn room(&self, task: u32) -> Result<Arc<Room>, Failure> {
        let book = self.book();
        book.built()?;
        Ok(Arc::clone(&book.entry(task)?.room))
    }

    /// What was built, for a run that is not its own; EBUSY while it runs. Nothing of it changes
    /// meanwhile.
    pub(crate) fn lend<R>(
        &self,
        run: impl FnOnce(&Built) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        /// Gives it back on every way out, a panic's too.
        struct Lent<'e>(&'e Executive);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.book().lent = false;
            }
        }
        self.runs.with(|_| {
            let built = self.unchanged(|book| {
                let built = book.built()?.clone();
                book.lent = true;
                Ok(built)
            })?;
            let _lent = Lent(self);
            run(&built)
        })
    }

    /// EBUSY while it runs or is changed.
    pub(super) fn idle(&self) -> Result<(), Failure> {
        self.runs.with(|_| self.changes.with(|()| Ok(())))
    }
}

/// A look later.
fn pause() {
    // A signal that cuts this short costs an extra look.
    let _cut = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

fn not_yet_built(book: &Book) -> Result<(), Failure> {
    match book.built {
        None => Ok(()),
        Some(_) => Err(Failure::new(libc::EBUSY, "the executive is built already")),
    }
}

/// What a run and those who change its tasks share is whole.
const fn is_shared<T: Send + Sync>() {}
const _: () = is_shared::<Arc<Live>>();
