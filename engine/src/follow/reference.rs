//! The clocks that a grid can follow, read beside CLOCK_MONOTONIC.
//!
//! For the thread that follows. May make system calls, which is why no loop reads them itself.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fmt, io};

use punctual_core::follow::ClockReading;
use punctual_core::time::{Instant, Span};
use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::ptp::{self, How, PtpSample};

use crate::error::Error;
use crate::error::FollowError;

/// Readings of which the one in the narrowest bracket counts.
const READINGS: usize = 10;

/// CLOCK_REALTIME must not move against CLOCK_MONOTONIC by more than this while a PTP clock is
/// read, ns.
const STEADY_NS: u64 = 1_000;

/// A clock that a grid can follow.
#[non_exhaustive]
pub enum Reference {
    /// CLOCK_TAI: the time of day without leap seconds, as far as somebody set it.
    Tai,
    /// CLOCK_REALTIME: the time of day.
    Realtime,
    /// A PTP hardware clock: see [`Reference::ptp`].
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
    /// # mod punctual {
    /// #     pub use punctual_core::time::{Instant, Span};
    /// #     pub use punctual_engine::{error::Error, follow};
    /// # }
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
    ///     let stamp = Instant::from_ns(status.stamp_ns);
    ///     let played = Instant::from_ns(status.frames_played * 1_000_000 / 48);
    ///     // Within a frame at 48 kHz.
    ///     Some(ClockReading::new(stamp, played, Span::from_us(21)))
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
    /// # mod punctual {
    /// #     pub use punctual_core::clock::Clock;
    /// #     pub use punctual_core::time::{Instant, Span};
    /// #     pub use punctual_engine::{error::Error, follow};
    /// # }
    /// use punctual::follow::{ClockReading, Follow, Last, Reference};
    /// use punctual::{Clock, Instant, Span};
    /// # use punctual_engine::clocks::Vdso;
    /// # fn now() -> Instant { Vdso.now() }
    /// # fn exchange_frame() -> u64 { Vdso.now().as_ns() + (1 << 40) }
    ///
    /// let last = Arc::new(Last::new());
    /// // In the loop, each cycle: the system time of the reference slave, register 0x0910, was
    /// // read on the frame's way, somewhere between sending and receiving it.
    /// let sent = now();
    /// let dc_time_ns = exchange_frame();
    /// let way = now() - sent;
    /// let middle = sent + Span::from_ns(way.as_ns() / 2);
    /// last.put(ClockReading::new(middle, Instant::from_ns(dc_time_ns), way));
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
    pub fn read(&mut self) -> Option<ClockReading> {
        let system = |id| {
            let (monotonic, reference, width) = bracket(id);
            let (monotonic, reference) = (Instant::from_ns(monotonic), Instant::from_ns(reference));
            Some(ClockReading::new(monotonic, reference, span(width)))
        };
        match self {
            Self::Tai => system(ClockId::Tai),
            Self::Realtime => system(ClockId::Realtime),
            Self::Ptp(clock) => clock.read(),
            Self::Callback(read) => read(),
        }
    }
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
fn bracket(id: ClockId) -> (u64, u64, u64) {
    let read = || {
        let before = now_ns(ClockId::Monotonic);
        let reference = now_ns(id);
        let width = now_ns(ClockId::Monotonic).saturating_sub(before);
        (before + width / 2, reference, width)
    };
    (1..READINGS)
        .map(|_| read())
        .fold(read(), |best, next| if next.2 < best.2 { next } else { best })
}

fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A PTP hardware clock as the system shows it, `/dev/ptpN`, read with CLOCK_MONOTONIC at one
/// moment. Opens character devices only, never blocks on one, changes no clock.
#[derive(Debug)]
pub struct PtpClock {
    device: File,
    how: How,
}

impl PtpClock {
    /// Opens a device, and determines how it can be read best.
    ///
    /// # Errors
    /// The kernel's error where there is no such device or no right to open it; `InvalidInput` for
    /// another kind of file or device, which is not opened, since that may have effects.
    ///
    /// # Real-time: setup only
    pub fn open(path: &Path) -> io::Result<Self> {
        let foreign = || io::Error::new(io::ErrorKind::InvalidInput, "it is no PTP clock");
        let meta = fs::metadata(path)?;
        if !meta.file_type().is_char_device()
            || class(meta.rdev()).is_some_and(|class| class != "ptp")
        {
            return Err(foreign());
        }
        let device = OpenOptions::new().read(true).custom_flags(ptp::OPEN_FLAGS).open(path)?;
        match best(|how| ptp::read(device.as_raw_fd(), how)) {
            Ok((how, _)) => Ok(Self { device, how }),
            Err(Errno::NOTTY | Errno::INVAL | Errno::OPNOTSUPP) => Err(foreign()),
            Err(errno) => Err(io::Error::from_raw_os_error(errno.0)),
        }
    }

