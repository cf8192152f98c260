//! Where MIDI comes from: a port of a card (`/dev/snd/midiC*D*`), a named pipe, or a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

use crate::midi::{Event, Parser};

/// An open port.
#[derive(Debug)]
pub struct Port {
    /// `None` once a file has been read to its end.
    file: Option<File>,
    parser: Parser,
}

impl Port {
    /// Opens it without waiting for somebody at the other end.
    ///
    /// # Errors
    /// What the kernel answered: `NotFound`, `PermissionDenied`, EBUSY for a port that another program reads.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_pipe = fs::metadata(path)?.file_type().is_fifo();
        // A pipe that we could write to as well has no end when its last writer goes.
        let file =
            OpenOptions::new().read(true).write(is_pipe).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
        Ok(Self { file: Some(file), parser: Parser::default() })
    }

    /// What has come, after waiting for at most so long for the first of it.
    ///
    /// # Errors
    /// ENODEV when the card is gone, and what else the kernel answered.
    pub fn events(&mut self, patience: Duration) -> io::Result<Vec<Event>> {
        let Some(file) = &mut self.file else {
            thread::sleep(patience);
            return Ok(Vec::new());
        };
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&*file, PollFlags::IN)], Some(&timeout)) {
            // A signal is a reason to look what it wants.
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 1024];
        match file.read(&mut bytes) {
            Ok(0) => {
                self.file = None;
                Ok(Vec::new())
            }
            Ok(count) => Ok(bytes[..count].iter().filter_map(|&byte| self.parser.push(byte)).collect()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, time::Instant};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const SOON: Duration = Duration::from_millis(30);

    #[test]
    fn a_file_is_read_to_its_end_and_then_is_silent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("song");
        fs::write(&path, [0xc0, 3, 0xb1, 7, 9]).unwrap();
        let mut port = Port::open(&path).unwrap();
        let control = Event::Control { channel: 1, controller: 7, value: 9 };
        assert_eq!(port.events(SOON).unwrap(), [Event::Program { channel: 0, program: 3 }, control]);
        let begin = Instant::now();
        for _ in 0..3 {
            assert!(port.events(SOON).unwrap().is_empty());
        }
        assert!(begin.elapsed() >= 2 * SOON, "it waits rather than asking again and again");
        assert_eq!(Port::open(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_outlives_its_writers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let mut port = Port::open(&path).unwrap();
        for program in [4, 5] {
            OpenOptions::new().write(true).open(&path).unwrap().write_all(&[0xc0, program]).unwrap();
            assert_eq!(port.events(Duration::from_secs(10)).unwrap(), [Event::Program { channel: 0, program }]);
            assert!(port.events(SOON).unwrap().is_empty());
        }
    }
}
