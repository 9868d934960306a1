//! The loop of many tasks under the realtime sanitizer, which ends the process at the first
//! allocation, lock or system call within. Needs a nightly compiler that has it:
//!
//! ```text
//! RUSTFLAGS='-Zsanitizer=realtime --cfg rtsan' cargo +nightly test -p punctual-testkit \
//!     --target x86_64-unknown-linux-gnu --test realtime_sanitizer
//! ```
//!
//! Without that it runs all the same, and nobody watches.
#![cfg_attr(rtsan, feature(sanitize))]
#![expect(unexpected_cfgs, reason = "rtsan is set by hand, with the sanitizer")]

use std::sync::atomic::AtomicBool;

use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Sleep, Spin, Wait};
use punctual_engine::periodic::{OnOverrun, Periodic, Task};
use punctual_testkit::sim::{SimClock, SleepNoise};

struct Runs(u64);

impl Dispatch for Runs {
    fn run(&mut self, _: usize, _: &mut Cycle<'_>) -> Flow {
        self.0 += 1;
        Flow::Continue
    }
}

/// Each third sleep comes back late, some by periods.
#[derive(Clone)]
struct Late(u64);

impl Iterator for Late {
    type Item = SleepNoise;

    fn next(&mut self) -> Option<SleepNoise> {
        self.0 += 1;
        let late_us = if self.0.is_multiple_of(3) { self.0 % 4_000 } else { 1 };
        Some(SleepNoise::Late(Span::from_us(late_us.cast_signed())))
    }
}

type Loop<W> = Many<SimClock<Late>, W, Runs, ()>;

/// All of this is in the loop.
#[cfg_attr(rtsan, sanitize(realtime = "nonblocking"))]
#[inline(never)]
fn in_loop<W: Wait>(
    many: &mut Loop<W>,
    table: &punctual_core::table::Table<'_>,
    state: &mut TableState<'_>,
    stop: &AtomicBool,
) -> Ended {
    many.run(table, state, Instant::from_ns(3_000_000_000), stop)
}

fn runs<W: Wait>(wait: W) {
    let task = |name: &str, ms: u64, policy| {
        Task::every(name, Period::ratio(ms * 1_000_000, 1).expect("in range")).on_overrun(policy)
    };
    let plan = Periodic::new()
        .task(task("skip", 1, OnOverrun::Skip))
        .task(task("burst", 2, OnOverrun::Burst(3)))
        .task(task("delay", 5, OnOverrun::Delay))
        .task(task("terminate", 7, OnOverrun::Terminate))
        .build()
        .expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let from = Instant::from_ns(1);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let clock = SimClock::new(from, Late(0));
    let mut many = Many { clock, wait, tasks: Runs(0), observe: () };
    let ended = in_loop(&mut many, &table, &mut state, &AtomicBool::new(false));
    assert_eq!(ended, Ended::Finished);
    assert!(many.tasks.0 > 1_000, "{} cycles", many.tasks.0);
}

#[test]
fn nothing_in_the_loop_may_block() {
    runs(Sleep);
    runs(Spin::new(Span::from_us(50)));
    runs(Adaptive::new(Target::of(Period::from_ns(1_000_000).expect("positive"))));
}

/// That the sanitizer watches at all.
#[test]
#[cfg(rtsan)]
fn the_sanitizer_ends_who_allocates() {
    #[sanitize(realtime = "nonblocking")]
    fn allocates() {
        drop(std::hint::black_box(Box::new(7)));
    }
    if std::env::var_os("PUNCTUAL_ALLOCATE").is_some() {
        allocates();
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "the_sanitizer_ends_who_allocates"])
        .env("PUNCTUAL_ALLOCATE", "1")
        .output()
        .expect("it starts");
    assert!(!child.status.success(), "an allocation was let through");
}
