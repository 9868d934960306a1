//! Properties of every parser, whatever its input: the bodies of the fuzz target.
//!
//! For `fuzz/fuzz_targets/parser.rs`, and for the test that replays `fuzz/corpus` on stable. A body
//! panics when something does not hold: a panic inside the parser, an error that is no single
//! line, a round trip that does not come back. Only the body `facts` touches files: a folder of its
//! own below the temporary one.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_analysis::campaign::{Campaign, CampaignFileError, HEADER_BYTES, MAGIC, VERSION};
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::count::{EventCount, Separate};
use punctual_analysis::claim::judge::{Holds, StoppingRule, judge};
use punctual_analysis::claim::plan::Planned;
use punctual_analysis::limit::MetricLimit;
use punctual_analysis::quantile::Probability;
use punctual_analysis::quantity;
use punctual_analysis::recording::{Recording, RecordingConfig, RunFigures};
use punctual_core::file::{BLOCK_HEADER_BYTES, FILE_HEADER_BYTES};
use punctual_core::sample::{SAMPLE_BYTES, Sample};
use punctual_core::time::{Instant, Period};
use punctual_engine::process::{Request, answer, answered, is_name};
use punctual_host::capture::manifest::{MANIFEST, Manifest};
use punctual_host::cmdline::{CommandLine, Isolcpus, Param};
use punctual_host::cpulist::{CpuList, MAX_CPUS};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::scrub::Scrub;
use punctual_import::csv::{ColumnSpec, CsvFile, TimeUnit};
use punctual_import::formats::{
    self, Format, HEAD_BYTES, ImportRequest, ImportedRun, detect, read,
};
use punctual_import::samples::{FileEnding, OpenError, SampleFileReader, count_samples};
use punctual_lab::load::Loads;
use punctual_lab::tasks::{TASKS_MAX, TaskFile};
use punctual_trace::capture::{self, CaptureFormat};
use punctual_trace::decode::{Decoder, RecordPlace};
use punctual_trace::encode::own_formats;
use punctual_trace::event::TraceEvent;
use punctual_trace::format::EventFormat;
use punctual_trace::perf_record::{RecordedEvent, SampleLayout};
use punctual_trace::perf_stream::{PerfSource, PerfStream, StreamItem};
use punctual_trace::reasons::IpiReasons;
use punctual_trace::symbols::Symbols;
use punctual_trace::write::ndjson::NdjsonWriter;

/// Looks at one input; panics when something does not hold.
pub type Body = Box<dyn Fn(&[u8]) + Send + Sync>;

