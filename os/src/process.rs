//! Processes and threads: their numbers, what happens when their parent ends, timer slack.
//!
//! For sessions and for the loads, which run as child processes. Never starts a program: the only
//! process made here ends in its first instruction.

use crate::Errno;

/// `gettid()`: the calling thread.
///
/// # Real-time: setup only
pub fn tid() -> i32 {
    // SAFETY: takes no argument, cannot fail.
    unsafe { libc::gettid() }
}

/// `geteuid()`: the effective user, 0 for root.
///
/// # Real-time: setup only
pub fn euid() -> u32 {
    // SAFETY: takes no argument, cannot fail.
    unsafe { libc::geteuid() }
}

/// `getppid()`: the parent process; 1, or a subreaper, once the real one has ended. Always a real
/// system call.
///
/// # Real-time: setup only
pub fn parent() -> i32 {
    // SAFETY: takes no argument, cannot fail.
    unsafe { libc::getppid() }
}

/// `getpgrp()`: the process group of the calling process.
///
/// # Real-time: setup only
pub fn group() -> i32 {
    // SAFETY: takes no argument, cannot fail.
    unsafe { libc::getpgrp() }
}

/// `prctl(PR_SET_PDEATHSIG, SIGKILL)`: the calling process is killed when the *thread* that
/// started it ends. Survives execve(2) of a program without set-user-ID or capabilities.
///
/// A parent that ended before the call is not noticed: compare [`parent`] after it.
///
/// # Real-time: setup only
pub fn end_with_parent() -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    Errno::check(result.into()).map(drop)
}

/// `setrlimit(RLIMIT_RTPRIO, 99)`, `setrlimit(RLIMIT_MEMLOCK, RLIM_INFINITY)`: what this process
/// becomes may take any real-time priority and lock its memory, whoever its user is then.
///
/// Errors: `EPERM` beyond the hard limits without CAP_SYS_RESOURCE.
///
/// # Real-time: setup only
pub fn allow_real_time() -> Result<(), Errno> {
    let limits = [(libc::RLIMIT_RTPRIO, 99), (libc::RLIMIT_MEMLOCK, libc::RLIM_INFINITY)];
    for (resource, most) in limits {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: `limit` is initialised and outlives the call.
        Errno::check(unsafe { libc::setrlimit(resource, &raw const limit) }.into())?;
    }
    Ok(())
}

/// `alarm(seconds)`: SIGALRM, which ends a process that does not handle it, after so many seconds;
/// 0 cancels it. Survives execve(2). Gives what was left of the one before, 0 for none.
///
/// # Real-time: setup only
pub fn alarm_s(seconds: u32) -> u32 {
    // SAFETY: takes a number only, cannot fail.
    unsafe { libc::alarm(seconds) }
}

/// The signals that end a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EndSignal {
    /// SIGINT: as by Ctrl-C.
    Interrupt = libc::SIGINT,
    /// SIGTERM.
    Terminate = libc::SIGTERM,
    /// SIGHUP: as when a terminal closes.
    HangUp = libc::SIGHUP,
    /// SIGKILL: cannot be caught.
    Kill = libc::SIGKILL,
}

/// `kill(pid, signal)`: one process, `pid` in [2, …]; anything else is `EINVAL`, so that a mistake
/// never signals every process of the machine.
///
/// # Real-time: setup only
pub fn end(pid: i32, how: EndSignal) -> Result<(), Errno> {
    if pid < 2 {
        return Err(Errno::INVAL);
    }
    // SAFETY: takes numbers only.
    Errno::check(unsafe { libc::kill(pid, how as libc::c_int) }.into()).map(drop)
}

/// `kill(pid, SIGSTOP)`: every thread of the process stands still until [`go_on`]; `pid` in [2, …]
/// as for [`end`].
///
/// # Real-time: setup only
pub fn suspend(pid: i32) -> Result<(), Errno> {
    if pid < 2 {
        return Err(Errno::INVAL);
    }
    // SAFETY: takes numbers only.
    Errno::check(unsafe { libc::kill(pid, libc::SIGSTOP) }.into()).map(drop)
}

