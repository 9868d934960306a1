//! What was options for on the command line.

use punctual_analysis::quantity;
use punctual_core::time::{Period, Span};
use punctual_lab::load::LoadSpec;

use crate::contender::{BUDGET, Contender};

/// How to use it.
pub(crate) const USAGE: &str = "\
Usage: cargo xtask peers [OPTION…]
  --period LIST    periods, one table each (500us,1ms)
  --phase LIST     quiet (away from the kernel's tick), zero, or both (quiet,zero)
  --duration TIME  of everything together (8min)
  --block TIME     one block (1s); from 200ms to 10s
  --cpu N          the CPU of all loops (the last one allowed)
  --load LIST      tables under these loads too, as `punctual measure --load`
  --budget SHARE   of adaptive, 0.01 to 0.9 or 1% to 90% (10%)
  --equal          and tables that give adaptive each peer's share of the CPU
  --only LIST      these contenders alone, beside adaptive
  --json FILE|-    the result as JSON
";

/// The options.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) periods: Vec<Period>,
    /// Whether quiet, for each phase.
    pub(crate) quiet: Vec<bool>,
    pub(crate) duration: Span,
    pub(crate) block: Span,
    pub(crate) cpu: Option<u32>,
    /// As given, and read.
    pub(crate) load: Option<(String, Vec<LoadSpec>)>,
    pub(crate) budget: f64,
    pub(crate) equal: bool,
    /// Names; empty for all.
    pub(crate) only: Vec<String>,
    pub(crate) json: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let period = |us: u64| Period::from_ns(us * 1_000);
        Self {
            periods: [500, 1_000].into_iter().filter_map(period).collect(),
            quiet: vec![true, false],
            duration: Span::from_ms(8 * 60_000),
            block: Span::from_ms(1_000),
            cpu: None,
            load: None,
            budget: BUDGET,
            equal: false,
            only: Vec::new(),
            json: None,
        }
    }
}

/// The longest that it may take, ns: 12 hours.
const LONGEST: Span = Span::from_ms(12 * 3_600_000);

impl Options {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// In one line, the option and what is wrong with it.
    pub(crate) fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(option) = words.next() {
            if option == "--equal" {
                options.equal = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{option}: its value is missing"))?;
            options.set(option, value).map_err(|why| format!("{option}: {why}"))?;
        }
        options.check()
    }

    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let span = || quantity::duration(value).map_err(|why| why.to_string());
        match option {
            "--period" => {
                let one = |text| quantity::period(text).map_err(|why| why.to_string());
                self.periods = value.split(',').map(one).collect::<Result<_, _>>()?;
            }
            "--phase" => self.quiet = value.split(',').map(phase).collect::<Result<_, _>>()?,
            "--duration" => self.duration = span()?,
            "--block" => self.block = span()?,
            "--cpu" => self.cpu = Some(value.parse().map_err(|_| format!("{value:?} is no CPU"))?),
            "--load" => {
                let specs = LoadSpec::parse_list(value).map_err(|why| why.to_string())?;
                self.load = Some((value.to_owned(), specs));
            }
            "--budget" => self.budget = share(value)?,
            "--only" => self.only = value.split(',').map(str::to_owned).collect(),
            "--json" => self.json = Some(value.to_owned()),
            _ => return Err("there is no such option".to_owned()),
        }
        Ok(())
    }

    fn check(self) -> Result<Self, String> {
        let block_ms = self.block.as_ns() / 1_000_000;
        if !(200..=10_000).contains(&block_ms) {
            return Err(format!("--block: {} is not within 200 ms and 10 s", self.block));
        }
        let within = |period: &Period| (100_000..=100_000_000).contains(&period.as_ns());
        if !self.periods.iter().all(within) {
            return Err("--period: from 100us to 100ms".to_owned());
        }
        if self.duration > LONGEST {
            return Err("--duration: 12 hours at most".to_owned());
        }
        let known = Contender::all(self.budget).into_iter().map(Contender::name);
        let known: Vec<_> = known.collect();
        if let Some(other) = self.only.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(format!("--only: {other:?} is none of {}", known.join(", ")));
        }
        Ok(self)
    }

    /// Who takes part.
    pub(crate) fn contenders(&self) -> Vec<Contender> {
        let options = |place: usize, contender: &Contender| {
            place == 0 || self.only.is_empty() || self.only.iter().any(|n| n == contender.name())
        };
        let contenders = Contender::all(self.budget).into_iter().enumerate();
        contenders
            .filter(|(place, contender)| options(*place, contender))
            .map(|(_, one)| one)
            .collect()
    }

    /// How many tables there will be.
    pub(crate) fn tables(&self) -> usize {
        let loads = 1 + usize::from(self.load.is_some());
        self.periods.len() * self.quiet.len() * loads * (1 + usize::from(self.equal))
    }

    /// How often each of `contenders` has its block in a table; the time that programs take to
    /// start is not within.
    pub(crate) fn rounds(&self, contenders: usize) -> usize {
        let table_ns = self.duration.as_ns() / self.tables().max(1) as i64;
        let round_ns = self.block.as_ns() * contenders.max(1) as i64;
        usize::try_from(table_ns / round_ns).unwrap_or(0).max(1)
    }
}

fn phase(text: &str) -> Result<bool, String> {
    match text {
        "quiet" => Ok(true),
        "zero" => Ok(false),
        _ => Err(format!("{text:?} is neither quiet nor zero")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share: f64 = number.trim().parse().map_err(|_| format!("{text:?} is no share"))?;
    let share = share / unit;
    let good = (0.01..=0.9).contains(&share);
    if good { Ok(share) } else { Err(format!("{text:?} is not within 1% and 90%")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_time_is_shared_out() {
        let options = parse(
            "--period 1ms --phase zero --duration 60s --block 500ms --load cpu,fork --budget 5% \
             --equal --only spin_sleep,cyclictest --cpu 1",
        );
        let options = options.expect("good");
        assert_eq!(
            (options.periods.len(), options.quiet.as_slice(), options.cpu),
            (1, &[false][..], Some(1))
        );
        assert!((options.budget - 0.05).abs() < 1e-12);
        let names: Vec<_> = options.contenders().into_iter().map(Contender::name).collect();
        assert_eq!(names, ["adaptive", "spin_sleep", "cyclictest"]);
        // 60 s in four tables of three contenders of half a second.
        assert_eq!((options.tables(), options.rounds(3)), (4, 10));
        assert_eq!(parse("").expect("defaults").contenders().len(), 10);
        assert_eq!(parse("--duration 1s").expect("short").rounds(10), 1, "each has a block");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_option() {
        for line in [
            "--period",
            "--period 1000",
            "--period 1us",
            "--phase loud",
            "--block 1ms",
            "--cpu x",
            "--budget 0",
            "--budget 200%",
            "--only nobody",
            "--load disco",
            "--what now",
            "--duration 13h",
        ] {
            let option = line.split(' ').next().unwrap_or_default();
            let why = parse(line).expect_err(line);
            assert!(why.starts_with(option), "{line}: {why}");
        }
    }
}
