//! State that adaptive waits learned, kept from one run to the next: one small file of this machine
//! as it is set up now.
//!
//! It is checked and not believed: a wait that begins with it doubts it soon, and a file that is
//! damaged, of another machine or of another setup is ignored. Nothing of it is needed: what fails
//! here costs a message, never the run.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use punctual_core::time::Period;
use punctual_core::wait::adaptive::LearnPhase;
use punctual_core::wait::{Learned, WakePlan};
use punctual_host::baseline::{MACHINE, SETUP, digest};
use punctual_host::facts::MachineFacts;
use punctual_host::identity::machine;
use punctual_host::root::Root;
use punctual_lab::periodic::{KnownWait, PeriodicPlan, RunOutcome, Stream, WaitKind};
use punctual_os::process;
use serde::{Deserialize, Serialize};

use crate::output::{self, Dir, Opened, state_dir};

/// The name of the file, in the directory of states.
const NAME: &str = "learned.json";
/// The version of its layout.
const LAYOUT: u32 = 1;
/// The most that is read, and the most waits that are kept: those that were learned last.
const BYTES_MAX: u64 = 64 << 10;
const WAITS_MAX: usize = 64;

/// The file's content.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    tool: String,
    layout: u32,
    /// The machine, and its setup.
    #[serde(default)]
    machine_id: Option<String>,
    machine_digest: String,
    setup_digest: String,
    /// The waits, the oldest first.
    waits: Vec<KeptWait>,
}

/// A wait that learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptWait {
    cpu: u32,
    period_ns: u64,
    /// The share of the CPU that it might take.
    budget: f64,
    hop_ns: u64,
    hops: u32,
    margin_ns: u64,
    /// The share of late wakes that it reached, of how many.
    late: f64,
    cycles: u64,
}

/// The learned waits that are kept for this machine, and the directory they are kept in.
#[derive(Debug, Default)]
pub(super) struct LearnedStore {
    /// `None` where no wait learns, or there is no place to keep it.
    dir: Option<PathBuf>,
    kept: Kept,
    relearn: bool,
}

impl LearnedStore {
    /// The waits of `plan` that are known on this machine; with `relearn` none of it is gone on
    /// from.
    pub(super) fn of(plan: &PeriodicPlan, facts: &MachineFacts, relearn: bool) -> Self {
        let learns = plan.streams.iter().any(|stream| {
            let conditions = 0..plan.conditions.len();
            conditions.into_iter().any(|at| budget(plan.wait(stream, at)).is_some())
        });
        let Some(dir) = directory().filter(|_| learns) else { return Self::default() };
        let empty = Kept {
            tool: "punctual".to_owned(),
            layout: LAYOUT,
            machine_id: machine(&Root::live()).value().cloned(),
            machine_digest: digest(MACHINE, facts),
            setup_digest: digest(SETUP, facts),
            waits: Vec::new(),
        };
        let read = read(&dir, &empty).unwrap_or_else(|why| {
            output::message(&format!(
                "what adaptive waits learned before is ignored: {}: {why:#}",
                dir.join(NAME).display()
            ));
            None
        });
        Self { dir: Some(dir), kept: read.unwrap_or(empty), relearn }
    }

    /// The knowledge that waits begin with.
    pub(super) fn known(&self) -> Vec<KnownWait> {
        let kept = self.kept.waits.iter().filter(|_| !self.relearn);
        kept.filter_map(KeptWait::known).collect()
    }

    /// Keeps what the waits of a run learned while no load ran.
    pub(super) fn keep(mut self, plan: &PeriodicPlan, runs: &[RunOutcome]) {
        let Some(dir) = &self.dir else { return };
        let mut learned = false;
        for (number, stream) in plan.streams.iter().enumerate() {
            for (at, condition) in plan.conditions.iter().enumerate() {
                let idle = condition.loads.is_empty();
                let run = runs.get(plan.run_index(number, at)).filter(|_| idle);
                let wait = plan.wait(stream, at);
                let Some(wait) = run.and_then(|run| KeptWait::of(stream, wait, run)) else {
                    continue;
                };
                self.kept.waits.retain(|kept| !kept.is_of_one_with(&wait));
                self.kept.waits.push(wait);
                learned = true;
            }
        }
        if !learned {
            return;
        }
        let surplus = self.kept.waits.len().saturating_sub(WAITS_MAX);
        self.kept.waits.drain(..surplus);
        if let Err(why) = write(dir, &self.kept) {
            output::message(&format!("what the adaptive wait learned is not kept: {why:#}"));
        }
    }
}

impl KeptWait {
    /// The wait of a run that learned how to keep its target within its budget, on a CPU that it is
    /// pinned to; `None` for another run.
    fn of(stream: &Stream, wait: WaitKind, run: &RunOutcome) -> Option<Self> {
        let learned = run.learned.filter(|learned| learned.phase != LearnPhase::Calibrating)?;
        let WakePlan { hop_ns, hops, margin_ns, .. } = learned.plan;
        let (period_ns, budget) = (stream.period.as_ns(), budget(wait)?);
        let (late, cycles) = (learned.late, learned.cycles);
        let cpu = stream.thread.pinned_to()?;
        let wait = Self { cpu, period_ns, budget, hop_ns, hops, margin_ns, late, cycles };
        learned.reachable.then_some(wait)
    }