/// A parser's name and body.
type Own = (&'static str, fn(&[u8]));

/// Every parser but those of other programs' files, by the name of its folder of seeds.
const OWN: &[Own] = &[
    ("campaign", campaign),
    ("claim", claim),
    ("cmdline", cmdline),
    ("column_spec", column_spec),
    ("cpulist", cpulist),
    ("csv", csv),
    ("duration", duration),
    ("facts", facts),
    ("import_detect", detected),
    ("join_request", join_request),
    ("limit", limit),
    ("loads", loads),
    ("manifest", manifest),
    ("quantity", quantity),
    ("run_figures", run_figures),
    ("samples_file", samples_file),
    ("scrub", scrub),
    ("tasks_file", tasks_file),
    ("trace_capture", trace_capture),
    ("trace_format", trace_format),
    ("trace_kallsyms", trace_kallsyms),
    ("trace_reasons", trace_reasons),
    ("trace_ring", trace_ring),
];

/// Every parser by the name of its folder of seeds: those of this crate, and `import_NAME` for each
/// row of the table of formats.
pub fn all() -> Vec<(String, Body)> {
    let own = OWN.iter().map(|&(name, body)| (name.to_owned(), Box::new(body) as Body));
    let formats = formats::ALL.iter().map(|format| {
        let body = move |data: &[u8]| read_as(format, data);
        (format!("import_{}", format.name), Box::new(body) as Body)
    });
    own.chain(formats).collect()
}

/// Asserts that a file's error fits in one line behind the name of the file.
fn one_line(error: &dyn Display) {
    says_why("", error);
}

/// An error says something, in one line; where it repeats what a person wrote, it has the line
/// breaks of that, and no more.
fn says_why(written: &str, error: &dyn Display) {
    let text = error.to_string();
    assert!(!text.trim().is_empty(), "an error without words");
    let breaks = |text: &str| text.matches(['\n', '\r']).count();
    assert!(breaks(&text) <= breaks(written), "an error of several lines: {text:?}");
}

/// Reads the bytes as they are, then as the JSON behind a header that fits, so that what lies
/// behind the checksum is reached too. What is taken comes back the same, can be summed up, and is
/// refused once a bit is wrong.
fn campaign(data: &[u8]) {
    if let Err(why) = Campaign::from_bytes(data) {
        one_line(&why);
    }
    let json = data.strip_prefix(&MAGIC[..]).and_then(|_| data.get(HEADER_BYTES..)).unwrap_or(data);
    let mended = with_header(json);
    let campaign = match Campaign::from_bytes(&mended) {
        Ok((campaign, number)) => {
            assert_eq!(number, 7);
            campaign
        }
        Err(why) => {
            assert!(
                matches!(why, CampaignFileError::Json(_) | CampaignFileError::Numbers),
                "mended: {why}"
            );
            one_line(&why);
            return;
        }
    };
    let mut bytes = campaign.to_bytes(8);
    let read = Campaign::from_bytes(&bytes).expect("what was written is read");
    assert_eq!(read, (campaign.clone(), 8));
    for total in campaign.pools().iter().flat_map(|pool| pool.totals()) {
        let outcome = total.outcome();
        assert_eq!(outcome.cycles, total.cycles());
    }
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert_eq!(Campaign::from_bytes(&bytes), Err(CampaignFileError::Checksum));
}

fn with_header(json: &[u8]) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::from(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(7u64.to_le_bytes());
    let crc = crc32(&[&bytes[..], json].concat());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(json);
    bytes
}

/// Whatever capture it is, it ends; what was read of it comes back from NDJSON the same.
fn trace_capture(data: &[u8]) {
    let mut reader = match capture::open(std::io::Cursor::new(data)) {
        Ok(reader) => reader,
        Err(why) => return one_line(&why),
    };
    let mut events = Vec::new();
    loop {
        match reader.next_event() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break,
            Err(why) => {
                one_line(&why);
                break;
            }
        }
    }
    let facts = reader.facts();
    assert_eq!(facts.counts().events, events.len() as u64);
    facts.untold().iter().for_each(|untold| one_line(untold));
    if let Some(problem) = facts.first_problem() {
        one_line(&problem);
    }
    // NDJSON is read as text, where names that are no UTF-8 are replaced; so they were, once read.
    if facts.format() == CaptureFormat::Ndjson {
        let symbols = facts.symbols().clone();
        let mut writer = NdjsonWriter::new(Vec::new(), facts.clock(), symbols).expect("to memory");
        events.iter().for_each(|event| writer.write(event).expect("to memory"));
        let bytes = writer.finish().expect("to memory");
        let mut again = capture::open(std::io::Cursor::new(&bytes)).expect("what was written");
        let same: Vec<TraceEvent> =
            std::iter::from_fn(|| again.next_event().expect("what was written")).collect();
        // Lines that became too long are the only ones that do not come back.
        let undecodable = again.facts().counts().undecodable;
        assert_eq!(same.len() as u64 + undecodable, events.len() as u64);
        // Each reader numbers the names of functions for itself, so lines are compared.
        let symbols = again.facts().symbols().clone();
        let mut writer = NdjsonWriter::new(Vec::new(), facts.clock(), symbols).expect("to memory");
        same.iter().for_each(|event| writer.write(event).expect("to memory"));
        let rewritten = writer.finish().expect("to memory");
        let mut lines = bytes.split(|&byte| byte == b'\n');
        for line in rewritten.split(|&byte| byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            assert!(lines.any(|written| written == line), "was not written before: {text}");
        }
        if undecodable == 0 && facts.symbols().functions().next().is_none() {
            assert_eq!(same, events);
        }
    }
}

