//! The formats of a kernel's events as captures hold them: the head of a `trace.dat` up to its
//! version 6, and the part TRACING_DATA of a `perf.data`.
//!
//! After trace-cmd.dat.v6(5) and perf's `util/trace-event-read.c`. Only formats of events that are
//! understood are kept. Little-endian only.

use std::io::Read;

use super::bytes::ByteReader;
use super::{CaptureError, CaptureFacts};
use crate::decode::{Decoder, is_known};
use crate::event::{ShortName, TaskName};
use crate::format::{EventFormat, FORMAT_BYTES_MAX};
use crate::reasons::{IpiReasons, TEXTS_BYTES_MAX};
use crate::symbols::{KALLSYMS_BYTES_MAX, Symbols};

/// The bytes that both begin with.
pub(crate) const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Longest name of a system or of a version, bytes.
const NAME_BYTES_MAX: usize = 256;

/// Longest text of the names of threads, bytes: 65536 of them.
const THREADS_BYTES_MAX: usize = 4 << 20;

/// A kernel's description of its events.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracingData {
    /// Bytes of a page of ftrace's buffer.
    pub(crate) page_bytes: u32,
    /// Bytes of such a page before its events: its time and its `commit`.
    pub(crate) page_head_bytes: usize,
    pub(crate) formats: Vec<EventFormat>,
    symbols: Symbols,
    reasons: IpiReasons,
    threads: Vec<TaskName>,
}

impl TracingData {
    /// Reads it, behind its magic.
    ///
    /// # Errors
    /// Bytes that are none: big-endian, cut short, or a format that cannot be read.
    pub(crate) fn read<R: Read>(bytes: &mut ByteReader<R>) -> Result<Self, CaptureError> {
        let has_threads = bytes.text(NAME_BYTES_MAX, "head")? != "0.5";
        let mut data = Self::default();
        data.read_machine(bytes)?;
        data.read_pages(bytes)?;
        let count = bytes.u32("head")?;
        for _ in 0..count {
            let size = bytes.u64("formats")?;
            bytes.skip(size, "formats")?;
        }
        data.read_formats(bytes)?;
        let size = bytes.u32("symbols")?;
        data.read_symbols(bytes, size)?;
        let size = bytes.u32("texts")?;
        data.read_texts(bytes, size)?;
        if has_threads {
            let size = bytes.u64("names of threads")?;
            data.read_threads(bytes, size)?;
        }
        Ok(data)
    }

    /// Reads the machine that it was written on.
    pub(crate) fn read_machine<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
    ) -> Result<(), CaptureError> {
        let [is_big, long_bytes] = bytes.array("head")?;
        if is_big != 0 {
            return Err(CaptureError::Unsupported {
                form: Box::from("it was written on a big-endian machine"),
                way_out: "give its text: perf script --ns, or trace-cmd report -t",
            });
        }
        if !matches!(long_bytes, 4 | 8) {
            let why = format!("a `long` of {long_bytes} bytes; 4 and 8 are known");
            return Err(CaptureError::damaged(bytes.at(), why));
        }
        self.page_bytes = bytes.u32("head")?;
        Ok(())
    }

    /// Reads the layout of ftrace's pages.
    pub(crate) fn read_pages<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
    ) -> Result<(), CaptureError> {
        expect(bytes, "header_page")?;
        let size = bytes.u64("head")?;
        let page = bytes.block(size, FORMAT_BYTES_MAX, "head")?;
        // Its fields stand like those of an event, which has a name and a number besides.
        let text = format!("name: page\nID: 0\n{}", String::from_utf8_lossy(&page));
        let page = EventFormat::parse("", &text);
        let page = page.map_err(|why| CaptureError::damaged(bytes.at(), why))?;
        // perf writes none where it may not read it, and needs none.
        self.page_head_bytes = page.field("data").map_or(16, |field| field.offset());
        expect(bytes, "header_event")?;
        let size = bytes.u64("head")?;
        bytes.skip(size, "head")
    }

    /// Reads the formats, system by system.
    pub(crate) fn read_formats<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
    ) -> Result<(), CaptureError> {
        let systems = bytes.u32("formats")?;
        for _ in 0..systems {
            let system = bytes.text(NAME_BYTES_MAX, "formats")?;
            let count = bytes.u32("formats")?;
            for _ in 0..count {
                let size = bytes.u64("formats")?;
                if size > FORMAT_BYTES_MAX as u64 {
                    bytes.skip(size, "formats")?;
                    continue;
                }
                let text = bytes.block(size, FORMAT_BYTES_MAX, "formats")?;
                self.take_format(&system, &text, bytes.at())?;
            }
        }
        Ok(())
    }

    fn take_format(&mut self, system: &str, text: &[u8], at: u64) -> Result<(), CaptureError> {
        let text = String::from_utf8_lossy(text);
        let name = text.lines().find_map(|line| line.strip_prefix("name:")).unwrap_or_default();
        let name = name.trim();
        // A name is kept once, so that there are no more than are understood.
        let is_there = |format: &EventFormat| format.system() == system && format.name() == name;
        if !is_known(system, name) || self.formats.iter().any(is_there) {
            return Ok(());
        }
        let format = EventFormat::parse(system, &text);
        self.formats.push(format.map_err(|why| CaptureError::damaged(at, why))?);
        Ok(())
    }

    /// Reads so many bytes of `/proc/kallsyms`.
    pub(crate) fn read_symbols<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
        size: u32,
    ) -> Result<(), CaptureError> {
        let kallsyms = bytes.block(u64::from(size), KALLSYMS_BYTES_MAX, "symbols")?;
        self.symbols = Symbols::parse(&kallsyms)?;
        Ok(())
    }

    /// Reads so many bytes of `printk_formats`. What is too long is passed over.
    pub(crate) fn read_texts<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
        size: u32,
    ) -> Result<(), CaptureError> {
        let size = u64::from(size);
        if size > TEXTS_BYTES_MAX as u64 {
            return bytes.skip(size, "texts");
        }
        self.reasons = IpiReasons::parse(&bytes.block(size, TEXTS_BYTES_MAX, "texts")?);
        Ok(())
    }

    /// Reads so many bytes of `saved_cmdlines`: a number and a name a line.
    pub(crate) fn read_threads<R: Read>(
        &mut self,
        bytes: &mut ByteReader<R>,
        size: u64,
    ) -> Result<(), CaptureError> {
        let text = bytes.block(size, THREADS_BYTES_MAX, "names of threads")?;
        for line in text.split(|&byte| byte == b'\n') {
            let Some(space) = line.iter().position(|&byte| byte == b' ') else { continue };
            let (tid, name) = (&line[..space], &line[space + 1..]);
            let Some(tid) = str::from_utf8(tid).ok().and_then(|tid| tid.parse().ok()) else {
                continue;
            };
            let kernel_priority = TaskName::UNKNOWN_PRIORITY;
            self.threads.push(TaskName { tid, name: ShortName::new(name), kernel_priority });
        }
        Ok(())
    }

    /// Hands over what a capture's facts keep, and gives the decoder of its records, made of the
    /// formats by `decoder`.
    pub(crate) fn settle(
        self,
        facts: &mut CaptureFacts,
        decoder: impl FnOnce(&[EventFormat]) -> Decoder,
    ) -> Decoder {
        if !self.symbols.is_empty() || self.symbols.is_hidden() {
            facts.set_symbols(self.symbols);
        }
        for task in self.threads {
            facts.name_thread(task);
        }
        decoder(&self.formats).with_reasons(self.reasons)
    }
}

