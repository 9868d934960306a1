//! The noise experiment as the lifecycle of all experiments runs it.

use std::sync::atomic::Ordering;

use punctual::RtThread;
use punctual::clocks::{MachineClock, Reading, StampCost};
use punctual::safety::is_real_time;
use punctual_analysis::histogram::display::HistogramView;
use punctual_analysis::summary::Distribution;
use punctual_core::time::Span;
use punctual_host::root::Root;
use punctual_os::scheduler::SchedPolicy;

use super::accounts::Accounts;
use super::collector::Collected;
use super::outcome::{CpuNoise, Lengths, NoiseOutcome};
use super::threads::{Measurement, Threads};
use super::windows::Windows;
use crate::experiment::{
    BackgroundLoads, ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError,
    Measured, Risk, Taken, policy_words,
};
use crate::load::LoadSpec;

/// Reads of the clock that the threshold must be as long as.
const READS_IN_A_THRESHOLD: f64 = 4.0;

/// What takes CPUs away from threads that only spin.
#[derive(Clone, Debug)]
pub struct NoiseExperiment {
    /// The CPUs to measure, each once.
    pub cpus: Vec<u32>,
    /// How their threads run: the policy to ask for.
    pub thread: RtThread,
    /// Two reads of the clock that are this far apart are a gap.
    pub threshold: Span,
    /// How long in all.
    pub duration: Span,
    /// The share of the time to spin, in (0, 1].
    pub duty: f64,
    /// The loads that run meanwhile, and how results name them.
    pub loads: (String, Vec<LoadSpec>),
    /// CPUs for all that does not spin; empty to leave that to the kernel.
    pub housekeeping: Vec<u32>,
    /// The kernel's ticks in a second, where that is known.
    pub tick_hz: Option<u32>,
    /// Whether the machine counts interrupts of its firmware.
    pub counts_smi: bool,
}

impl Experiment for NoiseExperiment {
    type Outcome = NoiseOutcome;

    fn demands(&self) -> Vec<Demand> {
        let demand = |&cpu: &u32| Demand {
            cpu: Some(cpu),
            real_time: is_real_time(self.thread.policy()),
            period: Windows::frame(),
            share: self.duty,
        };
        self.cpus.iter().map(demand).collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![self.loads.clone()]
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<NoiseOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        self.check_threshold(cost.poll_ns).map_err(ExperimentError::Refused)?;
        let windows = Windows::of(self.duration, self.duty);
        loading.begin(0, windows.length()).map_err(ExperimentError::Load)?;
        let root = Root::live();
        let smi_cpu = self.cpus.first().copied().filter(|_| self.counts_smi);
        let before = Accounts::read(&root, smi_cpu);
        let hz = self.tick_hz.filter(|&hz| hz > 0);
        let threads = Threads {
            cpus: &self.cpus,
            policy: self.thread.policy(),
            threshold: self.threshold,
            windows,
            housekeeping: &self.housekeeping,
            tick_ns: hz.map(|hz| 1_000_000_000 / u64::from(hz)),
            clock: &clock,
            stop,
        };
        let spun = threads.run(loading);
        let after = Accounts::read(&root, smi_cpu);
        loading.end(0);
        let spun = spun?;
        clock.discipline();
        let forced = spun.collected.forced.map(ExperimentEnd::Watchdog);
        let stopped = if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        let taken = |(&cpu, of): (&u32, &Measurement)| {
            let real_time =
                matches!(of.ended.policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_));
            real_time.then_some(Taken { cpu, condition: 0, share: of.ended.cpu_share })
        };
        Ok(Measured {
            end: forced.unwrap_or(stopped),
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            refused: spun.of.iter().flat_map(|of| of.ended.refused.clone()).collect(),
            taken: self.cpus.iter().zip(&spun.of).filter_map(taken).collect(),
            disturbances: spun.lookout.happened(),
            outcome: self.outcome(windows, spun.of, spun.collected, (&before, &after)),
        })
    }
}

impl NoiseExperiment {
    /// A threshold that the clock's own reads would reach is refused.
    fn check_threshold(&self, read_ns: f64) -> Result<(), Risk> {
        let times = READS_IN_A_THRESHOLD;
        let value_ns = self.threshold.as_ns().max(0).unsigned_abs();
        if (value_ns as f64) < times * read_ns {
            return Err(Risk::TooFine {
                option: "--threshold",
                value_ns,
                stamp_ns: read_ns,
                times,
            });
        }
        Ok(())
    }

