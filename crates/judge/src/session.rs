//! The thread that reads a judge during a measurement.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use record::{Caveat, JudgeProtocol, Reason, Responses, Series, counted, grouped, shell};

use crate::{
    address::JudgeAddress,
    board::Board,
    error::JudgeError,
    frame::{EndReason, Frame},
    latmon::{CELLS_MAX, Message, PERIOD_MAX_US, Request},
    latmon_client::LatmonClient,
    settings::{Level, Settings, TICK_NS},
    tally::{Slowness, Tally},
};

/// Time between two checks of the switch.
const CHECK: Duration = Duration::from_millis(20);
/// Longest time until the next message of latmon. It sends one a second, and the first after a warm-up of a second.
const BULK_WITHIN: Duration = Duration::from_secs(8);
/// Longest time until the histogram of latmon, which first waits a second for an answer. latmus waits as long.
const CELLS_WITHIN: Duration = Duration::from_secs(5);

/// A run with latmon that is shorter than this can have no answer yet: latmon discards those of its first second.
const LATMON_ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Reasons of runs without a working judge: it has other settings, or contradicts its protocol.
pub const BROKEN: [&str; 2] = [SETTINGS, PROTOCOL];
const SETTINGS: &str = "judge.settings";
const PROTOCOL: &str = "judge.protocol";

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// The place of the judge.
    pub address: JudgeAddress,
    /// Time between two questions, ns.
    pub period_ns: u64,
    /// CPU of the thread that answers; `None` if it is not pinned.
    pub cpu: Option<u32>,
    /// The lines of the machine.
    pub lines: Lines,
}

/// The lines of the machine under test, in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// The input that receives the questions.
    pub question: String,
    /// The output that answers.
    pub answer: String,
}

/// Lets the judge begin and end, and shows its state. The measuring thread uses it, too.
#[derive(Debug, Default)]
pub struct Switch {
    has_begun: AtomicBool,
    shall_end: AtomicBool,
    is_over: AtomicBool,
}

impl Switch {
    /// Lets the judge ask questions.
    pub fn begin(&self) {
        self.has_begun.store(true, Relaxed);
    }

    /// Lets the judge end. The machine must answer until it has.
    pub fn end(&self) {
        self.shall_end.store(true, Relaxed);
    }

    /// Notes that the judge asks no more questions.
    pub fn set_over(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// True if the judge asks no more questions: it has ended, or is gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// True once the judge may ask.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// True once the judge must end.
    #[must_use]
    pub fn shall_end(&self) -> bool {
        self.shall_end.load(Relaxed)
    }

    /// Waits for the begin; false if the session shall end before.
    fn wait_for_begin(&self) -> bool {
        while !self.has_begun() {
            if self.shall_end() {
                return false;
            }
            std::thread::sleep(CHECK);
        }
        true
    }
}

/// A judge that is ready, or asks questions, or has ended.
#[derive(Debug)]
pub struct Session {
    cpu: Option<u32>,
    state: Arc<Mutex<State>>,
    switch: Arc<Switch>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    tally: Tally,
    /// The reason why the judge was lost.
    lost: Option<JudgeError>,
}

/// A connection with either kind of judge.
enum Connection {
    Board(Board, Settings),
    Latmon(LatmonClient, Request),
}

impl JudgeAddress {
    /// The active level of both lines: latmon asks and is answered with falling edges.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::Serial { .. } => Level::High,
            Self::Latmon { .. } => Level::Low,
        }
    }

    /// True if this judge can ask with this period.
    #[must_use]
    pub fn has_period(&self, period_ns: u64) -> bool {
        match self {
            Self::Serial { .. } => Settings::with_period(period_ns, self.level()).is_some(),
            Self::Latmon { .. } => request(period_ns).is_some(),
        }
    }

    /// The periods that this judge can ask with, in words.
    #[must_use]
    pub fn periods(&self) -> &'static str {
        match self {
            Self::Serial { .. } => "50us to 10s, a multiple of 8 ns",
            Self::Latmon { .. } => "1us to 1s, a multiple of 1 us",
        }
    }
}

