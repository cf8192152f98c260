//! A server for latmus, the program of an EVL machine: it looks like a board that runs latmon, and lets the judge of
//! punctual ask the questions.
//!
//! latmus has no means to show that an answer is missing, except as an overrun. The server counts an overrun for each
//! question without an answer, for each result that was lost on the serial line, and, as latmon does, for each whole
//! period that an answer took. Its protocol has no password.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    time::{Duration, Instant},
};

use record::Responses;

use crate::{
    board::Board,
    error::JudgeError,
    frame::{EndReason, Frame, Kind, QuestionResult},
    latmon::{Bulk, REQUEST_BYTES, Request, encode_cells},
    settings::{Level, Settings, TICK_NS},
    tally::Tally,
};

/// Time between two checks.
const CHECK: Duration = Duration::from_millis(20);
/// Longest wait for a request while a run is in progress.
const GLANCE: Duration = Duration::from_millis(1);
/// Time between two bulks, as of latmon. latmus gives up after 5 s without one.
const BULK_EVERY: Duration = Duration::from_secs(1);
/// Longest time of a client without a run, so that a client that only waits does not keep others out.
const IDLE_WITHIN: Duration = Duration::from_secs(30);
/// Longest time until latmus accepts a message.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// An event of the server, for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// latmus has connected.
    Connected(SocketAddr),
    /// A run has started.
    Started {
        /// Its period, us.
        period_us: u32,
    },
    /// A run has ended, at the request of latmus or because it has disconnected.
    Ended(Totals),
    /// The client was disconnected, with the reason.
    Refused(String),
    /// The client has disconnected.
    Left,
}

/// The counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Answers with a time, in bulks and histogram.
    pub answered: u64,
    /// Questions without an answer.
    pub missed: u64,
    /// Results that were lost on the serial line.
    pub lost: u64,
    /// Edges of the answer line that answered no question.
    pub spurious: u64,
    /// Answers beyond the last cell of the histogram, which are in that cell.
    pub clamped: u64,
    /// Largest time, ns; 0 without an answer.
    pub max_ns: u64,
}

/// A server with its open port.
#[derive(Debug)]
pub struct LatmonServer {
    listener: TcpListener,
    board: Board,
}

/// The reason why a client is not served any longer.
enum Stop {
    /// It disconnected.
    Left,
    /// It sent a request that latmon does not obey, or its connection failed.
    Client(String),
    /// The judge is gone.
    Judge(JudgeError),
    /// The server shall end.
    Ended,
}

