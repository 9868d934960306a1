//! `punctual_loop`: one loop on the thread that created it.
//!
//! The object behind the handle, and its entries. Other threads stop it and read its page; all else
//! is its own thread's.

use std::ffi::{c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use punctual::core::page::View;
use punctual::lone::{EnterError, Loop, Remote, Storage};

use crate::border::{self, Failure};
use crate::options::Options;
use crate::owned::Owned;
use crate::record;
use crate::stats::{self, Cycle, Stats};
use crate::wait_info::WaitInfo;
use punctual::session::Process as ProcessSession;

/// A loop together with the memory that it borrows.
struct Rooted {
    looped: ManuallyDrop<Loop<'static>>,
    storage: NonNull<Storage>,
}

impl Rooted {
    fn enter(options: &Options) -> Result<Self, Failure> {
        let options = options.of_loop()?;
        let storage = NonNull::from(Box::leak(Box::new(Storage::new())));
        // SAFETY: from a box just leaked, which `drop` takes back after the loop is gone.
        let borrowed: &'static mut Storage = unsafe { &mut *storage.as_ptr() };
        match options.enter(borrowed) {
            Ok(looped) => Ok(Self { looped: ManuallyDrop::new(looped), storage }),
            Err(why) => {
                // SAFETY: the box that was leaked above; what borrowed it is gone.
                drop(unsafe { Box::from_raw(storage.as_ptr()) });
                Err(match why {
                    EnterError::Options(why) => Failure::invalid(why.to_string()),
                    EnterError::Watchdog(_) => Failure::new(libc::EAGAIN, why.to_string()),
                })
            }
        }
    }
}

impl Drop for Rooted {
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else, and not used after.
        unsafe { ManuallyDrop::drop(&mut self.looped) };
        // SAFETY: the box that `enter` leaked; the loop that borrowed it is gone, and a view of it
        // lives no longer than the object that holds this.
        drop(unsafe { Box::from_raw(self.storage.as_ptr()) });
    }
}

/// What a `punctual_loop` is.
pub(crate) struct Looped {
    own: Owned<Rooted>,
    view: View<'static>,
    remote: Remote,
    refused: String,
    _session: ProcessSession,
}

impl Looped {
    /// Counts the cycle that runs, where its own thread reads.
    fn count(&self) -> Result<(), Failure> {
        if !self.own.is_mine() {
            return Ok(());
        }
        self.own.with(|own| {
            own.looped.count();
            Ok(())
        })
    }

    fn create(options: &Options) -> Result<Self, Failure> {
        // Looked at before anything is touched.
        options.of_loop()?;
        let session = ProcessSession::ask(options.lock_memory != 0, options.hold_idle_states != 0);
        let mut refused = session.refused().to_vec();
        let rooted = Rooted::enter(options)?;
        refused.extend_from_slice(rooted.looped.refused());
        let refused = listed(&refused);
        if options.strict != 0 && !refused.is_empty() {
            return Err(Failure::new(libc::EACCES, refused));
        }
        let (view, remote) = (rooted.looped.view(), rooted.looped.remote());
        Ok(Self { own: Owned::new(rooted), view, remote, refused, _session: session })
    }
}

/// Refusals as one line.
pub(crate) fn listed(refused: &[punctual::session::Refusal]) -> String {
    let line = |r: &punctual::session::Refusal| format!("{}: {}", r.attempt, r.errno);
    refused.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_create(to: *mut *mut Looped, options: *const Options) -> c_int {
    border::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to, std::ptr::null_mut()) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let options = unsafe { record::take(options) }?;
        let made = Box::into_raw(Box::new(Looped::create(&options)?));
        // SAFETY: it was writable above.
        unsafe { border::put(to, made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_wait(looped: *mut Looped, cycle: *mut Cycle) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        let looped = unsafe { border::object(looped) }?;
        if !cycle.is_null() {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::fits(cycle) }?;
        }
        let ran = looped.own.with(|own| Ok(own.looped.wait()))?;
        let ran = ran.ok_or_else(|| {
            let forced = looped.remote.forced().is_some();
            Failure::bare(if forced { libc::ETIMEDOUT } else { libc::ECANCELED })
        })?;
        if cycle.is_null() {
            return Ok(());
        }
        let ours = Cycle {
            size: size_of::<Cycle>(),
            n: ran.n,
            release_ns: ran.release.as_ns(),
            lateness_ns: ran.lateness.as_ns(),
            missed: ran.missed,
            dt_ns: stats::ns(ran.dt),
            next_ns: ran.next.as_ns(),
            part: 0,
        };
        // SAFETY: not null, and then a struct that says its size, says the header.
        unsafe { record::give(cycle, &ours) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_stop(looped: *mut Looped) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        unsafe { border::object(looped) }?.remote.stop();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_stats(looped: *const Looped, to: *mut Stats) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        let looped = unsafe { border::object(looped) }?;
        looped.count()?;
        let stats = Stats::of(&looped.view).with_forced(looped.remote.forced());
        let stats = stats.with_stalls(&looped.remote);
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_quantile_ns(
    looped: *const Looped,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        let looped = unsafe { border::object(looped) }?;
        looped.count()?;
        let quantile_ns = stats::quantile_ns(&looped.view, share)?;
        // SAFETY: null or writable, says the header.
        unsafe { border::put(to_ns, quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_wait_info(looped: *mut Looped, to: *mut WaitInfo) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        let looped = unsafe { border::object(looped) }?;
        let info = looped.own.with(|own| {
            let of = &own.looped;
            let (approach, learned) = (of.approach(), of.learned());
            Ok(WaitInfo::of(of.phase_ns(), of.quiet(), of.policy(), approach, learned))
        })?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_refused(
    looped: *const Looped,
    to: *mut c_char,
    size: usize,
) -> c_int {
    border::enter(|| {
        // SAFETY: null or a loop, says the header.
        let looped = unsafe { border::object(looped) }?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { border::put_text(to, size, &looped.refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_destroy(looped: *mut Looped) -> c_int {
    border::enter(|| {
        if looped.is_null() {
            return Ok(());
        }
        // SAFETY: not null, and then a loop, says the header.
        let own = &unsafe { border::object(looped) }?.own;
        // Its thread's session can be put back on that thread alone; and not from within itself.
        own.with(|_| Ok(()))?;
        // SAFETY: from a box, by `punctual_loop_create`; the caller uses it no more.
        drop(unsafe { Box::from_raw(looped) });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
