//! A report as a page of text: what a person sees first.
//!
//! Eighty columns, no colour needed. One file for each part of the page; this one puts them in
//! order.

mod brief;
mod campaign;
mod claims;
mod compare;
mod executive;
mod head;
mod histogram;
mod impact;
mod imported;
mod parts;
mod supervised;
mod table;
pub(crate) mod tune;
mod verdict;
mod wait;

use crate::report::measured::Measured;
use crate::report::{Body, Report, SoakBody};

pub(crate) use claims::plans;
pub(crate) use impact::drives;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// One line a loop.
    Line,
    /// The verdict, its figures, what next.
    Short,
    /// Everything.
    Long,
}

/// The page of a report, by its kind; `results` is the directory that it is written to.
pub(crate) fn page(report: &Report, results: Option<&str>, detail: Detail) -> String {
    if detail == Detail::Line
        && let Some(line) = brief::line(report)
    {
        return line;
    }
    let headline = report.body.headline().filter(|of| !of.loops.is_empty());
    if let (Some(headline), true) = (headline, detail != Detail::Long) {
        return brief::page(report, headline, results);
    }
    match &report.body {
        Body::Wait(body) if detail != Detail::Long => wait::page(report, body),
        Body::Check(_) => check(report, results),
        Body::Measured(Measured::Executive(body)) => head::brief(report) + &executive::of(body),
        Body::Soak(body) => soak(report, body),
        Body::Run(body) => supervised::page(report, &body.supervised),
        Body::Compare(body) => compare::page(report, &body.compare),
        Body::Impact(body) => impact::page(body) + &verdict::warnings(report),
        body => match crate::view::kinds::of(body) {
            Some(shown) => {
                let (first, last) = (head::brief(report), verdict::warnings(report));
                let others = first.lines().chain(last.lines()).count();
                first + &parts::of(&shown, others) + &last
            }
            None => measure(report),
        },
    }
}

/// Of `check`: everything, and what to do next.
fn check(report: &Report, results: Option<&str>) -> String {
    [
        brief::first(report),
        head::of(report),
        table::of(report),
        table::rows(report),
        histogram::lines(report),
        table::other_names(report),
        table::instruments(report),
        verdict::warnings(report),
        verdict::good_for(report),
        verdict::limits(report),
        claims::judged(report),
        compare::against(report),
        brief::next(report, results),
    ]
    .concat()
}

/// Of `soak`: as `measure`, with what is a campaign's alone.
fn soak(report: &Report, body: &SoakBody) -> String {
    [
        head::of(report),
        table::of(report),
        campaign::lines(&body.campaign),
        histogram::drawn(report),
        table::other_names(report),
        table::loads(report),
        all_claims(report),
    ]
    .concat()
}

/// What pages with every claim end with.
fn all_claims(report: &Report) -> String {
    [
        verdict::warnings(report),
        verdict::claims(report),
        verdict::good_for(report),
        verdict::limits(report),
        claims::judged(report),
    ]
    .concat()
}