/// `kill(pid, SIGCONT)`: ends what [`suspend`] began.
///
/// # Real-time: setup only
pub fn go_on(pid: i32) -> Result<(), Errno> {
    if pid < 2 {
        return Err(Errno::INVAL);
    }
    // SAFETY: takes numbers only.
    Errno::check(unsafe { libc::kill(pid, libc::SIGCONT) }.into()).map(drop)
}

/// `kill(-group, signal)`: every process of a group, `group` in [2, …] as for [`end`].
///
/// # Real-time: setup only
pub fn end_group(group: i32, how: EndSignal) -> Result<(), Errno> {
    if group < 2 {
        return Err(Errno::INVAL);
    }
    // SAFETY: takes numbers only; −group cannot overflow for a positive number.
    Errno::check(unsafe { libc::kill(-group, how as libc::c_int) }.into()).map(drop)
}

/// `kill(-group, 0)`: whether a process of this group is left, one that was not waited for
/// included; `group` in [2, …].
///
/// # Real-time: setup only
pub fn group_exists(group: i32) -> Result<bool, Errno> {
    if group < 2 {
        return Err(Errno::INVAL);
    }
    // SAFETY: takes numbers only; −group cannot overflow for a positive number.
    match Errno::check(unsafe { libc::kill(-group, 0) }.into()) {
        Err(Errno::SRCH) => Ok(false),
        // EPERM: one of another user.
        _ => Ok(true),
    }
}

/// `_exit(status)`: ends the process; nothing is dropped, flushed or printed.
///
/// # Real-time: setup only
pub fn exit_at_once(status: i32) -> ! {
    // SAFETY: takes a number, and does not return.
    unsafe { libc::_exit(status) }
}

/// `fork()`, `_exit(0)` in the new process, `waitpid(pid, NULL, 0)` in this one: a process that
/// does nothing, from its start until it is reaped. Goes on waiting after a signal (`EINTR`).
///
/// Errors: `EAGAIN` beyond RLIMIT_NPROC or the cgroup's pids.max, `ENOMEM`.
///
/// # Real-time: setup only
pub fn fork_and_wait() -> Result<(), Errno> {
    // SAFETY: the new process calls _exit and nothing else, so that it is sound with any number of
    // threads and with locks held by others.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: runs no handlers, flushes nothing, does not return.
        unsafe { libc::_exit(0) };
    }
    Errno::check(pid.into())?;
    loop {
        // SAFETY: a null status is allowed; `pid` is our own child, not yet waited for.
        let waited = unsafe { libc::waitpid(pid, core::ptr::null_mut(), 0) };
        match Errno::check(waited.into()) {
            Err(Errno(libc::EINTR)) => {}
            ended => return ended.map(drop),
        }
    }
}

/// `prctl(PR_GET_TIMERSLACK)`: of the calling thread, in ns.
///
/// # Real-time: setup only
pub fn timer_slack_ns() -> Result<u64, Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    Errno::check(result.into()).map(libc::c_long::cast_unsigned)
}

/// `prctl(PR_SET_TIMERSLACK, slack_ns)`: of the calling thread, in [1, …] ns. Real-time policies
/// have none anyway.
///
/// # Real-time: setup only
pub fn set_timer_slack_ns(slack_ns: u64) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) };
    Errno::check(result.into()).map(drop)
}

