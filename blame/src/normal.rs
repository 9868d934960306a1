//! The baseline: the time that each part of the way from a release to the first instruction takes
//! in wakes that are on time.

use serde::{Deserialize, Serialize};

use crate::past::{Piece, WakePhase, Window};
use crate::path::{awaits_own_ipi, is_beside_ipi};
use crate::release::{Activation, ReleaseAnchor};
use crate::spread::Spread;
use crate::timeline::Activity;

/// Wakes on time that are needed before a baseline counts.
pub(crate) const NEEDED: u64 = 16;
/// The share of wakes on time that a baseline covers.
const SHARE: f64 = 0.95;
/// Times of one wake that have a baseline, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WakeTimes {
    /// From the release to the interrupt that brings it, interrupts of others aside.
    delivery_ns: u64,
    /// The longest stretch inside the timer interrupt without an event.
    pub(crate) timer_ns: u64,
    /// The longest stretch inside a timer's function without an event, with what the kernel does
    /// behind it: programming the next timer.
    pub(crate) callback_ns: u64,
    /// Idle although it was ready: another CPU woke it.
    pub(crate) idle_ready_ns: u64,
    /// Within the interrupt that wakes an event-driven thread.
    own_interrupt_ns: u64,
}

impl WakeTimes {
    /// Returns true where something was learnt.
    pub(crate) fn is_known(&self) -> bool {
        *self != Self::default()
    }

    /// Each of them, but no longer than this, ns.
    pub(crate) fn at_most(self, longest_ns: u64) -> Self {
        Self {
            delivery_ns: self.delivery_ns.min(longest_ns),
            timer_ns: self.timer_ns.min(longest_ns),
            callback_ns: self.callback_ns.min(longest_ns),
            idle_ready_ns: self.idle_ready_ns.min(longest_ns),
            own_interrupt_ns: self.own_interrupt_ns.min(longest_ns),
        }
    }

    /// The times of a window.
    pub(crate) fn new(window: &Window, anchor: ReleaseAnchor) -> Self {
        let mut times = Self::default();
        for (index, piece) in window.pieces.iter().enumerate() {
            let length_ns = piece.length_ns();
            let is_gap = piece.activity.is_task_or_idle();
            match (piece.phase, piece.activity) {
                (WakePhase::Delivery, _) if anchor.is_event_driven() => {
                    times.own_interrupt_ns += length_ns;
                }
                (WakePhase::Delivery, _) if is_gap && !is_beside_ipi(window, index) => {
                    times.delivery_ns += length_ns;
                }
                (_, Activity::TimerInterrupt) => times.timer_ns = times.timer_ns.max(length_ns),
                (_, Activity::TimerCallback { .. }) => {
                    times.callback_ns = times.callback_ns.max(length_ns);
                }
                (WakePhase::Ready, Activity::Idle { .. }) => times.idle_ready_ns += length_ns,
                _ if awaits_own_ipi(window, anchor, index) => times.delivery_ns += length_ns,
                _ => {}
            }
        }
        times
    }

    /// Takes the normal time of a part of the piece at `index` off these, ns, its length at most;
    /// returns it.
    pub(crate) fn take(
        &mut self,
        window: &Window,
        release: &Activation,
        index: usize,
        part: &Piece,
    ) -> u64 {
        if part.is_hole || release.armed_ns.is_some_and(|armed_ns| part.from_ns < armed_ns) {
            return 0;
        }
        let is_gap = part.activity.is_task_or_idle();
        let left_ns = match (part.phase, part.activity) {
            (_, Activity::Lost | Activity::Unseen) => return 0,
            (WakePhase::Delivery, _) if release.anchor.is_event_driven() => {
                &mut self.own_interrupt_ns
            }
            // The slack is asked for: it is no part of the way.
            (WakePhase::Delivery, _) if is_gap && part.to_ns <= release.latest_ns => return 0,
            (WakePhase::Delivery, _) if is_gap && !is_beside_ipi(window, index) => {
                &mut self.delivery_ns
            }
            (WakePhase::Ready, Activity::Idle { .. }) if !part.is_passed_over => {
                &mut self.idle_ready_ns
            }
            _ if is_gap && awaits_own_ipi(window, release.anchor, index) => &mut self.delivery_ns,
            _ => return 0,
        };
        let normal_ns = part.length_ns().min(*left_ns);
        *left_ns -= normal_ns;
        normal_ns
    }
}

