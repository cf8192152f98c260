//! A judge of software at a pseudo terminal, for tests. It speaks the protocol of the judge of punctual, and takes the
//! outcome of each question from a function.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{OptionalActions, tcgetattr, tcsetattr},
};

use crate::{
    decoder::with_crc,
    frame::{End, EndReason, Frame, Kind, QuestionResult, encode},
    settings::{Level, Settings, TICK_NS},
};

/// The outcome of a question, or what happens instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// An answer after this number of ticks.
    Answer(u32),
    /// No answer.
    Miss,
    /// An answer after this number of ticks, whose frame is lost.
    LostAnswer(u32),
    /// No answer, and its frame is lost.
    LostMiss,
    /// An answer after this number of ticks, then an edge that answers nothing.
    AnswerAndSpurious(u32),
    /// Damaged bytes on the line, then an answer after this number of ticks.
    Damaged(u32),
    /// An answer after this number of ticks, whose frame is sent twice. No judge does that.
    Repeat(u32),
    /// An answer after this number of ticks that is late, whatever the timeout. No judge does that.
    LateAfter(u32),
    /// An answer after this number of ticks. At the end of the run, all totals are 0. No judge does that.
    NoTotals,
    /// The judge is unplugged.
    Unplug,
    /// No question for now.
    Pause,
}

