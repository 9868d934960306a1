//! Signals: those that request an end, and one that interrupts a sleep.
//!
//! For the command line and for sessions. The handlers store numbers and read a clock; the one for
//! an end also lets the signal end the process where a second request does that.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::Errno;
use crate::clock::{ClockId, now_ns};

static STOP: AtomicBool = AtomicBool::new(false);
/// The signal of the first request; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);
static HURRY: AtomicBool = AtomicBool::new(false);
static REQUESTS: Requests = Requests::new();
/// The number of [`Hold`]s that live.
static HOLDS: AtomicU32 = AtomicU32::new(0);

/// The most loops that [`also_stop`] can stop at a time.
pub const MOST_STOPS: usize = 64;
/// The loops that the handler stops beside [`stop_flag`]; null where there is none.
static STOPS: [AtomicPtr<StopWords>; MOST_STOPS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_STOPS];

/// Signals that come within this time are one request: a terminal that closes sends two, one from
/// the shell and one from the kernel, and timeout(1) sends one to the process and one to its group.
const SAME_NS: u64 = 500_000_000;

/// Requests for an end, as counted by a signal handler.
struct Requests {
    /// When the last one came, ns on CLOCK_MONOTONIC; 0 before the first.
    last_ns: AtomicU64,
    count: AtomicU32,
}

impl Requests {
    const fn new() -> Self {
        Self { last_ns: AtomicU64::new(0), count: AtomicU32::new(0) }
    }

    /// A signal came: which request it is, from 1 on; `None` where it belongs to the last one.
    fn note(&self, now_ns: u64) -> Option<u32> {
        let now_ns = now_ns.max(1);
        let last_ns = self.last_ns.load(Ordering::Relaxed);
        if last_ns != 0 && now_ns.saturating_sub(last_ns) < SAME_NS {
            return None;
        }
        // Another thread may handle another signal at this moment: one of them is counted.
        self.last_ns
            .compare_exchange(last_ns, now_ns, Ordering::Relaxed, Ordering::Relaxed)
            .ok()
            .map(|_| self.count.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The flag that SIGINT, SIGTERM and SIGHUP set after [`catch_stop`].
///
/// # Real-time: in loop
pub fn stop_flag() -> &'static AtomicBool {
    &STOP
}

/// Where a loop reads that it is to stop, and since when: both live as long as the process, for a
/// handler may run at any time.
#[derive(Debug)]
pub struct StopWords {
    /// Set at the request.
    pub set: &'static AtomicBool,
    /// The earliest request, ns on CLOCK_MONOTONIC; the largest number before there is one.
    pub at_ns: &'static AtomicU64,
}

impl StopWords {
    fn request(&self, now_ns: u64) {
        self.at_ns.fetch_min(now_ns, Ordering::Relaxed);
        self.set.store(true, Ordering::Release);
    }
}

/// Has the signals of [`catch_stop`] set these words too; at once where one has come before. The
/// place of one whose flag is set, since its loop has ended, is given to the next.
///
/// Errors: `EBUSY` where [`MOST_STOPS`] are there whose flags are not set.
///
/// # Real-time: setup only
pub fn also_stop(words: &'static StopWords) -> Result<(), Errno> {
    let own = core::ptr::from_ref(words).cast_mut();
    let taken = STOPS.iter().any(|place| {
        let before = place.load(Ordering::SeqCst);
        // SAFETY: null, or from a `&'static` of an earlier call.
        let is_free = unsafe { before.as_ref() }.is_none_or(|old| old.set.load(Ordering::Relaxed));
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        is_free && place.compare_exchange(before, own, success, failure).is_ok()
    });
    // A handler that did not see the place has set the flag before this looks at it.
    if STOP.load(Ordering::SeqCst) {
        words.request(now_ns(ClockId::Monotonic));
    }
    if taken { Ok(()) } else { Err(Errno::BUSY) }
}

/// The number of the signal that requested the end first; `None` where none did.
///
/// # Real-time: in loop
pub fn stop_signal() -> Option<i32> {
    Some(FIRST.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// The flag that a second request sets: one that comes half a second after the first, or later.
///
/// # Real-time: in loop
pub fn hurry_flag() -> &'static AtomicBool {
    &HURRY
}

/// While one of these lives no request ends the process: for work that must be done whatever comes.
/// [`stop_flag`] and [`hurry_flag`] are set all the same.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    /// From now on.
    ///
    /// # Real-time: setup only
    pub fn begin() -> Self {
        HOLDS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.fetch_sub(1, Ordering::Relaxed);
    }
}

extern "C" fn on_stop(signal: libc::c_int) {
    // Another signal is the first only where this one was not.
    let _first = FIRST.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    STOP.store(true, Ordering::SeqCst);
    let now_ns = now_ns(ClockId::Monotonic);
    for place in &STOPS {
        // SAFETY: null, or from a `&'static` that `also_stop` was given.
        if let Some(words) = unsafe { place.load(Ordering::SeqCst).as_ref() } {
            words.request(now_ns);
        }
    }
    let again = REQUESTS.note(now_ns).is_some_and(|request| request > 1);
    if again {
        HURRY.store(true, Ordering::Relaxed);
    }
    if again && HOLDS.load(Ordering::Relaxed) == 0 {
        end_by(signal);
    }
}

/// `signal(signal, SIG_DFL)`, `raise(signal)`: ends the process by this signal, for its parent to
/// see; in a handler, as soon as that returns.
fn end_by(signal: libc::c_int) {
    // SAFETY: SIG_DFL is a valid disposition and runs no code; async-signal-safe.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: takes a number only; async-signal-safe.
    unsafe { libc::raise(signal) };
}

extern "C" fn on_interrupt(_: libc::c_int) {}

/// `sigaction(SIGINT | SIGTERM | SIGHUP)`: the first request sets [`stop_flag`], a second one, half
/// a second later or more, sets [`hurry_flag`] and ends the process, unless there is a [`Hold`]. A
/// SIGHUP that is ignored stays ignored, as nohup(1) has it.
///
/// # Real-time: setup only
pub fn catch_stop() -> Result<(), Errno> {
    handle(libc::SIGINT, on_stop)?;
    handle(libc::SIGTERM, on_stop)?;
    if is_ignored(libc::SIGHUP)? {
        return Ok(());
    }
    handle(libc::SIGHUP, on_stop)
}

/// As [`catch_stop`], but each of the three that is ignored stays ignored: for a process that
/// passes them on to a command, which starts with what it would have without. A shell's background
/// job has SIGINT ignored.
///
/// # Real-time: setup only
pub fn catch_stop_unless_ignored() -> Result<(), Errno> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if !is_ignored(signal)? {
            handle(signal, on_stop)?;
        }
    }
    Ok(())
}

