//! Boots a guest, listens to it, and ends it.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read},
    process::{Child, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    Arch, Guest, GuestError, Image, Initramfs, Tree,
    error::At,
    frame::{Frame, Kind, Receiver},
    initramfs::find_program,
    memfile::MemoryFile,
};

/// A kernel that has printed nothing for so long will not.
const SILENT_AFTER: Duration = Duration::from_secs(60);
/// Lines of the console that an error shows.
const LINES_SHOWN: usize = 20;

/// What a guest says while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The kernel's own words, one line.
    Console(&'a str),
    /// The kernel has booted; its release.
    Booted(&'a str),
    /// A piece of the command's standard output.
    Stdout(&'a [u8]),
    /// A piece of the command's standard error.
    Stderr(&'a [u8]),
}

/// What a guest brought back.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The command's exit status; 128 and the number of the signal that ended it.
    pub status: i32,
    /// The files that it left in its folder, and the kernel's log.
    pub files: Tree,
    /// Time from the start to the kernel's first process, by the host's clock.
    pub boot: Duration,
    /// Time from the start to the end, by the host's clock.
    pub wall: Duration,
}

/// Boots `image` and tells `listen` what the guest says, until it is done.
///
/// The emulator ends with this call, and with this process, however that ends.
///
/// # Errors
/// [`GuestError`] when the guest did not come to its end or not everything arrived. A command that failed is no error.
pub fn run(
    guest: &Guest,
    image: &Image,
    initramfs: &Initramfs,
    listen: &mut dyn FnMut(Event),
) -> Result<Outcome, GuestError> {
    let arch = image.arch;
    if guest.emulator.is_none() && find_program(arch.qemu()).is_none() {
        return Err(GuestError::NoQemu { arch });
    }
    let archive = MemoryFile::new("initramfs", &initramfs.to_archive())?;
    let mut command = guest.command(arch, image.path(), archive.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    sys::child::signal_when_parent_ends(&mut command, Signal::KILL);
    let begin = Instant::now();
    let mut emulator = Emulator(command.spawn().reading(std::path::Path::new(command.get_program()))?);
    let console = emulator.0.stdout.take().map(lines_of);
    let complaints = emulator.0.stderr.take().map(text_of);
    let (Some(console), Some(complaints)) = (console, complaints) else { unreachable!("both are piped") };
    let mut listener = Listener::new(guest, arch, begin, listen);
    let done = listener.until_end(&console);
    drop(emulator);
    match done {
        Err(GuestError::Ended { .. }) if listener.tail.is_empty() => {
            let said = complaints.recv().unwrap_or_default();
            let program = command.get_program().to_string_lossy().into_owned();
            Err(match said.trim() {
                "" => GuestError::Silent { arch, after: begin.elapsed() },
                said => GuestError::Qemu { program, said: said.lines().last().unwrap_or(said).to_owned() },
            })
        }
        done => done,
    }
}

/// The emulator's process; ended and reaped when dropped.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed any more, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pipe that is read now and then. The emulator writes a guest's console byte by byte, and a reader that woke for each
/// would slow it down several times.
struct PacedReader<R>(R);

impl<R: Read> Read for PacedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_millis(4));
        self.0.read(buffer)
    }
}

/// The lines of a pipe, read by a thread of their own; the channel closes at the end.
fn lines_of(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut pipe = BufReader::with_capacity(64 * 1024, PacedReader(pipe));
        let mut line = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}

fn text_of(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut said = Vec::new();
        let _ = pipe.read_to_end(&mut said);
        let _ = sender.send(String::from_utf8_lossy(&said).into_owned());
    });
    text
}

/// Follows a console to its end mark.
struct Listener<'a> {
    arch: Arch,
    begin: Instant,
    timeout: Duration,
    listen: &'a mut dyn FnMut(Event),
    receiver: Receiver,
    /// The last lines that were no frames.
    tail: VecDeque<String>,
    /// Why the kernel panicked.
    panic: Option<String>,
    files: Vec<u8>,
    boot: Option<Duration>,
}

