//! The rate at which attribution takes in events, without any file:
//! `cargo run --release -p punctual-blame --example speed -- [EVENTS]`.
//!
//! A made-up stream of two CPUs: a loop of 1 kHz with its timer, a softirq storm, switches between
//! other threads, interrupts from one CPU to the other. Five times, each printed with the median.

use std::time::Instant;

use punctual_blame::blame::Blame;
use punctual_blame::config::{BlameConfig, FollowedThreads, LateThreshold};
use punctual_trace::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};

/// Events in a block, which is made before its time is taken.
const BLOCK: usize = 1 << 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events: usize = std::env::args().nth(1).map_or(Ok(5_000_000), |text| text.parse())?;
    let mut rates = Vec::new();
    for _ in 0..5 {
        rates.push(rate(events));
    }
    rates.sort_by(f64::total_cmp);
    let shown: Vec<String> = rates.iter().map(|rate| format!("{:.1}", rate / 1e6)).collect();
    println!("median {:.1} M events/s  of {}", rates[2] / 1e6, shown.join(" "));
    Ok(())
}

/// Events a second, those being made not counted.
fn rate(events: usize) -> f64 {
    let mut blame = Blame::new(BlameConfig {
        follow: FollowedThreads::Threads(vec![100]),
        late: LateThreshold::Above(50_000),
        ..BlameConfig::default()
    });
    let mut stream = Stream::new();
    let (mut pushed, mut spent) = (0, 0.0);
    while pushed < events {
        while stream.block.len() < BLOCK {
            stream.cycle();
        }
        let start = Instant::now();
        stream.block.iter().for_each(|event| blame.push(event));
        spent += start.elapsed().as_secs_f64();
        pushed += stream.block.len();
        stream.block.clear();
    }
    let start = Instant::now();
    let outcome = blame.finish();
    spent += start.elapsed().as_secs_f64();
    assert_eq!(outcome.counts.events, pushed as u64);
    assert!(outcome.table.wakes + 1 >= stream.cycles && outcome.table.late > 0);
    pushed as f64 / spent
}

struct Stream {
    block: Vec<TraceEvent>,
    cycles: u64,
    release_ns: u64,
}

fn task(name: &str, tid: u32, kernel_priority: i32) -> TaskName {
    TaskName { tid, name: ShortName::new(name.as_bytes()), kernel_priority }
}

impl Stream {
    fn new() -> Self {
        Self { block: Vec::new(), cycles: 0, release_ns: 1_000_000_000 }
    }

    fn push(&mut self, at_ns: u64, cpu: u32, tid: u32, kind: TraceKind) {
        let is_inside = !matches!(kind, TraceKind::Switch { .. } | TraceKind::TimerStart { .. });
        let flags = if is_inside { 0x08 } else { 0x04 };
        let context = ContextFlags { flags, preempt_depth: 0 };
        self.block.push(TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() });
    }

    /// A millisecond: some 80 events, of which the loop's own are nine.
    fn cycle(&mut self) {
        let (servo, other, third) =
            (task("servo", 100, 9), task("cc1", 200, 120), task("make", 201, 120));
        self.cycles += 1;
        self.release_ns += 1_000_000;
        let release = self.release_ns;
        let expires_ns = release.cast_signed();
        let (timer, function) = (0xffff_8880_0000_1000 + self.cycles % 7 * 64, 0x9000);
        let start =
            TraceKind::TimerStart { timer, function, expires_ns, soft_expires_ns: expires_ns };
        self.push(release - 900_000, 0, servo.tid, start);
        let sleep = TraceKind::Switch { previous: servo, previous_state: 1, next: other };
        self.push(release - 898_000, 0, servo.tid, sleep);
        let mut runs = [other, third];
        for step in 0..10_u64 {
            let at = release - 890_000 + step * 80_000;
            self.push(at, 0, runs[0].tid, TraceKind::SoftirqEntry(3));
            self.push(at + 4_000, 0, runs[0].tid, TraceKind::SoftirqExit(3));
            let [previous, next] = runs;
            let switch = TraceKind::Switch { previous, previous_state: 0, next };
            self.push(at + 5_000, 0, previous.tid, switch);
            runs.swap(0, 1);
            let vector = Vector::CallFunction;
            let targets = Box::new([1_u64]);
            self.push(at + 6_000, 1, 300, TraceKind::IpiSend { targets, callback: 7 });
            self.push(at + 7_000, 0, runs[0].tid, TraceKind::VectorEntry(vector));
            self.push(at + 8_000, 0, runs[0].tid, TraceKind::VectorExit(vector));
            self.push(at + 9_000, 1, 300, TraceKind::SoftirqEntry(9));
            self.push(at + 10_000, 1, 300, TraceKind::SoftirqExit(9));
        }
        // One cycle of a hundred is late.
        let late = if self.cycles.is_multiple_of(100) { 200_000 } else { 0 };
        let running = runs[0].tid;
        let entry = TraceKind::VectorEntry(Vector::LocalTimer);
        self.push(release + 5_000, 0, running, entry);
        let now_ns = expires_ns + 5_000;
        let expire = TraceKind::TimerExpireEntry { timer, function, now_ns };
        self.push(release + 6_000, 0, running, expire);
        let waking = TraceKind::Waking { task: servo, target_cpu: 0 };
        self.push(release + 7_000, 0, running, waking);
        self.push(release + 10_000, 0, running, TraceKind::VectorExit(Vector::LocalTimer));
        let previous = runs[0];
        let run = TraceKind::Switch { previous, previous_state: 0, next: servo };
        self.push(release + 11_000 + late.min(80_000), 0, running, run);
    }
}