/// A format that was read has its text, and each field that it says is found by its name.
fn trace_format(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match EventFormat::parse("sched", &text) {
        Ok(format) => {
            assert_eq!(format.text(), text);
            for field in format.fields() {
                assert!(format.field(field.name()).is_some());
            }
            let decoder = Decoder::new([&format]);
            decoder.unusable().iter().for_each(|why| one_line(why));
            let raw = [&format.id().to_le_bytes()[..], data].concat();
            if let Some(Err(why)) = decoder.decode(&raw, RecordPlace::default(), Box::default()) {
                one_line(&why);
            }
        }
        Err(why) => one_line(&why),
    }
}

/// The bytes behind the beginning of a function that are taken for its code.
const FUNCTION_BYTES: u64 = 1 << 20;

/// Each function is found at its beginning, and an address around one in the function that a walk
/// over all of them finds.
fn trace_kallsyms(data: &[u8]) {
    let symbols = Symbols::parse(data).expect("a short one");
    assert!(!symbols.is_hidden() || symbols.is_empty());
    let functions: Vec<(u64, &str)> = symbols.functions().collect();
    assert_eq!(functions.len(), symbols.len());
    for &(begins, name) in functions.iter().take(20) {
        assert!(!name.is_empty(), "a function without a name at {begins:#x}");
        for offset in [-1, 0, 1, FUNCTION_BYTES.cast_signed()] {
            let Some(address) = begins.checked_add_signed(offset) else { continue };
            let before = functions.iter().filter(|(begins, _)| *begins <= address);
            let walked = before
                .max_by_key(|(begins, _)| *begins)
                .map(|&(begins, name)| (name, address - begins))
                .filter(|&(_, offset)| offset < FUNCTION_BYTES);
            let found = symbols.find(address).map(|symbol| (symbol.name, symbol.offset));
            assert_eq!(found, walked, "{address:#x}");
        }
    }
}

/// A line that is a reason by itself is one among others too.
fn trace_reasons(data: &[u8]) {
    let whole = IpiReasons::parse(data);
    for line in data.split(|&byte| byte == b'\n').take(100) {
        let is_none = IpiReasons::parse(line) == IpiReasons::default();
        assert!(is_none || whole != IpiReasons::default());
    }
}

/// The first word decides what records have; the rest is a ring.
fn trace_ring(data: &[u8]) {
    let Some((head, mut ring)) = data.split_first_chunk() else { return };
    let layout = SampleLayout {
        sample_type: u64::from_le_bytes(*head),
        read_format: 0x1f,
        is_stamped: true,
    };
    let event = |ids: &[u64]| RecordedEvent { layout, ids: ids.to_vec() };
    let events = [(event(&[1, 2]), PerfSource::Tracepoint), (event(&[3]), PerfSource::PageFaults)];
    let formats = own_formats();
    let stream = match PerfStream::new(&events, Decoder::new(&formats)) {
        Ok(stream) => stream,
        Err(why) => return one_line(&why),
    };
    loop {
        match stream.layouts().first(ring) {
            Ok(Some(first)) => {
                if let StreamItem::Undecodable(why) =
                    stream.item(&first.record, RecordPlace::default())
                {
                    one_line(&why);
                }
                ring = &ring[first.bytes..];
            }
            Ok(None) => break,
            Err(why) => return one_line(&why),
        }
    }
}

/// A file that was read names at least one task and not too many, each once.
fn tasks_file(data: &[u8]) {
    match TaskFile::parse(data) {
        Ok(file) => {
            assert!((1..=TASKS_MAX).contains(&file.tasks.len()));
            let mut names: Vec<&str> =
                file.tasks.iter().map(|task| task.spec.task.name()).collect();
            assert!(names.iter().all(|name| is_name(name)), "{names:?}");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), file.tasks.len(), "a name stands twice");
            assert!(file.shortest().is_some());
            assert!(file.tasks.iter().all(|task| task.line > 0));
            assert!(file.tasks.iter().all(|task| task.spec.safe.len() % 8 == 0));
        }
        Err(error) => one_line(&error),
    }
}

