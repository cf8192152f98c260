//! The "newc" archive (cpio(5)), which the kernel unpacks as its first file system; files also come back in one.

use std::collections::BTreeMap;

const MAGIC: &[u8] = b"070701";
const HEADER_BYTES: usize = 110;
const TRAILER: &str = "TRAILER!!!";

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

/// One thing in a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Folder,
    /// A file that everyone may read, and run where it says so.
    File {
        /// What it holds.
        bytes: Vec<u8>,
        /// Whether it can be run.
        executable: bool,
    },
    /// A symbolic link to this path.
    Link(String),
    /// A character device of this major and minor number.
    Device(u32, u32),
}

/// Things by their path, without a leading slash. The folders above each are there, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Puts a node at `path`, in place of what may be there, and the folders above it.
    pub fn put(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_owned()).or_insert(Node::Folder);
        }
        self.0.insert(path.to_owned(), node);
    }

    /// Puts a file.
    pub fn file(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File { bytes: bytes.into(), executable: false });
    }

    /// Puts a file that can be run.
    pub fn program(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File { bytes: bytes.into(), executable: true });
    }

    /// Whether there is something at `path`.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path.trim_matches('/'))
    }

    /// The files with what they hold, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, node)| match node {
            Node::File { bytes, .. } => Some((path.as_str(), bytes.as_slice())),
            _ => None,
        })
    }

    /// What the file at `path` holds.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<&[u8]> {
        match self.0.get(path.trim_matches('/'))? {
            Node::File { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The archive. A folder stands before what is in it, since its path sorts first.
    #[must_use]
    pub fn to_archive(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (number, (path, node)) in self.0.iter().enumerate() {
            let (mode, device, bytes): (u32, (u32, u32), &[u8]) = match node {
                Node::Folder => (FOLDER | 0o755, (0, 0), &[]),
                Node::File { bytes, executable } => (FILE | if *executable { 0o755 } else { 0o644 }, (0, 0), bytes),
                Node::Link(target) => (LINK | 0o777, (0, 0), target.as_bytes()),
                Node::Device(major, minor) => (DEVICE | 0o666, (*major, *minor), &[]),
            };
            append(&mut archive, number as u32 + 1, path, mode, device, bytes);
        }
        append(&mut archive, 0, TRAILER, 0, (0, 0), &[]);
        archive
    }

    /// Reads an archive; the error says what is wrong with it.
    ///
    /// # Errors
    /// When it is cut off or not of this form.
    pub fn from_archive(archive: &[u8]) -> Result<Self, String> {
        let mut tree = Self::default();
        let mut rest = archive;
        loop {
            let header =
                rest.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC)).ok_or("no archive header")?;
            let field = |index: usize| {
                let digits = &header[MAGIC.len() + index * 8..][..8];
                let digits = std::str::from_utf8(digits).ok()?;
                u32::from_str_radix(digits, 16).ok()
            };
            let field = |index| field(index).ok_or("a header field is no number");
            let (mode, size, name_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
            let data_at = padded(HEADER_BYTES + name_size);
            let name = rest.get(HEADER_BYTES..HEADER_BYTES + name_size).ok_or("cut off in a name")?;
            let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
            if name == TRAILER {
                return Ok(tree);
            }
            let bytes = rest.get(data_at..data_at + size).ok_or("cut off in a file")?.to_vec();
            let node = match mode & 0o170_000 {
                FOLDER => Node::Folder,
                FILE => Node::File { bytes, executable: mode & 0o100 != 0 },
                LINK => Node::Link(String::from_utf8_lossy(&bytes).into_owned()),
                DEVICE => Node::Device(field(9)?, field(10)?),
                other => return Err(format!("{name} is of unknown type {other:o}")),
            };
            tree.put(&name, node);
            rest = rest.get(padded(data_at + size)..).ok_or("cut off after a file")?;
        }
    }
}

fn append(archive: &mut Vec<u8>, inode: u32, path: &str, mode: u32, device: (u32, u32), bytes: &[u8]) {
    archive.extend_from_slice(MAGIC);
    let links = 1;
    let size = u32::try_from(bytes.len()).expect("a file in a guest is smaller than 4 GiB");
    let name_size = path.len() as u32 + 1;
    // inode, mode, uid, gid, links, time, size, device of the file, device that it is, length of the name, check sum.
    let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
    archive.extend(fields.iter().flat_map(|field| format!("{field:08X}").into_bytes()));
    archive.extend_from_slice(path.as_bytes());
    archive.push(0);
    archive.resize(padded(archive.len()), 0);
    archive.extend_from_slice(bytes);
    archive.resize(padded(archive.len()), 0);
}

/// Names and data end at a multiple of four.
fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use std::{io::Write, process};

    use proptest::prelude::*;

    use super::*;

    fn example() -> Tree {
        let mut tree = Tree::default();
        tree.program("/bin/deep/program", "run me");
        tree.file("notes", "12345");
        tree.put("dev/console", Node::Device(5, 1));
        tree.put("init", Node::Link("bin/deep/program".to_owned()));
        tree
    }

    #[test]
    fn another_reader_finds_what_was_put_in() {
        let Ok(mut cpio) = process::Command::new("cpio")
            .args(["-tv", "--quiet"])
            .stdin(process::Stdio::piped())
            .stdout(process::Stdio::piped())
            .spawn()
        else {
            return;
        };
        cpio.stdin.take().unwrap().write_all(&example().to_archive()).unwrap();
        let listing = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<_> = listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        let types: Vec<_> = lines.iter().map(|line| (line[0], *line.last().unwrap())).collect();
        assert_eq!(
            types,
            [
                ("drwxr-xr-x", "bin"),
                ("drwxr-xr-x", "bin/deep"),
                ("-rwxr-xr-x", "bin/deep/program"),
                ("drwxr-xr-x", "dev"),
                ("crw-rw-rw-", "dev/console"),
                ("lrwxrwxrwx", "bin/deep/program"),
                ("-rw-r--r--", "notes"),
            ]
        );
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let archive = example().to_archive();
        for len in (0..archive.len() - 3).step_by(7) {
            assert!(Tree::from_archive(&archive[..len]).is_err(), "{len} of {}", archive.len());
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(files in prop::collection::btree_map("[a-z]{1,9}(/[a-z]{10}){0,3}", prop::collection::vec(any::<u8>(), 0..50), 0..8)) {
            let mut tree = example();
            for (path, bytes) in &files {
                tree.file(path, bytes.clone());
            }
            prop_assert_eq!(Tree::from_archive(&tree.to_archive()).unwrap(), tree);
        }

        #[test]
        fn takes_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Tree::from_archive(&bytes);
            let _ = Tree::from_archive(&[MAGIC, &bytes].concat());
        }
    }
}
