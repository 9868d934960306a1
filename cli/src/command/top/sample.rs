//! Frames for the tests of `top`.

use punctual_blame::cause::LateCause;
use punctual_blame::outcome::{LatenessBounds, ThreadSnapshot};
use punctual_core::time::Span;
use punctual_lab::top::{TopCause, TopFrame, TopPriority, TopThread};
use punctual_trace::event::{ShortName, TaskName};

/// A thread of this name, `tid` µs late at most, kept by a hog.
pub(super) fn thread(tid: u32, name: &[u8]) -> TopThread {
    let hog = TaskName { tid: 9, name: ShortName::new(b"zz_hog97"), kernel_priority: 2 };
    let cause = LateCause::HigherPriority { task: hog };
    TopThread {
        figures: ThreadSnapshot {
            task: TaskName { tid, name: ShortName::new(name), kernel_priority: 9 },
            cpu: 1,
            period_ns: Some(1_000_000),
            margin_ns: 0,
            wakes: 1_006,
            p50: LatenessBounds::exact(22_100),
            p99: LatenessBounds::exact(301_000),
            max: LatenessBounds::exact(u64::from(tid) * 1_000),
            late: 35,
            delivery_ns: 480,
            ready_ns: 520,
            first_cause: Some(cause),
            ran_before: Some(hog),
            has_ended: false,
            unmatched: 0,
            waiting: None,
        },
        priority: TopPriority::Fifo(90),
        new_wakes: 1_000,
        new_late: 0,
        cause: Some(TopCause::Known(cause)),
        why: "zz_hog97 (priority 97, 9) ran above".to_owned(),
    }
}

/// A frame with these threads.
pub(super) fn frame(threads: Vec<TopThread>) -> TopFrame {
    TopFrame {
        elapsed: Span::from_ms(1_000),
        events_per_s: 26_583.2,
        lost: 0,
        own_cpu_share: 0.003,
        late_over_ns: 100_000,
        stopped_by: None,
        unfollowed: 0,
        threads,
    }
}
