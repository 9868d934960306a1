//! `punctual_options`: how a thread is to run and wait, for a loop and for an executive alike.
//!
//! Turns the caller's numbers into `punctual`'s types; what cannot be is refused in words.

use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::time::Duration;

use punctual::follow::Follower;
use punctual::{Loop, LoopBuilder, Period, Phase, RtThread, WaitPolicy};
use punctual_core::time::Span;
use punctual_core::wait::Spin;
use punctual_core::wait::adaptive::Target;
use punctual_engine::wait_policy::WaitKind;

use crate::failure::Failure;
use crate::ffi;
use crate::follow::Follow;
use crate::learned_bytes::LearnedBytes;
use crate::record::{self, Record, named};

/// As in the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Options {
    size: usize,
    period_num_ns: u64,
    period_den: u64,
    phase_ns: u64,
    margin_ns: u64,
    watchdog_ns: u64,
    grace_ns: u64,
    budget_share: f64,
    late_share: f64,
    cpus: *const i32,
    cpu_count: usize,
    samples: *const c_char,
    follow: *const Follow,
    phase: i32,
    wait: i32,
    cpu: i32,
    priority: i32,
    lock_memory: u32,
    hold_idle_states: u32,
    learn_first: u32,
    pub(crate) strict: u32,
    learned: *const c_void,
    learned_size: usize,
}

const _: () = assert!(size_of::<Options>() == 152);

// SAFETY: `repr(C)`; 15 words and 8 halves of one make 152 bytes, so that there is no padding; any
// pattern of bits is a pointer.
unsafe impl Record for Options {
    const LEAST: usize = 136;
    named!("options");

    fn blank() -> Self {
        Self {
            size: size_of::<Self>(),
            period_num_ns: 0,
            period_den: 1,
            phase_ns: 0,
            margin_ns: 0,
            watchdog_ns: 0,
            grace_ns: 0,
            budget_share: Target::BUDGET,
            late_share: Target::LATE,
            cpus: std::ptr::null(),
            cpu_count: 0,
            samples: std::ptr::null(),
            follow: std::ptr::null(),
            phase: PHASE_QUIET,
            wait: WAIT_ADAPTIVE,
            cpu: -1,
            priority: 90,
            lock_memory: 1,
            hold_idle_states: 1,
            learn_first: 1,
            strict: 0,
            learned: std::ptr::null(),
            learned_size: 0,
        }
    }
}

const PHASE_QUIET: i32 = 0;
const PHASE_ZERO: i32 = 1;
const PHASE_AT: i32 = 2;

const WAIT_ADAPTIVE: i32 = 0;
const WAIT_SLEEP: i32 = 1;
const WAIT_FIXED: i32 = 2;
const WAIT_REARM: i32 = 3;
const WAIT_SPIN: i32 = 4;

/// The latest epoch of an executive: the longest period.
const EPOCH_MAX_NS: u64 = 1 << 62;

/// As many CPUs as a kernel can be built for.
const CPUS_MAX: usize = 8192;

/// The names of a struct's two numbers that make its period.
pub(crate) const PERIOD_FIELDS: &str = "period_num_ns / period_den";

/// A period of `num / den` ns, or why it is none, by the names of the two in the header.
pub(crate) fn period(names: &str, num_ns: u64, den: u64) -> Result<Period, Failure> {
    let bad =
        || format!("a period of {num_ns}/{den} ns ({names}): from 1 ns to 2^62 ns (146 years)");
    Period::ratio(num_ns, den).ok_or_else(|| Failure::invalid(bad()))
}

/// The number of a CPU.
pub(crate) fn number(cpu: i32) -> Result<u32, Failure> {
    u32::try_from(cpu).map_err(|_| Failure::invalid(format!("no CPU is numbered {cpu}")))
}

/// A priority of SCHED_FIFO; which of them can be, `punctual` says.
pub(crate) fn fifo(priority: i32) -> Result<u8, Failure> {
    let bad = || format!("priority must be from 1 to 98, or 0 (got {priority})");
    u8::try_from(priority).map_err(|_| Failure::invalid(bad()))
}

fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The options of a loop, with nothing of the caller's memory in it.
#[derive(Debug)]
pub(crate) struct LoopConfig {
    pub(crate) builder: LoopBuilder,
    pub(crate) period: Period,
    pub(crate) follow: Option<Follower>,
    /// Why what an earlier start learned is of no use here, in words.
    pub(crate) unusable: Option<String>,
}

