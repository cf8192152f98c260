//! Writes with fsync into an unlinked file: nothing is left behind, however the worker ends.

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

use super::{Job, Plan};
use crate::LoadError;

/// By convention on a disk, where /tmp is often held in memory.
const DEFAULT_DIR: &str = "/var/tmp";
const DEFAULT_SIZE: u64 = 64 << 20;
/// Bytes between two calls of fsync.
const BLOCK: u64 = 256 << 10;
/// File systems that are memory: tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

pub(super) fn plan(dir: Option<&Path>, size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let dir = dir.unwrap_or(Path::new(DEFAULT_DIR));
    let blocks = (size.unwrap_or(DEFAULT_SIZE) / cpus.len() as u64 / BLOCK).max(1);
    let jobs = cpus.iter().map(|cpu| {
        let file = scratch(dir, blocks * BLOCK).map_err(|error| failed(dir, &error))?;
        let dir = dir.to_owned();
        Ok(Job::on(cpu, move |meter| {
            let mut data = vec![0x5au8; BLOCK as usize];
            for pass in 0u64.. {
                if !meter.running() {
                    break;
                }
                // New content each time: a clever disk or file system must not find it there already.
                data[..8].copy_from_slice(&pass.to_le_bytes());
                let written = file.write_all_at(&data, pass % blocks * BLOCK).and_then(|()| file.sync_all());
                written.map_err(|error| failed(&dir, &error))?;
                meter.add(1);
            }
            Ok(())
        }))
    });
    Ok(Plan::new("times 256 KiB written and flushed", jobs.collect::<Result<_, LoadError>>()?))
}

/// A file without a name in `dir` that `bytes` are reserved for.
fn scratch(dir: &Path, bytes: u64) -> io::Result<File> {
    let file = unnamed(dir)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => {}
        // Not every file system can reserve; there, the writes will tell.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    let kind = fstatfs(&file)?.f_type.cast_unsigned();
    if IN_MEMORY.contains(&kind) {
        return Err(io::Error::other("it is held in memory (tmpfs), so that no disk would be written"));
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
        Some(Errno::NOSPC) => "it is full, or smaller than the size asked for".to_owned(),
        Some(Errno::DQUOT) => "the disk quota is used up".to_owned(),
        Some(Errno::NOENT) => "there is no such folder".to_owned(),
        Some(Errno::NOTDIR) => "it is not a folder".to_owned(),
        Some(Errno::ACCESS | Errno::PERM) => "this user may not write there".to_owned(),
        _ => error.to_string(),
    };
    LoadError::Disk { dir: dir.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(dir: &str) -> String {
        let cpus = [0].into_iter().collect();
        plan(Some(Path::new(dir)), None, &cpus).err().expect("refused").to_string()
    }

    #[test]
    fn folders_that_cannot_be_used_are_explained() {
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
    fn a_scratch_file_has_no_name() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = scratch(dir.path(), 1 << 20).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