/// A request that was read is written and read again as itself; an answer never takes two lines.
fn join_request(data: &[u8]) {
    match Request::parse(data) {
        Ok(request) => {
            assert_eq!(Request::parse(request.line().as_bytes()).as_ref(), Ok(&request));
        }
        Err(why) => one_line(&why),
    }
    let text = String::from_utf8_lossy(data);
    let line = answer(Some(&text));
    assert_eq!(line.matches('\n').count(), 1, "{line:?}");
    assert!(answered(line.as_bytes()).is_err(), "{line:?} grants what was refused");
    if let Err(why) = answered(data) {
        assert!(!why.contains(|c: char| c.is_control()), "{why:?}");
    }
}

/// Which program wrote a file: any bytes may be looked at, and then the file is read.
fn detected(data: &[u8]) {
    if let Some(format) = detect(&data[..data.len().min(HEAD_BYTES)]) {
        read_as(format, data);
    }
}

/// Reads the file in whole and in pieces, which gives the same runs or the same refusal.
fn read_as(format: &Format, data: &[u8]) {
    let request = ImportRequest { thresholds_ns: vec![-7, 50_000], unit_ns: Some(1_000) };
    let whole = read(format, data, &request);
    let (first, rest) = data.split_at(data.len() / 3);
    let pieces = read(format, Read::chain(first, rest), &request);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert!(!whole.runs.is_empty(), "a file without a run");
            // Figures that are no numbers differ from themselves, and not as text.
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
            whole.runs.iter().for_each(sound);
        }
        (Err(whole), Err(pieces)) => {
            one_line(&whole);
            assert_eq!(whole.to_string(), pieces.to_string());
        }
        (whole, pieces) => panic!("in whole {}, in pieces {}", whole.is_ok(), pieces.is_ok()),
    }
}

/// Asserts what must hold of every run, whatever was read.
fn sound(run: &ImportedRun) {
    assert!(!run.name.chars().any(char::is_control), "{:?}", run.name);
    let outcome = &run.outcome;
    let imported = outcome.imported.as_ref().expect("another program's");
    let values = &imported.values_ns;
    let n = outcome.cycles;
    let buckets = &outcome.histogram.buckets;
    let counted: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    assert!(counted + outcome.histogram.overflow >= imported.overflow && counted <= n);
    assert!(buckets.windows(2).all(|pair| pair[0].lower_ns < pair[1].lower_ns));
    assert!(buckets.iter().all(|bucket| bucket.lower_ns < bucket.upper_ns && bucket.count > 0));
    let rising = [values.min, values.mean, values.max];
    assert!(rising.iter().flatten().is_sorted(), "{values:?}");
    let quantiles = [values.p50, values.p90, values.p99, values.p99_9, values.p99_99];
    for (p, quantile) in Probability::SUMMARY.iter().zip(quantiles) {
        assert!(quantile.is_none() || p.is_supported(n), "{p} of {n}");
    }
    for claim in &outcome.claims {
        assert!(!claim.statement.is_empty() && !claim.conditions.is_empty());
        assert!(claim.p.is_none_or(|p| (0.0..=1.0).contains(&p)), "{claim:?}");
        assert!(!claim.given || claim.n > 0, "{claim:?}");
    }
    for tail in outcome.tails.tails() {
        let (least, most) = outcome.tails.exceedances_within(tail.threshold_ns);
        let n = outcome.tails.n();
        assert!(least <= most && most <= n, "{least} to {most} of {n}");
    }
}

/// A list that was read is shown and read again as itself, within its bound.
fn cpulist(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for last in [0, 63, MAX_CPUS - 1] {
        match CpuList::parse(&text, last) {
            Ok(list) => {
                assert!(list.last().is_none_or(|cpu| cpu <= last), "{list} beyond {last}");
                assert_eq!(CpuList::parse(&list.to_string(), last).as_ref(), Ok(&list), "{list}");
                assert_eq!(list.iter().count(), list.len(), "{list}");
            }
            Err(error) => says_why(&text, &error),
        }
    }
}