/// The options of an executive, with nothing of the caller's memory in it.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) thread: RtThread,
    pub(crate) wait: WaitPolicy,
    pub(crate) cpus: Vec<u32>,
    pub(crate) phase: Phase,
    pub(crate) grace: Option<Duration>,
    pub(crate) samples: Option<PathBuf>,
    pub(crate) follow: Option<Follower>,
    /// The bytes that an earlier start learned.
    pub(crate) learned: Option<LearnedBytes>,
}

impl Options {
    /// The options of a loop of one period.
    ///
    /// # Safety
    /// Its pointers are what the header says.
    pub(crate) unsafe fn of_loop(&self) -> Result<LoopConfig, Failure> {
        let period = period(PERIOD_FIELDS, self.period_num_ns, self.period_den)?;
        // SAFETY: as the caller says.
        let config = unsafe { self.config() }?;
        let Config { thread, wait, phase, samples, follow, cpus, learned, .. } = config;
        let (thread, unusable) = match learned.map(|bytes| bytes.known(period)) {
            None => (thread, None),
            Some(Ok(known)) => (thread.wait(wait.learned(known)), None),
            Some(Err(why)) => (thread, Some(why)),
        };
        if !cpus.is_empty() {
            return Err(Failure::invalid("a loop runs on one CPU: set `cpu`, not `cpus`"));
        }
        let builder = Loop::builder(period).phase(phase).thread(thread);
        let builder = match samples {
            Some(file) => builder.record(file),
            None => builder,
        };
        builder.check().map_err(|why| Failure::of(&why))?;
        Ok(LoopConfig { builder, period, follow, unusable })
    }

    /// As an executive, whose tasks have the periods.
    ///
    /// # Safety
    /// Its pointers are what the header says.
    pub(crate) unsafe fn of_executive(&self) -> Result<Config, Failure> {
        if (self.period_num_ns, self.period_den) != (0, 1) {
            return Err(Failure::invalid("an executive's tasks have periods, it has none itself"));
        }
        if self.phase == PHASE_AT && self.phase_ns > EPOCH_MAX_NS {
            let text = format!("phase_ns must be at most 2^62 (got {})", self.phase_ns);
            return Err(Failure::invalid(text));
        }
        // SAFETY: as the caller says.
        unsafe { self.config() }
    }

    /// The bytes that an earlier start learned; `None` where none are given.
    ///
    /// # Safety
    /// Its pointers are what the header says.
    unsafe fn learned_bytes(&self) -> Result<Option<LearnedBytes>, Failure> {
        match (self.learned.is_null(), self.learned_size) {
            (_, 0) => Ok(None),
            (true, _) => Err(Failure::invalid("learned is null, and learned_size is not 0")),
            _ if self.wait != WAIT_ADAPTIVE => {
                let text = format!(
                    "learned is for a wait that learns: set `wait` to PUNCTUAL_WAIT_ADAPTIVE (0), \
                     or learned_size to 0 (wait is {})",
                    self.wait
                );
                Err(Failure::invalid(text))
            }
            // SAFETY: not null, and then as many bytes, says the caller.
            (false, size) => Ok(Some(unsafe { LearnedBytes::read(self.learned, size) })),
        }
    }

    /// All but the period.
    ///
    /// # Safety
    /// Its pointers are what the header says.
    unsafe fn config(&self) -> Result<Config, Failure> {
        let phase = match self.phase {
            PHASE_QUIET => Phase::Quiet,
            PHASE_ZERO => Phase::Zero,
            PHASE_AT => Phase::At(self.phase_ns),
            other => return Err(Failure::invalid(format!("no phase is numbered {other}"))),
        };
        let cpus = match (self.cpus.is_null(), self.cpu_count) {
            (_, 0) => &[],
            (true, _) => return Err(Failure::invalid("cpus is null, and cpu_count is not 0")),
            (_, count) if count > CPUS_MAX => {
                let text = format!("cpu_count must be at most {CPUS_MAX} (got {count})");
                return Err(Failure::invalid(text));
            }
            // SAFETY: not null, and then as many numbers, says the caller.
            (_, count) => unsafe { std::slice::from_raw_parts(self.cpus, count) },
        };
        let cpus: Result<Vec<u32>, Failure> = cpus.iter().map(|&cpu| number(cpu)).collect();
        // SAFETY: null or a text that ends, says the caller.
        let samples = unsafe { ffi::path(self.samples) };
        // SAFETY: not null, and then one that was created, says the caller.
        let follow = (!self.follow.is_null()).then(|| unsafe { ffi::object(self.follow) });
        let follow = follow.transpose()?.map(Follow::share);
        // SAFETY: as the caller says.
        let learned = unsafe { self.learned_bytes() }?;
        let (thread, wait) = (self.thread()?, self.wait()?);
        let grace = (self.grace_ns > 0).then(|| Duration::from_nanos(self.grace_ns));
        Ok(Config { thread, wait, cpus: cpus?, phase, grace, samples, follow, learned })
    }

