//! The near end: starts the far end, controls it and merges its results.

use std::{
    net::{IpAddr, SocketAddr},
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use campaign::probe::stream::parse_stream_id;
use judge::Session;
use machine::Root;
use record::{ClockRelation, ClockTie, Far, FarAsked, Machine, Reason, Record, visible::one_line};
use sys::{clock::Clock, signal};

use crate::{
    PairError, Reach,
    channel::Channel,
    merge::{merge, merge_interrupts},
    messages,
    protocol::{Hello, PROTOCOL, Results, Task, ToFar, ToNear},
    reach::describe_status,
};

/// Timeout for the start of the far end. Copying the program over a slow link can take minutes.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout until the far end is ready, and until it has sent its results.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout for ssh to exit after the connection was closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which user interrupts are checked.
const TICK: Duration = Duration::from_millis(100);

/// The near end, connected to a far end. Dropping it ends the far end.
#[derive(Debug)]
pub struct Near {
    name: String,
    child: Child,
    channel: Channel<ToNear>,
    address: Option<IpAddr>,
    machine: Machine,
    restored: Vec<String>,
    clock: ClockRelation,
    asked: FarAsked,
    measuring: Arc<AtomicBool>,
}

impl Near {
    /// Starts the far end and compares the clocks. `on_copy` is called with the size of the copied program, bytes.
    ///
    /// # Errors
    /// [`PairError`].
    pub fn reach(reach: &Reach, on_copy: impl FnOnce(usize)) -> Result<Self, PairError> {
        let reached = reach.start(on_copy)?;
        let measuring = Arc::new(AtomicBool::new(false));
        let is_measuring = Arc::clone(&measuring);
        // A run cannot continue without its other end.
        let on_lost = move || {
            if is_measuring.load(SeqCst) && signal::termination_requests() == 0 {
                signal::request_termination();
            }
        };
        let channel = Channel::open::<ToFar>(reached.output, reached.input, on_lost).map_err(PairError::Spawn)?;
        let address = reached.address.and_then(|address| address.parse().ok());
        let name = reach.name().to_owned();
        let mut near = Self {
            name,
            child: reached.child,
            channel,
            address,
            machine: Machine::default(),
            restored: Vec::new(),
            clock: ClockRelation::default(),
            asked: FarAsked::default(),
            measuring,
        };
        let hello = near.greet().map_err(|error| match error {
            PairError::NotStarted { host, status } if reached.needs_libraries => {
                PairError::NeedsLibraries { host, arch: reached.arch, status }
            }
            error => error,
        })?;
        near.machine = hello.machine;
        near.restored = hello.restored.iter().map(|text| one_line(text)).collect();
        near.clock = near.compare_clocks()?;
        Ok(near)
    }

    /// The name of the far machine, without the user name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The far machine's address of the ssh connection, if known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Messages about settings that an earlier killed run had left there and that were restored at the start.
    #[must_use]
    pub fn restored(&self) -> &[String] {
        &self.restored
    }

    /// The relation between the clocks of both machines.
    #[must_use]
    pub fn clock(&self) -> &ClockRelation {
        &self.clock
    }

    /// The relation between both machines' instances of `clock`. PTP synchronises only the system clocks.
    #[must_use]
    pub fn tie(&self, clock: Clock) -> ClockTie {
        match self.clock.tie {
            ClockTie::Ptp if clock != Clock::Realtime => ClockTie::None,
            tie => tie,
        }
    }

    /// Starts a measurement on the far end. Returns once it is running, with its address if it answers datagrams and
    /// with what was refused. From now on, losing the far end stops the run on this machine.
    ///
    /// # Errors
    /// The error of the far end.
    pub fn start(&mut self, what: Task, asked: FarAsked) -> Result<(Option<SocketAddr>, Vec<Reason>), PairError> {
        self.asked.clone_from(&asked);
        self.channel.send(&ToFar::Measure { what, asked: Box::new(asked) });
        match self.receive(TIMEOUT)? {
            ToNear::Ready { address, refused } => {
                self.measuring.store(true, SeqCst);
                let refused = refused.into_iter().map(|reason| messages::reason(&self.name, reason)).collect();
                Ok((address, refused))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Stops the far end and merges its results into the record of this machine's run. Returns the reason if they are
    /// missing.
    pub fn finish(mut self, record: &mut Record) -> Option<String> {
        self.measuring.store(false, SeqCst);
        self.channel.send(&ToFar::End { sent: sent_of_each(record) });
        let results = self.results();
        if let Some(before) = record.machine.clocks.as_mut().filter(|_| self.clock.tie == ClockTie::Ptp) {
            before.merge(&machine::clocks::read(&Root::system()).unwrap_or_default());
        }
        let lost = results.as_ref().err().cloned();
        let (host, machine, clock) = (self.name.clone(), self.machine.clone(), self.clock.clone());
        let asked = std::mem::take(&mut self.asked);
        merge(record, Far { host, machine, clock, asked, ..Far::default() }, results);
        lost
    }

    /// Waits until the far end has measured interrupts, and returns its record. `judge` begins now and ends when the far
    /// end says so; its results are added to the record. Ctrl-C ends the run early.
    ///
    /// # Errors
    /// The far end failed or was lost, or the user did not wait for its results.
    pub fn interrupts(mut self, mut judge: Option<Session>) -> Result<Record, PairError> {
        self.measuring.store(false, SeqCst);
        if let Some(judge) = &judge {
            judge.switch().begin();
        }
        let (mut is_over, mut has_ended) = (false, false);
        let record = loop {
            if judge.as_ref().is_some_and(|judge| judge.switch().is_over()) && !is_over {
                self.channel.send(&ToFar::JudgeIsOver);
                is_over = true;
            }
            match signal::termination_requests() {
                0 => {}
                1 if has_ended => {}
                1 => {
                    self.channel.send(&ToFar::End { sent: Vec::new() });
                    has_ended = true;
                }
                _ => {
                    let why = "the user interrupted the wait for its results".to_owned();
                    return Err(PairError::Lost { host: self.name.clone(), why });
                }
            }
            match self.channel.receive(TICK) {
                Ok(Some(ToNear::Results(results))) => break results.record,
                Ok(Some(ToNear::Failed(error))) => {
                    return Err(PairError::Far { host: self.name.clone(), error: messages::translate(&error) });
                }
                Ok(Some(ToNear::JudgeShallEnd)) => judge.iter_mut().for_each(Session::finish),
                Ok(_) => {}
                Err(why) => return Err(PairError::Lost { host: self.name.clone(), why: self.with_ssh_status(why) }),
            }
        };
        Ok(merge_interrupts(record, &self.name, judge))
    }

    /// Waits for the results of the far end; the error is the reason why they are missing.
    fn results(&mut self) -> Result<Results, String> {
        let began = Instant::now();
        while began.elapsed() < TIMEOUT {
            match self.channel.receive(TICK) {
                Ok(Some(ToNear::Results(results))) => return Ok(*results),
                Ok(Some(ToNear::Failed(error))) => return Err(messages::translate(&error)),
                Ok(_) if signal::termination_requests() > 1 => {
                    return Err("the user interrupted the wait for its results".to_owned());
                }
                Ok(_) => {}
                Err(why) => return Err(self.with_ssh_status(why)),
            }
        }
        Err(format!("it sent no results within {} s", TIMEOUT.as_secs()))
    }

    /// Waits for the greeting of the far end.
    fn greet(&mut self) -> Result<Hello, PairError> {
        let host = self.name.clone();
        match self.channel.receive(START_TIMEOUT) {
            Ok(Some(ToNear::Hello(hello))) => {
                if (hello.protocol, hello.version.as_str()) == (PROTOCOL, env!("CARGO_PKG_VERSION")) {
                    return Ok(*hello);
                }
                Err(PairError::Version { host, theirs: hello.version })
            }
            Ok(Some(other)) => Err(self.unexpected(&other)),
            Ok(None) => Err(PairError::NotStarted { host, status: "no message".to_owned() }),
            Err(why) => Err(PairError::NotStarted { host, status: self.with_ssh_status(why) }),
        }
    }

    /// The relation between the clocks of both machines. Two machines can have the same boot id if they were copied
    /// from one snapshot, but then their clocks differ.
    fn compare_clocks(&mut self) -> Result<ClockRelation, PairError> {
        let relation = ClockRelation::between(&machine::facts(&Root::system()), &self.machine);
        let before_ns = Clock::Monotonic.now_ns();
        self.channel.send(&ToFar::Clock);
        let far_ns = match self.receive(TIMEOUT)? {
            ToNear::Clock(ns) => ns,
            other => return Err(self.unexpected(&other)),
        };
        let is_same_clock = (before_ns..=Clock::Monotonic.now_ns()).contains(&far_ns);
        if relation.tie == ClockTie::SameHost && !is_same_clock {
            let words =
                "both machines have the same boot id but different clocks: they are copies of one snapshot".to_owned();
            return Ok(ClockRelation { words, ..ClockRelation::default() });
        }
        Ok(relation)
    }

    fn receive(&mut self, timeout: Duration) -> Result<ToNear, PairError> {
        let host = self.name.clone();
        match self.channel.receive(timeout) {
            Ok(Some(ToNear::Failed(error))) => Err(PairError::Far { host, error: messages::translate(&error) }),
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(PairError::Lost { host, why: format!("no answer within {} s", timeout.as_secs()) }),
            Err(why) => Err(PairError::Lost { host, why: self.with_ssh_status(why) }),
        }
    }

    fn unexpected(&self, message: &ToNear) -> PairError {
        let kind = match message {
            ToNear::Hello(_) => "a greeting",
            ToNear::Clock(_) => "a clock reading",
            ToNear::Ready { .. } => "readiness",
            ToNear::JudgeShallEnd => "the end of the judge",
            ToNear::Failed(_) => "an error",
            ToNear::Results(_) => "results",
            ToNear::Alive => "a keep-alive",
        };
        PairError::Lost { host: self.name.clone(), why: format!("it sent {kind} unexpectedly") }
    }

    /// Adds the exit status of ssh to the reason.
    fn with_ssh_status(&mut self, why: String) -> String {
        match self.wait(EXIT_TIMEOUT) {
            Some(status) => format!("{why}, with {status}"),
            None => why,
        }
    }

    /// The exit status of ssh, if it exits within `timeout`.
    fn wait(&mut self, timeout: Duration) -> Option<String> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(describe_status(status)),
                Ok(None) if began.elapsed() < timeout => thread::sleep(Duration::from_millis(10)),
                _ => return None,
            }
        }
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.measuring.store(false, SeqCst);
        // The far end sees the end of its input and exits.
        self.channel.close();
        if self.wait(EXIT_TIMEOUT).is_none() {
            // ssh hangs; the far end exits on its own once it detects the lost connection.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Id and number of sent frames of each stream of this machine's talker.
fn sent_of_each(record: &Record) -> Vec<(u64, u64)> {
    let talkers = record.series.iter().filter_map(|series| series.kind.talker());
    let of_each = talkers.flat_map(|talker| {
        let only = talker.streams.is_empty().then_some((&talker.identity.stream_id, talker.frames));
        only.into_iter().chain(talker.streams.iter().map(|stream| (&stream.stream_id, stream.frames)))
    });
    let mut sent: Vec<(u64, u64)> = Vec::new();
    for (stream_id, frames) in of_each {
        let Ok(stream_id) = parse_stream_id(stream_id) else { continue };
        match sent.iter_mut().find(|(id, _)| *id == stream_id) {
            Some((_, sum)) => *sum += frames,
            None => sent.push((stream_id, frames)),
        }
    }
    sent
}