impl LatmonServer {
    /// Opens the port. `board` gets the active levels of latmon, which are low.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn bind(address: SocketAddr, board: Board) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, board })
    }

    /// The address of the port.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves one client after the other until `shall_end`, and calls `report` at each event.
    ///
    /// # Errors
    /// The judge is gone.
    pub fn serve(&mut self, shall_end: &dyn Fn() -> bool, report: &mut dyn FnMut(Event)) -> Result<(), JudgeError> {
        while !shall_end() {
            let (stream, address) = match self.listener.accept() {
                Ok(accepted) => accepted,
                // Nobody has connected, or the client has already gone.
                Err(_) => {
                    std::thread::sleep(CHECK);
                    continue;
                }
            };
            report(Event::Connected(address));
            match self.serve_client(stream, shall_end, report) {
                Stop::Left => report(Event::Left),
                Stop::Client(why) => report(Event::Refused(why)),
                Stop::Judge(error) => return Err(error),
                Stop::Ended => {}
            }
        }
        Ok(())
    }

    fn serve_client(&mut self, stream: TcpStream, shall_end: &dyn Fn() -> bool, report: &mut dyn FnMut(Event)) -> Stop {
        let mut client = match Client::new(stream) {
            Ok(client) => client,
            Err(error) => return Stop::Client(error.to_string()),
        };
        let mut run: Option<Run> = None;
        let mut idle_until = Instant::now() + IDLE_WITHIN;
        let stop = loop {
            if shall_end() {
                break Stop::Ended;
            }
            let request = match client.request(if run.is_some() { GLANCE } else { CHECK }) {
                Ok(request) => request,
                Err(stop) => break stop,
            };
            let step = match (request, &mut run) {
                // A request ends the run that is in progress, and starts another one unless it is to stop.
                (Some(request), _) => {
                    let ended = match run.take() {
                        Some(run) => self.end(&mut client, run, report),
                        None if request == Request::STOP => client.send_end(&Bulk::default(), &[]),
                        None => Ok(()),
                    };
                    idle_until = Instant::now() + IDLE_WITHIN;
                    ended.and_then(|()| self.start(request)).map(|started| {
                        if let Some(started) = &started {
                            report(Event::Started { period_us: started.period_us });
                        }
                        run = started;
                    })
                }
                (None, Some(run)) => self.follow(&mut client, run),
                (None, None) if Instant::now() > idle_until => {
                    Err(Stop::Client(format!("it sent no request for {} s", IDLE_WITHIN.as_secs())))
                }
                (None, None) => Ok(()),
            };
            if let Err(stop) = step {
                break stop;
            }
        };
        let Some(mut run) = run else { return stop };
        // latmus is gone, or nobody can be sent anything any longer.
        let stop = match stop {
            Stop::Judge(_) => stop,
            Stop::Left | Stop::Client(_) | Stop::Ended => self.finish(&mut run).map_or_else(Stop::Judge, |()| stop),
        };
        report(Event::Ended(run.totals()));
        stop
    }

    /// Starts a run; `None` for the request to stop.
    fn start(&mut self, request: Request) -> Result<Option<Run>, Stop> {
        if request.period_us == 0 {
            return Ok(None);
        }
        let period_ns = u64::from(request.period_us) * 1000;
        let settings = Settings::with_period(period_ns, Level::Low).filter(|_| request.is_valid());
        let Some(settings) = settings else {
            let Request { period_us, cells } = request;
            let text = format!(
                "it requested a period of {period_us} us and {cells} cells: 50 us to 1 s, and 1000 cells, are the limits"
            );
            return Err(Stop::Client(text));
        };
        // latmus compares its own period with nothing, so the random part only avoids beats.
        self.board.configure(&settings).and_then(|()| self.board.start(&settings)).map_err(Stop::Judge)?;
        Ok(Some(Run::new(request, &settings)))
    }

    /// Reads results, and sends a bulk if it is time.
    fn follow(&mut self, client: &mut Client, run: &mut Run) -> Result<(), Stop> {
        let frames = self.board.frames(CHECK).map_err(Stop::Judge)?;
        if frames.is_empty() && Instant::now() > run.latest {
            return Err(Stop::Judge(self.board.gone(format!("no result for {} s", run.within.as_secs()))));
        }
        for frame in frames {
            run.latest = Instant::now() + run.within;
            if let Some(reason) = run.add(&frame).map_err(|what| Stop::Judge(self.board.protocol(what)))? {
                return Err(Stop::Judge(self.board.gone(reason.too_early().to_owned())));
            }
        }
        match run.take_bulk(BULK_EVERY) {
            Some(bulk) => client.send(&bulk.encode()),
            None => Ok(()),
        }
    }

    /// Ends a run, and sends the rest of its times and its histogram.
    fn end(&mut self, client: &mut Client, mut run: Run, report: &mut dyn FnMut(Event)) -> Result<(), Stop> {
        let finished = self.finish(&mut run).map_err(Stop::Judge);
        report(Event::Ended(run.totals()));
        finished?;
        if let Some(bulk) = run.take_bulk(Duration::ZERO) {
            client.send(&bulk.encode())?;
        }
        client.send_end(&Bulk { overruns: run.bulk.overruns, ..Bulk::default() }, &run.cells)
    }

    /// Stops the judge, and reads its last results.
    fn finish(&mut self, run: &mut Run) -> Result<(), JudgeError> {
        self.board.stop()?;
        let latest = Instant::now() + run.within;
        while Instant::now() < latest {
            for frame in self.board.frames(CHECK)? {
                if run.add(&frame).map_err(|what| self.board.protocol(what))?.is_some() {
                    return Ok(());
                }
            }
        }
        Err(self.board.gone("no end of the run".to_owned()))
    }
}

