//! Readings of a PTP hardware clock and of the system's clock at one moment.
//!
//! For the thread that follows one (Linux, include/uapi/linux/ptp_clock.h, 6.18; the requests
//! themselves are those of 3.0, 4.6 and 5.0). The caller opens the device; nothing is set here.

use core::ffi::c_ulong;
use core::mem::size_of;

use crate::Errno;
use crate::descriptor::{READ_WRITE, WRITE, request};

/// An instant as the PTP interface writes it, `struct ptp_clock_time`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Time {
    sec: i64,
    nsec: u32,
    reserved: u32,
}

/// The most samples of one call, `PTP_MAX_SAMPLES`.
const SAMPLES_MAX: usize = 25;

/// `struct ptp_sys_offset`: the system's time and the device's in turn, the system's last again.
#[repr(C)]
struct Offset {
    n_samples: u32,
    reserved: [u32; 3],
    at: [Time; 2 * SAMPLES_MAX + 1],
}

/// `struct ptp_sys_offset_extended`: the system's time, the device's, the system's, of each sample.
#[repr(C)]
struct Extended {
    n_samples: u32,
    clock: i32,
    reserved: [u32; 2],
    at: [[Time; 3]; SAMPLES_MAX],
}

/// `struct ptp_sys_offset_precise`: both stamped by the hardware.
#[repr(C)]
#[derive(Default)]
struct Precise {
    device: Time,
    realtime: Time,
    raw: Time,
    reserved: [u32; 4],
}

const _: () = {
    assert!(size_of::<Time>() == 16);
    assert!(size_of::<Offset>() == 832);
    assert!(size_of::<Extended>() == 1_216);
    assert!(size_of::<Precise>() == 64);
};

const OFFSET: c_ulong = request(WRITE, b'=', 5, size_of::<Offset>());
const PRECISE: c_ulong = request(READ_WRITE, b'=', 8, size_of::<Precise>());
const EXTENDED: c_ulong = request(READ_WRITE, b'=', 9, size_of::<Extended>());

/// The ways to read the device, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The hardware stamps both clocks: to about 10 ns.
    Precise,
    /// The driver reads the system's clock right before and after the register: to 0.1 to 1 µs.
    Extended,
    /// The kernel reads the system's clock around the driver: to some microseconds.
    Plain,
}

impl How {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Precise, Self::Extended, Self::Plain];
}

/// One moment on the device, between two readings of CLOCK_REALTIME, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpSample {
    /// CLOCK_REALTIME before.
    pub before_ns: u64,
    /// The device.
    pub device_ns: u64,
    /// CLOCK_REALTIME after.
    pub after_ns: u64,
}

/// Flags to open a device that may not be a PTP clock: opening does not wait, and does not make a
/// terminal the caller's.
pub const OPEN_FLAGS: i32 = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;

