//! The rest of the supervising thread between two looks: the end of a process, a connection or a
//! request ends it at once.
//!
//! A change in shared memory alone (a registration, an overrun) is seen at the next look. Never
//! reads what it waits for.

use std::ffi::c_int;

use punctual_core::time::{Instant, Span};
use punctual_os::poll::{self, Interest};

use super::now;

/// How often the supervisor looks where nothing calls it.
const TICK: Span = Span::from_ms(5);
/// How often it lets itself be called from one such look to the next: whoever comes again and again
/// takes no more of the CPU than that.
const CALLS_MAX: u32 = 32;

/// The rests of one supervising thread.
#[derive(Debug)]
pub(in super::super) struct Poller {
    interests: Vec<Interest>,
    /// The next look, called or not.
    next: Instant,
    calls: u32,
}

impl Poller {
    pub(in super::super) fn new() -> Self {
        Self { interests: Vec::new(), next: now() + TICK, calls: 0 }
    }

    /// Rests until one of these descriptors is there, or the next look is due.
    pub(in super::super) fn rest(&mut self, descriptors: impl Iterator<Item = c_int>) {
        self.interests.clear();
        if self.calls < CALLS_MAX {
            self.interests.extend(descriptors.map(Interest::new));
        }
        // A signal that cuts this short costs an extra look.
        let called = poll::wait_until(&mut self.interests, self.next.as_ns());
        self.calls += u32::from(called.is_ok_and(|there| there > 0));
        let at = now();
        if at >= self.next {
            (self.next, self.calls) = (at + TICK, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_call_ends_a_rest_and_who_calls_without_end_is_not_always_heard() {
        let (mut one, two) = UnixStream::pair().expect("sockets");
        one.write_all(b"x").expect("open");
        let mut poller = Poller::new();
        // As if the next look were never due.
        poller.next = Instant::from_ns(u64::MAX);
        for _ in 0..CALLS_MAX {
            poller.rest(std::iter::once(two.as_raw_fd()));
        }
        assert_eq!(poller.calls, CALLS_MAX);
        poller.next = now();
        poller.rest(std::iter::once(two.as_raw_fd()));
        assert!(poller.interests.is_empty() && poller.calls == 0, "and then it is heard again");
    }
}
