//! A result that an earlier run wrote, read back as the report that it was.
//!
//! For every subcommand that takes a RESULT. Opens regular files only: a pipe is never waited for.
//! The meaning of a result of a newer schema is not guessed.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use punctual_analysis::plain::plain_spaces;
use punctual_core::file::FILE_MAGIC;
use punctual_import::samples::FileEnding;
use punctual_report::{Report, Run, SCHEMA};
use serde::Deserialize;

use crate::format;
use crate::program::PROGRAM;
use crate::unpacked::unpacked;

/// The name of the result in the directory of a run.
pub(crate) const RESULT: &str = "result.json";
/// The name of the samples next to it.
pub(crate) const SAMPLES: &str = "samples.punctual";
/// The link beside the directories of runs that leads to the last one that has a result.
pub(crate) const LATEST: &str = "latest";
/// The name of the page next to it, and of that of a directory of results.
pub(crate) const PAGE: &str = "report.html";
/// The names of a campaign's state, which take turns.
pub(crate) const STATES: [&str; 2] = ["state-0.punctual", "state-1.punctual"];
/// The name of the file that the process at work on a campaign locks.
pub(crate) const LOCK: &str = "lock";

/// Where journals are, unless another directory is named.
pub(crate) const STATE: &str = "/var/lib/punctual";

/// The most bytes of a result; one of a thousand runs has less.
const BYTES_MAX: u64 = 64 << 20;

/// A result read back, and where it was.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The report. Parts that JSON leaves out (histograms in full resolution, tails) are empty.
    pub(crate) report: Report,
    /// The samples next to it, where they were kept.
    pub(crate) samples: Option<PathBuf>,
}

impl Stored {
    /// Its runs: all, or the one of this name; where none has it, the only one that a table may
    /// show so.
    ///
    /// # Errors
    /// It has none, or none of this name, or several are shown so.
    pub(crate) fn runs(&self, name: Option<&str>) -> Result<Vec<&Run>> {
        let shown = self.path.display();
        let runs: Vec<&Run> = self.report.body.runs().iter().collect();
        let Some(name) = name else {
            if runs.is_empty() {
                bail!("{shown}: no runs in this result");
            }
            return Ok(runs);
        };
        let found = |is_it: fn(&Run, &str) -> bool| -> Vec<&Run> {
            runs.iter().copied().filter(|run| is_it(run, name)).collect()
        };
        let named = found(is_name);
        if !named.is_empty() {
            return Ok(named);
        }
        let names = |runs: &[&Run]| {
            let names: Vec<String> = runs.iter().map(|run| format!("{:?}", run.name)).collect();
            names.join(", ")
        };
        let shown_so = found(is_shown_as);
        match shown_so.as_slice() {
            [] => bail!("{shown}: no run {name:?}; the runs are: {}", names(&runs)),
            [_] => Ok(shown_so),
            [..] => bail!("{shown}: several runs are shown as {name:?}: {}", names(&shown_so)),
        }
    }

    /// The note that the samples beside it lack releases that it counts; `None` where they have all
    /// of them. `held` are the releases of each run in them.
    pub(crate) fn lacking<'a>(
        &self,
        is_cut_off: bool,
        held: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Option<String> {
        let (name, held, counted) = held.into_iter().find_map(|(name, held)| {
            let counted = releases_in_samples(self.run(name)?);
            (held < counted).then_some((name, held, counted))
        })?;
        let is_cut_off = is_cut_off && !self.report.envelope.incomplete;
        Some(format!(
            "{}{} {} of the {} releases of '{name}'",
            self.samples.as_ref()?.display(),
            if is_cut_off { " was cut off and has" } else { " has" },
            format::count(held),
            format::count(counted),
        ))
    }

    /// The note that its counts are used, for this reason, and not the samples beside it.
    pub(crate) fn by_counts(&self, why: &str) -> String {
        format!("{why}, so the counts of {} are used", self.path.display())
    }

    /// The run of this name; `None` where it has none.
    pub(crate) fn run(&self, name: &str) -> Option<&Run> {
        self.report.body.runs().iter().find(|run| is_name(run, name))
    }
}

/// The releases of a run that its samples are to have. Cold cycles are not compared, and the
/// figures of `--keep-cold` have them.
pub(crate) fn releases_in_samples(run: &Run) -> u64 {
    let outcome = &run.outcome;
    let recorded = outcome.releases().saturating_sub(outcome.unrecorded);
    let ran = recorded.saturating_sub(outcome.missed.unwrap_or_default());
    recorded.saturating_sub(if ran < outcome.cycles { 0 } else { outcome.cold })
}