    /// Returns true where another wait is of a loop on the same CPU with the same period and
    /// budget.
    fn is_of_one_with(&self, kept: &Self) -> bool {
        (self.cpu, self.period_ns, self.budget) == (kept.cpu, kept.period_ns, kept.budget)
    }

    /// For a loop; `None` where it cannot be true.
    fn known(&self) -> Option<KnownWait> {
        let Self { cpu, period_ns, budget, hop_ns, hops, margin_ns, late, cycles } = *self;
        let period = Period::from_ns(period_ns).filter(|_| margin_ns < period_ns)?;
        let sound = (0.0..=1.0).contains(&budget) && (0.0..=1.0).contains(&late);
        let mut learned = Learned::kept(WakePlan::new(hop_ns, hops, margin_ns), late);
        (learned.cycles, learned.cpu, learned.extrapolated) = (cycles, budget, false);
        sound.then_some(KnownWait { cpu, period, budget, learned })
    }
}

/// The budget of a wait that learns.
fn budget(wait: WaitKind) -> Option<f64> {
    if let WaitKind::Adaptive(budget) = wait { Some(budget) } else { None }
}

/// The directory of the file: the user's state, or the machine's.
fn directory() -> Option<PathBuf> {
    let machines = (process::euid() == 0).then(|| PathBuf::from("/var/lib"));
    state_dir(machines).map(|dir| dir.join("punctual"))
}

/// The content of the file in `dir`, as far as it is of the machine and setup that are
/// `expected`; `None` where nothing is.
fn read(dir: &Path, expected: &Kept) -> Result<Option<Kept>> {
    if !dir.is_dir() {
        return Ok(None);
    }
    let Some(file) = Dir::open(dir)?.read(NAME).context("cannot be read")? else {
        return Ok(None);
    };
    let mut text = String::new();
    file.take(BYTES_MAX + 1).read_to_string(&mut text).context("not a file of learned waits")?;
    if text.len() as u64 > BYTES_MAX {
        bail!("not a file of learned waits: more than {} KiB", BYTES_MAX >> 10);
    }
    parse(&text, expected).map(Some)
}

fn parse(text: &str, expected: &Kept) -> Result<Kept> {
    let kept: Kept = serde_json::from_str(text).context("not a file of learned waits")?;
    if (kept.tool.as_str(), kept.layout) != ("punctual", LAYOUT) {
        bail!("layout {}: this version reads layout {LAYOUT}", kept.layout);
    }
    if (&kept.machine_id, &kept.machine_digest) != (&expected.machine_id, &expected.machine_digest)
    {
        bail!("learned on another machine");
    }
    if kept.setup_digest != expected.setup_digest {
        bail!("learned while this machine was set up differently");
    }
    if kept.waits.len() > WAITS_MAX {
        bail!("{} waits: at most {WAITS_MAX} are kept", kept.waits.len());
    }
    Ok(kept)
}

