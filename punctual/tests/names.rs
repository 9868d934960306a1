//! Each type that public signatures reach has a name in the crate: a program that keeps a value of
//! it in a struct, or hands it on, needs one. A name that is missing does not compile.
#![forbid(unsafe_code)]

use std::sync::atomic::AtomicU64;

use punctual::{
    Attempt, Counts, Errno, Executive, Figures, LearnPhase, Learned, Loop, MachineClock, PageError,
    PageKind, PausedSpin, Period, Phase, Places, Process, Refusal, Releases, Surroundings,
    TaskOutcome, Terms, View, WaitPolicy, WaitStatus, WakePlan, Watch,
};
use punctual::{RtThread, Summary};

/// The state of a wait that a program keeps.
struct Kept {
    plan: WakePlan,
    phase: Option<LearnPhase>,
    paused: PausedSpin,
}

fn kept(status: WaitStatus) -> Kept {
    let WaitStatus { plan, learned, paused, .. } = status;
    Kept { plan, phase: learned.map(|learned: Learned| learned.phase), paused }
}

fn outcome(outcome: &TaskOutcome) -> (&Figures, &Counts, usize) {
    let figures: &Figures = &outcome.figures;
    (figures, &figures.counts, figures.buckets.len())
}

fn terms(watch: &Watch) -> (&Terms, Releases, Places) {
    let terms: &Terms = watch.terms();
    (terms, terms.releases, terms.places)
}

fn page(watch: &Watch) -> Option<(View<'_>, PageKind)> {
    let view: View<'_> = watch.page()?;
    let kind = view.kind();
    Some((view, kind))
}

fn opened(words: &[AtomicU64]) -> Result<View<'_>, PageError> {
    View::open(words)
}

/// The fields of a program that gave its loops no clock.
struct OnMachine {
    _each_ms: Loop<MachineClock>,
    _tasks: Executive<'static, MachineClock>,
}

fn refusals(summary: &Summary) -> Vec<(Attempt, Errno)> {
    let refused = |refusal: &Refusal| (refusal.attempt, refusal.errno);
    summary.refused.iter().map(refused).collect()
}

#[test]
fn what_signatures_reach_can_be_named() {
    // Of a supervisor's tasks only the names: punctual/tests/processes runs some.
    let _named = (outcome, terms, page, opened, size_of::<OnMachine>());
    let surroundings = Surroundings::default().umask(0o077);
    let process = Process::command(["true"]).surroundings(surroundings);
    assert!(format!("{process:?}").contains("umask: Some(63)"), "{process:?}");

    let thread = RtThread::any().other().lock_memory(false).hold_idle_states(false);
    let thread = thread.wait(WaitPolicy::adaptive().learn_first(false));
    let each_ms = Loop::builder(Period::hz(1_000).expect("in range")).phase(Phase::Zero);
    let each_ms = each_ms.thread(thread).start().expect("a loop");
    let Kept { plan, phase, paused } = kept(each_ms.wait_status());
    assert_eq!(phase, Some(LearnPhase::Calibrating), "nothing ran");
    assert!(plan.margin_ns > 0 && paused == PausedSpin::default(), "{plan:?} {paused:?}");
    assert_eq!(refusals(&each_ms.finish()), [], "it needs no rights");
}
