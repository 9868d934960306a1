//! A parallel port: its pins, and the interrupts of its acknowledge line.
//!
//! For experiments (Linux, include/uapi/linux/ppdev.h). A port is opened by
//! [`crate::descriptor::open_device`]; from [`claim`] on it is its caller's, until the descriptor
//! is dropped. Waits are those of [`crate::events`].

use core::ffi::{c_int, c_ulong};

use crate::Errno;
use crate::descriptor::Descriptor;
use crate::descriptor::{NONE, READ, WRITE, request};

const READ_STATUS: c_ulong = request(READ, b'p', 0x81, 1);
const READ_CONTROL: c_ulong = request(READ, b'p', 0x83, 1);
const WRITE_CONTROL: c_ulong = request(WRITE, b'p', 0x84, 1);
const WRITE_DATA: c_ulong = request(WRITE, b'p', 0x86, 1);
const CLAIM: c_ulong = request(NONE, b'p', 0x8b, 0);
const EXCLUSIVE: c_ulong = request(NONE, b'p', 0x8f, 0);
const TAKE_INTERRUPTS: c_ulong = request(READ, b'p', 0x93, size_of::<c_int>());

/// The lines of the control register, as the port's pins have them: nStrobe and nSelectIn are low
/// where their bits are set, nInit is high.
pub const STROBE: u8 = 0x01;
/// See [`STROBE`].
pub const INIT: u8 = 0x04;
/// See [`STROBE`].
pub const SELECT: u8 = 0x08;

/// `ioctl(PPEXCL)`, `ioctl(PPCLAIM)`: the port, for this caller alone. The kernel counts its
/// interrupts from now on.
///
/// Errors: `ENOTTY` where it is no parallel port, `ENXIO` or `EBUSY` where another driver has it
/// for itself.
///
/// # Real-time: setup only
pub fn claim(port: &Descriptor) -> Result<(), Errno> {
    for call in [EXCLUSIVE, CLAIM] {
        // SAFETY: these requests take no argument.
        let done = unsafe { libc::ioctl(port.number(), call as _) };
        Errno::check(done.into())?;
    }
    Ok(())
}

/// `ioctl(PPRCONTROL)`: the control lines.
///
/// # Real-time: in loop
pub fn control(port: &Descriptor) -> Result<u8, Errno> {
    get(port, READ_CONTROL)
}

/// `ioctl(PPRSTATUS)`: the status lines.
///
/// # Real-time: in loop
pub fn status(port: &Descriptor) -> Result<u8, Errno> {
    get(port, READ_STATUS)
}

/// `ioctl(PPWCONTROL)`: sets the control lines.
///
/// # Real-time: in loop
pub fn set_control(port: &Descriptor, lines: u8) -> Result<(), Errno> {
    put(port, WRITE_CONTROL, lines)
}

/// `ioctl(PPWDATA)`: sets the data pins.
///
/// # Real-time: in loop
pub fn set_data(port: &Descriptor, pins: u8) -> Result<(), Errno> {
    put(port, WRITE_DATA, pins)
}

/// `ioctl(PPCLRIRQ)`: takes the interrupts that there were since the last call; how many.
///
/// # Real-time: in loop
pub fn take_interrupts(port: &Descriptor) -> Result<u32, Errno> {
    let mut count: c_int = 0;
    // SAFETY: the request writes one int, which outlives the call.
    let done = unsafe { libc::ioctl(port.number(), TAKE_INTERRUPTS as _, &raw mut count) };
    Errno::check(done.into()).map(|_| count.cast_unsigned())
}

fn get(port: &Descriptor, call: c_ulong) -> Result<u8, Errno> {
    let mut byte = 0_u8;
    // SAFETY: the request writes one byte, which outlives the call.
    let done = unsafe { libc::ioctl(port.number(), call as _, &raw mut byte) };
    Errno::check(done.into()).map(|_| byte)
}

fn put(port: &Descriptor, call: c_ulong, byte: u8) -> Result<(), Errno> {
    // SAFETY: the request reads one byte, which outlives the call.
    let done = unsafe { libc::ioctl(port.number(), call as _, &raw const byte) };
    Errno::check(done.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor;

    #[test]
    fn the_requests_are_the_kernels() {
        // As `strace` and the kernel's own header print them.
        assert_eq!((READ_STATUS, READ_CONTROL), (0x8001_7081, 0x8001_7083));
        assert_eq!((WRITE_CONTROL, WRITE_DATA), (0x4001_7084, 0x4001_7086));
        assert_eq!((CLAIM, EXCLUSIVE, TAKE_INTERRUPTS), (0x708b, 0x708f, 0x8004_7093));
    }

    #[test]
    fn what_is_no_port_is_refused() {
        let file = descriptor::open_device(c"/dev/null").expect("there");
        assert_eq!(claim(&file), Err(Errno::NOTTY));
        assert_eq!((control(&file), status(&file)), (Err(Errno::NOTTY), Err(Errno::NOTTY)));
        assert_eq!(set_control(&file, STROBE | INIT | SELECT), Err(Errno::NOTTY));
        assert_eq!(set_data(&file, 0), Err(Errno::NOTTY));
        assert_eq!(take_interrupts(&file), Err(Errno::NOTTY));
    }
}
