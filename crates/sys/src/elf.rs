//! Reads the few fields of an ELF file (elf(5)) that we need. Only 64-bit little-endian files are recognised.

use crate::convert::offset;

/// An ELF file.
#[derive(Debug, Clone, Copy)]
pub struct Elf<'a>(&'a [u8]);

/// Machine number of x86-64.
pub const EM_X86_64: u16 = 62;
/// Machine number of arm64.
pub const EM_AARCH64: u16 = 183;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// The note type with which a kernel declares its PVH entry point (Xen's `elfnote.h`; QEMU's loader reads it).
const XEN_ELFNOTE_PHYS32_ENTRY: u32 = 18;

impl<'a> Elf<'a> {
    /// Returns `None` if the magic is not that of a 64-bit little-endian ELF file.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.starts_with(MAGIC).then_some(Self(bytes))
    }

    /// The machine number (`e_machine`), e.g. [`EM_X86_64`].
    #[must_use]
    pub fn machine(&self) -> Option<u16> {
        self.u16(18)
    }

    /// True if the file needs a dynamic linker.
    #[must_use]
    pub fn needs_linker(&self) -> bool {
        self.segments(PT_INTERP).next().is_some()
    }

    /// True if the file is a kernel with a PVH entry point, which needs no bzImage setup code.
    #[must_use]
    pub fn has_pvh_entry(&self) -> bool {
        self.segments(PT_NOTE).flatten().any(|notes| has_note(notes, b"Xen\0", XEN_ELFNOTE_PHYS32_ENTRY))
    }

    /// The contents of the segments of one type; `None` for a truncated segment.
    fn segments(self, wanted: u32) -> impl Iterator<Item = Option<&'a [u8]>> {
        let table = offset(self.u64(32).unwrap_or(0));
        let (size, count) = (self.u16(54).unwrap_or(0) as usize, self.u16(56).unwrap_or(0) as usize);
        (0..count).filter_map(move |index| {
            let at = table.checked_add(index * size)?;
            (self.u32(at)? == wanted).then(|| {
                let (begin, len) = (offset(self.u64(at + 8)?), offset(self.u64(at + 32)?));
                self.0.get(begin..begin.checked_add(len)?)
            })
        })
    }

    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..)?.first_chunk().copied()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        u32_at(self.0, at)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..)?.first_chunk().copied()?))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn has_note(mut notes: &[u8], name: &[u8], kind: u32) -> bool {
    let mut next = || {
        let (name_len, len, found) = (u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize, u32_at(notes, 8)?);
        let name_at: usize = 12;
        let matches = found == kind && notes.get(name_at..name_at.checked_add(name_len)?)? == name;
        let end = name_at + name_len.next_multiple_of(4) + len.next_multiple_of(4);
        notes = notes.get(end.min(notes.len())..)?;
        Some(matches)
    };
    std::iter::from_fn(&mut next).any(|matches| matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with one segment.
    fn elf(machine: u16, segment_type: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(MAGIC);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64..68].copy_from_slice(&segment_type.to_le_bytes());
        bytes[72] = 120;
        bytes[96] = u8::try_from(content.len()).unwrap();
        bytes.extend_from_slice(content);
        bytes
    }

    #[test]
    fn recognises_the_test_binary() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::new(&bytes).unwrap();
        let machine = if cfg!(target_arch = "x86_64") { EM_X86_64 } else { EM_AARCH64 };
        assert_eq!(elf.machine(), Some(machine));
        assert!(!elf.has_pvh_entry());
    }

    #[test]
    fn finds_the_interpreter_and_the_pvh_entry() {
        let note = [&4_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), &18_u32.to_le_bytes(), b"Xen\0", &[0; 4]].concat();
        let other =
            [&4_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &3_u32.to_le_bytes(), b"GNU\0", &[1, 0, 0, 0]].concat();
        for (segment, linker, entry) in [
            (elf(62, PT_INTERP, b"/lib/ld.so\0"), true, false),
            (elf(62, PT_NOTE, &note), false, true),
            (elf(62, PT_NOTE, &[&other[..], &note].concat()), false, true),
            (elf(62, PT_NOTE, &other), false, false),
            (elf(62, PT_NOTE, &note[..14]), false, false),
        ] {
            let elf = Elf::new(&segment).unwrap();
            assert_eq!((elf.machine(), elf.needs_linker(), elf.has_pvh_entry()), (Some(EM_X86_64), linker, entry));
        }
        assert!(Elf::new(b"#!/bin/sh").is_none());
    }
}
