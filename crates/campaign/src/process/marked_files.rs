//! The marks of cycles in the files of a program.

use std::{
    collections::HashSet,
    env,
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use analysis::format_unsigned_ns;
use blame::{
    Follower, TraceError,
    marks::{self, MAX_MARKS},
};
use machine::Root;
use record::Caveat;

/// The files of a program that were searched for marks.
#[derive(Debug, Default)]
pub struct MarkedFiles {
    /// Device and inode of each mapped file.
    searched: HashSet<(String, u64)>,
    /// Device and inode of each file whose marks are traced.
    traced: HashSet<(u64, u64)>,
    /// Why the marks of a file are not traced; `None` without such marks.
    refused: Option<TraceError>,
    /// A file that could not be read, and why.
    unreadable: Option<(String, io::Error)>,
    /// The file whose marks were found latest after its program was executed, and how long after, ns.
    latest: Option<(String, u64)>,
    /// True if a file has more marks than are used.
    has_too_many: bool,
}

impl MarkedFiles {
    /// Traces the marks in the files that the words of a command name, before it is executed.
    pub fn trace_command(&mut self, words: &[String], follower: &mut Follower) {
        let program = words.first().and_then(|word| find_program(word));
        let others = words.iter().skip(1).map(PathBuf::from);
        for path in program.into_iter().chain(others) {
            // Other files may wait or act when they are opened.
            if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file())
                && let Ok(file) = File::open(&path)
            {
                // The name of the file may contain characters that separate words in the description of a probe.
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                self.trace_file(&file, Path::new(&link), follower);
            }
        }
    }

    /// Traces the marks in the executable files of a process that were not searched yet. `late_ns` is the time since its
    /// program was executed; `None` if it is unknown or does not matter.
    pub fn trace(&mut self, root: &Root, pid: u32, late_ns: Option<u64>, follower: &mut Follower) {
        let maps = root.read(&format!("proc/{pid}/maps")).unwrap_or_default();
        for mapping in maps.lines().filter_map(Mapping::parse) {
            let file = (mapping.device.to_owned(), mapping.inode);
            if self.searched.contains(&file) {
                continue;
            }
            // This path leads to the mapped file even if it has been replaced, or is in another mount namespace.
            let path = root.path(&format!("proc/{pid}/map_files/{}", mapping.link()));
            match File::open(&path) {
                Ok(opened) => {
                    if self.trace_file(&opened, &path, follower) {
                        self.note_late(mapping.path, late_ns.unwrap_or(0));
                    }
                }
                // The process has ended, or executes another program. Another one may use the file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => self.unreadable = Some((mapping.path.to_owned(), error)),
            }
            self.searched.insert(file);
        }
    }

    /// Traces the marks in a file at this path, unless they are traced. Returns true if there are such marks.
    fn trace_file(&mut self, file: &File, path: &Path, follower: &mut Follower) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let marks = file.try_clone().map(marks::find_in_file).unwrap_or_default();
        if marks.is_empty() || !self.traced.insert((metadata.dev(), metadata.ino())) {
            return false;
        }
        self.has_too_many |= marks.len() >= MAX_MARKS;
        if let Err(error) = follower.add_marks(path, &marks) {
            self.refused = Some(error);
        }
        true
    }

    fn note_late(&mut self, path: &str, late_ns: u64) {
        if late_ns > self.latest.as_ref().map_or(0, |&(_, latest_ns)| latest_ns) {
            self.latest = Some((path.to_owned(), late_ns));
        }
    }

    /// The caveats about marks that are not traced, or not from the start.
    pub fn caveats(&self) -> Vec<Caveat> {
        let refused = self
            .refused
            .as_ref()
            .map(|error| format!("the program marks its cycles, but the kernel cannot trace the marks: {error}"));
        let unreadable = self.unreadable.as_ref().map(|(path, error)| {
            format!("marks of cycles in {path} would not be found, because it cannot be read: {error}")
        });
        let late = self.latest.as_ref().map(|(path, late_ns)| {
            let late = format_unsigned_ns(*late_ns);
            format!(
                "the marks in {path} are traced only from {late} after it was executed: earlier cycles have no marks"
            )
        });
        let many = self.has_too_many.then(|| format!("only the first {MAX_MARKS} marks of each file are traced"));
        let caveat = |text| Caveat { kind: "marks".to_owned(), text };
        [refused, unreadable, late, many].into_iter().flatten().map(caveat).collect()
    }
}

/// The file of a command, which is searched in `PATH` if its name has no folder.
fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(name.into());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// An executable mapping of a file, from a line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    /// Its first address, and the one after its last.
    addresses: (u64, u64),
    device: &'a str,
    inode: u64,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let addresses = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let mut fields = rest.split_ascii_whitespace();
        let (permissions, _offset) = (fields.next()?, fields.next()?);
        let (device, inode) = (fields.next()?, fields.next()?.parse().ok()?);
        let path = rest.split_once('/').map_or("", |(before, _)| &rest[before.len()..]);
        (inode != 0 && permissions.contains('x')).then_some(Self { addresses, device, inode, path })
    }

    /// Its name in `map_files`, which has no leading zeros, unlike its line in `maps`.
    fn link(&self) -> String {
        let (from, to) = self.addresses;
        format!("{from:x}-{to:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_executable_mappings_of_files() {
        let line = "558d24e15000-558d24e19000 r-xp 00002000 fe:01 1835071   /usr/bin/a program (deleted)";
        let mapping = Mapping {
            addresses: (0x558d_24e1_5000, 0x558d_24e1_9000),
            device: "fe:01",
            inode: 1_835_071,
            path: "/usr/bin/a program (deleted)",
        };
        assert_eq!(Mapping::parse(line), Some(mapping));
        let fixed = Mapping::parse("00400000-00401000 r-xp 00000000 fe:01 7   /a").unwrap();
        assert_eq!(fixed.link(), "400000-401000", "a program without position-independent code");
        for other in [
            "558d24e15000-558d24e19000 r--p 00002000 fe:01 1835071   /usr/bin/cat",
            "7fff0b1f2000-7fff0b1f4000 r-xp 00000000 00:00 0         [vdso]",
            "",
            "558d24e15000-558d24e19000 r-xp",
        ] {
            assert_eq!(Mapping::parse(other), None, "{other}");
        }
    }

    #[test]
    fn marks_that_are_not_traced_are_caveats() {
        let mut files = MarkedFiles::default();
        assert!(files.caveats().is_empty());
        files.note_late("/bin/a", 0);
        assert!(files.caveats().is_empty());
        files.note_late("/bin/a", 45_000_000);
        files.note_late("/bin/b", 3_000_000);
        files.unreadable = Some(("/bin/c".to_owned(), io::ErrorKind::PermissionDenied.into()));
        let texts: Vec<String> = files.caveats().into_iter().map(|caveat| caveat.text).collect();
        assert!(texts[0].contains("in /bin/c would not be found, because it cannot be read"), "{texts:?}");
        assert!(texts[1].contains("in /bin/a are traced only from 45 ms after"), "{texts:?}");
    }
}
