//! A program started as a child process that cannot outlive the thread that starts it, and how that
//! process ended.
//!
//! For supervisors of real-time tasks. As posix_spawn(3) does it: nothing of the caller's memory is
//! copied, so that the other threads of a process with locked memory take no page faults because a
//! program is started. What posix_spawn cannot do is done here before the program runs: the tie to
//! the parent, the limit of real-time CPU time, the cgroup. Never looks for a program, never waits.

mod born;
mod confine;

use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;

use crate::Errno;

pub use confine::Confinement;

/// A text of a program's arguments or environment, or the end of them.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// What ends a list of texts.
    pub const END: Self = Self(core::ptr::null(), PhantomData);

    /// This text.
    ///
    /// # Real-time: setup only
    pub const fn of(text: &'a CStr) -> Self {
        Self(text.as_ptr(), PhantomData)
    }
}

/// A program to be started.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Where it lies.
    pub path: &'a CStr,
    /// Its arguments, its own name first; the last one is [`Text::END`].
    pub arguments: &'a [Text<'a>],
    /// Its environment; the last one is [`Text::END`].
    pub environment: &'a [Text<'a>],
    /// The descriptor that it gets as standard input, 3 or more.
    pub input: c_int,
    /// The descriptor that it gets as standard output; may be 2.
    pub output: c_int,
    /// Descriptors that it gets under their own numbers, though they end with an exec otherwise.
    pub inherited: &'a [c_int],
    /// How long any of its threads may run under a real-time policy without blocking, µs; a lower
    /// limit of the caller's stays (RLIMIT_RTTIME, getrlimit(2)).
    pub realtime_us: u64,
    /// The file `cgroup.procs`, open for writing, of the cgroup that it is to be in. Where the
    /// kernel refuses that, the program runs in the caller's.
    pub cgroup: Option<c_int>,
    /// User, capabilities, directory.
    pub confinement: Confinement<'a>,
}

/// Bytes of stack for the few calls between the birth of a process and its program.
const STACK_BYTES: usize = 64 * 1024;

/// What the new process needs, in the memory of its parent, which waits meanwhile.
struct Birth<'a> {
    program: &'a Program<'a>,
    parent: c_int,
    errno: c_int,
}

/// `clone(CLONE_VM | CLONE_VFORK | SIGCHLD)`, and in the new process `setpgid(0, 0)`,
/// `setrlimit(RLIMIT_RTTIME)`, `close_range`, `umask`, `setgroups`, `setresgid`, `setresuid`,
/// `capset`, `chdir`, `prctl(PR_SET_PDEATHSIG, SIGKILL)`, `execve`: its number, until [`reap`].
///
/// It leads a process group of its own, has no real-time policy, its own standard input and output,
/// no blocked signals, and inherits no descriptor but 0, 1, 2 and those named. The kernel kills it
/// when the calling *thread* ends, for whatever reason; programs with set-user-ID, set-group-ID or
/// file capabilities lose that tie. Under an emulator that copies where the kernel
/// shares, a program that cannot be run is a process that ends with status 127.
///
/// Errors: those of clone(2) and execve(2); `EINVAL` for lists without an end.
///
/// # Real-time: setup only
pub fn start(program: &Program<'_>) -> Result<i32, Errno> {
    let ends = |texts: &[Text<'_>]| texts.last().is_some_and(|last| last.0.is_null());
    if !ends(program.arguments) || !ends(program.environment) {
        return Err(Errno::INVAL);
    }
    let stack = Stack::new()?;
    // SAFETY: takes no argument, cannot fail.
    let parent = unsafe { libc::getpid() };
    let mut birth = Birth { program, parent, errno: 0 };
    // In the new process no handler of this one may run: they would run in this one's memory.
    let before = block_signals();
    // SAFETY: `stack.top()` is the end of memory that nobody else uses; `birth` outlives the new
    // process's use of it, for CLONE_VFORK returns only when that has become a program or ended.
    let made = unsafe {
        libc::clone(
            born::begin,
            stack.top(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut birth).cast(),
        )
    };
    let made = Errno::check(made.into());
    restore_signals(&before);
    let pid = made.map(|pid| pid as c_int)?;
    // SAFETY: a live local, written by the new process before it ended, if at all.
    match unsafe { (&raw const birth.errno).read_volatile() } {
        0 => Ok(pid),
        errno => {
            // It has ended already.
            let _reaped = reap(pid);
            Err(Errno(errno))
        }
    }
}

/// Memory for the stack of a new process.
struct Stack(*mut c_void);

impl Stack {
    fn new() -> Result<Self, Errno> {
        // SAFETY: a new private mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(Self(memory)) }
    }

    /// One past its last byte: stacks grow down, and pages are aligned enough.
    fn top(&self) -> *mut c_void {
        self.0.wrapping_byte_add(STACK_BYTES)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and nobody uses it any more.
        unsafe { libc::munmap(self.0, STACK_BYTES) };
    }
}

fn no_signals() -> libc::sigset_t {
    // SAFETY: all-zero is a valid sigset_t, the empty one.
    unsafe { core::mem::zeroed() }
}

/// Blocks every signal for the calling thread; those that were blocked before.
fn block_signals() -> libc::sigset_t {
    let (mut all, mut before) = (no_signals(), no_signals());
    // SAFETY: `all` is writable.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both are valid sets; cannot fail for this first argument.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    before
}

fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: a valid set; a null pointer for the old one is allowed.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const *before, core::ptr::null_mut());
    };
}