/// A command line that was split is shown and split again as itself. Left out: a parameter without
/// name and value, which is shown as nothing, and a line that keeps a quotation mark, for which
/// the kernel, which takes off those around a value, has no spelling.
fn cmdline(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut line = CommandLine::parse(&text);
    for params in [&mut line.params, &mut line.init] {
        params.retain(|param| !param.name.is_empty() || param.value.is_some());
    }
    let quoted = |param: &Param| {
        let value = param.value.as_deref().unwrap_or_default();
        param.name.contains('"') || value.contains('"')
    };
    if !line.params.iter().chain(&line.init).any(quoted) {
        let shown = line.to_string();
        assert_eq!(CommandLine::parse(&shown), line, "shown as {shown:?}");
    }
    for param in line.all("isolcpus") {
        if let Some(Err(error)) = param.value.as_ref().map(|value| Isolcpus::parse(value, 63)) {
            says_why(&text, &error);
        }
    }
}

/// A manifest that was read is written and read again as itself.
fn manifest(data: &[u8]) {
    match Manifest::parse(&String::from_utf8_lossy(data)) {
        Ok(manifest) => {
            let written = manifest.to_string();
            assert_eq!(Manifest::parse(&written).as_ref(), Ok(&manifest), "{written:?}");
        }
        Err(error) => one_line(&error),
    }
}

/// Asserts that scrubbed text has no host and no user, and keeps its lines.
fn scrub(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let scrub = Scrub::new().host("workbench.lab.example.com").user("alice");
    let scrubbed = [scrub.text(&text), scrub.path(&text), scrub.command_line(&text)];
    for once in &scrubbed {
        let names = |name: &str| once.split(|c: char| !c.is_alphanumeric()).any(|w| w == name);
        assert!(!names("alice") && !names("workbench"), "{once:?}");
    }
    assert_eq!(scrubbed[0].lines().count(), text.lines().count(), "{:?}", scrubbed[0]);
}

/// Files of one machine: more are left out.
const FILES: usize = 64;
/// Bytes of the longest path that is taken.
const PATH_BYTES: usize = 160;

/// A machine whose files hold anything gives facts, the same ones each time. The data is a
/// sequence of files, each behind a line `==> PATH` with a path below `proc` or `sys`, or of the
/// manifest.
fn facts(data: &[u8]) {
    let folder = Folder::new();
    for (path, text) in files(data).take(FILES) {
        let file = folder.0.join(path);
        // Fails where a file stands in the way of a folder, or the other way round.
        let _ =
            file.parent().map(fs::create_dir_all).transpose().and_then(|_| fs::write(&file, text));
    }
    let collect = || Root::captured(&folder.0).map(|root| MachineFacts::collect(&root));
    match (collect(), collect()) {
        (Ok(once), Ok(again)) => assert_eq!(once, again),
        (Err(error), Err(_)) => one_line(&error),
        (once, again) => panic!("{once:?}, then {again:?}"),
    }
}

/// The parts of the data that have a path.
fn files(data: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let marks = data
        .windows(4)
        .enumerate()
        .filter(|(at, window)| *window == b"==> " && (*at == 0 || data[at - 1] == b'\n'));
    let starts: Vec<usize> = marks.map(|(at, _)| at).chain([data.len()]).collect();
    let parts: Vec<&[u8]> = starts.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect();
    parts.into_iter().filter_map(|part| {
        let line = part.iter().position(|&byte| byte == b'\n')?;
        let path = std::str::from_utf8(&part[4..line]).ok().filter(|path| is_inside(path))?;
        Some((path, &part[line + 1..]))
    })
}

/// Returns true where the path leads to a place inside the folder that it is joined to.
fn is_inside(path: &str) -> bool {
    let plain = |part: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-,.:".contains(&byte);
        !part.is_empty() && part != "." && part != ".." && part.bytes().all(known)
    };
    let below = path.starts_with("proc/") || path.starts_with("sys/") || path == MANIFEST;
    below && path.len() <= PATH_BYTES && path.split('/').all(plain)
}

