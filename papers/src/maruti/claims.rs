//! The claims of Maruti's paper, judged by today's exits and timers.

use punctual_analysis::interval::Interval;
use punctual_analysis::plain::significant;
use punctual_analysis::scatter::Scatter;
use punctual_lab::accuracy::{AccuracyOutcome, AccuracyRow};
use punctual_lab::timer::{Background, StampStore, TimerOutcome, TimerPath, TimerRow};

use super::dispatch::{self, Dispatch, PERIOD_NS};
use super::{ExitKind, NO_COUNTER, no_period};
use crate::claim::{ClaimTest, ClaimedBound, PaperClaim};

/// Two lengths that differ by no more than this factor are the same.
const SAME: f64 = 1.1;
/// The best case of the table of delays, cycles: figure 8.
const TABLE: f64 = 2.0;
/// The accuracy that a dispatch is to have, µs, and its latency: "at most a few microseconds".
const GOAL: f64 = 0.1;
const FEW: f64 = 5.0;

/// The measurements that the claims are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'r> {
    /// Exits of spins.
    pub(super) accuracy: Option<&'r AccuracyOutcome>,
    /// Wakes by timers.
    pub(super) timer: Option<&'r TimerOutcome>,
    /// Dispatches by mdelay, by a timer, and by a wait that learns.
    pub(super) ways: &'r [Dispatch],
    /// The most cycles of the core in a tick of the counter, in which exits are measured; `None`
    /// where that is not known.
    pub(super) cycles_in_tick: Option<f64>,
}

fn middle(scatter: Option<Scatter>) -> Option<Interval> {
    scatter?.middle()
}

fn at_99(scatter: Option<Scatter>) -> Option<Interval> {
    scatter?.to_p99()
}

fn n(scatter: Option<Scatter>) -> Option<u64> {
    scatter.map(|scatter| scatter.n)
}

fn over(a: Option<Interval>, b: Option<Interval>) -> Option<Interval> {
    a?.over(b?)
}

impl<'r> Evidence<'r> {
    /// All of them.
    pub(super) fn claims(self) -> Vec<PaperClaim> {
        vec![
            self.period(),
            self.spread(),
            self.slower_read(),
            self.alignment(),
            self.cache(),
            self.table(),
            self.store(),
            self.background(),
            self.goal(),
            self.dispatch(),
        ]
    }

