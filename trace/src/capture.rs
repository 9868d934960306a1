//! Captures: files of events that perf, ftrace, trace-cmd, wprof or this program wrote.
//!
//! Pure: readers take any source that can be read, and give events one by one, in the order of time
//! as far as the capture has one; memory is bounded, whatever the length. Each states its format,
//! its clock, and the evidence that it lacks. Damage ends a capture or is counted; it is never an
//! event.

mod bytes;
mod kept;
mod lines;
pub mod ndjson;
mod open;
pub mod perf_data;
pub mod text;
pub mod trace_dat;
mod tracing_data;
pub mod wprof;

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use thiserror::Error;

use crate::decode::{RECIPES, Recipe};
use crate::event::{TaskName, Tid, TraceEvent, TraceKind};
use crate::symbols::{Symbols, SymbolsError};
use crate::wanted::{WANTED, WantedEvent, WantedOn};

pub use kept::{KeptThread, KeptWakes, KeptWindow};
pub use open::{detect, open};

/// Most names of threads that are kept from a capture's head.
pub const THREAD_NAMES_MAX: usize = 1 << 16;

/// Events that a reader holds back, so that those of slower CPUs come in their order: 40 MB.
pub const EVENTS_HELD: usize = 1 << 18;

/// The format of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureFormat {
    /// `perf.data`, of `perf record` or of this program.
    PerfData,
    /// The output of `perf script`.
    PerfScript,
    /// `trace` and `trace_pipe` of tracefs, or the output of `trace-cmd report`.
    FtraceText,
    /// `trace.dat` of trace-cmd.
    TraceDat,
    /// NDJSON of wprof.
    Wprof,
    /// NDJSON of this program.
    Ndjson,
}

impl CaptureFormat {
    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerfData => "perf.data",
            Self::PerfScript => "perf script",
            Self::FtraceText => "ftrace text",
            Self::TraceDat => "trace.dat",
            Self::Wprof => "wprof NDJSON",
            Self::Ndjson => "punctual NDJSON",
        }
    }
}

/// The clock of a capture's times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CaptureClock {
    /// CLOCK_MONOTONIC: that of the timers' expiries.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW.
    MonotonicRaw,
    /// Another one, by the name that the capture has for it.
    Named(Box<str>),
    /// The capture does not say.
    #[default]
    Unknown,
}

impl fmt::Display for CaptureClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Monotonic => out.write_str("CLOCK_MONOTONIC"),
            Self::MonotonicRaw => out.write_str("CLOCK_MONOTONIC_RAW"),
            Self::Named(name) => out.write_str(name),
            Self::Unknown => out.write_str("an unknown clock"),
        }
    }
}

impl CaptureClock {
    /// From the name that tracefs has for it in `trace_clock`.
    #[must_use]
    pub fn of_ftrace(name: &str) -> Self {
        match name {
            "mono" => Self::Monotonic,
            "mono_raw" => Self::MonotonicRaw,
            "" | "unknown" => Self::Unknown,
            other_name => Self::named(other_name),
        }
    }

    /// By a name that a file has for it: as it is shown, in one line and of 64 characters at most.
    fn named(name: &str) -> Self {
        Self::Named(plain(name).into_boxed_str())
    }
}

/// A text out of a file, in one line and of 64 characters at most; control characters are replaced.
fn plain(text: &str) -> String {
    const MOST: usize = 64;
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(MOST).map(plain).collect()
}

/// Counts of a capture that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CaptureCounts {
    /// Events that were given.
    pub events: u64,
    /// Records that the recorder lost, as far as it counted them.
    pub lost: u64,
    /// Records or lines of no interest.
    pub skipped: u64,
    /// Records or lines that should be an event and are none.
    pub undecodable: u64,
    /// Events that were given after a later one.
    pub out_of_order: u64,
}

/// The kernel that was recorded, as `uname` names it; `None` where that is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KernelName {
    /// Its release, `6.18.44`.
    pub release: Option<Box<str>>,
    /// The architecture of its machine, `x86_64`.
    pub machine: Option<Box<str>>,
}

