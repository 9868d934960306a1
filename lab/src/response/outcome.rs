//! What the response experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use punctual_analysis::summary::{Distribution, SummaryStats};
use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trace::{self, StageTrace};

/// How fast two stages answered stimuli.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseOutcome {
    /// Where stimuli came from: "eventfd", "futex", "timerfd", "udp", "pty", or one with its
    /// device, as --source has it: "serial:/dev/ttyS1".
    pub source: String,
    /// What they passed through, and what that leaves out.
    pub path: String,
    /// What the source is not quite as requested; null otherwise.
    pub note: Option<String>,
    /// From one stimulus to the next.
    pub period_ns: u64,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli; null where the kernel's timer does.
    pub stimulus_cpu: Option<u32>,
    /// A bare futex ping-pong between the two CPUs, before anything else; null where one CPU does
    /// both.
    pub floor: Option<Floor>,
    /// One for each condition.
    pub rows: Vec<ResponseRow>,
}

/// Two threads that wake each other by a futex, as often as stimuli come (100 µs to 5 ms apart).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Floor {
    /// Round trips.
    pub n: u64,
    /// Half of each.
    pub half_round_trip_ns: SummaryStats,
}

/// The stimuli of one condition, and how they were answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseRow {
    /// "idle", or the names of the loads.
    pub condition: String,
    /// Stimuli that were raised.
    pub stimuli: u64,
    /// Stimuli that were not raised, because the one who raises them was late by a period or more.
    pub not_raised: u64,
    /// How late stimuli were raised, against their grid: the instrument's own floor. Zero for the
    /// kernel's timer, whose expiry is the stimulus.
    pub raised_late_ns: SummaryStats,
    /// Events of the source that were no stimulus (noise, a line that bounces, another sender), or
    /// that were found after the stimulus that followed theirs.
    #[serde(default)]
    pub unexpected: u64,
    /// Stage 0: from the stimulus to the kernel's own stamp of its event, of those that stage 1
    /// answered one by one; null where the source has none.
    pub kernel_ns: Option<SummaryStats>,
    /// By how much stage 0 may be off, ns: where the kernel's stamps were on another clock. 0 where
    /// they were not, or there are none.
    #[serde(default)]
    pub kernel_within_ns: u64,
    /// Why stage 0 is left out; null where it is not, or where the source has none.
    #[serde(default)]
    pub kernel_left_out: Option<String>,
    /// Stage 1, then stage 2.
    pub stages: Vec<StageRow>,
    /// Why the condition ended before its time: the source was lost; null where it did not.
    pub lost: Option<String>,
}

impl ResponseRow {
    /// A condition that did not begin.
    pub(super) fn lost(condition: &str, why: String) -> Self {
        Self {
            condition: condition.to_owned(),
            stimuli: 0,
            not_raised: 0,
            raised_late_ns: Distribution::default().stats(),
            unexpected: 0,
            kernel_ns: None,
            kernel_within_ns: 0,
            kernel_left_out: None,
            stages: Vec::new(),
            lost: Some(why),
        }
    }
}

/// How one stage answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageRow {
    /// 1: the thread nearest to the interrupt; 2: the application's, which stage 1 wakes.
    pub stage: u32,
    /// The policy that it really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Stimuli that it started to answer one by one.
    pub answered: u64,
    /// Stimuli that it found together with a later one, or not at all.
    pub skipped: u64,
    /// Stimuli whose answer was complete before the next one was due.
    pub served: u64,
    /// From the stimulus to the first instruction of the stage.
    pub start_ns: SummaryStats,
    /// From the stimulus to the complete answer.
    pub complete_ns: SummaryStats,
    /// The largest start minus the smallest; null where none was answered.
    pub response_range_ns: Option<f64>,
    /// What an oscilloscope would show; null where none was answered.
    #[serde(default)]
    pub trace: Option<StageTrace>,
}

/// When a stimulus was raised and answered, on CLOCK_MONOTONIC; 0 where it was not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) raised_ns: u64,
    pub(crate) kernel_ns: u64,
    pub(crate) start_ns: [u64; 2],
    pub(crate) complete_ns: [u64; 2],
}

