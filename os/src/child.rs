//! A program started as a child process that cannot outlive the thread that starts it, and how that
//! process ended.
//!
//! For supervisors of real-time tasks. As posix_spawn(3) does it: nothing of the caller's memory is
//! copied, so that the other threads of a process with locked memory take no page faults because a
//! program is started. What posix_spawn cannot do is done here before the program runs: the tie to
//! the parent, the limit of real-time CPU time, the cgroup. Never looks for a program, never waits.

use core::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use core::marker::PhantomData;

use crate::Errno;

/// A text of a program's arguments or environment, or the end of them.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// The end of a list of texts.
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
    /// The time that any of its threads may run under a real-time policy without blocking, µs; a
    /// lower limit of the caller's stays (RLIMIT_RTTIME, getrlimit(2)).
    pub realtime_us: u64,
    /// The file `cgroup.procs`, open for writing, of the cgroup that it is to be in. Where the
    /// kernel refuses that, the program runs in the caller's.
    pub cgroup: Option<c_int>,
    /// User, capabilities, directory.
    pub confinement: Confinement<'a>,
}

/// Bytes of stack for the few calls between the birth of a process and its program.
const STACK_BYTES: usize = 64 * 1024;

/// The arguments of the new process, in the memory of its parent, which waits meanwhile.
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
            begin,
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
    let (mut every_signal, mut before) = (no_signals(), no_signals());
    // SAFETY: `all` is writable.
    unsafe { libc::sigfillset(&raw mut every_signal) };
    // SAFETY: both are valid sets; cannot fail for this first argument.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every_signal, &raw mut before) };
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

/// The end of a child: by itself, or by a signal.
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

/// The first code of the new process. Returns only by its end.
///
/// From here until it becomes its program, the process runs in the memory of its parent, whose
/// thread waits meanwhile: nothing but system calls, no panic, no allocation, no lock. They are the
/// kernel's calls where the C library's would change all threads of the parent.
extern "C" fn begin(birth: *mut c_void) -> c_int {
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
        return Err(Errno::SRCH);
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
    // The call itself: musl's functions of these names refuse whatever the kernel would do.
    // SAFETY: takes a number only.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let policy = policy & !c_long::from(libc::SCHED_RESET_ON_FORK);
    let real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
    if !real_time.map(c_long::from).contains(&policy) {
        return Ok(());
    }
    // SAFETY: all-zero is a valid sched_param: priority 0.
    let priority: libc::sched_param = unsafe { core::mem::zeroed() };
    // SAFETY: `priority` outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const priority)
    };
    Errno::check(result).map(drop)
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

/// The rights that a new process gives up before its program runs: its user, groups, capabilities,
/// and more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Confinement<'a> {
    /// Its user.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Its supplementary groups.
    pub groups: Option<&'a [u32]>,
    /// Its capabilities, a bit each, which no program that it runs can exceed; `None`: those of the
    /// caller, or none where `uid` is another user.
    pub capabilities: Option<u64>,
    /// Its working directory, entered as that user.
    pub directory: Option<&'a CStr>,
    /// Its file mode creation mask.
    pub umask: Option<u32>,
}

/// The kernel's `struct __user_cap_header_struct`, version 3.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// Its `struct __user_cap_data_struct`: 32 capabilities.
#[repr(C)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// _LINUX_CAPABILITY_VERSION_3
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Descriptors that are looked at one by one where the kernel cannot take them together.
const DESCRIPTORS_MAX: c_int = 1_024;

/// Every descriptor from 3 on ends with the exec.
fn keep_descriptors() {
    // SAFETY: takes numbers only. Linux 5.11; before that it gives EINVAL or ENOSYS.
    let closed = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if closed != 0 {
        for descriptor in 3..DESCRIPTORS_MAX {
            // SAFETY: takes numbers only; one that is not open gives EBADF.
            unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Becomes what was requested. The tie to the parent is made after it: the kernel drops that when
/// a process changes its user.
fn confine(confinement: &Confinement<'_>) -> Result<(), Errno> {
    let Confinement { uid, gid, groups, capabilities, directory, umask } = *confinement;
    if let Some(umask) = umask {
        // SAFETY: takes a number only, cannot fail.
        unsafe { libc::umask(umask) };
    }
    if let Some(kept) = capabilities {
        drop_bounds(kept)?;
    }
    if let Some(groups) = groups {
        // SAFETY: the pointer is that of a slice of this length.
        call(unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) })?;
    }
    if let Some(gid) = gid {
        // SAFETY: takes numbers only.
        call(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    }
    if let Some(uid) = uid {
        if capabilities.is_some_and(|kept| kept != 0) {
            prctl(libc::PR_SET_KEEPCAPS, 1, 0)?;
        }
        // SAFETY: takes numbers only.
        call(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })?;
    }
    if let Some(kept) = capabilities {
        set_capabilities(kept)?;
    }
    if let Some(directory) = directory {
        // SAFETY: the path ends with a zero and outlives the call.
        check(unsafe { libc::chdir(directory.as_ptr()) })?;
    }
    Ok(())
}

/// No program that it runs can get others than these.
fn drop_bounds(kept: u64) -> Result<(), Errno> {
    for number in (0..64).filter(|number| kept & 1 << number == 0) {
        match prctl(libc::PR_CAPBSET_DROP, number, 0) {
            Ok(()) => {}
            // The kernel has fewer.
            Err(Errno::INVAL) if number > 0 => break,
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// These, and for the program too (ambient) where the user is not root.
fn set_capabilities(kept: u64) -> Result<(), Errno> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let data = [kept as u32, (kept >> 32) as u32].map(|bits| CapabilityData {
        effective: bits,
        permitted: bits,
        inheritable: bits,
    });
    // SAFETY: the kernel reads a header and, in version 3, two of the other.
    call(unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) })?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0)?;
    for number in (0..CAPABILITIES.len() as c_ulong).filter(|number| kept & 1 << number != 0) {
        prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as c_ulong, number)?;
    }
    Ok(())
}

fn prctl(operation: c_int, first: c_ulong, second: c_ulong) -> Result<(), Errno> {
    let zero: c_ulong = 0;
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(operation, first, second, zero, zero) })
}

fn call(result: c_long) -> Result<(), Errno> {
    Errno::check(result).map(drop)
}

/// All that Linux 6.12 knows, by number.
pub const CAPABILITIES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// The number of the capability of this name, in any case; `None` where there is none.
///
/// # Real-time: setup only
pub fn capability(name: &str) -> Option<u32> {
    let at = CAPABILITIES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    u32::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::string::String;
    use std::vec::Vec;

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
        let written = std::fs::read_to_string(&path).expect("written");
        std::fs::remove_file(&path).expect("made here");
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines[0], std::format!("b {pid}"));
        assert_eq!(lines[1], "SigBlk:\t0000000000000000");
        let limit: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(limit[3..], ["1234000", "1234000", "us"], "{written}");
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

    #[test]
    fn names_have_the_kernels_numbers() {
        // include/uapi/linux/capability.h
        for (name, is) in
            [("CAP_CHOWN", 0), ("cap_net_raw", 13), ("CAP_SYS_NICE", 23), ("CAP_BPF", 39)]
        {
            assert_eq!(capability(name), Some(is), "{name}");
        }
        assert_eq!(capability("CAP_"), None);
    }
}
