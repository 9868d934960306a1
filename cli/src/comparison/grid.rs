//! Results that are compared figure by figure, because they have no runs of cycles: answers to
//! stimuli, saturation, accuracy, an executive's costs, papers.
//!
//! For `compare`, `report` and `reproduce --beside`. Which figures a kind has is in
//! [`punctual_report::grid`]; here is what is read, and refused.

use std::path::Path;

use anyhow::{Result, bail};
use punctual_analysis::compare::{Family, Verdict};
use punctual_analysis::interval::EACH;
use punctual_report::grid::{FigureGrid, GridRow};
use punctual_report::{Body, Comparison, Pair, Report};

use super::{Recorded, Side, label, listed, notes, side};
use crate::stored;

/// A result, what its column is called, and where it is from.
pub(crate) struct GridSide<'r> {
    pub(crate) label: &'r str,
    pub(crate) from: &'r str,
    pub(crate) report: &'r Report,
}

/// Results of one kind on one grid, the first as the reference; `None` where the first one is of a
/// kind whose runs are compared.
///
/// # Errors
/// Another one is of another kind, or reproduces no paper of the first.
pub(crate) fn of(results: &[GridSide<'_>]) -> Result<Option<Comparison>> {
    let Some((reference, others)) = results.split_first() else { return Ok(None) };
    let (from, first) = (reference.from, reference.report);
    if !first.body.has_grid() {
        return Ok(None);
    }
    for side in others {
        let (other_from, other) = (side.from, side.report);
        let (kind, other_kind) = (&first.envelope.experiment, &other.envelope.experiment);
        if kind != other_kind {
            bail!(
                "{from} is a result of '{kind}' and {other_from} one of '{other_kind}': a grid has \
                 results of one kind; compare each kind by itself"
            );
        }
        same_papers((from, first), (other_from, other))?;
    }
    let bodies: Vec<&Body> = results.iter().map(|side| &side.report.body).collect();
    let Some(grid) = Body::grid(&first.envelope.experiment, &bodies) else { return Ok(None) };
    let sides: Vec<Side> = results.iter().map(of_report).collect();
    let pairs = (0..others.len()).map(|at| pair(&sides[0], &sides[at + 1], &grid, at)).collect();
    let tests = grid.rows.iter().map(tested).sum::<usize>() as u64;
    // Either interval leaves its value out in one case of eighty.
    let each = 2.0 * (1.0 - EACH);
    let family = Family { tests, confidence: (1.0 - tests as f64 * each).max(0.0) };
    Ok(Some(Comparison {
        family,
        sides: sides.iter().map(side).collect(),
        pairs,
        changed: Vec::new(),
        grid: Some(grid),
    }))
}

/// The results in these files on one grid; `None` where the first one is of a kind whose runs are
/// compared, or no result but samples.
///
/// # Errors
/// As [`of`]; one is no result, or of another schema.
pub(crate) fn read(paths: &[&Path]) -> Result<Option<Comparison>> {
    let Some(first) = paths.first() else { return Ok(None) };
    // What is wrong with it is said by whoever reads it as samples too.
    let is_of_a_grid = stored::read(first).is_ok_and(|stored| stored.report.body.has_grid());
    if !is_of_a_grid {
        return Ok(None);
    }
    let stored = paths.iter().map(|path| stored::read(path)).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let labels: Vec<String> = (0..paths.len()).map(label).collect();
    let results = names.iter().zip(&labels).zip(&stored).map(|((from, label), stored)| GridSide {
        label,
        from,
        report: &stored.report,
    });
    let results: Vec<GridSide<'_>> = results.collect();
    of(&results)
}

/// Refuses two reproductions without a paper in common.
fn same_papers((from, first): (&str, &Report), (other_from, other): (&str, &Report)) -> Result<()> {
    let (Body::Reproduce(own), Body::Reproduce(others)) = (&first.body, &other.body) else {
        return Ok(());
    };
    if own.papers.iter().any(|paper| others.papers.contains(paper)) {
        return Ok(());
    }
    let (own, others) = (own.papers.join(", "), others.papers.join(", "));
    bail!(
        "{from} reproduces {own}, and {other_from} reproduces {others}: they have no paper in \
         common; measure one of them with 'punctual reproduce' on the other machine too"
    )
}

/// A side of one result, of which nothing but what all results have is compared besides.
fn of_report(result: &GridSide<'_>) -> Side {
    let recorded = Recorded::head(result.report, result.from.to_owned());
    Side { label: result.label.to_owned(), results: vec![recorded] }
}

/// The sides of a row that intervals tell from the first, or could have.
fn tested(row: &GridRow) -> usize {
    let has_interval = |cell: &&punctual_report::grid::GridCell| {
        cell.value.low.is_some() || cell.value.high.is_some()
    };
    let mut cells = row.cells.iter().map(|cell| cell.as_ref().filter(has_interval).is_some());
    if cells.next() != Some(true) {
        return 0;
    }
    cells.filter(|is_tested| *is_tested).count()
}

/// The differences of a side after the first from the first, and the verdict over all its rows.
fn pair(first: &Side, other: &Side, grid: &FigureGrid, at: usize) -> Pair {
    let has = |verdict: Verdict| grid.rows.iter().any(|row| row.verdict(at) == verdict);
    let verdict = match (has(Verdict::Better), has(Verdict::Worse)) {
        (true, true) => Verdict::Mixed,
        (true, false) => Verdict::Better,
        (false, true) => Verdict::Worse,
        (false, false) => Verdict::Undecided,
    };
    let only = |column: usize, other_column: usize| {
        let lacking = grid
            .rows
            .iter()
            .filter(|row| row.cells[column].is_some() && row.cells[other_column].is_none());
        lacking.map(|row| format!("{}: {}", grid.owner_words(row), row.figure)).collect()
    };
    Pair {
        a: first.label.clone(),
        b: other.label.clone(),
        verdict,
        differences: listed(first, other, false),
        notes: notes(first, other, false),
        only_in_a: only(0, at + 1),
        only_in_b: only(at + 1, 0),
        runs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::interval::Interval;
    use punctual_analysis::scatter::Scatter;
    use punctual_report::grid::Agreement;
    use punctual_report::measured::Measured;

    use super::*;

    fn stored(text: &str) -> Report {
        Report::parse(text).expect("a result")
    }

    fn of_name<'r>(name: &'r str, report: &'r Report) -> GridSide<'r> {
        GridSide { label: name, from: name, report }
    }

    fn accuracy() -> Report {
        stored(include_str!("../../tests/results/kinds/accuracy.json"))
    }

    #[test]
    fn each_kind_of_a_grid_is_compared_with_itself_and_no_row_is_worse() {
        for text in [
            include_str!("../../tests/results/kinds/accuracy.json"),
            include_str!("../../tests/results/kinds/response.json"),
            include_str!("../../tests/results/kinds/saturation.json"),
            include_str!("../../tests/results/kinds/executive.json"),
            include_str!("../../tests/results/kinds/reproduce.json"),
        ] {
            let report = stored(text);
            let kind = report.envelope.experiment.clone();
            let compared =
                of(&[of_name("A", &report), of_name("B", &report), of_name("C", &report)]);
            let compared = compared.expect("of one kind").expect("a grid");
            let grid = compared.grid.as_ref().expect("a grid");
            assert!(!grid.rows.is_empty(), "{kind}");
            assert!(grid.rows.iter().all(|row| row.cells.len() == 3 && row.relations.len() == 2));
            assert!(grid.rows.iter().all(|row| (0..2).all(|at| row.word(at) == "undecided")));
            assert!(
                grid.claims.iter().all(|claim| claim.agreement() != Agreement::Differ),
                "{kind}"
            );
            assert!(!compared.is_worse());
            assert_eq!(compared.pairs.len(), 2);
        }
    }

    #[test]
    fn what_one_side_alone_has_is_named_in_words() {
        let report = stored(include_str!("../../tests/results/kinds/reproduce.json"));
        let mut less = report.clone();
        let Body::Reproduce(body) = &mut less.body else { panic!("its kind") };
        let lost = body.rows.iter().position(|row| row.measured.is_some()).expect("a figure");
        let lost = body.rows.remove(lost);
        let compared = of(&[of_name("A", &report), of_name("B", &less)]);
        let compared = compared.expect("of one kind").expect("a grid");
        let [only] = &compared.pairs[0].only_in_a[..] else { panic!("{:?}", compared.pairs[0]) };
        assert!(!only.contains(&lost.id) && !only.is_empty(), "{only}");
    }

    #[test]
    fn a_slower_machine_is_worse_where_its_intervals_show_it() {
        // The stored one is of before intervals.
        let with_interval = |tick: f64| {
            let mut report = accuracy();
            let Body::Measured(Measured::Accuracy(body)) = &mut report.body else {
                panic!("its kind")
            };
            body.accuracy.tick_ns *= tick;
            let interval = |value: f64| Some(Interval::between(value - 2.0, value, value + 2.0));
            body.accuracy.rows[0].scatter = Some(Scatter {
                n: 9_000,
                independent: 9_000,
                least: 10.0,
                p5: interval(20.0),
                p50: interval(40.0),
                p95: interval(80.0),
                p99: interval(90.0),
                largest: 400.0,
            });
            report
        };
        let (fast, slow) = (with_interval(1.0), with_interval(50.0));
        let compared =
            of(&[of_name("fast", &fast), of_name("slow", &slow)]).expect("alike").expect("a grid");
        let grid = compared.grid.as_ref().expect("a grid");
        let decided = grid.rows.iter().filter(|row| row.verdict(0) == Verdict::Worse).count();
        assert_eq!((decided, compared.is_worse()), (3, true), "{grid:?}");
        assert_eq!(compared.pairs[0].verdict, Verdict::Worse);
        assert_eq!(compared.family.tests, 3);
        assert!((compared.family.confidence - 0.925).abs() < 1e-9);
    }

    #[test]
    fn another_kind_and_another_paper_are_refused_with_both_names() {
        let (one, other) =
            (accuracy(), stored(include_str!("../../tests/results/kinds/executive.json")));
        let why = of(&[of_name("a.json", &one), of_name("b.json", &other)])
            .expect_err("refused")
            .to_string();
        for words in ["a.json is a result of 'measure accuracy'", "b.json one of 'measure exec"] {
            assert!(why.contains(words), "{why}");
        }
        let mut papers = stored(include_str!("../../tests/results/kinds/reproduce.json"));
        let same = papers.clone();
        let Body::Reproduce(body) = &mut papers.body else { panic!("its kind") };
        body.papers = vec!["ant".to_owned()];
        let why = of(&[of_name("a.json", &same), of_name("b.json", &papers)])
            .expect_err("refused")
            .to_string();
        assert!(why.contains("b.json reproduces ant: they have no paper in common"), "{why}");
        let check = stored(include_str!("../../tests/results/kinds/check.json"));
        assert!(
            of(&[of_name("a.json", &check), of_name("b.json", &one)]).expect("its runs").is_none()
        );
    }
}
