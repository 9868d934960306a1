//! The periodic experiment on this machine: what must add up, whatever the machine does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use punctual::RtThread;
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Period, Span};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::drain::Sink;
use punctual_lab::experiment::{BackgroundLoads, ExperimentEnd};
use punctual_lab::periodic::{
    Condition, ConditionBlock, LoopsOutcome, PeriodicPlan, Prepared, Stream, WaitKind, interleave,
};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_testkit::skip;

#[derive(Default)]
struct Kept(Vec<(usize, Sample)>);

impl Sink for Kept {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        self.0.extend(samples.iter().map(|&sample| (run, sample)));
    }
}

/// A load that does nothing but say what it was asked.
#[derive(Default)]
struct Asked(Vec<(usize, bool)>);

impl BackgroundLoads for Asked {
    fn begin(&mut self, condition: usize, _: Span) -> Result<(), String> {
        self.0.push((condition, true));
        if condition == 9 { Err("no such load".into()) } else { Ok(()) }
    }

    fn end(&mut self, condition: usize) {
        self.0.push((condition, false));
    }
}

/// Has blocks run behind the measurement, and says what became of them.
struct Behind<'a> {
    blocks: Vec<ConditionBlock>,
    /// Set when the last of so many of them begins.
    stop: Option<(usize, &'a AtomicBool)>,
    tids: Vec<i32>,
    is_measured: bool,
    /// Conditions that began behind it, and how often the first loop slept in each that ended.
    begun: Vec<usize>,
    slept: Vec<u64>,
    slept_before: u64,
}

impl<'a> Behind<'a> {
    fn new(blocks: &[usize], stop: Option<(usize, &'a AtomicBool)>) -> Self {
        let length = Span::from_ms(200);
        let blocks = blocks.iter().map(|&condition| ConditionBlock { condition, length }).collect();
        let (tids, begun, slept) = (Vec::new(), Vec::new(), Vec::new());
        Self { blocks, stop, tids, is_measured: false, begun, slept, slept_before: 0 }
    }

    /// Sleeps of the first loop so far: its voluntary context switches.
    fn sleeps(&self) -> u64 {
        let path = format!("/proc/self/task/{}/status", self.tids[0]);
        let status = std::fs::read_to_string(path).expect("it lives");
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.expect("procfs").trim().parse().expect("a number")
    }
}

impl BackgroundLoads for Behind<'_> {
    fn ready(&mut self, tids: &[i32]) {
        self.tids = tids.to_vec();
    }

    fn begin(&mut self, condition: usize, _: Span) -> Result<(), String> {
        if self.is_measured {
            self.begun.push(condition);
            self.slept_before = self.sleeps();
            if let Some((last, stop)) = self.stop {
                stop.store(self.begun.len() == last, Ordering::Relaxed);
            }
        }
        if condition == 9 { Err("no such load".into()) } else { Ok(()) }
    }

    fn end(&mut self, _: usize) {
        if self.is_measured {
            self.slept.push(self.sleeps() - self.slept_before);
        }
    }

    fn measured(&mut self) -> Vec<ConditionBlock> {
        assert!(!self.is_measured, "once");
        self.is_measured = true;
        self.blocks.clone()
    }
}

/// Runs idle and a load for 200 ms each, and what is behind that.
fn run_before(behind: &mut Behind<'_>, stop: &AtomicBool) -> LoopsOutcome<Kept> {
    let streams = vec![stream(1_000_000, WaitKind::Sleep, SchedPolicy::Fifo(20))];
    let mut plan = plan(streams, 9, Span::from_ms(400));
    plan.blocks =
        [0, 1].map(|condition| ConditionBlock { condition, length: Span::from_ms(200) }).into();
    let none = None::<punctual_engine::drain::SampleFile<Vec<u8>>>;
    Prepared::new(plan).run(Kept::default(), none, behind, stop).expect("threads")
}

#[test]
fn blocks_behind_the_measurement_run_and_count_for_nothing() {
    let stop = AtomicBool::new(false);
    let mut behind = Behind::new(&[1, 2, 0], None);
    let outcome = run_before(&mut behind, &stop);
    assert_eq!(outcome.end, ExperimentEnd::Finished);
    assert_eq!(behind.begun, [1, 2, 0]);
    assert_eq!(behind.slept.len(), 3);
    assert!(behind.slept.iter().all(|&sleeps| sleeps > 0), "{:?}", behind.slept);
    for (number, run) in outcome.runs.iter().enumerate() {
        let samples = outcome.sink.0.iter().filter(|(group, _)| *group == number);
        let cycles: Vec<u64> = samples.map(|(_, sample)| sample.cycle).collect();
        assert_eq!(cycles.len() as u64 + run.unrecorded, run.cycles, "run {number}");
        assert_eq!(run.cycles > 0, number < 2, "run {number}");
        // One block of 200 releases, not two.
        assert!(run.cycles + run.missed <= 201, "run {number}: {run:?}");
        assert_eq!(run.wall_ns > 0, number < 2, "run {number}");
    }
}

