//! The result as plain data: what `--json` writes and what the text shows. No arithmetic but the
//! ratios, which are made here once.

use serde::Serialize;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `punctual peers`.
    pub(crate) tool: &'static str,
    /// The release of the kernel.
    pub(crate) kernel: String,
    /// What the processor calls itself.
    pub(crate) cpu_model: String,
    /// Versions of the peers, as far as they say them.
    pub(crate) versions: Vec<Version>,
    /// What stamps: `tsc`, `cntvct` or `vdso`.
    pub(crate) clock: &'static str,
    /// The machine's load average over the minute before the first block: what others did; null
    /// where it cannot be read. "idle" is no load of ours.
    pub(crate) load_average: Option<f64>,
    /// The CPU that all ran on.
    pub(crate) cpu: u32,
    /// The length of one block, ns.
    pub(crate) block_ns: i64,
    /// One for each period, phase and load.
    pub(crate) tables: Vec<Table>,
}

/// A peer and its version.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Version {
    /// The peer.
    pub(crate) name: String,
    /// As it says or as it is locked.
    pub(crate) version: String,
}

/// One comparison: all in blocks on one grid.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    /// The period, ns.
    pub(crate) period_ns: u64,
    /// `quiet` or `zero`.
    pub(crate) phase: &'static str,
    /// Offset of the grid from multiples of its period on CLOCK_MONOTONIC, ns.
    pub(crate) phase_ns: u64,
    /// The loads, as `--load` names them; none when idle.
    pub(crate) load: Option<String>,
    /// Whether each row is held against `adaptive` with that row's share of the CPU as its budget.
    pub(crate) equal_cpu: bool,
    /// The policy that loops of the crates had.
    pub(crate) policy: String,
    /// The contenders.
    pub(crate) rows: Vec<Row>,
    /// What the loads did.
    pub(crate) loads: Vec<Period>,
    /// What a reader must know.
    pub(crate) warnings: Vec<String>,
}

/// What a load did.
#[derive(Debug, Serialize)]
pub(crate) struct Period {
    /// The load.
    pub(crate) name: String,
    /// Done per second; null when nothing was counted.
    pub(crate) rate: Option<f64>,
    /// The unit of `rate`.
    pub(crate) unit: String,
    /// What a reader should know of it.
    pub(crate) notes: Vec<String>,
}

/// One contender.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: String,
    /// What the figures are, and who took them.
    pub(crate) figures: &'static str,
    /// How many blocks it had.
    pub(crate) blocks: u32,
    /// How many wakes are counted.
    pub(crate) n: u64,
    /// Quantiles, ns; null where n is too small.
    pub(crate) p50_ns: Option<i64>,
    /// As `p50_ns`.
    pub(crate) p99_ns: Option<i64>,
    /// As `p50_ns`.
    pub(crate) p99_9_ns: Option<i64>,
    /// The latest of the n.
    pub(crate) max_ns: Option<i64>,
    /// The median block: a burst of the host's stalls is in a few blocks of everyone, and in all
    /// figures of the whole.
    pub(crate) block: Quantiles,
    /// CPU time of the loop's thread over wall time, in 0..1; null where it could not be seen.
    pub(crate) cpu_load: Option<f64>,
    /// Releases that never ran; null where that is not counted.
    pub(crate) missed: Option<u64>,
    /// The row that it is held against, by its place in the table.
    pub(crate) against: Option<usize>,
    /// Its figures over those of that row: above 1 where that row is better.
    pub(crate) ratios: Ratios,
    /// The ratios of the median blocks.
    pub(crate) block_ratios: Ratios,
    /// Why it did not run, or not to the end.
    pub(crate) left_out: Option<String>,
}

/// Quantiles of lateness, ns; null where n is too small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Quantiles {
    pub(crate) p50_ns: Option<i64>,
    pub(crate) p99_ns: Option<i64>,
    pub(crate) p99_9_ns: Option<i64>,
}

/// Quotients of two rows; null where one figure is missing, or the other row's is not positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Ratios {
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) p99_9: Option<f64>,
    pub(crate) cpu: Option<f64>,
}

