//! An emulator of x86-64's timed pauses for tests: TPAUSE and MWAITX are replaced by INT3 in the
//! code and played by the handler of SIGTRAP, MONITORX by a NOP. (Undefined instructions would do,
//! but go to the hypervisor on some machines, which takes longer than a pause.)
//!
//! For the tests of spins on machines without these instructions, or whose own would decide the
//! outcome. It stands here because it writes to code and to a signal's context; no program of the
//! project installs it. The process must have one thread that pauses.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::timed_pause::TimedPause;
use crate::{Errno, cycles};

/// The behaviour of the processor that is played; times in the counter's ticks.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// A pause ends so much after its deadline.
    pub late: u64,
    /// The kernel's limit (`umwait_control/max_time`): a longer pause ends then, by the carry flag.
    pub limit: u64,
    /// Each pause of this number is ended early, as by an interrupt: a third into it. 0 for none.
    pub early: u64,
    /// A hypervisor intercepts it: it returns after what the exit takes, whatever its deadline.
    pub intercepted: bool,
}

/// A processor that keeps to every deadline.
pub const EXACT: Played = Played { late: 0, limit: u64::MAX, early: 0, intercepted: false };

static LATE: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static EARLY: AtomicU64 = AtomicU64::new(0);
static INTERCEPTED: AtomicBool = AtomicBool::new(false);
/// The time that the signal takes before the handler begins, and after it ends.
static ENTRY: AtomicU64 = AtomicU64::new(0);
static EXIT: AtomicU64 = AtomicU64::new(0);
/// The handler's last look at the counter.
static LOOKED: AtomicU64 = AtomicU64::new(0);
static PAUSES: AtomicU64 = AtomicU64::new(0);
static LIMITED: AtomicU64 = AtomicU64::new(0);
/// Where the instructions are.
static PLACES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The instructions as [`TimedPause::until`] has them: TPAUSE and MWAITX, whose first byte becomes
/// INT3.
const CODES: [&[u8]; 2] = [&[0x66, 0x0f, 0xae, 0xf1], &[0x0f, 0x01, 0xfb]];
const INT3: u8 = 0xcc;
const TPAUSE: usize = 0;
const MONITORX: [u8; 3] = [0x0f, 0x01, 0xfa];
const NOP: [u8; 3] = [0x0f, 0x1f, 0x00];
/// Bytes of code in which all are found.
const CODE: usize = 400;
const CARRY: i64 = 1;

/// Plays the processor from now on, whatever this one has.
///
/// # Errors
///
/// The kernel's, where it lets no code be written.
///
/// # Panics
///
/// Where the code lacks one of the instructions.
///
/// # Real-time: setup only
pub fn install() -> Result<(), Errno> {
    let code = TimedPause::until as fn(TimedPause, u64) as usize;
    let page = code & !0xfff;
    let length = code + CODE - page;
    let write = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: the pages of a function of this program, which stay readable and executable.
    if unsafe { libc::mprotect(page as *mut c_void, length, write) } != 0 {
        return Err(Errno::last());
    }
    // SAFETY: code of this program, which may be read and written; nothing runs it now.
    let code = unsafe { core::slice::from_raw_parts_mut(code as *mut u8, CODE) };
    let find = |code: &[u8], bytes: &[u8]| {
        let at = code.windows(bytes.len()).position(|window| window == bytes);
        at.expect("each instruction in the code")
    };
    let at = find(code, &MONITORX);
    code[at..at + NOP.len()].copy_from_slice(&NOP);
    for (bytes, place) in CODES.iter().zip(&PLACES) {
        let at = find(code, bytes);
        code[at] = INT3;
        place.store(code.as_ptr() as u64 + at as u64, Ordering::SeqCst);
    }
    let handler = on_trap as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut c_void);
    // SAFETY: an all-zero sigaction is valid: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO;
    // SAFETY: the handler lives as long as the program; the old action is not wanted.
    if unsafe { libc::sigaction(libc::SIGTRAP, &raw const action, core::ptr::null_mut()) } != 0 {
        return Err(Errno::last());
    }
    measure();
    Ok(())
}

