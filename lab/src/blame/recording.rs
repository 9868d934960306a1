//! A recording of the kernel's events that are attributed as they come: it begins once the machine
//! is quiet again, ends by itself at a wake that is too late, and keeps the events around late
//! wakes where that is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use punctual_blame::blame::Blame;
use punctual_blame::config::{BlameConfig, RecordingBegin};
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::programs::{ProgramOwner, ThreadProgram};
use punctual_blame::wake::FinishedWake;
use punctual_core::time::Span;
use punctual_host::facts::SmiCount;
use punctual_host::root::Root;
use punctual_host::threads::RunningProcess;
use punctual_os::clock::{ClockId, now_ns};
use punctual_trace::capture::THREAD_NAMES_MAX;
use punctual_trace::event::{ShortName, Tid, TraceEvent, TraceKind};
use punctual_trace::symbols::Symbols;

use super::blamed::{Blamed, BlamedStop, CaptureEvidence, MissingEvent, RecordingPrice};
use super::kept::{KeptCapture, KeptRecording};
use super::machine::running_kernel;
use super::{BlameResult, RecordedMachine, SETTLE, pause};
use crate::capture::{
    Capture, CaptureConsumer, CaptureItem, CapturePlan, CaptureRefused, WindowStore,
    runnable_threads,
};
use crate::experiment::ExperimentError;

/// A capture whose events go straight into an account.
pub(super) struct Recording {
    capture: Capture<Accountant>,
    missing: Vec<MissingEvent>,
    has_stopped: Arc<AtomicBool>,
    begun_ns: u64,
    machine: RecordedMachine,
    /// System management interrupts when it began.
    smi: Option<SmiCount>,
}

/// Takes events; those of the time in which events were opened do not count.
pub(super) struct Accountant {
    blame: Blame,
    beginning: Arc<OnceLock<RecordingBegin>>,
    /// True where attribution has taken `beginning`.
    has_begun: bool,
    /// The threads that slept last, or ended, of those that events before the beginning show.
    asleep: BTreeSet<Tid>,
    /// The time that counts from then on, ns: the end may come late on a busy machine.
    length_ns: u64,
    stop_over_ns: Option<u64>,
    has_stopped: Arc<AtomicBool>,
    /// The wake that ends the recording: nothing behind it counts.
    stopped_by: Option<FinishedWake>,
    windows: Option<WindowStore>,
    /// Threads with their processes, for what is kept.
    processes: BTreeMap<Tid, Tid>,
}

impl Accountant {
    /// One that has seen nothing yet, of this length from its beginning on; it keeps nothing.
    pub(super) fn new(config: BlameConfig, length: Span) -> Self {
        Self {
            blame: Blame::new(config),
            beginning: Arc::default(),
            has_begun: false,
            asleep: BTreeSet::new(),
            length_ns: length.as_ns().max(0).unsigned_abs(),
            stop_over_ns: None,
            has_stopped: Arc::new(AtomicBool::new(false)),
            stopped_by: None,
            windows: None,
            processes: BTreeMap::new(),
        }
    }

    /// Ends at the first wake that is later than this.
    pub(super) fn stopping_over(mut self, over: Option<Span>) -> Self {
        self.stop_over_ns = over.map(|over| over.as_ns().max(0).unsigned_abs());
        self
    }

    /// Keeps the events around late wakes, where `keeps`.
    pub(super) fn keeping(mut self, keeps: bool) -> Self {
        self.windows = keeps.then(WindowStore::default);
        self
    }

    /// Sees who sleeps before the beginning.
    fn see_before(&mut self, event: &TraceEvent) {
        match event.kind {
            TraceKind::Switch { previous, previous_state, next } => {
                if TraceKind::stays_runnable(previous_state) {
                    self.asleep.remove(&previous.tid);
                } else if self.asleep.len() < THREAD_NAMES_MAX {
                    self.asleep.insert(previous.tid);
                }
                self.asleep.remove(&next.tid);
            }
            TraceKind::Waking { task, .. } => {
                self.asleep.remove(&task.tid);
            }
            TraceKind::Lost { .. } => self.asleep.clear(),
            _ => {}
        }
    }

    /// Begins, where that is due: with the threads that are runnable then. /proc was looked at some
    /// milliseconds before.
    fn begin(&mut self) {
        let Some(beginning) = self.beginning.get().filter(|_| !self.has_begun) else { return };
        let mut beginning = beginning.clone();
        beginning.runnable.retain(|thread| !self.asleep.contains(&thread.task.tid));
        self.has_begun = true;
        self.blame.begin(&beginning);
    }