/// True where a signal is ignored.
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
    handle(libc::SIGURG, on_interrupt)
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

/// `sigaction(SIGXFSZ)`: a file beyond RLIMIT_FSIZE gives EFBIG instead of an end. Caught, not
/// ignored: programs that are started begin with the default again. One that was ignored before
/// stays ignored, as for any program.
///
/// # Real-time: setup only
pub fn catch_file_size() -> Result<(), Errno> {
    if is_ignored(libc::SIGXFSZ)? { Ok(()) } else { handle(libc::SIGXFSZ, on_interrupt) }
}

/// `pthread_sigmask(SIG_BLOCK, all signals)`: the calling thread handles none from now on, so that
/// those of the process reach its other threads.
///
/// # Real-time: setup only
pub fn leave_to_others() {
    // SAFETY: all-zero is a valid signal set.
    let mut every_signal: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: `all` is writable.
    unsafe { libc::sigfillset(&raw mut every_signal) };
    // SAFETY: `all` is initialised and outlives the call; the old mask is not wanted.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const every_signal, core::ptr::null_mut())
    };
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> Result<(), Errno> {
    // SAFETY: all-zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: `action` is initialised and outlives the call; the handler is async-signal-safe.
    let result = unsafe { libc::sigaction(signal, &raw const action, core::ptr::null_mut()) };
    Errno::check(result.into()).map(drop)
}

/// Signals that are queued for this process, blocked, and thrown away all at once: the kernel does
/// that in one piece, with interrupts off on that CPU, some 50 ns each.
///
/// Of one number that nothing else here uses; whoever makes it must be the only one at a time.
#[derive(Debug)]
pub struct Backlog(());

