//! The sections before the pages; most have the same form in both versions.

use std::io::{BufRead, Seek};

use super::input::Input;
use crate::trace::{decode::KernelInfo, format::PageLayout, symbols};

/// Start of every file.
pub(super) const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Numbers of options.
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

/// Position and size of one CPU's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuData {
    pub cpu: u32,
    pub offset: u64,
    pub size: u64,
}

/// Contents of the sections.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub layout: Option<PageLayout>,
    /// System and text of each event format.
    pub formats: Vec<(String, String)>,
    pub kallsyms: String,
    pub kernel: KernelInfo,
    pub clock: String,
    pub cpus: Vec<CpuData>,
}

impl Sections {
    /// Reads one section, identified by its option number of version 7. `None` if it is damaged.
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

    /// Reads the formats of a system's events.
    fn system<R: BufRead + Seek>(&mut self, system: &str, input: &mut Input<R>) -> Option<()> {
        for _ in 0..input.u32()? {
            self.formats.push((system.to_owned(), input.long_text()?));
        }
        Some(())
    }

    /// Uses the pages of this buffer if they are larger than those of the buffers before.
    pub(super) fn buffer(&mut self, cpus: Vec<CpuData>, clock: String) {
        let size = |cpus: &[CpuData]| cpus.iter().fold(0_u64, |sum, data| sum.saturating_add(data.size));
        if self.cpus.is_empty() || size(&cpus) > size(&self.cpus) {
            (self.cpus, self.clock) = (cpus, clock);
        }
    }
}
