//! The entries of a calendar, as C calls them: what is built, run and refused.
#![expect(clippy::multiple_unsafe_ops_per_block, reason = "each is a call of one entry")]

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use super::*;
use crate::clock::punctual_now_ns;
use crate::errors;
use crate::periodic::tests as periodic;
use crate::stats::Cycle;

/// Counts what it is called for; done after so many parts.
#[derive(Debug, Default)]
struct Work {
    ran: u64,
    parts: u64,
    most_part: u64,
}

unsafe extern "C" fn work(data: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: each task of these tests has a `Work` of its own.
    let work = unsafe { &mut *data.cast::<Work>() };
    // SAFETY: alive for the call, says the header.
    let cycle = unsafe { &*cycle };
    assert!(cycle.next_ns > cycle.release_ns);
    work.ran += 1;
    work.most_part = work.most_part.max(cycle.part);
    if cycle.part < work.parts { 2 } else { 0 }
}

struct Held(*mut Calendar);

impl Held {
    fn new() -> Self {
        let mut calendar = null_mut();
        // SAFETY: it is local.
        assert_eq!(unsafe { punctual_calendar_create(&raw mut calendar, 2_000_000) }, 0);
        Self(calendar)
    }

    fn add(&self, unit: UnitRecord) -> c_int {
        // SAFETY: a calendar, a local unit, no index.
        unsafe { punctual_calendar_add(self.0, &raw const unit, null_mut()) }
    }

    fn build(&self) -> c_int {
        // SAFETY: a calendar.
        unsafe { punctual_calendar_build(self.0) }
    }

    fn run(&self, beside: *mut Executive, duration_ns: u64) -> c_int {
        // SAFETY: a calendar, null or an executive, and local options.
        unsafe { punctual_calendar_run(self.0, beside, &periodic::quick(), duration_ns) }
    }

    fn place(&self, unit: u32) -> (u64, u64) {
        let (mut from_ns, mut to_ns) = (0, 0);
        // SAFETY: a calendar, and local results.
        let answer =
            unsafe { punctual_calendar_place(self.0, unit, &raw mut from_ns, &raw mut to_ns) };
        assert_eq!(answer, 0);
        (from_ns, to_ns)
    }

    fn counts(&self, unit: u32) -> UnitCounts {
        let mut counts = UnitCounts::blank();
        // SAFETY: a calendar, and a local result.
        let answer = unsafe { punctual_calendar_task_counts(self.0, unit, &raw mut counts) };
        assert_eq!(answer, 0);
        counts
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: a calendar, used no more.
        assert_eq!(unsafe { punctual_calendar_destroy(self.0) }, 0);
    }
}

fn unit(name: &CStr, work_of: &mut Work, place: (u64, u64)) -> UnitRecord {
    UnitRecord::of(name, Some(work), std::ptr::from_mut(work_of).cast(), place)
}

/// A unit whose body is never called.
fn idle(name: &CStr, place: (u64, u64)) -> UnitRecord {
    UnitRecord::of(name, Some(work), null_mut(), place)
}

#[test]
fn units_keep_their_places_and_a_filter_goes_on_where_it_was() {
    let held = Held::new();
    let (mut read, mut filter) = (Work::default(), Work { parts: 2, ..Work::default() });
    assert_eq!(held.add(unit(c"read", &mut read, (0, 100_000)).deadline(2_000_000)), 0);
    let first = unit(c"one", &mut filter, (50_000, 100_000)).after(c"read").of_task(c"filter");
    assert_eq!(held.add(first.deadline(1_900_000)), 0);
    let second = UnitRecord::of(c"two", None, null_mut(), (1_000_000, 100_000));
    assert_eq!(held.add(second.of_task(c"filter").deadline(1_900_000)), 0);
    assert_eq!(held.build(), 0);
    assert_eq!(held.place(0), (0, 100_000));
    assert_eq!(held.place(1), (150_000, 250_000));
    let mut gap_ns = 0;
    // SAFETY: a calendar, and a local result.
    assert_eq!(unsafe { punctual_calendar_longest_gap_ns(held.0, &raw mut gap_ns) }, 0);
    assert_eq!(gap_ns, 900_000);
    assert_eq!(held.run(null_mut(), 60_000_000), 0);
    let counts = held.counts(1);
    assert_eq!(counts, held.counts(2), "one task");
    assert_eq!((counts.ran, held.counts(0).ran), (filter.ran, read.ran));
    assert_eq!((filter.most_part, read.most_part), (2, 0));
    assert!(counts.breaks >= 2 && counts.breaks < counts.ran, "{counts:?}");
    let (mut stats, mut half_ns, mut info) = (Stats::blank(), -1, WaitInfo::blank());
    // SAFETY: a calendar, and local results.
    unsafe {
        assert_eq!(punctual_calendar_task_stats(held.0, 2, &raw mut stats), 0);
        assert_eq!(punctual_calendar_task_quantile_ns(held.0, 0, 0.5, &raw mut half_ns), 0);
        assert_eq!(punctual_calendar_wait_info(held.0, &raw mut info), 0);
    }
    assert!(format!("{stats:?}").contains(&format!("ran: {},", filter.ran)) && half_ns >= 0);
}