/// Returns true where a run has this name, whatever the kind of its spaces: a name may be copied
/// from a page.
fn is_name(run: &Run, name: &str) -> bool {
    plain_spaces(&run.name) == plain_spaces(name)
}

/// Returns true where a table may show a run so: by its period, with its condition or without, or
/// by its name without the CPU.
fn is_shown_as(run: &Run, shown: &str) -> bool {
    let period = run.setup.period_ns.map(format::period);
    let under = period.as_ref().map(|period| format!("{period}, {}", run.condition()));
    let cpu = run.setup.cpu.map(|cpu| format!("CPU {cpu}, "));
    let name = plain_spaces(&run.name);
    let rest = cpu.and_then(|cpu| name.strip_prefix(&cpu).map(ToOwned::to_owned));
    let shown = plain_spaces(shown);
    [period, under, rest].into_iter().flatten().any(|text| plain_spaces(&text) == shown)
}

/// Tells whether samples of a recording that began at `started_at` are those of this result: each
/// run says when it began, to the nanosecond.
pub(crate) fn is_of(report: &Report, started_at: &str) -> bool {
    report.envelope.started_at.as_deref().unwrap_or_default() == started_at
}

/// A regular file, opened.
pub(crate) fn regular(path: &Path) -> Result<File> {
    let shown = path.display();
    // Looked at first: a pipe would be waited for.
    let meta = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !meta.is_file() {
        bail!("{shown}: neither a regular file nor a directory");
    }
    File::open(path).with_context(|| format!("cannot read {shown}"))
}

/// Returns true where a file begins as a sample file does.
pub(crate) fn is_samples(path: &Path) -> Result<bool> {
    let begins = begins_as_samples(regular(path)?);
    begins.with_context(|| format!("cannot read {}", path.display()))
}

/// Returns true where gzip packed a sample file.
fn are_packed_samples(path: &Path) -> Result<bool> {
    let plain = unpacked(BufReader::new(regular(path)?));
    // Whoever reads on names what is wrong with one that cannot be unpacked.
    Ok(plain.and_then(begins_as_samples).unwrap_or(false))
}

fn begins_as_samples(reader: impl Read) -> io::Result<bool> {
    let mut head = Vec::new();
    reader.take(FILE_MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == FILE_MAGIC)
}

/// The note about a sample file that did not end as it should; `done` says what was done with it,
/// as "read up to there". `None` where it is complete.
pub(crate) fn ended(ending: Option<&FileEnding>, done: &str) -> Option<String> {
    match ending {
        Some(FileEnding::Complete) => None,
        Some(FileEnding::Early) => Some("the recording ended early".to_owned()),
        Some(FileEnding::Damaged { at_byte, why }) => {
            Some(format!("the sample file is damaged at byte {at_byte} ({why}): {done}"))
        }
        Some(FileEnding::Incomplete) | None => Some(format!("the sample file was cut off: {done}")),
    }
}

/// The keys that every schema has.
#[derive(Deserialize)]
struct Head {
    schema: u64,
    tool: String,
    #[serde(default)]
    version: String,
}

/// The keys of a baseline, whatever its layout.
#[derive(Deserialize)]
struct BaselineHead {
    baseline: u64,
    #[serde(default)]
    name: String,
}

/// Reads the result at `path`: a file, or the directory of a run.
pub(crate) fn read(path: &Path) -> Result<Stored> {
    let kind = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if kind.is_dir() {
        refuse_several(path)?;
    }
    let path = if kind.is_dir() { path.join(RESULT) } else { path.to_owned() };
    let shown = path.display();
    let report = parse(&text(&path)?).with_context(|| format!("{shown}"))?;
    // Beside night.json stands night.punctual, where `--samples` named it so.
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let named = if is_packed { path.with_extension("") } else { path.clone() };
    let beside = [path.with_file_name(SAMPLES), named.with_extension("punctual")];
    let samples = beside.into_iter().find(|samples| samples.is_file());
    Ok(Stored { samples, report, path })
}

/// Reads a result that comes from standard input, and has no samples beside it.
pub(crate) fn read_from(reader: impl Read) -> Result<Stored> {
    let path = PathBuf::from("-");
    let report = whole(reader, "-").and_then(|text| parse(&text).context("-"))?;
    Ok(Stored { samples: None, report, path })
}

