//! A kernel's description of one of its events: `events/SYSTEM/NAME/format` of tracefs.
//!
//! Pure: text in, a format or an error of one line out. It reads the fields, and keeps the text as
//! it is, for captures have it within them. `print fmt` is not understood: nothing here needs it.

use thiserror::Error;

/// Longest text that is taken, bytes. The kernel's own longest has some ten thousand.
pub const FORMAT_BYTES_MAX: usize = 128 * 1024;

/// Most fields of one event. The kernel's own largest has some fifty.
pub const FIELDS_MAX: usize = 256;

/// The place of a field's bytes in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldPlacement {
    /// At its offset.
    Fixed,
    /// `__data_loc`: at its offset lie four bytes: the lower two are the place of its bytes in the
    /// record, the upper two their number (Linux, `include/trace/stages/stage3_trace_output.h`).
    Dynamic,
    /// `__rel_loc`: as `__data_loc`, but counted from the end of those four bytes (from 5.17 on).
    Relative,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: Box<str>,
    offset: usize,
    size: usize,
    is_signed: bool,
    placement: FieldPlacement,
    is_array: bool,
}

impl Field {
    /// Its name, as in C.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of a record before it.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Its bytes in the fixed part of a record: of an array those of all elements, of a dynamic one
    /// the four that give its place.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns true where its number has a sign.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// The place of its bytes.
    #[must_use]
    pub const fn placement(&self) -> FieldPlacement {
        self.placement
    }

    /// Returns true where it holds several elements.
    #[must_use]
    pub const fn is_array(&self) -> bool {
        self.is_array
    }
}

/// The format of one event, as one kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFormat {
    system: Box<str>,
    name: Box<str>,
    id: u16,
    fields: Vec<Field>,
    text: Box<str>,
}

impl EventFormat {
    /// Reads the text of a file `format`; the system is the name of the folder that it lies in.
    ///
    /// # Errors
    /// A text that is no format, with the line that is wrong.
    pub fn parse(system: &str, text: &str) -> Result<Self, FormatError> {
        if text.len() > FORMAT_BYTES_MAX {
            return Err(FormatError::TooLong { bytes: text.len() });
        }
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let line = line.trim();
            if let Some(written) = line.strip_prefix("name:") {
                name = Some(Box::from(written.trim()));
            } else if let Some(written) = line.strip_prefix("ID:") {
                let parsed = written.trim().parse();
                id = Some(parsed.map_err(|_| FormatError::Id { line: number })?);
            } else if line.starts_with("field:") || line.starts_with("field special:") {
                if fields.len() == FIELDS_MAX {
                    return Err(FormatError::TooManyFields);
                }
                fields.push(field(line).ok_or(FormatError::Field { line: number })?);
            } else if line.starts_with("print fmt:") {
                break;
            }
        }
        Ok(Self {
            system: Box::from(system),
            name: name.ok_or(FormatError::Missing("name:"))?,
            id: id.ok_or(FormatError::Missing("ID:"))?,
            fields,
            text: Box::from(text),
        })
    }

    /// The system that it belongs to, `sched`.
    #[must_use]
    pub fn system(&self) -> &str {
        &self.system
    }

    /// Its name, `sched_switch`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number on that kernel, until it boots again: `common_type` of each record, and `config`
    /// of a tracepoint of perf.
    #[must_use]
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Its fields, the common ones first.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| &*field.name == name)
    }

    /// The text that it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A line `field:TYPE NAME; offset:N; size:N; signed:N;`, the parts apart by tabs.
fn field(line: &str) -> Option<Field> {
    let (_, rest) = line.split_once(':')?;
    let mut parts = rest.split(';').map(str::trim);
    let declaration = parts.next()?;
    let mut offset = None;
    let mut size = None;
    let mut is_signed = false;
    for part in parts.filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once(':')?;
        match key {
            "offset" => offset = value.parse::<u16>().ok(),
            "size" => size = value.parse::<u16>().ok(),
            "signed" => is_signed = value == "1",
            _ => {}
        }
    }
    let (offset, size) = (usize::from(offset?), usize::from(size?));
    let placement = match declaration.split_whitespace().next()? {
        "__data_loc" => FieldPlacement::Dynamic,
        "__rel_loc" => FieldPlacement::Relative,
        _ => FieldPlacement::Fixed,
    };
    if placement != FieldPlacement::Fixed && size != 4 {
        return None;
    }
    let is_array = declaration.contains('[');
    // The length of an array stands behind its name, but behind the type of a dynamic one.
    let named = match placement {
        FieldPlacement::Fixed => declaration.split('[').next()?,
        FieldPlacement::Dynamic | FieldPlacement::Relative => declaration,
    };
    let name = named.trim_end().rsplit(|byte: char| !is_in_a_name(byte)).next()?;
    if name.is_empty() {
        return None;
    }
    Some(Field { name: Box::from(name), offset, size, is_signed, placement, is_array })
}