/// `unshare(CLONE_NEWNET)`: the calling thread alone gets a new, empty network namespace, and so
/// do the programs and sockets that it starts and opens from now on.
///
/// Errors: `EPERM` without CAP_SYS_ADMIN, `ENOSPC` beyond user.max_net_namespaces, `EINVAL` where
/// the kernel has none.
///
/// # Real-time: setup only
pub fn unshare_network() -> Result<(), Errno> {
    // SAFETY: takes a flag only; changes nothing in memory.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_slack_reads_back() {
        std::thread::spawn(|| {
            set_timer_slack_ns(1).expect("allowed to all");
            assert_eq!(timer_slack_ns(), Ok(1));
        })
        .join()
        .expect("no panic");
        assert!(tid() > 0);
    }

    #[test]
    fn a_forked_process_leaves_nothing() {
        // Parent and group may be 0: those of another PID namespace (pid_namespaces(7)).
        let me = || (std::process::id(), parent(), group());
        let before = me();
        for _ in 0..8 {
            fork_and_wait().expect("one process more");
        }
        // Still the same process, with the same parent: the new ones never came back to here.
        assert_eq!(me(), before);
    }

    /// `prctl(PR_GET_PDEATHSIG, &signal)`: whether [`end_with_parent`] holds.
    fn ends_with_parent() -> Result<bool, Errno> {
        let mut signal: libc::c_int = 0;
        // SAFETY: `signal` is a writable int.
        let result = unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal, 0, 0, 0) };
        Errno::check(result.into()).map(|_| signal == libc::SIGKILL)
    }

    #[test]
    fn the_end_with_the_parent_reads_back() {
        assert_eq!(ends_with_parent(), Ok(false));
        // The thread that started this process may end before it: take it back at once, by value 0.
        end_with_parent().expect("allowed to all");
        let held = ends_with_parent();
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, 0, 0, 0, 0) };
        assert_eq!(held, Ok(true));
    }

    #[test]
    fn wide_targets_are_refused() {
        for pid in [i32::MIN, -1, 0, 1] {
            assert_eq!(end(pid, EndSignal::Kill), Err(Errno::INVAL));
            assert_eq!(end_group(pid, EndSignal::Kill), Err(Errno::INVAL));
            assert_eq!([suspend(pid), go_on(pid)], [Err(Errno::INVAL); 2]);
            assert_eq!(group_exists(pid), Err(Errno::INVAL));
        }
    }

    #[test]
    fn a_group_is_ended() {
        use std::io::{BufRead, BufReader};
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        let mut child = std::process::Command::new("sh")
            .args(["-c", "echo begun; exec sleep 60"])
            .stdout(std::process::Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a shell");
        // It is in its group for certain once it says something (qemu-user returns before that).
        let mut line = std::string::String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let pid = child.id().cast_signed();
        assert_eq!(group_exists(pid), Ok(true));
        end_group(pid, EndSignal::Terminate).expect("it lives");
        assert_eq!(child.wait().expect("ours").signal(), Some(libc::SIGTERM));
        assert_eq!(group_exists(pid), Ok(false));
        assert_eq!(end(pid, EndSignal::Interrupt), Err(Errno::SRCH));
    }

    #[test]
    fn a_process_stands_still_and_goes_on() {
        use crate::threads::{ThreadState, state};
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let pid = child.id().cast_signed();
        let becomes = |wanted| {
            while state(pid, pid) != Some(wanted) {
                std::thread::yield_now();
            }
        };
        suspend(pid).expect("ours");
        becomes(ThreadState::Stopped);
        go_on(pid).expect("ours");
        becomes(ThreadState::Waiting);
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(suspend(pid), Err(Errno::SRCH));
    }

    #[test]
    fn an_alarm_tells_what_was_left() {
        alarm_s(1_000);
        assert!((1..=1_000).contains(&alarm_s(0)));
    }

    fn network_of_thread() -> std::path::PathBuf {
        std::fs::read_link("/proc/thread-self/ns/net").expect("procfs is mounted")
    }

    #[test]
    fn only_the_calling_thread_moves() {
        let before = network_of_thread();
        let inside = std::thread::spawn(|| unshare_network().map(|()| network_of_thread()))
            .join()
            .expect("no panic");
        match inside {
            Ok(network) => assert_ne!(network, before),
            Err(why) => assert!(matches!(why, Errno::PERM | Errno::INVAL | Errno(libc::ENOSPC))),
        }
        assert_eq!(network_of_thread(), before);
    }
}