impl KernelName {
    /// From `Linux name 6.18.0 x86_64`, as trace-cmd writes it.
    fn of_uname(text: &str) -> Self {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let word = |place: Option<usize>| place.and_then(|place| words.get(place).copied());
        let machine = word(words.len().checked_sub(1));
        let release = word(words.len().checked_sub(2).filter(|place| *place > 1));
        let kept = |word: &str| plain(word).into_boxed_str();
        Self { release: release.map(kept), machine: machine.map(kept) }
    }

    /// Returns true where it is known to be one of x86: `x86_64`, `i686`.
    fn is_x86(&self) -> bool {
        matches!(self.machine.as_deref(), Some("x86_64" | "i386" | "i486" | "i586" | "i686"))
    }
}

/// The facts of a capture: those in its head, and those that were found while it was read.
#[derive(Debug, Clone)]
pub struct CaptureFacts {
    format: CaptureFormat,
    clock: CaptureClock,
    time_step_ns: u64,
    symbols: Symbols,
    threads: Vec<TaskName>,
    kernel: KernelName,
    /// Processes with their threads.
    processes: BTreeSet<(Tid, Tid)>,
    /// True for each event that the capture has, by its place in the table of those that are
    /// understood.
    recorded: [bool; RECIPES.len()],
    has_chains: bool,
    has_slack: bool,
    has_context: bool,
    is_cut_short: bool,
    counts: CaptureCounts,
    first_problem: Option<Box<str>>,
    note: Option<Box<str>>,
    kept: KeptWakes,
}

impl CaptureFacts {
    fn new(format: CaptureFormat) -> Self {
        Self {
            format,
            clock: CaptureClock::Unknown,
            time_step_ns: 1,
            symbols: Symbols::default(),
            threads: Vec::new(),
            kernel: KernelName::default(),
            processes: BTreeSet::new(),
            recorded: [false; RECIPES.len()],
            has_chains: false,
            has_slack: true,
            has_context: true,
            is_cut_short: false,
            counts: CaptureCounts::default(),
            first_problem: None,
            note: None,
            kept: KeptWakes::default(),
        }
    }

    /// Its format.
    #[must_use]
    pub const fn format(&self) -> CaptureFormat {
        self.format
    }

    /// The clock of its times.
    #[must_use]
    pub const fn clock(&self) -> &CaptureClock {
        &self.clock
    }

    /// The smallest difference of two times that it can tell, ns.
    #[must_use]
    pub const fn time_step_ns(&self) -> u64 {
        self.time_step_ns
    }

    /// Its functions: those that it brings, and the names that it has instead of addresses.
    #[must_use]
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The names that threads had when it began.
    #[must_use]
    pub fn threads(&self) -> &[TaskName] {
        &self.threads
    }

    /// The kernel that was recorded.
    #[must_use]
    pub const fn kernel(&self) -> &KernelName {
        &self.kernel
    }

    /// Returns true where it has the processes of its threads; false for one that this program
    /// kept, which has them in its note.
    #[must_use]
    pub fn has_processes(&self) -> bool {
        self.note.is_none() && !self.processes.is_empty()
    }

