//! The marks of cycles in the files of a program.

use std::{collections::HashSet, fs::File};

use blame::{
    Follower, TraceError,
    marks::{self, MAX_MARKS},
};
use machine::Root;
use record::Caveat;

/// The files of a program that were searched for marks.
#[derive(Debug, Default)]
pub struct MarkedFiles {
    /// Device and inode of each.
    searched: HashSet<(String, u64)>,
    /// Why the marks of a file are not traced; `None` without such marks.
    refused: Option<TraceError>,
    /// True if a file has more marks than are used.
    has_too_many: bool,
}

impl MarkedFiles {
    /// Traces the marks in the executable files of a process that were not searched yet.
    pub fn trace(&mut self, root: &Root, pid: u32, follower: &mut Follower) {
        let maps = root.read(&format!("proc/{pid}/maps")).unwrap_or_default();
        for mapping in maps.lines().filter_map(Mapping::parse) {
            if !self.searched.insert((mapping.device.to_owned(), mapping.inode)) {
                continue;
            }
            // This path leads to the mapped file even if it has been replaced, or is in another mount namespace.
            let path = root.path(&format!("proc/{pid}/map_files/{}", mapping.range));
            let marks = File::open(&path).map(marks::find_in_file).unwrap_or_default();
            self.has_too_many |= marks.len() >= MAX_MARKS;
            if let Err(error) = follower.add_marks(&path, &marks) {
                self.refused = Some(error);
            }
        }
    }

    /// The caveat about marks that are not traced.
    pub fn caveat(&self) -> Option<Caveat> {
        let text = match &self.refused {
            Some(error) => format!("the program marks its cycles, but the kernel cannot trace the marks: {error}"),
            None if self.has_too_many => format!("only the first {MAX_MARKS} marks of each file are traced"),
            None => return None,
        };
        Some(Caveat { kind: "marks".to_owned(), text })
    }
}

/// An executable mapping of a file, from a line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    /// Its addresses, as in the file.
    range: &'a str,
    device: &'a str,
    inode: u64,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (range, permissions, _offset) = (fields.next()?, fields.next()?, fields.next()?);
        let (device, inode) = (fields.next()?, fields.next()?.parse().ok()?);
        (inode != 0 && permissions.contains('x')).then_some(Self { range, device, inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_executable_mappings_of_files() {
        let line = "558d24e15000-558d24e19000 r-xp 00002000 fe:01 1835071   /usr/bin/a program (deleted)";
        let mapping = Mapping { range: "558d24e15000-558d24e19000", device: "fe:01", inode: 1_835_071 };
        assert_eq!(Mapping::parse(line), Some(mapping));
        for other in [
            "558d24e15000-558d24e19000 r--p 00002000 fe:01 1835071   /usr/bin/cat",
            "7fff0b1f2000-7fff0b1f4000 r-xp 00000000 00:00 0         [vdso]",
            "",
            "558d24e15000-558d24e19000 r-xp",
        ] {
            assert_eq!(Mapping::parse(other), None, "{other}");
        }
    }
}