/// The directories in `dir` that hold a result, sorted; at most `most` and one more. The link to
/// the last one is no other result.
pub(crate) fn results_in(dir: &Path, most: usize) -> Result<Vec<PathBuf>> {
    let shown = dir.display();
    let mut inside = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {shown}"))? {
        let entry = entry.with_context(|| format!("cannot read {shown}"))?;
        if entry.file_name() != LATEST && entry.path().join(RESULT).is_file() {
            inside.push(entry.path());
        }
        if inside.len() > most {
            break;
        }
    }
    inside.sort();
    Ok(inside)
}

/// The most results that a refusal names.
const NAMED_MAX: usize = 4;

/// Refuses a directory that is no result and holds some, by their names.
pub(crate) fn refuse_several(dir: &Path) -> Result<()> {
    if dir.join(RESULT).exists() {
        return Ok(());
    }
    let results = results_in(dir, usize::MAX)?;
    let Some(first) = results.first() else { return Ok(()) };
    let mut named: Vec<String> = results.iter().map(|path| path.display().to_string()).collect();
    if named.len() > NAMED_MAX {
        let left = named.len() - (NAMED_MAX - 1);
        named.truncate(NAMED_MAX - 1);
        named.push(format!("{left} more"));
    }
    bail!(
        "{}: no {RESULT} in it, but results in the directories in it: {}; name one of them, e.g. \
         {}",
        dir.display(),
        named.join(", "),
        first.display()
    )
}

fn text(path: &Path) -> Result<String> {
    let shown = path.display();
    let kind = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !kind.is_file() {
        bail!(
            "{shown}: not a result: expected a regular file, or a directory that contains \
             {RESULT}"
        );
    }
    if is_samples(path)? {
        bail!(
            "{shown}: these are samples, not a result: 'punctual analyse' and 'punctual report' \
             read them, and --json of 'punctual analyse' writes a result"
        );
    }
    if are_packed_samples(path)? {
        bail!("{shown}: these are packed samples: unpack them first (gunzip)");
    }
    whole(File::open(path).with_context(|| format!("cannot read {shown}"))?, &shown.to_string())
}

/// The text of the result that is called `shown`, unpacked.
fn whole(reader: impl Read, shown: &str) -> Result<String> {
    let mut text = String::new();
    unpacked(BufReader::new(reader))
        .with_context(|| format!("cannot read {shown}"))?
        .take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("{shown}: not a result of punctual"))?;
    if text.len() as u64 > BYTES_MAX {
        bail!("{shown}: not a result of punctual: more than {} MiB", BYTES_MAX >> 20);
    }
    Ok(text)
}

/// The refusal of what is no result of this program, with the way to make one.
const NO_RESULT: &str = "not a result of punctual: 'punctual analyse FILE --json RESULT' makes one \
                         of what others recorded, CSV and cyclictest's output among them";

/// The refusal of JSON without its end.
const CUT_OFF: &str = "not a whole result: the file was cut off";

/// A report from its JSON; the error has line and column.
fn parse(text: &str) -> Result<Report> {
    if let Ok(BaselineHead { baseline: 1.., name }) = serde_json::from_str(text) {
        bail!(
            "this is a baseline, which is no result: 'punctual check --against {name}' holds a run \
             against it, 'punctual analyse RESULT --against {name}' what was recorded, and \
             'punctual baseline show {name}' shows it; --baselines names its directory"
        );
    }
    if text.trim().is_empty() {
        bail!("not a result of punctual: the file is empty");
    }
    // Where the text ends is worth a word; where it became something else is not.
    let head: Head = serde_json::from_str(text).map_err(|why| match why.is_eof() {
        true => Error::new(why).context(CUT_OFF),
        false => anyhow!(NO_RESULT),
    })?;
    if head.tool != "punctual" {
        bail!(NO_RESULT);
    }
    if head.schema == 1 {
        bail!(
            "schema 1, whose lateness leaves out missed releases: this version reads schema \
             {SCHEMA}; 'punctual analyse' makes a new result from the samples next to it"
        );
    }
    if head.schema != u64::from(SCHEMA) {
        bail!("schema {}: this version reads schema {SCHEMA}", head.schema);
    }
    Report::parse(text).map_err(|why| match is_newer(&head.version) {
        true => Error::new(why).context(format!(
            "written by punctual {}, and this is {}, which does not know all that is in it: read \
             it with {0} or later",
            head.version, PROGRAM.version
        )),
        false => Error::new(why),
    })
}

/// True for a version later than this.
fn is_newer(version: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        version.split('.').map(|number| number.parse().ok()).collect()
    };
    numbers(version) > numbers(PROGRAM.version)
}

