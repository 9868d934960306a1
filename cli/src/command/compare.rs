//! `punctual compare A B…`: results compared with each other.
//!
//! Reads, compares, prints; the first side is the reference.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use punctual_report::{About, CompareBody, Comparison, Overall, Report};

use crate::args::{Detail, UndecidedArgs};
use crate::comparison::{ComparisonArgs, Recorded, Side, compare_sides, grid, label, read};
use crate::output::JudgedOutputArgs;
use crate::pages::GRID_MAX;
use crate::program::PROGRAM;
use crate::stored::{RESULT, SAMPLES};
use crate::subcommand::{Execute, Exit};
use crate::writing;

/// `punctual compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 compared, whatever came out; 2 could not compare. With \
                  --fail-if-worse or --undecided: 0 not worse; 1 worse; 3 not worse, and not \
                  decided, which --undecided pass makes 0 and --undecided fail 1.")]
pub(super) struct CompareArgs {
    /// Results to compare, two or more: directories of 'punctual check', result.json files, sample
    /// files. The first is the reference. Results of 'measure response', 'measure saturation',
    /// 'measure accuracy', 'measure executive' and 'reproduce' are compared figure by figure, those
    /// of one kind on one grid
    #[arg(value_name = "RESULT", num_args = 1.., required_unless_present = "a")]
    results: Vec<PathBuf>,
    /// Several results of the reference, separated by commas; best measured in turn with those of
    /// --b
    #[arg(long, value_name = "RESULTS", value_delimiter = ',', requires = "b")]
    #[arg(conflicts_with = "results")]
    a: Vec<PathBuf>,
    /// Several results of the other side, separated by commas
    #[arg(long, value_name = "RESULTS", value_delimiter = ',', requires = "a")]
    #[arg(conflicts_with = "results")]
    b: Vec<PathBuf>,
    #[command(flatten)]
    compared: ComparisonArgs,
    /// Exit 1 if another side is worse than the reference in any respect; --undecided implies it
    #[arg(long)]
    fail_if_worse: bool,
    #[command(flatten)]
    undecided: UndecidedArgs,
    /// Compare even a recording with itself, runs of different names where each side has one, and
    /// histograms (which lack the order of cycles) as if cycles were independent
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    output: JudgedOutputArgs,
    /// Print the answer in one line for each result after the first; what fails is named on
    /// standard error
    #[arg(long, short)]
    quiet: bool,
}

/// The most results of one comparison.
const RESULTS_MAX: usize = 1_000;

impl Execute for CompareArgs {
    fn execute(&self) -> Result<Exit> {
        let paths: Vec<&PathBuf> = self.results.iter().chain(&self.a).chain(&self.b).collect();
        if self.b.is_empty() && self.results.len() < 2 {
            bail!("compare needs at least two results");
        }
        if paths.len() > RESULTS_MAX {
            bail!("{} results: at most {RESULTS_MAX} can be compared", paths.len());
        }
        self.output.all().spare(paths.iter().map(|path| path.as_path()))?;
        if !self.anyway {
            refuse_twice(&paths)?;
        }
        let on_grid = grid::read(&paths.iter().map(|path| path.as_path()).collect::<Vec<_>>())?;
        let (outputs, comparison) = match on_grid {
            Some(comparison) => {
                self.refuse_for_grid(&comparison)?;
                (self.output.all().open()?, comparison)
            }
            None => {
                let sides = sides(self)?;
                if !self.anyway {
                    refuse_copies(&sides)?;
                }
                let terms = self.compared.with_questions_of(&sides);
                let outputs = self.output.all().open()?;
                (outputs, compare_sides(&sides, &terms, self.anyway)?)
            }
        };
        let mut verdict = Overall::none(self.undecided.counts_as());
        // Who says what an open comparison counts as has it judged.
        if self.fail_if_worse || self.undecided.is_given() {
            let worse = comparison.worse_words().into_iter();
            worse.for_each(|why| verdict.fail_about(About::Worse, why));
            comparison.open().for_each(|(about, why)| verdict.leave_open(about, why));
        }
        let mut report = Report::new(PROGRAM, "compare", CompareBody { compare: comparison });
        report.envelope.verdict = verdict;
        let detail = Detail::of(self.quiet, false, Detail::Long);
        writing::write_in(&report, outputs, detail)?;
        Ok(Exit::of(&report))
    }
}

