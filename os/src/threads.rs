//! The threads of a process, and what the kernel accounts to each, without an allocation.
//!
//! For a watchdog that runs above everything else: it must not wait for a lock that an ordinary
//! thread of its own process holds, as an allocator has them. Reads /proc alone; changes nothing.

use core::ffi::{CStr, c_int};
use core::fmt::{self, Write};

use crate::Errno;
use crate::descriptor::Descriptor;

/// Bytes of a directory that are read at once: some 170 threads.
const DIRECTORY_BYTES: usize = 4_096;
/// Longer than /proc/PID/task/TID/status: 1.5 kB on a machine of a few CPUs, of which the list of
/// memory nodes may take another 1 kB.
const FILE_BYTES: usize = 8_192;
/// USER_HZ of <asm/param.h>: the unit of times in /proc, 100 on x86-64 and AArch64.
const TICK_NS: u64 = 1_000_000_000 / 100;

/// The CPU time and the waits that the kernel accounts to a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// CPU time that it used, in steps of 10 ms.
    pub cpu_ns: u64,
    /// Times that it gave up the CPU because it waited for something.
    pub waits: u64,
}

/// The state of a thread at a moment, as the kernel's scheduler has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It has a CPU, or wants one.
    Runnable,
    /// It waits for something else: time, a lock, data.
    Waiting,
    /// A signal or a tracer stopped it, or it is about to end.
    Stopped,
}

/// `getdents64("/proc/PID/task")`: calls `each` with the number of each thread of a process. Where
/// one ends meanwhile, the kernel may leave another one out, which the next call finds.
///
/// Errors: `ENOENT` when there is no such process, `EMFILE`.
///
/// # Real-time: reader side
pub fn of(pid: i32, mut each: impl FnMut(i32)) -> Result<(), Errno> {
    let mut path = Text::<64>::new();
    // A number fits.
    let _fits = write!(path, "/proc/{pid}/task\0");
    let directory = open(&path, libc::O_DIRECTORY)?;
    let mut bytes = Aligned([0; DIRECTORY_BYTES]);
    loop {
        // SAFETY: the buffer is writable for as many bytes.
        let read = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.number(),
                bytes.0.as_mut_ptr(),
                DIRECTORY_BYTES,
            )
        };
        let read = usize::try_from(Errno::check(read)?).unwrap_or(0);
        let Some(mut rest) = bytes.0.get(..read).filter(|read| !read.is_empty()) else {
            return Ok(());
        };
        while let Some((name, after)) = entry(rest) {
            // "." and ".." are no numbers.
            if let Some(thread) = number(name) {
                each(thread);
            }
            rest = after;
        }
    }
}

/// `read("/proc/PID/task/TID/stat")`, `read("/proc/PID/task/TID/status")`: what is accounted to a
/// thread; `None` when it is gone.
///
/// # Real-time: reader side
pub fn account(pid: i32, thread: i32) -> Option<Account> {
    let mut file = [0; FILE_BYTES];
    let ticks = cpu_ticks(read(pid, thread, "stat", &mut file)?)?;
    let waits = voluntary(read(pid, thread, "status", &mut file)?)?;
    Some(Account { cpu_ns: ticks.saturating_mul(TICK_NS), waits })
}

/// `read("/proc/PID/task/TID/stat")`: what a thread does at present; `None` when it is gone.
///
/// # Real-time: reader side
pub fn state(pid: i32, thread: i32) -> Option<ThreadState> {
    let mut file = [0; FILE_BYTES];
    state_in(read(pid, thread, "stat", &mut file)?)
}

/// Entries begin on a multiple of 8.
#[repr(align(8))]
struct Aligned([u8; DIRECTORY_BYTES]);

/// The name of the first struct linux_dirent64 (getdents64(2)), and what follows it.
fn entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(16..18)?;
    let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
    let name = bytes.get(19..length)?;
    Some((CStr::from_bytes_until_nul(name).ok()?.to_bytes(), bytes.get(length..)?))
}

fn number(text: &[u8]) -> Option<i32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// The text after the name, from the third field (proc_pid_stat(5)) and all after it. The second
/// one is a name in brackets, which may hold anything.
fn fields(stat: &[u8]) -> Option<impl Iterator<Item = &str>> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = core::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    Some(rest.split_ascii_whitespace())
}

/// The third field.
fn state_in(stat: &[u8]) -> Option<ThreadState> {
    match fields(stat)?.next()? {
        "R" => Some(ThreadState::Runnable),
        "S" | "D" | "I" => Some(ThreadState::Waiting),
        _ => Some(ThreadState::Stopped),
    }
}

/// utime and stime, the 14th and 15th field.
fn cpu_ticks(stat: &[u8]) -> Option<u64> {
    let mut fields = fields(stat)?.skip(11);
    let (user, system) = (fields.next()?, fields.next()?);
    user.parse::<u64>().ok()?.checked_add(system.parse().ok()?)
}

/// The line `voluntary_ctxt_switches` (proc_pid_status(5)).
fn voluntary(status: &[u8]) -> Option<u64> {
    let value = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"voluntary_ctxt_switches:"))?;
    core::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn read<'b>(pid: i32, thread: i32, name: &str, into: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut path = Text::<64>::new();
    write!(path, "/proc/{pid}/task/{thread}/{name}\0").ok()?;
    let file = open(&path, 0).ok()?;
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: `rest` is writable for as many bytes.
        let read = unsafe { libc::read(file.number(), rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(Errno::check(read as libc::c_long).ok()?) {
            Ok(0) | Err(_) => break,
            Ok(read) => filled += read,
        }
    }
    into.get(..filled)
}

