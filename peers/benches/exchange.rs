//! What it costs a loop to hand data to another thread, and to get some:
//! `cargo bench --manifest-path peers/Cargo.toml --bench exchange [-- CYCLES]`.
//!
//! A loop of 10 kHz (SCHED_FIFO where that is allowed) writes or reads once a cycle, while an
//! ordinary thread does the other half without rest: on another CPU (beside), or on the loop's own,
//! which preempts it wherever it is (below). Each pair of rows is one exchange; all take turns of
//! 2000 cycles. Prints and asserts nothing; docs/sharing.md says what follows.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use crossbeam_queue::ArrayQueue;
use punctual::{Loop, Period, Phase, PiMutex, RtThread, Span, WaitPolicy, now};
use punctual_os::affinity::{self, CpuMask};

/// Cycles of one turn.
const TURN: usize = 2_000;
/// Cycles of each row, unless the command line says: 20 of them are beyond p99.99.
const CYCLES: usize = 200_000;
/// Entries that a queue holds.
const HELD: usize = 1_024;

/// What is handed over: 64 bytes.
type State = [f64; 8];

fn state(k: u64) -> State {
    [k as f64; 8]
}

fn seen(state: &State) {
    black_box(state.iter().sum::<f64>());
}

/// One half of an exchange, called once a cycle with its number.
type Half = Box<dyn FnMut(u64) + Send>;

/// Its writer and its reader.
type Halves = (Half, Half);

/// An exchange by name.
type Exchange = (&'static str, fn() -> Halves);

/// The latest value, and queues.
const EXCHANGES: [Exchange; 11] = [
    ("nothing", || (Box::new(|_| ()), Box::new(|_| ()))),
    ("latest: triple_buffer", || {
        let (mut input, mut output) = triple_buffer::triple_buffer(&state(0));
        (Box::new(move |k| input.write(state(k))), Box::new(move |_| seen(output.read())))
    }),
    ("latest: arc-swap", || {
        let slot = Arc::new(ArcSwap::from_pointee(state(0)));
        let reader = Arc::clone(&slot);
        (Box::new(move |k| slot.store(Arc::new(state(k)))), Box::new(move |_| seen(&reader.load())))
    }),
    ("latest: ArrayQueue of 1", || {
        let slot = Arc::new(ArrayQueue::new(1));
        let reader = Arc::clone(&slot);
        (
            Box::new(move |k| _ = black_box(slot.force_push(state(k)))),
            Box::new(move |_| reader.pop().iter().for_each(seen)),
        )
    }),
    ("latest: PiMutex", || {
        let slot = Arc::new(PiMutex::new(state(0)));
        let reader = Arc::clone(&slot);
        (Box::new(move |k| *slot.lock() = state(k)), Box::new(move |_| seen(&reader.lock())))
    }),
    ("latest: std Mutex", || {
        let slot = Arc::new(Mutex::new(state(0)));
        let reader = Arc::clone(&slot);
        (
            Box::new(move |k| *slot.lock().unwrap_or_else(PoisonError::into_inner) = state(k)),
            Box::new(move |_| seen(&reader.lock().unwrap_or_else(PoisonError::into_inner))),
        )
    }),
    ("queue: rtrb", || {
        let (mut producer, mut consumer) = rtrb::RingBuffer::new(HELD);
        (
            Box::new(move |k| _ = black_box(producer.push(state(k)))),
            Box::new(move |_| consumer.pop().iter().for_each(seen)),
        )
    }),
    ("queue: ArrayQueue", || {
        let queue = Arc::new(ArrayQueue::new(HELD));
        let reader = Arc::clone(&queue);
        (
            Box::new(move |k| _ = black_box(queue.push(state(k)))),
            Box::new(move |_| reader.pop().iter().for_each(seen)),
        )
    }),
    ("queue: std sync_channel", || {
        let (sender, receiver) = sync_channel(HELD);
        (
            Box::new(move |k| _ = black_box(sender.try_send(state(k)))),
            Box::new(move |_| receiver.try_recv().iter().for_each(seen)),
        )
    }),
    ("queue: PiMutex<VecDeque>", || {
        let queue = Arc::new(PiMutex::new(VecDeque::with_capacity(HELD)));
        let reader = Arc::clone(&queue);
        (
            Box::new(move |k| push(&mut queue.lock(), k)),
            Box::new(move |_| reader.lock().pop_front().iter().for_each(seen)),
        )
    }),
    ("queue: Mutex<VecDeque>", || {
        let queue = Arc::new(Mutex::new(VecDeque::with_capacity(HELD)));
        let reader = Arc::clone(&queue);
        (
            Box::new(move |k| push(&mut queue.lock().unwrap_or_else(PoisonError::into_inner), k)),
            Box::new(move |_| {
                let taken = reader.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                taken.iter().for_each(seen);
            }),
        )
    }),
];

/// Full is full: the newest is dropped.
fn push(queue: &mut VecDeque<State>, k: u64) {
    if queue.len() < HELD {
        queue.push_back(state(k));
    }
}

/// A line of the table: one half of an exchange in the loop, the other half elsewhere.
struct Row {
    name: &'static str,
    does: &'static str,
    in_loop: Half,
    costs_ns: Vec<u32>,
    ended: Option<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.costs_ns.clone();
        sorted.sort_unstable();
        write!(f, "  {:25} {:6}", self.name, self.does)?;
        for share in [0.5, 0.99, 0.9999, 1.0] {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            let cost = sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default();
            write!(f, " {:>9}", Span::from_ns(i64::from(cost)).to_string())?;
        }
        write!(f, "   n = {}", sorted.len())?;
        self.ended.iter().try_for_each(|why| write!(f, ", then {why}"))
    }
}

