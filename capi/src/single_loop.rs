//! `punctual_loop`: one loop on the thread that created it.
//!
//! The object behind the handle, and its entries. Other threads stop it and read its page; all else
//! is its own thread's.

use std::ffi::{CStr, c_char, c_int, c_void};

use punctual::follow::FollowedClock;
use punctual::{Loop, LoopHandle, Period, Samples, Summary, WaitStatus};
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

/// Evaluates `$result` with the loop of either clock as `$running`.
macro_rules! on_either {
    ($any:expr, $running:ident => $result:expr) => {
        match $any {
            AnyLoop::Machine($running) => $result,
            AnyLoop::Followed($running) => $result,
        }
    };
}

/// What only its own thread touches: the loop until its summary is wanted, and the summary then.
struct Own {
    running: Option<AnyLoop>,
    summary: Option<Summary>,
    /// The phase at which it began.
    phase_ns: u64,
}

impl Own {
    /// Ends the loop where it runs; `None` where its end broke off by a fault of the library's own.
    fn finish(&mut self) -> Option<&Summary> {
        if let Some(running) = self.running.take() {
            self.summary = Some(on_either!(running, running => running.finish()));
        }
        self.summary.as_ref()
    }

    /// How it waits, or waited; `None` as of [`Own::finish`].
    fn wait_info(&self) -> Option<WaitInfo> {
        if let Some(running) = &self.running {
            return Some(on_either!(running, running => {
                let (phase_ns, quiet) = (running.phase_ns(), running.quiet());
                WaitInfo::of(phase_ns, quiet, running.policy(), running.wait_status())
                    .moved(running.moves())
            }));
        }
        let Summary { quiet, policy, wait, moves, .. } = self.summary.as_ref()?;
        let phase_ns = quiet.map_or(self.phase_ns, |quiet| quiet.phase_ns);
        Some(WaitInfo::of(phase_ns, *quiet, *policy, *wait).moved(*moves))
    }

    /// The state of its wait, or that at its end; `None` as of [`Own::finish`].
    fn wait_status(&self) -> Option<WaitStatus> {
        match &self.running {
            Some(running) => Some(on_either!(running, running => running.wait_status())),
            None => self.summary.as_ref().map(|summary| summary.wait),
        }
    }
}

/// A loop whose end broke off.
const BROKEN: Failure = Failure::bare(libc::ENOTRECOVERABLE);

/// The object behind a `punctual_loop`.
struct SingleLoop {
    origin: Origin,
    own: ThreadBound<Own>,
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
            if let Some(running) = &mut own.running {
                on_either!(running, running => running.count());
            }
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
        let running = started.map_err(|why| Failure::of(&why))?;
        let (handle, refusals, phase_ns) = on_either!(&running, running => {
            (running.handle(), listed(running.refused()), running.phase_ns())
        });
        let refused: Vec<String> = [Some(refusals), unusable]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        let (origin, refused) = (Origin::here(), refused.join("; "));
        let own = ThreadBound::new(Own { running: Some(running), summary: None, phase_ns });
        Ok(Self { origin, own, handle, period, refused })
    }

    /// Ends it; the failure is that of its sample file.
    fn finish(self) -> Result<(), Failure> {
        let mut own = self.own.into_inner();
        let summary = own.finish().ok_or(BROKEN)?;
        let Some(Samples { path, failed: Some(why), .. }) = &summary.samples else {
            return Ok(());
        };
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
        let ran = single.own.with(|own| {
            let running = own.running.as_mut();
            Ok(running.and_then(|running| on_either!(running, running => running.wait())))
        })?;
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
        let info = single.own.with(|own| own.wait_info().ok_or(BROKEN))?;
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
            let status = single.own.with(|own| own.wait_status().ok_or(BROKEN))?;
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
unsafe extern "C" fn punctual_loop_summary(
    single: *mut SingleLoop,
    to: *mut c_char,
    size: usize,
) -> c_int {
    ffi::enter(|| {
        // SAFETY: null or a loop, says the header.
        let single = unsafe { ffi::object(single) }?;
        // Room is looked for before anything ends.
        // SAFETY: null or `size` writable bytes, says the header.
        unsafe { ffi::put_text(to, size, "") }?;
        let text = single.own.with(|own| own.finish().map(Summary::to_string).ok_or(BROKEN))?;
        // SAFETY: as above.
        unsafe { ffi::put_text(to, size, &text) }
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
