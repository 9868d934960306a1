//! Pages as a reader meets them: whole, while written, broken off, and what is none.

use std::boxed::Box;
use std::sync::atomic::AtomicBool;
use std::vec::Vec;

use super::*;
use crate::cycle::{Job, Observe};
use crate::releases::Releases;
use crate::time::Period;

fn words() -> Vec<AtomicU64> {
    (0..WORDS).map(|_| AtomicU64::new(7)).collect()
}

fn job(rank: usize, cycle: u64, missed: u64) -> Job {
    let at = |cycle: u64| Instant::from_ns(cycle * 1_000);
    let (release, next, passed) = (at(cycle), at(cycle + 1), 0);
    let period = Period::from_ns(1_000).expect("in range");
    Job { rank, cycle, part: 0, release, next, missed, passed, period }
}

fn histogram(view: &View<'_>) -> (Counts, Box<[u64; bucket::COUNT]>) {
    let mut buckets = Box::new([0; bucket::COUNT]);
    (view.read(&mut buckets), buckets)
}

#[test]
fn what_was_written_is_read() {
    let words = words();
    assert_eq!(View::open(&words).err(), Some(PageError::NoPage));
    let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
    let view = View::open(&words).expect("a page");
    assert_eq!(view.counts(), Counts { consistent: true, ..Counts::default() });
    let all =
        Overruns { started_late: true, over_budget: true, over_release: true, over_deadline: true };
    let (start, finish) = (Instant::from_ns(5_300), Instant::from_ns(6_100));
    Observe::ran(&mut page, &job(0, 5, 2), start, finish, all);
    Observe::ran(&mut page, &job(0, 6, 0), Instant::from_ns(5_990), finish, Overruns::default());
    let far = Instant::from_ns(9_000 + (1 << 40));
    Observe::ran(&mut page, &job(0, 9, 2), far, far, Overruns::default());
    // Nothing ran after 9; the loop ends 500 ns after release 12.
    let releases = Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
    page.end(Missed { releases, first: 10, count: 3 }, far + Span::from_ns(500));
    let (counts, buckets) = histogram(&view);
    let expected = Counts {
        consistent: true,
        ran: 3,
        missed: 7,
        censored: 0,
        started_late: 1,
        over_budget: 1,
        over_release: 1,
        over_deadline: 1,
        below: 1,
        above: 3,
        min: Some(Span::from_ns(-10)),
        // Release 7 was missed, and the next start is that of 9.
        max: Some(Span::from_ns(2_000 + (1 << 40))),
        sum_ns: 890 + 6 * (1 << 40),
        release: Instant::from_ns(9_000),
        cycle: 9,
    };
    assert_eq!(counts, expected);
    assert_eq!(buckets.iter().sum::<u64>(), 6);
    for late in [300, 1_300, 2_300] {
        let Place::In(at) = bucket::index(late) else { panic!("{late} ns has a bucket") };
        assert_eq!(buckets[at], 1, "{late}");
    }
}

#[test]
fn what_no_start_followed_is_late_by_the_time_to_the_end_at_least() {
    let words = words();
    let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
    let view = View::open(&words).expect("a page");
    // Started when releases 6 and 7 had passed, too; ended 200 ns after release 9.
    Observe::ran(
        &mut page,
        &job(0, 5, 0),
        Instant::from_ns(7_100),
        Instant::from_ns(9_200),
        Overruns::default(),
    );
    let releases = Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
    page.end(Missed { releases, first: 6, count: 4 }, Instant::from_ns(9_200));
    let (counts, buckets) = histogram(&view);
    assert_eq!((counts.ran, counts.missed, counts.censored), (1, 4, 2));
    assert_eq!(counts.sum_ns, 2_100 + 1_100 + 1_000 + 1_200 + 1_000);
    assert_eq!(buckets.iter().sum::<u64>(), 5);
}

#[test]
fn each_rank_has_its_page_and_one_without_harms_nobody() {
    let (first, second) = (words(), words());
    let page = |words| Page::new(words, PageKind::Lateness).expect("large enough");
    let mut pages = [page(&first), page(&second)];
    let all = &mut pages[..];
    for (rank, cycle) in [(0, 1), (1, 2), (1, 3), (2, 4)] {
        let job = job(rank, cycle, 0);
        all.ran(&job, job.release, job.release, Overruns::default());
    }
    let ran = |words| View::open(words).expect("a page").counts().ran;
    assert_eq!((ran(&first), ran(&second)), (1, 2));
}

