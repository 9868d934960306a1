//! The clocks that a grid can follow, read beside CLOCK_MONOTONIC.
//!
//! For the thread that follows. May make system calls, which is why no loop reads them itself.

use std::fmt;
use std::path::Path;

use punctual_core::follow::ClockReading;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};

use super::error::FollowError;
use super::ptp::PtpClock;
use crate::error::Error;

/// Readings of which the one in the narrowest bracket counts.
const READINGS: usize = 10;

/// A clock that a grid can follow.
pub enum Reference {
    /// CLOCK_TAI: the time of day without leap seconds, as far as somebody set it.
    Tai,
    /// CLOCK_REALTIME: the time of day.
    Realtime,
    /// A PTP hardware clock: see [`Reference::ptp`].
    #[doc(hidden)]
    Ptp(PtpClock),
    /// Whatever the caller reads: a bus's distributed clocks, a sound card. `None` while it cannot
    /// be read.
    ///
    /// The callback runs on the thread that follows, never in a loop, and may take its time. It
    /// returns one moment on both clocks: the reference's time in ns since any zero, which must
    /// never wrap (the caller extends a counter of 32 bits), and CLOCK_MONOTONIC at that moment.
    /// `width` says how far the two may be apart; smaller is better.
    ///
    /// To read a device, take CLOCK_MONOTONIC before and after. A sound card's driver returns both
    /// at once: the frames that were played, and when.
    ///
    /// ```
    /// use punctual::follow::{ClockReading, Follow, Reference};
    /// use punctual::{Instant, Span};
    /// # use punctual_os::clock::{ClockId, now_ns};
    /// # struct Status { frames_played: u64, stamp_ns: u64 }
    /// # struct Card;
    /// # impl Card { fn status(&self) -> Option<Status> {
    /// #     let ns = now_ns(ClockId::Monotonic);
    /// #     Some(Status { frames_played: ns / 20_833, stamp_ns: ns })
    /// # } }
    /// # let card = Card;
    ///
    /// let audio = Reference::Callback(Box::new(move || {
    ///     // ALSA: snd_pcm_status(), with its stamps on CLOCK_MONOTONIC.
    ///     let status = card.status()?;
    ///     Some(ClockReading {
    ///         monotonic: Instant::from_ns(status.stamp_ns),
    ///         reference: Instant::from_ns(status.frames_played * 1_000_000 / 48),
    ///         // A frame at 48 kHz.
    ///         width: Span::from_us(21),
    ///     })
    /// }));
    /// let follower = Follow::new(audio).start()?;
    /// # Ok::<(), punctual::Error>(())
    /// ```
    ///
    /// A time that comes with each frame of a bus, as EtherCAT's distributed clocks do, reaches
    /// the loop itself. The loop puts it into a [`Last`](super::Last), which takes some
    /// nanoseconds, and the callback takes it from there. Without a new reading it returns `None`,
    /// and [`Follower::unread`](super::Follower::unread) counts. Exchange frames before
    /// [`Follow::start`](super::Follow::start), which needs a first reading.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use punctual::follow::{ClockReading, Follow, Last, Reference};
    /// use punctual::{Clock, Instant, Span};
    /// # use punctual::clocks::Vdso;
    /// # fn now() -> Instant { Vdso.now() }
    /// # fn exchange_frame() -> u64 { Vdso.now().as_ns() + (1 << 40) }
    ///
    /// let last = Arc::new(Last::new());
    /// // In the loop, each cycle: the system time of the reference slave, register 0x0910, was
    /// // read on the frame's way, somewhere between sending and receiving it.
    /// let sent = now();
    /// let dc_time_ns = exchange_frame();
    /// let way = now() - sent;
    /// last.put(ClockReading {
    ///     monotonic: sent + Span::from_ns(way.as_ns() / 2),
    ///     reference: Instant::from_ns(dc_time_ns),
    ///     width: way,
    /// });
    ///
    /// // At setup, once frames are exchanged:
    /// let bus = Arc::clone(&last);
    /// let dc = Reference::Callback(Box::new(move || bus.take()));
    /// let follower = Follow::new(dc).start()?;
    /// let mut clock = follower.clock();
    /// // The loop's clock from here on. Releases at multiples of its period are the bus's SYNC0.
    /// assert!(clock.now() > now());
    /// # Ok::<(), punctual::Error>(())
    /// ```
    Callback(Box<dyn FnMut() -> Option<ClockReading> + Send>),
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tai => f.write_str("Tai"),
            Self::Realtime => f.write_str("Realtime"),
            Self::Ptp(clock) => clock.fmt(f),
            Self::Callback(_) => f.write_str("Callback"),
        }
    }
}

/// CLOCK_MONOTONIC, another clock, and the width of the bracket, ns: the narrowest of some.
pub(super) fn bracket(id: ClockId) -> (u64, u64, u64) {
    let read = || {
        let before = now_ns(ClockId::Monotonic);
        let other = now_ns(id);
        let width = now_ns(ClockId::Monotonic).saturating_sub(before);
        (before + width / 2, other, width)
    };
    (1..READINGS)
        .map(|_| read())
        .fold(read(), |best, next| if next.2 < best.2 { next } else { best })
}

pub(super) fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl Reference {
    /// A PTP hardware clock as the system shows it: `/dev/ptp0`.
    ///
    /// # Errors
    /// There is no such device, no right to open it, or it is no PTP clock.
    ///
    /// # Real-time: setup only
    pub fn ptp(device: impl AsRef<Path>) -> Result<Self, Error> {
        let device = device.as_ref();
        let clock = PtpClock::open(device);
        clock.map(Self::Ptp).map_err(|why| FollowError::Device(device.to_owned(), why).into())
    }

    /// Both clocks at one moment; `None` where the reference could not be read.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn read(&mut self) -> Option<ClockReading> {
        let system = |id| {
            let (monotonic, reference, width) = bracket(id);
            let (monotonic, reference) = (Instant::from_ns(monotonic), Instant::from_ns(reference));
            Some(ClockReading { monotonic, reference, width: span(width) })
        };
        match self {
            Self::Tai => system(ClockId::Tai),
            Self::Realtime => system(ClockId::Realtime),
            Self::Ptp(clock) => clock.read(),
            Self::Callback(read) => read(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_is_read_beside_the_monotonic_clock() {
        for mut reference in [Reference::Tai, Reference::Realtime] {
            let before = now_ns(ClockId::Monotonic);
            let reading = reference.read().expect("always there");
            assert!((before..=now_ns(ClockId::Monotonic)).contains(&reading.monotonic.as_ns()));
            assert!(reading.reference > reading.monotonic, "1970 was before the machine started");
        }
    }
}