fn write(dir: &Path, kept: &Kept) -> Result<()> {
    let text = serde_json::to_string_pretty(kept)? + "\n";
    Opened::replace(&Dir::make(dir)?, NAME, text).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use punctual::RtThread;
    use punctual_core::time::{Instant, Span};
    use punctual_core::wait::adaptive::Target;
    use punctual_core::wait::{Adaptive, PausedSpin, Stalls, Wait};
    use punctual_lab::load::LoadSpec;
    use punctual_lab::periodic::Condition;
    use punctual_os::scheduler::SchedPolicy;
    use punctual_os::threads::Usage;
    use punctual_testkit::sim::{SimClock, SleepNoise};

    use super::*;

    fn wait(period_ns: u64, margin_ns: u64) -> KeptWait {
        let (hop_ns, hops, late, cycles) = (100_000, 1, 5e-4, 20_000);
        KeptWait { cpu: 1, period_ns, budget: 0.1, hop_ns, hops, margin_ns, late, cycles }
    }

    fn kept(waits: Vec<KeptWait>) -> Kept {
        Kept {
            tool: "punctual".to_owned(),
            layout: LAYOUT,
            machine_id: Some("ab".to_owned()),
            machine_digest: "cd".to_owned(),
            setup_digest: "ef".to_owned(),
            waits,
        }
    }

    #[test]
    fn what_was_kept_is_read_again_and_nothing_else() {
        let kept_before = kept(vec![wait(1_000_000, 20_000)]);
        let text = serde_json::to_string(&kept_before).expect("plain data");
        assert_eq!(parse(&text, &kept_before).expect("its own").waits, kept_before.waits);
        let refused = |expected: &Kept, text: &str, word: &str| {
            let why = format!("{:#}", parse(text, expected).expect_err(word));
            assert!(why.contains(word) && !why.contains('\n'), "{why}");
        };
        refused(&Kept { machine_digest: "x".to_owned(), ..kept(vec![]) }, &text, "another machine");
        refused(
            &Kept { setup_digest: "x".to_owned(), ..kept(vec![]) },
            &text,
            "set up differently",
        );
        refused(&kept_before, &text.replace("\"layout\":1", "\"layout\":9"), "layout 9");
        refused(&kept_before, &text[..text.len() / 2], "not a file of learned waits");
        refused(&kept_before, "[]", "not a file of learned waits");
        let many = kept(vec![wait(1_000_000, 20_000); WAITS_MAX + 1]);
        refused(&kept_before, &serde_json::to_string(&many).expect("plain data"), "at most 64");
    }

    #[test]
    fn what_cannot_be_true_is_no_knowledge() {
        let known = wait(1_000_000, 20_000).known().expect("sound");
        assert_eq!(known.learned.plan.margin_ns, 20_000);
        assert_eq!((known.cpu, known.period.as_ns()), (1, 1_000_000));
        assert!(wait(0, 0).known().is_none() && wait(1_000, 20_000).known().is_none());
        let nan = KeptWait { budget: f64::NAN, ..wait(1_000_000, 20_000) };
        assert!(nan.known().is_none());
    }

    /// The state of a wait after so many cycles of 1 ms on a machine whose sleeps come back this
    /// late.
    fn learned(mut wait: Adaptive, cycles: u64, late: impl Iterator<Item = Span>) -> Learned {
        let mut clock = SimClock::new(Instant::from_ns(1_000_000), late.map(SleepNoise::Late));
        clock.poll_cost = Span::from_ns(500);
        let stop = AtomicBool::new(false);
        for cycle in 2..cycles + 2 {
            let release = Instant::from_ns(cycle * 1_000_000);
            wait.until(&mut clock, release, &stop).expect("nobody stops it");
        }
        wait.status().learned.expect("it learns")
    }

    /// A wait that learns, of a loop of 1 ms.
    fn adaptive() -> Adaptive {
        Adaptive::new(Target::of(Period::from_ns(1_000_000).expect("positive")))
    }

    /// A loop of 1 ms on CPU 1, idle and under load.
    fn plan() -> PeriodicPlan {
        let condition = |name: &str, load: &str| Condition {
            name: name.to_owned(),
            wait: None,
            library: None,
            loads: LoadSpec::parse_list(load).expect("a load"),
        };
        PeriodicPlan {
            streams: vec![Stream {
                thread: RtThread::cpu(1).other().wait(WaitKind::Adaptive(Target::BUDGET)),
                period: Period::from_ns(1_000_000).expect("positive"),
                phase_ns: 0,
            }],
            conditions: vec![condition("idle", "none"), condition("cpu", "cpu")],
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        }
    }

    fn outcome(learned: Learned) -> RunOutcome {
        RunOutcome {
            cycles: learned.cycles,
            missed: 0,
            unrecorded: 0,
            stalls: Stalls::default(),
            cpu_load: 0.1,
            wall_ns: 1,
            usage: Usage::default(),
            policy: SchedPolicy::Other,
            approach: learned.plan,
            learned: Some(learned),
            paused: PausedSpin::default(),
            resumed: false,
            steal_ns: None,
            others: None,
            kept_waiting: None,
        }
    }

    #[test]
    fn what_reached_its_target_while_idle_is_kept_and_the_next_start_goes_on_from_it() {
        let quick = || std::iter::repeat(Span::from_us(4));
        let at_target = learned(adaptive(), 6_000, quick());
        assert!(at_target.reachable && at_target.phase != LearnPhase::Calibrating, "{at_target:?}");
        let learns = learned(adaptive(), 10, quick());
        assert!(learns.reachable && learns.phase == LearnPhase::Calibrating, "{learns:?}");
        let mut hopeless = at_target;
        hopeless.reachable = false;
        let dir = std::env::temp_dir().join(format!("punctual-kept-{}", std::process::id()));
        let store = || LearnedStore { dir: Some(dir.clone()), kept: kept(vec![]), relearn: false };
        for unfit in [learns, hopeless] {
            store().keep(&plan(), &[unfit, at_target].map(outcome));
            assert!(!dir.exists(), "{unfit:?}");
        }
        store().keep(&plan(), &[at_target, hopeless].map(outcome));
        let read = read(&dir, &kept(vec![])).expect("readable").expect("its own");
        std::fs::remove_dir_all(&dir).expect("its own");
        let store = LearnedStore { kept: read, ..store() };
        let known = store.known();
        assert_eq!(known.len(), 1);
        let learned_before = &known[0].learned;
        assert_eq!(
            (learned_before.plan, learned_before.cycles),
            (at_target.plan, at_target.cycles)
        );
        let again = learned(adaptive().resume(learned_before), 2, quick());
        assert_eq!((again.phase, again.cycles), (LearnPhase::Following, 1));
        assert!(LearnedStore { relearn: true, ..store }.known().is_empty());
    }
}
