//! Writes with fsync to an unlinked file, so that no file remains however the worker ends.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use machine::CpuList;
use rustix::{
    fs::{FallocateFlags, OFlags, fallocate, fstatfs},
    io::Errno,
};

use super::kind::{Job, Kind, LoadKind, Plan};
use crate::{
    LoadError, SpecError,
    options::{Options, join, size, text},
    units::show_size,
};

/// By convention on a disk; /tmp is often held in memory.
const DEFAULT_DIR: &str = "/var/tmp";
const DEFAULT_SIZE: u64 = 64 << 20;
/// Bytes between two calls of fsync.
const BLOCK: usize = 256 << 10;
const BLOCK_BYTES: u64 = BLOCK as u64;
/// Magic numbers of the file systems in memory: tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Writes with fsync.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disk {
    /// Folder of the unlinked file.
    pub dir: Option<PathBuf>,
    /// Bytes of all files together.
    pub size: Option<u64>,
}

impl LoadKind for Disk {
    const KIND: Kind = Kind {
        name: "disk",
        description: "writes with fsync to an unlinked file of limited size per CPU",
        options: &[
            ("dir=FOLDER", "folder on a disk (default /var/tmp)"),
            ("size=BYTES", "space used by all files together, 1M to 1T (default 64M)"),
        ],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let load = Self { dir: options.value("dir", text)?, size: options.value("size", size(1 << 20..=1 << 40))? };
        options.finish(load)
    }

    fn options(&self) -> String {
        join([
            self.dir.as_ref().map(|dir| format!("dir={}", dir.display())),
            self.size.map(|size| format!("size={}", show_size(size))),
        ])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(self.dir.as_deref(), self.size, cpus)
    }

    fn is_busy(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![
            ("", Self { dir: None, size: None }),
            ("dir=/tmp,size=64M", Self { dir: Some("/tmp".into()), size: Some(64 << 20) }),
            ("dir=/a@b", Self { dir: Some("/a@b".into()), size: None }),
        ]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        let options = (option::of("/([a-z:= ]{0,11}[a-z])?"), option::of((1u64 << 20)..=(1 << 40)));
        options.prop_map(|(dir, size)| Self { dir: dir.map(Into::into), size }).boxed()
    }
}

fn plan(dir: Option<&Path>, size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let dir = dir.unwrap_or(Path::new(DEFAULT_DIR));
    let blocks = (size.unwrap_or(DEFAULT_SIZE) / cpus.len() as u64 / BLOCK_BYTES).max(1);
    let jobs = cpus.iter().map(|cpu| {
        let file = scratch(dir, blocks * BLOCK_BYTES).map_err(|error| failed(dir, &error))?;
        let dir = dir.to_owned();
        Ok(Job::on(cpu, move |meter| {
            let mut data = vec![0x5au8; BLOCK];
            for pass in 0u64.. {
                if !meter.running() {
                    break;
                }
                // Write new content in each pass, so that no disk or file system can skip the write.
                data[..8].copy_from_slice(&pass.to_le_bytes());
                let written = file.write_all_at(&data, pass % blocks * BLOCK_BYTES).and_then(|()| file.sync_all());
                written.map_err(|error| failed(&dir, &error))?;
                meter.add(1);
            }
            Ok(())
        }))
    });
    Ok(Plan::new("blocks of 256 KiB written and synced", jobs.collect::<Result<_, LoadError>>()?))
}

/// A file without a name in `dir`, with `bytes` reserved for it.
fn scratch(dir: &Path, bytes: u64) -> io::Result<File> {
    let file = unnamed(dir)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => {}
        // Not every file system can reserve space; there, the writes fail if the disk is full.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    let kind = fstatfs(&file)?.f_type.cast_unsigned();
    if IN_MEMORY.contains(&kind) {
        return Err(io::Error::other("it is held in memory (tmpfs), so no disk would be written"));
    }
    Ok(file)
}

fn unnamed(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match options.clone().custom_flags(OFlags::TMPFILE.bits().cast_signed()).open(dir) {
        Ok(file) => Ok(file),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL)) => {
            let path: PathBuf = dir.join(format!(".punctual-load-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        Err(error) => Err(error),
    }
}

fn failed(dir: &Path, error: &io::Error) -> LoadError {
    let reason = match Errno::from_io_error(error) {
        Some(Errno::ROFS) => "it is mounted read-only".to_owned(),
        Some(Errno::NOSPC) => "it is full, or smaller than the requested size".to_owned(),
        Some(Errno::DQUOT) => "the disk quota is used up".to_owned(),
        Some(Errno::NOENT) => "there is no such folder".to_owned(),
        Some(Errno::NOTDIR) => "it is not a folder".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "this user may not write there".to_owned(),
        _ => error.to_string(),
    };
    let reason = format!("cannot use {}: {reason}; name another folder, e.g. disk:dir=/var/tmp", dir.display());
    LoadError::Failed { load: Disk::KIND.name, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(dir: &str) -> String {
        let cpus = [0].into_iter().collect();
        plan(Some(Path::new(dir)), None, &cpus).err().expect("refused").to_string()
    }

    #[test]
    fn explains_why_a_folder_is_refused() {
        for (dir, expected) in [
            ("/no/such/folder", "there is no such folder"),
            ("/proc/version", "it is not a folder"),
            ("/dev/shm", "held in memory"),
        ] {
            let reason = reason(dir);
            assert!(reason.contains(expected) && reason.contains("disk:dir="), "{reason}");
        }
    }

    #[test]
    fn scratch_file_has_no_name() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = scratch(dir.path(), 1 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