/// A connection with latmus.
struct Client {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_WITHIN))?;
        Ok(Self { stream, request: Vec::new() })
    }

    /// The next request, if all of it has come within `timeout`.
    fn request(&mut self, timeout: Duration) -> Result<Option<Request>, Stop> {
        let failed = |error: io::Error| Stop::Client(error.to_string());
        self.stream.set_read_timeout(Some(timeout)).map_err(failed)?;
        let mut bytes = [0; REQUEST_BYTES];
        let missing = REQUEST_BYTES - self.request.len();
        match self.stream.read(&mut bytes[..missing]) {
            Ok(0) => return Err(Stop::Left),
            Ok(received) => self.request.extend_from_slice(&bytes[..received]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
        let request = self.request.first_chunk().copied().map(Request::decode);
        if request.is_some() {
            self.request.clear();
        }
        Ok(request)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.stream.write_all(bytes).map_err(|error| Stop::Client(format!("it does not read its results: {error}")))
    }

    fn send_end(&mut self, last: &Bulk, cells: &[u32]) -> Result<(), Stop> {
        self.send(&last.encode())?;
        self.send(&encode_cells(cells))
    }
}

/// A run for a client.
struct Run {
    period_us: u32,
    /// Longest time until the next result.
    within: Duration,
    /// When that time is over.
    latest: Instant,
    bulk: Bulk,
    bulk_began: Instant,
    cells: Vec<u32>,
    /// The results as `measure interrupt --judge` counts and checks them.
    tally: Tally,
    began: Instant,
    clamped: u64,
    max_ns: u64,
}

impl Run {
    fn new(request: Request, settings: &Settings) -> Self {
        let within = settings.result_within();
        Self {
            period_us: request.period_us,
            within,
            latest: Instant::now() + within,
            bulk: Bulk::default(),
            bulk_began: Instant::now(),
            cells: vec![0; request.cells as usize],
            tally: Tally::new(Responses::default(), settings.period_ns),
            began: Instant::now(),
            clamped: 0,
            max_ns: 0,
        }
    }

    /// The counts so far; at the end, those of the judge.
    fn totals(&self) -> Totals {
        let counts = self.tally.counts();
        Totals {
            answered: self.tally.timed(),
            missed: counts.missed,
            lost: self.tally.lost(),
            spurious: counts.spurious,
            clamped: self.clamped,
            max_ns: self.max_ns,
        }
    }

    /// Counts a frame. Returns why the run ended, if it did.
    ///
    /// # Errors
    /// The contradiction to the frames before.
    fn add(&mut self, frame: &Frame) -> Result<Option<EndReason>, String> {
        let without = |tally: &Tally| tally.counts().missed + tally.lost();
        let before = without(&self.tally);
        match frame {
            Frame::Result(result) => self.tally.add_result(result)?,
            // The totals include lost results.
            Frame::End(end) => self.tally.add_end(end)?,
        }
        self.tally.check_elapsed(self.began.elapsed())?;
        self.add_overruns(u32::try_from(without(&self.tally).saturating_sub(before)).unwrap_or(u32::MAX));
        if let Frame::Result(QuestionResult { kind: Kind::Answered | Kind::Late, after: Some(ticks), .. }) = frame {
            self.add_time(u64::from(*ticks) * TICK_NS);
        }
        Ok(if let Frame::End(end) = frame { Some(end.reason) } else { None })
    }

    fn add_overruns(&mut self, overruns: u32) {
        self.bulk.overruns = self.bulk.overruns.saturating_add(overruns);
    }

    fn add_time(&mut self, ns: u64) {
        let us = ns / 1000;
        // As latmon counts: one for each whole period before the answer.
        let periods = us.saturating_sub(1) / u64::from(self.period_us);
        self.add_overruns(u32::try_from(periods).unwrap_or(u32::MAX));
        // latmus reads signed numbers.
        let in_message = u32::try_from(ns).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs());
        let Bulk { sum_ns, min_ns, max_ns, samples, .. } = &mut self.bulk;
        *min_ns = if *samples == 0 { in_message } else { (*min_ns).min(in_message) };
        *max_ns = (*max_ns).max(in_message);
        *sum_ns += u64::from(in_message);
        *samples += 1;
        self.max_ns = self.max_ns.max(ns);
        let Some(last) = self.cells.len().checked_sub(1) else { return };
        let cell = usize::try_from(us).unwrap_or(usize::MAX);
        self.clamped += u64::from(cell > last);
        self.cells[cell.min(last)] += 1;
    }

    /// Takes the times since the last bulk, if that was long enough ago and there are any.
    fn take_bulk(&mut self, after: Duration) -> Option<Bulk> {
        if self.bulk.samples == 0 || self.bulk_began.elapsed() < after {
            return None;
        }
        self.bulk_began = Instant::now();
        Some(std::mem::take(&mut self.bulk))
    }
}

#[cfg(test)]
mod tests;
