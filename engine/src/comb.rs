//! A comb in a loop's own lateness: each release that falls on the kernel's tick is late, and those
//! between are not.
//!
//! For loops and for waits that learn, whatever they wait by: counts late releases by their place
//! between two ticks. A cycle costs some 6 ns where it is counted, at the beginning of the next
//! wait. Never allocates, reads no clock, moves nothing.

use punctual_core::cycle::{Job, Missed, Observe, Overruns};
use punctual_core::time::{Instant, Period, Span, gcd};
use punctual_core::wait::Spin;

use crate::quiet::{KernelTick, TICKS_NS};

/// The most releases from one tick to the next that meets one at the same place.
const TEETH_MAX: usize = 128;

/// A window has so many releases at each place, and so many at least.
const TURNS: u32 = 16;
const WINDOW_MIN: u32 = 64;

/// The least share of the releases at the tick's place that are late, and the greatest of the
/// others: a loop that is late all the time, or now and then, meets no tick.
const MET_MIN: f64 = 0.6;
const ELSE_MAX: f64 = 0.2;

/// The steps of the usual lateness and its spread, ns. Up 2 and down 3 is where 0.4 of all lie
/// below: a tick that meets every second release does not become the usual.
const UP_NS: i64 = 100;
const DOWN_NS: i64 = 150;

/// So many spreads above the usual, and a stall, are late.
const SPREADS: i64 = 4;

/// Late releases by their place between two ticks. Two windows in a row must show the same.
#[derive(Clone, Debug)]
pub struct Comb {
    period: Period,
    /// The number of releases, by tick, until one is at the same place in it again; 0 where that
    /// are too many, or each is.
    teeth: [u32; TICKS_NS.len()],
    late: [[u16; TEETH_MAX]; TICKS_NS.len()],
    usual_ns: i64,
    spread_ns: i64,
    window: u32,
    left: u32,
    /// The number of the next cycle.
    next: u64,
    /// The tick and the place that the last window showed.
    suspect: Option<(usize, usize)>,
}

impl Comb {
    /// For releases of this period.
    ///
    /// # Real-time: in loop
    pub fn new(period: Period) -> Self {
        let teeth = TICKS_NS.map(|tick_ns| {
            let teeth = tick_ns / gcd(period.as_ns().into(), tick_ns.into()) as u64;
            if (2..=TEETH_MAX as u64).contains(&teeth) { teeth as u32 } else { 0 }
        });
        let most = teeth.into_iter().max().unwrap_or(0);
        let window = if most == 0 { u32::MAX } else { (TURNS * most).max(WINDOW_MIN) };
        Self {
            period,
            teeth,
            late: [[0; TEETH_MAX]; TICKS_NS.len()],
            usual_ns: 0,
            spread_ns: 0,
            window,
            left: window,
            next: 0,
            suspect: None,
        }
    }

    /// The number of cycles in a row after which a tick that they meet is certain; 0 where releases
    /// meet none that could be detected.
    ///
    /// # Real-time: in loop
    pub fn certain_after(&self) -> u64 {
        if self.window == u32::MAX { 0 } else { 2 * u64::from(self.window) }
    }

