//! Verdicts on settings and programs as a result: what `tune check` and `sched check` write.

use anyhow::Result;
use punctual_host::rules::{KnobVerdict, RuleVerdict};
use punctual_report::{Envelope, Report, TuneBody};

use crate::output::{OutputArgs, Outputs};
use crate::subcommand::Exit;
use crate::{view, writing};

/// Output of verdicts, and whether they decide the exit status.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Print also what is good, what does not apply, and where each verdict comes from
    #[arg(long, short)]
    verbose: bool,
    /// Fail (exit 1) if anything conflicts or has no effect
    #[arg(long)]
    strict: bool,
}

impl VerdictArgs {
    /// Writes a result of verdicts.
    pub(crate) fn write(
        &self,
        outputs: Outputs,
        mut envelope: Envelope,
        body: TuneBody,
    ) -> Result<Exit> {
        let is_wrong = |judged: &&KnobVerdict| {
            matches!(judged.verdict, RuleVerdict::Conflict | RuleVerdict::NoEffect)
        };
        for wrong in body.verdicts.iter().filter(is_wrong).filter(|_| self.strict) {
            envelope.verdict.fail(format!("{}: {}", wrong.knob, wrong.verdict.word()));
        }
        let blocks = view::kinds::tune::document(&envelope, &body, self.verbose);
        let page = punctual_document::text::rendered(&blocks);
        let report = Report { envelope, body: body.into() };
        writing::write_page(&report, outputs, page)?;
        Ok(Exit::of(&report))
    }
}
