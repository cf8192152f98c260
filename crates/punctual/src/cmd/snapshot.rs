//! `punctual snapshot`: what the checks read of the machine, as an archive for `check --root`.

use std::{env, io::Write};

use flate2::{Compression, write::GzEncoder};
use machine::snapshot;
use record::{counted, file, shell};
use ruzstd::encoding::CompressionLevel;
use tar::{Builder, EntryType, Header};

use crate::{
    cli::Snapshot,
    exit::Usage,
    output::{self, stdout},
};

/// The variables with the name of the user.
const USERS: [&str; 4] = ["USER", "LOGNAME", "SUDO_USER", "DOAS_USER"];

/// Compresses the archive.
type Compress = fn(&[u8]) -> std::io::Result<Vec<u8>>;

/// The endings of the archive's name, each with its compression.
const FORMATS: [(&str, Compress); 2] = [(".tar.gz", gzip), (".tar.zst", zstd)];

pub fn run(options: &Snapshot) -> anyhow::Result<u8> {
    let name = options.output.to_string_lossy();
    let format = FORMATS.iter().find_map(|(ending, compress)| Some((name.strip_suffix(ending)?, compress)));
    let Some((folder, compress)) = format.filter(|(folder, _)| !folder.is_empty() && !folder.ends_with('/')) else {
        return Err(Usage(format!("the archive {name} must be called NAME.tar.gz or NAME.tar.zst")).into());
    };
    let root = output::root(options.root.as_ref())?;
    let users: Vec<String> =
        USERS.iter().filter_map(|name| env::var(name).ok()).filter(|user| user != "root").collect();
    let snapshot = snapshot::Snapshot::of(&root, &users);
    file::write_atomic(&options.output, &compress(&archive(&snapshot)?)?)?;
    stdout(|out| {
        let count = counted(snapshot.files.len() as u64, "file");
        writeln!(out, "wrote {name} with {count}; names of threads and devices remain: read it before you publish it")?;
        let [folder, archive] = [folder, &name].map(|word| shell::command(&[word]));
        writeln!(out, "read it   mkdir {folder} && tar xf {archive} -C {folder} && punctual check --root {folder}")
    })?;
    Ok(0)
}

fn gzip(archive: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(archive)?;
    packed.finish()
}

fn zstd(archive: &[u8]) -> std::io::Result<Vec<u8>> {
    Ok(ruzstd::encoding::compress_to_vec(archive, CompressionLevel::Fastest))
}

/// The archive. Its entries have no owner and no time.
fn archive(snapshot: &snapshot::Snapshot) -> std::io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let header = |kind: EntryType, bytes: u64, mode: u32| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(bytes);
        header.set_mode(mode);
        header
    };
    for folder in &snapshot.folders {
        archive.append_data(&mut header(EntryType::Directory, 0, 0o755), folder, &[][..])?;
    }
    for (path, bytes) in &snapshot.files {
        let mode = if snapshot.read_only.contains(path) { 0o444 } else { 0o644 };
        archive.append_data(&mut header(EntryType::Regular, bytes.len() as u64, mode), path, &**bytes)?;
    }
    for (path, target) in &snapshot.links {
        archive.append_link(&mut header(EntryType::Symlink, 0, 0o777), path, target)?;
    }
    archive.into_inner()
}
