//! `punctual analyse FILE`: judges recorded data, of this program and of others, without measuring.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use punctual_import::csv::ColumnSpec;
use punctual_import::formats;

use crate::args::{Detail, ReportArgs};
use crate::campaign::directory::is_campaign;
use crate::comparison::baseline::{AgainstArgs, BaselineUse};
use crate::comparison::{self, Recorded};
use crate::question::QuestionArgs;
use crate::recorded::{RecordedRequest, format_of};
use crate::subcommand::{Execute, Exit};
use crate::{campaign, output, parse, writing};

/// `punctual analyse`.
#[derive(Debug, clap::Args)]
pub(super) struct AnalyseArgs {
    #[arg(help = format!(
        "A sample file, a result.json, or a directory of 'punctual check' with either; a file of \
         another program ({}), recognised by its content (docs/importing.md); or, with --column, \
         CSV with one instant or one lateness per line. Any of them may be compressed with gzip; \
         '-' reads standard input",
        formats::programs()
    ))]
    file: PathBuf,
    /// What a CSV column contains, NAME:UNIT: 'instant:ns' (needs --period) or 'lateness:us'; if
    /// the first line is a header, NAME selects the column
    #[arg(long, value_name = "NAME:UNIT", value_parser = ColumnSpec::parse)]
    column: Option<ColumnSpec>,
    /// The unit of the values, for a file that does not state it: ns, us, ms or s
    #[arg(long, value_name = "UNIT", conflicts_with = "column")]
    unit: Option<parse::Unit>,
    /// The nominal period of CSV data, or of a file of another program that does not state it
    #[arg(long, allow_hyphen_values = true, value_parser = parse::period)]
    period: Option<parse::Duration>,
    #[command(flatten)]
    question: QuestionArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    against: AgainstArgs,
}

impl Execute for AnalyseArgs {
    fn execute(&self) -> Result<Exit> {
        self.report.output().spare([self.file.as_path()])?;
        let gate = BaselineUse::of_recorded(&self.against)?;
        gate.spare(&self.report.output())?;
        let compared = self.compared(&gate)?;
        let outputs = self.report.output().open()?;
        let request = RecordedRequest {
            file: &self.file,
            column: self.column.as_ref(),
            unit: self.unit,
            period: self.period,
            question: self.question.spec(),
            wants_answer: self.question.periods().is_some() && !self.question.is_gate(),
            report: &self.report,
        };
        if self.column.is_none() && is_campaign(&self.file) {
            request.refuse_foreign_options(&self.file.display().to_string())?;
            let report = campaign::judged(&self.file, &self.report, &self.question)?;
            writing::write_in(&report, outputs, self.report.detail(Detail::Short))?;
            return Ok(Exit::of(&report));
        }
        let read = request.read()?;
        let caveats = read.caveats().to_vec();
        let mut report = read.judged(&self.report, &self.question)?;
        let uncompared = compared.and_then(|recorded| gate.judge_recorded(&mut report, recorded));
        // What a foreign file cannot tell stands with its figures alone.
        let is_own = report.body.runs().iter().all(|run| run.outcome.imported.is_none());
        let usual = if is_own { Detail::Short } else { Detail::Long };
        let detail = self.report.detail(usual);
        writing::write_in(&report, outputs, detail)?;
        // The line of -q has no room for them.
        caveats
            .iter()
            .filter(|_| detail == Detail::Line)
            .for_each(|caveat| output::message(caveat));
        Exit::after(&report, uncompared)
    }
}

impl AnalyseArgs {
    /// The recorded data as comparisons see them, where they are held against a baseline.
    ///
    /// # Errors
    /// They cannot be: other loops, another machine, or not recorded by this program.
    fn compared(&self, gate: &BaselineUse) -> Result<Option<Recorded>> {
        if !gate.is_used() {
            return Ok(None);
        }
        let shown = self.file.display();
        if is_campaign(&self.file) {
            bail!(
                "{shown}: --against takes one run, and a campaign has many: 'punctual compare' \
                 takes its result"
            );
        }
        if self.column.is_some() || self.file == Path::new("-") || format_of(&self.file)?.is_some()
        {
            bail!(
                "{shown}: --against takes a result or a sample file of punctual, which say how \
                 they were measured"
            );
        }
        let recorded = comparison::read(&self.file)?;
        gate.refuse_recorded(&recorded)?;
        Ok(Some(recorded))
    }
}