/// Of `measure` and `analyse`: the same with a drawn histogram and all claims.
fn measure(report: &Report) -> String {
    [
        brief::first(report),
        head::of(report),
        table::of(report),
        imported::of(report),
        histogram::drawn(report),
        table::other_names(report),
        table::instruments(report),
        table::loads(report),
        all_claims(report),
        compare::against(report),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_analysis::summary::SummaryStats;
    use punctual_host::facts::MachineFacts;
    use punctual_host::root::Root;
    use punctual_lab::timer::{TimerOutcome, TimerRow};

    use super::*;
    use crate::report::body::Body;
    use crate::report::measured::TimerBody;
    use crate::report::{Choice, Clock, Envelope, NOTE_GUEST, Session};

    /// A timer outcome of a processor with these kinds of work; SERIALIZE delays most.
    fn timers(backgrounds: &[&str], reserved: bool, periods: &[u64], unit_ns: f64) -> TimerOutcome {
        let row = |period_ns: u64, path: &str, background: &str| {
            let (name, store) = if path == "hot" { ("sleep", "hot") } else { (path, "array") };
            let ns = unit_ns * if background == "serialize" { 3.0 } else { 2.0 };
            let [min, p50, p99, max] = [0.1, 0.5, 1.0, 9.0].map(|times| Some(ns * times));
            TimerRow {
                path: name.to_owned(),
                period_ns,
                background: background.to_owned(),
                store: store.to_owned(),
                n: 1_234_567,
                missed: 12_345,
                lateness_ns: SummaryStats { min, p50, p99, max, ..SummaryStats::default() },
                cpu_share: Some(0.5),
            }
        };
        let mut rows = Vec::new();
        for &period_ns in periods {
            for path in ["sleep", "timerfd", "posix", "mdelay", "deadline", "hot"] {
                if reserved || path != "deadline" {
                    rows.extend(backgrounds.iter().map(|of| row(period_ns, path, of)));
                }
            }
        }
        TimerOutcome {
            cpu: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: Some(90),
            rows,
            deadline_refused: (!reserved).then_some(1),
        }
    }

    /// A result of it on a captured machine.
    fn report(machine: &Path, timer: TimerOutcome) -> Report {
        let root = Root::captured(machine).expect("a machine");
        let clock = Clock {
            source: "tsc".to_owned(),
            untrusted: None,
            rate_hz: None,
            rate_bound_ppb: None,
            slew_ppb: None,
            slew_bound_ppb: None,
            stamp_ns: 39.0,
            poll_ns: 20.0,
            wake_ns: 40.0,
            timed_pause: None,
            timed_pause_off: None,
            timed_pause_lead_ns: None,
        };
        let (cpus, why) = ("1".to_owned(), "last allowed, none isolated".to_owned());
        let envelope = Envelope {
            machine: Some(MachineFacts::collect(&root)),
            choice: Some(Choice { cpus, why }),
            clock: Some(clock),
            session: Some(Session {
                memory_locked: true,
                idle_states_held: true,
                refused: Vec::new(),
            }),
            warnings: vec![NOTE_GUEST.to_owned()],
            ..Envelope::of("measure timer")
        };
        Report { envelope, body: Body::Measured(TimerBody { timer }.into()) }
    }

    #[test]
    fn a_page_of_timers_fits_for_every_processor() {
        let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let machines = std::fs::read_dir(machines).expect("machines").flatten();
        let machines: Vec<_> = machines.map(|of| of.path()).filter(|of| of.is_dir()).collect();
        // With SERIALIZE, and AArch64, which has its own of all kinds; without.
        let kinds: [&[&str]; 2] =
            [&["none", "nop", "serialize", "cpuid"], &["none", "nop", "cpuid"]];
        for (machine, kind) in machines.iter().flat_map(|of| kinds.map(|kind| (of, kind))) {
            for reserved in [true, false] {
                for (periods, unit_ns) in [(&[100_000][..], 100.0), (&[100_000], 12_345_678.0)] {
                    let timer = timers(kind, reserved, periods, unit_ns);
                    let page = page(&report(machine, timer), None, Detail::Short);
                    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
                    assert!(page.lines().count() <= 40, "{}: {page}", page.lines().count());
                    // Every path alone, and with what delays it most, is there.
                    let of = |path: &str, behind: &str| {
                        let begins = |line: &&str| {
                            line.trim_start().strip_prefix(path).is_some_and(|rest| {
                                rest.trim_start().starts_with(&format!("{behind} "))
                            })
                        };
                        page.lines().filter(begins).count()
                    };
                    let most = if kind.len() == 4 { "serialize" } else { "nop" };
                    for path in ["sleep", "timerfd", "posix", "mdelay", "sleep hot"] {
                        assert_eq!((of(path, "none"), of(path, most)), (1, 1), "{path}: {page}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/amd-smt-32cpu");
        let all = ["none", "nop", "serialize", "cpuid"];
        let timer = timers(&all, true, &[100_000, 200_000, 500_000], 100.0);
        let text = page(&report(Path::new(machine), timer.clone()), None, Detail::Short);
        let rows = text.lines().filter(|line| line.contains(" 12\u{a0}345 ")).count();
        assert!((6..timer.rows.len()).contains(&rows), "{text}");
        let more = format!("{} more rows, and the other columns,", timer.rows.len() - rows);
        assert!(text.contains(&more), "{text}");
        assert!(text.lines().count() <= 40, "{text}");
    }
}
