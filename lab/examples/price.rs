//! What a capture costs a loop: `price [ROUNDS] [SECONDS] [busy]`, as root.
//!
//! A SCHED_FIFO 90 loop of 1 kHz sleeps on the first CPU that it may use, in rounds; in each, for
//! so many seconds a condition: nothing, nothing again, `Top`, `Full` without call chains, `Full`,
//! and `Full` with the loop's own system calls and page faults. The reader has SCHED_FIFO 1.
//! Printed are medians over rounds of the difference from the first, with quartiles. With `busy` a
//! SCHED_OTHER thread computes on that CPU meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_engine::spawn;
use punctual_lab::capture::{
    Capture, CaptureItem, CapturePlan, CaptureTally, EventSet, kernel_symbols,
};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{memory, process};
use punctual_trace::symbols::Symbols;

const PERIOD_NS: u64 = 1_000_000;
/// From the last change of what is recorded until the first wake that counts, ns.
const SETTLE_NS: u64 = 200_000_000;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Off,
    OffAgain,
    Top,
    FullWithoutChains,
    Full,
    FullAndOwn,
}

impl Condition {
    const ALL: [Self; 6] = [
        Self::Off,
        Self::OffAgain,
        Self::Top,
        Self::FullWithoutChains,
        Self::Full,
        Self::FullAndOwn,
    ];

    fn plan(self, cpu: u32, tid: i32, symbols: &Symbols) -> Option<CapturePlan> {
        let full = || CapturePlan::new(EventSet::Full).in_guest(true);
        let plan = match self {
            Self::Off | Self::OffAgain => return None,
            Self::Top => CapturePlan::new(EventSet::Top).with_symbols(symbols),
            Self::FullWithoutChains => full().without_chains(),
            Self::Full => full(),
            Self::FullAndOwn => full().following(&[tid]),
        };
        Some(plan.away_from(&[cpu]).read_by(SchedPolicy::Fifo(1)))
    }
}

/// The lateness of so many wakes, ns, in order of size.
fn lateness_ns(wakes: u64) -> Vec<u64> {
    let begin_ns = now_ns(ClockId::Monotonic) + SETTLE_NS;
    let mut lateness: Vec<u64> = (0..wakes)
        .map(|wake| {
            let due_ns = begin_ns + wake * PERIOD_NS;
            let _early = sleep_until_ns(due_ns);
            now_ns(ClockId::Monotonic).saturating_sub(due_ns)
        })
        .collect();
    lateness.sort_unstable();
    lateness
}

/// The element at this share of a sorted list.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    let at = ((sorted.len() - 1) as f64 * share).round() as usize;
    sorted[at] as f64 / 1_000.0
}

/// One condition in one round.
struct Cell {
    median_us: f64,
    p99_us: f64,
    facts: Option<CaptureTally>,
    start_ms: f64,
    end_ms: f64,
}

