//! Arguments that cannot be are named, and the kernel's refusals listed.

use super::*;

#[test]
fn what_cannot_be_built_is_named() {
    let made = Made::new();
    let mut task = Work::default();
    assert_eq!(made.add_task(TaskRecord::blank()), -libc::EINVAL);
    assert!(said().contains("without a name"));
    assert_eq!(made.add(c"zero", 0, &mut task), -libc::EINVAL);
    assert_eq!(said(), "task \"zero\": a period of 0/1 ns: from 1 ns to 2^62 ns (146 years)");
    assert_eq!(made.add(c"long", (1 << 62) + 1, &mut task), -libc::EINVAL);
    assert_eq!((made.build(), made.run(1)), (-libc::EINVAL, -libc::EINVAL));
    assert!(said().contains("without tasks"));
    assert_eq!(made.add(c"twin", 1_000_000, &mut task), 0);
    assert_eq!(made.add(c"twin", 2_000_000, &mut task), 0);
    assert_eq!((made.build(), made.run(1)), (-libc::EEXIST, -libc::EEXIST));
    assert!(said().contains("\"twin\""));
    assert_eq!(made.layout(0), Err(-libc::EINVAL));
    // SAFETY: an executive that was not built, and no result.
    assert_eq!(unsafe { punctual_executive_peak(made.0, null_mut()) }, -libc::EINVAL);
}

#[test]
fn what_asks_for_more_than_the_cpu_is_refused_unless_allowed() {
    let made = Made::new();
    let mut work = Work::default();
    for name in [c"a", c"b"] {
        assert_eq!(made.add_task(task(name, 1_000_000, &mut work).budget(600_000)), 0);
    }
    assert_eq!(made.build(), -libc::ENOSPC);
    assert!(said().contains("1.200"), "{}", said());
    // SAFETY: an executive.
    assert_eq!(unsafe { punctual_executive_allow_overload(made.0) }, 0);
    assert_eq!((made.build(), made.build()), (0, 0));
    assert_eq!(made.add(c"b", 1_000_000, &mut work), -libc::EEXIST);
    assert_eq!(made.add(c"c", 1_000_000, &mut work), 0, "built anew");
    assert!(made.layout(2).is_ok());
    assert_eq!(made.try_stats(3).expect_err("no such task"), -libc::ENOENT);
    assert_eq!((made.ran(1), made.quantile_ns(1, 0.5)), (0, Err(-libc::ENODATA)));
    assert_eq!(made.quantile_ns(1, 1.5), Err(-libc::EINVAL));
    assert_eq!(made.wait_info(), -libc::ENODATA);
}

#[test]
fn each_overrun_phase_and_place_is_what_it_says() {
    let task = |name| TaskRecord::new(name, work, null_mut(), 1_000_000);
    let built = |task: TaskRecord| {
        let made = Made::new();
        match made.add_task(task) {
            0 => made.build(),
            answer => answer,
        }
    };
    for on_overrun in 0..=4 {
        let burst = if on_overrun == 1 { 2 } else { 0 };
        assert_eq!(built(task(c"a").burst(burst).on_overrun(on_overrun)), 0, "{on_overrun}");
    }
    assert_eq!(built(task(c"a").burst(0)), -libc::EINVAL);
    assert!(said().contains("burst"));
    assert_eq!(built(task(c"a").on_overrun(5)), -libc::EINVAL);
    assert_eq!(built(task(c"a").after(None, 5)), -libc::EINVAL);
    assert!(said().contains("after no task"));
    assert_eq!(built(task(c"a").after(Some(c"b"), 5)), -libc::ENOENT);
    assert_eq!(built(task(c"a").after(Some(c"a"), 5)), -libc::EINVAL);
    for (place, cpu, priority) in
        [(0, 0, 0), (0, -1, 5), (1, -1, 0), (1, 0, 5), (2, -2, 0), (3, -1, 0)]
    {
        assert_eq!(built(task(c"a").place(place, cpu, priority)), -libc::EINVAL, "{place}");
    }
    let made = Made::new();
    assert_eq!(made.add_task(task(c"b").after(Some(c"a"), 300_000)), 0);
    assert_eq!(made.add_task(task(c"a")), 0);
    assert_eq!(made.build(), 0);
    let phase_ns = |index| made.layout(index).expect("built").phase_ns;
    assert_eq!(phase_ns(0), (phase_ns(1) + 300_000) % 1_000_000);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
    let (made, mut work) = (Made::new(), Work::default());
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    let mut options = quick();
    // No machine has it.
    options.pin(1023);
    assert_eq!(made.run_with(&options, 1_000_000), -libc::EINVAL);
    assert!(said().contains("CPU 1023"), "{}", said());
    assert_eq!(work.ran, 0);
}

#[test]
fn what_the_kernel_refuses_is_listed_or_strictly_an_error() {
    let (made, mut work) = (Made::new(), Work::default());
    assert_eq!(made.add(c"a", 1_000_000, &mut work), 0);
    let mut options = quick();
    options.greedy();
    assert_eq!(made.run_with(&options, 1_000_000), 0);
    let refused = made.text(punctual_executive_refused);
    options.strict = 1;
    let before = work.ran;
    match (made.run_with(&options, 1_000_000), refused.is_empty()) {
        (0, true) => {}
        (error, false) => {
            assert_eq!((error, work.ran), (-libc::EACCES, before));
            let first = refused.split(':').next().expect("a word");
            assert!(said().contains(first), "{} {refused}", said());
        }
        (error, true) => panic!("{error}: {}", said()),
    }
}
