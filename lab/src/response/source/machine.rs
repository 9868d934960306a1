//! The sources that need no device.

use std::sync::atomic::AtomicU64;

use punctual_os::{Errno, events};

use super::Source;
use super::row::{Opening, SourceRow};

/// A row of a source without a device.
const fn row(
    name: &'static str,
    (help, path): (&'static str, &'static str),
    open: fn(&str) -> Opening,
) -> SourceRow {
    SourceRow { name, device: None, help, path, by_kernel: false, check: |_| Ok(()), open }
}

pub(super) const EVENTFD: SourceRow = row(
    "eventfd",
    (
        "a thread on another CPU writes an eventfd",
        "scheduler and inter-processor interrupt; no device",
    ),
    |_| plain(events::counter().map(Source::Eventfd)),
);

pub(super) const FUTEX: SourceRow = row(
    "futex",
    (
        "a thread on another CPU wakes a futex",
        "scheduler and inter-processor interrupt; no device, no file",
    ),
    |_| Ok((Source::Futex(AtomicU64::new(0)), None)),
);

pub(super) const TIMERFD: SourceRow = SourceRow {
    by_kernel: true,
    ..row(
        "timerfd",
        (
            "the kernel's timer expires",
            "timer interrupt of the measured CPU; the stimulus is the timer's own expiry",
        ),
        |_| plain(events::timer().map(Source::Timerfd)),
    )
};

pub(super) const PTY: SourceRow = row(
    "pty",
    (
        "a byte through a pseudo-terminal, as a serial line has it",
        "terminal layer and a kernel worker, which has no real-time priority; no UART",
    ),
    |_| plain(events::line().map(|(near, far)| Source::Pty(near, far))),
);

fn plain(made: Result<Source, Errno>) -> Opening {
    made.map(|source| (source, None)).map_err(|why| super::of(why).to_string())
}