/// Baselines of one thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct Normals {
    delivery: Spread,
    timer: Spread,
    callback: Spread,
    idle_ready: Spread,
    own_interrupt: Spread,
    usual: WakeTimes,
}

/// Wakes up to which usual times are worked out anew with each, and behind which with every so
/// many.
const STEP: u64 = 64;

impl Normals {
    /// Learns from a wake on time.
    pub(crate) fn learn(&mut self, times: WakeTimes) {
        self.delivery.add(times.delivery_ns);
        self.timer.add(times.timer_ns);
        self.callback.add(times.callback_ns);
        self.idle_ready.add(times.idle_ready_ns);
        self.own_interrupt.add(times.own_interrupt_ns);
        let total = self.delivery.total();
        if total < STEP || total.is_multiple_of(STEP) {
            self.usual = WakeTimes {
                delivery_ns: self.delivery.quantile_ns(SHARE),
                timer_ns: self.timer.quantile_ns(SHARE),
                callback_ns: self.callback.quantile_ns(SHARE),
                idle_ready_ns: self.idle_ready.quantile_ns(SHARE),
                own_interrupt_ns: self.own_interrupt.quantile_ns(SHARE),
            };
        }
    }

    /// Returns true where enough wakes on time were learnt from for the baseline to count.
    pub(crate) const fn is_ready(&self) -> bool {
        self.delivery.total() >= NEEDED
    }

    /// Usual times, ns; 0 as long as nothing was learnt.
    pub(crate) const fn usual(&self) -> WakeTimes {
        self.usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::past::unseen;
    use punctual_trace::event::{TaskName, Vector};

    const TIMER: ReleaseAnchor = ReleaseAnchor::Timer { timer: 1, function: 2 };

    fn piece(phase: WakePhase, activity: Activity, from: u64, to: u64) -> Piece {
        Piece { phase, activity, ..unseen(from, to) }
    }

    fn window(pieces: &[Piece]) -> Window {
        Window { pieces: pieces.to_vec(), lead: None }
    }

    #[test]
    fn times_of_a_wake_leave_out_what_belongs_to_an_ipi() {
        let idle = Activity::Idle { state: None };
        let ipi = Activity::Ipi { vector: Vector::CallFunction, sender: None };
        let armer = TaskName::default();
        let callback = Activity::TimerCallback { timer: 1, function: 2, armer, is_soft: false };
        let pieces = [
            piece(WakePhase::Delivery, idle, 0, 5_000),
            piece(WakePhase::Delivery, Activity::TimerInterrupt, 5_000, 7_000),
            piece(WakePhase::Ready, Activity::TimerInterrupt, 7_000, 12_000),
            piece(WakePhase::Ready, idle, 12_000, 13_000),
            piece(WakePhase::Ready, callback, 13_000, 17_000),
        ];
        let times = WakeTimes::new(&window(&pieces), TIMER);
        let wanted = WakeTimes {
            delivery_ns: 5_000,
            timer_ns: 5_000,
            callback_ns: 4_000,
            idle_ready_ns: 1_000,
            own_interrupt_ns: 0,
        };
        assert_eq!(times, wanted);
        let with_ipi = [
            piece(WakePhase::Delivery, idle, 0, 5_000),
            piece(WakePhase::Delivery, ipi, 5_000, 6_000),
            piece(WakePhase::Delivery, idle, 6_000, 70_000),
        ];
        // The second gap is too long to be the IPI's.
        assert_eq!(WakeTimes::new(&window(&with_ipi), TIMER).delivery_ns, 64_000);
        assert_eq!(
            WakeTimes::new(&window(&with_ipi), ReleaseAnchor::Interrupt).own_interrupt_ns,
            70_000
        );
    }

    #[test]
    fn a_baseline_is_the_p95_of_what_was_on_time() {
        let mut normals = Normals::default();
        for wake in 0..100_u64 {
            assert_eq!(normals.is_ready(), wake >= NEEDED);
            normals.learn(WakeTimes { delivery_ns: wake * 100, ..WakeTimes::default() });
        }
        let usual = normals.usual();
        // Of the first 64.
        assert!((5_900..=6_060).contains(&usual.delivery_ns), "{usual:?}");
        assert_eq!(usual.timer_ns, 0);
        assert_eq!(Normals::default().usual(), WakeTimes::default());
    }
}
