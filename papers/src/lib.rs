//! The papers that punctual builds on, one file a paper: what it prints, what its own formula
//! gives, what is measured beside it on this machine, and where it errs. Never prints.
//!
//! [`nist`]: timing jitter of a Linux with a real-time executive below it. [`linuxcnc`]: a tuned
//! desktop. [`wince`]: interrupt and application latencies of Windows CE. [`ant`]: the six tables
//! of AnT against the wait queue of ART-Linux. [`maruti`]: exits of a spin to the counter's cycle.
//!
//! Items that only a paper needs lie beside it. The measuring is the lab's, the machine and the
//! time the caller's: [`bench::Bench`].
#![forbid(unsafe_code)]

pub mod ant;
pub mod bench;
pub mod claim;
mod expiry;
pub mod figure;
pub mod linuxcnc;
pub mod maruti;
pub mod nist;
pub mod row;
pub mod wince;

use bench::Bench;
use claim::PaperClaim;
use row::PaperRow;

/// The result of measuring a paper again.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// A row for each number that it prints.
    pub rows: Vec<PaperRow>,
    /// Its claims, each with its verdict.
    pub claims: Vec<PaperClaim>,
}

/// The time that a paper is measured for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaperLength {
    /// A quarter of a minute.
    Quick,
    /// A minute and a half.
    #[default]
    Usual,
    /// As long as the paper measured, where it says so.
    Full,
}

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// NIST's.
    Nist,
    /// LinuxCNC's.
    Linuxcnc,
    /// The one on Windows CE.
    Wince,
    /// AnT's.
    Ant,
    /// Maruti's.
    Maruti,
}

impl Paper {
    /// In the order of results.
    pub const ALL: [Self; 5] = [Self::Nist, Self::Linuxcnc, Self::Wince, Self::Ant, Self::Maruti];

    /// The paper with this short name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|paper| paper.name() == name)
    }

    /// Its short name, with which the ids of its rows and figures begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nist => "nist",
            Self::Linuxcnc => "linuxcnc",
            Self::Wince => "wince",
            Self::Ant => "ant",
            Self::Maruti => "maruti",
        }
    }

    /// Its title, shortened.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nist => "Timing jitter of real-time Linux, and its effect on motor control",
            Self::Linuxcnc => "Tuning the kernel for LinuxCNC",
            Self::Wince => "Benchmarking real-time determinism in Windows CE",
            Self::Ant => "Sophisticated periodic execution control (AnT against ART-Linux)",
            Self::Maruti => "Temporal accuracy on the Pentium Pro (Maruti)",
        }
    }

    /// About how long its measurements take together, s; where some are tuned, with these.
    pub fn seconds(self, length: PaperLength, is_tuned: bool) -> f64 {
        match (length, self) {
            (PaperLength::Quick, Self::Ant) => 24.0,
            (PaperLength::Quick, _) => 16.0,
            (PaperLength::Full, Self::Linuxcnc) => linuxcnc::full_seconds(is_tuned),
            (PaperLength::Full, Self::Wince) => wince::FULL_S,
            // Its designs are held against each other on the kernel's timer, where one stall makes
            // many of few cycles late.
            (PaperLength::Usual | PaperLength::Full, Self::Ant) => 240.0,
            // The others say no length that is longer: 10 000 releases, 100 releases, sweeps.
            (PaperLength::Usual | PaperLength::Full, _) => 100.0,
        }
    }

    /// Its rows and its claims, measured.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub fn reproduce<B: Bench>(self, bench: &mut B) -> Result<Reproduction, B::Error> {
        match self {
            Self::Nist => nist::reproduce(bench),
            Self::Linuxcnc => linuxcnc::reproduce(bench),
            Self::Wince => wince::reproduce(bench),
            Self::Ant => ant::reproduce(bench),
            Self::Maruti => maruti::reproduce(bench),
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Span;
    use punctual_host::facts::MachineFacts;
    use punctual_host::root::Root;
    use punctual_lab::experiment::Experiment;
    use punctual_lab::load::LoadError;

    use super::*;
    use crate::bench::{LoopSet, MeasuredLoop, WithLoads};
    use crate::figure::Drawing;

    /// A machine on which nothing can be measured, though settings may be tuned.
    struct Unmeasured(MachineFacts);

    impl Bench for Unmeasured {
        type Error = LoadError;

        fn cpu(&self) -> u32 {
            1
        }

        fn other_cpu(&self) -> Option<u32> {
            Some(0)
        }

        fn machine(&self) -> &MachineFacts {
            &self.0
        }

        fn share(&self, _share: f64) -> Span {
            Span::ZERO
        }

        fn tuned(&self) -> Option<Vec<&str>> {
            Some(vec!["/proc/sys/kernel/timer_migration"])
        }

        fn together(
            &mut self,
            _periods_ns: &[u64],
            _loops: &LoopSet<'_>,
        ) -> Result<Vec<Vec<MeasuredLoop>>, LoadError> {
            Ok(Vec::new())
        }

        fn measure<E: Experiment>(
            &mut self,
            _experiment: E,
        ) -> Result<Option<WithLoads<E::Outcome>>, LoadError> {
            Ok(None)
        }

        fn draw(&mut self, _figures: impl IntoIterator<Item = Drawing>) {}
    }

    #[test]
    fn no_two_rows_of_a_paper_have_one_name_on_a_terminal() {
        let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/smt-desktop-8cpu");
        let root = Root::captured(machine).expect("a machine");
        let mut bench = Unmeasured(MachineFacts::collect(&root));
        for paper in Paper::ALL {
            let reproduction = paper.reproduce(&mut bench).expect("nothing is measured");
            let mut titles: Vec<String> = Vec::new();
            for PaperRow { id, title, .. } in &reproduction.rows {
                // A terminal names the figure or table before it.
                let is_place =
                    |part: &&str| ["fig", "table", "eq"].iter().any(|kind| part.starts_with(kind));
                let place = id.split('.').nth(1).filter(is_place).unwrap_or_default();
                let name = format!("{place}: {title}");
                assert!(!titles.contains(&name), "{id} is called as another row: {title}");
                titles.push(name);
            }
        }
    }

    #[test]
    fn a_paper_is_measured_as_long_as_it_says_and_never_shorter_than_usual() {
        for paper in Paper::ALL {
            for is_tuned in [false, true] {
                let seconds = |length| paper.seconds(length, is_tuned);
                assert!(seconds(PaperLength::Quick) < seconds(PaperLength::Usual));
                assert!(seconds(PaperLength::Usual) <= seconds(PaperLength::Full));
            }
        }
        let full = |paper: Paper, is_tuned| paper.seconds(PaperLength::Full, is_tuned);
        // Two threads at once, under two or four conditions for 1500 s.
        assert!((3_000.0..3_500.0).contains(&full(Paper::Linuxcnc, false)));
        assert!((6_000.0..7_000.0).contains(&full(Paper::Linuxcnc, true)));
        // A million stimuli at 5 kHz, in a fifth of the time.
        assert!((full(Paper::Wince, false) - 1_000.0).abs() < 1e-6);
    }
}
