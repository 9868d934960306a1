//! Holds what attribution answers against disturbances that are known: `confusion [slow=TIMES]
//! [ROUNDS] [KIND]…`, as root. Of each kind a 1 kHz loop of SCHED_FIFO 90 on the first CPU is
//! disturbed for six seconds while its wakes are recorded; the disturber's own log is the truth, or
//! the loop's, where it disturbs itself or wakes on another CPU than its timer's.
//! Where the machine itself makes wakes late by 100 µs and more, as an emulator does, periods,
//! disturbances and what counts as late are TIMES as long, 20 at most (what the kernel itself is
//! slow at less so), and a round of 20 takes 30 s.
//!
//! A late wake is *disturbed* where the log covers at least 30 % or 30 µs of the time from its
//! release to its run, and *mostly* where it covers half: what else came beside it, a host that
//! stood still for milliseconds, may be the main cause of the one, hardly of the other. Printed are
//! both, with how many have the disturber by name as their main cause; the share of the covered
//! time that is booked to it; and other late wakes that are booked to it all the same. Wakes that
//! are mostly disturbed and wrong, or wrongly blamed, are printed with their parts. In every second
//! round a SCHED_OTHER thread computes beside those disturbers that it does not itself disturb.
//! The kind `host`, by its name alone, disturbs nothing: a companion spins on another CPU, and what
//! is booked to the host is held against what it saw.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_blame::blame::Blame;
use punctual_blame::cause::{CauseKind, LateCause};
use punctual_blame::config::{
    BlameBounds, BlameConfig, CapturedMachine, FollowedThreads, LateThreshold, Platform,
};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::part::WakePart;
use punctual_blame::past::WakePhase;
use punctual_blame::symbols::SymbolMap;
use punctual_engine::spawn;
use punctual_host::facts::{IdleState, SmiCount};
use punctual_host::root::Root;
use punctual_lab::capture::{
    Capture, CaptureConsumer, CaptureItem, CapturePlan, CaptureTally, ClockOffsets, EventSet,
    kernel_symbols,
};
use punctual_lab::inject::{
    GapWatch, InjectedInterval, Injection, InjectionLog, InjectionPlan, Injector, RunningInjection,
    Victim,
};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{Errno, events, memory, process};
use punctual_trace::event::ShortName;

const PRIORITY: u8 = 90;
/// A loop that disturbs itself does so in each of so many cycles.
const OWN_EVERY: u64 = 6;
/// From the last event that is opened to what counts, ns.
const SETTLE_NS: u64 = 200_000_000;
/// NET_RX_SOFTIRQ of include/linux/interrupt.h.
const NET_RX: u8 = 3;
/// Wrong wakes of a kind that are printed.
const SHOWN: usize = 6;

/// The most disturbances of a round, and the longest that they may take in all, ns.
const INJECTIONS: u64 = 2_000;
const INJECTIONS_NS: u64 = 60_000_000_000;

/// The times of a loop and of what disturbs it.
#[derive(Clone, Copy)]
struct TimeScale {
    /// So many times as long as on a machine that wakes in time.
    times: u64,
}

impl TimeScale {
    const NATIVE: Self = Self { times: 1 };
    /// The word that says how slow a machine is.
    const WORD: &str = "slow=";

    fn read(word: &str) -> Option<Self> {
        let times = word.strip_prefix(Self::WORD)?.parse().ok()?;
        (1..=20).contains(&times).then_some(Self { times })
    }

    fn word(self) -> String {
        format!("{}{}", Self::WORD, self.times)
    }

    const fn period_ns(self) -> u64 {
        1_000_000 * self.times
    }

    /// Six seconds, or as many as leave enough that are disturbed.
    fn cycles(self) -> u64 {
        (6_000 / self.times).max(1_500)
    }

    /// The longest round.
    const fn round(self) -> Duration {
        Duration::from_secs(if self.times == 1 { 10 } else { 60 })
    }

