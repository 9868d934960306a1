//! What RESULT is: a result, the samples beside it, or samples alone.
//!
//! Regular files only. Reads samples through the same pass as `punctual analyse`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use punctual_import::samples::SampleFileReader;

use crate::args::ReportArgs;
use crate::command::analyse;
use crate::report::Report;
use crate::stored::{self, RESULT, SAMPLES, Stored, regular};

/// What can be exported.
pub(super) struct Source {
    /// What was named, for messages.
    pub(super) shown: String,
    stored: Option<Stored>,
    samples: Option<PathBuf>,
    /// Samples beside the result that are another run's.
    foreign: Option<PathBuf>,
}

impl Source {
    /// Finds out what `path` is and reads the result, if it is one.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        if path.is_dir() && !path.join(RESULT).is_file() {
            let samples = path.join(SAMPLES);
            if !samples.is_file() {
                bail!("{shown}: neither {RESULT} nor {SAMPLES} in this directory");
            }
            return Ok(Self { shown, stored: None, samples: Some(samples), foreign: None });
        }
        if !path.is_dir() && stored::is_samples(path)? {
            let samples = Some(path.to_owned());
            return Ok(Self { shown, stored: None, samples, foreign: None });
        }
        let stored = stored::read(path).map_err(|why| foreign(path, why))?;
        // Another file of any name has samples of its own, if any.
        let named = stored.path.file_name().is_some_and(|name| name == RESULT);
        let beside = stored.samples.clone().filter(|_| named);
        let (samples, foreign) = match beside {
            Some(path) if !are_of(&path, &stored.report)? => (None, Some(path)),
            own => (own, None),
        };
        Ok(Self { shown, stored: Some(stored), samples, foreign })
    }

    /// The result; where there is none, what the samples say.
    pub(super) fn report(&self, keep_cold: bool) -> Result<Report> {
        match &self.stored {
            Some(stored) => Ok(stored.report.clone()),
            None => self.histograms(keep_cold),
        }
    }

    /// The report with histograms as fine as they are: from the samples where there are any.
    pub(super) fn histograms(&self, keep_cold: bool) -> Result<Report> {
        match (&self.samples, &self.stored) {
            (Some(path), _) => {
                let args = ReportArgs { keep_cold, ..ReportArgs::default() };
                let file = BufReader::new(regular(path)?);
                let read = analyse::samples::read(&args, file);
                Ok(read.with_context(|| path.display().to_string())?.into_report())
            }
            (None, Some(stored)) => Ok(stored.report.clone()),
            (None, None) => bail!("{}: nothing to export", self.shown),
        }
    }

    /// The samples.
    pub(super) fn samples(&self) -> Result<(SampleFileReader<BufReader<File>>, String)> {
        if let Some(path) = &self.foreign {
            bail!(
                "{}: the samples next to it, {}, belong to another run: name that file to export \
                 it",
                self.shown,
                path.display()
            );
        }
        let Some(path) = &self.samples else {
            bail!(
                "{}: no samples: they are in {SAMPLES} next to the {RESULT} of 'punctual check', \
                 or where 'punctual measure --samples' wrote them; this file can be exported with \
                 --histogram, --hdr and --openmetrics",
                self.shown
            );
        };
        let shown = path.display().to_string();
        let file = SampleFileReader::open(BufReader::new(regular(path)?))
            .with_context(|| shown.clone())?;
        Ok((file, shown))
    }

    /// What is to be said of samples that were cut off or damaged, when `report` is of them.
    pub(super) fn cut(&self, report: &Report) -> Vec<String> {
        let path = self.samples.as_ref().filter(|_| report.envelope.incomplete);
        let said =
            |path: &PathBuf| format!("{}: {}", path.display(), report.envelope.warnings.join("; "));
        path.filter(|_| {
            !report.envelope.warnings.is_empty() && report.envelope.experiment == "analyse"
        })
        .map(said)
        .into_iter()
        .collect()
    }

    /// What the result says beside its runs.
    pub(super) fn stored(&self) -> Option<&Report> {
        self.stored.as_ref().map(|stored| &stored.report)
    }
}

/// Whether a sample file is of this result; one that cannot be read is, and says why later.
fn are_of(path: &Path, report: &Report) -> Result<bool> {
    let file = SampleFileReader::open(BufReader::new(regular(path)?));
    Ok(file.map_or(true, |file| stored::is_of(report, &file.info().started_at)))
}

/// Of another program's file, what it is; of any other, why it is no result.
fn foreign(path: &Path, why: Error) -> Error {
    let shown = path.display();
    match analyse::format_of(path) {
        Ok(Some(format)) if !path.is_dir() => {
            let program = format.writers.first().map_or(format.name, |writer| writer.program);
            anyhow!(
                "{shown}: a recording of {program}; export takes results of punctual: write one \
                 with 'punctual analyse {shown} --json FILE'"
            )
        }
        _ => why,
    }
}
