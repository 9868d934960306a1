//! The functions of the kernel, by their addresses.
//!
//! Pure: the text of `/proc/kallsyms` in, names out. Captures that have names instead of addresses
//! get a number for each name here, so that events are alike whoever recorded them.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::event::CodeAddress;

/// Longest text of symbols that is read, bytes. That of a kernel with all modules has some 20 MB.
pub const KALLSYMS_BYTES_MAX: usize = 64 << 20;

/// Most names that captures of text may bring.
pub const NAMES_MAX: usize = 1 << 16;

/// Longest name that is kept, bytes: the kernel's own bound, `KSYM_NAME_LEN`.
pub const NAME_BYTES_MAX: usize = 512;

/// The numbers of names begin here. No address of x86-64 or arm64 lies there, for its upper 16 bits
/// are alike.
const FIRST_NAME: CodeAddress = 1 << 48;

/// The lower bits of a name's number are the offset within the function.
const OFFSET_BITS: u32 = 16;

/// Furthest that an address lies behind the beginning of its function, bytes.
const OFFSET_MAX: u64 = 1 << 20;

/// A function, and a place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeSymbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// The module that it belongs to; nothing for the kernel itself.
    pub module: Option<&'a str>,
    /// Bytes behind its beginning.
    pub offset: u64,
}

/// `hrtimer_wakeup+0x1d [module]`.
impl fmt::Display for CodeSymbol<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)?;
        if self.offset != 0 {
            write!(out, "+{:#x}", self.offset)?;
        }
        match self.module {
            Some(module) => write!(out, " [{module}]"),
            None => Ok(()),
        }
    }
}

/// A function's beginning; its name and module are ranges of the text.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    address: CodeAddress,
    name: Piece,
    /// Empty for the kernel itself.
    module: Piece,
    is_global: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    start: u32,
    bytes: u16,
}

/// The functions of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    text: String,
    /// Their beginnings, in the order of addresses.
    beginnings: Vec<Beginning>,
    is_hidden: bool,
    names: Vec<Box<str>>,
    number_of: HashMap<Box<str>, u32>,
    unnamed: u64,
}

impl Symbols {
    /// Reads the text of `/proc/kallsyms`. Only code counts; lines that are none are passed over,
    /// for a capture may hold a part.
    ///
    /// # Errors
    /// A text that is too long.
    pub fn parse(kallsyms: &[u8]) -> Result<Self, SymbolsError> {
        if kallsyms.len() > KALLSYMS_BYTES_MAX {
            return Err(SymbolsError { bytes: kallsyms.len() });
        }
        let mut symbols = Self::default();
        let mut lines = 0u64;
        let mut last_module = Piece::default();
        for line in kallsyms.split(|&byte| byte == b'\n') {
            let Some(line) = str::from_utf8(line).ok().and_then(SymbolLine::parse) else {
                continue;
            };
            lines += 1;
            if line.address == 0 || !line.is_code() {
                continue;
            }
            let name = symbols.keep(line.name);
            let module = match line.module {
                None => Piece::default(),
                Some(module) if symbols.piece(last_module) == module => last_module,
                Some(module) => symbols.keep(module),
            };
            last_module = module;
            let is_global = line.is_global();
            symbols.beginnings.push(Beginning { address: line.address, name, module, is_global });
        }
        symbols.is_hidden = lines > 0 && symbols.beginnings.is_empty();
        // Of several names for one address the global one, and of those the first.
        symbols.beginnings.sort_by_key(|beginning| (beginning.address, !beginning.is_global));
        symbols.beginnings.dedup_by_key(|beginning| beginning.address);
        Ok(symbols)
    }

    fn keep(&mut self, word: &str) -> Piece {
        // A line is shorter than the text, and the text than 4 GB.
        let start = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.text.push_str(word);
        Piece { start, bytes: u16::try_from(word.len()).unwrap_or(0) }
    }

    fn piece(&self, piece: Piece) -> &str {
        let start = piece.start as usize;
        self.text.get(start..start + usize::from(piece.bytes)).unwrap_or_default()
    }

    /// Returns true where the kernel gave 0 for each address: `kernel.kptr_restrict`, or no right
    /// to see them.
    #[must_use]
    pub const fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    /// Functions that are known by address.
    #[must_use]
    pub fn len(&self) -> usize {
        self.beginnings.len()
    }