fn open<const N: usize>(path: &Text<N>, flags: c_int) -> Result<Descriptor, Errno> {
    let path = CStr::from_bytes_until_nul(&path.bytes).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path ends with a zero and outlives the call.
    let made = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | flags) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// A short text in memory of its own.
struct Text<const N: usize> {
    bytes: [u8; N],
    used: usize,
}

impl<const N: usize> Text<N> {
    const fn new() -> Self {
        Self { bytes: [0; N], used: 0 }
    }
}

impl<const N: usize> Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

/// Counters of the calling thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because it was preempted.
    pub involuntary_switches: u64,
}

/// `getrusage(RUSAGE_THREAD, &usage)`.
///
/// # Real-time: setup only
pub fn usage() -> Result<Usage, Errno> {
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    // SAFETY: `usage` is writable.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Errno::check(result.into())?;
    Ok(Usage {
        minor_faults: usage.ru_minflt.cast_unsigned(),
        major_faults: usage.ru_majflt.cast_unsigned(),
        voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
        involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::vec::Vec;

    use crate::process::tid;

    fn threads(pid: i32) -> Vec<i32> {
        let mut threads = Vec::new();
        of(pid, |thread| threads.push(thread)).expect("it lives");
        threads
    }

    #[test]
    fn all_threads_are_listed_also_of_a_long_list() {
        let me = std::process::id().cast_signed();
        let (done, wait) = (std::sync::Barrier::new(301), std::sync::Barrier::new(301));
        std::thread::scope(|scope| {
            let more: Vec<_> = (0..300)
                .map(|_| {
                    let (to_us, its) = std::sync::mpsc::channel();
                    let (done, wait) = (&done, &wait);
                    scope.spawn(move || {
                        to_us.send(tid()).expect("it waits");
                        wait.wait();
                        done.wait();
                    });
                    its.recv().expect("it says so")
                })
                .collect();
            wait.wait();
            let listed = threads(me);
            assert!(more.iter().chain([&tid()]).all(|thread| listed.contains(thread)));
            done.wait();
        });
        assert_eq!(of(i32::MAX, |_| ()), Err(Errno(libc::ENOENT)));
    }

    #[test]
    fn cpu_time_and_waits_are_told_apart() {
        let (spins, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let me = std::process::id().cast_signed();
        std::thread::scope(|scope| {
            let (to_us, its) = std::sync::mpsc::channel();
            let (spins, stop) = (&spins, &stop);
            scope.spawn(move || {
                to_us.send(tid()).expect("it waits");
                while !stop.load(Ordering::Relaxed) {
                    spins.store(true, Ordering::Relaxed);
                    std::hint::spin_loop();
                }
            });
            let busy = its.recv().expect("it says so");
            // Sending may wait, until long after this thread has received.
            while !spins.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let first = account(me, busy).expect("it lives");
            let (mine, mut last) = (account(me, tid()).expect("its own"), first);
            let mut sleeps = 0;
            while last.cpu_ns < first.cpu_ns + 2 * TICK_NS || sleeps < 20 {
                sleeps += 1;
                // So that this thread waits at least once.
                let at_ns = crate::clock::now_ns(crate::clock::ClockId::Monotonic) + 1_000_000;
                let _interrupted = crate::clock::sleep_until_ns(at_ns);
                last = account(me, busy).expect("it lives");
            }
            stop.store(true, Ordering::Relaxed);
            assert!(account(me, tid()).expect("its own").waits - mine.waits >= sleeps);
            // A page fault of a thread that never waits may: another one holds the map of memory.
            assert!(last.waits - first.waits < sleeps, "{} in {sleeps}", last.waits - first.waits);
        });
        assert_eq!(account(me, i32::MAX), None);
    }

    #[test]
    fn a_name_may_hold_anything_and_damage_is_no_number() {
        let stat = b"7 (a) b (c)) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14";
        assert_eq!(cpu_ticks(stat), Some(11 + 12));
        assert_eq!(state_in(stat), Some(ThreadState::Runnable));
        assert_eq!(state_in(b"7 (a) S) D 1"), Some(ThreadState::Waiting));
        assert_eq!(state_in(b"7 (R) T 1"), Some(ThreadState::Stopped));
        assert_eq!([state_in(b"7 (a"), state_in(b"7 (a)")], [None, None]);
        assert_eq!(cpu_ticks(b"7 (a"), None);
        assert_eq!(cpu_ticks(b"7 (a) R 1 2 3"), None);
        assert_eq!(voluntary(b"a:\t1\nvoluntary_ctxt_switches:\t42\nx"), Some(42));
        assert_eq!(voluntary(b"nonvoluntary_ctxt_switches:\t42\n"), None);
        assert!(entry(&[0; 18]).is_none() && entry(&[0; 30]).is_none());
    }

    #[test]
    fn touching_new_memory_counts_faults() {
        let before = usage().expect("own usage");
        let pages = std::vec![1u8; 1 << 20];
        core::hint::black_box(&pages);
        assert!(usage().expect("own usage").minor_faults > before.minor_faults);
    }
}
