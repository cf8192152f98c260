//! Boots a guest, processes its console and stops it.

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
    image::read_up_to,
    initramfs::find_program,
    memfile::MemoryFile,
};

/// A kernel without any output after this time is considered silent.
const SILENT_AFTER: Duration = Duration::from_secs(60);
/// Longest console line, bytes; frames have 4.2 KB. The rest of a longer one counts as the next line.
const LINE_MAX: u64 = 64 << 10;
/// Lines that wait; then QEMU waits until some are processed.
const LINES_WAITING: usize = 1000;
/// The messages of QEMU that are kept, bytes.
const MESSAGES_MAX: u64 = 1 << 20;
/// The most that the files of a guest may have in the compressed archive, bytes.
const PACKED_FILES_MAX: usize = 64 << 20;
/// The most that they may have uncompressed, bytes.
const FILES_MAX: u64 = if cfg!(test) { 1 << 20 } else { 512 << 20 };
/// Time between two checks for a signal that asks this process to end.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// The number of console lines in errors.
const LINES_SHOWN: usize = 20;

/// Output of a running guest.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A line printed by the kernel.
    Console(&'a str),
    /// The kernel has booted; its release.
    Booted(&'a str),
    /// A part of the command's standard output.
    Stdout(&'a [u8]),
    /// A part of the command's standard error.
    Stderr(&'a [u8]),
}

/// The results of a guest.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The command's exit status, or 128 plus the number of the signal that killed it.
    pub status: i32,
    /// The files in its result directory, and the kernel log.
    pub files: Tree,
    /// Time from the start to the kernel's first process, by the host's clock.
    pub boot: Duration,
    /// Time from the start to the end, by the host's clock.
    pub wall: Duration,
}

/// Boots `image`, runs the job and passes the guest's output to `listen`.
///
/// QEMU is killed when this function returns or when this process ends.
///
/// # Errors
/// [`GuestError`] if the guest did not finish or data was lost. A failed command is not an error.
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
    let errors = emulator.0.stderr.take().map(text_of);
    let (Some(console), Some(errors)) = (console, errors) else { unreachable!("stdout and stderr are piped") };
    let mut listener = Console::new(guest, arch, begin, listen);
    let result = listener.run_to_end(&console);
    drop(emulator);
    match result {
        Err(GuestError::Ended { .. }) if listener.tail.is_empty() => {
            let message = errors.recv().unwrap_or_default();
            let program = command.get_program().to_string_lossy().into_owned();
            Err(match message.trim() {
                "" => GuestError::EndedSilent { arch },
                message => GuestError::Qemu { program, said: message.lines().last().unwrap_or(message).to_owned() },
            })
        }
        result => result,
    }
}

/// The QEMU process, killed and reaped on drop.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a pipe in intervals. QEMU writes the console byte by byte, and a reader that wakes up for each byte would slow
/// QEMU down several times.
struct PacedReader<R>(R);

impl<R: Read> Read for PacedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_millis(4));
        self.0.read(buffer)
    }
}

/// Reads a pipe line by line on a separate thread. The channel closes at the end of the pipe.
fn lines_of(pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::sync_channel(LINES_WAITING);
    thread::spawn(move || {
        let mut pipe = BufReader::with_capacity(64 * 1024, PacedReader(pipe));
        let mut line = Vec::new();
        while matches!((&mut pipe).take(LINE_MAX).read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.send(text).is_err() {
                break;
            }
            line.clear();
        }
    });
    lines
}

/// Reads the beginning of a pipe, and discards the rest.
fn text_of(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, text) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = (&mut pipe).take(MESSAGES_MAX).read_to_end(&mut text);
        let _ = io::copy(&mut pipe, &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    text
}

/// Processes console lines up to the last frame.
struct Console<'a> {
    arch: Arch,
    begin: Instant,
    timeout: Duration,
    listen: &'a mut dyn FnMut(Event),
    receiver: Receiver,
    /// The last lines that were not frames.
    tail: VecDeque<String>,
    /// The kernel's panic message.
    panic: Option<String>,
    files: Vec<u8>,
    boot: Option<Duration>,
}

impl<'a> Console<'a> {
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

    fn run_to_end(&mut self, console: &mpsc::Receiver<String>) -> Result<Outcome, GuestError> {
        loop {
            if sys::signal::termination_requests() > 0 {
                return Err(GuestError::Interrupted);
            }
            let silent = self.tail.is_empty() && self.boot.is_none();
            let limit = if silent { self.timeout.min(SILENT_AFTER) } else { self.timeout };
            let left = limit.saturating_sub(self.begin.elapsed());
            match console.recv_timeout(left.min(CHECK_EVERY)) {
                Ok(line) => {
                    if let Some(status) = self.line(&line)? {
                        return self.outcome(status);
                    }
                }
                Err(RecvTimeoutError::Timeout) if left > CHECK_EVERY => {}
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

    /// Processes one line. Returns the exit status if it was the last frame.
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
            Kind::Files if self.files.len() + frame.content.len() > PACKED_FILES_MAX => {
                return Err(GuestError::Files(format!("they have more than {} MiB", PACKED_FILES_MAX >> 20)));
            }
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
        let unpacked = read_up_to(flate2::read::DeflateDecoder::new(self.files.as_slice()), FILES_MAX);
        let files = unpacked.map_err(|error| error.to_string()).and_then(|archive| Tree::from_archive(&archive));
        Ok(Outcome {
            status,
            files: files.map_err(GuestError::Files)?,
            boot: self.boot.unwrap_or_default(),
            wall: self.begin.elapsed(),
        })
    }

    /// Keeps the last lines. Once the kernel has panicked, keeps those before the panic and the first ones after it.
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

/// Removes control characters, which could move the cursor of a terminal.
fn printable(line: &str) -> String {
    let text: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
