//! Keeps the record on disk while the run goes on, so that a crash or a power cut costs seconds.

use std::{
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use record::{Record, file};

/// Time between two writes. With the writing itself, less than the 5 s that a record may lack.
const EVERY: Duration = Duration::from_secs(3);

/// Writes the record from a thread of its own: a slow disk must not hold up the run.
#[derive(Debug)]
pub struct Keeper {
    sender: SyncSender<Vec<u8>>,
    writer: JoinHandle<()>,
    next: Instant,
}

impl Keeper {
    /// Writes the record at `path` for the first time, and goes on from there.
    ///
    /// # Errors
    /// When the record cannot be written, before anything was measured.
    pub fn start(path: &Path, record: &Record) -> Result<Self, file::FileError> {
        file::write_atomic(path, &file::to_json(record))?;
        let path = path.to_owned();
        let (sender, receiver) = sync_channel::<Vec<u8>>(0);
        let writer = std::thread::Builder::new()
            .name("keeper".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                for bytes in receiver {
                    // A full disk may have room again in three seconds; the last write reports its error.
                    let _ = file::write_atomic(&path, &bytes);
                }
            })
            .map_err(|source| file::FileError::Write { path: "keeper".into(), source })?;
        Ok(Self { sender, writer, next: Instant::now() + EVERY })
    }

    /// Whether it is time to write again.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Writes the record, unless the last write still goes on.
    pub fn keep(&mut self, record: &Record) {
        if self.sender.try_send(file::to_json(record)).is_ok() {
            self.next = Instant::now() + EVERY;
        }
    }

    /// Waits for a write that goes on; nothing is written afterwards.
    pub fn finish(self) {
        drop(self.sender);
        // A writer that panicked has nothing more to write either.
        let _ = self.writer.join();
    }
}