    fn exit(self, kind: ExitKind) -> Option<&'r AccuracyRow> {
        kind.row(self.accuracy?)
    }

    /// The errors of an exit, ticks: of the sweeps without an interrupt, where there are such, for
    /// the paper disables interrupts.
    fn errors(self, kind: ExitKind) -> Option<Scatter> {
        let row = self.exit(kind)?;
        row.quiet.or(row.scatter)
    }

    /// The step of a counter that is coarser than a poll, ticks.
    fn step(self) -> Option<f64> {
        self.accuracy?.counter_step()
    }

    /// The loop of figure 3, or where its polls are shorter than two steps of the counter, which
    /// hides them, the one with a slower read; with the name of its read. `None` where the step
    /// hides both.
    fn shown_by(self) -> Option<(ExitKind, &'static str)> {
        let ways = [(ExitKind::LOOP, "plain read"), (ExitKind::FENCED, "fenced read")];
        let Some(step) = self.step() else { return Some(ways[0]) };
        ways.into_iter().find(|(kind, _)| self.exit(*kind).is_some_and(|row| row.shows_polls(step)))
    }

    fn poll(self, kind: ExitKind) -> Option<Interval> {
        self.exit(kind)?.poll_interval_ticks
    }

    /// Wakes by a path each 100 µs, µs.
    fn wakes(self, path: TimerPath, behind: Background, store: StampStore) -> Option<Scatter> {
        Some(self.timer_row(path, behind, store)?.scatter?.times(1e-3))
    }

    fn timer_row(
        self,
        path: TimerPath,
        behind: Background,
        store: StampStore,
    ) -> Option<&'r TimerRow> {
        self.timer?.rows.iter().find(|row| {
            row.path == path
                && row.background == behind
                && row.store == store
                && row.period_ns == PERIOD_NS
        })
    }

    /// §4, figure 3.
    fn period(self) -> PaperClaim {
        let claim = "Errors repeat with the period of a poll, 31 to 33 cycles";
        let judged = PaperClaim::new("maruti.claim.period", claim);
        let shown_by = self.shown_by();
        let (kind, read) = shown_by.unwrap_or((ExitKind::LOOP, "plain read"));
        let row = self.exit(kind);
        let (period, poll) = (row.and_then(|row| row.period_ticks), self.poll(kind));
        let judged = match row {
            None if self.accuracy.is_some() => judged.untested(NO_COUNTER),
            Some(_) if shown_by.is_none() => judged.untested(
                "the counter's own steps hide it, with which errors repeat: it \
                 takes a processor whose counter has finer ones",
            ),
            Some(row) if period.is_none() => judged.untested(&format!(
                "{}: it takes a quieter machine, or a counter of finer steps",
                no_period(row)
            )),
            _ => {
                let title = format!(
                    "period of the errors in single sweeps over the time of a poll, {read}"
                );
                let test = |bound| ClaimTest {
                    title: &title,
                    unit: "times",
                    value: over(period, poll),
                    n: row.map(|row| row.sweeps),
                    bound,
                };
                judged
                    .test(test(ClaimedBound::AtLeast(1.0 / SAME)))
                    .test(test(ClaimedBound::AtMost(SAME)))
            }
        };
        let sweeps = row.map_or(0, |row| row.sweeps);
        let judged = judged
            .figure(&format!("period, {read}"), "ticks", period, sweeps)
            .figure(&format!("from poll to poll, {read}"), "ticks", poll, sweeps)
            .judged();
        match (self.step(), kind.exit == ExitKind::LOOP.exit) {
            (Some(step), false) => {
                let hidden = format!(
                    "polls with the plain read are shorter than two of the counter's steps of \
                     {step} ticks, which hide their period"
                );
                judged.remark(&hidden, read)
            }
            _ => judged,
        }
    }

    /// §4, figure 3.
    fn spread(self) -> PaperClaim {
        let errors = self.errors(ExitKind::LOOP);
        // A stamp may be late by a step of the counter, where that is coarse.
        let (title, most) = match self.step() {
            Some(step) => (
                "5 to 95 % of the errors over the time of a poll and a step of the counter",
                self.poll(ExitKind::LOOP).map(|poll| poll.plus(Interval::exact(step))),
            ),
            None => ("5 to 95 % of the errors over the time of a poll", self.poll(ExitKind::LOOP)),
        };
        let claim = "Errors vary by no more than a poll";
        PaperClaim::new("maruti.claim.spread", claim)
            .test(ClaimTest {
                title,
                unit: "times",
                value: over(middle(errors), most),
                n: n(errors),
                bound: ClaimedBound::AtMost(SAME),
            })
            .beside("plain read, aligned", "ticks", errors.as_ref())
            .judged()
    }

    /// §4, figure 5.
    fn slower_read(self) -> PaperClaim {
        let claim = "A slower read of the counter lengthens polls";
        let row = self.exit(ExitKind::FENCED);
        PaperClaim::new("maruti.claim.slower-read", claim)
            .test(ClaimTest {
                title: "time of a poll, fenced read over plain read",
                unit: "times",
                value: over(self.poll(ExitKind::FENCED), self.poll(ExitKind::LOOP)),
                n: row.map(|row| row.n),
                bound: ClaimedBound::AtLeast(1.0),
            })
            .beside("fenced read, aligned", "ticks", self.errors(ExitKind::FENCED).as_ref())
            .judged()
    }

    /// §4, figure 6.
    fn alignment(self) -> PaperClaim {
        let (aligned, split) = (self.errors(ExitKind::LOOP), self.errors(ExitKind::SPLIT));
        let claim = "Code that is not aligned makes errors vary more";
        PaperClaim::new("maruti.claim.alignment", claim)
            .test(ClaimTest {
                title: "5 to 95 % of the errors, code over two cache lines over aligned code",
                unit: "times",
                value: over(middle(split), middle(aligned)),
                n: n(split),
                bound: ClaimedBound::AtLeast(1.0),
            })
            .beside("aligned", "ticks", aligned.as_ref())
            .beside("not aligned", "ticks", split.as_ref())
            .judged()
    }

    /// §4, figure 4, and §5, figures 11 and 12.
    fn cache(self) -> PaperClaim {
        let claim = "Without caches errors vary by 256 cycles instead of 32";
        let cold = self.exit(ExitKind::COLD);
        let sweeps = cold.map_or(0, |row| row.sweeps);
        PaperClaim::new("maruti.claim.cache", claim)
            .untested(
                "user space disables no cache: it takes a kernel module that sets CR0.CD; beside \
                 stands the loop whose own lines were flushed before each poll",
            )
            .beside("loop flushed", "ticks", self.errors(ExitKind::COLD).as_ref())
            .figure("loop flushed: period", "ticks", cold.and_then(|row| row.period_ticks), sweeps)
            .figure("loop flushed: from poll to poll", "ticks", self.poll(ExitKind::COLD), sweeps)
            .beside("loop warm", "ticks", self.errors(ExitKind::LOOP).as_ref())
            .judged()
    }

    /// §4, figures 7 and 8.
    fn table(self) -> PaperClaim {
        let (plain, corrected) = (self.errors(ExitKind::PLAIN), self.errors(ExitKind::CORRECTED));
        let claim = "A delay that fits brings errors to 2 cycles at best";
        let judged = PaperClaim::new("maruti.claim.table", claim);
        let step_cycles =
            self.cycles_in_tick.map(|cycles| self.step().map_or(cycles, |step| step * cycles));
        let judged = match (self.accuracy, corrected, step_cycles) {
            (Some(_), None, _) => judged.untested(
                "no delay could be calibrated, polls of one length were too rare: it takes a \
                 quieter machine",
            ),
            (Some(_), Some(_), None) => judged.untested(
                "how many cycles of the core a tick of the counter has is not known here: it takes \
                 a machine that shows its highest frequency (cpufreq)",
            ),
            (Some(_), Some(_), Some(step)) if step > TABLE => judged.untested(&format!(
                "the counter advances by up to {} cycles of the core at once, so that no error of \
                 2 is seen: it takes a processor whose counter has finer steps",
                significant(step)
            )),
            _ => judged.test(ClaimTest {
                title: "5 to 95 % of the errors with a computed delay, at the highest frequency",
                unit: "cycles",
                value: middle(corrected)
                    .zip(self.cycles_in_tick)
                    .map(|(ticks, cycles)| ticks.times(cycles)),
                n: n(corrected),
                bound: ClaimedBound::AtMost(TABLE),
            }),
        };
        judged
            .beside("with a computed delay", "ticks", corrected.as_ref())
            .beside("without", "ticks", plain.as_ref())
            .judged()
            .failing_open(
                "the delay here is computed, and follows the polls; there one of a table that was \
                 made by hand came before them: it takes such a table for this processor",
                "another delay than the paper's",
            )
    }

    /// §5, figure 10: spikes.
    fn store(self) -> PaperClaim {
        let wakes = |store| self.wakes(TimerPath::Sleep, Background::Nop, store);
        let (array, hot) = (wakes(StampStore::Array), wakes(StampStore::Hot));
        let claim = "Stamps that miss the cache make interrupts vary more";
        PaperClaim::new("maruti.claim.store", claim)
            .test(ClaimTest {
                title: "99 % less the least, stamps in a large array over stamps in the cache",
                unit: "times",
                value: over(at_99(array), at_99(hot)),
                n: n(array),
                bound: ClaimedBound::AtLeast(1.0),
            })
            .beside("large array", "µs", array.as_ref())
            .beside("in the cache", "µs", hot.as_ref())
            .judged()
    }

    /// §5, figures 9 and 10.
    fn background(self) -> PaperClaim {
        let wakes = |behind| self.wakes(TimerPath::Sleep, behind, StampStore::Array);
        let (heavy, light) = (wakes(Background::Cpuid), wakes(Background::Nop));
        let claim = "CPUID behind makes interrupts vary more than NOPs";
        PaperClaim::new("maruti.claim.background", claim)
            .test(ClaimTest {
                title: "99 % less the least, CPUID behind over NOPs behind",
                unit: "times",
                value: over(at_99(heavy), at_99(light)),
                n: n(heavy),
                bound: ClaimedBound::AtLeast(1.0),
            })
            .beside("CPUID behind", "µs", heavy.as_ref())
            .beside("NOPs behind", "µs", light.as_ref())
            .judged()
    }

    /// 0: by mdelay, 1: by a timer.
    fn dispatched(self, way: usize) -> Option<Scatter> {
        self.ways.get(way)?.late_us
    }

    /// §6.1.
    fn goal(self) -> PaperClaim {
        let polled = self.dispatched(0);
        let claim = "A dispatch is accurate to 100 ns, at a few µs of latency";
        PaperClaim::new("maruti.claim.goal", claim)
            .test(ClaimTest {
                title: "5 to 95 % of dispatches by mdelay",
                unit: "µs",
                value: middle(polled),
                n: n(polled),
                bound: ClaimedBound::AtMost(GOAL),
            })
            .test(ClaimTest {
                title: "lateness that 1 in 100 of them exceeds",
                unit: "µs",
                value: polled.and_then(|polled| polled.p99),
                n: n(polled),
                bound: ClaimedBound::AtMost(FEW),
            })
            .beside("mdelay, each 100 µs", "µs", polled.as_ref())
            .judged()
    }

    /// §6.1, the question that it leaves open.
    fn dispatch(self) -> PaperClaim {
        let [polled, timer] = [0, 1].map(|way| self.dispatched(way));
        let claim = "A timer whose data are cached may dispatch more accurately than mdelay";
        let judged = PaperClaim::new("maruti.claim.dispatch", claim).test(ClaimTest {
            title: "99 % less the least, dispatch by timer over mdelay",
            unit: "times",
            value: over(at_99(timer), at_99(polled)),
            n: n(timer),
            bound: ClaimedBound::AtMost(1.0),
        });
        let judged = self.ways.iter().fold(judged, |judged, way| {
            let n = way.late_us.map_or(0, |late| late.n);
            let cpu = way.cpu.map(Interval::exact);
            let name = format!("{}, each 100 µs", way.name);
            judged.beside(&name, "µs", way.late_us.as_ref()).figure(
                &format!("{name}: CPU"),
                "%",
                cpu,
                n,
            )
        });
        let judged = judged.judged();
        match dispatch::answer(self.ways) {
            Some(answer) => {
                judged.remark(&answer.sentence, &format!("best for its CPU: {}", answer.name))
            }
            None => judged,
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::judge::Holds;
    use punctual_analysis::summary::SummaryStats;
    use punctual_lab::accuracy::LoopPeriod;

    use super::*;
    use crate::claim::evenly;

    /// The figures of a made-up machine: errors in hundredths of a tick (loop, split, corrected),
    /// the period over the poll, the fenced poll over the plain one; wakes in ns (sleep with NOPs,
    /// with CPUID, with stamps in the cache, which is the timer's dispatch too, mdelay).
    struct Machine {
        errors: [i64; 3],
        period: Interval,
        fenced: f64,
        step: Option<f64>,
        wakes_ns: [i64; 4],
        n: usize,
        stall: bool,
    }

    const GOOD: Machine = Machine {
        errors: [3_100, 5_000, 150],
        period: Interval { value: 31.0, low: Some(30.5), high: Some(31.5) },
        fenced: 45.0,
        step: None,
        wakes_ns: [50, 4_000, 20, 80],
        n: 4_001,
        stall: false,
    };

    impl Machine {
        fn exits(&self) -> AccuracyOutcome {
            let exit = |kind: ExitKind, over: i64, poll: f64| AccuracyRow {
                exit: kind.exit.to_owned(),
                code: kind.code.map(str::to_owned),
                cache: kind.cache.to_owned(),
                lead_ticks: 1_000.0,
                offsets: 512,
                stride_ticks: 1.0,
                sweeps: 40,
                n: self.n as u64,
                interrupted: 0,
                interrupted_worst_ns: None,
                min_ticks: 0.0,
                p5_ticks: 0.0,
                p50_ticks: 0.0,
                p95_ticks: 0.0,
                max_ticks: 0.0,
                poll_ticks: Some(poll),
                scatter: Scatter::of_series(evenly(1_000, over, self.n, self.stall))
                    .map(|scatter| scatter.times(0.01)),
                quiet_sweeps: None,
                quiet: None,
                counters: Vec::new(),
                poll_interval_ticks: Some(Interval::between(poll - 0.1, poll, poll + 0.1)),
                period: Some(LoopPeriod { ticks: self.step.unwrap_or(poll), share: 0.5 }),
                period_ticks: Some(self.period),
                curve: Vec::new(),
                p5_curve: Vec::new(),
                p95_curve: Vec::new(),
                single: Vec::new(),
                periods: Vec::new(),
                note: None,
            };
            let [plain, split, corrected] = self.errors;
            let rows = vec![
                exit(ExitKind::LOOP, plain, 31.0),
                exit(ExitKind::FENCED, plain, self.fenced),
                exit(ExitKind::SPLIT, split, 31.0),
                exit(ExitKind::CORRECTED, corrected, 31.0),
            ];
            AccuracyOutcome {
                tick_ns: 0.5,
                interrupted_from_ns: 1_000,
                rows,
                no_counters: None,
                step_ticks: None,
            }
        }

        fn judged(&self) -> Vec<PaperClaim> {
            let accuracy = self.exits();
            let wake = |path, background, store, over_ns| TimerRow {
                path,
                store,
                period_ns: PERIOD_NS,
                background,
                n: self.n as u64,
                missed: 0,
                interrupts: None,
                counters: Vec::new(),
                lateness_ns: SummaryStats::default(),
                scatter: Scatter::of_series(evenly(1_000, over_ns, self.n, self.stall)),
                cpu_share: Some(0.5),
                lateness: Default::default(),
                series: Vec::new(),
                series_missed: 0,
            };
            let (array, [nop, cpuid, hot, polled]) = (StampStore::Array, self.wakes_ns);
            let rows = vec![
                wake(TimerPath::Sleep, Background::Nop, array, nop),
                wake(TimerPath::Sleep, Background::Cpuid, array, cpuid),
                wake(TimerPath::Sleep, Background::Nop, StampStore::Hot, hot),
                wake(TimerPath::Mdelay, Background::Nop, array, polled),
            ];
            let (policy, priority) = ("SCHED_FIFO".to_owned(), Some(90));
            let timer = TimerOutcome {
                cpu: 1,
                policy,
                priority,
                rows,
                deadline_refused: None,
                no_counters: None,
            };
            let ways = Dispatch::ways(Some(&timer), None);
            Evidence {
                accuracy: Some(&accuracy),
                timer: Some(&timer),
                ways: &ways,
                cycles_in_tick: CYCLES,
            }
            .claims()
        }

        fn holds(&self, id: &str) -> Holds {
            let claims = self.judged();
            let id = format!("maruti.claim.{id}");
            claims.iter().find(|claim| claim.id == id).expect("a claim").holds
        }
    }

    const IDS: [&str; 7] =
        ["period", "spread", "alignment", "store", "background", "goal", "dispatch"];

    /// A core that is a fifth faster than the counter.
    const CYCLES: Option<f64> = Some(1.2);

    #[test]
    fn cycles_of_the_table_are_the_core_s_and_a_delay_that_is_another_refutes_nothing() {
        let judged = |errors: i64, step_ticks: Option<f64>, cycles_in_tick: Option<f64>| {
            let mut exits = Machine { errors: [3_100, 5_000, errors], ..GOOD }.exits();
            exits.step_ticks = step_ticks;
            let accuracy = Some(&exits);
            let claims = Evidence { accuracy, timer: None, ways: &[], cycles_in_tick }.claims();
            claims.into_iter().find(|claim| claim.id == "maruti.claim.table").expect("a claim")
        };
        let fits = judged(150, Some(1.0), CYCLES);
        assert_eq!(fits.holds, Holds::Yes, "{}", fits.because);
        // 90 % of 1.5 ticks are 1.35, and 2.4 cycles of a core of 1.8 times the counter's rate.
        for (errors, step, cycles, why) in [
            (150, Some(1.0), Some(1.8), "came before them"),
            (2_000, Some(1.0), CYCLES, "came before them"),
            (150, Some(1.0), None, "highest frequency"),
            (150, Some(20.0), CYCLES, "up to 24.0 cycles"),
            // A counter of 24 MHz beside a core of 2.4 GHz.
            (150, Some(1.0), Some(100.0), "up to 100 cycles"),
        ] {
            let open = judged(errors, step, cycles);
            assert_eq!(open.holds, Holds::Undecided, "{}", open.because);
            assert!(open.because.contains(why), "{}", open.because);
        }
    }

    #[test]
    fn each_claim_has_all_three_verdicts_and_no_stall_reverses_one() {
        for stall in [false, true] {
            let good = Machine { stall, ..GOOD };
            let bad = Machine {
                errors: [5_000, 3_000, 2_000],
                period: Interval { value: 9.0, low: Some(8.5), high: Some(9.5) },
                fenced: 20.0,
                wakes_ns: [9_000, 4_000, 20_000, 700],
                stall,
                ..GOOD
            };
            let few = Machine {
                period: Interval { value: 31.0, low: Some(20.0), high: None },
                n: 23,
                stall,
                ..GOOD
            };
            for id in IDS.into_iter().chain(["slower-read"]) {
                assert_eq!(good.holds(id), Holds::Yes, "{id} {stall}");
                assert_eq!(bad.holds(id), Holds::No, "{id} {stall}");
            }
            for id in IDS.into_iter().chain(["cache", "table"]) {
                assert_eq!(few.holds(id), Holds::Undecided, "{id} {stall}");
            }
        }
        let none =
            Evidence { accuracy: None, timer: None, ways: &[], cycles_in_tick: CYCLES }.claims();
        assert!(none.iter().all(|claim| claim.holds == Holds::Undecided), "{none:?}");
    }

    #[test]
    fn errors_are_those_of_sweeps_without_an_interrupt_where_there_are_some() {
        let scatter = |over| Scatter::of_series(evenly(1_000, over, 4_001, false));
        let quiet = |quiet| AccuracyRow {
            scatter: scatter(90_000),
            quiet,
            ..AccuracyRow::clone(&GOOD.exits().rows[0])
        };
        let spread = |quiet_scatter: Option<Scatter>| {
            let rows = vec![quiet(quiet_scatter)];
            let accuracy = AccuracyOutcome {
                tick_ns: 0.5,
                interrupted_from_ns: 1_000,
                rows,
                no_counters: None,
                step_ticks: None,
            };
            let evidence = Evidence {
                accuracy: Some(&accuracy),
                timer: None,
                ways: &[],
                cycles_in_tick: CYCLES,
            };
            evidence.errors(ExitKind::LOOP).map(|errors| errors.range())
        };
        assert_eq!(spread(None), scatter(90_000).map(|whole| whole.range()));
        assert_eq!(spread(scatter(30)), scatter(30).map(|quiet| quiet.range()));
    }

    #[test]
    fn a_timer_dispatches_from_the_caches_as_the_paper_has_it() {
        // Its stamps that miss the caches scatter a hundred times as far, and decide nothing.
        let array = Machine { wakes_ns: [9_000, 9_500, 20, 80], ..GOOD };
        assert_eq!(array.holds("dispatch"), Holds::Yes);
        let hot = Machine { wakes_ns: [20, 4_000, 9_000, 80], ..GOOD };
        assert_eq!(hot.holds("dispatch"), Holds::No);
    }

    #[test]
    fn a_counter_of_coarse_steps_hides_the_period_and_widens_what_a_poll_allows() {
        let coarse = Machine { step: Some(26.0), errors: [5_000, 6_000, 150], ..GOOD };
        assert_eq!(coarse.holds("period"), Holds::Undecided);
        // 45 of 31 ticks a poll and 26 a step.
        assert_eq!(coarse.holds("spread"), Holds::Yes);
        assert_eq!(Machine { step: None, ..coarse }.holds("spread"), Holds::No);
    }

    #[test]
    fn the_period_is_that_of_the_loop_whose_polls_the_counter_shows() {
        let judged = |fenced_period: f64, fenced_poll: f64| {
            let mut exits = Machine { errors: [4_800, 6_000, 150], ..GOOD }.exits();
            exits.step_ticks = Some(20.0);
            for row in &mut exits.rows {
                let is_fenced = row.exit == ExitKind::FENCED.exit;
                let (ticks, poll) =
                    if is_fenced { (fenced_period, fenced_poll) } else { (19.98, 29.2) };
                row.period = Some(LoopPeriod { ticks, share: 0.3 });
                row.period_ticks = Some(Interval::between(ticks - 0.3, ticks, ticks + 0.3));
                row.poll_ticks = Some(poll);
                row.poll_interval_ticks = Some(Interval::between(poll - 0.1, poll, poll + 0.1));
            }
            let claims =
                Evidence { accuracy: Some(&exits), timer: None, ways: &[], cycles_in_tick: CYCLES }
                    .claims();
            let claim =
                |id: &str| claims.iter().find(|claim| claim.id == id).expect("a claim").clone();
            [claim("maruti.claim.period"), claim("maruti.claim.spread")]
        };
        let [period, spread] = judged(57.7, 56.6);
        assert_eq!((period.holds, spread.holds), (Holds::Yes, Holds::Yes), "{period:?} {spread:?}");
        assert!(period.because.contains("fenced read: 1.02"), "{}", period.because);
        assert!(period.because.contains("steps of 20 ticks"), "{}", period.because);
        assert_eq!(period.remark.as_deref(), Some("fenced read"));
        let hidden = [judged(19.98, 56.6), judged(38.0, 39.0)].map(|[period, _]| period);
        for period in hidden {
            assert_eq!(period.holds, Holds::Undecided, "{period:?}");
            assert!(period.because.contains("counter's own steps"), "{}", period.because);
        }
        let [period, _] = judged(90.0, 56.6);
        assert_eq!(period.holds, Holds::No, "{period:?}");
    }

    #[test]
    fn the_open_question_has_its_answer_on_a_terminal_too() {
        let claims = GOOD.judged();
        let claim = claims.iter().find(|claim| claim.id == "maruti.claim.dispatch");
        // The wait that learns was not measured: no answer.
        assert_eq!(claim.expect("a claim").remark, None);
        let exits = GOOD.exits();
        let timed = |path, over_ns, cpu| TimerRow {
            path,
            store: if path == TimerPath::Sleep { StampStore::Hot } else { StampStore::Array },
            period_ns: PERIOD_NS,
            background: Background::Nop,
            n: 4_001,
            missed: 0,
            interrupts: None,
            counters: Vec::new(),
            lateness_ns: SummaryStats::default(),
            scatter: Scatter::of_series(evenly(1_000, over_ns, 4_001, false)),
            cpu_share: Some(cpu),
            lateness: Default::default(),
            series: Vec::new(),
            series_missed: 0,
        };
        let timer = TimerOutcome {
            cpu: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: Some(90),
            rows: vec![timed(TimerPath::Mdelay, 80, 1.0), timed(TimerPath::Sleep, 9_000, 0.1)],
            deadline_refused: None,
            no_counters: None,
        };
        let learned =
            crate::bench::MeasuredLoop::of_latenesses(&evenly(1_000, 90, 4_001, false), 0.4, 1);
        let ways = Dispatch::ways(Some(&timer), Some(&learned));
        let claims = Evidence {
            accuracy: Some(&exits),
            timer: Some(&timer),
            ways: &ways,
            cycles_in_tick: CYCLES,
        }
        .claims();
        let claim = claims.iter().find(|claim| claim.id == "maruti.claim.dispatch");
        let claim = claim.expect("a claim");
        assert_eq!(claim.remark.as_deref(), Some("best for its CPU: a wait that learns"));
        assert!(claim.because.contains("takes least of the CPU"), "{}", claim.because);
    }

    #[test]
    fn what_a_machine_does_not_have_is_named() {
        let accuracy = AccuracyOutcome {
            tick_ns: 1.0,
            interrupted_from_ns: 1_000,
            rows: Vec::new(),
            no_counters: None,
            step_ticks: None,
        };
        let claims =
            Evidence { accuracy: Some(&accuracy), timer: None, ways: &[], cycles_in_tick: CYCLES }
                .claims();
        let because = |id: &str| {
            let id = format!("maruti.claim.{id}");
            claims.iter().find(|claim| claim.id == id).expect("a claim").because.clone()
        };
        assert!(because("period").contains("counter is not trusted"), "{}", because("period"));
        assert!(because("table").contains("no delay could be calibrated"));
        assert!(because("cache").contains("CR0.CD"));
    }
}
