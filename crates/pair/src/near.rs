//! The end that the user sees: reaches the other one, tells it what to do, and brings back what it saw.

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

use machine::Root;
use record::{ClockRelation, ClockTie, Far, FarAsked, Machine, Reason, Record};
use sys::{clock::Clock, signal};

use crate::{
    PairError, Reach,
    bring::bring,
    channel::Channel,
    protocol::{Ask, Hello, PROTOCOL, Saw, ToFar, ToNear},
    reach::in_words,
    words,
};

/// How long the far end may take to start: its program may go over a slow line first.
const START_PATIENCE: Duration = Duration::from_secs(300);
/// How long it may take to be ready, and to tell what it saw.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long ssh may take to end once nothing is to be said any more.
const END_PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked whether the user gives up.
const TICK: Duration = Duration::from_millis(100);

/// The near end, with the far one at its command. Dropped, the far end is gone.
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
    /// Starts the far end, and finds out how its clock stands to ours. `tell` is told how much is copied, bytes.
    ///
    /// # Errors
    /// [`PairError`].
    pub fn reach(reach: &Reach, tell: impl FnOnce(usize)) -> Result<Self, PairError> {
        let reached = reach.start(tell)?;
        let measuring = Arc::new(AtomicBool::new(false));
        let is_measuring = Arc::clone(&measuring);
        // A run without its other end has nothing to go on for.
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
        let hello = near.greet()?;
        (near.machine, near.restored) = (hello.machine, hello.restored);
        near.clock = near.compare_clocks()?;
        Ok(near)
    }

    /// The name of the far machine, without a user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The address that ssh reached, as the far machine sees it; where it is known.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// What was put back there first, that a killed run had left changed: a sentence each.
    #[must_use]
    pub fn restored(&self) -> &[String] {
        &self.restored
    }

    /// How the clocks of both machines stand to each other.
    #[must_use]
    pub fn clock(&self) -> &ClockRelation {
        &self.clock
    }

    /// What ties times of this clock at both ends to each other: PTP ties the system clocks alone.
    #[must_use]
    pub fn tie(&self, clock: Clock) -> ClockTie {
        match self.clock.tie {
            ClockTie::Ptp if clock != Clock::Realtime => ClockTie::None,
            tie => tie,
        }
    }

    /// Has the far end measure. It does when this returns: says where it answers datagrams, where it does, and what it was
    /// refused. From now on a run on this machine ends early when the far end is lost.
    ///
    /// # Errors
    /// What keeps it from that.
    pub fn ask(&mut self, what: Ask, asked: FarAsked) -> Result<(Option<SocketAddr>, Vec<Reason>), PairError> {
        self.asked.clone_from(&asked);
        self.channel.say(&ToFar::Measure { what, asked: Box::new(asked) });
        match self.hear(PATIENCE)? {
            ToNear::Ready { address, refused } => {
                self.measuring.store(true, SeqCst);
                let refused = refused.into_iter().map(|reason| words::reason(&self.name, reason)).collect();
                Ok((address, refused))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends the far end, and brings what it saw into the record of the run on this machine. Answers why that is missing,
    /// where it is.
    pub fn bring(mut self, record: &mut Record) -> Option<String> {
        self.measuring.store(false, SeqCst);
        let talkers = record.series.iter().filter_map(|series| series.kind.talker());
        let sent = talkers.map(|talker| talker.frames).reduce(|sum, frames| sum + frames);
        self.channel.say(&ToFar::End { sent });
        let saw = self.saw();
        if let Some(before) = record.machine.clocks.as_mut().filter(|_| self.clock.tie == ClockTie::Ptp) {
            before.take_in(&machine::clocks::look(&Root::system()).unwrap_or_default());
        }
        let lost = saw.as_ref().err().cloned();
        let (host, machine, clock) = (self.name.clone(), self.machine.clone(), self.clock.clone());
        let asked = std::mem::take(&mut self.asked);
        bring(record, Far { host, machine, clock, asked, ..Far::default() }, saw);
        lost
    }

    /// What the far end saw, or why that is missing.
    fn saw(&mut self) -> Result<Saw, String> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            match self.channel.hear(TICK) {
                Ok(Some(ToNear::Saw(saw))) => return Ok(*saw),
                Ok(Some(ToNear::Failed(error))) => return Err(words::there(&error)),
                Ok(_) if signal::termination_requests() > 1 => return Err("it was not waited for".to_owned()),
                Ok(_) => {}
                Err(why) => return Err(self.how_lost(why)),
            }
        }
        Err(format!("it did not tell what it saw within {} s", PATIENCE.as_secs()))
    }

    /// The first that the far end says.
    fn greet(&mut self) -> Result<Hello, PairError> {
        let host = self.name.clone();
        match self.channel.hear(START_PATIENCE) {
            Ok(Some(ToNear::Hello(hello))) => {
                if (hello.protocol, hello.version.as_str()) == (PROTOCOL, env!("CARGO_PKG_VERSION")) {
                    return Ok(*hello);
                }
                Err(PairError::Version { host, theirs: hello.version })
            }
            Ok(Some(other)) => Err(self.unexpected(&other)),
            Ok(None) => Err(PairError::NotStarted { host, status: "not a word from it".to_owned() }),
            Err(why) => Err(PairError::NotStarted { host, status: self.how_lost(why) }),
        }
    }

    /// How the clocks of both machines stand to each other. Machines with one boot identity may still be two, copied from one
    /// snapshot: then their clocks differ.
    fn compare_clocks(&mut self) -> Result<ClockRelation, PairError> {
        let relation = ClockRelation::between(&machine::facts(&Root::system()), &self.machine);
        let before_ns = Clock::Monotonic.now_ns();
        self.channel.say(&ToFar::Clock);
        let there_ns = match self.hear(PATIENCE)? {
            ToNear::Clock(ns) => ns,
            other => return Err(self.unexpected(&other)),
        };
        let between = (before_ns..=Clock::Monotonic.now_ns()).contains(&there_ns);
        if relation.tie == ClockTie::SameHost && !between {
            let words = "both machines have one boot identity, but two clocks: copies of one snapshot".to_owned();
            return Ok(ClockRelation { words, ..ClockRelation::default() });
        }
        Ok(relation)
    }

    fn hear(&mut self, patience: Duration) -> Result<ToNear, PairError> {
        let host = self.name.clone();
        match self.channel.hear(patience) {
            Ok(Some(ToNear::Failed(error))) => Err(PairError::Far { host, error: words::there(&error) }),
            Ok(Some(said)) => Ok(said),
            Ok(None) => Err(PairError::Lost { host, why: format!("no answer within {} s", patience.as_secs()) }),
            Err(why) => Err(PairError::Lost { host, why: self.how_lost(why) }),
        }
    }

    fn unexpected(&self, said: &ToNear) -> PairError {
        let kind = match said {
            ToNear::Hello(_) => "a greeting",
            ToNear::Clock(_) => "a time",
            ToNear::Ready { .. } => "that it is ready",
            ToNear::Failed(_) => "an error",
            ToNear::Saw(_) => "what it saw",
            ToNear::Alive => "that it is there",
        };
        PairError::Lost { host: self.name.clone(), why: format!("it told {kind} at the wrong moment") }
    }

    /// Why it is lost, with how ssh ended.
    fn how_lost(&mut self, why: String) -> String {
        match self.wait(END_PATIENCE) {
            Some(status) => format!("{why}, with {status}"),
            None => why,
        }
    }

    /// How ssh has ended, if it does in time.
    fn wait(&mut self, patience: Duration) -> Option<String> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(in_words(status)),
                Ok(None) if began.elapsed() < patience => thread::sleep(Duration::from_millis(10)),
                _ => return None,
            }
        }
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.measuring.store(false, SeqCst);
        // The far end hears that nothing comes any more, and ends.
        self.channel.close();
        if self.wait(END_PATIENCE).is_none() {
            // It hangs, and the far end ends by itself.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
