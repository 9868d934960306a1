//! A loop of a millisecond on TAI, or on a PTP clock, for ten seconds:
//! `cargo run --release -p punctual --example follow [-- /dev/ptp0]`.
//!
//! Its releases are at whole milliseconds of that clock, on every machine that follows it too.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use punctual::clocks::MachineClock;
use punctual::core::clock::Clock;
use punctual::core::dispatch::{Job, Overruns};
use punctual::core::executive::many::Observe;
use punctual::core::gate::Gate;
use punctual::core::releases::Releases;
use punctual::core::time::{Instant, Period, Span};
use punctual::core::wait::Spin;
use punctual::follow::{Follow, PtpClock, Reference, Settings};
use punctual::os::clock::{ClockId, now_ns};
use punctual::os::scheduler::SchedPolicy;
use punctual::session;

/// The lateness of each cycle, its number, and its release on CLOCK_MONOTONIC.
struct Kept(Vec<(i64, u64, u64)>);

impl Observe for Kept {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        if self.0.len() < self.0.capacity() {
            let lateness_ns = (start - job.release).as_ns();
            let release_ns = now_ns(ClockId::Monotonic).saturating_add_signed(-lateness_ns);
            self.0.push((lateness_ns, job.cycle, release_ns));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reference = match std::env::args().nth(1) {
        Some(device) => Reference::Ptp(PtpClock::open(Path::new(&device))?),
        None => Reference::Tai,
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "following {reference:?}")?;
    let period = Period::from_ns(1_000_000).ok_or("a period of nothing")?;
    let settings = Settings { period_ns: Some(period.as_ns()), ..Settings::default() };
    let follower = Follow::new(reference).settings(settings).start()?;

    let _process = session::Process::enter();
    let _thread = session::Thread::enter(None, SchedPolicy::Fifo(50));
    let mut clock = follower.clock(MachineClock::best());
    let start = clock.now();
    // Cycles count whole milliseconds of the reference.
    let grid = Releases::new(Instant::from_ns(0), period);
    let end = start + Span::from_ms(10_000);
    let wait = Spin::new(Spin::FIXED);
    let (kept, first) = (Kept(Vec::with_capacity(11_000)), grid.at_or_after(start) + 2);
    let mut gate = Gate::new(clock, wait, kept, grid, first).until(end);
    let ended = gate.run(&AtomicBool::new(false));

    let kept = gate.observe.0;
    let mut late: Vec<i64> = kept.iter().map(|kept| kept.0).collect();
    late.sort_unstable();
    let n = late.len();
    let at = |share: f64| Span::from_ns(late[((n as f64 * share) as usize).min(n - 1)]);
    let (first, last) = (kept.first().ok_or("no cycle")?, kept.last().ok_or("no cycle")?);
    let mean_ns = (last.2 - first.2) as f64 / (last.1 - first.1) as f64;
    writeln!(out, "{ended:?}: n {n}, lateness p50 {} p99 {} max {}", at(0.5), at(0.99), at(1.0))?;
    writeln!(out, "mean period {mean_ns:.3} ns of CLOCK_MONOTONIC")?;
    writeln!(out, "{:?}", follower.status())?;
    Ok(())
}
