//! MIDI input: a port of a card (`/dev/snd/midiC*D*`), a named pipe, or a file.

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

/// An open MIDI input.
#[derive(Debug)]
pub struct Port {
    /// `None` after the end of a file.
    file: Option<File>,
    parser: Parser,
}

impl Port {
    /// Opens it without waiting for a writer.
    ///
    /// # Errors
    /// The kernel's error, for example EBUSY if another program reads the port.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_pipe = fs::metadata(path)?.file_type().is_fifo();
        // A pipe that we hold open for writing too does not end when its last other writer closes it.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).write(is_pipe).custom_flags(flags).open(path)?;
        Ok(Self { file: Some(file), parser: Parser::default() })
    }

    /// The messages received so far; waits up to `timeout` for the first one.
    ///
    /// # Errors
    /// The kernel's error, for example ENODEV if the card was removed.
    pub fn events(&mut self, timeout: Duration) -> io::Result<Vec<Event>> {
        let Some(file) = &mut self.file else {
            thread::sleep(timeout);
            return Ok(Vec::new());
        };
        let seconds = timeout.as_secs().try_into().unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&*file, PollFlags::IN)], Some(&timeout)) {
            // Returns on a signal so that the caller can handle it.
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
    fn reads_a_file_and_then_has_no_events() {
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
        assert!(begin.elapsed() >= 2 * SOON, "must wait instead of polling");
        assert_eq!(Port::open(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_stays_open_after_its_writers_close_it() {
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
