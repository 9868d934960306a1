//! The frozen table of an executive: which task is released when, in order of urgency.
//!
//! For the dispatcher, which only reads it. A builder prepares the slices; [`Table::new`] checks
//! every index once, so that nothing can fail in the loop. There is no least common multiple in it:
//! one ring of groups, sorted by phase, per distinct period, where AnT (*Sophisticated periodic
//! execution control*, §3) has one entry per slot of all periods' LCM.

use crate::ready::{RANKS_MAX, Visit};
use crate::time::{Instant, Period};

/// All tasks of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodClass {
    /// The period.
    pub period: Period,
    /// Its first group, and the one after its last: `first < end`.
    pub groups: (u32, u32),
    /// True where it is released a period after the last finish at the earliest, so that its phase
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

/// Ranks of a group that share a word of the ready set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The number of the word, with the ranks `64·word ..`.
    pub word: u32,
    /// A bit a rank.
    pub bits: u64,
}

/// The policy for a task that is still waiting or running at its next release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// As `Skip`, and its cancel token is set at the release that it overran. AnT (§3.1) ends such
    /// a task for good; this one has its next release.
    Terminate,
    /// The executive ends, so that all outputs can go to their safe state.
    Stop,
}

/// One task, at the index that is its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSlot {
    /// Its class.
    pub class: u32,
    /// Its group.
    pub group: u32,
    /// From release to the latest finish, ns; `u64::MAX` for none.
    pub deadline_ns: u64,
    /// The longest execution, ns; `u64::MAX` for none.
    pub budget_ns: u64,
    /// From release to the latest start that is not counted as late, ns.
    pub start_ns: u64,
    /// The answer to an overrun.
    pub policy: OnOverrun,
}

/// The reason for which slices are not a valid table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// More than [`RANKS_MAX`] tasks.
    TooMany,
    /// The class at this index has a period out of range or no groups of its own.
    PeriodClass(usize),
    /// The group at this index has a phase out of place or no masks of its own.
    Group(usize),
    /// The mask at this index names ranks that do not exist or belong to another group.
    Mask(usize),
    /// The task at this rank may move its phase and shares its class with another, or does not and
    /// is in a class that does.
    TaskSlot(usize),
}

/// The table of an executive: the releases of each task; never changes.
#[derive(Clone, Copy, Debug)]
pub struct Table<'t> {
    pub(crate) epoch: Instant,
    pub(crate) classes: &'t [PeriodClass],
    pub(crate) groups: &'t [PhaseGroup],
    pub(crate) masks: &'t [Mask],
    pub(crate) slots: &'t [TaskSlot],
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
        groups: &'t [PhaseGroup],
        masks: &'t [Mask],
        slots: &'t [TaskSlot],
    ) -> Result<Self, TableError> {
        if slots.len() > RANKS_MAX {
            return Err(TableError::TooMany);
        }
        let table = Self { epoch, classes, groups, masks, slots };
        let (mut group, mut mask) = (0, 0);
        for (index, class) in classes.iter().enumerate() {
            if class.groups.0 != group || class.groups.1 <= group {
                return Err(TableError::PeriodClass(index));
            }
            let mut above = 0;
            while group < class.groups.1 {
                let phase_group =
                    groups.get(group as usize).ok_or(TableError::PeriodClass(index))?;
                let phase_fits =
                    phase_group.phase_ns >= above && phase_group.phase_ns < class.period.as_ns();
                if !phase_fits || phase_group.masks.0 != mask || phase_group.masks.1 <= mask {
                    return Err(TableError::Group(group as usize));
                }
                table.check_masks(phase_group, index, group)?;
                (above, mask, group) = (phase_group.phase_ns + 1, phase_group.masks.1, group + 1);
            }
        }
        table.check_slots(group, mask)?;
        Ok(table)
    }

    /// Each rank of a group names the group, and is named once.
    fn check_masks(
        &self,
        phase_group: &PhaseGroup,
        class: usize,
        group: u32,
    ) -> Result<(), TableError> {
        let mut above = 0;
        for index in phase_group.masks.0..phase_group.masks.1 {
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
                if slot.class as usize != class || slot.group != group {
                    return Err(wrong);
                }
                bits &= bits - 1;
            }
        }
        Ok(())
    }

    /// Each part is used; a task whose phase may move is alone in its class.
    fn check_slots(&self, groups: u32, masks: u32) -> Result<(), TableError> {
        if groups as usize != self.groups.len() {
            return Err(TableError::Group(groups as usize));
        }
        // A slot names one group, so no rank is named twice: all are named when the numbers agree.
        let released: u32 = self.masks.iter().map(|mask| mask.bits.count_ones()).sum();
        if masks as usize != self.masks.len() || released as usize != self.slots.len() {
            return Err(TableError::Mask(masks as usize));
        }
        for (rank, slot) in self.slots.iter().enumerate() {
            let class = &self.classes[slot.class as usize];
            let masks = self.groups[slot.group as usize].masks;
            let alone = class.groups.1 - class.groups.0 == 1
                && masks.1 - masks.0 == 1
                && self.masks[masks.0 as usize].bits.count_ones() == 1;
            let moves = slot.policy == OnOverrun::Delay;
            if moves != class.moves || moves && !alone {
                return Err(TableError::TaskSlot(rank));
            }
        }
        Ok(())
    }

    /// The number of tasks.
    ///
    /// # Real-time: in loop
    pub const fn tasks(&self) -> usize {
        self.slots.len()
    }

    /// The number of distinct periods.
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
        visit.part(self.groups);
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