    fn event(&mut self, event: &TraceEvent) {
        if let Some(windows) = &mut self.windows {
            windows.see(event);
        }
        if self.has_stopped.load(Ordering::Relaxed) {
            return;
        }
        self.blame.push(event);
        while let Some(wake) = self.blame.take_finished() {
            self.open(&wake);
            let spun_ns = wake.margin_ns;
            let is_over = |over_ns: u64| wake.least_ns > over_ns.saturating_add(spun_ns);
            let is_first = self.stopped_by.as_ref().is_none_or(|later| wake.ran_ns < later.ran_ns);
            if is_first && self.stop_over_ns.is_some_and(is_over) {
                self.stopped_by = Some(wake);
            }
        }
        // Another thread's may have been earlier, and is judged later.
        if let Some(first) = &self.stopped_by
            && !self.blame.awaits_answer_before(first.ran_ns)
        {
            self.has_stopped.store(true, Ordering::Release);
        }
        if let Some(windows) = self.windows.as_mut().filter(|windows| windows.is_full()) {
            windows.make_room(self.blame.kept());
        }
    }

    /// The events around a wake are kept, where it is late.
    fn open(&mut self, wake: &FinishedWake) {
        if let Some(windows) = self.windows.as_mut().filter(|_| wake.is_late) {
            windows.open(wake);
        }
    }

    /// A thread that still waits for a CPU does not run in this recording: its window reaches up to
    /// here.
    fn end_waits(&mut self) {
        self.begin();
        self.blame.end_waits();
        while let Some(wake) = self.blame.take_finished() {
            self.open(&wake);
        }
    }
}

impl CaptureConsumer for Accountant {
    fn take(&mut self, item: CaptureItem<'_>) {
        let event = match item {
            CaptureItem::Event(event) => event,
            CaptureItem::Process { tid, process } => {
                let program = program(process);
                self.blame.set_program(tid, program);
                if self.windows.is_some() && self.processes.len() < THREAD_NAMES_MAX {
                    self.processes.insert(tid, program.pid);
                }
                return;
            }
            _ => return,
        };
        let begun_ns = self.beginning.get().map(|beginning| beginning.at_ns);
        let Some(since_ns) = begun_ns.and_then(|begun_ns| event.at_ns.checked_sub(begun_ns)) else {
            self.see_before(event);
            return;
        };
        self.begin();
        if since_ns < self.length_ns {
            self.event(event);
        }
    }
}

/// A process, as attribution takes it: this one is the measurement, and what it started are loads.
pub(crate) fn program(process: &RunningProcess) -> ThreadProgram {
    let own = std::process::id().cast_signed();
    let owner = match process {
        RunningProcess { pid, .. } if *pid == own => ProgramOwner::Measurement,
        RunningProcess { parent, .. } if *parent == own => ProgramOwner::Load,
        _ => ProgramOwner::Stranger,
    };
    ThreadProgram {
        pid: process.pid.unsigned_abs(),
        name: ShortName::new(process.name.as_bytes()),
        owner,
    }
}

/// The end of a recording.
pub(super) struct RecordingEnd {
    outcome: BlameOutcome,
    evidence: CaptureEvidence,
    stopped_by: Option<FinishedWake>,
    kept: Option<KeptRecording>,
}

impl RecordingEnd {
    pub(super) fn result(self, price: Option<RecordingPrice>) -> BlameResult {
        let Self { outcome, evidence, stopped_by, kept } = self;
        let mut blamed = Blamed::new(&outcome, price, Some(evidence));
        blamed.stopped_by = stopped_by.as_ref().map(BlamedStop::of);
        let kept = kept.map(|kept| KeptCapture::new(kept, outcome));
        blamed.kept = kept.as_ref().map(KeptCapture::counts);
        BlameResult { blamed, kept }
    }
}