/// A judge of software. It ends when it is dropped.
#[derive(Debug)]
pub struct SimulatedBoard {
    path: String,
    /// Keeps the terminal open, so that it does not end between two programs.
    _line: OwnedFd,
    shall_end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SimulatedBoard {
    /// Starts a judge. `ask` returns the outcome of each question, whose number begins at 1 in each run. It can take the
    /// time that it needs. Between two questions, the judge waits for the period.
    ///
    /// # Errors
    /// The kernel has no pseudo terminal.
    pub fn start(ask: impl FnMut(u32) -> Outcome + Send + 'static) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = ptsname(&master, Vec::new())?;
        let line = rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
        // Without an echo before the program sets the terminal.
        let mut settings = tcgetattr(&line)?;
        settings.make_raw();
        tcsetattr(&line, OptionalActions::Now, &settings)?;
        let shall_end = Arc::new(AtomicBool::new(false));
        let mut simulation = Simulation {
            line: File::from(master),
            ask,
            settings: Settings {
                period_ns: 1_000_000,
                random_ns: 0,
                width_ns: 10_000,
                timeout_ns: 900_000,
                count: 1000,
                seed: 1,
                question: Level::High,
                answer: Level::High,
            },
            command: Vec::new(),
            run: None,
            shall_end: Arc::clone(&shall_end),
        };
        // The other end is gone, as a program that ends.
        let thread = std::thread::Builder::new().name("board".to_owned()).spawn(move || drop(simulation.run()))?;
        let path = path.to_string_lossy().into_owned();
        Ok(Self { path, _line: line, shall_end, thread: Some(thread) })
    }

    /// The device of the terminal, such as `/dev/pts/3`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for SimulatedBoard {
    fn drop(&mut self) {
        self.shall_end.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Simulation<F> {
    line: File,
    ask: F,
    settings: Settings,
    /// The bytes of an incomplete command.
    command: Vec<u8>,
    run: Option<Run>,
    shall_end: Arc<AtomicBool>,
}

/// A run that is in progress.
struct Run {
    began: Instant,
    totals: End,
    lost_before: u16,
    has_no_totals: bool,
}

impl<F: FnMut(u32) -> Outcome> Simulation<F> {
    fn run(&mut self) -> io::Result<()> {
        let mut next = Instant::now();
        while !self.shall_end.load(Relaxed) {
            if self.run.is_some() && Instant::now() >= next {
                if !self.ask()? {
                    return Ok(());
                }
                next = Instant::now() + Duration::from_nanos(self.settings.period_ns);
            }
            let left = next.saturating_duration_since(Instant::now());
            let wait = if self.run.is_some() { left } else { Duration::from_millis(10) };
            self.read_commands(wait)?;
        }
        Ok(())
    }

    /// Asks a question; false if the judge is unplugged.
    fn ask(&mut self) -> io::Result<bool> {
        let Some(run) = &mut self.run else { return Ok(true) };
        let question = run.totals.questions + 1;
        let time = u64::try_from(run.began.elapsed().as_nanos()).unwrap_or(u64::MAX) / TICK_NS;
        let outcome = (self.ask)(question);
        let (kind, after, is_lost) = match outcome {
            Outcome::Pause => return Ok(true),
            Outcome::Unplug => return Ok(false),
            Outcome::Answer(ticks)
            | Outcome::AnswerAndSpurious(ticks)
            | Outcome::Damaged(ticks)
            | Outcome::Repeat(ticks) => (Kind::Answered, Some(ticks), false),
            Outcome::LateAfter(ticks) => (Kind::Late, Some(ticks), false),
            Outcome::NoTotals => (Kind::Answered, Some(1), false),
            Outcome::LostAnswer(ticks) => (Kind::Answered, Some(ticks), true),
            Outcome::Miss => (Kind::Missed, None, false),
            Outcome::LostMiss => (Kind::Missed, None, true),
        };
        let is_late = after.is_some_and(|ticks| u64::from(ticks) * TICK_NS > self.settings.timeout_ns);
        let kind = if is_late { Kind::Late } else { kind };
        run.totals.questions = question;
        if outcome == Outcome::Damaged(after.unwrap_or_default()) {
            self.line.write_all(&[0xa5, 1, 0xff, b'x'])?;
        }
        run.send(&mut self.line, kind, after, question, time, is_lost)?;
        match outcome {
            Outcome::AnswerAndSpurious(_) => {
                run.send(&mut self.line, Kind::Spurious, Some(1), question, time, false)?;
            }
            Outcome::Repeat(_) => {
                run.totals.number -= 1;
                run.send(&mut self.line, kind, after, question, time, false)?;
            }
            Outcome::NoTotals => run.has_no_totals = true,
            _ => {}
        }
        Ok(true)
    }

    fn read_commands(&mut self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
        if poll(&mut [PollFd::new(&self.line, PollFlags::IN)], Some(&timeout))? == 0 {
            return Ok(());
        }
        let mut bytes = [0; 256];
        let received = self.line.read(&mut bytes)?;
        for &byte in &bytes[..received] {
            if byte != b'\n' && byte != b'\r' {
                self.command.push(byte);
            } else if !self.command.is_empty() {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.command)).into_owned();
                self.execute(&line)?;
            }
        }
        Ok(())
    }

    fn execute(&mut self, line: &str) -> io::Result<()> {
        let Some((text, _)) = line.rsplit_once('*').filter(|(text, _)| with_crc(text) == line) else {
            return self.reply("error: wrong CRC");
        };
        let (word, value) = text.split_once(' ').unwrap_or((text, ""));
        let time = || value.strip_suffix("ns").and_then(|ns| ns.parse::<u64>().ok()).unwrap_or_default();
        let level = if value == "low" { Level::Low } else { Level::High };
        let settings = &mut self.settings;
        match word {
            "version" => return self.reply("ok punctual-judge 1"),
            "show" => return self.reply(&format!("ok {}", self.settings)),
            "stop" => {
                self.reply("ok")?;
                return self.end();
            }
            _ if self.run.is_some() => return self.reply("error: running: only stop, show and version are allowed"),
            "start" => {
                self.reply(&format!("ok {}", self.settings))?;
                self.run = Some(Run::new());
                return Ok(());
            }
            "period" => settings.period_ns = time(),
            "random" => settings.random_ns = time(),
            "width" => settings.width_ns = time(),
            "timeout" => settings.timeout_ns = time(),
            "count" => settings.count = value.parse().unwrap_or_default(),
            "seed" => settings.seed = value.parse().unwrap_or(1),
            "question" => settings.question = level,
            "answer" => settings.answer = level,
            _ => return self.reply("error: unknown command"),
        }
        self.reply("ok")
    }

    fn end(&mut self) -> io::Result<()> {
        match self.run.take() {
            Some(run) if run.has_no_totals => {
                let totals = End { number: run.totals.number, ..Run::new().totals };
                self.line.write_all(&encode(&Frame::End(totals)))
            }
            Some(run) => self.line.write_all(&encode(&Frame::End(run.totals))),
            None => Ok(()),
        }
    }

    fn reply(&mut self, text: &str) -> io::Result<()> {
        self.line.write_all(format!("{}\r\n", with_crc(text)).as_bytes())
    }
}

impl Run {
    fn new() -> Self {
        let totals = End {
            reason: EndReason::Stopped,
            number: 0,
            questions: 0,
            time: 0,
            answered: 0,
            missed: 0,
            late: 0,
            spurious: 0,
            active_before: 0,
            lost: 0,
            discarded: 0,
        };
        Self { began: Instant::now(), totals, lost_before: 0, has_no_totals: false }
    }

    /// Counts a result, and sends its frame unless it is lost.
    fn send(
        &mut self,
        line: &mut File,
        kind: Kind,
        after: Option<u32>,
        question: u32,
        time: u64,
        is_lost: bool,
    ) -> io::Result<()> {
        let totals = &mut self.totals;
        let count = match kind {
            Kind::Answered => &mut totals.answered,
            Kind::Missed => &mut totals.missed,
            Kind::Late => &mut totals.late,
            Kind::Spurious => &mut totals.spurious,
        };
        *count += 1;
        let number = totals.number;
        totals.number += 1;
        totals.time = time;
        if is_lost {
            totals.lost += 1;
            self.lost_before += 1;
            return Ok(());
        }
        let lost_before = std::mem::take(&mut self.lost_before);
        let result = QuestionResult { kind, flags: 0, number, question, time, after, lost_before };
        line.write_all(&encode(&Frame::Result(result)))
    }
}