    /// Cycle `number` began so late; the tick that its loop meets, where that is certain by now.
    /// After releases that were missed it begins anew: those that ran are at some places only.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn cycle(&mut self, number: u64, release: Instant, lateness: Span) -> Option<KernelTick> {
        let late_ns = lateness.as_ns();
        if number != self.next {
            self.begin_anew(late_ns);
        }
        self.next = number.wrapping_add(1);
        let above_ns = late_ns.saturating_sub(self.usual_ns);
        if above_ns > Spin::STALL.as_ns() + SPREADS * self.spread_ns {
            self.count(number);
        }
        self.usual_ns = stepped(self.usual_ns, above_ns);
        self.spread_ns = stepped(self.spread_ns, above_ns.saturating_abs() - self.spread_ns);
        self.left -= 1;
        if self.left > 0 { None } else { self.judge(number, release) }
    }

    /// Forgets what it counted; before the first cycle the usual is that one's.
    #[cold]
    fn begin_anew(&mut self, late_ns: i64) {
        if self.next == 0 {
            self.usual_ns = late_ns.max(0);
        }
        self.clear();
        self.suspect = None;
    }

    fn clear(&mut self) {
        self.late = [[0; TEETH_MAX]; TICKS_NS.len()];
        self.left = self.window;
    }

    #[cold]
    fn count(&mut self, number: u64) {
        for (&teeth, late) in self.teeth.iter().zip(&mut self.late) {
            if teeth > 0 {
                let place = (number % u64::from(teeth)) as usize;
                late[place] = late[place].saturating_add(1);
            }
        }
    }

    /// A window is over with the release of this number.
    #[cold]
    fn judge(&mut self, number: u64, release: Instant) -> Option<KernelTick> {
        // Each multiple of a tick has more than one place, so that the shortest is the one there.
        let seen = (0..TICKS_NS.len()).find_map(|tick| Some((tick, self.met(tick)?)));
        self.clear();
        let before =
            std::mem::replace(&mut self.suspect, seen.map(|(tick, (place, _))| (tick, place)));
        let (tick, (place, share)) = seen.filter(|_| before == self.suspect)?;
        let (period_ns, teeth) = (TICKS_NS[tick], u64::from(self.teeth[tick]));
        let since = (number % teeth + teeth - place as u64) % teeth;
        let at_ns = release.as_ns().saturating_sub(since * self.period.as_ns());
        Some(KernelTick { period_ns, phase_ns: at_ns % period_ns, share })
    }

    /// The place at which releases meet this tick, and the share of them that did.
    fn met(&self, tick: usize) -> Option<(usize, f64)> {
        let teeth = self.teeth[tick];
        let late = &self.late[tick][..teeth as usize];
        let (place, &most) = late.iter().enumerate().max_by_key(|(_, late)| **late)?;
        let others: u32 = late.iter().map(|&late| u32::from(late)).sum::<u32>() - u32::from(most);
        let each = f64::from(self.window) / f64::from(teeth);
        let share = (f64::from(most) / each).min(1.0);
        let elsewhere = f64::from(others) / (each * f64::from(teeth - 1));
        (share >= MET_MIN && elsewhere <= ELSE_MAX).then_some((place, share))
    }
}

/// A step up where `above` is positive, and down where it is not, to zero at least.
fn stepped(ns: i64, above: i64) -> i64 {
    if above > 0 { ns + UP_NS } else { (ns - DOWN_NS).max(0) }
}

/// Looks for the kernel's tick in the cycles of a loop, and passes each on to their observer.
#[derive(Debug)]
pub struct TickDetector<O> {
    /// The observer that counts the cycles.
    inner: O,
    comb: Option<Comb>,
    met: Option<KernelTick>,
}

impl<O> TickDetector<O> {
    /// Passes cycles on to this observer, of a loop with releases of this period alone; `None` for
    /// one of several periods, whose tasks may keep each other waiting.
    ///
    /// # Real-time: setup only
    pub fn new(inner: O, period: Option<Period>) -> Self {
        Self { inner, comb: period.map(Comb::new), met: None }
    }

    /// The observer that counts the cycles.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn inner_mut(&mut self) -> &mut O {
        &mut self.inner
    }

    /// The observer, with what it counted.
    ///
    /// # Real-time: setup only
    pub fn into_inner(self) -> O {
        self.inner
    }

    /// Begins anew, with releases of this period.
    ///
    /// # Real-time: in loop
    pub fn begin(&mut self, period: Period) {
        (self.comb, self.met) = (Some(Comb::new(period)), None);
    }

    /// Looks no more: its loop has other tasks from now on.
    ///
    /// # Real-time: in loop
    pub fn cease(&mut self) {
        self.comb = None;
    }

    /// The tick that its releases met since this was last called.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn take_met(&mut self) -> Option<KernelTick> {
        self.met.take()
    }
}

