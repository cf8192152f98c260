//! Finds the marks of cycles in a program: USDT probes `punctual:cycle_begin` and `punctual:cycle_end`, which the macros
//! of `include/punctual.h` make.
//!
//! The notes have the format of SystemTap, version 3:
//! <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>.

use std::fs::File;

use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};

/// Name of the section with the notes.
const NOTES: &str = ".note.stapsdt";
/// Its largest size that is read, bytes. The one of a large C++ program with many probes has some hundred KB.
const MAX_NOTES_BYTES: u64 = 4 << 20;
/// Owner and type of the notes.
const OWNER: &[u8] = b"stapsdt\0";
const TYPE: u32 = 3;
/// Most marks that are used of one file.
pub const MAX_MARKS: usize = 256;

/// One mark in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// True at the start of a cycle, false at its end.
    pub begins: bool,
    /// Position of its instruction in the file, bytes.
    pub offset: u64,
    /// Position of its semaphore in the file, bytes. The program runs a mark with a semaphore only while that is not 0.
    pub semaphore: Option<u64>,
}

/// Finds the marks in an ELF file; empty for other files, and without marks. Reads only the needed parts of the file.
#[must_use]
pub fn find_in_file(file: File) -> Vec<Mark> {
    find(&ReadCache::new(file))
}

/// Finds the marks in an ELF file; empty for other files, and without marks.
pub fn find<'data>(file: impl ReadRef<'data>) -> Vec<Mark> {
    find_in_notes(file).unwrap_or_default()
}

fn find_in_notes<'data>(file: impl ReadRef<'data>) -> Option<Vec<Mark>> {
    let object = object::File::parse(file).ok().filter(object::File::is_little_endian)?;
    let notes = object.section_by_name(NOTES).filter(|section| section.size() <= MAX_NOTES_BYTES)?.data().ok()?;
    let base = object.section_by_name(".stapsdt.base").map(|section| section.address());
    let word = if object.is_64() { 8 } else { 4 };
    let offset_of = |address: u64| {
        object.segments().find_map(|segment| {
            let (offset, size) = segment.file_range();
            let inside = address.checked_sub(segment.address()).filter(|&inside| inside < size)?;
            offset.checked_add(inside)
        })
    };
    let mark = |probe: &Probe| {
        let begins = match (probe.provider, probe.name) {
            (b"punctual", b"cycle_begin") => true,
            (b"punctual", b"cycle_end") => false,
            _ => return None,
        };
        // A tool such as prelink moves the file but leaves the addresses in its notes.
        let moved = base.unwrap_or(probe.base).wrapping_sub(probe.base);
        let offset = offset_of(probe.address.wrapping_add(moved))?;
        let semaphore = match probe.semaphore {
            0 => None,
            address => Some(offset_of(address.wrapping_add(moved))?),
        };
        Some(Mark { begins, offset, semaphore })
    };
    Some(Notes(notes).filter_map(|description| mark(&Probe::parse(description, word)?)).take(MAX_MARKS).collect())
}

/// The descriptions of the probes in a section of notes.
struct Notes<'a>(&'a [u8]);

impl<'a> Iterator for Notes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (name_size, rest) = number::<4>(self.0)?;
            let (description_size, rest) = number::<4>(rest)?;
            let (kind, rest) = number::<4>(rest)?;
            let (name, rest) = padded(rest, name_size)?;
            let (description, rest) = padded(rest, description_size)?;
            self.0 = rest;
            if name == OWNER && kind == u64::from(TYPE) {
                return Some(description);
            }
        }
    }
}

/// One probe as its note describes it.
struct Probe<'a> {
    address: u64,
    base: u64,
    semaphore: u64,
    provider: &'a [u8],
    name: &'a [u8],
}

impl<'a> Probe<'a> {
    fn parse(description: &'a [u8], word: usize) -> Option<Self> {
        let read = if word == 8 { number::<8> } else { number::<4> };
        let (address, rest) = read(description)?;
        let (base, rest) = read(rest)?;
        let (semaphore, rest) = read(rest)?;
        let mut texts = rest.split(|&byte| byte == 0);
        Some(Self { address, base, semaphore, provider: texts.next()?, name: texts.next()? })
    }
}

