//! Units at fixed places of a frame, and tasks between them.

use super::*;

impl Made {
    fn with_frame() -> Self {
        let made = Self::new();
        assert_eq!(made.frame(2_000_000, 1), 0);
        made
    }
}

fn unit(name: &CStr, work_of: &mut Work, place: (u64, u64)) -> UnitRecord {
    UnitRecord::new(name, Some(work), std::ptr::from_mut(work_of).cast(), place)
}

/// A unit whose body is never called.
fn unused(name: &CStr, place: (u64, u64)) -> UnitRecord {
    UnitRecord::new(name, Some(work), null_mut(), place)
}

#[test]
fn units_keep_their_places_and_a_filter_goes_on_where_it_was() {
    let made = Made::with_frame();
    let (mut read, mut filter) = (Work::default(), Work { parts: 2, ..Work::default() });
    assert_eq!(made.add_unit(unit(c"read", &mut read, (0, 100_000)).deadline(2_000_000)), 0);
    let first = unit(c"one", &mut filter, (50_000, 100_000)).after(c"read").of(c"filter");
    assert_eq!(made.add_unit(first.deadline(1_900_000)), 0);
    let second = UnitRecord::new(c"two", None, null_mut(), (1_000_000, 100_000));
    assert_eq!(made.add_unit(second.of(c"filter").deadline(1_900_000)), 0);
    assert_eq!(made.build(), 0);
    let place = |index| made.layout(index).expect("built").phase_ns;
    assert_eq!([0, 1, 2].map(place), [0, 150_000, 150_000]);
    assert_eq!(made.run(60_000_000), 0);
    assert_eq!(made.ran(1), made.ran(2), "one task");
    // A cycle of the filter is three parts; the last may not have come to its end.
    assert!((filter.ran / 3..=filter.ran.div_ceil(3)).contains(&made.ran(1)), "{}", filter.ran);
    assert_eq!(made.ran(0), read.ran);
    assert_eq!((filter.most_part, read.most_part), (2, 0));
    assert!(made.quantile_ns(0, 0.5).expect("it ran") >= 0 && made.wait_info() == 0);
}

#[test]
fn tasks_run_between_the_units() {
    let made = Made::with_frame();
    let (mut units, mut beside) = (Work::default(), Work::default());
    assert_eq!(made.add_unit(unit(c"unit", &mut units, (0, 200_000)).deadline(2_000_000)), 0);
    assert_eq!(made.add_task(task(c"task", 5_000_000, &mut beside).budget(50_000)), 0);
    assert_eq!(made.run(60_000_000), 0);
    assert!(units.ran > 0 && beside.ran > 0);
    assert_eq!((made.ran(0), made.ran(1)), (units.ran, beside.ran));
    assert_eq!(made.stop(), 0);
    let ran = units.ran;
    assert_eq!((made.run(0), units.ran), (0, ran), "stopped for good");
}

#[test]
fn what_does_not_go_together_is_named() {
    let mut work = Work::default();
    for (name, budget_ns, answer, says) in [
        (c"none", 0, -libc::EINVAL, "no budget"),
        (c"large", 200_000, -libc::ENOSPC, "fits nowhere"),
        (c"unit", 50_000, -libc::EEXIST, "both named"),
    ] {
        let made = Made::with_frame();
        assert_eq!(made.add_unit(unused(c"unit", (0, 1_900_000))), 0);
        assert_eq!(made.add_task(task(name, 5_000_000, &mut work).budget(budget_ns)), 0);
        assert_eq!((made.build(), made.run(1)), (answer, answer), "{name:?}");
        assert!(said().contains(says), "{}", said());
    }
}

#[test]
fn what_cannot_be_built_is_named() {
    let refused = |units: &[UnitRecord]| {
        let made = Made::with_frame();
        let added = units.iter().map(|unit| made.add_unit(*unit)).find(|answer| *answer != 0);
        let answer = added.unwrap_or_else(|| made.build());
        (answer, said())
    };
    let first = unused(c"one", (0, 100_000));
    let (answer, says) = refused(&[first, unused(c"two", (99_999, 100_000))]);
    assert_eq!(answer, -libc::ENOSPC);
    assert!(says.contains("\"one\" at 0 to 100000 ns and unit \"two\" at 99999"), "{says}");
    let second = UnitRecord::new(c"two", Some(overrun), null_mut(), (500_000, 100_000));
    for (units, answer, says) in [
        (&[][..], -libc::EINVAL, "without tasks"),
        (&[unused(c"far", (1_950_000, 100_000))], -libc::ENOSPC, "must lie within the frame"),
        (&[first, first], -libc::EEXIST, "two units are named"),
        (&[first.after(c"none")], -libc::ENOENT, "no unit has that name"),
        (&[first.after(c"one")], -libc::EINVAL, "after itself"),
        (&[unused(c"empty", (0, 0))], -libc::EINVAL, "budget"),
        (&[first.deadline(1)], -libc::EINVAL, "(got 1 ns)"),
        (&[first.on_overrun(2)], -libc::EINVAL, "would move its place"),
        (&[first.on_overrun(9)], -libc::EINVAL, "unit \"one\": no answer"),
        (&[first.reserved(1)], -libc::E2BIG, ""),
        (&[UnitRecord::blank()], -libc::EINVAL, "a unit without a name"),
        (
            &[UnitRecord::new(c"x", None, null_mut(), (0, 1))],
            -libc::EINVAL,
            "a body for task \"x\"",
        ),
        (&[first.of(c"t"), second.of(c"t")], -libc::EINVAL, "different functions"),
    ] {
        let (got, words) = refused(units);
        assert!(got == answer && words.contains(says), "{got} {words}");
    }
    let made = Made::new();
    assert_eq!((made.add_unit(first), made.build()), (0, -libc::EINVAL));
    assert!(said().contains("\"one\" needs a frame"), "{}", said());
    for (num_ns, den) in [(0, 1), ((1 << 62) + 1, 1), (u64::MAX, 1), (1, 0)] {
        assert_eq!(made.frame(num_ns, den), -libc::EINVAL);
        assert!(said().contains("frame: a period of"), "{}", said());
    }
    assert_eq!((made.frame(1_000_000_000, 3), made.build()), (0, -libc::EINVAL));
}

#[test]
fn a_time_out_that_stops_everything_names_its_task() {
    let made = Made::with_frame();
    let stops = UnitRecord::new(c"arm", Some(overrun), null_mut(), (0, 10_000));
    assert_eq!(made.add_unit(stops.deadline(2_000_000).on_overrun(4)), 0);
    assert_eq!(made.run(60_000_000_000), -libc::ETIME);
    assert!(said().contains("\"arm\""));
}