/// The signal of [`Backlog`]: the fifth of those for programs.
fn backlog_signal() -> libc::c_int {
    libc::SIGRTMIN() + 4
}

impl Backlog {
    /// `pthread_sigmask(SIG_BLOCK)` and `signal(SIG_DFL)`, for the calling thread, to which the
    /// signals will be sent.
    ///
    /// # Real-time: setup only
    pub fn begin() -> Result<Self, Errno> {
        // SAFETY: all-zero is a valid signal set.
        let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: changes one live set; the signal exists.
        unsafe { libc::sigaddset(&raw mut set, backlog_signal()) };
        // SAFETY: reads one live set; the old one is not wanted.
        let blocked = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut())
        };
        if blocked != 0 {
            return Err(Errno(blocked));
        }
        dispose(backlog_signal(), libc::SIG_DFL).map(|()| Self(()))
    }

    /// `tgkill(getpid(), gettid(), signal)`, `count` times; how many the kernel took. In the thread
    /// that made it. There is one at most where RLIMIT_SIGPENDING is reached.
    ///
    /// # Real-time: setup only
    pub fn queue(&self, count: u32) -> u32 {
        // SAFETY: takes no argument, cannot fail.
        let pid = unsafe { libc::getpid() };
        let tid = crate::process::tid();
        let mut taken = 0;
        for _ in 0..count {
            // SAFETY: takes numbers only; blocked, so that it ends nothing.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, backlog_signal()) };
            taken += u32::from(Errno::check(sent).is_ok());
        }
        taken
    }

    /// `signal(SIG_IGN)`, which throws away what is queued, and `signal(SIG_DFL)`.
    ///
    /// # Real-time: in loop
    pub fn discard(&self) -> Result<(), Errno> {
        dispose(backlog_signal(), libc::SIG_IGN)?;
        dispose(backlog_signal(), libc::SIG_DFL)
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        // Nothing of it may be left once the signal is no longer blocked.
        let _nothing_to_do = self.discard();
    }
}

/// `signal(signal, disposition)`: one of those that run no code.
fn dispose(signal: libc::c_int, disposition: libc::sighandler_t) -> Result<(), Errno> {
    // SAFETY: SIG_IGN and SIG_DFL are valid dispositions and run no code of this program.
    let before = unsafe { libc::signal(signal, disposition) };
    if before == libc::SIG_ERR { Err(Errno::last()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_half_a_second_are_one_request() {
        let requests = Requests::new();
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(requests.note(ms(1_000)), Some(1));
        assert_eq!([1_000, 1_001, 1_300, 1_499].map(|at| requests.note(ms(at))), [None; 4]);
        assert_eq!(requests.note(ms(1_500)), Some(2), "counted from the request before");
        assert_eq!(requests.note(ms(1_999)), None);
        assert_eq!(requests.note(ms(9_000)), Some(3));
        let at_zero = Requests::new();
        assert_eq!((at_zero.note(0), at_zero.note(1)), (Some(1), None), "0 is no instant before");
    }

    #[test]
    fn of_signals_that_threads_handle_at_once_one_is_a_request() {
        for _ in 0..200 {
            let (requests, new) = (Requests::new(), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let counted = requests.note(7).is_some();
                        new.fetch_add(u32::from(counted), Ordering::Relaxed);
                    });
                }
            });
            assert_eq!(new.into_inner(), 1);
        }
    }

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
                .or_else(|why| if why == Errno::SRCH { Ok(()) } else { Err(why) })
                .expect("sent");
            std::thread::yield_now();
        }
        assert_eq!(sleeper.join().expect("no panic"), Err(Errno(libc::EINTR)));
    }

    #[test]
    fn a_backlog_is_queued_and_thrown_away() {
        let pending = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
            let line = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).expect("there");
            u64::from_str_radix(line.trim(), 16).expect("a mask")
        };
        std::thread::spawn(move || {
            let backlog = Backlog::begin().expect("allowed to all");
            assert_eq!(backlog.queue(100), 100);
            assert_ne!(pending(), 0);
            backlog.discard().expect("allowed to all");
            assert_eq!(pending(), 0);
            backlog.queue(1);
            drop(backlog);
            assert_eq!(pending(), 0, "it leaves nothing");
        })
        .join()
        .expect("no panic");
    }
}