/// A folder that goes with its holder.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Memory rather than a disk, where there is such a folder.
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = above.join(format!("punctual-facts-{}-{count}", std::process::id()));
        // Of a fuzzer that ended in the middle, and had this number of a process.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("the temporary folder is writable");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left over in the temporary folder at worst.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs of one file that are analysed; each takes some memory.
const RUNS: usize = 4;

/// Reads the file as it is, then with its checksums mended, so that what lies behind them is
/// reached too. A file that is complete is not when cut short, and damage lies inside of it.
fn samples_file(data: &[u8]) {
    let mut mended = data.to_vec();
    mend(&mut mended);
    for data in [data, &mended] {
        let (samples, ending) = match analyse(data) {
            Ok(read) => read,
            Err(error) => {
                one_line(&error);
                continue;
            }
        };
        if let FileEnding::Damaged { at_byte, why } = &ending {
            one_line(why);
            assert!(*at_byte <= data.len() as u64, "damage at {at_byte} of {}", data.len());
        }
        if let Ok((before, cut)) = count_samples(&data[..data.len() / 2]) {
            assert!(before <= samples, "{before} samples in the half of {samples}");
            assert!(
                ending != FileEnding::Complete || cut != FileEnding::Complete,
                "complete when cut"
            );
        }
    }
}

/// Reads a file through the analysis: its samples, whose cycles do not decrease within a run, and
/// how it ended.
fn analyse(data: &[u8]) -> Result<(u64, FileEnding), OpenError> {
    let mut file = SampleFileReader::open(data)?;
    let mut setups: Vec<RecordingConfig> = file.info().runs.iter().map(setup).collect();
    let mut runs: BTreeMap<usize, (Recording, u64)> = BTreeMap::new();
    let mut samples = 0;
    while let Some(block) = file.next_block() {
        samples += block.samples.len() as u64;
        if runs.len() >= RUNS && !runs.contains_key(&block.run) {
            continue;
        }
        let new = || (Recording::new(std::mem::take(&mut setups[block.run])), 0);
        let (recording, cycle) = runs.entry(block.run).or_insert_with(new);
        for sample in block.samples {
            assert!(sample.cycle >= *cycle, "cycle {} after {cycle}", sample.cycle);
            *cycle = sample.cycle;
        }
        recording.extend(block.samples);
    }
    for (recording, _) in runs.into_values() {
        let taken = recording.samples();
        assert_eq!(recording.finish(0).cycles, taken);
    }
    let ending = file.ending().cloned();
    Ok((samples, ending.expect("a file without a next block has ended")))
}

fn setup(run: &punctual_import::samples::RunInfo) -> RecordingConfig {
    RecordingConfig {
        period: Period::from_ns(run.period_ns),
        epoch: Instant::from_ns(run.epoch_ns),
        ..RecordingConfig::default()
    }
}

/// Writes into each header the checksum that it should have, as far as the headers lead.
fn mend(file: &mut [u8]) {
    let number = |file: &[u8], at: usize| {
        file.get(at..at + 4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let Some(json_bytes) = number(file, 12) else { return };
    let mut at = FILE_HEADER_BYTES.saturating_add(json_bytes as usize);
    let Some(json) = file.get(FILE_HEADER_BYTES..at) else { return };
    let crc = crc32(json);
    file[16..20].copy_from_slice(&crc.to_le_bytes());
    while let Some(samples) = number(file, at + 8 + 4) {
        let payload = at + BLOCK_HEADER_BYTES;
        let next = payload.saturating_add((samples as usize).saturating_mul(SAMPLE_BYTES));
        if file.len() < payload {
            return;
        }
        if let Some(bytes) = file.get(payload..next) {
            let crc = crc32(bytes);
            file[payload - 8..payload - 4].copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32(&file[at..payload - 4]);
        file[payload - 4..payload].copy_from_slice(&crc.to_le_bytes());
        at = next;
    }
}

/// CRC-32 (IEEE 802.3) bit by bit: another's opinion on the one that the reader uses.
fn crc32(bytes: &[u8]) -> u32 {
    let polynomial = 0xedb8_8320;
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc: u32, _| {
            (crc >> 1) ^ (polynomial & (crc & 1).wrapping_neg())
        })
    })
}

