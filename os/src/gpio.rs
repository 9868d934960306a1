//! Lines of a GPIO chip: outputs that are set, and edges of inputs that the kernel stamps.
//!
//! For experiments (Linux, include/uapi/linux/gpio.h, version 2 of the interface, from 5.10 on). A
//! chip is opened by [`crate::descriptor::open_device`]; a line is its caller's until it is
//! dropped.

use core::ffi::c_ulong;
use core::mem::size_of;

use crate::Errno;
use crate::descriptor::Descriptor;
use crate::descriptor::{READ, READ_WRITE, request};

/// `struct gpiochip_info`.
#[repr(C)]
struct ChipInfo {
    name: [u8; 32],
    label: [u8; 32],
    lines: u32,
}

/// `struct gpio_v2_line_attribute`: a number of its kind and a value.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attribute {
    id: u32,
    padding: u32,
    value: u64,
}

/// `struct gpio_v2_line_config_attribute`: the lines that it is for.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ConfigAttribute {
    attribute: Attribute,
    mask: u64,
}

/// `struct gpio_v2_line_config`.
#[repr(C)]
#[derive(Default)]
struct LineConfig {
    flags: u64,
    num_attrs: u32,
    padding: [u32; 5],
    attrs: [ConfigAttribute; 10],
}

/// `struct gpio_v2_line_request`.
#[repr(C)]
struct LineRequest {
    offsets: [u32; 64],
    consumer: [u8; 32],
    config: LineConfig,
    num_lines: u32,
    event_buffer_size: u32,
    padding: [u32; 5],
    fd: i32,
}

/// `struct gpio_v2_line_info`.
#[repr(C)]
#[derive(Default)]
struct LineInfo {
    name: [u8; 32],
    consumer: [u8; 32],
    offset: u32,
    num_attrs: u32,
    flags: u64,
    attrs: [Attribute; 10],
    padding: [u32; 4],
}

/// `struct gpio_v2_line_values`.
#[repr(C)]
struct LineValues {
    bits: u64,
    mask: u64,
}

/// `struct gpio_v2_line_event`.
#[repr(C)]
struct LineEvent {
    timestamp_ns: u64,
    id: u32,
    offset: u32,
    seqno: u32,
    line_seqno: u32,
    padding: [u32; 6],
}

const _: () = {
    assert!(size_of::<ChipInfo>() == 68);
    assert!(size_of::<Attribute>() == 16);
    assert!(size_of::<ConfigAttribute>() == 24);
    assert!(size_of::<LineConfig>() == 272);
    assert!(size_of::<LineRequest>() == 592);
    assert!(size_of::<LineInfo>() == 256);
    assert!(size_of::<LineValues>() == 16);
    assert!(size_of::<LineEvent>() == 48);
};

const CHIP_INFO: c_ulong = request(READ, 0xb4, 0x01, size_of::<ChipInfo>());
const LINE_INFO: c_ulong = request(READ_WRITE, 0xb4, 0x05, size_of::<LineInfo>());
const LINE: c_ulong = request(READ_WRITE, 0xb4, 0x07, size_of::<LineRequest>());
const SET_VALUES: c_ulong = request(READ_WRITE, 0xb4, 0x0f, size_of::<LineValues>());

/// `GPIO_V2_LINE_FLAG_INPUT`, `_OUTPUT`, `_EDGE_RISING`, `_EDGE_FALLING`.
const INPUT: u64 = 1 << 2;
const OUTPUT: u64 = 1 << 3;
const RISING: u64 = 1 << 4;
const FALLING: u64 = 1 << 5;
/// `GPIO_V2_LINE_EVENT_RISING_EDGE`.
const ROSE: u32 = 1;

/// The use of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// An output, low at first.
    Output,
    /// An input whose edges are events.
    Edges,
}

/// An edge of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// When the kernel saw it, on CLOCK_MONOTONIC: in its interrupt handler where the chip has an
    /// interrupt of its own.
    pub at_ns: u64,
    /// True where the line is high from then on.
    pub rose: bool,
}

/// `ioctl(GPIO_GET_CHIPINFO_IOCTL)`: how many lines a chip has.
///
/// Errors: `ENOTTY` where it is no GPIO chip, `ENODEV` where it is gone.
///
/// # Real-time: setup only
pub fn lines(chip: &Descriptor) -> Result<u32, Errno> {
    let mut info = ChipInfo { name: [0; 32], label: [0; 32], lines: 0 };
    // SAFETY: the request names the size of `info`, which lives through the call.
    let done = unsafe { libc::ioctl(chip.number(), CHIP_INFO as _, &raw mut info) };
    Errno::check(done.into()).map(|_| info.lines)
}

/// `ioctl(GPIO_V2_GET_LINEINFO_IOCTL)`: the name of who has a line; all zero where it has none.
///
/// Errors: `EINVAL` where there is no such line.
///
/// # Real-time: setup only
pub fn consumer(chip: &Descriptor, offset: u32) -> Result<[u8; 32], Errno> {
    let mut info = LineInfo { offset, ..LineInfo::default() };
    // SAFETY: the request names the size of `info`, which lives through the call.
    let done = unsafe { libc::ioctl(chip.number(), LINE_INFO as _, &raw mut info) };
    Errno::check(done.into()).map(|_| info.consumer)
}

