//! Descriptors that something makes readable: counters, timers, lines between two ends; and waiting
//! for any of several, until an instant.
//!
//! For experiments that wake a thread by each of them, and for supervisors. Never opens anything by
//! a name that the caller gives.

use core::ffi::c_int;

use crate::Errno;
use crate::clock::{ClockId, now_ns};
use crate::descriptor::Descriptor;

/// `eventfd(0, EFD_CLOEXEC)`: a counter; [`add`] adds to it, [`take`] waits until it is not 0.
///
/// # Real-time: setup only
pub fn counter() -> Result<Descriptor, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// `timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)`: a timer that is not armed.
///
/// # Real-time: setup only
pub fn timer() -> Result<Descriptor, Errno> {
    // SAFETY: takes numbers only.
    let made = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// `timerfd_settime(timer, TFD_TIMER_ABSTIME, {period, first}, NULL)`: expires at `first_ns` on
/// CLOCK_MONOTONIC and then every `period_ns`, once only where that is 0. What was not taken is
/// forgotten.
///
/// # Real-time: in loop
pub fn arm(timer: &Descriptor, first_ns: u64, period_ns: u64) -> Result<(), Errno> {
    let at = libc::itimerspec { it_interval: timespec(period_ns), it_value: timespec(first_ns) };
    // SAFETY: `at` outlives the call; the old value is not wanted.
    let result = unsafe {
        libc::timerfd_settime(
            timer.number(),
            libc::TFD_TIMER_ABSTIME,
            &raw const at,
            core::ptr::null_mut(),
        )
    };
    Errno::check(result.into()).map(drop)
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// `read(descriptor, &count, 8)`: of a counter or a timer, waits until there is something and takes
/// it: what was added, or how often it expired.
///
/// Errors: `EINTR` on a signal.
///
/// # Real-time: in loop, waits
pub fn take(descriptor: &Descriptor) -> Result<u64, Errno> {
    let mut count = [0; 8];
    read(descriptor, &mut count)?;
    Ok(u64::from_ne_bytes(count))
}

/// `write(counter, &count, 8)`: adds to a counter.
///
/// # Real-time: in loop
pub fn add(counter: &Descriptor, count: u64) -> Result<(), Errno> {
    write(counter, &count.to_ne_bytes()).map(drop)
}

/// `read(descriptor, bytes)`: waits until there are some; 0 at the end.
///
/// Errors: `EINTR` on a signal, `EIO` where the other end of a line is closed.
///
/// # Real-time: in loop, waits
pub fn read(descriptor: &Descriptor, bytes: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are of one live slice.
    let result = unsafe { libc::read(descriptor.number(), bytes.as_mut_ptr().cast(), bytes.len()) };
    Errno::check(result as libc::c_long).map(|count| count as usize)
}

/// `write(descriptor, bytes)`: how many were taken.
///
/// # Real-time: in loop
pub fn write(descriptor: &Descriptor, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: pointer and length are of one live slice.
    let result = unsafe { libc::write(descriptor.number(), bytes.as_ptr().cast(), bytes.len()) };
    Errno::check(result as libc::c_long).map(|count| count as usize)
}

/// `posix_openpt`, `unlockpt`, `ioctl(TIOCGPTPEER)`, `tcsetattr(cfmakeraw)`: a pseudo-terminal that
/// passes each byte as it is. The first end is the controlling one.
///
/// Errors: `ENOSPC` where the machine has no more of them.
///
/// # Real-time: setup only
pub fn line() -> Result<(Descriptor, Descriptor), Errno> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: takes numbers only.
    let made = unsafe { libc::posix_openpt(flags) };
    let master = Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))?;
    // SAFETY: takes a number only.
    let unlocked = unsafe { libc::unlockpt(master.number()) };
    Errno::check(unlocked.into())?;
    // SAFETY: TIOCGPTPEER takes flags and gives a new descriptor.
    let made = unsafe { libc::ioctl(master.number(), libc::TIOCGPTPEER, flags) };
    let slave = Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))?;
    // SAFETY: a termios of zeroes is a valid value; the call writes one.
    let mut settings: libc::termios = unsafe { core::mem::zeroed() };
    // SAFETY: writes one termios, which outlives the call.
    let result = unsafe { libc::tcgetattr(slave.number(), &raw mut settings) };
    Errno::check(result.into())?;
    // SAFETY: changes one live termios.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: reads one live termios.
    let result = unsafe { libc::tcsetattr(slave.number(), libc::TCSANOW, &raw const settings) };
    Errno::check(result.into())?;
    Ok((master, slave))
}