impl CompareArgs {
    /// Refuses what results that are compared figure by figure cannot be asked for.
    fn refuse_for_grid(&self, comparison: &Comparison) -> Result<()> {
        let kind = comparison.grid.as_ref().map_or("", |grid| grid.experiment.as_str());
        if !self.a.is_empty() {
            bail!(
                "--a and --b: results of '{kind}' have no cycles to be taken together; give each \
                 result by itself: punctual compare A B…"
            );
        }
        if let Some(option) = self.compared.first() {
            bail!(
                "{option}: results of '{kind}' have no cycles to be counted, and are compared \
                 figure by figure; leave it out"
            );
        }
        if comparison.sides.len() > GRID_MAX {
            bail!(
                "{} results: at most {GRID_MAX} of '{kind}' stand side by side",
                comparison.sides.len()
            );
        }
        let starts = comparison.sides.iter().flat_map(|side| &side.results);
        let starts: Vec<_> = starts.filter_map(|result| result.started_at.as_ref()).collect();
        let twice = starts.iter().enumerate().find(|(at, start)| starts[..*at].contains(start));
        match twice {
            Some((_, start)) if !self.anyway => bail!(
                "two results began at {start}: they are one measurement; use --anyway to compare \
                 them"
            ),
            _ => Ok(()),
        }
    }
}

/// A side a result, or all of `--a` against all of `--b`.
fn sides(args: &CompareArgs) -> Result<Vec<Side>> {
    let read_all = |paths: &[PathBuf]| -> Result<Vec<Recorded>> {
        paths.iter().map(|path| read(path)).collect()
    };
    if !args.b.is_empty() {
        let side = |label: &str, paths: &[PathBuf]| -> Result<Side> {
            Ok(Side { label: label.to_owned(), results: read_all(paths)? })
        };
        return Ok(vec![side("A", &args.a)?, side("B", &args.b)?]);
    }
    let results = read_all(&args.results)?.into_iter().enumerate();
    Ok(results.map(|(at, result)| Side { label: label(at), results: vec![result] }).collect())
}

/// The same file under any two names would be no difference for the wrong reason.
fn refuse_twice(paths: &[&PathBuf]) -> Result<()> {
    let mut seen = HashSet::new();
    for path in paths {
        let inside = [path.join(RESULT), path.join(SAMPLES)];
        let file =
            inside.iter().find(|path| path.exists()).map_or(path.as_path(), PathBuf::as_path);
        let beside = |file: &Path| {
            let samples = file.with_file_name(SAMPLES);
            let is_result = file.extension().is_some_and(|extension| extension == "json");
            if is_result && samples.exists() { samples } else { file.to_owned() }
        };
        let Ok(meta) = fs::metadata(beside(file)) else { continue };
        if !seen.insert((meta.dev(), meta.ino())) {
            bail!("{}: the recording is given twice; use --anyway to compare it", path.display());
        }
    }
    Ok(())
}

/// Refuses a copy of a recording, which would be no difference for the wrong reason.
fn refuse_copies(sides: &[Side]) -> Result<()> {
    let results: Vec<&Recorded> = sides.iter().flat_map(|side| &side.results).collect();
    for (at, a) in results.iter().enumerate() {
        if let Some(b) = results[at + 1..].iter().find(|b| a.is_copy_of(b)) {
            bail!(
                "{} and {} contain the same recording; use --anyway to compare them",
                a.from(),
                b.from()
            );
        }
    }
    Ok(())
}
