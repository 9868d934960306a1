//! What must hold of every parser, whatever its input: the bodies of the fuzz target.
//!
//! For `fuzz/fuzz_targets/parser.rs`, and for the test that replays `fuzz/corpus` on stable. A body
//! panics when something does not hold: a panic inside the parser, an error that is no single
//! line, a round trip that does not come back.

mod machine;
mod recorded;
mod typed;

use std::fmt::Display;

use punctual_analysis::campaign::{Campaign, CampaignFileError, HEADER_BYTES, MAGIC, VERSION};
use punctual_analysis::quantile::Probability;
use punctual_engine::process::{Request, answer, answered, is_name};
use punctual_import::formats::{
    self, Format, HEAD_BYTES, ImportRequest, ImportedRun, detect, read,
};
use punctual_lab::tasks::{TASKS_MAX, TaskFile};

/// Looks at one input; panics when something does not hold.
pub type Body = Box<dyn Fn(&[u8]) + Send + Sync>;

/// A parser's name and body.
type Own = (&'static str, fn(&[u8]));

/// Every parser but those of other programs' files, by the name of its folder of seeds.
const OWN: &[Own] = &[
    ("campaign", campaign),
    ("claim", typed::claim),
    ("cmdline", machine::cmdline),
    ("column_spec", typed::column_spec),
    ("cpulist", machine::cpulist),
    ("csv", recorded::csv),
    ("duration", typed::duration),
    ("facts", machine::facts),
    ("import_detect", detected),
    ("join_request", join_request),
    ("limit", typed::limit),
    ("loads", typed::loads),
    ("manifest", machine::manifest),
    ("quantity", typed::quantity),
    ("samples_file", recorded::samples_file),
    ("scrub", machine::scrub),
    ("tasks_file", tasks_file),
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

/// What a file's error says fits in one line behind the name of the file.
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
    let crc = recorded::crc32(&[&bytes[..], json].concat());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(json);
    bytes
}

/// A file that was read names at least one task and not too many, each once.
fn tasks_file(data: &[u8]) {
    match TaskFile::parse(data) {
        Ok(tasks) => {
            assert!((1..=TASKS_MAX).contains(&tasks.all.len()));
            let mut names: Vec<&str> = tasks.all.iter().map(|task| task.spec.task.name()).collect();
            assert!(names.iter().all(|name| is_name(name)), "{names:?}");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), tasks.all.len(), "a name stands twice");
            assert!(tasks.shortest().is_some());
            assert!(tasks.all.iter().all(|task| task.line > 0));
            assert!(tasks.all.iter().all(|task| task.spec.safe.len() % 8 == 0));
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
    let pieces = read(format, std::io::Read::chain(first, rest), &request);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            assert!(!whole.runs.is_empty(), "a file without a run");
            assert_eq!(whole.runs.len(), pieces.runs.len());
            whole.runs.iter().for_each(sound);
        }
        (Err(whole), Err(pieces)) => {
            one_line(&whole);
            assert_eq!(whole.to_string(), pieces.to_string());
        }
        (whole, pieces) => panic!("in whole {}, in pieces {}", whole.is_ok(), pieces.is_ok()),
    }
}

/// What must hold of every run, whatever was read.
fn sound(run: &ImportedRun) {
    assert!(!run.name.chars().any(char::is_control), "{:?}", run.name);
    let outcome = &run.outcome;
    let imported = outcome.imported.as_ref().expect("another program's");
    let values = &imported.values_ns;
    let n = outcome.cycles;
    let counted: u64 = outcome.histogram.buckets.iter().map(|bucket| bucket.2).sum();
    assert!(counted + outcome.histogram.overflow >= imported.overflow && counted <= n);
    assert!(outcome.histogram.buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(outcome.histogram.buckets.iter().all(|bucket| bucket.0 < bucket.1 && bucket.2 > 0));
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
