//! Baselines as files: one each, in a directory of the user's, whole or not at all.
//!
//! A file is about 5 kB for a thousand cycles and some 100 kB a run for any number more: the series
//! are bounded (128 chunks a load). Names are checked before a path is made of them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual_host::baseline::{MACHINE, Name, SETUP, changed, digest};
use punctual_host::facts::MachineFacts;
use punctual_host::identity::machine;
use punctual_host::root::Root;
use serde::{Deserialize, Serialize};

use super::{RUNS_MAX, Recorded};
use crate::args::BaselinesDir;
use crate::output::{Dir, Opened, state_dir};

/// The version of the files.
const LAYOUT: u32 = 2;
/// The most bytes of one: what the bounds of the series allow is far less.
const BYTES_MAX: u64 = 256 << 20;

/// A baseline.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// "punctual".
    pub(crate) tool: String,
    /// The layout of the file.
    pub(crate) baseline: u32,
    /// Its name.
    pub(crate) name: Name,
    /// When it was kept, in UTC (RFC 3339).
    pub(crate) kept_at: String,
    /// Hash of the machine's identifier, where it has one: two of a kind are two machines.
    #[serde(default)]
    pub(crate) machine_id: Option<String>,
    /// Digest of the facts that say which machine it is of.
    pub(crate) machine_digest: String,
    /// Digest of the facts that say how the machine was set up, the kernel among them.
    pub(crate) setup_digest: String,
    /// What was measured.
    pub(crate) recorded: Recorded,
}

/// The part that every layout has.
#[derive(Deserialize)]
struct Head {
    tool: String,
    baseline: u64,
}

/// The directory of baselines.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

impl Store {
    /// The directory that was asked for, else the user's.
    pub(crate) fn new(named: &BaselinesDir) -> Result<Self> {
        if let Some(dir) = &named.baselines {
            return Ok(Self { dir: dir.clone() });
        }
        let Some(state) = state_dir(None) else {
            bail!(
                "neither XDG_STATE_HOME nor HOME is set: name the directory of baselines with \
                 --baselines DIR"
            );
        };
        Ok(Self { dir: state.join("punctual/baselines") })
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The file of a name.
    pub(crate) fn path(&self, name: &Name) -> PathBuf {
        self.dir.join(file(name))
    }

    /// Reads a baseline.
    pub(crate) fn read(&self, name: &Name) -> Result<Baseline> {
        let path = self.path(name);
        let shown = path.display();
        if !path.exists() {
            bail!(
                "there is no baseline {} in {}: create one with --baseline {}",
                name.as_str(),
                self.dir.display(),
                name.as_str()
            );
        }
        let mut text = String::new();
        let kind = fs::metadata(&path).with_context(|| format!("cannot read {shown}"))?;
        if !kind.is_file() {
            bail!("{shown}: not a regular file");
        }
        let file = File::open(&path).with_context(|| format!("cannot read {shown}"))?;
        file.take(BYTES_MAX + 1)
            .read_to_string(&mut text)
            .with_context(|| format!("{shown}: not a baseline of punctual"))?;
        if text.len() as u64 > BYTES_MAX {
            bail!("{shown}: not a baseline of punctual: more than {} MiB", BYTES_MAX >> 20);
        }
        parse(&text).with_context(|| format!("{shown}"))
    }

    /// Names of all baselines, sorted.
    pub(crate) fn names(&self) -> Result<Vec<Name>> {
        let shown = self.dir.display();
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(why) => return Err(why).with_context(|| format!("cannot read {shown}")),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {shown}"))?;
            let file = entry.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
            names.extend(name.and_then(|name| Name::parse(name).ok()));
        }
        names.sort();
        Ok(names)
    }

    /// Refuses a name that is taken, unless it is to be replaced.
    pub(crate) fn refuse_taken(&self, name: &Name, force: bool) -> Result<()> {
        let path = self.path(name);
        if !force && path.symlink_metadata().is_ok() {
            bail!("{}: the baseline exists already; --force replaces it", path.display());
        }
        Ok(())
    }

    /// The file of a name that may be kept, found writable; the directory is made if need be.
    pub(crate) fn open(&self, name: &Name, force: bool) -> Result<Opened> {
        self.refuse_taken(name, force)?;
        Dir::make(&self.dir)?.opened(&file(name))
    }

    /// Keeps a result as a baseline, in the file that `open` found.
    pub(crate) fn keep(name: &Name, recorded: Recorded, to: &Opened) -> Result<()> {
        let Some(facts) = &recorded.machine else {
            bail!("a baseline needs the facts of its machine");
        };
        let baseline = Baseline {
            tool: "punctual".to_owned(),
            baseline: LAYOUT,
            name: name.clone(),
            kept_at: jiff::Timestamp::now().to_string(),
            machine_id: machine_id(),
            machine_digest: digest(MACHINE, facts),
            setup_digest: digest(SETUP, facts),
            recorded,
        };
        let text = serde_json::to_string(&baseline)? + "\n";
        to.write(|file| Ok(file.write_all(text.as_bytes())?))
    }

    /// Removes a baseline.
    pub(crate) fn remove(&self, name: &Name) -> Result<()> {
        let path = self.path(name);
        if path.symlink_metadata().is_err() {
            bail!("there is no baseline {} in {}", name.as_str(), self.dir.display());
        }
        let removed = Dir::open(&self.dir)?.remove(&file(name));
        removed.with_context(|| format!("cannot remove {}", path.display()))
    }
}

impl Baseline {
    /// Refuses another machine than the one that it is of.
    pub(crate) fn refuse_another_machine(&self, facts: &MachineFacts) -> Result<()> {
        let Some(mine) = &self.recorded.machine else {
            bail!("baseline {} does not record its machine", self.name.as_str());
        };
        if let (Some(kept), Some(here)) = (&self.machine_id, machine_id())
            && *kept != here
        {
            bail!(
                "baseline {} was recorded on another machine: its identifier \
                 (/etc/machine-id) differs; 'punctual compare' compares results of different \
                 machines",
                self.name.as_str()
            );
        }
        let other = changed(MACHINE, mine, facts);
        let Some(first) = other.first() else { return Ok(()) };
        bail!(
            "baseline {} was recorded on another machine: {} was {}, here it is {}; 'punctual \
             compare' compares results of different machines",
            self.name.as_str(),
            first.name,
            first.from,
            first.to
        )
    }
}

/// The file of a name.
fn file(name: &Name) -> String {
    format!("{}.json", name.as_str())
}

/// The machine that this runs on.
fn machine_id() -> Option<String> {
    machine(&Root::live()).value().cloned()
}

fn parse(text: &str) -> Result<Baseline> {
    let head: Head = serde_json::from_str(text).context("not a baseline of punctual")?;
    if head.tool != "punctual" {
        bail!("not a baseline of punctual");
    }
    if head.baseline != u64::from(LAYOUT) {
        bail!("layout {}: this version reads layout {LAYOUT}", head.baseline);
    }
    let baseline: Baseline = serde_json::from_str(text).context("baseline is corrupt")?;
    let runs = &baseline.recorded.runs;
    let series = || runs.iter().flat_map(|run| &run.parts);
    if runs.len() > RUNS_MAX || !series().all(|series| series.is_sound()) {
        bail!("baseline is corrupt: invalid counts");
    }
    Ok(baseline)
}