/// `within`, where all stamps that may be off by that lie between their stimulus and its answer.
///
/// # Errors
/// They do not: the clock that they are on was set, and perhaps set back.
pub(super) fn between(times: &[Times], within: Option<Span>) -> Result<Option<Span>, String> {
    let Some(bound) = within else { return Ok(None) };
    let bound_ns = bound.as_ns().unsigned_abs();
    let is_outside = |of: &&Times| {
        of.kernel_ns > 0
            && (of.kernel_ns.saturating_add(bound_ns) < of.raised_ns
                || of.kernel_ns > of.start_ns[0].saturating_add(bound_ns))
    };
    match times.iter().filter(is_outside).count() {
        0 => Ok(within),
        outside => Err(format!(
            "{outside} of its stamps are earlier than the stimulus or later than the answer"
        )),
    }
}

/// The rows of both stages from the times of all stimuli that were raised.
pub(super) fn stages(
    times: &[Times],
    period_ns: u64,
    policies: [(String, Option<u8>); 2],
) -> Vec<StageRow> {
    let raised: Vec<&Times> = times.iter().filter(|of| of.raised_ns > 0).collect();
    let row = |(stage, (policy, priority)): (usize, (String, Option<u8>))| {
        let (mut start, mut complete) = (Distribution::default(), Distribution::default());
        let mut served = 0;
        let mut starts_ns = Vec::with_capacity(raised.len());
        let answered = raised.iter().filter(|of| of.complete_ns[stage] > 0);
        let after = |ns: u64, of: &Times| {
            i64::try_from(ns).unwrap_or(i64::MAX) - of.raised_ns.cast_signed()
        };
        let mut count = 0;
        for of in answered {
            count += 1;
            let start_ns = after(of.start_ns[stage], of);
            start.push(start_ns);
            let complete_ns = after(of.complete_ns[stage], of);
            starts_ns.push(start_ns);
            complete.push(complete_ns);
            served += u64::from(complete_ns < period_ns.cast_signed());
        }
        let (start_ns, complete_ns) = (start.stats(), complete.stats());
        StageRow {
            stage: stage as u32 + 1,
            policy,
            priority,
            answered: count,
            skipped: raised.len() as u64 - count,
            served,
            response_range_ns: start_ns.max.zip(start_ns.min).map(|(max, min)| max - min),
            start_ns,
            complete_ns,
            trace: trace::trace(starts_ns),
        }
    };
    policies.into_iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_before_their_stimulus_or_after_its_answer_are_left_out() {
        let times = |kernel_ns: u64| Times {
            raised_ns: 1_000,
            kernel_ns,
            start_ns: [1_500, 1_700],
            complete_ns: [1_600, 1_800],
        };
        let within = |ns: i64| Some(Span::from_ns(ns));
        // 0 where there is no stamp.
        let fine = [times(970), times(1_200), times(1_530), times(0)];
        assert_eq!(between(&fine, within(30)), Ok(within(30)));
        assert_eq!(between(&[], within(30)), Ok(within(30)));
        // A clock that is set forth, and back before the end.
        let why = between(&[times(1_200), times(1_531), times(969)], within(30)).expect_err("set");
        assert!(why.starts_with("2 of its stamps are earlier"), "{why}");
        // On the same clock a line that bounces may have the stamp of another edge.
        assert_eq!(between(&[times(969)], None), Ok(None));
    }

    #[test]
    fn stages_count_what_was_answered_in_time_late_and_not_at_all() {
        let times = |raised_ns: u64, first: u64, second: u64| Times {
            raised_ns,
            kernel_ns: 0,
            start_ns: [raised_ns + first, raised_ns + second],
            complete_ns: [raised_ns + first + 1, raised_ns + second + 2],
        };
        let mut all = vec![times(1_000, 10, 50), times(2_000, 30, 1_500), times(3_000, 20, 60)];
        all.push(Times { raised_ns: 4_000, ..Times::default() });
        all.push(Times::default());
        let fifo = || ("SCHED_FIFO".to_owned(), Some(90));
        let rows = stages(&all, 1_000, [fifo(), fifo()]);
        let counts = |row: &StageRow| (row.stage, row.answered, row.skipped, row.served);
        assert_eq!((counts(&rows[0]), counts(&rows[1])), ((1, 3, 1, 3), (2, 3, 1, 2)));
        assert_eq!((rows[0].start_ns.min, rows[0].start_ns.max), (Some(10.0), Some(30.0)));
        assert_eq!(rows[1].complete_ns.max, Some(1_502.0));
        assert_eq!(rows[0].response_range_ns, Some(20.0));
        assert_eq!(stages(&[], 1_000, [fifo(), fifo()])[1].response_range_ns, None);
    }
}
