//! Spread of the exits of a spin: `cargo bench -p punctual-papers --bench exit [-- ROUNDS]`.
//!
//! Three ways to leave a spin at targets that sweep all offsets, interleaved: polling with the
//! processor's hint for spins, polling alone (Maruti's TSC loop), and corrected. Where the counter
//! counts in steps, a delay of known length before the stamp is swept over one step: how often the
//! stamp falls on either side of an edge gives the distribution finer than the step (a vernier).
//! The spread is p95 − p5 of the exit. Asserts nothing.

use std::hint::black_box;
use std::io::Write;
use std::sync::atomic::AtomicBool;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_engine::clocks::MachineClock;
use punctual_engine::session;
use punctual_lab::accuracy::{FINE, plain};
use punctual_os::affinity;
use punctual_os::scheduler::SchedPolicy;
use punctual_papers::maruti::spin_exit::SpinExit;

const WAYS: [&str; 3] = ["polling with the hint", "polling alone", "corrected"];
/// Exits in a block, and how many of its first ones are left out.
const BLOCK: u64 = 60;
const COLD: u64 = 10;
/// The distribution is kept over so much before and after the target, ns, in bins of a tenth.
const BEFORE_NS: f64 = 60.0;
const AFTER_NS: f64 = 240.0;
const BINS: usize = 3_000;

/// The distribution function of an exit: for each bin, how often it was looked at, and how often
/// the exit was not later.
struct Spread {
    seen: Vec<f64>,
    below: Vec<f64>,
    n: u64,
}

impl Spread {
    fn new() -> Self {
        Self { seen: vec![0.0; BINS], below: vec![0.0; BINS], n: 0 }
    }

    /// A stamp `error` after the target, after a delay; each edge of the counter's step says on
    /// which side of it the exit was: after its own, before the next. What the stamp takes counts
    /// as the exit's.
    fn add(&mut self, error: f64, delay: f64, step: f64) {
        self.n += 1;
        for edge in -8..=8 {
            let at = error + f64::from(edge) * step - delay;
            let bin = ((at + BEFORE_NS) / (BEFORE_NS + AFTER_NS) * BINS as f64).floor();
            if (0.0..BINS as f64).contains(&bin) {
                self.seen[bin as usize] += 1.0;
                self.below[bin as usize] += f64::from(u8::from(edge > 0));
            }
        }
    }

    /// The exit at this share, ns after the target: looked up in the distribution, smoothed over a
    /// nanosecond.
    fn quantile(&self, share: f64) -> f64 {
        let wide = 5;
        let at = |bin: usize| {
            let range = bin.saturating_sub(wide)..(bin + wide + 1).min(BINS);
            self.below[range.clone()].iter().sum::<f64>() / self.seen[range].iter().sum::<f64>()
        };
        let bin = (0..BINS).find(|&bin| at(bin) >= share).unwrap_or(BINS);
        bin as f64 / BINS as f64 * (BEFORE_NS + AFTER_NS) - BEFORE_NS
    }
}

/// A delay of one cycle a link or two.
#[inline(never)]
fn delay(seed: u64, links: u64) -> u64 {
    let mut x = seed;
    for _ in 0..links {
        x = x.rotate_left(7) ^ x;
    }
    black_box(x)
}

/// Time of one link of the delay, ns: the median of 101 chains of 20 000.
fn link_ns(clock: &mut MachineClock) -> f64 {
    let once = |clock: &mut MachineClock| {
        let first = clock.fine_now();
        delay(first, black_box(20_000));
        clock.fine_now().wrapping_sub(first) as f64 / FINE as f64 / 20_000.0
    };
    let mut links_ns: Vec<f64> = (0..101).map(|_| once(clock)).collect();
    links_ns.sort_by(f64::total_cmp);
    links_ns[50]
}

fn leave(way: usize, exit: &SpinExit, clock: &mut MachineClock, target: Instant) {
    match way {
        0 => {
            while clock.poll() < target && !STOP.load(std::sync::atomic::Ordering::Relaxed) {
                clock.relax();
            }
        }
        1 => plain(clock, target),
        _ => {
            exit.leave(clock, target);
        }
    }
}

