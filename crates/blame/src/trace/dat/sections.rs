//! What a file says before its pages; most parts have the same form in both versions.

use std::io::{BufRead, Seek};

use super::input::Input;
use crate::trace::{decode::KernelInfo, format::PageLayout, symbols};

/// What every file begins with.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Options, by their number.
pub(super) mod option {
    pub const BUFFER: u16 = 3;
    pub const TRACE_CLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const CPU_COUNT: u16 = 8;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const PRINTK: u16 = 20;
}

/// The pages of one CPU in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuData {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
}

/// What a file says before its pages.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub layout: Option<PageLayout>,
    /// System and text of each format.
    pub formats: Vec<(String, String)>,
    pub kallsyms: String,
    pub kernel: KernelInfo,
    pub clock: String,
    pub cpus: Vec<CpuData>,
}

impl Sections {
    /// One of the parts, by the option of version 7 that leads to it. `None` when it is damaged.
    pub(super) fn part<R: BufRead + Seek>(&mut self, option: u16, input: &mut Input<R>) -> Option<()> {
        match option {
            option::HEADER_INFO => {
                input.expect(b"header_page\0")?;
                self.layout = Some(PageLayout::parse(&input.long_text()?)?);
                input.expect(b"header_event\0")?;
                input.long_text()?;
            }
            option::FTRACE_EVENTS => self.system("ftrace", input)?,
            option::EVENT_FORMATS => {
                for _ in 0..input.u32()? {
                    let system = input.string()?;
                    self.system(&system, input)?;
                }
            }
            option::KALLSYMS => self.kallsyms = input.short_text()?,
            option::PRINTK => self.kernel.strings = symbols::strings(&input.short_text()?),
            _ => {}
        }
        Some(())
    }

    /// The formats of a system's events.
    fn system<R: BufRead + Seek>(&mut self, system: &str, input: &mut Input<R>) -> Option<()> {
        for _ in 0..input.u32()? {
            self.formats.push((system.to_owned(), input.long_text()?));
        }
        Some(())
    }

    /// Takes the pages of a buffer if they are more than those of another one before.
    pub(super) fn buffer(&mut self, cpus: Vec<CpuData>, clock: String) {
        let size = |cpus: &[CpuData]| cpus.iter().fold(0_u64, |sum, data| sum.saturating_add(data.size));
        if self.cpus.is_empty() || size(&cpus) > size(&self.cpus) {
            (self.cpus, self.clock) = (cpus, clock);
        }
    }
}