    /// The request by which it was read last.
    ///
    /// # Real-time: setup only
    pub fn how(&self) -> How {
        self.how
    }

    /// Both clocks at one moment. Where the method used so far fails (a clocksource that the
    /// hardware cannot stamp any more), the others are tried.
    fn read(&mut self) -> Option<ClockReading> {
        let offset = || {
            let (before, realtime, width) = bracket(ClockId::Realtime);
            (realtime.wrapping_sub(before), width)
        };
        let fd = self.device.as_raw_fd();
        let (ahead, _) = offset();
        let read = ptp::read(fd, self.how).map(|sample| (self.how, sample));
        let (how, sample) = read.or_else(|_| best(|how| ptp::read(fd, how))).ok()?;
        self.how = how;
        let (after, width) = offset();
        reading(sample, ahead, after, width)
    }
}

/// The first method that works, and its sample.
///
/// A driver without cross timestamps returns EOPNOTSUPP; one that has them returns ENODEV while the
/// clocksource is not the counter that its hardware stamps; a kernel that does not know a request
/// returns ENOTTY. None of these errors tells whether the next method works, so that all are tried;
/// the last error is returned.
fn best(mut read: impl FnMut(How) -> Result<PtpSample, Errno>) -> Result<(How, PtpSample), Errno> {
    let [first, rest @ ..] = How::ALL;
    let mut tried = read(first).map(|sample| (first, sample));
    for how in rest {
        tried = tried.or_else(|_| read(how).map(|sample| (how, sample)));
    }
    tried
}

/// The class of a character device, as sysfs names it: "ptp", "rtc". `None` where sysfs does not
/// say.
fn class(device: u64) -> Option<String> {
    let (major, minor) = ptp::number(device);
    let class = fs::read_link(format!("/sys/dev/char/{major}:{minor}/subsystem")).ok()?;
    Some(class.file_name()?.to_string_lossy().into_owned())
}

/// A sample on CLOCK_MONOTONIC; `ahead` and `after` are how far CLOCK_REALTIME was ahead of that
/// before and after it. `None` when it was set in between.
fn reading(sample: PtpSample, ahead: u64, after: u64, width: u64) -> Option<ClockReading> {
    let moved = after.wrapping_sub(ahead).cast_signed().unsigned_abs();
    let wide = sample.after_ns.checked_sub(sample.before_ns)?;
    if moved > STEADY_NS + width {
        return None;
    }
    let middle = sample.before_ns + wide / 2;
    let monotonic = Instant::from_ns(middle.wrapping_sub(after));
    let reference = Instant::from_ns(sample.device_ns);
    Some(ClockReading::new(monotonic, reference, span(wide.saturating_add(width))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::Span;
    use punctual_testkit::skip;

    #[test]
    fn the_time_of_day_is_read_beside_the_monotonic_clock() {
        for mut reference in [Reference::Tai, Reference::Realtime] {
            let before = now_ns(ClockId::Monotonic);
            let reading = reference.read().expect("always there");
            assert!((before..=now_ns(ClockId::Monotonic)).contains(&reading.monotonic.as_ns()));
            assert!(reading.reference > reading.monotonic, "1970 was before the machine started");
        }
    }

    const SAMPLE: PtpSample = PtpSample { before_ns: 1, device_ns: 2, after_ns: 3 };

    #[test]
    fn a_ptp_sample_is_placed_on_the_monotonic_clock() {
        let sample = PtpSample { before_ns: 5_000_400, device_ns: 77, after_ns: 5_000_600 };
        let placed = reading(sample, 5_000_000, 5_000_010, 20).expect("steady");
        assert_eq!(placed.monotonic, Instant::from_ns(490));
        assert_eq!(placed.reference, Instant::from_ns(77));
        assert_eq!(placed.width, Span::from_ns(220));
        assert_eq!(reading(sample, 5_000_000, 5_001_021, 20), None, "it was set in between");
        let upside_down = PtpSample { before_ns: 9, device_ns: 1, after_ns: 8 };
        assert_eq!(reading(upside_down, 0, 0, 0), None);
    }

    #[test]
    fn the_best_way_that_works_is_taken() {
        let refuse = |errors: [Option<i32>; 3]| {
            best(move |how| {
                match errors[How::ALL.iter().position(|&candidate| candidate == how).expect("one")]
                {
                    Some(errno) => Err(Errno(errno)),
                    None => Ok(SAMPLE),
                }
            })
            .map(|(how, _)| how)
        };
        let (unsupported, foreign, gone) = (Errno::OPNOTSUPP.0, Errno::NOTTY.0, Errno::NODEV.0);
        assert_eq!(refuse([None, None, None]), Ok(How::Precise));
        assert_eq!(refuse([Some(unsupported), None, None]), Ok(How::Extended));
        assert_eq!(refuse([Some(gone), None, None]), Ok(How::Extended));
        assert_eq!(refuse([Some(unsupported), Some(foreign), None]), Ok(How::Plain));
        assert_eq!(refuse([Some(foreign); 3]), Err(Errno::NOTTY));
        assert_eq!(refuse([Some(unsupported), Some(gone), Some(gone)]), Err(Errno::NODEV));
    }

    /// The error for `path`, which is no PTP clock.
    fn refused(path: &Path) -> io::Error {
        PtpClock::open(path).expect_err("it is no PTP clock")
    }

    #[test]
    fn what_is_no_ptp_clock_is_refused() {
        assert_eq!(refused(Path::new("/dev/no-such-ptp")).kind(), io::ErrorKind::NotFound);
        // A device, a file, a directory, and one that would be waited for.
        let dir = std::env::temp_dir().join(format!("punctual-ptp-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        let socket = dir.join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a new name");
        let myself = Path::new("/proc/self/exe");
        for path in [Path::new("/dev/null"), Path::new("/dev/tty"), myself, &dir, &socket] {
            let why = refused(path);
            assert_eq!(why.kind(), io::ErrorKind::InvalidInput, "{path:?}: {why}");
            assert_eq!(why.to_string(), "it is no PTP clock", "{path:?}");
        }
        drop(listener);
        fs::remove_dir_all(&dir).expect("its own");
    }

    #[test]
    fn a_real_time_clock_is_no_ptp_clock() {
        let clock = Path::new("/dev/rtc0");
        if !skip::need_device("/dev/rtc0", clock.exists()) {
            return;
        }
        assert_eq!(refused(clock).kind(), io::ErrorKind::InvalidInput);
    }

    /// On a machine that has one: it is read, and its time goes on.
    #[test]
    fn a_ptp_clock_of_this_machine_is_read_beside_the_monotonic_clock() {
        let opened = PtpClock::open(Path::new("/dev/ptp0"));
        if !skip::need_device("a PTP clock, /dev/ptp0", opened.is_ok()) {
            return;
        }
        let mut clock = opened.expect("it is there");
        let first = clock.read().expect("it was read when it was opened");
        let second = clock.read().expect("it was read before");
        assert!(second.monotonic > first.monotonic);
        assert!(second.reference >= first.reference, "{first:?} {second:?}");
    }
}