/// A file gives the same samples, and the same refusal, however it arrives. The first line says
/// how it is read: `NAME:UNIT`, then the period if there is one.
fn csv(data: &[u8]) {
    let (head, text) = match data.iter().position(|&byte| byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut words = head.split_whitespace();
    let Ok(spec) = ColumnSpec::parse(words.next().unwrap_or_default()) else { return };
    let period = words.next().and_then(|word| quantity::period(word).ok());
    let whole = read_csv(text, spec.clone(), period);
    let pieces = read_csv(Pieces { text, next: 1 }, spec, period);
    assert_eq!(whole, pieces);
}

/// All samples, and why there are no more.
fn read_csv(
    reader: impl Read,
    spec: ColumnSpec,
    period: Option<Period>,
) -> (Vec<Sample>, Option<String>) {
    let mut samples = Vec::new();
    let refused = |error: punctual_import::csv::CsvError| {
        one_line(&error);
        Some(error.to_string())
    };
    let mut file = match CsvFile::open(reader, spec, period) {
        Ok(file) => file,
        Err(error) => return (samples, refused(error)),
    };
    loop {
        match file.next_block() {
            Ok([]) => return (samples, None),
            Ok(block) => samples.extend_from_slice(block),
            Err(error) => return (samples, refused(error)),
        }
    }
}

/// A text that arrives a few bytes at a time: 1, 2, … 7, 1, …
struct Pieces<'a> {
    text: &'a [u8],
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.next.min(self.text.len()).min(buffer.len());
        self.next = self.next % 7 + 1;
        let (now, later) = self.text.split_at(bytes);
        buffer[..bytes].copy_from_slice(now);
        self.text = later;
        Ok(bytes)
    }
}