impl Recording {
    /// Opens all events, waits until what that did to the machine is over, and begins.
    pub(super) fn start(
        machine: RecordedMachine,
        plan: &CapturePlan,
        accountant: Accountant,
        begins: impl FnOnce(),
    ) -> Result<Self, CaptureRefused> {
        let beginning = Arc::clone(&accountant.beginning);
        let has_stopped = Arc::clone(&accountant.has_stopped);
        let capture = Capture::start(plan, accountant)?;
        let missing = capture.missing().iter().map(MissingEvent::of).collect();
        pause(SETTLE);
        let smi = machine.smi_count();
        let runnable = runnable_threads(&Root::live());
        // Events show who goes to sleep in between.
        let begun_ns = now_ns(ClockId::Monotonic);
        let _first = beginning.set(RecordingBegin { at_ns: begun_ns, runnable });
        begins();
        Ok(Self { capture, missing, has_stopped, begun_ns, machine, smi })
    }

    /// Returns true where a wake was so late that nothing more counts.
    pub(super) fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Acquire)
    }

    /// Ends the recording, and judges what is left. `symbols` are for the events that are kept.
    pub(super) fn end(self, symbols: Symbols) -> Result<RecordingEnd, ExperimentError> {
        let Self { capture, missing, begun_ns, machine, smi, has_stopped: _ } = self;
        let smis = machine.smis_since(smi);
        let recorded = capture.opened().iter().map(|event| event.name.clone()).collect();
        let ended = capture.end().ok_or(ExperimentError::Panic)?;
        let mut accountant = ended.consumer;
        accountant.end_waits();
        let Accountant { mut blame, windows, stopped_by, processes, .. } = accountant;
        if let Some(count) = smis {
            blame.set_smi_count(count);
        }
        let outcome = blame.finish();
        let kept = windows.map(|windows| {
            let wakes = outcome.worst.iter().chain(&outcome.sample);
            let events = windows.finish(wakes.map(|wake| (wake.task.tid, wake.release_ns)));
            let kernel = running_kernel(&Root::live());
            KeptRecording { events, symbols, recorded, processes, kernel }
        });
        let evidence = CaptureEvidence::of(&ended.facts, missing, begun_ns);
        ended.closing.wait();
        Ok(RecordingEnd { outcome, evidence, stopped_by, kept })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use punctual_blame::config::{FollowedThreads, LateThreshold, RunnableThread};
    use punctual_trace::event::{ContextFlags, TaskName};
    use punctual_trace::write::perf_data::Addresses;

    use super::super::{BlamedCause, ReadCapture};
    use super::*;

    fn see(accountant: &mut Accountant, at_ns: u64, tid: Tid, kind: TraceKind) {
        let context = ContextFlags::default();
        let event = TraceEvent { at_ns, cpu: 0, tid, context, kind, chain: Box::default() };
        accountant.take(CaptureItem::Event(&event));
    }

    /// The servo of [`behind_a_hog`], and the hog.
    fn servo_and_hog() -> [TaskName; 2] {
        [(7, &b"servo"[..], 9), (8, b"hog", 2)].map(|(tid, name, kernel_priority)| TaskName {
            tid,
            name: ShortName::new(name),
            kernel_priority,
        })
    }

    /// One that keeps windows, and has seen a servo of 1 ms released behind a hog.
    fn behind_a_hog() -> Accountant {
        let [servo, hog] = servo_and_hog();
        let follow = FollowedThreads::Threads(vec![servo.tid]);
        let late = LateThreshold::Above(50_000);
        let config = BlameConfig { follow, late, ..BlameConfig::default() };
        let mut accountant = Accountant::new(config, Span::from_ms(1_000)).keeping(true);
        let beginning = RecordingBegin { at_ns: 1_000, runnable: Vec::new() };
        accountant.beginning.set(beginning).expect("the first one");
        let (expires_ns, soft_expires_ns) = (1_000_000, 1_000_000);
        for (at_ns, tid, kind) in [
            (
                10_000,
                servo.tid,
                TraceKind::TimerStart { timer: 1, function: 2, expires_ns, soft_expires_ns },
            ),
            (
                11_000,
                servo.tid,
                TraceKind::Switch { previous: servo, previous_state: 1, next: hog },
            ),
            (
                1_005_000,
                hog.tid,
                TraceKind::TimerExpireEntry { timer: 1, function: 2, now_ns: 1_005_000 },
            ),
            (1_006_000, hog.tid, TraceKind::Waking { task: servo, target_cpu: 0 }),
        ] {
            see(&mut accountant, at_ns, tid, kind);
        }
        accountant
    }

    #[test]
    fn what_comes_before_the_begin_or_after_the_end_does_not_count() {
        let mut accountant = Accountant::new(BlameConfig::default(), Span::from_ns(100));
        let cancels = TraceKind::TimerCancel { timer: 1 };
        // Until it begins nothing counts.
        see(&mut accountant, 1_050, 1, cancels.clone());
        let beginning = RecordingBegin { at_ns: 1_000, runnable: Vec::new() };
        accountant.beginning.set(beginning).expect("the first one");
        // Whoever ends it may come late.
        for at_ns in [999, 1_000, 1_099, 1_100, 60_000] {
            see(&mut accountant, at_ns, 1, cancels.clone());
        }
        assert_eq!(accountant.blame.finish().counts.events, 2);
    }

    #[test]
    fn who_sleeps_or_ends_before_the_begin_does_not_wait_until_the_end() {
        let [servo, hog] = servo_and_hog();
        let idle = TaskName { kernel_priority: 120, ..TaskName::default() };
        let leaves =
            |previous_state| TraceKind::Switch { previous: servo, previous_state, next: idle };
        let wakes = TraceKind::Waking { task: servo, target_cpu: 0 };
        for (before, waiting) in [
            (vec![leaves(1)], 0),
            (vec![leaves(0x10)], 0),
            (vec![leaves(1), wakes], 1),
            (vec![leaves(0x100)], 1),
            (vec![leaves(1), TraceKind::Lost { count: 3 }], 1),
            (vec![], 1),
        ] {
            let follow = FollowedThreads::Threads(vec![servo.tid]);
            let config = BlameConfig { follow, ..BlameConfig::default() };
            let mut accountant = Accountant::new(config, Span::from_ms(1_000));
            before.into_iter().for_each(|kind| see(&mut accountant, 900, servo.tid, kind));
            // It ran when /proc was looked at.
            let runnable = vec![RunnableThread { task: servo, cpu: 0 }];
            let beginning = RecordingBegin { at_ns: 1_000, runnable };
            accountant.beginning.set(beginning).expect("the first one");
            see(&mut accountant, 900_000_000, hog.tid, TraceKind::TimerCancel { timer: 9 });
            accountant.end_waits();
            let outcome = accountant.blame.finish();
            let open = outcome.threads.iter().map(|thread| thread.open.waiting).sum::<u64>();
            assert_eq!((outcome.table.wakes, open), (waiting, waiting));
        }
    }

    #[test]
    fn what_still_waits_at_the_end_has_its_window() {
        let mut accountant = behind_a_hog();
        // The hog never lets it run.
        for tick in 2..=20 {
            see(&mut accountant, tick * 1_000_000, 8, TraceKind::TimerCancel { timer: 9 });
        }
        accountant.end_waits();
        let windows = accountant.windows.take().expect("it keeps");
        let outcome = accountant.blame.finish();
        let wake = &outcome.worst[0];
        assert_eq!((wake.task.tid, wake.release_ns, wake.ran_ns), (7, 1_000_000, 20_000_000));
        let kept = windows.finish([(7, 1_000_000)].into_iter());
        assert_eq!((kept.wakes(), kept.missing(), kept.cut()), (1, 0, 0));
        assert_eq!(kept.events().last().map(|event| event.at_ns), Some(20_000_000));
    }

    #[test]
    fn what_ends_a_recording_is_the_first_that_ran_late_whichever_is_judged_first() {
        let [first, hog] = servo_and_hog();
        let second = TaskName { tid: 9, name: ShortName::new(b"servo2"), ..first };
        let follow = FollowedThreads::Threads(vec![first.tid, second.tid]);
        let config = BlameConfig { follow, ..BlameConfig::default() };
        let over = Some(Span::from_us(500));
        let mut accountant = Accountant::new(config, Span::from_ms(1_000)).stopping_over(over);
        let beginning = RecordingBegin { at_ns: 1_000, runnable: Vec::new() };
        accountant.beginning.set(beginning).expect("the first one");
        let mut push = |at_ns, cpu, tid, kind| {
            let context = ContextFlags::default();
            let event = TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() };
            accountant.take(CaptureItem::Event(&event));
        };
        // Of the first one alone it is recorded that it sleeps in a call, which it leaves late.
        push(9_000, 0, first.tid, TraceKind::SyscallEntry { number: 230 });
        let (expires_ns, soft_expires_ns) = (1_000_000, 1_000_000);
        for (cpu, task) in [(0, first), (1, second)] {
            let timer = u64::from(cpu) + 1;
            let starts = TraceKind::TimerStart { timer, function: 2, expires_ns, soft_expires_ns };
            push(10_000, cpu, task.tid, starts);
            let leaves = TraceKind::Switch { previous: task, previous_state: 1, next: hog };
            push(11_000, cpu, task.tid, leaves);
        }
        for (cpu, task) in [(0, first), (1, second)] {
            let timer = u64::from(cpu) + 1;
            let expires = TraceKind::TimerExpireEntry { timer, function: 2, now_ns: 1_005_000 };
            push(1_005_000, cpu, hog.tid, expires);
            push(1_006_000, cpu, hog.tid, TraceKind::Waking { task, target_cpu: cpu });
        }
        for (at_ns, cpu, next) in [(2_000_000, 0, first), (2_200_000, 1, second)] {
            push(at_ns, cpu, hog.tid, TraceKind::Switch { previous: hog, previous_state: 1, next });
        }
        push(2_900_000, 1, second.tid, TraceKind::TimerCancel { timer: 9 });
        push(3_200_000, 1, second.tid, TraceKind::TimerCancel { timer: 9 });
        assert!(accountant.has_stopped.load(Ordering::Acquire));
        let stop = accountant.stopped_by.expect("both are later");
        assert_eq!((stop.task.tid, stop.ran_ns), (first.tid, 2_000_000));
    }

    /// The servo waits behind a hog while more happens than is held for a window.
    fn long_hang() -> Accountant {
        let mut accountant = behind_a_hog();
        for step in 0..80_000 {
            let at_ns = 1_010_000 + step * 5_000;
            see(&mut accountant, at_ns, 8, TraceKind::SoftirqEntry(9));
            see(&mut accountant, at_ns + 1_000, 8, TraceKind::SoftirqExit(9));
        }
        let [servo, hog] = servo_and_hog();
        let runs = TraceKind::Switch { previous: hog, previous_state: 1, next: servo };
        see(&mut accountant, 402_000_000, 8, runs);
        accountant
    }

    #[test]
    fn a_hang_longer_than_what_is_held_is_read_again_as_it_was_said_and_not_whole() {
        let mut accountant = long_hang();
        accountant.end_waits();
        let windows = accountant.windows.take().expect("it keeps");
        let outcome = accountant.blame.finish();
        let before = Blamed::new(&outcome, None, None);
        let events = windows.finish([(7, 1_000_000)].into_iter());
        let (symbols, recorded, processes) = (Symbols::default(), Vec::new(), BTreeMap::new());
        let kernel = running_kernel(&Root::live());
        let kept = KeptRecording { events, symbols, recorded, processes, kernel };
        let kept = KeptCapture::new(kept, outcome);
        let counts = kept.counts();
        assert_eq!((counts.wakes, counts.dropped, counts.cut), (1, 0, 1));
        let mut file = io::Cursor::new(Vec::new());
        kept.write_perf_data(&mut file, Addresses::Numbered).expect("to memory");
        let again = ReadCapture::read(&mut file, None, None).expect("what was written").blamed;
        let time_ns = |causes: &[BlamedCause]| -> Vec<(String, u64)> {
            causes.iter().map(|cause| (cause.name.clone(), cause.time_ns)).collect()
        };
        assert_eq!(time_ns(&again.causes), time_ns(&before.causes));
        let of_kind = |kind: &str| before.causes.iter().find(|cause| cause.cause == kind);
        assert_eq!(of_kind("softirq").map(|cause| cause.time_ns), Some(80_000_000));
        assert_eq!(
            (again.worst.len(), again.worst[0].parts.len()),
            (1, before.worst[0].parts.len())
        );
        assert!(before.worst[0].is_whole && !again.worst[0].is_whole);
        assert!(again.causes[0].confidence <= before.causes[0].confidence / 2.0);
    }

    #[test]
    fn what_a_measurement_starts_is_no_stranger() {
        let own = std::process::id().cast_signed();
        let owner = |pid, parent| {
            let name = "punctual".to_owned();
            program(&RunningProcess { pid, parent, name }).owner
        };
        assert_eq!(owner(own, 1), ProgramOwner::Measurement);
        assert_eq!(owner(own + 1, own), ProgramOwner::Load);
        assert_eq!(owner(own + 1, 1), ProgramOwner::Stranger, "another measurement is");
    }
}