/// `major(device)` and `minor(device)` of a device's number, as stat(2) gives it.
///
/// # Real-time: setup only
pub const fn number(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// `ioctl(fd, PTP_SYS_OFFSET_PRECISE | PTP_SYS_OFFSET_EXTENDED | PTP_SYS_OFFSET, …)`: the sample of
/// the narrowest bracket, of 10 where the hardware does not stamp both.
///
/// # Errors
/// `EOPNOTSUPP`, `EINVAL` or `ENOTTY` where the device cannot be read so; `ENODEV` where it is
/// gone, or where the hardware cannot stamp the clocksource in use.
///
/// # Real-time: setup only
pub fn read(fd: i32, how: How) -> Result<PtpSample, Errno> {
    match how {
        How::Precise => {
            let mut precise = Precise::default();
            // SAFETY: the request names the size of `both`, which lives through the call.
            let done = unsafe { libc::ioctl(fd, PRECISE as _, &raw mut precise) };
            Errno::check(done.into())?;
            let system = ns(precise.realtime);
            Ok(PtpSample { before_ns: system, device_ns: ns(precise.device), after_ns: system })
        }
        How::Extended => {
            let mut extended = Extended {
                n_samples: SAMPLES,
                clock: libc::CLOCK_REALTIME,
                reserved: [0; 2],
                at: [[Time::default(); 3]; SAMPLES_MAX],
            };
            // SAFETY: the request names the size of `all`, which lives through the call.
            let done = unsafe { libc::ioctl(fd, EXTENDED as _, &raw mut extended) };
            Errno::check(done.into())?;
            let read = &extended.at[..SAMPLES as usize];
            narrowest(read.iter().map(|&[before, device, after]| [before, device, after]))
        }
        How::Plain => {
            let mut offset = Offset {
                n_samples: SAMPLES,
                reserved: [0; 3],
                at: [Time::default(); 2 * SAMPLES_MAX + 1],
            };
            // SAFETY: the request names the size of `all`, which lives through the call.
            let done = unsafe { libc::ioctl(fd, OFFSET as _, &raw mut offset) };
            Errno::check(done.into())?;
            let read = &offset.at[..2 * SAMPLES as usize + 1];
            narrowest(read.windows(3).step_by(2).map(|triple| [triple[0], triple[1], triple[2]]))
        }
    }
}

/// Samples of one call.
const SAMPLES: u32 = 10;

fn ns(time: Time) -> u64 {
    let seconds = u64::try_from(time.sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.nsec.into())
}

fn narrowest(samples: impl Iterator<Item = [Time; 3]>) -> Result<PtpSample, Errno> {
    samples
        .map(|at| at.map(ns))
        .map(|[before_ns, device_ns, after_ns]| PtpSample { before_ns, device_ns, after_ns })
        .min_by_key(|sample| sample.after_ns.saturating_sub(sample.before_ns))
        .ok_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_are_the_kernels() {
        // As `strace` and the kernel's own header print them.
        assert_eq!((OFFSET, PRECISE, EXTENDED), (0x4340_3d05, 0xc040_3d08, 0xc4c0_3d09));
    }

    #[test]
    fn what_is_no_ptp_clock_is_refused() {
        use std::os::fd::AsRawFd;
        let file = std::env::current_exe().expect("a file");
        let devices = ["/dev/null", "/dev/rtc0"].map(std::path::PathBuf::from);
        let opened = devices.into_iter().chain([file, "/".into()]).filter_map(|path| {
            // A clock of that kind is not everywhere, and open for one process alone.
            std::fs::File::open(path).ok()
        });
        let mut tried = 0;
        for file in opened {
            for how in How::ALL {
                assert_eq!(read(file.as_raw_fd(), how), Err(Errno::NOTTY), "{file:?}");
                tried += 1;
            }
        }
        assert!(tried >= 9, "{tried}");
        for how in How::ALL {
            // An emulator of user programs does not know the request, and does not ask further.
            let refused = [Errno(libc::EBADF), Errno::NOTTY].map(Err);
            assert!(refused.contains(&read(-1, how)), "{how:?}");
        }
    }

    #[test]
    fn a_device_is_told_by_its_numbers() {
        use std::os::unix::fs::MetadataExt;
        let null = std::fs::metadata("/dev/null").expect("it is there");
        assert_eq!(number(null.rdev()), (1, 3));
    }

    #[test]
    fn the_narrowest_bracket_counts() {
        let time = |ns: u32| Time { sec: 3, nsec: ns, reserved: 0 };
        let samples = [[100, 500, 900], [1_000, 1_200, 1_300], [2_000, 2_400, 2_900]];
        let best = narrowest(samples.iter().map(|at| at.map(time))).expect("some");
        assert_eq!(best.device_ns, 3_000_001_200);
        assert_eq!(best.after_ns - best.before_ns, 300);
        assert_eq!(ns(Time { sec: -1, nsec: 5, reserved: 0 }), 5);
    }
}