    /// Threads with their processes, as far as it has them.
    pub fn processes(&self) -> impl Iterator<Item = (Tid, Tid)> + '_ {
        let processes = self.processes.iter().filter(|_| self.note.is_none());
        processes.map(|(pid, tid)| (*tid, *pid))
    }

    /// The threads that belonged to this process at any time, as far as it has them.
    pub fn threads_of(&self, pid: Tid) -> impl Iterator<Item = Tid> + '_ {
        let of_pid = self.processes.range((pid, 0)..=(pid, Tid::MAX));
        of_pid.map(|(_, tid)| *tid).filter(|_| self.note.is_none())
    }

    /// Counts up to now.
    #[must_use]
    pub const fn counts(&self) -> CaptureCounts {
        self.counts
    }

    /// Returns true where it ends within a record: its recorder was ended, or it was copied in
    /// part.
    #[must_use]
    pub const fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// The first record or line that should be an event and is none, in words; `None` where each is
    /// one.
    #[must_use]
    pub fn first_problem(&self) -> Option<&str> {
        self.first_problem.as_deref()
    }

    /// The text that this program wrote beside the events of a `perf.data`; `None` where there is
    /// none.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The late wakes that this program cut it down to, as its NDJSON and its text have them;
    /// without a window where it has all of what passed.
    #[must_use]
    pub const fn kept(&self) -> &KeptWakes {
        &self.kept
    }

    /// Evidence that it lacks. Whole once the capture was read: text does not show beforehand which
    /// events are in it.
    #[must_use]
    pub fn untold(&self) -> Vec<Untold> {
        let mut untold = Vec::new();
        if self.clock != CaptureClock::Monotonic {
            untold.push(Untold::Clock(self.clock.clone()));
        }
        if self.time_step_ns > 1 {
            untold.push(Untold::TimeStep(self.time_step_ns));
        }
        if !self.has_chains {
            untold.push(Untold::Chains);
        }
        if !self.has_slack {
            untold.push(Untold::TimerSlack);
        }
        if !self.has_context {
            untold.push(Untold::Context);
        }
        if self.symbols.is_empty() && self.symbols.is_hidden() {
            untold.push(Untold::Symbols);
        }
        let mut last = "";
        // By the end of the timer's interrupt all events show what an event of the small set does.
        let is_needed =
            |row: &&WantedEvent| row.filter.is_some() || !self.has_recorded("local_timer_exit");
        let wanted = WANTED.iter().filter(|row| row.on == WantedOn::Everywhere && !row.is_extra);
        for wanted in wanted.filter(is_needed) {
            // Both say the same; where one is missing the other is used.
            let also = if wanted.name == "sched_waking" { "sched_wakeup" } else { wanted.name };
            let is_shown = |name: &str| self.has_recorded(name);
            // perf.data names what was selected: on x86 that of AArch64 shows nothing.
            let may_be_another = wanted.system != "irq_vectors" || !self.kernel.is_x86();
            let is_recorded = is_shown(wanted.name)
                || is_shown(also)
                || may_be_another && wanted.is_shown_by_another(is_shown);
            if !is_recorded && wanted.name != last {
                untold.push(Untold::Event(wanted));
            }
            last = wanted.name;
        }
        untold
    }

    fn set_clock(&mut self, clock: CaptureClock) {
        self.clock = clock;
    }

    const fn set_format(&mut self, format: CaptureFormat) {
        self.format = format;
    }

    /// Takes in that a time had this step, ns: the largest counts.
    fn see_time_step(&mut self, step_ns: u64) {
        self.time_step_ns = self.time_step_ns.max(step_ns);
    }

    const fn set_has_no_context(&mut self) {
        self.has_context = false;
    }

    const fn set_has_context(&mut self) {
        self.has_context = true;
    }

    /// Returns true where the capture has an event of this name; no two systems have the same.
    fn has_recorded(&self, name: &str) -> bool {
        RECIPES.iter().zip(self.recorded).any(|(recipe, is_there)| is_there && recipe.name == name)
    }

    /// Returns true for an event that says again what others of the capture say: `sched_wakeup`
    /// counts as long as there was no `sched_waking`.
    fn is_duplicate_waking(&self, recipe: &Recipe) -> bool {
        recipe.is_wakeup() && self.has_recorded("sched_waking")
    }

    fn set_symbols(&mut self, symbols: Symbols) {
        self.symbols = symbols;
    }

    const fn symbols_mut(&mut self) -> &mut Symbols {
        &mut self.symbols
    }

    const fn counts_mut(&mut self) -> &mut CaptureCounts {
        &mut self.counts
    }

    const fn set_cut_short(&mut self) {
        self.is_cut_short = true;
    }

    pub(crate) fn set_note(&mut self, note: String) {
        self.note = Some(note.into_boxed_str());
    }

    const fn kept_mut(&mut self) -> &mut KeptWakes {
        &mut self.kept
    }

    const fn set_has_chains(&mut self) {
        self.has_chains = true;
    }

    const fn set_has_no_slack(&mut self) {
        self.has_slack = false;
    }

    /// The capture has this event.
    fn record(&mut self, system: &str, name: &str) {
        if let Some(place) = recipe_place(system, name) {
            self.record_place(place);
        }
    }

    fn record_place(&mut self, place: usize) {
        if let Some(is_there) = self.recorded.get_mut(place) {
            *is_there = true;
        }
    }

    fn name_thread(&mut self, task: TaskName) {
        if self.threads.len() < THREAD_NAMES_MAX {
            self.threads.push(task);
        }
    }

    fn set_kernel(&mut self, kernel: KernelName) {
        self.kernel = kernel;
    }

    /// A thread belongs to a process. The idle threads have none, and a thread that is being ended
    /// has lost it (-1).
    fn see_process(&mut self, tid: Tid, pid: Tid) {
        let is_none = |number: Tid| number == 0 || i32::try_from(number).is_err();
        let is_room = self.processes.len() < THREAD_NAMES_MAX;
        if is_room && !is_none(tid) && !is_none(pid) {
            self.processes.insert((pid, tid));
        }
    }

    /// Counts a record that should be an event and is none; `why` is called for the first of them.
    fn refuse(&mut self, why: impl FnOnce() -> String) {
        self.counts.undecodable += 1;
        if self.first_problem.is_none() {
            self.first_problem = Some(why().into_boxed_str());
        }
    }

    const fn give(&mut self, event: &TraceEvent) {
        self.counts.events += 1;
        if let TraceKind::Lost { count } = event.kind {
            self.counts.lost = self.counts.lost.saturating_add(count);
        }
    }
}