    /// From where on a wake is late, ns: an interrupt from another CPU takes some 12 µs. A move
    /// costs less than what a host makes late, so that an exact clock alone shows it.
    const fn late_ns(self, kind: Injection) -> u64 {
        match kind {
            Injection::Protection | Injection::Barriers => 40_000 * self.times,
            Injection::Moves if self.times > 1 => 40_000 * self.times,
            _ => 100_000 * self.times,
        }
    }

    /// From how much of it on a wake is disturbed, ns.
    const fn disturbed_ns(self) -> u64 {
        30_000 * self.times
    }

    /// Length of one disturbance, µs.
    const fn length_us(self, kind: Injection) -> u64 {
        match kind {
            Injection::Stop | Injection::Throttling => 2_000 * self.times,
            Injection::OwnOverrun => 1_300 * self.times,
            // A fault that is recorded takes several µs in a virtual machine. What a slow machine
            // does in the kernel takes some times as long by itself.
            Injection::OwnFaults => 200 * self.times.div_ceil(3),
            Injection::LongSystemCall => 300,
            Injection::Moves => self.period_ns() / 1_000,
            // The least that counts as one.
            Injection::Standstill => 15_000,
            _ => 300 * self.times,
        }
    }

    fn plan(self, kind: Injection, victim: Victim) -> Result<InjectionPlan, String> {
        let every_ns = match kind {
            Injection::Moves => 5 * self.period_ns(),
            _ => 5_100_000 * self.times,
        };
        let times = u32::try_from(INJECTIONS.min(INJECTIONS_NS / every_ns)).unwrap_or(u32::MAX);
        let length = Duration::from_micros(self.length_us(kind));
        InjectionPlan::new(kind, victim, times, (Duration::from_nanos(every_ns), length))
            .map_err(|why| why.to_string())
    }
}

/// Returns true where a computing thread beside it leaves the log true: where the disturbance is no
/// more than SCHED_OTHER would wait for it within its own interval.
const fn bears_company(kind: Injection) -> bool {
    !matches!(
        kind,
        Injection::LongSystemCall
            | Injection::InterruptsOff
            | Injection::Timers
            // It would wait for that thread to be preempted, not for the interrupt of the move.
            | Injection::Moves
    )
}

fn victim(pid: i32) -> Result<Victim, String> {
    let allowed = affinity::get(0).map_err(|why| why.to_string())?;
    let mut cpus = allowed.iter();
    let (cpu, other_cpu) = cpus.next().zip(cpus.next()).ok_or("it takes two CPUs")?;
    Ok(Victim { cpu, other_cpu, priority: PRIORITY, pid, tid: pid })
}

/// The loop, in a process of its own. It says so when it begins, and in the end when it disturbed
/// itself, or woke on another CPU than it had gone to sleep on.
fn run_loop(kind: Injection, scale: TimeScale) -> Result<(), String> {
    let victim = victim(process::tid())?;
    let mut own = match kind.is_own() {
        true => Some(Injector::prepare(&scale.plan(kind, victim)?).map_err(|why| why.to_string())?),
        false => None,
    };
    // What is locked has no faults.
    if kind != Injection::OwnFaults {
        memory::lock_all().map_err(|why| format!("memory cannot be locked: {why}"))?;
    }
    affinity::set(0, &CpuMask::one(victim.cpu)).map_err(|why| why.to_string())?;
    let text = |why: Errno| why.to_string();
    let timer = match kind == Injection::TimerThread {
        true => Some(events::timer().map_err(text)?),
        false => None,
    };
    let period_ns = scale.period_ns();
    let mut intervals = Vec::with_capacity(scale.cycles() as usize);
    println!("begins");
    // Opening events takes its time: the loop goes on until it is told that they are.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|why| why.to_string())?;
    scheduler::set(0, SchedPolicy::Fifo(PRIORITY)).map_err(|why| why.to_string())?;
    // Between multiples of its period: a tick comes there, and so does a move.
    let mut due_ns = now_ns(ClockId::Monotonic).next_multiple_of(period_ns) + 3 * period_ns / 2;
    let end_ns = due_ns + scale.cycles() * period_ns;
    let mut cycle = 0_u64;
    while due_ns < end_ns {
        let cpu = affinity::current_cpu();
        match &timer {
            Some(timer) => {
                events::arm(timer, due_ns, 0).and_then(|()| events::take(timer)).map_err(text)?;
            }
            None => {
                let _early = sleep_until_ns(due_ns);
            }
        }
        if kind == Injection::Moves && affinity::current_cpu() != cpu {
            let end_ns = now_ns(ClockId::Monotonic);
            intervals.push(InjectedInterval { start_ns: due_ns, end_ns, cpu: victim.cpu });
        }
        cycle += 1;
        due_ns += period_ns;
        // A release that is gone is left out, or a stall would count once for each. Of a loop that
        // overruns it is what is looked for.
        let gone_ns = now_ns(ClockId::Monotonic).saturating_sub(due_ns);
        if own.is_none() {
            due_ns += gone_ns.div_ceil(period_ns) * period_ns;
        }
        if let Some(injector) = own.as_mut().filter(|_| cycle % OWN_EVERY == OWN_EVERY - 1) {
            intervals.extend(injector.once().ok());
        }
    }
    scheduler::set(0, SchedPolicy::Other).map_err(|why| why.to_string())?;
    for InjectedInterval { start_ns, end_ns, .. } in intervals {
        println!("{start_ns} {end_ns}");
    }
    Ok(())
}