#[test]
fn what_ends_behind_the_measurement_leaves_it_whole() {
    let stop = AtomicBool::new(false);
    let mut behind = Behind::new(&[0, 1, 2], Some((2, &stop)));
    let outcome = run_before(&mut behind, &stop);
    assert!(stop.load(Ordering::Relaxed));
    assert_eq!((outcome.end, behind.begun), (ExperimentEnd::Finished, vec![0, 1]));
    assert!(outcome.runs[..2].iter().all(|run| run.cycles > 0));
    // A load that does not start ends it too.
    let stop = AtomicBool::new(false);
    let mut behind = Behind::new(&[0, 9, 1], None);
    let outcome = run_before(&mut behind, &stop);
    assert_eq!((outcome.end, behind.begun), (ExperimentEnd::Finished, vec![0, 9]));
}

#[test]
fn nothing_runs_behind_a_measurement_that_did_not_come_to_its_end() {
    let stop = AtomicBool::new(true);
    let mut behind = Behind::new(&[0], None);
    let outcome = run_before(&mut behind, &stop);
    assert_eq!((outcome.end, behind.is_measured), (ExperimentEnd::Stopped, false));
}

/// Has the CPU when a block begins, above the loop, for 300 ms.
struct Hog(u32);

impl BackgroundLoads for Hog {
    fn begin(&mut self, _: usize, _: Span) -> Result<(), String> {
        let (has_it, is_ready) = std::sync::mpsc::channel();
        let cpu = self.0;
        std::thread::spawn(move || {
            affinity::set(0, &CpuMask::one(cpu)).expect("a CPU of this process");
            scheduler::set(0, SchedPolicy::Fifo(30)).expect("root");
            let begun = Instant::now();
            has_it.send(()).expect("somebody waits");
            while begun.elapsed() < Duration::from_millis(300) {
                std::hint::spin_loop();
            }
        });
        is_ready.recv().map_err(|why| why.to_string())
    }

    fn end(&mut self, _: usize) {}
}

#[test]
fn releases_that_pass_before_a_loop_has_its_cpu_are_missed_and_none_is_left_out() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    // The loops of the other tests are on the last CPU.
    let cpu = affinity::get(0).expect("own").iter().next().expect("one");
    let mut pinned = stream(1_000_000, WaitKind::Sleep, SchedPolicy::Fifo(20));
    pinned.thread = pinned.thread.pinned(Some(cpu));
    let plan = plan(vec![pinned], 0, Span::from_ms(600));
    let none = None::<punctual_engine::drain::SampleFile<Vec<u8>>>;
    let stop = AtomicBool::new(false);
    let run = Prepared::new(plan).run(Kept::default(), none, &mut Hog(cpu), &stop);
    let outcome = run.expect("threads");
    let LoopsOutcome { runs, end, .. } = outcome;
    assert_eq!(end, ExperimentEnd::Finished);
    // 600 releases but the one before a loop can be there.
    let releases = runs[0].cycles + runs[0].missed;
    assert!((598..=600).contains(&releases), "{releases}: {:?}", runs[0]);
}

fn stream(period_ns: u64, wait: WaitKind, policy: SchedPolicy) -> Stream {
    let cpu = affinity::get(0).expect("own").iter().last();
    Stream {
        thread: RtThread::any().pinned(cpu).with_policy(policy).wait(wait),
        period: Period::from_ns(period_ns).expect("positive"),
        phase_ns: 50_000,
    }
}

fn plan(streams: Vec<Stream>, loads: usize, total: Span) -> PeriodicPlan {
    let conditions = (0..=loads)
        .map(|n| Condition { name: format!("c{n}"), wait: None, library: None, loads: vec![] })
        .collect();
    PeriodicPlan {
        streams,
        conditions,
        blocks: interleave(loads, 1, total),
        housekeeping: vec![],
        cold: 3,
    }
}

fn run(plan: PeriodicPlan, stop: &AtomicBool) -> (LoopsOutcome<Kept>, Asked) {
    let mut observer = Asked::default();
    let none = None::<punctual_engine::drain::SampleFile<Vec<u8>>>;
    let prepared = Prepared::new(plan);
    let outcome = prepared.run(Kept::default(), none, &mut observer, stop).expect("threads");
    (outcome, observer)
}