/// A POSIX timer that sends a signal to the thread that made it, which blocks and waits for it.
#[derive(Debug)]
pub struct SignalTimer {
    timer: libc::timer_t,
}

/// The signal of [`SignalTimer`]: the fourth of those for programs.
fn timer_signal() -> c_int {
    libc::SIGRTMIN() + 3
}

fn timer_signals() -> libc::sigset_t {
    // SAFETY: a set of zeroes is a valid value, and is emptied at once.
    let mut set: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: changes one live set.
    unsafe { libc::sigemptyset(&raw mut set) };
    // SAFETY: changes one live set; the signal exists.
    unsafe { libc::sigaddset(&raw mut set, timer_signal()) };
    set
}

impl SignalTimer {
    /// `pthread_sigmask(SIG_BLOCK)`, `timer_create(CLOCK_MONOTONIC, SIGEV_THREAD_ID)`: a timer of
    /// the calling thread, not armed. The signal stays blocked in that thread.
    ///
    /// # Real-time: setup only
    pub fn new() -> Result<Self, Errno> {
        let set = timer_signals();
        // SAFETY: reads one live set; the old one is not wanted.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, core::ptr::null_mut()) };
        // SAFETY: a sigevent of zeroes is a valid value.
        let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = timer_signal();
        event.sigev_notify_thread_id = crate::process::tid();
        let mut timer: libc::timer_t = core::ptr::null_mut();
        // SAFETY: reads one live event and writes one live timer.
        let result =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        Errno::check(result.into()).map(|_| Self { timer })
    }

    /// `timer_settime(timer, TIMER_ABSTIME, {period, first}, NULL)`: as [`arm`]; 0 disarms it.
    ///
    /// # Real-time: in loop
    pub fn arm(&self, first_ns: u64, period_ns: u64) -> Result<(), Errno> {
        let at =
            libc::itimerspec { it_interval: timespec(period_ns), it_value: timespec(first_ns) };
        // SAFETY: the timer is this one's own; `at` outlives the call.
        let result = unsafe {
            libc::timer_settime(
                self.timer,
                libc::TIMER_ABSTIME,
                &raw const at,
                core::ptr::null_mut(),
            )
        };
        Errno::check(result.into()).map(drop)
    }

    /// `sigtimedwait(limit)`, `timer_getoverrun`: waits for the signal; how often the timer expired
    /// since the last one. In the thread that made it.
    ///
    /// Errors: `EAGAIN` where it did not within `limit_ns`, `EINTR` on another signal.
    ///
    /// # Real-time: in loop, waits
    pub fn take(&self, limit_ns: u64) -> Result<u64, Errno> {
        let (set, limit) = (timer_signals(), timespec(limit_ns));
        // SAFETY: reads a live set and a live limit; what the signal brings is not wanted.
        let result =
            unsafe { libc::sigtimedwait(&raw const set, core::ptr::null_mut(), &raw const limit) };
        Errno::check(result.into())?;
        // SAFETY: the timer is this one's own.
        let overrun = unsafe { libc::timer_getoverrun(self.timer) };
        Ok(1 + u64::try_from(overrun).unwrap_or(0))
    }
}

impl Drop for SignalTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own, and deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// A descriptor, by its number, that is waited for until it has something to read or has ended.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Interest(libc::pollfd);

impl Interest {
    /// In this descriptor. A number that is none is there at once.
    ///
    /// # Real-time: setup only
    pub const fn new(descriptor: c_int) -> Self {
        Self(libc::pollfd { fd: descriptor, events: libc::POLLIN | libc::POLLRDHUP, revents: 0 })
    }

    /// True where the last wait found something here.
    ///
    /// # Real-time: setup only
    pub const fn is_there(&self) -> bool {
        self.0.revents != 0
    }

    /// True where the last wait found something to read here: what was closed at its other end,
    /// with nothing left to read, is there and not readable.
    ///
    /// # Real-time: setup only
    pub fn is_readable(&self) -> bool {
        let closed = self.0.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0;
        self.0.revents & libc::POLLIN != 0 && !(closed && self.unread() == Some(0))
    }

    /// True where the last wait found an error here, which a read of it returns: of a socket, say,
    /// whose peer was not there. What is closed, or names nothing, has none.
    ///
    /// # Real-time: setup only
    pub const fn has_error(&self) -> bool {
        let over = libc::POLLHUP | libc::POLLRDHUP | libc::POLLNVAL;
        self.0.revents & libc::POLLERR != 0 && self.0.revents & over == 0
    }

