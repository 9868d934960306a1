//! What an oscilloscope would show of a stage that sets its output when it starts: the rising edge,
//! averaged over all stimuli, and those of single ones laid over each other.
//!
//! Pure arithmetic after the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Points of a trace.
const POINTS: usize = 200;
/// Single edges: the paper's oscilloscope averaged as many.
const SINGLE: usize = 128;
/// The share of starts within its length: one that comes far later would leave nothing to be seen
/// of all others.
const SHOWN: f64 = 0.999;
/// The end of a trace, as a multiple of when that share has started.
const BEYOND: f64 = 1.2;

/// The rising edge of a stage's output over the time since the stimulus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageTrace {
    /// From one point to the next; the first is at the stimulus.
    pub step_ns: f64,
    /// The share of answers that had started by each point, in [0, 1].
    pub started: Vec<f64>,
    /// Answers that started after the last point.
    pub beyond: u64,
    /// When each of the last 128 answers started, in ns after its stimulus.
    pub single_ns: Vec<i64>,
}

/// The trace of starts in ns after their stimulus; `None` without.
pub(super) fn trace(mut starts_ns: Vec<i64>) -> Option<StageTrace> {
    let single_ns = starts_ns[starts_ns.len().saturating_sub(SINGLE)..].to_vec();
    starts_ns.sort_unstable();
    let n = starts_ns.len();
    let last = starts_ns.get(((n as f64 * SHOWN) as usize).min(n.checked_sub(1)?))?;
    let step_ns = (last.max(&1).unsigned_abs() as f64 * BEYOND / POINTS as f64).max(1.0);
    let by = |point: usize| {
        let ns = point as f64 * step_ns;
        starts_ns.partition_point(|start| *start as f64 <= ns)
    };
    let started = (0..POINTS).map(|point| by(point) as f64 / n as f64).collect();
    Some(StageTrace { step_ns, started, beyond: (n - by(POINTS - 1)) as u64, single_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_rises_as_answers_start() {
        assert_eq!(trace(Vec::new()), None);
        let two = trace(vec![1_800, 1_000]).expect("two answers");
        assert!((two.step_ns - 10.8).abs() < 1e-9, "{two:?}");
        let at = |ns: f64| two.started[(ns / two.step_ns).ceil() as usize];
        assert_eq!(
            [at(0.0), at(900.0), at(1_000.0), at(1_700.0), at(1_800.0)],
            [0.0, 0.0, 0.5, 0.5, 1.0]
        );
        assert_eq!((two.beyond, two.single_ns), (0, vec![1_800, 1_000]));
    }

    #[test]
    fn a_late_answer_is_counted_and_hides_no_other() {
        let mut starts = vec![10_000; 2_000];
        starts.push(900_000_000);
        let seen = trace(starts).expect("answers");
        assert_eq!((seen.beyond, seen.single_ns.len()), (1, SINGLE));
        assert!(seen.step_ns < 1_000.0, "{}", seen.step_ns);
        assert!(seen.started.iter().any(|share| *share > 0.99));
    }
}
