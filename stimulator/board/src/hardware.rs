//! The parts of the board: its clock, two serial lines, two pins. Nothing here decides anything.

use core::fmt;

use crate::registers::{
    CLK_PERI_CTRL, CLK_REF_CTRL, CLK_REF_SELECTED, CLK_SYS_CTRL, CLK_SYS_SELECTED, PINS_HIGH,
    PINS_IN, PINS_LOW, PINS_OUTPUT, PLL_CS, PLL_FBDIV, PLL_PRIM, PLL_PWR_CLEAR, RESETS_CLEAR,
    RESETS_DONE, RESETS_USED, ROSC_RANDOM, SYST_CSR, SYST_CVR, SYST_RVR, UartRegisters, XOSC_CTRL,
    XOSC_STARTUP, XOSC_STATUS, pad, pin_control,
};

/// The clock of processor and stamps: 12 MHz · 125 / 6 / 2.
pub(crate) const TICKS_PER_US: u32 = 125;

/// The pin that goes high with a stimulus, and the one that answers.
const STIMULUS_PIN: usize = 2;
const ANSWER_PIN: usize = 3;

/// Starts clocks and pins; once, before anything else.
pub(crate) fn start() {
    // The crystal, which takes about 1 ms (47 · 256 of its cycles).
    XOSC_CTRL.write(0xaa0);
    XOSC_STARTUP.write(47);
    XOSC_CTRL.write(0xfab << 12 | 0xaa0);
    XOSC_STATUS.await_set(1 << 31);
    CLK_REF_CTRL.write(2);
    CLK_REF_SELECTED.await_set(1 << 2);
    // The system clock runs on the reference while the PLL is set up.
    CLK_SYS_CTRL.write(0);
    CLK_SYS_SELECTED.await_set(1);
    RESETS_CLEAR.write(RESETS_USED);
    RESETS_DONE.await_set(RESETS_USED & !(1 << 22 | 1 << 23));
    PLL_CS.write(1);
    PLL_FBDIV.write(125);
    PLL_PWR_CLEAR.write(1 << 5 | 1);
    PLL_CS.await_set(1 << 31);
    PLL_PRIM.write(6 << 16 | 2 << 12);
    PLL_PWR_CLEAR.write(1 << 3);
    CLK_SYS_CTRL.write(1);
    CLK_SYS_SELECTED.await_set(1 << 1);
    // UARTs by the system clock; only then do they leave their reset.
    CLK_PERI_CTRL.write(1 << 11);
    RESETS_DONE.await_set(RESETS_USED);
    for pin in [0, 1, 4, 5] {
        pin_control(pin).write(2);
    }
    for pin in [STIMULUS_PIN, ANSWER_PIN] {
        pin_control(pin).write(5);
    }
    // The answer's pad: input, Schmitt trigger, pulled down.
    pad(ANSWER_PIN).write(1 << 6 | 1 << 2 | 1 << 1);
    PINS_LOW.write(1 << STIMULUS_PIN);
    PINS_OUTPUT.write(1 << STIMULUS_PIN);
}

/// Sets the stimulus pin high or low.
pub(crate) fn stimulate(is_high: bool) {
    let register = if is_high { PINS_HIGH } else { PINS_LOW };
    register.write(1 << STIMULUS_PIN);
}

/// Returns true where the answer pin is high.
pub(crate) fn is_answered() -> bool {
    PINS_IN.read() & 1 << ANSWER_PIN != 0
}

/// 64 bits of the ring oscillator, which name a session.
pub(crate) fn random() -> u64 {
    (0..64).fold(0, |bits, _| {
        // Bits that follow each other at once are alike.
        let spread = (0..16).fold(0, |sum, _| sum ^ ROSC_RANDOM.read());
        bits << 1 | u64::from(spread & 1)
    })
}

/// Ticks of the processor since it was started. Has to be asked every 134 ms at least.
#[derive(Debug)]
pub(crate) struct Ticks {
    last: u32,
    ticks: u64,
}

impl Ticks {
    const MOST: u32 = 0xff_ffff;

    /// Starts the counter.
    pub(crate) fn start() -> Self {
        SYST_RVR.write(Self::MOST);
        SYST_CVR.write(0);
        SYST_CSR.write(1 << 2 | 1);
        Self { last: 0, ticks: 0 }
    }

    /// Now.
    pub(crate) fn now(&mut self) -> u64 {
        // It counts down.
        let count = Self::MOST - (SYST_CVR.read() & Self::MOST);
        self.ticks += u64::from(count.wrapping_sub(self.last) & Self::MOST);
        self.last = count;
        self.ticks
    }
}

/// A serial line, 8 bits without parity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uart(UartRegisters);

impl Uart {
    /// Starts it at this speed.
    pub(crate) fn start(registers: UartRegisters, baud: u32) -> Self {
        // Sixty-fourths of the divisor, rounded: clock / 16 / baud.
        let divisor = (TICKS_PER_US * 1_000_000 * 8 / baud).div_ceil(2);
        registers.whole_divisor.write(divisor / 64);
        registers.part_divisor.write(divisor % 64);
        registers.line.write(3 << 5 | 1 << 4);
        registers.control.write(1 << 9 | 1 << 8 | 1);
        Self(registers)
    }

    /// A byte that came.
    pub(crate) fn read(self) -> Option<u8> {
        let is_empty = self.0.flags.read() & 1 << 4 != 0;
        (!is_empty).then(|| self.0.data.read() as u8)
    }

    /// Returns true where nothing waits to be sent: then 32 bytes can be written at once.
    pub(crate) fn is_idle(self) -> bool {
        self.0.flags.read() & 1 << 7 != 0
    }

    /// Sends bytes; waits where there is no room.
    pub(crate) fn write(self, bytes: &[u8]) {
        for byte in bytes {
            while self.0.flags.read() & 1 << 5 != 0 {}
            self.0.data.write(u32::from(*byte));
        }
    }
}

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}