/// Both rows of each exchange, and the halves of the other thread in the same order.
fn rows(cycles: usize) -> (Vec<Row>, Vec<Half>) {
    let (mut rows, mut others) = (Vec::new(), Vec::new());
    for (name, make) in EXCHANGES {
        for does in ["writes", "reads"] {
            let (writer, reader) = make();
            let (in_loop, other) =
                if does == "writes" { (writer, reader) } else { (reader, writer) };
            rows.push(Row {
                name,
                does,
                in_loop,
                costs_ns: Vec::with_capacity(cycles),
                ended: None,
            });
            others.push(other);
        }
    }
    (rows, others)
}

/// What the other thread looks at: which row has its turn, and whether all is over.
#[derive(Default)]
struct Stage {
    row: AtomicUsize,
    over: AtomicBool,
}

/// The other half of whichever row has its turn, without rest, on `cpu`.
fn work_beside(stage: &Stage, cpu: u32, mut others: Vec<Half>) {
    // Where it may not, it is the scheduler's choice.
    let _chosen = affinity::set(0, &CpuMask::one(cpu));
    let mut k = 0;
    while !stage.over.load(Ordering::Relaxed) {
        (others[stage.row.load(Ordering::Relaxed)])(k);
        k += 1;
        (0..20).for_each(|_| spin_loop());
    }
}

/// Turns of all rows until each has its cycles. A loop that the watchdog ended is begun anew, and
/// the row that did it has no further turn.
fn take_turns(
    stage: &Stage,
    cpu: u32,
    rows: &mut [Row],
    cycles: usize,
) -> Result<String, Box<dyn Error>> {
    let period = Period::hz(10_000).ok_or("no such period")?;
    let thread = RtThread::cpu(cpu).wait(WaitPolicy::sleep()).watchdog(Duration::from_millis(300));
    let begin = || Loop::builder(period).phase(Phase::Zero).thread(thread.clone()).start();
    let mut each = begin()?;
    let policy = format!("{:?}", each.policy());
    for turn in 0..cycles.div_ceil(TURN) {
        for place in 0..rows.len() {
            // Each turn begins with another row.
            let index = (place + turn) % rows.len();
            let row = &mut rows[index];
            if row.ended.is_some() {
                continue;
            }
            stage.row.store(index, Ordering::Relaxed);
            for _ in 0..TURN.min(cycles) {
                let Some(cycle) = each.wait() else { break };
                let before = now();
                (row.in_loop)(cycle.n);
                let cost_ns = (now() - before).as_ns();
                row.costs_ns.push(u32::try_from(cost_ns).unwrap_or(u32::MAX));
            }
            if each.handle().stopped() {
                row.ended = Some(each.finish().end.to_string());
                each = begin()?;
            }
        }
    }
    Ok(policy)
}

fn main() -> Result<(), Box<dyn Error>> {
    // cargo bench passes --bench along; cargo test builds this too, and wants no figures.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given = words.iter().find_map(|word| word.parse().ok());
    let default = if words.iter().any(|word| word == "--bench") { CYCLES } else { 20 };
    let cycles: usize = given.unwrap_or(default);
    let cpus: Vec<u32> = affinity::get(0).map_err(|why| why.to_string())?.iter().collect();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    for (place, cpu) in [("beside", first), ("below", last)] {
        if place == "beside" && first == last {
            println!("beside: there is one CPU");
            continue;
        }
        let (mut rows, others) = rows(cycles);
        let stage = Arc::new(Stage::default());
        let shared = Arc::clone(&stage);
        let other = std::thread::spawn(move || work_beside(&shared, cpu, others));
        let policy = take_turns(&stage, last, &mut rows, cycles);
        stage.over.store(true, Ordering::Relaxed);
        other.join().map_err(|_| "the other thread panicked")?;
        println!("{place}: loop on CPU {last} ({}), other thread on CPU {cpu}", policy?);
        println!("  {:25} {:6} {:>9} {:>9} {:>9} {:>9}", "", "loop", "p50", "p99", "p99.99", "max");
        rows.iter().for_each(|row| println!("{row}"));
    }
    Ok(())
}