impl<'a> Listener<'a> {
    fn new(guest: &Guest, arch: Arch, begin: Instant, listen: &'a mut dyn FnMut(Event)) -> Self {
        Self {
            arch,
            begin,
            timeout: guest.timeout,
            listen,
            receiver: Receiver::default(),
            tail: VecDeque::new(),
            panic: None,
            files: Vec::new(),
            boot: None,
        }
    }

    fn until_end(&mut self, console: &mpsc::Receiver<String>) -> Result<Outcome, GuestError> {
        loop {
            let silent = self.tail.is_empty() && self.boot.is_none();
            let limit = if silent { self.timeout.min(SILENT_AFTER) } else { self.timeout };
            match console.recv_timeout(limit.saturating_sub(self.begin.elapsed())) {
                Ok(line) => {
                    if let Some(status) = self.line(&line)? {
                        return self.outcome(status);
                    }
                }
                Err(RecvTimeoutError::Timeout) if silent => {
                    return Err(GuestError::Silent { arch: self.arch, after: limit });
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(GuestError::Timeout { after: limit, console: self.last_lines() });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// Takes in one line; the exit status when it is the last.
    fn line(&mut self, line: &str) -> Result<Option<i32>, GuestError> {
        let read = self.receiver.read(line);
        let read = read.map_err(|source| GuestError::Transport { source, console: self.last_lines() })?;
        let text = printable(read.text);
        if !text.is_empty() {
            (self.listen)(Event::Console(&text));
            self.remember(text);
        }
        read.frame.map_or(Ok(None), |frame| self.frame(&frame))
    }

    fn frame(&mut self, frame: &Frame) -> Result<Option<i32>, GuestError> {
        let text = || String::from_utf8_lossy(&frame.content);
        match frame.kind {
            Kind::Hello => {
                self.boot = Some(self.begin.elapsed());
                (self.listen)(Event::Booted(&text()));
            }
            Kind::Out => (self.listen)(Event::Stdout(&frame.content)),
            Kind::Err => (self.listen)(Event::Stderr(&frame.content)),
            Kind::Files => self.files.extend_from_slice(&frame.content),
            Kind::Failure => return Err(GuestError::Guest(text().into_owned())),
            Kind::End => {
                let status = text().parse().map_err(|_| GuestError::Guest(format!("no exit status: {}", text())))?;
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    fn outcome(&self, status: i32) -> Result<Outcome, GuestError> {
        let mut archive = Vec::new();
        let unpacked = flate2::read::DeflateDecoder::new(self.files.as_slice()).read_to_end(&mut archive);
        let files = unpacked.map_err(|error: io::Error| error.to_string()).and_then(|_| Tree::from_archive(&archive));
        Ok(Outcome {
            status,
            files: files.map_err(GuestError::Files)?,
            boot: self.boot.unwrap_or_default(),
            wall: self.begin.elapsed(),
        })
    }

    /// Keeps the last lines; those before a panic and the first after it once there is one.
    fn remember(&mut self, line: String) {
        const PANIC: &str = "Kernel panic - not syncing: ";
        if self.panic.is_none() {
            self.panic = line.split_once(PANIC).map(|(_, reason)| reason.trim_end_matches(" ]---").to_owned());
        } else if self.tail.len() == LINES_SHOWN {
            return;
        }
        if self.tail.len() == LINES_SHOWN {
            self.tail.drain(..LINES_SHOWN / 2);
        }
        self.tail.push_back(line);
    }

    fn ended(&self) -> GuestError {
        let console = self.last_lines();
        match &self.panic {
            Some(reason) => GuestError::Panic { reason: reason.clone(), console },
            None => GuestError::Ended { console },
        }
    }

    fn last_lines(&self) -> String {
        self.tail.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    }
}

/// A line without what would move the cursor of a terminal.
fn printable(line: &str) -> String {
    let text: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