/// The stop flag that the library's spin loads in each poll; never set.
static STOP: AtomicBool = AtomicBool::new(false);

/// A block of exits in one way.
fn block(spread: &mut Spread, way: usize, exit: &SpinExit, clock: &mut MachineClock, with: Delay) {
    clock.wake();
    let mut offset = spread.n;
    for at in 0..BLOCK {
        offset = offset.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_889);
        let ahead = 3_000 + (offset >> 33).cast_signed() % 101;
        let target = clock.now() + Span::from_ns(ahead);
        leave(way, exit, clock, target);
        delay(offset, with.links);
        let stamp = clock.fine_now();
        let error = stamp.wrapping_sub(target.as_ns().wrapping_mul(FINE)).cast_signed();
        if at >= COLD {
            spread.add(error as f64 / FINE as f64, with.ns, with.step_ns);
        }
    }
}

/// The delay between an exit and its stamp: its links, the time of one, and a step, both in ns.
#[derive(Clone, Copy)]
struct Delay {
    links: u64,
    ns: f64,
    step_ns: f64,
}

fn main() -> std::io::Result<()> {
    // cargo bench passes --bench along.
    let rounds_arg = std::env::args().skip(1).find_map(|arg| arg.parse::<u32>().ok());
    let rounds = rounds_arg.unwrap_or(40);
    let _process = session::ProcessSession::enter();
    let cpu = affinity::get(0).ok().and_then(|cpus| cpus.iter().last());
    let thread = session::ThreadSession::enter(cpu, SchedPolicy::Fifo(90));
    let mut clock = MachineClock::best();
    let mut out = std::io::stdout().lock();
    let link_ns = link_ns(&mut clock);
    let exit = match SpinExit::measure(&mut clock) {
        Ok(exit) => exit,
        Err(why) => return writeln!(out, "not corrected here: {why:?}"),
    };
    writeln!(out, "cpu {cpu:?}, policy {:?}, {}", thread.policy(), clock.name())?;
    writeln!(out, "counter's step {:.2} ns, a link {link_ns:.3} ns", exit.quantum_ns())?;
    writeln!(out, "{exit:?}")?;
    writeln!(out, "its own trial: {:?}", SpinExit::calibrate(&mut clock))?;
    // Without steps there is nothing to sweep, and each stamp is one look.
    let step_ns = exit.quantum_ns().max(0.4);
    let delays = ((step_ns / link_ns) as u64).max(1);
    let mut spreads: Vec<Spread> = WAYS.iter().map(|_| Spread::new()).collect();
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let mut of_round: Vec<Spread> = WAYS.iter().map(|_| Spread::new()).collect();
        for links in 0..delays {
            let with = Delay { links, ns: links as f64 * link_ns, step_ns };
            for (way, total) in spreads.iter_mut().enumerate() {
                for spread in [total, &mut of_round[way]] {
                    block(spread, way, &exit, &mut clock, with);
                }
            }
        }
        let wide = |way: usize| of_round[way].quantile(0.95) - of_round[way].quantile(0.05);
        ratios.push(wide(2) / wide(1));
    }
    for (name, spread) in WAYS.iter().zip(&spreads) {
        let [p5, p50, p95] = [0.05, 0.5, 0.95].map(|share| spread.quantile(share));
        let n = spread.n;
        let wide = p95 - p5;
        writeln!(out, "{name:22} n {n} p5 {p5:.1} p50 {p50:.1} p95 {p95:.1} spread {wide:.1} ns")?;
    }
    let wide = |way: usize| spreads[way].quantile(0.95) - spreads[way].quantile(0.05);
    ratios.sort_by(f64::total_cmp);
    writeln!(
        out,
        "corrected / polling alone {:.2}, in rounds median {:.2} (best {:.2}, worst {:.2}); \
         corrected / polling with the hint {:.2}",
        wide(2) / wide(1),
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1],
        wide(2) / wide(0)
    )
}