/// The least time that a signal takes: so much earlier the handler is to end. By half more, so that
/// one that takes longer seldom makes a pause late.
fn measure() {
    let (mut entry, mut exit) = (u64::MAX, u64::MAX);
    for _ in 0..2_000 {
        let before = cycles::ordered();
        TimedPause::TpauseC01.until(0);
        let looked = LOOKED.load(Ordering::Relaxed);
        entry = entry.min(looked.wrapping_sub(before));
        exit = exit.min(cycles::ordered().wrapping_sub(looked));
    }
    ENTRY.store(entry, Ordering::Relaxed);
    EXIT.store(exit + exit / 2, Ordering::Relaxed);
}

/// Behaves so from now on, and counts from zero.
///
/// # Real-time: setup only
pub fn play(played: Played) {
    LATE.store(played.late, Ordering::Relaxed);
    LIMIT.store(played.limit, Ordering::Relaxed);
    EARLY.store(played.early, Ordering::Relaxed);
    INTERCEPTED.store(played.intercepted, Ordering::Relaxed);
    PAUSES.store(0, Ordering::Relaxed);
    LIMITED.store(0, Ordering::Relaxed);
}

/// Counts since [`play`]: pauses, and those that the limit ended.
///
/// # Real-time: setup only
pub fn executed() -> (u64, u64) {
    (PAUSES.load(Ordering::Relaxed), LIMITED.load(Ordering::Relaxed))
}

extern "C" fn on_trap(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let entered = cycles::unordered();
    // SAFETY: the kernel hands a handler with SA_SIGINFO the interrupted thread's context, which
    // nothing else uses meanwhile.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let register = |at: libc::c_int| registers[at as usize] as u64;
    // After the INT3.
    let rip = register(libc::REG_RIP) - 1;
    let Some(which) = PLACES.iter().position(|place| place.load(Ordering::Relaxed) == rip) else {
        // Another breakpoint: none of ours.
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    };
    let low = |at| register(at) & 0xffff_ffff;
    // What the processor takes as its own time is without the signal's.
    let began = entered.saturating_sub(ENTRY.load(Ordering::Relaxed));
    let (deadline, limit) = match which {
        TPAUSE => {
            assert!(low(libc::REG_RCX) <= 1, "reserved bits of TPAUSE's state");
            (low(libc::REG_RDX) << 32 | low(libc::REG_RAX), LIMIT.load(Ordering::Relaxed))
        }
        _ => {
            assert!(low(libc::REG_RCX) == 2, "MWAITX without its timer");
            (began.saturating_add(low(libc::REG_RBX)), u64::MAX)
        }
    };
    registers[libc::REG_RIP as usize] = (rip + CODES[which].len() as u64) as i64;
    registers[libc::REG_EFL as usize] &= !CARRY;
    if deadline > began && pause(began, deadline, limit) {
        registers[libc::REG_EFL as usize] |= CARRY;
    }
    LOOKED.store(cycles::unordered(), Ordering::Relaxed);
}

/// Pauses as it plays; whether the limit ended it.
fn pause(began: u64, deadline: u64, limit: u64) -> bool {
    let pauses = PAUSES.fetch_add(1, Ordering::Relaxed) + 1;
    if INTERCEPTED.load(Ordering::Relaxed) {
        return false;
    }
    let early = EARLY.load(Ordering::Relaxed);
    let limited = deadline - began > limit;
    let mut end = deadline + LATE.load(Ordering::Relaxed);
    if limited {
        LIMITED.fetch_add(1, Ordering::Relaxed);
        end = began + limit;
    }
    if early > 0 && pauses.is_multiple_of(early) {
        end = end.min(began + (deadline - began) / 3);
    }
    let end = end.saturating_sub(EXIT.load(Ordering::Relaxed));
    while cycles::unordered() < end {
        cycles::relax();
    }
    limited
}
