//! Writes the record to disk during the run, so that a crash or a power cut loses only a few seconds.

use std::{
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use record::{Record, file};

/// Time between two writes. A crash may lose at most 5 s, including the time that a write takes.
const INTERVAL: Duration = Duration::from_secs(3);

/// Writes the record in its own thread, because a slow disk must not block the run.
#[derive(Debug)]
pub struct RecordWriter {
    sender: SyncSender<Vec<u8>>,
    writer: JoinHandle<()>,
    next: Instant,
}

impl RecordWriter {
    /// Writes the record to `path`, and starts the thread for the next writes.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn start(path: &Path, record: &Record) -> Result<Self, file::FileError> {
        file::write_atomic(path, &file::to_json(record))?;
        let (written, started_at) = (path.to_owned(), record.started_at.clone());
        let (sender, receiver) = sync_channel::<Vec<u8>>(0);
        let writer = std::thread::Builder::new()
            .name("punctual-record".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                for bytes in receiver {
                    // Another run uses the same name: this one gets a name of its own at its end.
                    if file::is_of_another_run(&written, &started_at) {
                        continue;
                    }
                    // A full disk may have space again in three seconds; the last write of the run reports errors.
                    let _ = file::write_atomic(&written, &bytes);
                }
            })
            .map_err(|source| file::FileError::Write { path: path.to_owned(), source })?;
        Ok(Self { sender, writer, next: Instant::now() + INTERVAL })
    }

    /// True if the next write is due.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Starts to write the record, unless the last write is still in progress.
    pub fn start_write(&mut self, record: &Record) {
        if self.sender.try_send(file::to_json(record)).is_ok() {
            self.next = Instant::now() + INTERVAL;
        }
    }

    /// Waits for a write in progress; nothing is written afterwards.
    pub fn finish(self) {
        drop(self.sender);
        // A thread that panicked writes nothing more.
        let _ = self.writer.join();
    }
}