    /// The scheduling of the thread of a loop or of an executive.
    fn thread(&self) -> Result<RtThread, Failure> {
        let mut thread = match self.cpu {
            -1 => RtThread::any(),
            cpu => RtThread::cpu(number(cpu)?),
        };
        thread = match self.priority {
            0 => thread.other(),
            priority => thread.fifo(fifo(priority)?),
        };
        thread = match self.watchdog_ns {
            0 => thread,
            u64::MAX => thread.without_watchdog(),
            ns => thread.watchdog(Duration::from_nanos(ns)),
        };
        thread = thread.wait(self.wait()?).lock_memory(self.lock_memory != 0);
        thread = thread.hold_idle_states(self.hold_idle_states != 0);
        Ok(if self.strict != 0 { thread.strict() } else { thread })
    }

    fn wait(&self) -> Result<WaitPolicy, Failure> {
        let wait = WaitPolicy::from(self.kind()?).late_share(self.late_share);
        Ok(wait.learn_first(self.learn_first != 0))
    }

    fn kind(&self) -> Result<WaitKind, Failure> {
        Ok(match self.wait {
            WAIT_ADAPTIVE => WaitKind::Adaptive(self.budget_share),
            WAIT_SLEEP => WaitKind::Sleep,
            WAIT_FIXED if self.margin_ns == 0 => WaitKind::Fixed(Spin::FIXED),
            WAIT_FIXED => WaitKind::Fixed(span(self.margin_ns)),
            // None for 0.
            WAIT_REARM => WaitKind::Rearm(Period::from_ns(self.margin_ns)),
            WAIT_SPIN => WaitKind::Spin,
            other => return Err(Failure::invalid(format!("no way to wait is numbered {other}"))),
        })
    }
}

/// Writes the defaults.
#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_options_init(options: *mut Options, size: usize) -> c_int {
    // SAFETY: null or `size` writable bytes, says the header.
    ffi::enter(|| unsafe { record::init(options, size) })
}

#[cfg(test)]
impl Options {
    /// A loop of this period that is quick to create and needs no rights.
    pub(crate) fn plain(&mut self, period_ns: u64) {
        (self.period_num_ns, self.phase, self.wait) = (period_ns, PHASE_ZERO, WAIT_SLEEP);
        (self.priority, self.lock_memory, self.hold_idle_states) = (0, 0, 0);
        self.watchdog_ns = u64::MAX;
    }

    /// With a watchdog.
    pub(crate) fn watched(&mut self, bound_ns: u64) {
        self.watchdog_ns = bound_ns;
    }

    /// At this priority.
    pub(crate) fn prefer(&mut self, priority: i32) {
        self.priority = priority;
    }

    /// On this CPU.
    pub(crate) fn pin(&mut self, cpu: i32) {
        self.cpu = cpu;
    }

    /// With its samples in this file.
    pub(crate) fn record(&mut self, file: &std::ffi::CStr) {
        self.samples = file.as_ptr();
    }

    /// On the time of this clock.
    pub(crate) fn on(&mut self, follow: *const Follow) {
        self.follow = follow;
    }

    /// On several CPUs.
    pub(crate) fn on_cpus(&mut self, cpus: &[i32]) {
        (self.cpus, self.cpu_count) = (cpus.as_ptr(), cpus.len());
    }

    /// With this grace for tasks that are to be terminated.
    pub(crate) fn grant(&mut self, grace_ns: u64) {
        self.grace_ns = grace_ns;
    }

