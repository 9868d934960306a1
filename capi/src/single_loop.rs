//! `punctual_loop`: one loop on the thread that created it.
//!
//! The object behind the handle, and its entries. Other threads stop it and read its page; all else
//! is its own thread's.

use std::ffi::{CStr, c_char, c_int, c_void};

use punctual::follow::FollowedClock;
use punctual::{Loop, LoopHandle, Period, Samples};
use punctual_os::fork::Origin;

use crate::failure::{Failure, null};
use crate::ffi::{self, Object};
use crate::learned_bytes;
use crate::options::{LoopConfig, Options};
use crate::record;
use crate::stats::{self, Cycle, Stats};
use crate::thread_bound::ThreadBound;
use crate::wait_info::WaitInfo;

/// A loop on either clock.
enum AnyLoop {
    Machine(Loop),
    Followed(Loop<FollowedClock>),
}

/// Evaluates `$result` with the loop of either clock as `$own`.
macro_rules! on_either {
    ($any:expr, $own:ident => $result:expr) => {
        match $any {
            AnyLoop::Machine($own) => $result,
            AnyLoop::Followed($own) => $result,
        }
    };
}

/// The object behind a `punctual_loop`.
struct SingleLoop {
    origin: Origin,
    own: ThreadBound<AnyLoop>,
    handle: LoopHandle,
    period: Period,
    refused: String,
}

impl Object for SingleLoop {
    const NULL: &'static CStr = null!("loop", "what punctual_loop_create() gave");

    fn origin(&self) -> Origin {
        self.origin
    }
}

impl SingleLoop {
    /// Counts the cycle that runs, where its own thread reads.
    fn count(&self) -> Result<(), Failure> {
        if !self.own.is_mine() {
            return Ok(());
        }
        self.own.with(|own| {
            on_either!(own, own => own.count());
            Ok(())
        })
    }

    /// Starts a loop with these options.
    ///
    /// # Safety
    /// The pointers of the options are what the header says.
    unsafe fn create(options: &Options) -> Result<Self, Failure> {
        // SAFETY: as the caller says.
        let LoopConfig { builder, period, follow, unusable } = unsafe { options.of_loop() }?;
        let started = match follow {
            None => builder.start().map(AnyLoop::Machine),
            Some(follow) => {
                let clock = follow.clock();
                builder.start_on(clock).map(AnyLoop::Followed)
            }
        };
        let own = started.map_err(|why| Failure::of(&why))?;
        let (handle, refused) = on_either!(&own, own => (own.handle(), listed(own.refused())));
        let refused: Vec<String> = [Some(refused), unusable]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        let (origin, refused) = (Origin::here(), refused.join("; "));
        Ok(Self { origin, own: ThreadBound::new(own), handle, period, refused })
    }

    /// Ends it; the failure is that of its sample file.
    fn finish(self) -> Result<(), Failure> {
        let summary = on_either!(self.own.into_inner(), own => own.finish());
        let Some(Samples { path, failed: Some(why), .. }) = summary.samples else { return Ok(()) };
        Err(Failure::new(libc::EIO, format!("{}: the file is not whole: {why}", path.display())))
    }
}

/// Refusals as one line.
pub(crate) fn listed(refused: &[punctual::Refusal]) -> String {
    let line = |r: &punctual::Refusal| format!("{}: {}", r.attempt, r.errno);
    refused.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_create(
    to: *mut *mut SingleLoop,
    options: *const Options,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("loop", "where the handle goes"), std::ptr::null_mut()) }?;
        // SAFETY: null or a struct that says its size, says the header.
        let options = unsafe { record::take(options) }?;
        // SAFETY: its pointers are what the header says.
        let made = Box::into_raw(Box::new(unsafe { SingleLoop::create(&options) }?));
        // SAFETY: it was writable above.
        unsafe { ffi::put(to, null!("loop", "where the handle goes"), made) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_wait(single: *mut SingleLoop, cycle: *mut Cycle) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        if !cycle.is_null() {
            // SAFETY: not null, and then a struct that says its size, says the header.
            unsafe { record::fits(cycle) }?;
        }
        let ran = single.own.with(|own| Ok(on_either!(own, own => own.wait())))?;
        let ran = ran.ok_or_else(|| {
            single.handle.forced().map_or(Failure::bare(libc::ECANCELED), Failure::forced)
        })?;
        if cycle.is_null() {
            return Ok(());
        }
        let ours = Cycle::of(&ran);
        // SAFETY: not null, and then a struct that says its size, says the header.
        unsafe { record::give(cycle, &ours) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_stop(single: *mut SingleLoop) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        unsafe { ffi::object(single) }?.handle.stop();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_stopped(single: *const SingleLoop, to: *mut c_int) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let stopped = unsafe { ffi::object(single) }?.handle.stopped();
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to, null!("to", "where the answer goes"), c_int::from(stopped)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_stats(single: *const SingleLoop, to: *mut Stats) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        single.count()?;
        let stats = Stats::of(&single.handle.counts()).with_forced(single.handle.forced());
        let stats = stats.with_stalls(single.handle.stalls());
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &stats) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_quantile_ns(
    single: *const SingleLoop,
    share: f64,
    to_ns: *mut i64,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        single.count()?;
        let quantile_ns = stats::quantile_ns(|share| single.handle.quantile(share), share)?;
        // SAFETY: null or writable, says the header.
        unsafe { ffi::put(to_ns, null!("to_ns", "where the answer goes"), quantile_ns) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_wait_info(single: *mut SingleLoop, to: *mut WaitInfo) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        let info = single.own.with(|own| {
            let info = on_either!(own, single => {
                WaitInfo::of(
                    single.phase_ns(),
                    single.quiet(),
                    single.policy(),
                    single.wait_status(),
                )
                .moved(single.moves())
            });
            Ok(info)
        })?;
        // SAFETY: null or a struct that says its size, says the header.
        unsafe { record::give(to, &info) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_learned(
    single: *mut SingleLoop,
    to: *mut c_void,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        let bytes = || {
            let status = single.own.with(|own| Ok(on_either!(own, own => own.wait_status())))?;
            Ok(learned_bytes::to_bytes(&status, single.period))
        };
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { learned_bytes::give(to, size, bytes) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_refused(
    single: *const SingleLoop,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, &single.refused) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_loop_destroy(single: *mut SingleLoop) -> c_int {
    // Its thread's session can be put back on that thread alone; and not from within itself.
    let may = |single: &SingleLoop| single.own.with(|_| Ok(()));
    // SAFETY: null or a loop, from the box of `punctual_loop_create`, says the header.
    ffi::enter(|| unsafe { ffi::destroy(single, may, SingleLoop::finish) })
}

#[cfg(test)]
mod tests;