    fn outcome(
        &self,
        windows: Windows,
        of: Vec<Measurement>,
        collected: Collected,
        (before, after): (&Accounts, &Accounts),
    ) -> NoiseOutcome {
        let spun = of.iter().map(|of| of.ended.spun).max().unwrap_or(Span::ZERO);
        let begun = of.iter().map(|of| of.ended.windows).max().unwrap_or(0);
        let row = |((&cpu, of), gaps): ((&u32, Measurement), &Distribution)| {
            cpu_noise(cpu, &of, gaps, (before, after))
        };
        NoiseOutcome {
            threshold_ns: self.threshold.as_ns().unsigned_abs(),
            duty: self.duty,
            frame_ns: Windows::frame().as_ns(),
            window_ns: windows.width.as_ns().unsigned_abs(),
            windows: begun,
            cpus: self.cpus.iter().zip(of).zip(&collected.gaps).map(row).collect(),
            lengths: Lengths::of(&collected.gaps),
            at_once: collected.at_once.finish(spun),
            smi: after.smi(before),
        }
    }
}

/// What took one CPU away.
fn cpu_noise(
    cpu: u32,
    of: &Measurement,
    gaps: &Distribution,
    (before, after): (&Accounts, &Accounts),
) -> CpuNoise {
    let ended = &of.ended;
    let spun_ns = ended.spun.as_ns().max(0).unsigned_abs();
    let (policy, priority) = policy_words(ended.policy);
    let between = ended.reads.saturating_sub(of.gaps);
    let between_ns = spun_ns.saturating_sub(of.lost_ns);
    let (interrupts, most_often) = after.interrupts(before, cpu).unzip();
    CpuNoise {
        cpu,
        policy,
        priority,
        spun_ns,
        read_ns: (between > 0).then(|| between_ns as f64 / between as f64),
        gaps: of.gaps,
        lost_ns: of.lost_ns,
        lost_share: (spun_ns > 0).then(|| of.lost_ns as f64 / spun_ns as f64),
        worst: of.worst,
        gap_ns: gaps.stats(),
        histogram: HistogramView::of(gaps.histogram()),
        unlisted: of.unlisted,
        page_faults: ended.usage.minor_faults + ended.usage.major_faults,
        preempted: ended.usage.involuntary_switches,
        steal_ns: after.steal_ns(before, cpu),
        interrupts,
        most_often: most_often.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_host::facts::MachineFacts;

    use super::*;
    use crate::experiment::judge;

    fn noise(duty: f64) -> NoiseExperiment {
        NoiseExperiment {
            cpus: vec![0, 1],
            thread: RtThread::any().fifo(90),
            threshold: Span::from_us(1),
            duration: Span::from_ms(1_000),
            duty,
            loads: ("idle".to_owned(), Vec::new()),
            housekeeping: Vec::new(),
            tick_hz: None,
            counts_smi: false,
        }
    }

    /// The captured guest: two CPUs.
    fn guest(runtime_us: i64) -> MachineFacts {
        let tree =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
        let mut facts = MachineFacts::collect(&Root::captured(tree).expect("a fixture"));
        let fact = facts.limits.rt_throttling.clone();
        facts.limits.rt_throttling = fact.map(|mut throttling| {
            throttling.runtime_us = runtime_us;
            throttling
        });
        facts
    }

    #[test]
    fn a_full_spin_on_all_cpus_needs_throttling_and_half_of_it_does_not() {
        let judged = |duty, runtime_us| judge(&noise(duty).demands(), &guest(runtime_us));
        assert_eq!(judged(1.0, -1), Err(Risk::NoCpuLeft));
        assert_eq!(judged(1.0, 950_000).map(|cautions| cautions.len()), Ok(2));
        assert_eq!(judged(0.5, 950_000), Ok(vec![]));
        assert_eq!(judged(0.5, -1), Ok(vec![]));
        let other = NoiseExperiment { thread: RtThread::any().other(), ..noise(1.0) };
        assert_eq!(judge(&other.demands(), &guest(-1)), Ok(vec![]));
    }

    #[test]
    fn a_threshold_that_reads_of_the_clock_reach_is_refused() {
        assert_eq!(noise(0.5).check_threshold(25.0), Ok(()));
        let refused = noise(0.5).check_threshold(251.0).expect_err("refused");
        assert!(matches!(refused, Risk::TooFine { option: "--threshold", value_ns: 1_000, .. }));
    }
}
