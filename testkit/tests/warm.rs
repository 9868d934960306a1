//! The next task is warmed while its CPU would only spin, in a simulated clock.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Sleep, Spin, Wait};
use punctual_engine::periodic::{Periodic, Task};

/// A simulated clock that the tasks read too.
struct Shared<'c>(&'c Cell<u64>);

impl Clock for Shared<'_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.get())
    }
    fn poll(&mut self) -> Instant {
        self.0.set(self.0.get() + 20);
        self.now()
    }
    fn sleep_until(&mut self, at: Instant) {
        self.0.set(self.0.get().max(at.as_ns()));
    }
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

#[derive(Debug, PartialEq)]
enum Seen {
    Warmed(usize, u64),
    Ran(usize, u64),
}

struct Told<'c>(&'c Cell<u64>, Vec<Seen>);

impl Dispatch for Told<'_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.1.push(Seen::Ran(rank, cycle.release.as_ns()));
        Flow::Continue
    }
    fn warm(&mut self, rank: usize) {
        self.1.push(Seen::Warmed(rank, self.0.get()));
    }
}

fn seen(now: &Cell<u64>, wait: impl Wait) -> Vec<Seen> {
    let period = |us: u64| Period::ratio(us * 1_000, 1).expect("in range");
    let plan = Periodic::new()
        .task(Task::every("fast", period(200)).at(Duration::ZERO))
        .task(Task::every("slow", period(400)).at(Duration::from_micros(100)))
        .build()
        .expect("a plan");
    let table = plan.table(Instant::from_ns(0));
    let mut storage = plan.storage();
    let from = Instant::from_ns(1_000);
    let mut state = TableState::begin(&table, storage.lend(), from).expect("its own storage");
    let tasks = Told(now, Vec::new());
    let mut many = Many { clock: Shared(now), wait, tasks, observe: () };
    let end = Instant::from_ns(410_000);
    assert_eq!(many.run(&table, &mut state, end, &AtomicBool::new(false)), Ended::Finished);
    many.tasks.1
}

#[test]
fn it_is_warmed_after_the_sleep_and_before_its_release() {
    let now = Cell::new(1_000);
    let seen = seen(&now, Spin::new(Span::from_us(20)));
    let expected = [(1, 100_000), (0, 200_000), (0, 400_000)];
    assert_eq!(seen.len(), 2 * expected.len(), "{seen:?}");
    for (pair, (rank, release)) in seen.chunks(2).zip(expected) {
        assert_eq!(pair, [Seen::Warmed(rank, release - 20_000), Seen::Ran(rank, release)]);
    }
}

#[test]
fn nothing_is_warmed_where_there_is_no_time_in_hand() {
    for margin in [None, Some(Span::from_us(4))] {
        let now = Cell::new(1_000);
        let seen = match margin {
            None => seen(&now, Sleep),
            Some(margin) => seen(&now, Spin::new(margin)),
        };
        assert_eq!(seen.len(), 3, "{seen:?}");
    }
}