/// `ioctl(GPIO_V2_GET_LINE_IOCTL)`: a line, for this caller alone. An error beyond the call's own
/// is that of the chip's driver.
///
/// Errors: `EBUSY` where another has it, `EINVAL` where there is no such line; `EPERM` or `EIO`
/// where it cannot be an output, `ENXIO`, `EINVAL` or `EOPNOTSUPP` where it raises no interrupts.
///
/// # Real-time: setup only
pub fn line(chip: &Descriptor, offset: u32, line_use: LineUse) -> Result<Descriptor, Errno> {
    let mut wanted = LineRequest {
        offsets: [0; 64],
        consumer: [0; 32],
        config: LineConfig::default(),
        num_lines: 1,
        event_buffer_size: 0,
        padding: [0; 5],
        fd: -1,
    };
    wanted.offsets[0] = offset;
    wanted.consumer[..8].copy_from_slice(b"punctual");
    wanted.config.flags = match line_use {
        LineUse::Output => OUTPUT,
        LineUse::Edges => INPUT | RISING | FALLING,
    };
    // SAFETY: the request names the size of `wanted`, which lives through the call.
    let done = unsafe { libc::ioctl(chip.number(), LINE as _, &raw mut wanted) };
    Errno::check(done.into()).map(|_| Descriptor::new(wanted.fd))
}

/// `ioctl(GPIO_V2_LINE_SET_VALUES_IOCTL)`: sets an output.
///
/// Errors: `EPERM` where it is none, `ENODEV` where the chip is gone.
///
/// # Real-time: in loop
pub fn set(line: &Descriptor, high: bool) -> Result<(), Errno> {
    let mut values = LineValues { bits: high.into(), mask: 1 };
    // SAFETY: the request names the size of `values`, which lives through the call.
    let done = unsafe { libc::ioctl(line.number(), SET_VALUES as _, &raw mut values) };
    Errno::check(done.into()).map(drop)
}

/// `read(line, &event, 48)`: waits until there is an edge, and takes the oldest.
///
/// Errors: `EINTR` on a signal, `ENODEV` where the chip is gone.
///
/// # Real-time: in loop, waits
pub fn take_edge(line: &Descriptor) -> Result<Edge, Errno> {
    let mut bytes = [0; size_of::<LineEvent>()];
    match crate::events::read(line, &mut bytes)? {
        count if count == bytes.len() => Ok(edge(&bytes)),
        _ => Err(Errno::NODEV),
    }
}

/// The fields of an event as the kernel writes it.
fn edge(bytes: &[u8; size_of::<LineEvent>()]) -> Edge {
    let (mut at, mut id) = ([0; 8], [0; 4]);
    at.copy_from_slice(&bytes[..8]);
    id.copy_from_slice(&bytes[8..12]);
    Edge { at_ns: u64::from_ne_bytes(at), rose: u32::from_ne_bytes(id) == ROSE }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;
    use crate::descriptor;

    #[test]
    fn the_requests_and_fields_are_the_kernels() {
        // As `strace` and the kernel's own header print them.
        assert_eq!((CHIP_INFO, LINE_INFO), (0x8044_b401, 0xc100_b405));
        assert_eq!((LINE, SET_VALUES), (0xc250_b407, 0xc010_b40f));
        assert_eq!((offset_of!(LineEvent, timestamp_ns), offset_of!(LineEvent, id)), (0, 8));
        assert_eq!((offset_of!(LineRequest, config), offset_of!(LineRequest, fd)), (288, 588));
        assert_eq!((offset_of!(LineInfo, consumer), offset_of!(LineInfo, offset)), (32, 64));
        assert_eq!((offset_of!(LineConfig, attrs), offset_of!(ChipInfo, lines)), (32, 64));
    }

    #[test]
    fn an_event_is_read_as_the_kernel_writes_it() {
        let mut bytes = [0; 48];
        bytes[..8].copy_from_slice(&1_234_567_890_123_u64.to_ne_bytes());
        bytes[8..12].copy_from_slice(&1_u32.to_ne_bytes());
        assert_eq!(edge(&bytes), Edge { at_ns: 1_234_567_890_123, rose: true });
        bytes[8..12].copy_from_slice(&2_u32.to_ne_bytes());
        assert!(!edge(&bytes).rose);
    }

    #[test]
    fn what_is_no_chip_and_no_line_is_refused() {
        let file = descriptor::open_device(c"/dev/null").expect("there");
        let refused = |why: Errno| assert_eq!(why, Errno::NOTTY);
        refused(lines(&file).expect_err("no chip"));
        refused(consumer(&file, 0).expect_err("no chip"));
        refused(line(&file, 0, LineUse::Edges).expect_err("no chip"));
        refused(set(&file, true).expect_err("no line"));
        assert_eq!(take_edge(&file), Err(Errno::NODEV), "its end");
    }
}