    /// Returns true where no function is known by address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.beginnings.is_empty()
    }

    /// The function that an address lies in, or that a number was given for.
    #[must_use]
    pub fn find(&self, address: CodeAddress) -> Option<CodeSymbol<'_>> {
        if let Some(number) = address.checked_sub(FIRST_NAME) {
            let place = usize::try_from(number >> OFFSET_BITS).ok()?;
            if let Some(name) = self.names.get(place) {
                let offset = number & ((1 << OFFSET_BITS) - 1);
                let (name, module) = split_module(name);
                return Some(CodeSymbol { name, module, offset });
            }
        }
        let behind = self.beginnings.partition_point(|beginning| beginning.address <= address);
        let beginning = self.beginnings.get(behind.checked_sub(1)?)?;
        let offset = address - beginning.address;
        let module = Some(self.piece(beginning.module)).filter(|module| !module.is_empty());
        (offset < OFFSET_MAX).then(|| CodeSymbol {
            name: self.piece(beginning.name),
            module,
            offset,
        })
    }

    /// The function of an address with the offset in it, `hrtimer_wakeup+0x1d [module]`; the
    /// address where it has no name.
    #[must_use]
    pub fn words(&self, address: CodeAddress) -> String {
        self.find(address).map_or_else(|| format!("{address:#x}"), |symbol| symbol.to_string())
    }

    /// Every function: the address of its beginning, or the number that was given for its name.
    pub fn functions(&self) -> impl Iterator<Item = (CodeAddress, &str)> {
        let known = self.beginnings.iter();
        let known = known.map(|beginning| (beginning.address, self.piece(beginning.name)));
        let numbered = self.names.iter().enumerate();
        let numbered = numbered.map(|(place, name)| {
            (FIRST_NAME + ((place as u64) << OFFSET_BITS), split_module(name).0)
        });
        known.chain(numbered)
    }

    /// The address of a function of the kernel itself; the first of several of that name.
    #[must_use]
    pub fn address_of(&self, name: &str) -> Option<CodeAddress> {
        let is_it = |beginning: &&Beginning| {
            beginning.module.bytes == 0 && self.piece(beginning.name) == name
        };
        self.beginnings.iter().find(is_it).map(|beginning| beginning.address)
    }

    /// A number for a function that a capture names, `name`, `name+0x1d` or `name+0x1d/0x40`, with
    /// ` [module]` behind it or not. The same name gets the same number; 0 once there are too many.
    pub fn number(&mut self, written: &str) -> CodeAddress {
        let written = written.trim();
        let (name, module) = split_module(written);
        let (name, offset) = match name.split_once('+') {
            Some((name, offset)) => (name, offset.split('/').next().and_then(parse_offset)),
            None => (name.split('/').next().unwrap_or(name), None),
        };
        let key = match module {
            Some(module) => format!("{name} [{module}]"),
            None => name.to_owned(),
        };
        if key.is_empty() || key.len() > NAME_BYTES_MAX {
            return 0;
        }
        let place = match self.number_of.get(key.as_str()) {
            Some(&place) => place,
            None if self.names.len() == NAMES_MAX => {
                self.unnamed = self.unnamed.saturating_add(1);
                return 0;
            }
            None => {
                let place = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
                self.names.push(key.clone().into_boxed_str());
                self.number_of.insert(key.into_boxed_str(), place);
                place
            }
        };
        let offset = offset.unwrap_or(0).min((1 << OFFSET_BITS) - 1);
        FIRST_NAME + (u64::from(place) << OFFSET_BITS) + offset
    }

    /// Times that a name got no number, for there were too many.
    #[must_use]
    pub const fn unnamed(&self) -> u64 {
        self.unnamed
    }
}

fn split_module(name: &str) -> (&str, Option<&str>) {
    match name.split_once(" [") {
        Some((name, module)) => (name, module.strip_suffix(']')),
        None => (name, None),
    }
}

fn parse_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A line `ADDRESS TYPE NAME`, with `[MODULE]` behind it or not.
struct SymbolLine<'a> {
    address: CodeAddress,
    kind: char,
    name: &'a str,
    module: Option<&'a str>,
}

impl<'a> SymbolLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let mut letters = words.next()?.chars();
        let (kind, None) = (letters.next()?, letters.next()) else { return None };
        let name = words.next().filter(|name| name.len() <= NAME_BYTES_MAX)?;
        let module = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Some(Self { address, kind, name, module })
    }

    /// The kernel puts bytes before functions, and calls them by these names.
    fn is_code(&self) -> bool {
        matches!(self.kind, 't' | 'T' | 'w' | 'W')
            && !["__pfx_", "__cfi_"].iter().any(|prefix| self.name.starts_with(prefix))
    }

    const fn is_global(&self) -> bool {
        self.kind.is_ascii_uppercase()
    }
}

/// A text that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("symbols of {bytes} bytes; at most {KALLSYMS_BYTES_MAX} are read")]
pub struct SymbolsError {
    bytes: usize,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::btree_map;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{KALLSYMS_BYTES_MAX, NAMES_MAX, Symbols};

