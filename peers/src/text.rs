//! The result as text: a view, without arithmetic.

use std::fmt::{self, Display, Write};

use punctual_core::time::Span;

use crate::result::{Quantiles, Ratios, Report, Row, Table};

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, cpu_model, cpu, clock, .. } = self;
        writeln!(f, "Linux {kernel}, {cpu_model}; CPU {cpu}, stamped by {clock}")?;
        if let Some(average) = self.load_average {
            writeln!(f, "load average before it: {average:.1}")?;
        }
        let versions = self.versions.iter().map(|peer| format!("{} {}", peer.name, peer.version));
        writeln!(f, "{}", versions.collect::<Vec<_>>().join(", "))?;
        for table in &self.tables {
            write!(f, "\n{}", shown_table(table, self.block_ns))?;
        }
        Ok(())
    }
}

fn shown_table(table: &Table, block_ns: i64) -> String {
    let span = |ns: u64| Span::from_ns(ns.try_into().unwrap_or(i64::MAX)).to_string();
    let load = table.load.as_deref().unwrap_or("idle");
    let mut page = format!(
        "every {}, {} phase ({}), {load}, {}, blocks of {}{}\n",
        span(table.period_ns),
        table.phase,
        span(table.phase_ns),
        table.policy,
        Span::from_ns(block_ns),
        if table.equal_cpu { "; each against adaptive with its CPU as budget" } else { "" },
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "  {:24}{:>9}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}{:>18}{:>8}{:>8}{:>8}",
        "",
        "n",
        "p50",
        "p99",
        "p99.9",
        "max",
        "CPU",
        "missed",
        "÷ adaptive: p50",
        "p99",
        "p99.9",
        "CPU"
    );
    for row in &table.rows {
        let _ = writeln!(page, "  {}", line(row));
    }
    let known = |row: &&Row| row.block != Quantiles::default();
    for (at, row) in table.rows.iter().filter(known).enumerate() {
        if at == 0 {
            let _ = writeln!(page, "  the median block of each:");
        }
        let _ = writeln!(page, "  {}", median_block(row));
    }
    for row in table.rows.iter().filter(|row| row.figures != "lateness" && row.n > 0) {
        let _ = writeln!(page, "  {}: {}", row.name, row.figures);
    }
    for load in &table.loads {
        let rate = load.rate.map_or_else(|| "none".to_owned(), |rate| format!("{rate:.0}"));
        let notes = match load.notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", load.notes.join("; ")),
        };
        let _ = writeln!(page, "  load {}: {rate} {}{notes}", load.name, load.unit);
    }
    for warning in &table.warnings {
        let _ = writeln!(page, "  note: {warning}");
    }
    page
}

fn line(row: &Row) -> String {
    let ns = |ns: Option<i64>| ns.map_or_else(none, |ns| Span::from_ns(ns).to_string());
    let share = |share: Option<f64>| share.map_or_else(none, |s| format!("{:.1} %", s * 100.0));
    let number = |number: Option<u64>| number.map_or_else(none, |number| number.to_string());
    let ratio = |ratio: Option<f64>| ratio.map_or_else(none, figures);
    if let (Some(why), 0) = (&row.left_out, row.n) {
        return format!("{:24}left out: {why}", row.name);
    }
    let mut line = format!(
        "{:24}{:>9}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}",
        row.name,
        row.n,
        ns(row.p50_ns),
        ns(row.p99_ns),
        ns(row.p99_9_ns),
        ns(row.max_ns),
        share(row.cpu_load),
        number(row.missed)
    );
    if row.against.is_some() {
        let [p50, p99, p99_9, cpu] =
            [row.ratios.p50, row.ratios.p99, row.ratios.p99_9, row.ratios.cpu].map(ratio);
        let _ = write!(line, "{p50:>18}{p99:>8}{p99_9:>8}{cpu:>8}");
    }
    if let Some(why) = &row.left_out {
        let _ = write!(line, "  ended early: {why}");
    }
    line
}

fn median_block(row: &Row) -> String {
    let ns = |ns: Option<i64>| ns.map_or_else(none, |ns| Span::from_ns(ns).to_string());
    let [p50, p99, p99_9] = [row.block.p50_ns, row.block.p99_ns, row.block.p99_9_ns].map(ns);
    let mut line = format!("{:24}{:>9}{p50:>10}{p99:>10}{p99_9:>10}", row.name, row.blocks);
    if row.against.is_some() {
        let Ratios { p50, p99, p99_9, .. } = row.block_ratios;
        let [p50, p99, p99_9] = [p50, p99, p99_9].map(|ratio| ratio.map_or_else(none, figures));
        let _ = write!(line, "{:26}{p50:>18}{p99:>8}{p99_9:>8}", "");
    }
    line
}

/// Two or three figures of a ratio, and all of its whole part.
fn figures(ratio: f64) -> String {
    match ratio {
        0.0..0.1 => format!("{ratio:.3}"),
        0.1..10.0 => format!("{ratio:.2}"),
        10.0..100.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

fn none() -> String {
    "—".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{compare, tests::row};

    #[test]
    fn ratios_keep_their_figures() {
        let shown = [0.0023, 0.94, 9.9, 42.12, 655.1].map(figures);
        assert_eq!(shown, ["0.002", "0.94", "9.90", "42.1", "655"]);
    }

    #[test]
    fn a_row_shows_its_figures_and_what_it_lacks() {
        let mut rows = vec![row("adaptive", Some(70), None), row("spin_sleep", Some(105), Some(0))];
        compare(&mut rows);
        assert!(line(&rows[0]).ends_with("5.0 %       0"), "{}", line(&rows[0]));
        let shown = line(&rows[1]);
        for part in ["105 ns", "2.00 µs", "30.0 µs", "—", "1.50", "1.00"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(median_block(&rows[1]).contains("1.00 µs"), "{}", median_block(&rows[1]));
        assert!(median_block(&rows[1]).ends_with("1.50    1.00       —"));
        let mut gone = row("cyclictest", None, Some(0));
        (gone.n, gone.left_out) = (0, Some("not installed".to_owned()));
        assert!(line(&gone).ends_with("left out: not installed"));
    }
}