/// Takes events; not those of the time in which they were being opened.
struct Accountant {
    blame: Blame,
    from_ns: Arc<AtomicU64>,
}

impl CaptureConsumer for Accountant {
    fn take(&mut self, item: CaptureItem<'_>) {
        if let CaptureItem::Event(event) = item
            && event.at_ns >= self.from_ns.load(Ordering::Relaxed)
        {
            self.blame.push(event);
        }
    }
}

fn config(tid: i32, kind: Injection, scale: TimeScale) -> BlameConfig {
    let clocks = ClockOffsets::take();
    let symbols = kernel_symbols();
    let functions = symbols.functions().map(|(address, name)| (address, name.to_owned()));
    BlameConfig {
        follow: FollowedThreads::Threads(vec![tid.unsigned_abs()]),
        late: LateThreshold::Above(scale.late_ns(kind)),
        machine: CapturedMachine {
            // Firmware is what takes a CPU from a kernel that no host runs.
            platform: match kind {
                Injection::Firmware => Platform::Metal,
                _ => Platform::VirtualMachine,
            },
            clock_offsets_ns: clocks.all_ns(),
            idle_exits_us: IdleState::exits_us(&Root::live()),
            ..CapturedMachine::default()
        },
        symbols: SymbolMap::new(functions),
        bounds: BlameBounds {
            worst: scale.cycles() as usize,
            reservoir: 0,
            ..BlameBounds::default()
        },
        ..BlameConfig::default()
    }
}