    /// `ioctl(FIONREAD)`: the bytes that are there to be read, also at the end of a pipe that is
    /// written to; `None` where the descriptor does not say.
    ///
    /// # Real-time: setup only
    pub fn unread(&self) -> Option<c_int> {
        let mut bytes: c_int = 0;
        // SAFETY: FIONREAD writes one int, which outlives the call.
        let answer = unsafe { libc::ioctl(self.0.fd, libc::FIONREAD, &raw mut bytes) };
        (answer == 0).then_some(bytes)
    }
}

/// `ppoll(interests, distance to until, NULL)`: waits until one of them is there, or `until_ns` on
/// CLOCK_MONOTONIC; how many are. The kernel takes a distance here: a thread that is preempted
/// before the call comes back that much later.
///
/// Errors: `EINTR` on a signal, `EINVAL` for more interests than RLIMIT_NOFILE.
///
/// # Real-time: setup only
pub fn wait_until(interests: &mut [Interest], until_ns: u64) -> Result<usize, Errno> {
    let left_ns = until_ns.saturating_sub(now_ns(ClockId::Monotonic));
    let left = libc::timespec {
        tv_sec: libc::time_t::try_from(left_ns / 1_000_000_000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (left_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `Interest` is a pollfd, and the slice has as many; the distance outlives the call.
    let ready = unsafe {
        libc::ppoll(
            interests.as_mut_ptr().cast(),
            interests.len() as libc::nfds_t,
            &raw const left,
            core::ptr::null(),
        )
    };
    Errno::check(ready.into()).map(|ready| usize::try_from(ready).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use crate::clock::{ClockId, now_ns};

    #[test]
    fn a_posix_timer_is_waited_for_by_its_thread() {
        let timer = SignalTimer::new().expect("a timer");
        let first_ns = now_ns(ClockId::Monotonic) + 2_000_000;
        timer.arm(first_ns, 0).expect("armed");
        assert_eq!(timer.take(10_000_000_000), Ok(1));
        assert!(now_ns(ClockId::Monotonic) >= first_ns);
        assert_eq!(timer.take(0), Err(Errno(libc::EAGAIN)));
    }

    #[test]
    fn a_counter_gives_what_was_added() {
        let counter = counter().expect("a descriptor");
        add(&counter, 2).expect("added");
        add(&counter, 3).expect("added");
        assert_eq!(take(&counter), Ok(5));
    }

    #[test]
    fn a_timer_is_taken_at_its_instant_and_counts_what_was_missed() {
        let timer = timer().expect("a descriptor");
        let first_ns = now_ns(ClockId::Monotonic) + 2_000_000;
        arm(&timer, first_ns, 0).expect("armed");
        assert_eq!(take(&timer), Ok(1));
        let now = now_ns(ClockId::Monotonic);
        assert!(now >= first_ns);
        arm(&timer, now - 10_000_000, 1_000_000).expect("armed");
        assert!(take(&timer).is_ok_and(|count| count >= 10), "those of the past are due at once");
    }

    #[test]
    fn a_line_passes_every_byte_and_ends_with_its_other_end() {
        let (near, far) = line().expect("a pseudo-terminal");
        let sent = [0, 3, 4, 10, 13, 17, 19, 26, 127, 255];
        assert_eq!(write(&near, &sent), Ok(sent.len()));
        let mut bytes = [0; 16];
        assert_eq!(read(&far, &mut bytes), Ok(sent.len()));
        assert_eq!(bytes[..sent.len()], sent);
        drop(near);
        assert!(matches!(read(&far, &mut bytes), Ok(0) | Err(Errno(libc::EIO))));
    }

    #[test]
    fn who_has_something_is_told_from_who_has_nothing() {
        let (silent, _other) = UnixStream::pair().expect("sockets");
        let (mut near, far) = UnixStream::pair().expect("sockets");
        let mut interests = [Interest::new(silent.as_raw_fd()), Interest::new(far.as_raw_fd())];
        assert_eq!(wait_until(&mut interests, 1), Ok(0), "the instant has passed");
        near.write_all(b"x").expect("open");
        assert_eq!(wait_until(&mut interests, u64::MAX), Ok(1));
        assert!(!interests[0].is_there() && interests[1].is_there());
        drop(near);
        assert_eq!(wait_until(&mut interests[1..], u64::MAX), Ok(1), "its end is something too");
        assert!(interests[1].is_readable(), "what was written before the end is still there");
        let mut byte = [0];
        (&far).read_exact(&mut byte).expect("readable");
        assert_eq!(wait_until(&mut interests[1..], u64::MAX), Ok(1));
        assert!(interests[1].is_there() && !interests[1].is_readable(), "only the end is left");
        assert_eq!(wait_until(&mut [Interest::new(1 << 20)], u64::MAX), Ok(1));
    }
}