fn request(period_ns: u64) -> Option<Request> {
    let period_us = u32::try_from(period_ns / 1000).ok().filter(|us| (1..=PERIOD_MAX_US).contains(us))?;
    period_ns.is_multiple_of(1000).then_some(Request { period_us, cells: CELLS_MAX })
}

impl Session {
    /// Connects with the judge, makes its settings, and creates the thread, which waits for [`Switch::begin`].
    ///
    /// # Errors
    /// The judge cannot be reached, or refuses its settings.
    pub fn open(settings: SessionSettings) -> Result<Self, JudgeError> {
        let SessionSettings { address, period_ns, cpu, lines } = settings;
        let name = address.to_string();
        let no_period = || JudgeError::Protocol { judge: name.clone(), what: "no such period".to_owned() };
        let (connection, protocol, resolution_ns, random_ns) = match &address {
            JudgeAddress::Serial { path, baud } => {
                let settings = Settings::with_period(period_ns, address.level()).ok_or_else(no_period)?;
                let mut board = Board::open(path, *baud, &name)?;
                board.configure(&settings)?;
                (Connection::Board(board, settings), JudgeProtocol::Punctual, TICK_NS, settings.random_ns)
            }
            JudgeAddress::Latmon { host, port } => {
                let request = request(period_ns).ok_or_else(no_period)?;
                let client = LatmonClient::connect(host, *port, &name)?;
                (Connection::Latmon(client, request), JudgeProtocol::Latmon, 1000, 0)
            }
        };
        let about = Responses {
            judge: name.clone(),
            protocol,
            question_line: lines.question,
            answer_line: lines.answer,
            resolution_ns,
            random_ns,
            ..Responses::default()
        };
        let state = Arc::new(Mutex::new(State { tally: Tally::new(about, period_ns), lost: None }));
        let switch = Arc::new(Switch::default());
        let reading = Reading { name, state: Arc::clone(&state), switch: Arc::clone(&switch) };
        let run = move || {
            // The line must be read in time, also with loads on every CPU. Without the right, the niceness stays.
            let _ = sys::sched::set_niceness(-20);
            let result = if reading.switch.wait_for_begin() { reading.run(connection) } else { Ok(()) };
            lock(&reading.state).lost = result.err();
            reading.switch.set_over();
        };
        let thread = std::thread::Builder::new().name("judge".to_owned()).spawn(run).map_err(JudgeError::Thread)?;
        Ok(Self { cpu, state, switch, thread: Some(thread) })
    }

