//! The cost of recording for a loop: `price [ROUNDS] [CPU] [PERIOD_US]`, as root. A loop of
//! SCHED_FIFO 90 sleeps on a CPU; in each round it runs for half a second without recording and
//! with each kind of it, in turns. Printed are the median and the 99th percentile of its lateness
//! without (the median of the rounds), and by how much they were later with each, µs: median and
//! quartiles of the differences within a round, and the median as a share of the lateness without.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use punctual_engine::spawn;
use punctual_lab::capture::{Capture, CaptureItem, CapturePlan, EventSet, kernel_symbols};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{memory, process};
use punctual_trace::symbols::Symbols;

const PRIORITY: u8 = 90;
/// A loop without or with one kind of recording, ns.
const TURN_NS: u64 = 500_000_000;
/// After events were opened or closed, which interrupts every CPU.
const SETTLE_NS: u64 = 30_000_000;
/// No turn: nothing is noted.
const BETWEEN: usize = usize::MAX;

/// A kind of recording.
struct Variant {
    name: &'static str,
    plan: fn(&Symbols, i32) -> CapturePlan,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "the few events of top",
        plan: |symbols, _| CapturePlan::new(EventSet::Top).with_symbols(symbols),
    },
    Variant { name: "all events", plan: |_, _| CapturePlan::new(EventSet::Full) },
    Variant {
        name: "all, without call chains",
        plan: |_, _| CapturePlan::new(EventSet::Full).without_chains(),
    },
    Variant {
        name: "all, with its calls and faults",
        plan: |_, tid| CapturePlan::new(EventSet::Full).following(&[tid]),
    },
];

/// The orders to the loop.
struct Orders {
    stop: AtomicBool,
    tid: AtomicI32,
    /// The kind of recording whose turn it is, 0 for none.
    turn: AtomicUsize,
}

/// A loop, and what it saw: lateness, ns, by round and kind.
struct PriceLoop {
    orders: Arc<Orders>,
    thread: JoinHandle<Vec<Vec<u64>>>,
}

impl PriceLoop {
    fn start(cpu: u32, period_ns: u64, turns: usize) -> std::io::Result<Self> {
        let orders = Arc::new(Orders {
            stop: AtomicBool::new(false),
            tid: AtomicI32::new(0),
            turn: AtomicUsize::new(BETWEEN),
        });
        let loop_orders = Arc::clone(&orders);
        let thread = spawn::plain("price-loop", move || {
            affinity::set(0, &CpuMask::one(cpu)).expect("a CPU");
            memory::lock_all().expect("the right to lock memory");
            scheduler::set(0, SchedPolicy::Fifo(PRIORITY)).expect("the right to SCHED_FIFO");
            let most = usize::try_from(TURN_NS / period_ns * 2).expect("it fits");
            let mut seen: Vec<Vec<u64>> = (0..turns).map(|_| Vec::with_capacity(most)).collect();
            loop_orders.tid.store(process::tid(), Ordering::Release);
            let mut release_ns = now_ns(ClockId::Monotonic) + period_ns;
            while !loop_orders.stop.load(Ordering::Relaxed) {
                let _signal = sleep_until_ns(release_ns);
                let ran_ns = now_ns(ClockId::Monotonic);
                let turn = seen.get_mut(loop_orders.turn.load(Ordering::Relaxed));
                if let Some(turn) = turn.filter(|turn| turn.len() < turn.capacity()) {
                    turn.push(ran_ns.saturating_sub(release_ns));
                }
                // A release that has passed is left out.
                release_ns += period_ns * (1 + ran_ns.saturating_sub(release_ns) / period_ns);
            }
            seen
        })?;
        while orders.tid.load(Ordering::Acquire) == 0 {
            pause(SETTLE_NS);
        }
        Ok(Self { orders, thread })
    }

    /// A turn with this kind of recording, or without.
    fn turn(&self, turn: usize, plan: Option<&CapturePlan>) {
        let capture = plan.map(|plan| {
            Capture::start(plan, |_: CaptureItem<'_>| {}).expect("the right to record")
        });
        pause(SETTLE_NS);
        self.orders.turn.store(turn, Ordering::Relaxed);
        pause(TURN_NS);
        self.orders.turn.store(BETWEEN, Ordering::Relaxed);
        if let Some(ended) = capture.and_then(Capture::end) {
            ended.closing.wait();
        }
        pause(SETTLE_NS);
    }

    fn end(self) -> Vec<Vec<u64>> {
        self.orders.stop.store(true, Ordering::Relaxed);
        let mut seen = self.thread.join().expect("the loop ran");
        seen.iter_mut().for_each(|turn| turn.sort_unstable());
        seen
    }
}

fn pause(ns: u64) {
    let _signal = sleep_until_ns(now_ns(ClockId::Monotonic) + ns);
}

/// A quantile of sorted values, µs.
fn quantile_us(sorted: &[u64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share) as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let mut number = |otherwise: u32| args.next().map_or(Ok(otherwise), |number| number);
    let (Ok(rounds), Ok(cpu), Ok(period_us)) = (number(20), number(1), number(1_000)) else {
        eprintln!("price takes [ROUNDS] [CPU] [PERIOD_US]");
        return ExitCode::from(2);
    };
    let (rounds, kinds) = (rounds.max(1) as usize, VARIANTS.len() + 1);
    let price_loop = PriceLoop::start(cpu, u64::from(period_us.max(20)) * 1_000, rounds * kinds);
    let price_loop = price_loop.expect("a thread");
    let (symbols, tid) = (kernel_symbols(), price_loop.orders.tid.load(Ordering::Acquire));
    for round in 0..rounds {
        for place in 0..kinds {
            // Each kind is first as often as any other.
            let kind = (place + round) % kinds;
            let plan = kind.checked_sub(1).map(|kind| {
                let plan = (VARIANTS[kind].plan)(&symbols, tid);
                plan.in_guest(true).away_from(&[cpu]).read_by(SchedPolicy::Fifo(1))
            });
            price_loop.turn(round * kinds + kind, plan.as_ref());
        }
    }
    let seen = price_loop.end();
    let turn = |round: usize, kind: usize| &seen[round * kinds + kind][..];
    let of_rounds =
        |of_round: &dyn Fn(usize) -> f64| quartiles((0..rounds).map(of_round).collect());
    let [_, p50, _] = of_rounds(&|round| quantile_us(turn(round, 0), 0.5));
    let [_, p99, _] = of_rounds(&|round| quantile_us(turn(round, 0), 0.99));
    let wakes: usize = (0..rounds).map(|round| turn(round, 0).len()).sum();
    println!("without: median {p50:.1} µs, p99 {p99:.1} µs; {wakes} wakes, {rounds} rounds");
    for (kind, variant) in (1..).zip(&VARIANTS) {
        let later = |share: f64| {
            of_rounds(&|round| {
                quantile_us(turn(round, kind), share) - quantile_us(turn(round, 0), share)
            })
        };
        let words = |share: f64, without_us: f64| {
            let [low, median, high] = later(share);
            let percent = median / without_us * 100.0;
            format!("{median:+.2} ({low:+.2} to {high:+.2}), {percent:+.0} %")
        };
        let (median, tail) = (words(0.5, p50), words(0.99, p99));
        println!("{:32} median {median:36} p99 {tail}", variant.name);
    }
    ExitCode::SUCCESS
}