fn expect<R: Read>(bytes: &mut ByteReader<R>, expected: &'static str) -> Result<(), CaptureError> {
    let at = bytes.at();
    let text = bytes.text(NAME_BYTES_MAX, "head")?;
    if text == expected {
        return Ok(());
    }
    Err(CaptureError::damaged(at, format!("{text:?} where {expected:?} belongs")))
}

#[cfg(test)]
mod tests {
    use super::TracingData;
    use crate::capture::CaptureError;
    use crate::capture::bytes::ByteReader;
    use crate::event::Vector;

    fn block(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
    }

    fn short_block(text: &str) -> Vec<u8> {
        let size = u32::try_from(text.len()).unwrap();
        [&size.to_le_bytes(), text.as_bytes()].concat()
    }

    fn whole() -> Vec<u8> {
        let format = "name: softirq_exit\nID: 3\nformat:\n\
            field:int common_pid; offset:4; size:4; signed:1;\n\
            field:unsigned int vec; offset:8; size:4; signed:0;\n";
        [
            &b"0.6\0\0\x08"[..],
            &4096u32.to_le_bytes(),
            b"header_page\0",
            &block("\tfield: char data;\toffset:20;\tsize:4080;\tsigned:1;\n"),
            b"header_event\0",
            &block("event"),
            &1u32.to_le_bytes(),
            &block("name: function\n"),
            &2u32.to_le_bytes(),
            b"irq\0",
            &2u32.to_le_bytes(),
            &block(format),
            &block("name: unknown\n"),
            b"kvm\0",
            &0u32.to_le_bytes(),
            &short_block("ffffffff81000000 T _stext\n"),
            &short_block("0x5 : \"text\"\n0x6 : \"Rescheduling interrupts\"\n"),
            &block("7 servo\nno line\n8 two words\n"),
        ]
        .concat()
    }

    fn read(bytes: &[u8]) -> Result<TracingData, CaptureError> {
        TracingData::read(&mut ByteReader::new(bytes, 10))
    }

    #[test]
    fn keeps_what_is_needed() {
        let data = read(&whole()).unwrap();
        assert_eq!((data.page_bytes, data.page_head_bytes), (4096, 20));
        let names: Vec<_> = data.formats.iter().map(|format| format.name()).collect();
        assert_eq!(names, ["softirq_exit"]);
        assert_eq!(data.symbols.address_of("_stext"), Some(0xffff_ffff_8100_0000));
        let reasons = [5, 6].map(|address| data.reasons.vector(address));
        assert_eq!(reasons, [None, Some(Vector::Reschedule)]);
        let threads: Vec<_> =
            data.threads.iter().map(|task| (task.tid, task.name.to_string())).collect();
        assert_eq!(threads, [(7, "servo".to_owned()), (8, "two words".to_owned())]);
    }

    #[test]
    fn each_cut_is_refused_in_one_line() {
        let whole = whole();
        for end in 0..whole.len() {
            let why = read(&whole[..end]).unwrap_err();
            assert!(matches!(why, CaptureError::Ended { .. }), "{end}: {why}");
        }
    }

    #[test]
    fn each_spoiled_byte_is_read_or_refused() {
        let whole = whole();
        for at in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut spoiled = whole.clone();
                spoiled[at] = byte;
                if let Err(why) = read(&spoiled) {
                    assert!(!why.to_string().contains('\n'), "{why}");
                }
            }
        }
    }

    #[test]
    fn a_big_endian_machine_is_said() {
        let error = read(b"0.6\0\x01\x08").unwrap_err().to_string();
        assert_eq!(
            error,
            "it was written on a big-endian machine; \
             give its text: perf script --ns, or trace-cmd report -t"
        );
    }
}