#[cfg(test)]
pub(crate) mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_report::measured::Measured;
    use punctual_report::{
        Body, CheckBody, EndedBy, Headline, Judged, LoopsBody, QuestionSpec, Setup,
    };

    use super::*;
    use crate::view;

    /// A result of `check` with runs of these names, periods and loads, for this question.
    pub(crate) fn checked(
        runs: &[(&str, u64, &[&str])],
        question_spec: Option<QuestionSpec>,
    ) -> Stored {
        let run = |&(name, period_ns, load): &(&str, u64, &[&str])| {
            let setup = Setup {
                cpu: Some(1),
                period_ns: Some(period_ns),
                policy: Some("SCHED_FIFO".to_owned()),
                load: load.iter().map(|&load| load.to_owned()).collect(),
                duration_ns: Some(1_000_000_000),
                ..Setup::default()
            };
            let recording = Recording::new(RecordingConfig::default());
            Run::recorded(name.to_owned(), setup, recording.finish(0))
        };
        let headline = Some(Headline { question_spec, ..Headline::default() });
        let judged = Judged { runs: runs.iter().map(run).collect(), headline, ..Judged::default() };
        let loops = LoopsBody { judged, ..LoopsBody::default() };
        let report = Report::new(PROGRAM, "check", CheckBody { loops, ..CheckBody::default() });
        Stored { path: PathBuf::from("result.json"), report, samples: None }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut report = Report::new(PROGRAM, "check", CheckBody::default());
        report.envelope.warn("a \u{1b}[2J warning".to_owned());
        let written = view::json(&report).expect("JSON");
        let read = parse(&written).expect("a report");
        assert_eq!(view::json(&read).expect("JSON"), written);
    }

    /// Written by version 0.1.0, which gave every kind of result the keys of all kinds.
    #[test]
    fn results_are_read_by_their_kind_and_those_of_schema_1_refused_in_a_sentence() {
        // As that version wrote them; and as if they were of today's schema.
        let parse = |text: &str| {
            let why = parse(text).expect_err("an older schema").to_string();
            assert!(why.contains("schema 1, whose lateness leaves out missed releases"), "{why}");
            parse(&text.replacen("\"schema\": 1", "\"schema\": 2", 1))
        };
        let periodic = parse(include_str!("../tests/results/periodic-0.1.0.json"));
        let periodic = periodic.expect("a result");
        assert_eq!(periodic.body.runs().len(), 1);
        assert!(periodic.body.loops().is_some_and(|loops| loops.recording.is_some()));
        let executive = parse(include_str!("../tests/results/executive-0.1.0.json"));
        let Body::Measured(Measured::Executive(costs)) = executive.expect("a result").body else {
            panic!("its kind")
        };
        assert_eq!(costs.rows.len(), 10);
        assert!(costs.turn.is_some());
        let compare = parse(include_str!("../tests/results/compare-0.1.0.json"));
        assert_eq!(
            compare.expect("a result").body.compare().map(|compared| compared.pairs.len()),
            Some(1)
        );
        let soak = parse(include_str!("../tests/results/soak-0.1.0.json"));
        let Body::Soak(soak) = soak.expect("a result").body else { panic!("its kind") };
        assert_eq!((soak.judged.runs.len(), soak.campaign.boots.len()), (1, 1));
    }

    #[test]
    fn what_only_a_later_version_knows_is_refused_with_its_version() {
        let mut report = Report::new(PROGRAM, "check", CheckBody::default());
        report.envelope.incomplete = true;
        report.envelope.ended_by = Some(EndedBy::Load);
        let written = view::json(&report).expect("JSON").replace("\"load\"", "\"meteorite\"");
        let own = format!("{:#}", parse(&written).expect_err("no such cause"));
        assert!(own.contains("corrupt") && !own.contains("or later"), "{own}");
        let from = |version: &str| {
            let text = written.replacen(PROGRAM.version, version, 1);
            format!("{:#}", parse(&text).expect_err("no such cause"))
        };
        let later = from("12.0.0");
        assert!(later.starts_with("written by punctual 12.0.0, and this is "), "{later}");
        assert!(later.contains("read it with 12.0.0 or later"), "{later}");
        assert!(!from("0.0.9").contains("or later") && !from("x").contains("or later"));
    }

    #[test]
    fn the_samples_beside_it_are_found() {
        let dir = std::env::temp_dir().join(format!("punctual-stored-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        let written =
            view::json(&Report::new(PROGRAM, "check", CheckBody::default())).expect("JSON");
        fs::write(dir.join(RESULT), written).expect("writable");
        assert!(read(&dir).expect("a result").samples.is_none());
        fs::write(dir.join(SAMPLES), "").expect("writable");
        let stored = read(&dir.join(RESULT)).expect("a result");
        assert_eq!(stored.samples, Some(dir.join(SAMPLES)));
        fs::remove_file(dir.join(SAMPLES)).expect("it was made here");
        let (night, samples) = (dir.join("night.json"), dir.join("night.punctual"));
        fs::rename(dir.join(RESULT), &night).expect("it was made here");
        fs::write(&samples, "").expect("writable");
        assert_eq!(read(&night).expect("a result").samples, Some(samples));
        fs::remove_dir_all(&dir).expect("it was made here");
    }

    #[test]
    fn samples_are_not_read_as_a_result() {
        let path = std::env::temp_dir().join(format!("punctual-samples-{}", std::process::id()));
        fs::write(&path, [&FILE_MAGIC[..], b"\xff"].concat()).expect("writable");
        let why = format!("{:#}", read(&path).expect_err("refused"));
        assert!(why.contains("'punctual analyse' and 'punctual report' read them"), "{why}");
        let packed = File::create(&path).expect("writable");
        let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
        io::Write::write_all(&mut packed, &FILE_MAGIC).expect("writable");
        drop(packed);
        let why = format!("{:#}", read(&path).expect_err("refused"));
        assert!(why.ends_with("packed samples: unpack them first (gunzip)"), "{why}");
        fs::remove_file(&path).expect("it was made here");
    }

    #[test]
    fn what_is_no_result_of_ours_is_refused_with_the_reason() {
        let why = |text: &str| format!("{:#}", parse(text).expect_err("refused"));
        assert_eq!(why(" \n"), "not a result of punctual: the file is empty");
        assert_eq!(why("{}"), NO_RESULT, "without what the parser says");
        let cut = r#"{"schema":2,"tool":"punctual","verdict":"#;
        assert!(why(cut).starts_with("not a whole result: the file was cut off"), "{}", why(cut));
        assert!(why(r#"{"schema":1}"#).contains("not a result of punctual"));
        assert!(why(r#"{"schema":1,"tool":"other"}"#).contains("not a result of punctual"));
        let baseline = why(r#"{"tool":"punctual","baseline":2,"name":"good","kept_at":""}"#);
        assert!(baseline.starts_with("this is a baseline") && !baseline.contains("schema"));
        assert!(baseline.contains("analyse RESULT --against good"), "{baseline}");
        assert!(why(r#"{"schema":3,"tool":"punctual"}"#).contains("schema 3"));
        assert!(why(r#"{"schema":2,"tool":"punctual"}"#).contains("corrupt"));
        let older = why(r#"{"schema":1,"tool":"punctual"}"#);
        assert!(older.contains("missed releases") && older.contains("analyse"), "{older}");
        let unknown =
            view::json(&Report::new(PROGRAM, "dance", CheckBody::default())).expect("JSON");
        assert!(why(&unknown).contains("experiment \"dance\""), "{}", why(&unknown));
    }

    #[test]
    fn a_run_is_taken_by_what_a_table_shows_of_it_where_that_is_its_own() {
        let names = |stored: &Stored, name: &str| -> Result<Vec<String>, String> {
            let runs = stored.runs(Some(name)).map_err(|why| why.to_string())?;
            Ok(runs.iter().map(|run| run.name.clone()).collect())
        };
        let one = [("CPU 1, 25 µs", 25_000, &[][..]), ("CPU 1, 1 ms", 1_000_000, &[][..])];
        let stored = checked(&one, None);
        for shown in ["1 ms", "1\u{a0}ms", "CPU 1, 1 ms"] {
            assert_eq!(names(&stored, shown), Ok(vec!["CPU 1, 1 ms".to_owned()]), "{shown}");
        }
        let several = [
            ("CPU 1, 1 ms, idle", 1_000_000, &[][..]),
            ("CPU 1, 1 ms, loaded", 1_000_000, &["cpu"][..]),
        ];
        let stored = checked(&several, None);
        assert_eq!(names(&stored, "1 ms, loaded"), Ok(vec!["CPU 1, 1 ms, loaded".to_owned()]));
        let why = names(&stored, "1 ms").expect_err("two");
        assert!(why.contains("several runs are shown as") && why.contains("loaded"), "{why}");
        let why = names(&stored, "2 ms").expect_err("none");
        assert!(why.contains("no run") && why.contains("1 ms, idle"), "{why}");
    }
}