fn check(result: c_int) -> Result<(), Errno> {
    Errno::check(result.into()).map(drop)
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// `waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT)`: how a child ended, if it did. It keeps
/// its number, and its process group keeps that as its own, until [`reap`].
///
/// Errors: `ECHILD` for a process that is no child of this one, or was reaped.
///
/// # Real-time: setup only
pub fn status(pid: i32) -> Result<Option<Status>, Errno> {
    // SAFETY: all-zero is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable; never waits.
    let result = unsafe { libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut info, flags) };
    check(result)?;
    // SAFETY: waitid fills these, or leaves the zeros, which no process has as its number.
    if unsafe { info.si_pid() } == 0 {
        return Ok(None);
    }
    // SAFETY: as above.
    let status = unsafe { info.si_status() };
    let exited = info.si_code == libc::CLD_EXITED;
    Ok(Some(if exited { Status::Exited(status) } else { Status::Killed(status) }))
}

/// `waitpid(pid, NULL, WNOHANG)`: frees the number of a child that has ended.
///
/// # Real-time: setup only
pub fn reap(pid: i32) -> Result<(), Errno> {
    // SAFETY: a null status is allowed; never waits.
    check(unsafe { libc::waitpid(pid, core::ptr::null_mut(), libc::WNOHANG) })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::string::String;
    use std::vec::Vec;

    use super::*;
    use crate::process::{EndSignal, end};

    /// Runs a shell's words with this limit; what it printed is in the file.
    fn shell(script: &str, output: &std::fs::File, realtime_us: u64) -> i32 {
        let words = [c"sh", c"-c", &CString::new(script).expect("no zero")].map(CString::from);
        let arguments: Vec<Text<'_>> =
            words.iter().map(|word| Text::of(word)).chain([Text::END]).collect();
        let input = std::fs::File::open("/dev/null").expect("there");
        start(&Program {
            path: c"/bin/sh",
            arguments: &arguments,
            environment: &[Text::of(c"A=b"), Text::of(c"PATH=/bin:/usr/bin"), Text::END],
            input: input.as_raw_fd(),
            output: output.as_raw_fd(),
            inherited: &[],
            realtime_us,
            cgroup: None,
            confinement: Confinement::default(),
        })
        .expect("a shell")
    }

    fn ended(pid: i32) -> Status {
        loop {
            if let Some(status) = status(pid).expect("ours") {
                return status;
            }
            std::thread::yield_now();
        }
    }

    fn file(name: &str) -> (std::path::PathBuf, std::fs::File) {
        let name = std::format!("punctual-child-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = std::fs::File::create(&path).expect("writable");
        (path, file)
    }

    #[test]
    fn a_program_finds_what_it_was_given_and_its_status_stays_until_it_is_reaped() {
        let (path, output) = file("given");
        let script = "echo $A $$; grep SigBlk /proc/self/status; grep timeout /proc/self/limits; \
                      cut -d' ' -f5 /proc/$$/stat; read nothing; exit 7";
        let pid = shell(script, &output, 1_234_000);
        assert_eq!(ended(pid), Status::Exited(7));
        assert_eq!(status(pid), Ok(Some(Status::Exited(7))), "it can be seen again");
        reap(pid).expect("ours");
        assert_eq!(status(pid), Err(Errno(libc::ECHILD)));
        let said = std::fs::read_to_string(&path).expect("written");
        std::fs::remove_file(&path).expect("made here");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], std::format!("b {pid}"));
        assert_eq!(lines[1], "SigBlk:\t0000000000000000");
        let limit: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(limit[3..], ["1234000", "1234000", "us"], "{said}");
        assert_eq!(lines[3], String::from(lines[0].trim_start_matches("b ")), "its own group");
    }

    #[test]
    fn a_signal_is_told_from_a_status() {
        let (path, output) = file("signal");
        std::fs::remove_file(&path).expect("made here");
        let pid = shell("exec sleep 60", &output, u64::MAX);
        assert_eq!(status(pid), Ok(None));
        end(pid, EndSignal::Terminate).expect("it lives");
        assert_eq!(ended(pid), Status::Killed(libc::SIGTERM));
        reap(pid).expect("ours");
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let (path, output) = file("thread");
        let started = path.clone();
        let thread = std::thread::spawn(move || {
            let pid = shell("echo started; exec sleep 60", &output, u64::MAX);
            // An emulator of user space copies where the kernel shares, so that `start` returns
            // before the child has asked for its end.
            while std::fs::metadata(&started).expect("made here").len() == 0 {
                std::thread::yield_now();
            }
            pid
        });
        let pid = thread.join().expect("no panic");
        std::fs::remove_file(&path).expect("made here");
        assert_eq!(ended(pid), Status::Killed(libc::SIGKILL));
        reap(pid).expect("ours");
    }

    #[test]
    fn what_cannot_be_run_is_an_error_and_leaves_no_process() {
        let program = Program {
            path: c"/nowhere/at/all",
            arguments: &[Text::of(c"x"), Text::END],
            environment: &[Text::END],
            input: 2,
            output: 2,
            inherited: &[],
            realtime_us: 1,
            cgroup: None,
            confinement: Confinement::default(),
        };
        // An emulator of user space copies where the kernel shares, so that this is an exit there.
        match start(&program) {
            Err(why) => assert_eq!(why, Errno(libc::ENOENT)),
            Ok(pid) => {
                assert_eq!(ended(pid), Status::Exited(127));
                reap(pid).expect("ours");
            }
        }
        let nowhere = Confinement { directory: Some(c"/nowhere/at/all"), ..Confinement::default() };
        let lost = Program { path: c"/bin/sh", confinement: nowhere, ..program };
        match start(&lost) {
            Err(why) => assert_eq!(why, Errno(libc::ENOENT)),
            Ok(pid) => {
                assert_eq!(ended(pid), Status::Exited(127));
                reap(pid).expect("ours");
            }
        }
        let endless = Program { environment: &[], ..program };
        assert_eq!(start(&endless), Err(Errno::INVAL));
    }
}
