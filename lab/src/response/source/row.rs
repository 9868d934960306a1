//! A row of the table of sources, and a source by its name.

use std::fmt;
use std::str::FromStr;

use super::{SOURCES, Source};

/// A source that was opened; with a note where it is not quite what was requested.
pub(super) type Opening = Result<(Source, Option<String>), String>;

/// One source.
#[derive(Debug)]
pub struct SourceRow {
    /// Its name on the command line.
    pub name: &'static str,
    /// How its device is named after a colon; `None` where it has none.
    pub device: Option<&'static str>,
    /// What it is.
    pub help: &'static str,
    /// What a stimulus passes through, and what that leaves out.
    pub path: &'static str,
    /// Whether the kernel raises its stimuli, and no thread.
    pub by_kernel: bool,
    /// Whether a device is named as it must be; why not.
    pub(super) check: fn(&str) -> Result<(), String>,
    /// Makes it, or opens the device of this name.
    pub(super) open: fn(&str) -> Opening,
}

impl SourceRow {
    /// How it is written: `eventfd`, `serial:PATH[:BAUD]`.
    pub fn form(&self) -> String {
        self.device.map_or_else(|| self.name.to_owned(), |of| format!("{}:{of}", self.name))
    }
}

/// A source by its name and its device: `eventfd`, `serial:/dev/ttyS1`.
#[derive(Clone, Debug)]
pub struct SourceName {
    row: &'static SourceRow,
    device: String,
}

impl SourceName {
    /// Its row.
    pub const fn row(&self) -> &'static SourceRow {
        self.row
    }

    /// Makes it; with a note where it is not quite what was requested.
    pub(crate) fn open(&self) -> Opening {
        (self.row.open)(&self.device).map_err(|why| format!("source {self}: {why}"))
    }
}

impl Default for SourceName {
    /// The first of the table.
    fn default() -> Self {
        Self { row: &SOURCES[0], device: String::new() }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        if self.row.device.is_some() {
            write!(f, ":{}", self.device)?;
        }
        Ok(())
    }
}

impl FromStr for SourceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, device) = text.split_once(':').unwrap_or((text, ""));
        let known = || SOURCES.iter().map(SourceRow::form).collect::<Vec<_>>().join(", ");
        let row = SOURCES.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| format!("unknown source; known are {}", known()))?;
        match row.device {
            None if text == name => {}
            None => return Err(format!("{name} has no device; known are {}", known())),
            Some(_) if device.is_empty() => {
                let (form, help) = (row.form(), row.help);
                return Err(format!(
                    "its device is missing: {form} ({help}); known are {}",
                    known()
                ));
            }
            Some(_) => (row.check)(device).map_err(|why| format!("{}: {why}", row.form()))?,
        }
        Ok(Self { row, device: device.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_named_with_their_devices_and_what_is_none_is_refused() {
        for text in ["eventfd", "serial:/dev/ttyS1", "serial:/dev/ttyS1:9600"] {
            let name: SourceName = text.parse().expect(text);
            assert_eq!(name.to_string(), text);
        }
        assert_eq!(SourceName::default().to_string(), "eventfd");
        for text in ["", "disco", "eventfd:", "eventfd:x", "serial", "serial:", "serial:/x:5"] {
            assert!(text.parse::<SourceName>().is_err(), "{text:?}");
        }
        let why = "serial".parse::<SourceName>().expect_err("no device");
        assert!(why.contains("serial:PATH[:BAUD]"), "{why}");
    }
}
