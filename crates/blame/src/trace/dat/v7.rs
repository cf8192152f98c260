//! Reads the head of a version 7 file, whose options point to sections anywhere in the file.

use std::io::{BufRead, Seek};

use super::{
    input::Input,
    sections::{CpuData, Sections, option},
};

/// Reads everything except the pages. An error is the name of the damaged part.
pub(super) fn parse<R: BufRead + Seek>(input: &mut Input<R>, mut options_at: u64) -> Result<Sections, &'static str> {
    let mut sections = Sections::default();
    let mut sections_at = Vec::new();
    // Each list of options points to the next one; the limit stops at circular lists.
    for _ in 0..64 {
        if options_at == 0 {
            break;
        }
        options_at = options(input, options_at, &mut sections_at, &mut sections).ok_or("options")?;
    }
    for (option, offset) in sections_at {
        section(input, option, offset, &mut sections).ok_or("sections")?;
    }
    Ok(sections)
}

/// Reads one list of options. Returns the offset of the next list, 0 after the last one.
fn options<R: BufRead + Seek>(
    input: &mut Input<R>,
    at: u64,
    sections_at: &mut Vec<(u16, u64)>,
    sections: &mut Sections,
) -> Option<u64> {
    input.seek_to(at)?;
    header(input)?;
    loop {
        let (option, length) = (input.u16()?, input.u32()?);
        let next = input.position()?.checked_add(length.into())?;
        match option {
            0 => return input.u64(),
            option::BUFFER => buffer(input, sections)?,
            option::HEADER_INFO..=option::PRINTK => sections_at.push((option, input.u64()?)),
            _ => {}
        }
        input.seek_to(next)?;
    }
}

fn section<R: BufRead + Seek>(input: &mut Input<R>, option: u16, at: u64, sections: &mut Sections) -> Option<()> {
    input.seek_to(at)?;
    header(input)?;
    sections.part(option, input)
}

/// Skips the section header: number, flags, description and size.
fn header<R: BufRead + Seek>(input: &mut Input<R>) -> Option<()> {
    input.take(2 + 2 + 4 + 8).map(drop)
}

/// Reads the CPU table of a buffer.
fn buffer<R: BufRead + Seek>(input: &mut Input<R>, sections: &mut Sections) -> Option<()> {
    let _section = input.u64()?;
    let (_name, clock, _page_size) = (input.string()?, input.string()?, input.u32()?);
    let mut table = Vec::new();
    for _ in 0..input.u32()? {
        table.push(CpuData { cpu: input.u32()?, offset: input.u64()?, size: input.u64()? });
    }
    sections.buffer(table, clock);
    Some(())
}
