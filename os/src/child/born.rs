//! The first code of a new process, until it becomes its program.
//!
//! Runs in the memory of its parent, whose thread waits meanwhile: nothing but system calls, no
//! panic, no allocation, no lock. Touches the process that it runs in.

use core::ffi::{c_int, c_void};

use super::confine::{confine, keep_descriptors};
use super::{Birth, Program, check, no_signals, restore_signals};
use crate::Errno;

/// The first code of the new process. Returns only by its end.
pub(super) extern "C" fn begin(birth: *mut c_void) -> c_int {
    // SAFETY: the parent's local, which it does not touch while this process shares its memory.
    let birth = unsafe { &mut *birth.cast::<Birth<'_>>() };
    birth.errno = prepare(birth).and_then(|()| run(birth.program)).err().map_or(0, |why| why.0);
    // SAFETY: runs no handlers, flushes nothing, does not return.
    unsafe { libc::_exit(127) }
}

/// Prepares the process for its program. Nothing but system calls: the memory is shared.
fn prepare(birth: &Birth<'_>) -> Result<(), Errno> {
    let program = birth.program;
    forget_handlers();
    // SAFETY: takes numbers only.
    check(unsafe { libc::setpgid(0, 0) })?;
    if let Some(procs) = program.cgroup {
        // SAFETY: one readable byte. A refusal leaves it in the parent's cgroup.
        unsafe { libc::write(procs, c"0".as_ptr().cast(), 1) };
    }
    be_ordinary()?;
    limit_realtime(program.realtime_us)?;
    keep_descriptors();
    confine(&program.confinement)?;
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
    // SAFETY: takes no argument, cannot fail.
    if unsafe { libc::getppid() } != birth.parent {
        // The parent ended before the tie was made.
        return Err(Errno(libc::ESRCH));
    }
    // SAFETY: takes numbers only.
    check(unsafe { libc::dup2(program.input, 0) })?;
    // SAFETY: as above.
    check(unsafe { libc::dup2(program.output, 1) })?;
    for &descriptor in program.inherited {
        // SAFETY: as above; descriptors are this process's own already.
        check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, 0) })?;
    }
    restore_signals(&no_signals());
    Ok(())
}

/// Becomes the program; returns only when that fails.
fn run(program: &Program<'_>) -> Result<(), Errno> {
    // SAFETY: `Text` is a pointer to a text, and both lists end with a null pointer.
    let failed = unsafe {
        libc::execve(
            program.path.as_ptr(),
            program.arguments.as_ptr().cast(),
            program.environment.as_ptr().cast(),
        )
    };
    check(failed)
}

/// The parent's signal handlers are reset; and SIGPIPE, which Rust programs ignore, is as other
/// programs expect it.
fn forget_handlers() {
    // SIGRTMAX of the kernel; the C library refuses the two that are its own.
    for signal in 1..=64 {
        // SAFETY: all-zero is a valid sigaction, SIG_DFL.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        // SAFETY: `action` is writable; a null new action changes nothing.
        let known = unsafe { libc::sigaction(signal, core::ptr::null(), &raw mut action) } == 0;
        let handled = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
        if known && (handled || signal == libc::SIGPIPE) {
            // SAFETY: SIG_DFL is a valid disposition and runs no code.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// SCHED_OTHER where the parent has a real-time policy; its nice value stays.
fn be_ordinary() -> Result<(), Errno> {
    // SAFETY: takes a number only.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if !matches!(policy, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) {
        return Ok(());
    }
    // SAFETY: all-zero is a valid sched_param: priority 0.
    let priority: libc::sched_param = unsafe { core::mem::zeroed() };
    // SAFETY: `priority` outlives the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const priority) })
}

/// Beyond this the kernel kills the process; only lowered, which needs no privilege.
fn limit_realtime(limit_us: u64) -> Result<(), Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the call to fill.
    check(unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_cur.min(limit_us);
    limit.rlim_max = limit.rlim_max.min(limit_us);
    // SAFETY: `limit` is initialised and outlives the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) })
}