    const KALLSYMS: &[u8] = b"0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _stext\n\
        ffffffff81000000 t local_alias\n\
        ffffffff810000f0 t __pfx_second\n\
        ffffffff81000100 t second\n\
        ffffffff82000000 D data\n\
        no line\n\
        ffffffffc0a01000 t probe\t[ahci]\n\
        ffffffffc0a02000 t remove\t[ahci]\n";

    fn found(symbols: &Symbols, address: u64) -> Option<String> {
        symbols.find(address).map(|symbol| symbol.to_string())
    }

    #[test]
    fn an_address_lies_in_the_function_before_it() {
        let symbols = Symbols::parse(KALLSYMS).unwrap();
        let found = |address| found(&symbols, address);
        assert_eq!(symbols.len(), 4);
        assert_eq!(found(0xffff_ffff_8100_0000).as_deref(), Some("_stext"));
        assert_eq!(found(0xffff_ffff_8100_00f4).as_deref(), Some("_stext+0xf4"));
        assert_eq!(found(0xffff_ffff_8100_0100).as_deref(), Some("second"));
        assert_eq!(found(0xffff_ffff_c0a0_1010).as_deref(), Some("probe+0x10 [ahci]"));
        assert_eq!(found(0xffff_ffff_8200_0000), None, "too far behind");
        assert_eq!(found(0xffff_ffff_80ff_ffff), None);
        assert_eq!(found(0), None);
        assert_eq!(symbols.address_of("second"), Some(0xffff_ffff_8100_0100));
        assert_eq!(symbols.address_of("probe"), None);
        assert!(!symbols.is_hidden());
    }

    #[test]
    fn hidden_addresses_are_said() {
        let hidden = b"0000000000000000 T _stext\n0000000000000000 t second\n";
        let symbols = Symbols::parse(hidden).unwrap();
        assert!(symbols.is_hidden() && symbols.is_empty());
        assert!(!Symbols::parse(b"").unwrap().is_hidden());
        let long = vec![b'\n'; KALLSYMS_BYTES_MAX + 1];
        let error = Symbols::parse(&long).unwrap_err().to_string();
        assert_eq!(error, "symbols of 67108865 bytes; at most 67108864 are read");
    }

    #[test]
    fn names_get_numbers() {
        let mut symbols = Symbols::default();
        let wakeup = symbols.number("hrtimer_wakeup");
        assert_eq!(symbols.number(" hrtimer_wakeup "), wakeup);
        // As trace-cmd writes it.
        assert_eq!(symbols.number("hrtimer_wakeup/0x0"), wakeup);
        let within = symbols.number("hrtimer_wakeup+0x1d/0x40");
        assert_eq!(within, wakeup + 0x1d);
        assert_eq!(found(&symbols, within).as_deref(), Some("hrtimer_wakeup+0x1d"));
        let probe = symbols.number("probe+16 [ahci]");
        assert_eq!(found(&symbols, probe).as_deref(), Some("probe+0x10 [ahci]"));
        assert_eq!(symbols.number(""), 0);
        assert_eq!(symbols.number(&"x".repeat(600)), 0);
    }

    #[test]
    fn names_have_an_end() {
        let mut symbols = Symbols::default();
        for name in 0..NAMES_MAX {
            assert_ne!(symbols.number(&format!("f{name}")), 0);
        }
        assert_eq!((symbols.number("one more"), symbols.unnamed()), (0, 1));
        assert_ne!(symbols.number("f0"), 0);
    }

    proptest! {
        #[test]
        fn search_agrees_with_a_walk(
            functions in btree_map(1u64..2_000_000, 0u32..1000, 0..40),
            address in 0u64..3_000_000,
        ) {
            let lines: Vec<_> =
                functions.iter().map(|(at, name)| format!("{at:x} t f{name}")).collect();
            let symbols = Symbols::parse(lines.join("\n").as_bytes()).unwrap();
            let walked: BTreeMap<_, _> = functions.range(..=address).collect();
            let expected = walked.last_key_value().filter(|(at, _)| address - **at < 1 << 20);
            let seen = symbols.find(address).map(|symbol| (symbol.name.to_owned(), symbol.offset));
            prop_assert_eq!(seen, expected.map(|(at, name)| (format!("f{name}"), address - **at)));
        }

        #[test]
        fn any_text_does(text in any::<Vec<u8>>(), name in any::<String>()) {
            let mut symbols = Symbols::parse(&text).unwrap();
            let number = symbols.number(&name);
            assert_eq!(number == 0, symbols.find(number).is_none());
        }
    }
}