#[test]
fn tasks_beside_it_run_between_the_units() {
    let held = Held::new();
    let mut units = Work::default();
    assert_eq!(held.add(unit(c"unit", &mut units, (0, 200_000)).deadline(2_000_000)), 0);
    assert_eq!(held.build(), 0);
    let tasks = periodic::Held::new();
    let mut beside = periodic::Work::default();
    assert_eq!(tasks.add_with_budget(c"task", 5_000_000, 50_000, &mut beside), 0);
    assert_eq!(held.run(tasks.0, 1), -libc::EINVAL);
    assert!(errors::tests::last().contains("not built"));
    assert_eq!(tasks.build(), 0);
    assert_eq!(held.run(tasks.0, 60_000_000), 0);
    assert!(units.ran > 0 && beside.ran > 0 && units.ran == held.counts(0).ran);
    assert!(tasks.stats(0).contains(&format!("ran: {},", beside.ran)));
    // Whoever is stopped ends both, for good.
    // SAFETY: an executive.
    assert_eq!(unsafe { crate::periodic::punctual_periodic_stop(tasks.0) }, 0);
    let ran = units.ran;
    assert_eq!((held.run(tasks.0, 0), units.ran), (0, ran));
}

#[test]
fn what_does_not_go_together_is_named() {
    let held = Held::new();
    assert_eq!(held.add(idle(c"unit", (0, 1_900_000))), 0);
    assert_eq!(held.build(), 0);
    let mut work = periodic::Work::default();
    for (name, budget_ns, answer, says) in [
        (c"none", 0, -libc::EINVAL, "no budget"),
        (c"large", 200_000, -libc::ENOSPC, "fits nowhere"),
        (c"unit", 50_000, -libc::EEXIST, "both named"),
    ] {
        let tasks = periodic::Held::new();
        assert_eq!(tasks.add_with_budget(name, 5_000_000, budget_ns, &mut work), 0);
        assert_eq!(tasks.build(), 0);
        assert_eq!(held.run(tasks.0, 1), answer, "{name:?}");
        assert!(errors::tests::last().contains(says), "{}", errors::tests::last());
    }
}

#[test]
fn what_cannot_be_built_is_named() {
    let refused = |units: &[UnitRecord]| {
        let held = Held::new();
        let added = units.iter().map(|unit| held.add(*unit)).find(|answer| *answer != 0);
        let answer = added.unwrap_or_else(|| held.build());
        (answer, errors::tests::last())
    };
    let one = idle(c"one", (0, 100_000));
    let (answer, says) = refused(&[one, idle(c"two", (99_999, 100_000))]);
    assert_eq!(answer, -libc::ENOSPC);
    assert!(says.contains("\"one\" at 0 to 100000 ns and unit \"two\" at 99999"), "{says}");
    let other = UnitRecord::of(c"two", Some(overruns), null_mut(), (500_000, 100_000));
    for (units, answer, says) in [
        (&[][..], -libc::EINVAL, "without a unit"),
        (&[idle(c"far", (1_950_000, 100_000))], -libc::ENOSPC, "not in a frame"),
        (&[one, one], -libc::EEXIST, "two units are named"),
        (&[one.after(c"none")], -libc::ENOENT, "which is no unit"),
        (&[one.after(c"one")], -libc::EINVAL, "after itself"),
        (&[idle(c"empty", (0, 0))], -libc::EINVAL, "budget of nothing"),
        (&[one.deadline(1)], -libc::EINVAL, "deadline of 1 ns"),
        (&[one.policy(2)], -libc::EINVAL, "places stay"),
        (&[one.policy(9)], -libc::EINVAL, "unit \"one\": no policy"),
        (&[one.reserved(1)], -libc::E2BIG, ""),
        (&[UnitRecord::blank()], -libc::EINVAL, "a unit without a name"),
        (&[UnitRecord::of(c"x", None, null_mut(), (0, 1))], -libc::EINVAL, "no function to run"),
        (&[one.of_task(c"t"), other.of_task(c"t")], -libc::EINVAL, "different functions"),
    ] {
        let (was, said) = refused(units);
        assert!(was == answer && said.contains(says), "{was} {said}");
    }
    for frame_ns in [0, (1 << 62) + 1, u64::MAX] {
        let mut calendar = std::ptr::dangling_mut();
        // SAFETY: it is local.
        let answer = unsafe { punctual_calendar_create(&raw mut calendar, frame_ns) };
        assert!(answer == -libc::EINVAL && calendar.is_null());
        assert!(errors::tests::last().contains("a frame of"), "{}", errors::tests::last());
    }
}