#[test]
fn tasks_on_one_page_are_each_followed_by_their_own_start() {
    let words = words();
    let page = Page::new(&words, PageKind::Lateness).expect("large enough");
    let mut starts = [Some(Instant::from_ns(1)); 2];
    let mut all = Aggregate::new(page, &mut starts);
    let mut ran = |rank, cycle, missed, start_ns| {
        let (job, start) = (job(rank, cycle, missed), Instant::from_ns(start_ns));
        all.ran(&job, start, start, Overruns::default());
    };
    // Rank 0 stalls from 1 000 to 4 500, and runs late: 2, 3 and 4 had passed by then.
    ran(0, 1, 0, 4_500);
    // Rank 1 starts later than that; rank 0 misses 5 in an overrun, and goes on with 6.
    ran(1, 4, 0, 5_200);
    ran(0, 6, 4, 6_010);
    // Rank 1 misses 7: its last start is before that, rank 0's is after it.
    ran(1, 5, 0, 5_100);
    ran(0, 7, 0, 7_400);
    let releases = Releases::new(Instant::from_ns(0), Period::from_ns(1_000).expect("in range"));
    all.never_ran(1, Missed { releases, first: 7, count: 1 }, Instant::from_ns(9_500));
    let counts = View::open(&words).expect("a page").counts();
    assert_eq!((counts.ran, counts.missed, counts.censored), (5, 5, 1));
    let ran = 3_500 + 1_200 + 10 + 100 + 400;
    // 2, 3, 4 until 4 500; 5 until 6 010; 7 of rank 1 until the end, a lower bound.
    assert_eq!(counts.sum_ns, ran + (2_500 + 1_500 + 1_000) + 1_010 + 2_500);
}

#[test]
fn of_aligned_fractions_a_missed_release_is_known_to_a_nanosecond() {
    for (num, den) in [(10_000, 3), (1_000, 7), (999_999, 1_000)] {
        let period = Period::ratio(num, den).expect("in range");
        let mut off = 0;
        for phase in 0..den {
            let start = Instant::from_ns(1_000_000 + phase * num / den);
            let releases = Releases::aligned(start, period, 0);
            for cycle in [20, 21, 22] {
                let (release, next) = (releases.release(cycle), releases.release(cycle + 1));
                let (rank, part, missed, passed) = (0, 0, 20, 0);
                let job = Job { rank, cycle, part, release, next, missed, passed, period };
                let missed = job.missed_before();
                assert_eq!(missed.first, cycle - 20);
                for k in missed.first..cycle {
                    let here = (missed.releases.release(k) - releases.release(k)).as_ns();
                    off = off.max(here.unsigned_abs());
                }
            }
        }
        assert!(off <= 1, "off by {off} ns");
    }
}

#[test]
fn a_reader_beside_a_writer_sees_one_moment_at_a_time() {
    let words = words();
    let mut page = Page::new(&words, PageKind::Lateness).expect("large enough");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let view = View::open(&words).expect("a page");
            let mut whole = 0u32;
            while whole < 20 || !done.load(Ordering::Relaxed) {
                let (counts, buckets) = histogram(&view);
                if counts.consistent {
                    whole += 1;
                    assert_eq!(counts.ran + counts.missed, buckets.iter().sum::<u64>());
                    assert_eq!(counts.ran, counts.missed);
                    // A missed one is a period late, and what its next start is late.
                    assert_eq!(counts.sum_ns, counts.ran.cast_signed() * (40 + 1_040));
                }
            }
        });
        for cycle in (1..40_000u64).step_by(2) {
            let job = job(0, cycle, 1);
            let start = job.release + Span::from_ns(40);
            Observe::ran(&mut page, &job, start, start, Overruns::default());
            if cycle % 64 == 0 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
    });
}

#[test]
fn a_writer_that_broke_off_is_told_not_waited_for() {
    let words = words();
    let page = Page::new(&words, PageKind::Distance).expect("large enough");
    page.put(SEQUENCE, 1);
    let view = View::open(&words).expect("a page");
    assert!(!view.counts().consistent);
    assert_eq!(view.kind(), PageKind::Distance);
    // Another writer goes on with it.
    for value in [7, 5, 9] {
        let mut page = Page::resume(&words).expect("a page");
        let at = At { release: Instant::from_ns(1), cycle: 2 };
        page.keep(at, Span::from_ns(value), None, Overruns::default());
    }
    let Counts { consistent, ran, min, max, .. } = view.counts();
    assert_eq!((consistent, ran), (true, 3));
    assert_eq!((min, max), (Some(Span::from_ns(5)), Some(Span::from_ns(9))));
}

#[test]
fn what_is_no_page_is_refused() {
    let words = words();
    assert!(Page::new(&words[1..], PageKind::Lateness).is_none());
    assert!(Page::resume(&words).is_none() && Page::resume(&words[1..]).is_none());
    let _page = Page::new(&words, PageKind::Lateness).expect("large enough");
    assert_eq!(View::open(&words[..3]).err(), Some(PageError::NoPage));
    assert_eq!(View::open(&words[..40]).err(), Some(PageError::Size(40)));
    words[2].store(12, Ordering::Relaxed);
    assert_eq!(View::open(&words).err(), Some(PageError::Size(12)));
    words[1].store(3, Ordering::Relaxed);
    let why = View::open(&words).expect_err("another version");
    assert_eq!(why, PageError::Version(3));
    assert!(std::format!("{why}").contains("version 3"));
}
