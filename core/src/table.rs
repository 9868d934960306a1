//! The frozen table of an executive: which task is released when, in order of urgency.
//!
//! For the dispatcher, which only reads it. A builder prepares the slices; [`Table::new`] checks
//! every index once, so that nothing can fail in the loop. There is no least common multiple in it:
//! one ring of phase-sorted runs per distinct period, where AnT (*Sophisticated periodic execution
//! control*, §3) has one entry per slot of all periods' LCM.

use crate::parts::Visit;
use crate::ready::RANKS_MAX;
use crate::time::{Instant, Period};

/// All tasks of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodClass {
    /// The period.
    pub period: Period,
    /// Its first run, and the one after its last: `first < end`.
    pub runs: (u32, u32),
    /// Whether it is released a period after the last finish at the earliest, so that its phase
    /// moves: of one task with [`OnOverrun::Delay`] alone.
    pub moves: bool,
}

/// All tasks of a class with one phase, which are released together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseGroup {
    /// Offset from the start of the class's period, ns: less than the period, rising in a class.
    pub phase_ns: u64,
    /// Its first mask, and the one after its last: `first < end`.
    pub masks: (u32, u32),
}

/// Ranks of a run that share a word of the ready set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Which word: ranks `64·word ..`.
    pub word: u32,
    /// A bit a rank.
    pub bits: u64,
}

/// What happens to a task that was still waiting or running at its next release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverrun {
    /// The releases that passed are missed, exactly counted; the phase stays. Of those that passed
    /// before it could start the oldest one runs; a task that overran by itself goes on at its next
    /// release.
    #[default]
    Skip,
    /// The newest of the releases that passed, up to this many, run one after the other; older ones
    /// are missed. At least 1.
    Burst(u32),
    /// The next release is a period after the finish: none is missed, the phase moves.
    Delay,
    /// As `Skip`, and its cancel token is set at the release that it overran (AnT §3.1).
    Terminate,
    /// The executive ends, so that all outputs can go to their safe state.
    Stop,
}

/// One task, at the index that is its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its class.
    pub class: u32,
    /// Its run.
    pub run: u32,
    /// From release to the latest finish, ns; `u64::MAX` for none.
    pub deadline_ns: u64,
    /// The longest execution, ns; `u64::MAX` for none.
    pub budget_ns: u64,
    /// From release to the latest start that is not counted as late, ns.
    pub start_ns: u64,
    /// What an overrun does.
    pub policy: OnOverrun,
}

/// Why slices are not a valid table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// More than [`RANKS_MAX`] tasks.
    TooMany,
    /// The class at this index has a period out of range or no runs of its own.
    PeriodClass(usize),
    /// The run at this index has a phase out of place or no masks of its own.
    Run(usize),
    /// The mask at this index names ranks that do not exist or belong to another run.
    Mask(usize),
    /// The task at this rank may move its phase and shares its class with another, or does not and
    /// is in a class that does.
    Slot(usize),
}

/// Which task is released when; never changes.
#[derive(Clone, Copy, Debug)]
pub struct Table<'t> {
    pub(crate) epoch: Instant,
    pub(crate) classes: &'t [PeriodClass],
    pub(crate) runs: &'t [PhaseGroup],
    pub(crate) masks: &'t [Mask],
    pub(crate) slots: &'t [Slot],
}

impl<'t> Table<'t> {
    /// The table of these parts, with release 0 of phase 0 at `epoch`.
    ///
    /// # Errors
    ///
    /// The first part that does not fit the others.
    ///
    /// # Real-time: setup only
    pub fn new(
        epoch: Instant,
        classes: &'t [PeriodClass],
        runs: &'t [PhaseGroup],
        masks: &'t [Mask],
        slots: &'t [Slot],
    ) -> Result<Self, TableError> {
        if slots.len() > RANKS_MAX {
            return Err(TableError::TooMany);
        }
        let table = Self { epoch, classes, runs, masks, slots };
        let (mut run, mut mask) = (0, 0);
        for (index, class) in classes.iter().enumerate() {
            if class.runs.0 != run || class.runs.1 <= run {
                return Err(TableError::PeriodClass(index));
            }
            let mut above = 0;
            while run < class.runs.1 {
                let of = runs.get(run as usize).ok_or(TableError::PeriodClass(index))?;
                let phase_fits = of.phase_ns >= above && of.phase_ns < class.period.as_ns();
                if !phase_fits || of.masks.0 != mask || of.masks.1 <= mask {
                    return Err(TableError::Run(run as usize));
                }
                table.check_masks(of, index, run)?;
                (above, mask, run) = (of.phase_ns + 1, of.masks.1, run + 1);
            }
        }
        table.check_slots(run, mask)?;
        Ok(table)
    }

    /// Each rank of a run names the run, and is named once.
    fn check_masks(&self, of: &PhaseGroup, class: usize, run: u32) -> Result<(), TableError> {
        let mut above = 0;
        for index in of.masks.0..of.masks.1 {
            let wrong = TableError::Mask(index as usize);
            let mask = self.masks.get(index as usize).ok_or(wrong)?;
            let mut bits = mask.bits;
            if bits == 0 || mask.word < above {
                return Err(wrong);
            }
            above = mask.word + 1;
            while bits != 0 {
                let rank = mask.word as usize * 64 + bits.trailing_zeros() as usize;
                let slot = self.slots.get(rank).ok_or(wrong)?;
                if slot.class as usize != class || slot.run != run {
                    return Err(wrong);
                }
                bits &= bits - 1;
            }
        }
        Ok(())
    }

    /// Each part is used; a task whose phase may move is alone in its class.
    fn check_slots(&self, runs: u32, masks: u32) -> Result<(), TableError> {
        if runs as usize != self.runs.len() {
            return Err(TableError::Run(runs as usize));
        }
        // A slot names one run, so no rank is named twice: all are named when the numbers agree.
        let released: u32 = self.masks.iter().map(|mask| mask.bits.count_ones()).sum();
        if masks as usize != self.masks.len() || released as usize != self.slots.len() {
            return Err(TableError::Mask(masks as usize));
        }
        for (rank, slot) in self.slots.iter().enumerate() {
            let class = &self.classes[slot.class as usize];
            let masks = self.runs[slot.run as usize].masks;
            let alone = class.runs.1 - class.runs.0 == 1
                && masks.1 - masks.0 == 1
                && self.masks[masks.0 as usize].bits.count_ones() == 1;
            let moves = slot.policy == OnOverrun::Delay;
            if moves != class.moves || moves && !alone {
                return Err(TableError::Slot(rank));
            }
        }
        Ok(())
    }

    /// How many tasks there are.
    ///
    /// # Real-time: in loop
    pub const fn tasks(&self) -> usize {
        self.slots.len()
    }

    /// How many distinct periods there are.
    ///
    /// # Real-time: in loop
    pub const fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Passes the memory that it lies in to `visit`.
    ///
    /// # Real-time: in loop
    pub fn visit(&self, visit: &mut impl Visit) {
        visit.part(self.classes);
        visit.part(self.runs);
        visit.part(self.masks);
        visit.part(self.slots);
    }

    /// The instant of release 0 of phase 0.
    ///
    /// # Real-time: in loop
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }
}