    /// All that the kernel may refuse.
    pub(crate) fn greedy(&mut self) {
        (self.priority, self.lock_memory, self.hold_idle_states) = (90, 1, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors;
    use crate::failure::Words;

    fn words(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options { period_num_ns: 1_000_000, ..Options::blank() };
        change(&mut options);
        // SAFETY: null, or local to the test.
        let read = unsafe { options.of_loop() };
        match read {
            Err(Failure { words: Words::Made(text), .. }) => text,
            _ => String::new(),
        }
    }

    #[test]
    fn every_number_is_looked_at() {
        assert_eq!(words(|_| ()), "");
        assert!(words(|o| o.period_num_ns = 0).contains("0/1 ns (period_num_ns / "));
        assert!(words(|o| o.period_num_ns = (1 << 62) + 1).contains("2^62"));
        assert!(words(|o| o.period_den = 0).contains("/0 ns"));
        assert!(words(|o| o.phase = 3).contains("no phase"));
        assert!(
            words(|o| (o.phase, o.phase_ns) = (PHASE_AT, 1_000_000))
                .contains("phase must be below")
        );
        assert!(words(|o| o.wait = -1).contains("no way to wait"));
        assert!(words(|o| (o.wait, o.margin_ns) = (WAIT_FIXED, u64::MAX)).contains("margin"));
        assert!(words(|o| (o.wait, o.margin_ns) = (WAIT_REARM, 1_000_001)).contains("re-arm"));
        assert!(words(|o| o.budget_share = f64::NAN).contains("budget"));
        assert!(words(|o| o.late_share = 1.0).contains("late"));
        assert!(words(|o| o.cpu = -2).contains("CPU is numbered -2"));
        assert!(
            words(|o| o.priority = 100).contains("100") && !words(|o| o.priority = -1).is_empty()
        );
        assert!(words(|o| o.watchdog_ns = 1).contains("watchdog"));
        assert_eq!(words(|o| (o.wait, o.margin_ns, o.priority) = (WAIT_REARM, 0, 0)), "");
        assert!(words(|o| o.cpu_count = 1).contains("cpus is null"));
        let cpus = [0];
        assert!(words(|o| (o.cpus, o.cpu_count) = (cpus.as_ptr(), 9_000)).contains("(got 9000)"));
        assert!(words(|o| (o.cpus, o.cpu_count) = (cpus.as_ptr(), 1)).contains("one CPU"));
    }

    #[test]
    fn what_was_learned_is_for_waits_that_learn() {
        let bytes = [0_u8; punctual::learned::BYTES];
        let set = |options: &mut Options, size| {
            (options.learned, options.learned_size) = (bytes.as_ptr().cast(), size);
        };
        assert!(words(|o| o.learned_size = 56).contains("learned is null"));
        assert!(
            words(|o| {
                set(o, bytes.len());
                o.wait = WAIT_SLEEP;
            })
            .contains("(wait is 1)")
        );
        let unusable = |size| {
            let mut options = Options { period_num_ns: 1_000_000, ..Options::blank() };
            set(&mut options, size);
            // SAFETY: null, or local to the test.
            let config = unsafe { options.of_loop() }.expect("it learns anew");
            // SAFETY: likewise.
            let executive = unsafe { Options { period_num_ns: 0, ..options }.of_executive() };
            let bytes = executive.expect("it learns anew").learned.expect("given");
            let period = period(PERIOD_FIELDS, 1_000_000, 1).expect("in range");
            assert_eq!(bytes.known(period).err(), config.unusable);
            config.unusable.unwrap_or_default()
        };
        assert!(unusable(bytes.len()).contains("damaged"));
        assert!(unusable(7).contains("and this 7"));
        assert!(unusable(usize::MAX).contains(&format!("and this {}", usize::MAX)));
    }

    #[test]
    fn an_executive_has_an_epoch_and_no_period() {
        // SAFETY: all its pointers are null, or local.
        let read = |options: Options| unsafe { options.of_executive() };
        let epoch = |options: Options| read(options).map(|config| config.phase);
        assert_eq!(epoch(Options::blank()).expect("fine"), Phase::Quiet);
        let at = Options { phase: PHASE_AT, phase_ns: 5_000_000, ..Options::blank() };
        assert_eq!(epoch(at).expect("fine"), Phase::At(5_000_000));
        let cpus = [1, 0];
        let two = Options { cpus: cpus.as_ptr(), cpu_count: 2, ..Options::blank() };
        assert_eq!(read(two).expect("fine").cpus, [1, 0]);
        let none = [0, -1];
        for bad in [
            Options { period_num_ns: 5, ..Options::blank() },
            Options { phase: PHASE_AT, phase_ns: u64::MAX, ..Options::blank() },
            Options { cpus: none.as_ptr(), cpu_count: 2, ..Options::blank() },
        ] {
            assert_eq!(epoch(bad).expect_err("bad").errno, libc::EINVAL);
        }
    }

    #[test]
    fn a_panic_inside_is_an_error_outside() {
        ffi::tests::panic_next();
        // SAFETY: null is allowed.
        let answer = unsafe { punctual_options_init(std::ptr::null_mut(), 0) };
        assert_eq!(answer, -libc::ENOTRECOVERABLE);
        assert!(errors::tests::last().contains("fault"));
    }
}