/// A little-endian number of `SIZE` bytes at the start of `bytes`, and the rest.
fn number<const SIZE: usize>(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<SIZE>()?;
    Some((number.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), rest))
}

/// The first `size` bytes, and what follows after padding to 4 bytes.
fn padded(bytes: &[u8], size: u64) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let (content, rest) = bytes.split_at_checked(size)?;
    let padding = size.next_multiple_of(4) - size;
    // The last note may have no padding.
    Some((content, rest.get(padding..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use proptest::prelude::*;

    use super::*;

    const SOURCE: &str = r#"
        #include "punctual.h"
        static inline void twice(void) { PUNCTUAL_CYCLE_BEGIN(); PUNCTUAL_CYCLE_END(); }
        int main(void) { twice(); PUNCTUAL_CYCLE_BEGIN(); return 0; }
    "#;

    /// A program with marks.
    fn compiled(options: &[&str]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("marked.c"), folder.path().join("marked"));
        fs::write(&source, SOURCE).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
        let output = Command::new("cc")
            .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(include)
            .args(options)
            .args([&source, Path::new("-o"), &program])
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read(program).unwrap()
    }

    #[test]
    fn finds_the_marks_of_the_header() {
        for options in [&["-O0"][..], &["-O2"], &["-O2", "-no-pie"], &["-O2", "-shared", "-fPIC"]] {
            let program = compiled(options);
            let marks = find(&program[..]);
            // The compiler may copy an inline function.
            let begins = marks.iter().filter(|mark| mark.begins).count();
            assert!(begins >= 2 && marks.len() > begins, "{options:?}: {marks:?}");
            for mark in &marks {
                #[cfg(target_arch = "x86_64")]
                assert_eq!(program[usize::try_from(mark.offset).unwrap()], 0x90, "no-operation");
                assert_eq!(mark.semaphore, None);
            }
        }
    }

    fn note(address: u64, base: u64, semaphore: u64, texts: &str) -> Vec<u8> {
        let mut description: Vec<u8> = [address, base, semaphore].into_iter().flat_map(u64::to_le_bytes).collect();
        description.extend(texts.bytes());
        let sizes = [OWNER.len(), description.len()].map(|size| u32::try_from(size).unwrap());
        let mut note: Vec<u8> = [sizes[0], sizes[1], TYPE].into_iter().flat_map(u32::to_le_bytes).collect();
        note.extend(OWNER);
        note.extend(&description);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn reads_notes_until_one_is_cut_off() {
        let mut notes = [note(1, 2, 3, "punctual\0cycle_end\0\0"), note(4, 5, 6, "a\0b\0-4@%eax\0")].concat();
        let probes = |notes: &[u8]| {
            let probes = Notes(notes).map(|description| Probe::parse(description, 8).unwrap());
            probes.map(|probe| (probe.address, probe.base, probe.semaphore, probe.name.to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(probes(&notes), [(1, 2, 3, b"cycle_end".to_vec()), (4, 5, 6, b"b".to_vec())]);
        notes.truncate(notes.len() - 4);
        assert_eq!(probes(&notes).len(), 1);
        assert!(find(&b"#!/bin/sh\n"[..]).is_empty() && find(&b""[..]).is_empty());
    }

    proptest! {
        #[test]
        fn a_damaged_program_is_no_panic(at in 0_usize..100_000, bytes in prop::array::uniform8(any::<u8>())) {
            static PROGRAM: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
            let mut program = PROGRAM.get_or_init(|| compiled(&["-O2"])).clone();
            let at = at % (program.len() - bytes.len());
            program[at..at + bytes.len()].copy_from_slice(&bytes);
            let marks = find(&program[..]);
            prop_assert!(marks.len() <= MAX_MARKS);
        }
    }
}
