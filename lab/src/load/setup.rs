//! The arguments of a load's process: written by the parent, read by the child.
//!
//! `NAME --parent PID --limit-ns N --cpus 0,1 --workers N --temp DIR [-- WORDS…]`. Text only.

use std::path::PathBuf;
use std::time::Duration;

use super::bounds::{LIMIT_MAX, LoadBounds};

/// What a child is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// Which load: a name of [`super::LoadSpec`], `gears`, or `exec`.
    pub(super) name: String,
    /// The process that must be its parent.
    pub(super) parent: i32,
    /// It ends by itself after so long.
    pub(super) limit: Duration,
    /// Where it may run; empty leaves what it inherited.
    pub(super) cpus: Vec<u32>,
    /// Its most workers, at least 1.
    pub(super) workers: usize,
    /// Where a file may go.
    pub(super) temp: PathBuf,
    /// Words for another program.
    pub(super) words: Vec<String>,
}

impl Setup {
    /// Of load `name` in `bounds`, with this process as its parent.
    pub(super) fn new(name: &str, bounds: &LoadBounds) -> Self {
        Self {
            name: name.to_owned(),
            parent: std::process::id().cast_signed(),
            limit: bounds.limit,
            cpus: bounds.cpus.clone(),
            workers: bounds.cpus.len(),
            temp: bounds.temp.clone(),
            words: Vec::new(),
        }
    }

    /// As arguments.
    pub(super) fn to_args(&self) -> Vec<String> {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let mut args = vec![
            self.name.clone(),
            "--parent".into(),
            self.parent.to_string(),
            "--limit-ns".into(),
            self.limit.as_nanos().to_string(),
            "--workers".into(),
            self.workers.to_string(),
            "--temp".into(),
            self.temp.to_string_lossy().into_owned(),
        ];
        if !cpus.is_empty() {
            args.extend(["--cpus".into(), cpus.join(",")]);
        }
        if !self.words.is_empty() {
            args.push("--".into());
            args.extend(self.words.iter().cloned());
        }
        args
    }

    /// Reads arguments back.
    ///
    /// # Errors
    /// What is wrong with them, in one line.
    pub(super) fn parse(args: &[String]) -> Result<Self, String> {
        let (name, mut rest) = args.split_first().ok_or("the name of a load is missing")?;
        let mut setup = Self {
            name: name.clone(),
            parent: 0,
            limit: Duration::ZERO,
            cpus: Vec::new(),
            workers: 1,
            temp: std::env::temp_dir(),
            words: Vec::new(),
        };
        while let Some((option, after)) = rest.split_first() {
            if option == "--" {
                setup.words = after.to_vec();
                break;
            }
            let (value, after) =
                after.split_first().ok_or_else(|| format!("{option} needs a value"))?;
            setup.set(option, value).ok_or_else(|| format!("{option} {value:?}: not usable"))?;
            rest = after;
        }
        if setup.parent < 1 || setup.limit.is_zero() {
            return Err("--parent and --limit-ns are needed".to_owned());
        }
        Ok(setup)
    }

    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match option {
            "--parent" => self.parent = value.parse().ok()?,
            "--limit-ns" => {
                self.limit = Duration::from_nanos(value.parse().ok()?);
                (self.limit <= LIMIT_MAX).then_some(())?;
            }
            "--workers" => self.workers = value.parse().ok().filter(|&workers| workers > 0)?,
            "--cpus" => {
                let cpus: Result<_, _> = value.split(',').map(str::parse).collect();
                self.cpus = cpus.ok()?;
            }
            "--temp" => self.temp = PathBuf::from(value),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_read_back() {
        let bounds = LoadBounds::new(Duration::from_millis(1500), vec![0, 3]);
        let mut setup = Setup::new("cpu", &bounds);
        assert_eq!(Setup::parse(&setup.to_args()), Ok(setup.clone()));
        setup.words = vec!["--cpu".into(), "2".into(), "--".into()];
        assert_eq!(Setup::parse(&setup.to_args()), Ok(setup));
    }

    #[test]
    fn what_is_missing_or_unusable_is_said() {
        for bad in [
            "",
            "cpu",
            "cpu --parent 5",
            "cpu --parent",
            "cpu --parent 5 --limit-ns 99999999999999999",
            "cpu --parent 5 --limit-ns 1 --workers 0",
            "cpu --parent 5 --limit-ns 1 --cpus 0-1",
            "cpu --parent 5 --limit-ns 1 --what 3",
        ] {
            let args: Vec<String> = bad.split_ascii_whitespace().map(str::to_owned).collect();
            assert!(Setup::parse(&args).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn anything_can_be_read(args in prop::collection::vec("(--)?[a-z]*|[0-9,-]*|.*", 0..8)) {
            let _ = Setup::parse(&args);
        }
    }
}