/// A SCHED_OTHER thread that computes on a CPU until it is dropped, or for the longest round.
struct Company {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Company {
    fn start(cpu: u32, scale: TimeScale) -> Result<Self, String> {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let longest_ns = u64::try_from(scale.round().as_nanos()).unwrap_or(u64::MAX);
        let until_ns = now_ns(ClockId::Monotonic) + longest_ns;
        let thread = spawn::plain("company", move || {
            if affinity::set(0, &CpuMask::one(cpu)).is_ok() {
                while !seen.load(Ordering::Relaxed) && now_ns(ClockId::Monotonic) < until_ns {
                    std::hint::spin_loop();
                }
            }
        });
        Ok(Self { ends, thread: Some(thread.map_err(|why| why.to_string())?) })
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Ends with it.
struct Looped(Child);

impl Drop for Looped {
    fn drop(&mut self) {
        // Where it ended, nothing is left to do.
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The result of a run, and the log that it is held against.
struct Round<L> {
    outcome: BlameOutcome,
    facts: CaptureTally,
    log: L,
    symbols: SymbolMap,
}

/// A run of the loop of this kind, whose wakes are recorded. What `begin` starts runs beside it,
/// and `end` has its log, by what the loop printed.
fn observe<D, L>(
    kind: Injection,
    scale: TimeScale,
    begin: impl FnOnce(Victim) -> Result<D, String>,
    end: impl FnOnce(D, Victim, &str) -> Result<L, String>,
) -> Result<Round<L>, String> {
    let text = |why: std::io::Error| why.to_string();
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.args(["loop", kind.name(), &scale.word()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut control_loop = Looped(command.spawn().map_err(text)?);
    let mut output = BufReader::new(control_loop.0.stdout.take().ok_or("it is piped")?);
    let mut line = String::new();
    output.read_line(&mut line).map_err(text)?;
    let victim = victim(control_loop.0.id().cast_signed())?;
    let config = config(victim.tid, kind, scale);
    let symbols = config.symbols.clone();
    let from_ns = Arc::new(AtomicU64::new(u64::MAX));
    let accountant = Accountant { blame: Blame::new(config), from_ns: Arc::clone(&from_ns) };
    let events = CapturePlan::new(EventSet::Full).in_guest(kind != Injection::Firmware);
    let events = events.away_from(&[victim.cpu]).following(&[victim.tid]);
    let events = events.read_by(SchedPolicy::Fifo(1));
    let capture = Capture::start(&events, accountant).map_err(|why| why.to_string())?;
    let begin_ns = now_ns(ClockId::Monotonic) + SETTLE_NS;
    let _early = sleep_until_ns(begin_ns);
    from_ns.store(begin_ns, Ordering::Relaxed);
    let count = || SmiCount::read(&Root::live(), victim.cpu);
    let before = count();
    let disturber = begin(victim)?;
    drop(control_loop.0.stdin.take());
    let mut rest = String::new();
    output.read_to_string(&mut rest).map_err(text)?;
    let log = end(disturber, victim, &rest)?;
    let mut ended = capture.end().ok_or("the reader ended")?;
    ended.closing.wait();
    if let Some((before, now)) = before.zip(count()) {
        ended.consumer.blame.set_smi_count(now.since(before));
    }
    Ok(Round { outcome: ended.consumer.blame.finish(), facts: ended.facts, log, symbols })
}

fn disturb(
    kind: Injection,
    scale: TimeScale,
    has_company: bool,
) -> Result<Round<InjectionLog>, String> {
    let begin = |victim: Victim| {
        let company = has_company.then(|| Company::start(victim.cpu, scale)).transpose()?;
        let running = match kind.is_own() {
            true => None,
            false => {
                let started = RunningInjection::start(scale.plan(kind, victim)?);
                Some(started.map_err(|why| why.to_string())?)
            }
        };
        Ok((company, running))
    };
    let end =
        |(company, running): (Option<Company>, Option<RunningInjection>), victim, rest: &str| {
            drop(company);
            let ended = running.map(RunningInjection::end).transpose();
            match ended.map_err(|why| why.to_string())? {
                Some(log) if kind != Injection::Moves => Ok(log),
                _ => Ok(own_log(kind, victim, rest)),
            }
        };
    observe(kind, scale, begin, end)
}

fn own_log(kind: Injection, victim: Victim, text: &str) -> InjectionLog {
    let interval = |line: &str| {
        let (start_ns, end_ns) = line.split_once(' ')?;
        let (start_ns, end_ns) = (start_ns.parse().ok()?, end_ns.parse().ok()?);
        Some(InjectedInterval { start_ns, end_ns, cpu: victim.cpu })
    };
    let intervals = text.lines().filter_map(interval).collect();
    InjectionLog { kind, tid: victim.tid, name: String::new(), intervals, failed: 0 }
}

/// Returns true where a cause is the disturbance, by name.
fn is_it(cause: &LateCause, log: &InjectionLog) -> bool {
    let is_named = cause.culprit().is_some_and(|task| {
        let name = ShortName::new(log.name.as_bytes());
        task.name == name
    });
    let is_own =
        |kind| matches!(kind, CauseKind::OwnCode | CauseKind::OwnFault | CauseKind::OwnSyscall);
    let followed = match *cause {
        LateCause::Follows { kind } => Some(kind),
        _ => None,
    };
    match (log.kind, cause.kind()) {
        (Injection::HigherPriority, CauseKind::HigherPriority)
        | (Injection::EqualPriority, CauseKind::EqualPriority)
        | (Injection::LongSystemCall, CauseKind::NotPreempted)
        | (Injection::InterruptsOff | Injection::Driver, CauseKind::InterruptsOff)
        | (Injection::Timers, CauseKind::OtherTimers)
        | (Injection::TimerThread, CauseKind::TimerThread)
        | (Injection::Stop, CauseKind::Stopped)
        | (Injection::Protection | Injection::Barriers | Injection::Datagrams, CauseKind::Ipi) => {
            is_named
        }
        (Injection::Throttling, CauseKind::Throttled)
        | (Injection::Moves, CauseKind::Migration)
        | (Injection::Firmware, CauseKind::HostOrFirmware)
        // In a virtual machine an exit from idle that takes long is the host's.
        | (Injection::Standstill, CauseKind::HostOrFirmware | CauseKind::IdleExit) => true,
        (Injection::Stop, _) => followed == Some(CauseKind::Stopped),
        (Injection::OwnFaults | Injection::OwnOverrun, kind) => is_own(followed.unwrap_or(kind)),
        (Injection::Datagrams, _) => {
            matches!(*cause, LateCause::Softirq { number: NET_RX, .. })
        }
        _ => false,
    }
}

/// The counts of a kind.
#[derive(Default)]
struct Counts {
    wakes: u64,
    injected: u64,
    injected_ns: u64,
    late: u64,
    disturbed: u64,
    right: u64,
    mostly: u64,
    mostly_right: u64,
    covered_ns: u64,
    found_ns: u64,
    undisturbed: u64,
    blamed: u64,
    lost: u64,
    holes: u64,
    /// Kinds of the main causes of disturbed wakes that are not the disturber.
    instead: BTreeMap<CauseKind, u64>,
}

/// What the log covers of a wake, ns. A move takes nothing of it before its timer has woken it: the
/// loop itself does not know when that was, its records do.
fn covered_ns(wake: &LateWake, log: &InjectionLog) -> u64 {
    let from_ns = match log.kind {
        Injection::Moves => {
            let ready = wake.parts.iter().find(|part| part.phase == WakePhase::Ready);
            ready.map_or(wake.ran_ns, |part| part.from_ns)
        }
        _ => wake.release_ns,
    };
    let within = |interval: &InjectedInterval| interval.overlap_ns(from_ns, wake.ran_ns);
    log.intervals.iter().map(within).sum()
}

fn count(round: &Round<InjectionLog>, scale: TimeScale, counts: &mut Counts) {
    let Round { outcome, facts, log, .. } = round;
    counts.wakes += outcome.table.wakes;
    counts.injected += log.intervals.len() as u64;
    counts.injected_ns += log.intervals.iter().map(InjectedInterval::length_ns).sum::<u64>();
    counts.late += outcome.table.late;
    counts.lost += facts.lost;
    counts.holes += facts.holes;
    let mut shown = 0;
    for wake in &outcome.worst {
        let covered_ns = covered_ns(wake, log);
        let is_right = is_it(&wake.main, log);
        let is_disturbed =
            covered_ns >= scale.disturbed_ns() || covered_ns * 10 >= wake.lateness_ns() * 3;
        let is_mostly = covered_ns * 2 >= wake.lateness_ns();
        if is_disturbed {
            let found = |part: &&WakePart| is_it(&part.cause, log);
            let found_ns: u64 = wake.parts.iter().filter(found).map(WakePart::length_ns).sum();
            counts.disturbed += 1;
            counts.right += u64::from(is_right);
            counts.mostly += u64::from(is_mostly);
            counts.mostly_right += u64::from(is_mostly && is_right);
            if !is_right {
                *counts.instead.entry(wake.main.kind()).or_default() += 1;
            }
            counts.covered_ns += covered_ns;
            counts.found_ns += found_ns.min(covered_ns);
        } else {
            counts.undisturbed += 1;
            counts.blamed += u64::from(is_right);
        }
        let is_wrong = if is_disturbed { is_mostly && !is_right } else { is_right };
        if is_wrong && shown < SHOWN {
            shown += 1;
            show(wake, covered_ns, &round.symbols);
        }
    }
}

fn show(wake: &LateWake, covered_ns: u64, symbols: &SymbolMap) {
    println!(
        "  late {} us, covered {} us, release {}: {}",
        wake.lateness_ns() / 1_000,
        covered_ns / 1_000,
        wake.release_ns,
        wake.main.name(symbols)
    );
    for part in wake.parts.iter().filter(|part| part.length_ns() >= 3_000).take(12) {
        println!(
            "    {:>6.1} +{:>6.1} us CPU {} {:?} {}: {}",
            (part.from_ns - wake.release_ns) as f64 / 1e3,
            part.length_ns() as f64 / 1e3,
            part.cpu,
            part.phase,
            part.rule.word(),
            part.cause.name(symbols)
        );
    }
    let chain = wake.chain.iter().map(|&at| symbols.name(at).unwrap_or("?"));
    let chain: Vec<&str> = chain.take(6).collect();
    if !chain.is_empty() {
        println!("    {}", chain.join(" < "));
    }
}

fn print(name: &str, counts: &Counts) {
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    println!(
        "{name:<10} {:>5} of {:>5} right ({:.1} %), mostly {} of {} ({:.1} %), found {:.0} %, \
         wrongly blamed {} of {}; {} wakes, {} late, {} injected of {} us, lost {}, \
         holes {}",
        counts.right,
        counts.disturbed,
        share(counts.right, counts.disturbed),
        counts.mostly_right,
        counts.mostly,
        share(counts.mostly_right, counts.mostly),
        share(counts.found_ns, counts.covered_ns),
        counts.blamed,
        counts.undisturbed,
        counts.wakes,
        counts.late,
        counts.injected,
        counts.injected_ns / 1_000 / counts.injected.max(1),
        counts.lost,
        counts.holes,
    );
    for (kind, wakes) in &counts.instead {
        println!("           instead {}: {wakes}", kind.word());
    }
}

/// True where a companion spun all the time of a part, and saw a gap over more than half of it;
/// `None` where it did not spin.
fn saw_gap(watch: &GapWatch, part: &WakePart) -> Option<bool> {
    let overlap_ns = |interval: &InjectedInterval| interval.overlap_ns(part.from_ns, part.to_ns);
    let is_watched = watch.spans().iter().any(|span| overlap_ns(span) == part.length_ns());
    is_watched.then(|| watch.gaps().iter().any(|gap| overlap_ns(gap) * 2 > part.length_ns()))
}

/// The probability that a companion sees a gap over half of such a part by chance.
fn chance(watch: &GapWatch, part: &WakePart) -> f64 {
    let lengths_ns = |intervals: &[InjectedInterval], least_ns: u64| -> u64 {
        let lengths = intervals.iter().map(InjectedInterval::length_ns);
        lengths.filter(|&length_ns| length_ns >= least_ns).sum()
    };
    let gaps_ns = lengths_ns(watch.gaps(), part.length_ns() / 2);
    gaps_ns as f64 / lengths_ns(watch.spans(), 0).max(1) as f64
}

/// A companion that spins.
struct Companion {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<GapWatch, String>>,
}

impl Companion {
    /// Above the reader, which takes turns with it.
    fn start(cpu: u32) -> Result<Self, String> {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let thread = spawn::plain("companion", move || {
            affinity::set(0, &CpuMask::one(cpu)).map_err(|why| why.to_string())?;
            scheduler::set(0, SchedPolicy::Fifo(2)).map_err(|why| why.to_string())?;
            let until_ns = now_ns(ClockId::Monotonic) + 10_000_000_000;
            Ok(GapWatch::run(cpu, until_ns, |_| seen.load(Ordering::Relaxed)))
        });
        Ok(Self { ends, thread: thread.map_err(|why| why.to_string())? })
    }

    fn end(self) -> Result<GapWatch, String> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the companion panicked".to_owned())?
    }
}

/// The parts of one certainty that are booked to the host, and what a companion saw of them.
#[derive(Default)]
struct HostCounts {
    parts: u64,
    watched: u64,
    coincident: u64,
    by_chance: f64,
}

/// Holds the parts that are booked to the host against a companion on another CPU: where a host
/// stops both at once, both stand still. What it does to the loop's CPU alone no companion sees.
fn compare_with_companion(rounds: usize) -> Result<(), String> {
    let mut counts: BTreeMap<&'static str, HostCounts> = BTreeMap::new();
    for _ in 0..rounds {
        let round = observe(
            Injection::HigherPriority,
            TimeScale::NATIVE,
            |victim| Companion::start(victim.other_cpu),
            |companion: Companion, _, _| companion.end(),
        )?;
        for part in round.outcome.worst.iter().flat_map(|wake| &wake.parts) {
            let is_host =
                matches!(part.cause.kind(), CauseKind::HostOrFirmware | CauseKind::NoEvent);
            if !is_host || part.length_ns() < GapWatch::GAP_NS {
                continue;
            }
            let count = counts.entry(part.rule.word()).or_default();
            count.parts += 1;
            if let Some(is_coincident) = saw_gap(&round.log, part) {
                count.watched += 1;
                count.coincident += u64::from(is_coincident);
                count.by_chance += chance(&round.log, part);
            }
        }
    }
    for (rule, HostCounts { parts, watched, coincident, by_chance }) in &counts {
        println!(
            "host       {rule}: {parts} parts of 20 us and more, a companion watched {watched}, \
             and stood still in {coincident} of them, {by_chance:.1} by chance"
        );
    }
    if counts.is_empty() {
        println!("host       no part of 20 us and more is the host's");
    }
    Ok(())
}

fn run() -> Result<(), String> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let find = |name: &String| {
        Injection::find(name).ok_or_else(|| format!("{name}: there is no such kind"))
    };
    if let [word, kind, scale] = &words[..]
        && word == "loop"
    {
        return run_loop(find(kind)?, TimeScale::read(scale).ok_or("no scale of time")?);
    }
    let scale = match words.first().filter(|word| word.starts_with(TimeScale::WORD)) {
        Some(_) => {
            let word = words.remove(0);
            TimeScale::read(&word).ok_or_else(|| format!("{word}: slow=1 to slow=20"))?
        }
        None => TimeScale::NATIVE,
    };
    let rounds: usize = words.first().map_or(Ok(2), |word| word.parse()).map_err(|_| "ROUNDS")?;
    let (hosts, kinds): (Vec<&String>, Vec<&String>) =
        words.iter().skip(1).partition(|word| *word == "host");
    let named: Result<Vec<Injection>, String> = kinds.into_iter().map(find).collect();
    let kinds = match named? {
        none if none.is_empty() && hosts.is_empty() => {
            Injection::ALL.into_iter().filter(|kind| !kind.is_in_guest()).collect()
        }
        named => named,
    };
    if !hosts.is_empty() && scale.times > 1 {
        return Err("host: its companion looks as often on each machine, without slow=".to_owned());
    }
    for kind in kinds {
        let mut counts = Counts::default();
        for round in 0..rounds {
            match disturb(kind, scale, round % 2 == 1 && bears_company(kind)) {
                Ok(round) => count(&round, scale, &mut counts),
                Err(why) => println!("{}: {why}", kind.name()),
            }
        }
        print(kind.name(), &counts);
    }
    match hosts.is_empty() {
        true => Ok(()),
        false => compare_with_companion(rounds),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("confusion: {why}");
            ExitCode::FAILURE
        }
    }
}