#[test]
fn what_is_not_there_yet_cannot_be_asked_for() {
    let held = Held::new();
    let mut stats = Stats::blank();
    assert_eq!(held.run(null_mut(), 1), -libc::EINVAL);
    assert_eq!(held.add(idle(c"one", (0, 100_000))), 0);
    // SAFETY: a calendar, and local results or none.
    unsafe {
        assert_eq!(punctual_calendar_task_stats(held.0, 0, &raw mut stats), -libc::EINVAL);
        assert_eq!(held.build(), 0);
        assert_eq!((held.build(), held.add(idle(c"two", (0, 1)))), (-libc::EBUSY, -libc::EBUSY));
        assert_eq!(punctual_calendar_task_stats(held.0, 1, &raw mut stats), -libc::ENOENT);
        assert_eq!(punctual_calendar_place(held.0, 1, null_mut(), null_mut()), -libc::ENOENT);
        let mut counts = UnitCounts::blank();
        let none = punctual_calendar_task_counts(held.0, 0, &raw mut counts);
        assert_eq!(none, -libc::ENODATA);
        let none = punctual_calendar_task_quantile_ns(held.0, 0, 0.5, &mut 0);
        assert_eq!(none, -libc::ENODATA);
        let none = punctual_calendar_wait_info(held.0, &mut WaitInfo::blank());
        assert_eq!(none, -libc::ENODATA);
        assert_eq!(punctual_calendar_stop(held.0), 0);
    }
    assert_eq!(held.run(null_mut(), 0), 0, "stopped for good");
}

/// Uses the CPU until its budget is spent.
unsafe extern "C" fn overruns(_: *mut c_void, cycle: *const Cycle) -> c_int {
    // SAFETY: alive for the call, says the header.
    let next_ns = unsafe { (*cycle).next_ns };
    // The clock of the loop may be a few ns behind.
    while punctual_now_ns() < next_ns + 100_000 {
        std::hint::spin_loop();
    }
    0
}

#[test]
fn a_time_out_that_stops_everything_names_its_task() {
    let held = Held::new();
    let stops = UnitRecord::of(c"arm", Some(overruns), null_mut(), (0, 10_000));
    let stops = stops.deadline(2_000_000).policy(4);
    assert_eq!((held.add(stops), held.build()), (0, 0));
    assert_eq!(held.run(null_mut(), 60_000_000_000), -libc::ETIME);
    assert!(errors::tests::last().contains("\"arm\""));
}

#[test]
fn a_panic_inside_any_entry_is_an_error_outside() {
    let held = Held::new();
    let fault = -libc::ENOTRECOVERABLE;
    let panics = border::tests::panic_next;
    let (of, none) = (held.0, null_mut());
    // SAFETY: a calendar, and null where nothing is reached.
    unsafe {
        panics();
        assert_eq!(punctual_calendar_create(&mut null_mut(), 1), fault);
        panics();
        assert_eq!(punctual_calendar_add(of, null(), null_mut()), fault);
        panics();
        assert_eq!(punctual_calendar_build(of), fault);
        panics();
        assert_eq!(punctual_calendar_place(of, 0, none, none), fault);
        panics();
        assert_eq!(punctual_calendar_longest_gap_ns(of, none), fault);
        panics();
        assert_eq!(punctual_calendar_run(of, null_mut(), null(), 0), fault);
        panics();
        assert_eq!(punctual_calendar_stop(of), fault);
        panics();
        assert_eq!(punctual_calendar_task_stats(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_calendar_task_quantile_ns(of, 0, 0.5, null_mut()), fault);
        panics();
        assert_eq!(punctual_calendar_task_counts(of, 0, null_mut()), fault);
        panics();
        assert_eq!(punctual_calendar_wait_info(of, null_mut()), fault);
        panics();
        assert_eq!(punctual_calendar_refused(of, null_mut(), 0), fault);
        panics();
        assert_eq!(punctual_calendar_destroy(of), fault);
    }
}