/// The place of an event in the table of those that are understood.
fn recipe_place(system: &str, name: &str) -> Option<usize> {
    RECIPES.iter().position(|recipe| recipe.system == system && recipe.name == name)
}

/// Evidence that a capture lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Untold {
    /// Its times are in another clock than the timers' expiries, or in one that it does not name:
    /// lateness is known but for a constant, which is to be estimated.
    Clock(CaptureClock),
    /// Its times are this coarse, ns.
    TimeStep(u64),
    /// It has no call chains.
    Chains,
    /// It has no earliest expiry: timer slack counts as lateness, or not at all.
    TimerSlack,
    /// It does not say in which context an event was recorded: whether a reschedule was wanted is
    /// unknown.
    Context,
    /// Its functions have no names, for the kernel hid its addresses.
    Symbols,
    /// It lacks an event.
    Event(&'static WantedEvent),
}

impl fmt::Display for Untold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock(clock) => {
                write!(out, "times are in {clock}, expiries in CLOCK_MONOTONIC")
            }
            Self::TimeStep(step_ns) => write!(out, "times are in steps of {step_ns} ns"),
            Self::Chains => out.write_str("no call chains: what interrupts off is not named"),
            Self::TimerSlack => out.write_str("no earliest expiry: timer slack is unknown"),
            Self::Context => out.write_str("no context flags: a thread passed over looks ready"),
            Self::Symbols => out.write_str("functions have no names: the kernel hid its addresses"),
            Self::Event(wanted) => {
                write!(out, "no {}:{}: {}", wanted.system, wanted.name, wanted.lost_without)
            }
        }
    }
}

/// Reads a capture.
pub trait CaptureReader {
    /// The next event; nothing at the end.
    ///
    /// # Errors
    /// Bytes that cannot be read, or that nothing can follow.
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError>;

    /// The facts of the capture up to now.
    fn facts(&self) -> &CaptureFacts;
}

/// The reason for which a capture cannot be read, or not further.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The system refused.
    #[error("reading failed: {0}")]
    Read(Box<str>),
    /// It ends too early.
    #[error("ends at byte {at}, within its {part}")]
    Ended {
        /// The byte, from the begin of the file.
        at: u64,
        /// The part of the file that ends there.
        part: &'static str,
    },
    /// Something in it is impossible.
    #[error("byte {at}: {why}")]
    Damaged {
        /// The byte, from the begin of the file.
        at: u64,
        /// The fault in words: the value, and the accepted ones.
        why: Box<str>,
    },
    /// It is in a form that is not read.
    #[error("{form}; {way_out}")]
    Unsupported {
        /// The form, in words.
        form: Box<str>,
        /// The way out, in words for the user.
        way_out: &'static str,
    },
}

impl CaptureError {
    fn damaged(at: u64, why: impl fmt::Display) -> Self {
        // What is wrong may repeat what the capture says.
        let why = why.to_string().replace(['\n', '\r'], " ");
        Self::Damaged { at, why: why.into_boxed_str() }
    }
}

