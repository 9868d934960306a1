//! The registers of the RP2040 that are used here, by the chapter of its datasheet.
//!
//! The only unsafe code, beside the place of the boot loader in the flash: a [`Register`] is one of
//! the constants below, so that its address is one of a register of 32 bits that may be read and
//! written at any time.

/// The code that the RP2040's ROM loads first, for the flash of the Pico and most of its copies.
#[used]
#[unsafe(link_section = ".boot2")]
#[unsafe(no_mangle)]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;

/// A register of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register(usize);

impl Register {
    /// Its value.
    pub(crate) fn read(self) -> u32 {
        // SAFETY: a register's address, aligned, mapped for ever; see above.
        unsafe { core::ptr::read_volatile(self.0 as *const u32) }
    }

    /// Sets it.
    pub(crate) fn write(self, value: u32) {
        // SAFETY: as above.
        unsafe { core::ptr::write_volatile(self.0 as *mut u32, value) }
    }

    /// Waits until all of these bits are set.
    pub(crate) fn await_set(self, bits: u32) {
        while self.read() & bits != bits {}
    }

    /// The alias by which bits that are written are cleared (2.1.2, atomic register access).
    const fn clearing(self) -> Self {
        Self(self.0 + 0x3000)
    }
}

/// 2.14 Resets: the blocks that are taken out of reset.
pub(crate) const RESETS_CLEAR: Register = Register(0x4000_c000).clearing();
pub(crate) const RESETS_DONE: Register = Register(0x4000_c008);
/// IO_BANK0, PADS_BANK0, PLL_SYS, TIMER, UART0, UART1.
pub(crate) const RESETS_USED: u32 = 1 << 5 | 1 << 8 | 1 << 12 | 1 << 21 | 1 << 22 | 1 << 23;

/// 2.16 Crystal oscillator.
pub(crate) const XOSC_CTRL: Register = Register(0x4002_4000);
pub(crate) const XOSC_STATUS: Register = Register(0x4002_4004);
pub(crate) const XOSC_STARTUP: Register = Register(0x4002_400c);

/// 2.18 PLL of the system clock.
pub(crate) const PLL_CS: Register = Register(0x4002_8000);
pub(crate) const PLL_PWR_CLEAR: Register = Register(0x4002_8004).clearing();
pub(crate) const PLL_FBDIV: Register = Register(0x4002_8008);
pub(crate) const PLL_PRIM: Register = Register(0x4002_800c);

/// 2.15 Clocks.
pub(crate) const CLK_REF_CTRL: Register = Register(0x4000_8030);
pub(crate) const CLK_REF_SELECTED: Register = Register(0x4000_8038);
pub(crate) const CLK_SYS_CTRL: Register = Register(0x4000_803c);
pub(crate) const CLK_SYS_SELECTED: Register = Register(0x4000_8044);
pub(crate) const CLK_PERI_CTRL: Register = Register(0x4000_8048);

/// 2.17 Ring oscillator: a bit that is random enough to name a session.
pub(crate) const ROSC_RANDOM: Register = Register(0x4006_001c);

/// 2.19 The function of a pin, and its pad.
pub(crate) const fn pin_control(pin: usize) -> Register {
    assert!(pin < 30);
    Register(0x4001_4004 + 8 * pin)
}
pub(crate) const fn pad(pin: usize) -> Register {
    assert!(pin < 30);
    Register(0x4001_c004 + 4 * pin)
}

/// 2.3.1 Single-cycle IO.
pub(crate) const PINS_IN: Register = Register(0xd000_0004);
pub(crate) const PINS_HIGH: Register = Register(0xd000_0014);
pub(crate) const PINS_LOW: Register = Register(0xd000_0018);
pub(crate) const PINS_OUTPUT: Register = Register(0xd000_0024);

/// The counter of the processor (ARMv6-M, B3.3).
pub(crate) const SYST_CSR: Register = Register(0xe000_e010);
pub(crate) const SYST_RVR: Register = Register(0xe000_e014);
pub(crate) const SYST_CVR: Register = Register(0xe000_e018);

/// 4.2 A UART, which is a PL011.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UartRegisters {
    pub(crate) data: Register,
    pub(crate) flags: Register,
    pub(crate) whole_divisor: Register,
    pub(crate) part_divisor: Register,
    pub(crate) line: Register,
    pub(crate) control: Register,
}

const fn uart(base: usize) -> UartRegisters {
    UartRegisters {
        data: Register(base),
        flags: Register(base + 0x18),
        whole_divisor: Register(base + 0x24),
        part_divisor: Register(base + 0x28),
        line: Register(base + 0x2c),
        control: Register(base + 0x30),
    }
}

pub(crate) const UART0: UartRegisters = uart(0x4003_4000);
pub(crate) const UART1: UartRegisters = uart(0x4003_8000);