fn is_in_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The reason for which a text is no format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormatError {
    /// It is too long to be one.
    #[error("a format of {bytes} bytes; at most {FORMAT_BYTES_MAX} are read")]
    TooLong {
        /// Its length, bytes.
        bytes: usize,
    },
    /// It has too many fields.
    #[error("a format of more than {FIELDS_MAX} fields")]
    TooManyFields,
    /// A line `field:` that is none.
    #[error(
        "line {line} of a format is no field; `field:TYPE NAME; offset:N; size:N; signed:N;` is"
    )]
    Field {
        /// Its number, from 1 on.
        line: usize,
    },
    /// A number that is none.
    #[error("line {line} of a format has no number of 0 to 65535 behind `ID:`")]
    Id {
        /// Its number, from 1 on.
        line: usize,
    },
    /// A line that each format has.
    #[error("a format without a line `{0}`")]
    Missing(&'static str),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{EventFormat, FIELDS_MAX, FORMAT_BYTES_MAX, FieldPlacement, FormatError};

    const MIGRATE: &str = "name: sched_migrate_task\nID: 371\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\
        \tfield:__rel_loc cpumask_t cpus;\toffset:64;\tsize:4;\tsigned:0;\n\
        \tfield:void * function;\toffset:72;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"field:no field\", REC->comm\n";

    #[test]
    fn reads_each_kind_of_field() {
        let format = EventFormat::parse("sched", MIGRATE).unwrap();
        assert_eq!(
            (format.system(), format.name(), format.id()),
            ("sched", "sched_migrate_task", 371)
        );
        let seen: Vec<_> = format
            .fields()
            .iter()
            .map(|field| {
                (
                    field.name(),
                    field.offset(),
                    field.size(),
                    field.is_signed(),
                    field.placement(),
                    field.is_array(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("common_type", 0, 2, false, FieldPlacement::Fixed, false),
                ("common_pid", 4, 4, true, FieldPlacement::Fixed, false),
                ("comm", 8, 4, false, FieldPlacement::Dynamic, true),
                ("args", 16, 48, false, FieldPlacement::Fixed, true),
                ("cpus", 64, 4, false, FieldPlacement::Relative, false),
                ("function", 72, 8, false, FieldPlacement::Fixed, false),
            ]
        );
        assert_eq!(format.field("args").map(super::Field::offset), Some(16));
        assert_eq!(format.field("arg"), None);
        assert_eq!(format.text(), MIGRATE);
    }

    #[test]
    fn says_what_is_wrong() {
        let parse = |text: &str| EventFormat::parse("sched", text).unwrap_err();
        assert_eq!(parse(""), FormatError::Missing("name:"));
        assert_eq!(parse("name: a\n"), FormatError::Missing("ID:"));
        assert_eq!(parse("name: a\nID: 65536\n"), FormatError::Id { line: 2 });
        for damaged in [
            "field:int pid; offset:0;",
            "field:int pid; size:4;",
            "field:; offset:0; size:4;",
            "field:int ; offset:x; size:4;",
            "field:int pid; offset:65536; size:4;",
            "field:__data_loc char[] comm; offset:8; size:8;",
        ] {
            let text = format!("name: a\nID: 1\n{damaged}\n");
            assert_eq!(parse(&text), FormatError::Field { line: 3 }, "{damaged}");
        }
        assert!(matches!(parse(&" ".repeat(FORMAT_BYTES_MAX + 1)), FormatError::TooLong { .. }));
        let many = "field:int pid; offset:0; size:4;\n".repeat(FIELDS_MAX + 1);
        assert_eq!(parse(&many), FormatError::TooManyFields);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in any::<String>()) {
            if let Err(why) = EventFormat::parse("sched", &text) {
                assert!(!why.to_string().contains('\n'));
            }
        }

        #[test]
        fn a_damaged_format_is_read_or_refused(
            at in prop::sample::select((0..MIGRATE.len()).collect::<Vec<_>>()),
            byte in 0u8..128,
        ) {
            let mut bytes = MIGRATE.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = EventFormat::parse("sched", &String::from_utf8(bytes).unwrap());
        }
    }
}