impl From<io::Error> for CaptureError {
    fn from(why: io::Error) -> Self {
        Self::Read(why.to_string().replace(['\n', '\r'], " ").into_boxed_str())
    }
}

impl From<SymbolsError> for CaptureError {
    fn from(why: SymbolsError) -> Self {
        Self::damaged(0, why)
    }
}

#[cfg(test)]
mod tests {
    use super::{CaptureClock, CaptureError, CaptureFacts, CaptureFormat, KernelName, Untold};

    #[test]
    fn what_is_missing_is_said_once() {
        let mut facts = CaptureFacts::new(CaptureFormat::FtraceText);
        let missing = |facts: &CaptureFacts, name| {
            let is_it = |untold: &&Untold| matches!(untold, Untold::Event(row) if row.name == name);
            facts.untold().iter().filter(is_it).count()
        };
        assert_eq!(missing(&facts, "local_timer_entry"), 1);
        assert_eq!(missing(&facts, "sched_waking"), 1);
        assert_eq!(missing(&facts, "hrtimer_rearm"), 0, "older kernels have none");
        assert_eq!(missing(&facts, "call_function_exit"), 1);
        assert_eq!(missing(&facts, "ipi_exit"), 0, "x86 has none");
        assert_eq!(missing(&facts, "cpu_frequency"), 0, "a guest has none");
        facts.record("sched", "sched_wakeup");
        facts.record("kvm", "kvm_exit");
        assert_eq!(missing(&facts, "sched_waking"), 0);
        facts.record("ipi", "ipi_exit");
        assert_eq!(missing(&facts, "call_function_exit"), 0, "that of AArch64 shows it");
        assert_eq!(missing(&facts, "thermal_apic_exit"), 0);
        let x86 = KernelName::of_uname("Linux box 6.18.0 x86_64");
        let on_x86 = CaptureFacts { kernel: x86, ..facts.clone() };
        assert_eq!(missing(&on_x86, "call_function_exit"), 1, "a selected event shows nothing");
        assert_eq!(missing(&facts, "call_function_entry"), 1);
        facts.record("irq_vectors", "local_timer_entry");
        assert_eq!(missing(&facts, "local_timer_entry"), 0);
        assert_eq!(missing(&facts, "call_function_exit"), 1, "x86 has that of AArch64 too");
        assert!(facts.untold().contains(&Untold::Clock(CaptureClock::Unknown)));
        let hostile = CaptureClock::of_ftrace(&format!("global\n\u{1b}[2J{}", "x".repeat(999)));
        let shown = hostile.to_string();
        assert!(shown.starts_with("global\u{fffd}\u{fffd}[2Jxx"), "{shown:?}");
        assert_eq!(shown.chars().count(), 64);
        facts.set_clock(CaptureClock::of_ftrace("mono"));
        facts.see_time_step(1000);
        assert_eq!(facts.untold()[0].to_string(), "times are in steps of 1000 ns");
        assert!(facts.untold().iter().all(|untold| !untold.to_string().contains('\n')));
    }

    #[test]
    fn threads_have_the_processes_that_were_seen() {
        let mut facts = CaptureFacts::new(CaptureFormat::PerfData);
        assert!(!facts.has_processes());
        for (tid, pid) in [(7, 5), (5, 5), (9, 8), (7, 5), (0, 0), (6, u32::MAX), (u32::MAX, 5)] {
            facts.see_process(tid, pid);
        }
        assert!(facts.has_processes());
        assert_eq!(facts.threads_of(5).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(facts.threads_of(6).count(), 0);
        // What this program keeps has each thread as a process of its own.
        facts.set_note("{}".to_owned());
        assert!(!facts.has_processes() && facts.threads_of(5).next().is_none());
        for number in 1..=u32::try_from(2 * super::THREAD_NAMES_MAX).expect("few") {
            facts.see_process(number, number);
        }
        assert!(facts.processes.len() <= super::THREAD_NAMES_MAX);
    }

    #[test]
    fn errors_are_one_line() {
        let error = CaptureError::damaged(7, "a\nb");
        assert_eq!(error.to_string(), "byte 7: a b");
    }
}