fn measure(
    condition: Condition,
    wakes: u64,
    (cpu, symbols): (u32, &Symbols),
) -> Result<Cell, String> {
    let ms = |from: u64| (now_ns(ClockId::Monotonic) - from) as f64 / 1e6;
    let plan = condition.plan(cpu, process::tid(), symbols);
    let begin_ns = now_ns(ClockId::Monotonic);
    let capture = plan.map(|plan| Capture::start(&plan, |_: CaptureItem<'_>| {})).transpose();
    let capture = capture.map_err(|why| why.to_string())?;
    let start_ms = ms(begin_ns);
    let lateness = lateness_ns(wakes);
    let end_ns = now_ns(ClockId::Monotonic);
    let facts = capture.and_then(Capture::end).map(|ended| {
        ended.closing.wait();
        ended.facts
    });
    Ok(Cell {
        median_us: quantile(&lateness, 0.5),
        p99_us: quantile(&lateness, 0.99),
        facts,
        start_ms,
        end_ms: ms(end_ns),
    })
}

/// Median and quartiles, in words.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    format!("{:+7.2} ({:+.2} .. {:+.2})", at(0.5), at(0.25), at(0.75))
}

fn print(condition: Condition, rounds: &[Vec<Cell>], wakes: u64) {
    let cells: Vec<(&Cell, &Cell)> = rounds
        .iter()
        .filter_map(|round| {
            let place = Condition::ALL.iter().position(|&known| known == condition)?;
            Some((round.get(place)?, round.first()?))
        })
        .collect();
    let median = spread(cells.iter().map(|(cell, off)| cell.median_us - off.median_us).collect());
    let p99 = spread(cells.iter().map(|(cell, off)| cell.p99_us - off.p99_us).collect());
    println!(
        "{:<18} n {:>6}  median {median}  p99 {p99} us",
        format!("{condition:?}"),
        wakes * cells.len() as u64
    );
    let sum = |part: fn(&CaptureTally) -> u64| -> u64 {
        cells.iter().filter_map(|(cell, _)| cell.facts.as_ref()).map(part).sum()
    };
    let recorded_s = sum(|facts| facts.ended_ns - facts.began_ns) as f64 / 1e9;
    if recorded_s > 0.0 {
        let most =
            |part: fn(&Cell) -> f64| cells.iter().map(|(cell, _)| part(cell)).fold(0., f64::max);
        println!(
            "{:18} {:.0} events/s, {:.2} MB/s, reader {:.1} %, lost {}, holes {}, fullest {} kB, \
             opened in {:.0} ms, closed in {:.0} ms",
            "",
            sum(|facts| facts.events) as f64 / recorded_s,
            sum(|facts| facts.bytes) as f64 / 1e6 / recorded_s,
            sum(|facts| facts.reader_cpu_ns) as f64 / 1e7 / recorded_s,
            sum(|facts| facts.lost),
            sum(|facts| facts.holes),
            cells
                .iter()
                .filter_map(|(cell, _)| cell.facts.as_ref())
                .map(|facts| facts.fullest_bytes / 1024)
                .max()
                .unwrap_or(0),
            most(|cell| cell.start_ms),
            most(|cell| cell.end_ms),
        );
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| words.next().map_or(Ok(default), |word| word.parse());
    let rounds = number(6).map_err(|_| "ROUNDS is a number")?;
    let seconds = number(3).map_err(|_| "SECONDS is a number")?;
    let busy = std::env::args().any(|word| word == "busy");
    let (wakes, symbols) = (seconds * 1_000, kernel_symbols());
    let allowed = affinity::get(0).map_err(|why| why.to_string())?;
    let cpu = allowed.iter().next().ok_or("no CPU")?;
    affinity::set(0, &CpuMask::one(cpu)).map_err(|why| why.to_string())?;
    memory::lock_all().map_err(|why| format!("memory cannot be locked: {why}"))?;
    let ends = Arc::new(AtomicBool::new(!busy));
    let seen = Arc::clone(&ends);
    let spinner = spawn::plain("price-busy", move || {
        while !seen.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let fifo = SchedPolicy::Fifo(90);
    scheduler::set(0, fifo).map_err(|why| format!("SCHED_FIFO 90: {why}"))?;
    let mut measured = Vec::new();
    for _ in 0..rounds {
        let round: Result<Vec<Cell>, String> = Condition::ALL
            .into_iter()
            .map(|condition| measure(condition, wakes, (cpu, &symbols)))
            .collect();
        measured.push(round?);
    }
    scheduler::set(0, SchedPolicy::Other).map_err(|why| why.to_string())?;
    ends.store(true, Ordering::Relaxed);
    let _ended = spinner.map(std::thread::JoinHandle::join);
    let off =
        |part: fn(&Cell) -> f64| spread(measured.iter().map(|round| part(&round[0])).collect());
    println!("off: median {}  p99 {} us", off(|cell| cell.median_us), off(|cell| cell.p99_us));
    for condition in Condition::ALL.into_iter().skip(1) {
        print(condition, &measured, wakes);
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("price: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}
