//! cyclictest of rt-tests, by its histogram in ns. Its grid is put on ours by `--secaligned`, to
//! the microsecond. It skips releases that passed and does not say how many.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use punctual_analysis::histogram::Histogram;
use punctual_core::time::Span;
use serde_json::Value;

use super::{Folder, Readings, last_line, run, threads};
use crate::block::Block;
use crate::runner::{PRIORITY, RunContext};

/// What lies beyond 2 ms has no bucket; it is counted as 2 ms, but for the largest.
const BEYOND_NS: i64 = 2_000_000;
/// Beside its block: it starts, waits for the next full second, and writes its result.
const GRACE: Duration = Duration::from_secs(15);

/// One block of it.
///
/// # Errors
/// It is not installed, or ended badly.
pub(crate) fn block(context: &RunContext, length: Span, folder: &Folder) -> Result<Block, String> {
    let period_ns = context.grid.period().as_ns();
    if !period_ns.is_multiple_of(1_000) {
        return Err("its periods are whole microseconds".to_owned());
    }
    let program = super::find("cyclictest").ok_or("not installed (Debian: rt-tests)")?;
    let length_ns = length.as_ns().unsigned_abs();
    let file = folder.path("cyclictest.json");
    let mut command = Command::new(program);
    command.args(["-t1", "-m", "-q", "-N"]);
    command.arg(format!("--affinity={}", context.cpu)).arg(format!("--priority={PRIORITY}"));
    command.arg(format!("--interval={}", period_ns / 1_000));
    command.arg(format!("--loops={}", (length_ns / period_ns).max(1)));
    command.arg(format!("--histogram={BEYOND_NS}"));
    command.arg(format!("--secaligned={}", context.grid.phase_ns() / 1_000));
    command.arg(format!("--json={}", file.display()));
    let begun = Instant::now();
    let mut cpu = Readings::default();
    let every = Duration::from_nanos((3 * period_ns).max(20_000_000));
    let limit = Duration::from_nanos(length_ns) + GRACE;
    let output = run(&mut command, folder, (limit, every), |pid| {
        threads(pid).iter().for_each(|&tid| cpu.read(pid, tid, begun));
    })?;
    if !output.well {
        return Err(format!("cyclictest: {}", last_line(&output.errors)));
    }
    let text = fs::read_to_string(&file).map_err(|why| format!("cyclictest's result: {why}"))?;
    let result: Value =
        serde_json::from_str(&text).map_err(|why| format!("cyclictest's result: {why}"))?;
    let lateness_ns = histogram(&result["thread"]["0"])?;
    Ok(Block { lateness_ns, missed: None, cpu_load: cpu.load() })
}

/// One thread's histogram. What has no bucket is put at its end, and the largest where it was.
fn histogram(thread: &Value) -> Result<Histogram, String> {
    let lacking = |part: &str| format!("cyclictest's result has no {part}");
    let buckets = thread["histogram"].as_object().ok_or_else(|| lacking("histogram"))?;
    let cycles = thread["cycles"].as_u64().ok_or_else(|| lacking("cycles"))?;
    let max_ns = thread["max"].as_i64().ok_or_else(|| lacking("max"))?;
    let mut histogram = Histogram::new();
    for (ns, count) in buckets {
        let (Ok(ns), Some(count)) = (ns.parse(), count.as_u64()) else {
            return Err(lacking("sound histogram"));
        };
        if count > cycles.saturating_sub(histogram.count()) {
            return Err(lacking("histogram that adds up"));
        }
        histogram.push_many(ns, count);
    }
    let beyond = cycles - histogram.count();
    if let Some(others) = beyond.checked_sub(1) {
        histogram.push(max_ns);
        histogram.push_many(BEYOND_NS.min(max_ns), others);
    }
    Ok(histogram)
}

/// Its version, as `cyclictest --help` says it.
pub(crate) fn version() -> Option<String> {
    let out = Command::new(super::find("cyclictest")?).arg("--help").output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    numbered(&String::from_utf8_lossy(&text))
}

/// The number in a first line like `cyclictest V 2.40`.
fn numbered(text: &str) -> Option<String> {
    let mut words = text.lines().next()?.split_whitespace();
    let version = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(version.chars().take(20).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_no_bucket_is_counted() {
        let thread = json!({
            "histogram": {"900": 1, "1000": 97}, "cycles": 100, "max": 7_000_000
        });
        let histogram = histogram(&thread).expect("sound");
        assert_eq!(
            (histogram.count(), histogram.min(), histogram.max()),
            (100, Some(900), Some(7_000_000))
        );
        let last_but_one = histogram.order_statistic(99).expect("within");
        assert!((BEYOND_NS..BEYOND_NS + BEYOND_NS / 1_000).contains(&last_but_one));
    }

    #[test]
    fn versions_are_numbers_of_the_first_line() {
        assert_eq!(numbered("cyclictest V 2.40\nUsage: 1").as_deref(), Some("2.40"));
        assert_eq!(numbered("Usage:\n2.40"), None);
    }

    #[test]
    fn what_is_not_sound_is_refused() {
        for thread in [
            json!({}),
            json!({"histogram": {}, "cycles": 1}),
            json!({"histogram": {"x": 1}, "cycles": 1, "max": 1}),
            json!({"histogram": {"1": -1}, "cycles": 1, "max": 1}),
            json!({"histogram": {"1": u64::MAX, "2": 2}, "cycles": 9, "max": 1}),
        ] {
            assert!(histogram(&thread).is_err(), "{thread}");
        }
    }
}
