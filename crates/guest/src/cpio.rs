//! The "newc" archive format (cpio(5)). The kernel unpacks the initramfs from it, and guests return their files in it.

use std::collections::BTreeMap;

const MAGIC: &[u8] = b"070701";
const HEADER_BYTES: usize = 110;
const TRAILER: &str = "TRAILER!!!";

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

/// An entry of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Folder,
    /// A regular file that everyone can read, and execute if `executable`.
    File {
        /// The content.
        bytes: Vec<u8>,
        /// True if the file is executable.
        executable: bool,
    },
    /// A symbolic link to this path.
    Link(String),
    /// A character device with major and minor number.
    Device(u32, u32),
}

/// Entries by path, without a leading slash. The parent directories of each entry are present, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Adds an entry at `path` and its parent directories. Replaces an existing entry.
    pub fn put(&mut self, path: &str, node: Node) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].to_owned()).or_insert(Node::Folder);
        }
        self.0.insert(path.to_owned(), node);
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File { bytes: bytes.into(), executable: false });
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.put(path, Node::File { bytes: bytes.into(), executable: true });
    }

    /// True if there is an entry at `path`.
    #[must_use]
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path.trim_matches('/'))
    }

    /// The files with their content, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, node)| match node {
            Node::File { bytes, .. } => Some((path.as_str(), bytes.as_slice())),
            _ => None,
        })
    }

    /// The content of the file at `path`.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<&[u8]> {
        match self.0.get(path.trim_matches('/'))? {
            Node::File { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Encodes the archive. Directories precede their content, because their paths sort first.
    #[must_use]
    pub fn to_archive(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (inode, (path, node)) in (1..).zip(&self.0) {
            let (mode, device, bytes): (u32, (u32, u32), &[u8]) = match node {
                Node::Folder => (FOLDER | 0o755, (0, 0), &[]),
                Node::File { bytes, executable } => (FILE | if *executable { 0o755 } else { 0o644 }, (0, 0), bytes),
                Node::Link(target) => (LINK | 0o777, (0, 0), target.as_bytes()),
                Node::Device(major, minor) => (DEVICE | 0o666, (*major, *minor), &[]),
            };
            append(&mut archive, inode, path, mode, device, bytes);
        }
        append(&mut archive, 0, TRAILER, 0, (0, 0), &[]);
        archive
    }

    /// Decodes an archive.
    ///
    /// # Errors
    /// A description of the problem if the archive is truncated or malformed.
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
            let field = |index| field(index).ok_or("a header field is not a number");
            let (mode, size, name_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
            let data_at = padded(HEADER_BYTES + name_size);
            let name = rest.get(HEADER_BYTES..HEADER_BYTES + name_size).ok_or("truncated in a name")?;
            let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
            if name == TRAILER {
                return Ok(tree);
            }
            let bytes = rest.get(data_at..data_at + size).ok_or("truncated in a file")?.to_vec();
            let node = match mode & 0o170_000 {
                FOLDER => Node::Folder,
                FILE => Node::File { bytes, executable: mode & 0o100 != 0 },
                LINK => Node::Link(String::from_utf8_lossy(&bytes).into_owned()),
                DEVICE => Node::Device(field(9)?, field(10)?),
                other => return Err(format!("{name} has unknown type {other:o}")),
            };
            tree.put(&name, node);
            rest = rest.get(padded(data_at + size)..).ok_or("truncated after a file")?;
        }
    }
}

fn append(archive: &mut Vec<u8>, inode: u32, path: &str, mode: u32, device: (u32, u32), bytes: &[u8]) {
    archive.extend_from_slice(MAGIC);
    let links = 1;
    let size = u32::try_from(bytes.len()).expect("a file in a guest is smaller than 4 GiB");
    let name_size = u32::try_from(path.len() + 1).expect("a path in a guest is shorter than 4 GiB");
    // inode, mode, uid, gid, links, time, size, device of the file, device number, length of the name, checksum.
    let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name_size, 0];
    archive.extend(fields.iter().flat_map(|field| format!("{field:08X}").into_bytes()));
    archive.extend_from_slice(path.as_bytes());
    archive.push(0);
    archive.resize(padded(archive.len()), 0);
    archive.extend_from_slice(bytes);
    archive.resize(padded(archive.len()), 0);
}

/// Names and data are padded to a multiple of four.
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
    fn cpio_lists_the_archive() {
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
    fn rejects_truncated_archives() {
        let archive = example().to_archive();
        for len in (0..archive.len() - 3).step_by(7) {
            assert!(Tree::from_archive(&archive[..len]).is_err(), "{len} of {}", archive.len());
        }
    }

    proptest! {
        #[test]
        fn archives_round_trip(files in prop::collection::btree_map("[a-z]{1,9}(/[a-z]{10}){0,3}", prop::collection::vec(any::<u8>(), 0..50), 0..8)) {
            let mut tree = example();
            for (path, bytes) in &files {
                tree.file(path, bytes.clone());
            }
            prop_assert_eq!(Tree::from_archive(&tree.to_archive()).unwrap(), tree);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = Tree::from_archive(&bytes);
            let _ = Tree::from_archive(&[MAGIC, &bytes].concat());
        }
    }
}