impl<O: Observe> Observe for TickDetector<O> {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if job.part == 0
            && let Some(comb) = &mut self.comb
            && let Some(tick) = comb.cycle(job.cycle, job.release, start - job.release)
        {
            self.met = Some(tick);
        }
        self.inner.ran(job, start, finish, overruns);
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        self.inner.never_ran(rank, missed, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(us: u64) -> Period {
        Period::from_ns(us * 1_000).expect("positive")
    }

    /// Cycles of this period from 700 µs on, as late as `late_ns` says of their numbers; after how
    /// many a tick was met.
    fn met(
        period: Period,
        numbers: impl Iterator<Item = u64>,
        late_ns: impl Fn(u64) -> i64,
    ) -> Option<(u64, KernelTick)> {
        let mut comb = Comb::new(period);
        numbers.into_iter().find_map(|n| {
            let release = Instant::from_ns(700_000 + n * period.as_ns());
            Some((n, comb.cycle(n, release, Span::from_ns(late_ns(n)))?))
        })
    }

    /// Up to 3 µs, without order.
    fn jitter(n: u64) -> i64 {
        (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 % 3_000
    }

    #[test]
    fn each_kind_of_wait_shows_the_tick_that_it_meets() {
        // A spin, a sleep that is 60 µs late, one that is so now and then.
        let waits: [fn(u64) -> i64; 3] =
            [|_| 40, |n| 57_000 + jitter(n), |n| 5_000 + 2 * jitter(n)];
        for usual_ns in waits {
            for (us, teeth) in [(1_000, 4), (2_000, 2), (250, 16), (500, 8)] {
                let period = period(us);
                let late = |n| usual_ns(n) + if n % teeth == 1 { 30_000 } else { 0 };
                let (n, tick) = met(period, 0..20_000, late).expect("a comb");
                assert_eq!((tick.period_ns, us * teeth), (4_000_000, 4_000));
                assert_eq!(tick.phase_ns, (700_000 + us * 1_000) % 4_000_000, "{us}");
                assert!(tick.share > 0.9 && n < 4_000, "{n} {tick:?}");
                assert!(n + 1 >= Comb::new(period).certain_after(), "{n}");
                assert_eq!(met(period, 0..20_000, usual_ns), None, "{us}: nothing but its own");
            }
        }
    }

    #[test]
    fn what_is_no_comb_is_none() {
        let ms = period(1_000);
        assert_eq!(met(ms, 0..5_000, |_| 30_000), None, "late all the time");
        assert_eq!(met(ms, 0..5_000, |n| if jitter(n) < 300 { 30_000 } else { 0 }), None, "chance");
        assert_eq!(met(ms, 0..5_000, |n| if n % 7 == 0 { 30_000 } else { 0 }), None, "no tick's");
        // A burst of one window.
        let burst = |n| if n < 200 && n % 4 == 0 { 30_000 } else { 0 };
        assert_eq!(met(ms, 0..5_000, burst), None);
        // Every second release is missed: those that run are at half of the places.
        let late = |n| if n % 4 == 0 { 30_000 } else { 0 };
        assert_eq!(met(ms, (0..5_000).step_by(2), late), None);
        // A period at which each release is at the same place in each tick, or at none.
        assert_eq!(met(period(20_000), 0..5_000, |_| 30_000), None);
        let odd = Period::from_ns(999_983).expect("positive");
        assert_eq!(met(odd, 0..5_000, late), None);
    }

    #[test]
    fn a_tick_is_told_from_its_multiples() {
        for (tick_ms, teeth) in [(4, 4), (10, 10)] {
            let late = |n| if n % teeth == 2 { 20_000 } else { 0 };
            let (_, tick) = met(period(1_000), 0..5_000, late).expect("a comb");
            assert_eq!(tick.period_ns, tick_ms * 1_000_000);
        }
        let each_second = |n| if n % 2 == 0 { 20_000 } else { 0 };
        let (_, tick) = met(period(500), 0..5_000, each_second).expect("a comb");
        assert_eq!(tick.period_ns, 1_000_000);
    }
}
