//! Signals: one that asks for an end, one that interrupts a sleep.
//!
//! For the command line and for sessions. The handlers do nothing but store a flag.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::Errno;

static STOP: AtomicBool = AtomicBool::new(false);

/// The flag that SIGINT and SIGTERM set after [`catch_stop`].
///
/// # Real-time: in loop
pub fn stop_flag() -> &'static AtomicBool {
    &STOP
}

extern "C" fn on_stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

extern "C" fn on_interrupt(_: libc::c_int) {}

/// `sigaction(SIGINT | SIGTERM | SIGHUP, SA_RESETHAND)`: the first one sets [`stop_flag`], a second
/// kills.
///
/// # Real-time: setup only
pub fn catch_stop() -> Result<(), Errno> {
    handle(libc::SIGINT, on_stop, libc::SA_RESETHAND)?;
    handle(libc::SIGTERM, on_stop, libc::SA_RESETHAND)?;
    if is_ignored(libc::SIGHUP)? {
        return Ok(());
    }
    handle(libc::SIGHUP, on_stop, libc::SA_RESETHAND)
}

/// Whether a signal is ignored, as nohup(1) has it for SIGHUP.
fn is_ignored(signal: libc::c_int) -> Result<bool, Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `action` is writable; a null new action changes nothing.
    let result = unsafe { libc::sigaction(signal, core::ptr::null(), &raw mut action) };
    Errno::check(result.into()).map(|_| action.sa_sigaction == libc::SIG_IGN)
}

/// `sigaction(SIGURG)`: makes [`interrupt`] end a sleep early; without this it does nothing.
///
/// # Real-time: setup only
pub fn catch_interrupt() -> Result<(), Errno> {
    handle(libc::SIGURG, on_interrupt, 0)
}

/// `tgkill(getpid(), tid, SIGURG)`: a sleep of that thread returns early.
///
/// # Real-time: setup only
pub fn interrupt(tid: i32) -> Result<(), Errno> {
    // SAFETY: takes no argument, cannot fail.
    let pid = unsafe { libc::getpid() };
    // SAFETY: takes numbers only; a thread that is gone gives ESRCH.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, libc::SIGURG) };
    Errno::check(result).map(drop)
}

/// `signal(SIGXFSZ, SIG_IGN)`: a file beyond RLIMIT_FSIZE gives EFBIG instead of an end.
///
/// # Real-time: setup only
pub fn ignore_file_size() {
    // SAFETY: SIG_IGN is a valid disposition and runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

fn handle(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
    flags: libc::c_int,
) -> Result<(), Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = flags;
    // SAFETY: `action` is initialised and outlives the call; the handler is async-signal-safe.
    let result = unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_interrupted() {
        catch_interrupt().expect("SIGURG can be caught");
        let (to_main, from_thread) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            to_main.send(crate::process::tid()).expect("main waits");
            crate::clock::sleep_until_ns(u64::MAX / 2)
        });
        let tid = from_thread.recv().expect("the thread says its id");
        while !sleeper.is_finished() {
            interrupt(tid)
                .or_else(|why| if why.0 == libc::ESRCH { Ok(()) } else { Err(why) })
                .expect("sent");
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().expect("no panic"), Err(Errno(libc::EINTR)));
    }
}