/// Holds each row against the one that it names.
pub(crate) fn compare(rows: &mut [Row]) {
    for place in 0..rows.len() {
        let Some(reference) = rows[place].against.and_then(|against| rows.get(against)).cloned()
        else {
            continue;
        };
        let row = &mut rows[place];
        let cpu = quotient(row.cpu_load, reference.cpu_load);
        row.ratios = row.whole().over(reference.whole(), cpu);
        row.block_ratios = row.block.over(reference.block, cpu);
    }
}

impl Row {
    /// Of all its wakes.
    fn whole(&self) -> Quantiles {
        let Self { p50_ns, p99_ns, p99_9_ns, .. } = *self;
        Quantiles { p50_ns, p99_ns, p99_9_ns }
    }
}

impl Quantiles {
    fn over(self, reference: Self, cpu: Option<f64>) -> Ratios {
        let ratio = |mine: Option<i64>, its: Option<i64>| {
            quotient(mine.map(|ns| ns as f64), its.map(|ns| ns as f64))
        };
        Ratios {
            p50: ratio(self.p50_ns, reference.p50_ns),
            p99: ratio(self.p99_ns, reference.p99_ns),
            p99_9: ratio(self.p99_9_ns, reference.p99_9_ns),
            cpu,
        }
    }
}

fn quotient(mine: Option<f64>, its: Option<f64>) -> Option<f64> {
    let (mine, its) = (mine?, its?);
    (its > 0.0).then(|| mine / its)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(name: &str, p50_ns: Option<i64>, against: Option<usize>) -> Row {
        Row {
            name: name.to_owned(),
            figures: "lateness",
            blocks: 3,
            n: 3_000,
            p50_ns,
            p99_ns: Some(2_000),
            p99_9_ns: None,
            max_ns: Some(30_000),
            block: Quantiles { p50_ns, p99_ns: Some(1_000), p99_9_ns: None },
            cpu_load: Some(0.05),
            missed: Some(0),
            against,
            ratios: Ratios::default(),
            block_ratios: Ratios::default(),
            left_out: None,
        }
    }

    #[test]
    fn rows_are_held_against_the_one_they_name() {
        let mut rows = vec![
            row("adaptive", Some(70), None),
            row("spin_sleep", Some(140), Some(0)),
            row("away", None, Some(9)),
        ];
        rows[1].cpu_load = Some(0.1);
        rows[1].block.p99_ns = Some(500);
        compare(&mut rows);
        let ratios = Ratios { p50: Some(2.0), p99: Some(1.0), p99_9: None, cpu: Some(2.0) };
        assert_eq!(rows[1].ratios, ratios);
        assert_eq!(rows[1].block_ratios, Ratios { p99: Some(0.5), ..ratios });
        assert_eq!((rows[0].ratios, rows[2].ratios), (Ratios::default(), Ratios::default()));
        assert_eq!(quotient(Some(1.0), Some(0.0)), None);
        assert_eq!(quotient(Some(1.0), Some(-3.0)), None, "of an early wake there is no ratio");
    }

    fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(object) => {
                found.extend(object.keys().cloned());
                object.values().for_each(|value| keys(value, found));
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_page_names_each_key_of_a_result() {
        let table = Table {
            period_ns: 1,
            phase: "zero",
            phase_ns: 0,
            load: None,
            equal_cpu: false,
            policy: String::new(),
            rows: vec![row("adaptive", None, None)],
            loads: vec![Period {
                name: String::new(),
                rate: None,
                unit: String::new(),
                notes: Vec::new(),
            }],
            warnings: Vec::new(),
        };
        let report = Report {
            tool: "",
            kernel: String::new(),
            cpu_model: String::new(),
            versions: vec![Version { name: String::new(), version: String::new() }],
            clock: "",
            load_average: None,
            cpu: 0,
            block_ns: 0,
            tables: vec![table],
        };
        let mut found = Vec::new();
        keys(&serde_json::to_value(&report).expect("plain data"), &mut found);
        let page = include_str!("../../docs/peers.md");
        let part = page.split("## As JSON").nth(1).expect("its part of the page");
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words: Vec<&str> = part.split(|c| !is_word(c)).collect();
        for key in found {
            assert!(words.contains(&key.as_str()), "docs/peers.md does not name {key}");
        }
    }
}