    /// The switch of the session.
    #[must_use]
    pub fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.switch)
    }

    /// Ends the session, after the judge has sent its last results.
    pub fn finish(&mut self) {
        self.switch.end();
        if let Some(thread) = self.thread.take() {
            // Its results are valid even if it panicked.
            let _ = thread.join();
        }
    }

    /// The series so far.
    #[must_use]
    pub fn series(&self, phase: &str) -> Series {
        Series { cpu: self.cpu, ..lock(&self.state).tally.to_series(phase) }
    }

    /// The reason why the judge was lost.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        lock(&self.state).lost.as_ref().map(ToString::to_string)
    }

    /// Reasons why the run is invalid, as far as known.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let state = lock(&self.state);
        let counts = state.tally.counts();
        let reason =
            |id: &str, text: String, remedy: &str| vec![Reason { id: id.to_owned(), text, remedy: remedy.to_owned() }];
        let Responses { judge, question_line, answer_line, .. } = counts;
        match &state.lost {
            Some(error @ JudgeError::Settings { .. }) => {
                reason(SETTINGS, error.to_string(), "reset the judge, and check its line")
            }
            Some(error @ JudgeError::Protocol { .. }) => {
                let remedy = "check that --judge names the judge, end other programs that use it, and reset it";
                reason(PROTOCOL, error.to_string(), remedy)
            }
            // The reason why the judge was lost says more.
            Some(_) => Vec::new(),
            // latmon reports its first answers after 2 s.
            None if counts.answered == 0 && self.switch.is_over() => {
                let questions = match counts.protocol {
                    JudgeProtocol::Punctual => format!(" to {}", counted(counts.questions, "question")),
                    JudgeProtocol::Latmon => String::new(),
                };
                let remedy = format!(
                    "connect the question pin of the judge with {question_line}, its answer pin with {answer_line}, and ground"
                );
                let was_asked = match counts.protocol {
                    JudgeProtocol::Punctual => counts.questions > 0 || state.tally.has_had_time(),
                    JudgeProtocol::Latmon => state.tally.asked_for() >= LATMON_ANSWERS_WITHIN,
                };
                let remedy = if was_asked { remedy } else { shell::run_longer(state.tally.period_ns()) };
                reason("judge.no_answer", format!("no answer{questions} reached the judge {judge}"), &remedy)
            }
            None => match state.tally.slowness() {
                Some((Slowness::TooSlow, text)) => reason(
                    "judge.rate",
                    text,
                    "use a longer --period, or another judge; check that no other program uses it",
                ),
                Some((Slowness::Slow, _)) | None => Vec::new(),
            },
        }
    }

    /// Caveats about the figures.
    #[must_use]
    pub fn caveats(&self) -> Vec<Caveat> {
        let state = lock(&self.state);
        let counts = state.tally.counts();
        let mut caveats = Vec::new();
        let mut add = |text: String| caveats.push(Caveat { kind: "judge".to_owned(), text });
        if counts.without_time > 0 {
            let lost = counted(counts.without_time, "result");
            add(format!("lost on the serial line of the judge: {lost}; use a longer --period, or a faster line"));
        }
        if let Some((Slowness::Slow, text)) = state.tally.slowness() {
            add(format!("{text}: use a longer --period"));
        }
        if counts.damaged_bytes > 0 {
            add(format!("damaged on the serial line of the judge: {}", counted(counts.damaged_bytes, "byte")));
        }
        if counts.spurious > 0 {
            add(format!("{} of the answer line answered no question", counted(counts.spurious, "edge")));
        }
        if counts.active_before > 0 {
            let questions = counted(counts.active_before, "question");
            add(format!("{questions} came while the answer line was still active: use a longer --period"));
        }
        if counts.discarded > 0 {
            add(format!("the judge discarded edges of the answer line {}", counted(counts.discarded, "time")));
        }
        if counts.late > 0 {
            add(format!("{} came after a period or later", counted(counts.late, "answer")));
        }
        if let Some(overruns) = counts.overruns.filter(|&overruns| overruns > 0) {
            add(overruns_in_words(overruns, counts.missed));
        }
        if counts.possibly_missed > 0 {
            let overruns = counted(counts.possibly_missed, "overrun");
            add(format!(
                "latmon does not say which of {overruns} were late answers, missing ones, or answers that it did not wait for"
            ));
        }
        if counts.clamped > 0 {
            let [verb, count] = if counts.clamped == 1 { ["is", "counts"] } else { ["are", "count"] };
            let answers = counted(counts.clamped, "answer");
            add(format!("{answers} {verb} in the last cell of latmon's histogram, and {count} as the largest time"));
        }
        let in_histogram = counts.cells.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if counts.protocol == JudgeProtocol::Latmon && counts.complete && in_histogram != state.tally.in_bulks() {
            let [in_histogram, in_bulks] = [in_histogram, state.tally.in_bulks()].map(grouped);
            add(format!(
                "the histogram of latmon contains {in_histogram} answers, but its statistics {in_bulks}: the time of the \
                 others does not count as measured, because latmon does not report their overruns"
            ));
        }
        caveats
    }
}

