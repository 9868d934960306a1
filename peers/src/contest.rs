//! One table: contenders in blocks, on one grid, under one load or none.
//!
//! Each round begins with another contender, so that none always follows the same one.

use std::time::Duration;

use punctual_core::time::Span;
use punctual_engine::wait_policy::WaitKind;
use punctual_lab::load::{LoadBounds, LoadSpec, Reexec, RunningLoads};
use punctual_os::affinity;
use punctual_os::scheduler::SchedPolicy;

use crate::block::{Block, Score};
use crate::contender::Contender;
use crate::programs::{Folder, cyclictest, linuxcnc};
use crate::result::{Period, Row, Table, compare};
use crate::runner::{self, RunContext, Runner};

/// The word that makes this program a load.
pub(crate) const LOAD: &str = "__load";
/// A load ends by itself this much after the time that a table takes at most.
const LOAD_GRACE: Duration = Duration::from_secs(600);

/// What a table is about.
pub(crate) struct Contest<'a> {
    pub(crate) context: &'a RunContext,
    /// Who takes part, with the place of the one that it is held against.
    pub(crate) entries: Vec<(Contender, Option<usize>)>,
    pub(crate) rounds: usize,
    pub(crate) block: Span,
    pub(crate) quiet: bool,
    pub(crate) load: Option<&'a (String, Vec<LoadSpec>)>,
    pub(crate) equal_cpu: bool,
}

/// All against the first.
pub(crate) fn against_first(contenders: Vec<Contender>) -> Vec<(Contender, Option<usize>)> {
    let against = |place: usize| (place > 0).then_some(0);
    contenders.into_iter().enumerate().map(|(at, one)| (one, against(at))).collect()
}

/// Each of `rows` with `adaptive` after it, whose budget is what the row took. Those without a
/// share have nothing to be equal to.
pub(crate) fn at_equal_cpu(rows: &[(Contender, Row)]) -> Vec<(Contender, Option<usize>)> {
    let others = rows.iter().filter(|(_, row)| row.against.is_some());
    let pairs = others.filter_map(|(contender, row)| Some((*contender, row.cpu_load?)));
    pairs
        .enumerate()
        .flat_map(|(pair, (contender, share))| {
            let adaptive = Contender::Ours(WaitKind::Adaptive(share.clamp(0.001, 0.95)));
            [(contender, Some(2 * pair + 1)), (adaptive, None)]
        })
        .collect()
}

impl Contest<'_> {
    /// Runs it; `output` hears how far it is.
    ///
    /// # Errors
    /// The loads do not start, or the loops do not run.
    pub(crate) fn run(&self, output: &mut dyn FnMut(&str)) -> Result<Table, String> {
        let crates: Vec<Contender> =
            self.entries.iter().map(|entry| entry.0).filter(|one| !one.is_program()).collect();
        let folder = Folder::new()?;
        let running = self.load()?;
        let mut scores = vec![Score::default(); self.entries.len()];
        let mut warnings = Vec::new();
        let policy = runner::with(self.context, &crates, |runner| {
            for refusal in &runner.refused {
                warnings.push(format!("refused: {} ({})", refusal.attempt, refusal.errno));
            }
            for round in 0..self.rounds {
                output(&format!("round {} of {}", round + 1, self.rounds));
                for step in 0..self.entries.len() {
                    let place = (round + step) % self.entries.len();
                    self.play(place, runner, &folder, &mut scores[place], &mut warnings)?;
                }
            }
            Ok(policy_name(runner.policy))
        })?;
        let loads = running.map_or_else(Vec::new, |running| running.stop());
        let mut rows: Vec<Row> = Vec::new();
        for ((contender, against), score) in self.entries.iter().zip(&scores) {
            rows.push(Row { against: *against, ..score.row(*contender, self.name(*contender)) });
        }
        compare(&mut rows);
        Ok(Table {
            period_ns: self.context.grid.period().as_ns(),
            phase: if self.quiet { "quiet" } else { "zero" },
            phase_ns: self.context.grid.phase_ns(),
            load: self.load.map(|(text, _)| text.clone()),
            equal_cpu: self.equal_cpu,
            policy,
            rows,
            loads: loads
                .into_iter()
                .map(|load| Period {
                    name: load.name,
                    rate: load.rate,
                    unit: load.unit,
                    notes: load.notes,
                })
                .collect(),
            warnings,
        })
    }

    fn name(&self, contender: Contender) -> String {
        match contender {
            Contender::Ours(WaitKind::Adaptive(budget)) => {
                format!("adaptive, {:.1} %", budget * 100.0)
            }
            other => other.name().to_owned(),
        }
    }

    /// One block. A program that fails has no more blocks; one of our loops ends it all.
    fn play(
        &self,
        place: usize,
        runner: &Runner,
        folder: &Folder,
        score: &mut Score,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        if score.left_out.is_some() {
            return Ok(());
        }
        let contender = self.entries[place].0;
        let block: Result<Block, String> = match contender {
            Contender::Cyclictest => cyclictest::block(self.context, self.block, folder),
            Contender::LinuxCnc => {
                linuxcnc::block(self.context, self.block, folder).map(|(block, note)| {
                    let note = note.map(|note| format!("{}: {note}", contender.name()));
                    warnings.extend(note.filter(|note| !warnings.contains(note)));
                    block
                })
            }
            _ => {
                let before = self.entries[..place].iter().filter(|entry| !entry.0.is_program());
                Ok(runner.block(before.count(), self.block)?)
            }
        };
        match block {
            Ok(block) => score.add(&block),
            Err(why) => score.left_out = Some(why),
        }
        Ok(())
    }

    fn load(&self) -> Result<Option<RunningLoads>, String> {
        let Some((_, specs)) = self.load else { return Ok(None) };
        let cpus = affinity::get(0).map(|mask| mask.iter().collect()).unwrap_or_default();
        let blocks = self.rounds as u64 * self.entries.len() as u64;
        let once = Duration::from_nanos(self.block.as_ns().unsigned_abs()) + Duration::from_secs(2);
        let limit = once * u32::try_from(blocks).unwrap_or(u32::MAX) + LOAD_GRACE;
        let running =
            RunningLoads::start(specs, &Reexec::new(&[LOAD]), &LoadBounds::new(limit, cpus));
        running.map(Some).map_err(|why| why.to_string())
    }
}

fn policy_name(policy: SchedPolicy) -> String {
    match policy {
        SchedPolicy::Fifo(priority) => format!("SCHED_FIFO {priority}"),
        _ => "SCHED_OTHER".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::row;

    #[test]
    fn each_is_held_against_adaptive_with_its_own_share() {
        let mut gone = row("cyclictest", None, Some(0));
        gone.cpu_load = None;
        let rows = [
            (Contender::Ours(WaitKind::Adaptive(0.1)), row("adaptive", Some(70), None)),
            (Contender::Cyclictest, gone),
            (Contender::SpinSleep, row("spin_sleep", Some(70), Some(0))),
            (Contender::Tokio, row("tokio interval", Some(70), Some(0))),
        ];
        let adaptive = (Contender::Ours(WaitKind::Adaptive(0.05)), None);
        let expected =
            [(Contender::SpinSleep, Some(1)), adaptive, (Contender::Tokio, Some(3)), adaptive];
        assert_eq!(at_equal_cpu(&rows), expected);
        let first = against_first(vec![Contender::SpinSleep, Contender::Tokio]);
        assert_eq!(first, [(Contender::SpinSleep, None), (Contender::Tokio, Some(0))]);
    }
}