#[test]
fn every_release_of_every_block_is_a_cycle_or_missed() {
    let streams = vec![
        stream(1_000_000, WaitKind::Sleep, SchedPolicy::Fifo(20)),
        stream(5_000_000, WaitKind::Spin, SchedPolicy::Fifo(19)),
    ];
    let (outcome, observer) = run(plan(streams, 2, Span::from_ms(600)), &AtomicBool::new(false));
    assert_eq!(outcome.end, ExperimentEnd::Finished);
    assert_eq!(observer.0, [(0, true), (0, false), (1, true), (1, false), (2, true), (2, false)]);
    assert_eq!(outcome.runs.len(), 6);
    for (number, run) in outcome.runs.iter().enumerate() {
        let samples: Vec<_> =
            outcome.sink.0.iter().filter(|(group, _)| *group == number).map(|(_, s)| s).collect();
        assert_eq!(samples.len() as u64 + run.unrecorded, run.cycles, "run {number}");
        // Each release of the one block, from its first cycle on, ran or was missed: those between
        // samples exactly, those after the last one up to the block's end.
        let spanned = samples.last().expect("cycles").cycle - samples[0].cycle + 1;
        let between = spanned - samples.len() as u64 - run.unrecorded;
        let after = run.missed - between;
        assert!(
            after
                <= samples.last().expect("cycles").lateness.as_ns().unsigned_abs() / 1_000_000 + 1,
            "run {number}: {after}"
        );
        assert!(samples[0].flags.has(Flags::FIRST));
        assert_eq!(samples.iter().filter(|s| s.flags.has(Flags::FIRST)).count(), 1);
        // The first three are cold, but one that let releases pass.
        for (at, sample) in samples.iter().enumerate() {
            let is_late = sample.lateness >= Span::from_ms(1);
            let is_cold = sample.flags.has(Flags::COLD);
            assert!(if at < 3 { is_cold || is_late } else { !is_cold }, "run {number}: {sample:?}");
        }
        assert!(samples.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
        assert!((0.0..=1.0).contains(&run.cpu_load), "{}", run.cpu_load);
    }
}

#[test]
fn a_stop_ends_even_a_loop_that_sleeps_for_an_hour() {
    let streams = vec![stream(3_600_000_000_000, WaitKind::Sleep, SchedPolicy::Other)];
    let stop = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(plan(streams, 0, Span::from_ms(7_200_000)), &stop).0);
        stop.store(true, Ordering::Relaxed);
        running.join().expect("no panic")
    });
    assert_eq!(outcome.end, ExperimentEnd::Stopped);
    assert_eq!(outcome.runs[0].cycles, 0);
}

#[test]
fn a_load_that_does_not_start_ends_the_experiment_with_its_reason() {
    let mut plan =
        plan(vec![stream(1_000_000, WaitKind::Sleep, SchedPolicy::Other)], 9, Span::from_ms(100));
    plan.blocks.retain(|block| block.condition == 9 || block.condition == 0);
    let (outcome, _) = run(plan, &AtomicBool::new(false));
    assert_eq!(outcome.end, ExperimentEnd::Load("no such load".into()));
}

/// Threads of this process that are pinned to `cpu` alone, but the calling one.
fn pinned(cpu: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs").flatten();
    tasks
        .filter_map(|task| task.file_name().to_string_lossy().parse().ok())
        .filter(|&tid| tid != punctual_os::process::tid())
        .filter(|&tid| affinity::get(tid) == Ok(CpuMask::one(cpu)))
        .collect()
}

/// Takes the loop's thread off its CPU once it runs, as unplugging that CPU would.
struct Unplug(u32);

impl BackgroundLoads for Unplug {
    fn begin(&mut self, _: usize, _: Span) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, _: usize) {}

    fn progress(&mut self, progress: &punctual_lab::experiment::ExperimentProgress) {
        // Once the loop was seen where it belongs, long before its end.
        if progress.left < Span::from_ms(2_000) {
            let everywhere = affinity::get(0).expect("own");
            pinned(self.0)
                .iter()
                .for_each(|&tid| affinity::set(tid, &everywhere).expect("own thread"));
        }
    }
}

#[test]
fn a_loop_that_loses_its_cpu_is_marked_in_the_result() {
    let allowed = affinity::get(0).expect("own");
    if !skip::need("two CPUs", allowed.count() >= 2) {
        return;
    }
    // Of the tests here only this one uses the first CPU: others' threads are not in its way.
    let cpu = allowed.iter().next().expect("two of them");
    let stream = Stream {
        thread: RtThread::cpu(cpu).other().wait(WaitKind::Sleep),
        ..stream(1_000_000, WaitKind::Sleep, SchedPolicy::Other)
    };
    let prepared = Prepared::new(plan(vec![stream], 0, Span::from_ms(2_500)));
    let none = None::<punctual_engine::drain::SampleFile<Vec<u8>>>;
    let stop = AtomicBool::new(false);
    let outcome = prepared.run(Kept::default(), none, &mut Unplug(cpu), &stop).expect("threads");
    let happened: Vec<_> =
        outcome.disturbances.iter().map(|(_, disturbance)| disturbance.clone()).collect();
    assert_eq!(happened, [Disturbance::CpuLost(cpu)]);
    assert_eq!(outcome.end, ExperimentEnd::Finished);
}