/// A column that was read is written and read again as itself.
fn column_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match ColumnSpec::parse(&text) {
        Ok(spec) => {
            let unit = match spec.unit() {
                TimeUnit::Ns => "ns",
                TimeUnit::Us => "us",
                TimeUnit::Ms => "ms",
                TimeUnit::S => "s",
            };
            let written = format!("{}:{unit}", spec.name());
            assert_eq!(ColumnSpec::parse(&written).as_ref(), Ok(&spec), "{written:?}");
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A list of loads that was read is shown and read again as itself.
fn loads(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Loads::parse(&text) {
        Ok(loads) => {
            assert_eq!(Loads::parse(&loads.to_string()).as_ref(), Ok(&loads), "{loads}");
            assert!(loads.turns().iter().all(|turn| turn.len() <= 64), "bounded: {loads}");
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A claim that was read is shown and read again as itself, can be planned for, and holds on no
/// more than nothing of nothing.
fn claim(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Ask::parse(&text) {
        Ok(ask) => {
            assert_eq!(Ask::parse(&ask.to_string()).as_ref(), Ok(&ask), "{ask}");
            let planned = Planned::of(&ask, 1.0, 1_000_000, 60_000);
            assert!(planned.needs.is_sorted_by_key(|need| need.n), "{planned:?}");
            for ended in [StoppingRule::AsPlanned, StoppingRule::AtAnyTime] {
                let separate = Separate::Evenly(2.0);
                let (least, most, theta, ordered) = (1, 3, 0.7, true);
                let counted = EventCount { n: 60_000, least, most, theta, separate, ordered };
                let judged = judge(&ask, &Ok(counted), ended, Some(1_000_000));
                says_why("", &judged.reason);
                let nothing = judge(&ask, &Ok(EventCount { n: 0, ..counted }), ended, None);
                assert_eq!(nothing.holds, Holds::Undecided, "{ask} holds without evidence");
            }
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A limit that was read is shown and read again as itself, and says of a run without samples why
/// it holds or does not.
fn limit(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match MetricLimit::parse(&text) {
        Ok(limit) => {
            assert_eq!(MetricLimit::parse(&limit.to_string()).as_ref(), Ok(&limit), "{limit}");
            let judgement = limit.judge(&Recording::new(RecordingConfig::default()).finish(0));
            says_why("", &judgement.reason);
            assert!(
                !judgement.ok || judgement.measured.is_some(),
                "{limit} holds without evidence"
            );
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A duration is a positive number of ns, and a period the same one as far as periods go.
fn duration(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match quantity::duration(&text) {
        Ok(span) => {
            let ns = span.as_ns();
            assert!(ns > 0, "{ns} ns");
            assert_eq!(quantity::duration(&format!("{ns}ns")).map(|span| span.as_ns()), Ok(ns));
            match quantity::period(&text) {
                Ok(period) => assert_eq!(period.as_ns(), ns.unsigned_abs()),
                Err(error) => {
                    says_why(&text, &error);
                    assert!(ns.unsigned_abs() > Period::MAX_NS, "{error}");
                }
            }
        }
        Err(error) => {
            says_why(&text, &error);
            assert_eq!(quantity::period(&text).map(|period| period.as_ns()), Err(error));
        }
    }
}

/// A quantity has one dimension, and is positive and finite in it.
fn quantity(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = [
        quantity::duration(&text).map(|span| span.as_ns() as f64),
        quantity::torque(&text).map(quantity::Torque::as_nm),
        quantity::angle(&text).map(quantity::Angle::as_rad),
        quantity::speed(&text).map(quantity::Speed::as_rad_s),
        quantity::rate(&text).map(quantity::Hertz::as_hz),
    ];
    let dimensions = read.iter().filter(|value| value.is_ok()).count();
    assert!(dimensions <= 1, "{dimensions} dimensions: {read:?}");
    for value in read {
        match value {
            Ok(value) => assert!(value > 0.0 && value.is_finite(), "{value}"),
            Err(error) => says_why(&text, &error),
        }
    }
    match quantity::share(&text).map(quantity::Share::as_one) {
        Ok(share) => assert!(share > 0.0 && share <= 1.0, "{share}"),
        Err(error) => says_why(&text, &error),
    }
}

/// Whatever figures a result claims to have, what its histogram is read back for is counted, or
/// refused in a line.
fn run_figures(data: &[u8]) {
    let Ok(figures) = serde_json::from_slice::<RunFigures>(data) else { return };
    let thresholds = [i64::MIN, -1, 0, 50_000, i64::MAX];
    let read = match figures.read_back(&thresholds) {
        Ok(read) => read,
        Err(why) => return says_why("run figures", &why),
    };
    for text in ["p(lateness>50us)<1e-3", "p(missed)<1e-3", "p(|interval|>1us)<0.5"] {
        let ask = Ask::parse(text).expect("a claim");
        match read.counted(&ask) {
            Ok(counted) => assert!(counted.least <= counted.most, "{counted:?}"),
            Err(why) => assert!(!why.is_empty() && !why.contains('\n'), "{why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out() {
        for inside in ["proc/cpuinfo", "sys/fs/cgroup/cpu,cpuacct/a", MANIFEST] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["/proc/a", "proc/../../a", "proc//a", "etc/passwd", "proc/.", "", "proc/"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }

    #[test]
    fn files_are_told_apart_by_their_paths() {
        let data = b"junk\n==> proc/a\n1\n==> /etc/b\n2\n==> sys/c\nx ==> proc/d\n";
        let found: Vec<_> = files(data).collect();
        assert_eq!(found, [("proc/a", &b"1\n"[..]), ("sys/c", b"x ==> proc/d\n")]);
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_mended_file_is_believed_up_to_its_cut() {
        let json = br#"{"runs":[{"period_ns":1000}]}"#;
        let mut file = Vec::from(*b"PUNCTUAL");
        for word in [1, json.len() as u32, 0, 0] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(json);
        file.extend(b"pblk");
        for word in [0, 0, 2] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend([0; 32]);
        for cycle in [3_u64, 4] {
            file.extend(cycle.to_le_bytes());
            file.extend([0; 8]);
        }
        assert!(matches!(analyse(&file), Err(OpenError::Damaged(_))), "before it is mended");
        mend(&mut file);
        assert_eq!(analyse(&file).unwrap(), (2, FileEnding::Incomplete));
    }
}