/// The overruns of latmon, and how many of them are known to be questions without an answer.
fn overruns_in_words(overruns: u64, missed: u64) -> String {
    let without = match missed {
        0 => "none of them is known to be a question without an answer".to_owned(),
        1 => "1 question had no answer, and is missing from its histogram".to_owned(),
        missed => format!("{} questions had no answer, and are missing from its histogram", grouped(missed)),
    };
    format!("latmon counted {}: {without}", counted(overruns, "overrun"))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The results, also after a panic of the thread that writes them.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that reads the judge.
struct Reading {
    name: String,
    state: Arc<Mutex<State>>,
    switch: Arc<Switch>,
}

impl Reading {
    fn run(&self, connection: Connection) -> Result<(), JudgeError> {
        match connection {
            Connection::Board(board, settings) => self.read_board(board, &settings),
            Connection::Latmon(client, request) => self.read_latmon(client, request),
        }
    }

    fn read_board(&self, mut board: Board, settings: &Settings) -> Result<(), JudgeError> {
        board.start(settings)?;
        let began = Instant::now();
        let within = settings.result_within();
        let (mut latest, mut is_stopping) = (began + within, false);
        loop {
            if self.switch.shall_end() && !is_stopping {
                lock(&self.state).tally.set_asked_for(began.elapsed());
                board.stop()?;
                (latest, is_stopping) = (Instant::now() + within, true);
            }
            let frames = board.frames(CHECK)?;
            self.check_discarded()?;
            if frames.is_empty() && Instant::now() > latest {
                let what = if is_stopping { "end of the run" } else { "result" };
                return Err(self.gone(format!("no {what} for {} s", within.as_secs())));
            }
            if !frames.is_empty() && !is_stopping {
                latest = Instant::now() + within;
            }
            let mut state = lock(&self.state);
            state.tally.set_damaged_bytes(board.damaged_bytes());
            for frame in frames {
                match frame {
                    Frame::Result(result) => state.tally.add_result(&result).map_err(|what| self.protocol(what))?,
                    Frame::End(end) => {
                        state.tally.add_end(&end).map_err(|what| self.protocol(what))?;
                        state.tally.check_elapsed(began.elapsed()).map_err(|what| self.protocol(what))?;
                        return match end.reason {
                            EndReason::Count | EndReason::Stopped if is_stopping => Ok(()),
                            reason => Err(self.gone(reason.too_early().to_owned())),
                        };
                    }
                }
            }
            state.tally.check_elapsed(began.elapsed()).map_err(|what| self.protocol(what))?;
        }
    }

    fn read_latmon(&self, mut client: LatmonClient, request: Request) -> Result<(), JudgeError> {
        client.start(request)?;
        let began = Instant::now();
        let (mut latest, mut is_stopping, mut was_silent) = (began + BULK_WITHIN, false, false);
        loop {
            // After a missing answer, some versions of latmon send nothing more until the end is requested.
            let is_silent = Instant::now() > latest;
            if is_silent && is_stopping {
                return Err(self.gone("no histogram after the end of the run".to_owned()));
            }
            if (is_silent || self.switch.shall_end()) && !is_stopping {
                lock(&self.state).tally.set_asked_for(began.elapsed());
                client.stop()?;
                (latest, is_stopping, was_silent) = (Instant::now() + CELLS_WITHIN, true, is_silent);
            }
            let messages = client.messages(CHECK)?;
            self.check_discarded()?;
            let mut state = lock(&self.state);
            for message in messages {
                match message {
                    Message::Bulk(bulk) => {
                        let at_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                        // The record has the results before a message that cannot be right.
                        let mut tally = state.tally.clone();
                        tally.add_bulk(&bulk, at_ns);
                        tally.check_elapsed(began.elapsed()).map_err(|what| self.protocol(what))?;
                        state.tally = tally;
                        if !is_stopping {
                            latest = Instant::now() + BULK_WITHIN;
                        }
                    }
                    Message::Cells(cells) => {
                        state.tally.set_cells(cells).map_err(|what| self.protocol(what))?;
                        if was_silent {
                            let text =
                                format!("it sent nothing for {} s: too few answers reached it", BULK_WITHIN.as_secs());
                            return Err(self.gone(text));
                        }
                        if !is_stopping {
                            return Err(self.gone("its run ended too early: another program uses it".to_owned()));
                        }
                        return Ok(());
                    }
                    Message::Contradiction(_) => {}
                }
            }
        }
    }

    /// Fails if a second signal discards the run: nobody needs the last results of the judge.
    fn check_discarded(&self) -> Result<(), JudgeError> {
        match sys::signal::termination_requests() {
            0 | 1 => Ok(()),
            _ => Err(self.gone("the run was discarded".to_owned())),
        }
    }

    fn gone(&self, why: String) -> JudgeError {
        JudgeError::Gone { judge: self.name.clone(), why }
    }

    fn protocol(&self, what: String) -> JudgeError {
        JudgeError::Protocol { judge: self.name.clone(), what }
    }
}

#[cfg(test)]
mod tests;
