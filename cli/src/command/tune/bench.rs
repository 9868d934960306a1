//! The loops of `tune experiment`: sets of settings, each applied for its blocks and put back.

use anyhow::{Error, Result};
use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::rng::Rng;
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{Condition, PeriodicPlan, split};
use punctual_lab::tuning::{Measure, SettingSets, WantedValue};

use super::conditions::{Changes, Watched};
use super::experiment::{NAME, Setting};
use crate::args::{LearnArgs, ReportArgs};
use crate::experiment::{self, LoopExperiment};
use crate::output::JournalFile;
use crate::report::{Choice, Envelope};

/// Measures sets of settings in blocks.
pub(super) struct Bench<'a> {
    pub(super) here: &'a experiment::Machine,
    pub(super) plan: PeriodicPlan,
    pub(super) choice: Choice,
    pub(super) loads: Vec<LoadSpec>,
    pub(super) settings: &'a [Setting],
    /// The numbers of those that are tried.
    pub(super) tried: &'a [usize],
    pub(super) journal: &'a mut JournalFile,
    pub(super) boot: &'a str,
    pub(super) watched: Watched,
    pub(super) rng: Rng,
    /// Of the first measurement, with the warnings of all.
    pub(super) envelope: Option<Envelope>,
    /// The error that ended a measurement: what was found before it counts.
    pub(super) trouble: Option<Error>,
}

impl Measure for Bench<'_> {
    type Error = Error;

    fn measure(&mut self, sets: &SettingSets) -> Result<Option<Vec<LatenessSeries>>> {
        let name = |set: &Vec<usize>| match set.as_slice() {
            [] => "none".to_owned(),
            [one] => self.settings[self.tried[*one]].knob.clone(),
            all => format!("{} together", all.len()),
        };
        let condition =
            |set: &Vec<usize>| Condition { name: name(set), wait: None, loads: self.loads.clone() };
        let conditions: Vec<Condition> = sets.sets.iter().map(condition).collect();
        let names: Vec<String> = conditions.iter().map(|of| of.name.clone()).collect();
        let order = order(sets, &mut self.rng);
        let plan =
            PeriodicPlan { conditions, blocks: split(&order, sets.length), ..self.plan.clone() };
        let writes = |set: &Vec<usize>| -> Vec<WantedValue> {
            let of = |&at: &usize| self.settings[self.tried[at]].writes.clone();
            set.iter().flat_map(of).collect()
        };
        let writes = sets.sets.iter().map(writes).collect();
        let journal = (&mut *self.journal, self.boot);
        let mut changes = Changes::new(writes, journal, &mut self.watched);
        let loops = LoopExperiment {
            name: NAME,
            plan,
            merge: false,
            learn: LearnArgs { relearn: true },
            machine: self.here,
            choice: self.choice.clone(),
            args: &ReportArgs::default(),
            plans: Vec::new(),
            samples: None,
            follow: None,
            changes: Some(&mut changes),
            question: None,
            notes: Vec::new(),
        };
        let measured = loops.run()?;
        let trouble = changes.failed.or(measured.trouble);
        let mut envelope = measured.envelope;
        envelope.incomplete |= trouble.is_some();
        self.trouble = trouble;
        let incomplete = envelope.incomplete;
        match &mut self.envelope {
            Some(first) => first.take_in(envelope),
            None => self.envelope = Some(envelope),
        }
        if incomplete {
            return Ok(None);
        }
        let mut recorded = measured.recorded.into_iter();
        let series = |_: &String| {
            let parts = recorded.next().map(|run| run.parts).unwrap_or_default();
            parts.into_iter().next().unwrap_or_default()
        };
        Ok(Some(names.iter().map(series).collect()))
    }
}

/// Each set once in every round, in an order of its own.
fn order(sets: &SettingSets, rng: &mut Rng) -> Vec<usize> {
    let mut all = Vec::new();
    for _ in 0..sets.rounds {
        let mut round: Vec<usize> = (0..sets.sets.len()).collect();
        for last in (1..round.len()).rev() {
            round.swap(last, (rng.bits() % (last as u64 + 1)) as usize);
        }
        all.extend(round);
    }
    all
}
