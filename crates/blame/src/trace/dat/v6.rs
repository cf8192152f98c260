//! Reads the head of a version 6 file, whose sections follow each other in a fixed order.

use std::io::{BufRead, Seek};

use super::{
    input::Input,
    sections::{CpuData, Sections, option},
};

/// Reads everything before the pages. An error is the name of the damaged section.
pub(super) fn parse<R: BufRead + Seek>(input: &mut Input<R>) -> Result<Sections, &'static str> {
    let mut sections = Sections::default();
    for (part, name) in [
        (option::HEADER_INFO, "description of pages"),
        (option::FTRACE_EVENTS, "formats of tracers"),
        (option::EVENT_FORMATS, "formats of events"),
        (option::KALLSYMS, "symbols"),
        (option::PRINTK, "strings"),
    ] {
        sections.part(part, input).ok_or(name)?;
    }
    // Skips the names of threads: the events contain them.
    input.long_text().ok_or("names of threads")?;
    buffers(input, &mut sections).ok_or("table of CPUs")?;
    Ok(sections)
}

/// Reads the options, and the CPU tables of all buffers.
fn buffers<R: BufRead + Seek>(input: &mut Input<R>, sections: &mut Sections) -> Option<()> {
    let cpus = input.u32()?;
    let mut kind = input.take(10)?;
    let (mut more, mut names_clock) = (Vec::new(), false);
    if kind == b"options  \0" {
        loop {
            let option = input.u16()?;
            if option == 0 {
                break;
            }
            let length = input.u32()?;
            let data = input.take(length.into())?;
            match option {
                option::TRACE_CLOCK => names_clock = true,
                option::BUFFER => more.push(u64::from_le_bytes(*data.first_chunk()?)),
                _ => {}
            }
        }
        kind = input.take(10)?;
    }
    if kind != b"flyrecord\0" {
        return None;
    }
    table(input, cpus, names_clock, sections)?;
    for offset in more {
        input.seek_to(offset)?;
        input.expect(b"flyrecord\0")?;
        table(input, cpus, names_clock, sections)?;
    }
    Some(())
}

/// Reads the CPU table of a buffer.
fn table<R: BufRead + Seek>(input: &mut Input<R>, cpus: u32, names_clock: bool, sections: &mut Sections) -> Option<()> {
    let mut table = Vec::new();
    for cpu in 0..cpus {
        table.push(CpuData { cpu, offset: input.u64()?, size: input.u64()? });
    }
    let clock = if names_clock { input.long_text()? } else { String::new() };
    sections.buffer(table, clock.trim_matches(['[', ']']).to_owned());
    Some(())
}
