//! The listener: a thread that takes frames from the socket, stamps them, and hands them on.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use frames::{Parsed, Tci, ethernet::TAG, parse};
use record::{Granted, Series, SeriesKind};
use sys::{
    alloc_guard::without_allocation,
    clock::{Clock, Sleeper, Wait},
    packet::{Poll, Received},
    sched::Policy,
};

use super::{
    elsewhere::Elsewhere,
    receive::{Dropped, Drops, Receive},
    tracker::{Arrival, Expected, Tracker},
};
use crate::{
    ReceiveWait,
    companion::Member,
    setup::{STACK_BYTES, floor_ns, set_up},
    timer::{Grant, TimerError, shared::add},
};

/// Frames that can wait for the tracker: two seconds at 8000 a second.
const QUEUE: usize = 16_384;
/// Bytes of a frame that are looked at: all headers and our payload.
const LOOKED_AT: usize = 128;
/// A thread that polls sleeps all the same once no frame has come for so long, ns.
const POLLS_FOR_NS: i64 = 2_000_000;
/// A real-time thread that polls rests after each frame for this part of the period.
const REST_PART: i64 = 10;
/// A stream that was silent for so long has ended.
const SILENCE: Duration = Duration::from_secs(2);
/// How long the thread may take to read what waits, and to end.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a listener is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Which stream, and what to hold it to.
    pub expected: Expected,
    /// Interface that it comes in on.
    pub interface: String,
    /// How it waits. The receiver has been told already where the kernel is to ask the driver.
    pub wait: ReceiveWait,
    /// What it takes frames from, for the record: `socket`, `xdp copy native`.
    pub from: String,
    /// What there is to remark before anything has come.
    pub notes: Vec<String>,
    /// CPU to be pinned to.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Clock to read; the talker's where both are on one machine.
    pub clock: Clock,
    /// The talker, where it is on another machine that tells us of it.
    pub talker: Option<Elsewhere>,
}

/// A listener, with the thread that receives.
#[derive(Debug)]
pub struct Listener {
    settings: ListenerSettings,
    grant: Grant,
    drops: Box<dyn Drops>,
    shared: Arc<Shared>,
    queue: rtrb::Consumer<Arrival>,
    thread: JoinHandle<()>,
    tracker: Tracker,
    dropped: Option<Dropped>,
    fresh: (u64, Instant),
}

/// What the thread and its reader both see.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    not_told: AtomicU64,
    errors: AtomicU64,
    error: AtomicI32,
}

impl Listener {
    /// Makes the thread, which receives from now on.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(settings: &ListenerSettings, receiver: impl Receive) -> Result<Self, TimerError> {
        let drops = receiver.drops().map_err(TimerError::Spawn)?;
        let shared = Arc::new(Shared::default());
        let (arrivals, queue) = rtrb::RingBuffer::new(QUEUE);
        let (tell_grant, told_grant) = mpsc::channel();
        let mut receiving = Receiving {
            receiver,
            shared: shared.clone(),
            arrivals,
            clock: settings.clock,
            spin: settings.wait == ReceiveWait::Spin,
            rest_ns: if settings.policy.is_realtime() { settings.expected.period_ns as i64 / REST_PART } else { 0 },
            last_ns: 0,
        };
        let (cpu, policy, clock) = (settings.cpu, settings.policy, settings.clock);
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let granted = set_up(cpu, policy, || floor_ns(clock));
                let ready = granted.is_ok();
                // The other side waits for this message, so it is there to take it.
                let _ = tell_grant.send(granted);
                let sleeper = Sleeper::new(clock, Wait::Nanosleep);
                if let Some(sleeper) = sleeper.ok().filter(|_| ready) {
                    without_allocation(|| receiving.run(&sleeper));
                }
            })
            .map_err(TimerError::Spawn)?;
        let granted = told_grant.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()));
        Ok(Self {
            settings: settings.clone(),
            grant: granted.map_err(TimerError::Spawn)?,
            drops,
            shared,
            queue,
            thread,
            tracker: Tracker::new(settings.expected),
            dropped: None,
            fresh: (0, Instant::now()),
        })
    }

    /// The thread, with what it was asked to be.
    pub fn member(&self) -> Member<'_> {
        Member { place: "listener".to_owned(), policy: self.settings.policy, grant: &self.grant }
    }

    /// Takes in what the thread told.
    pub fn collect(&mut self) {
        while let Ok(arrival) = self.queue.pop() {
            self.tracker.take_in(&arrival);
        }
        // What cannot be asked is not told: the frames themselves tell what is lost.
        self.dropped = self.drops.dropped().ok().or(self.dropped);
        if self.tracker.frames() != self.fresh.0 {
            self.fresh = (self.tracker.frames(), Instant::now());
        }
    }

    /// Whether the stream has ended, as its talker tells or after two seconds of silence, or nothing can be received any
    /// more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let has_ended = match &self.settings.talker {
            Some(talker) => talker.has_ended(),
            None => self.fresh.0 > 0 && self.fresh.1.elapsed() > SILENCE,
        };
        has_ended || self.thread.is_finished()
    }

    /// Has the thread read what waits, and end; `sent` frames are all that a talker on this machine has sent.
    pub fn finish(&mut self, sent: Option<u64>) {
        let sent = sent.or_else(|| self.settings.talker.as_ref()?.sent());
        let began = Instant::now();
        while sent.is_some_and(|sent| self.tracker.frames() < sent) && began.elapsed() < PATIENCE / 5 {
            std::thread::sleep(Duration::from_millis(1));
            self.collect();
        }
        self.shared.stop.store(true, Relaxed);
        while !self.thread.is_finished() && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
            self.collect();
        }
        self.collect();
        self.tracker.end();
        if let Some(sent) = sent {
            self.tracker.end_at(sent);
        }
    }

    /// What came so far.
    #[must_use]
    pub fn series(&self, phase: &str) -> Series {
        let raw = &self.tracker.raw;
        let told = record::Listener {
            not_told: self.shared.not_told.load(Relaxed),
            wait: self.settings.wait.to_string(),
            from: self.settings.from.clone(),
            ..self.tracker.told(&self.settings.interface, self.dropped)
        };
        let period_ns = self.settings.expected.period_ns;
        let later = |ns: u64| ns as i64 - period_ns as i64;
        let span_ns = self.tracker.last_ns().zip(self.tracker.first_ns()).map(|(last_ns, first_ns)| last_ns - first_ns);
        Series {
            phase: phase.to_owned(),
            role: "listener".to_owned(),
            cpu: self.settings.cpu.filter(|_| self.grant.pin_refused.is_none()),
            granted: Granted {
                policy: self.grant.policy.to_string(),
                cpus: self.grant.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                timer_slack_ns: if self.grant.policy.is_realtime() { 0 } else { self.grant.timer_slack_ns },
                ..Granted::default()
            },
            period_ns,
            first_deadline_ns: self.tracker.first_ns().unwrap_or_default(),
            samples: raw.total(),
            early: raw.iter().take_while(|&(value_ns, _)| value_ns < 0).map(|(_, count)| count).sum(),
            min_ns: raw.iter().next().map(|(value_ns, _)| value_ns),
            mean_ns: span_ns
                .filter(|_| !raw.is_empty())
                .map(|span_ns| span_ns as f64 / raw.total() as f64 - period_ns as f64),
            max_ns: told.max_gap_ns.map(later),
            max_at_ns: told.max_gap_at_ns,
            jitter_ns: raw.iter().map(|(value_ns, _)| value_ns.unsigned_abs()).max().unwrap_or_default(),
            raw: raw.clone(),
            corrected: raw.clone(),
            maxima: self.tracker.maxima.clone(),
            floor_ns: self.grant.floor_ns,
            notes: self.notes(),
            kind: SeriesKind::Stream(record::Stream::Listener(Box::new(told))),
            ..Series::default()
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.settings.notes.clone();
        if matches!(self.dropped, Some(Dropped::InRing(_))) && self.tracker.is_untagged() {
            let interface = &self.settings.interface;
            notes.push(format!(
                "frames came without a VLAN tag: if the talker sends one, the interface takes it off before XDP sees it; \
                 sudo ethtool -K {interface} rxvlan off"
            ));
        }
        let begun_anew = self.tracker.begun_anew;
        if begun_anew > 0 {
            notes.push(format!("the talker began anew {begun_anew} times: what was lost in between is not counted"));
        }
        let errors = self.shared.errors.load(Relaxed);
        if errors > 0 {
            let why = io::Error::from_raw_os_error(self.shared.error.load(Relaxed));
            notes.push(format!("receiving failed {errors} times, the last time because: {why}"));
        }
        let not_told = self.shared.not_told.load(Relaxed);
        if not_told > 0 {
            notes.push(format!(
                "{not_told} frames were read faster than they could be counted: they are taken for lost"
            ));
        }
        notes
    }
}

/// The state of the loop. It neither allocates, locks, prints nor calls anything it does not need.
struct Receiving<R> {
    receiver: R,
    shared: Arc<Shared>,
    arrivals: rtrb::Producer<Arrival>,
    clock: Clock,
    spin: bool,
    rest_ns: i64,
    /// When the last frame was read, or waiting began.
    last_ns: i64,
}

impl<R: Receive> Receiving<R> {
    /// Errors after which there is no sense in going on.
    const ERRORS: u64 = 100;

    fn run(&mut self, sleeper: &Sleeper) {
        let mut frame = [0; LOOKED_AT];
        while self.shared.errors.load(Relaxed) < Self::ERRORS {
            let stopped = self.shared.stop.load(Relaxed);
            // What waits when it is to end is read all the same.
            let poll = if stopped || self.polls() { Poll::Spin } else { Poll::Sleep };
            match self.receiver.receive(&mut frame, poll) {
                Ok(Some(received)) => {
                    let read_ns = self.clock.now_ns();
                    self.tell(&frame[..received.length.min(LOOKED_AT)], &received, read_ns);
                    self.last_ns = read_ns;
                    if self.spin && self.rest_ns > 0 && !stopped {
                        // A clock that cannot be slept on was refused before.
                        let _ = sleeper.sleep_until(read_ns + self.rest_ns);
                    }
                }
                Ok(None) if stopped => return,
                Ok(None) => {}
                Err(error) => self.note_error(&error),
            }
        }
    }

    /// Whether to ask again at once. A real-time thread that went on without a frame would keep its CPU from all others.
    #[inline]
    fn polls(&self) -> bool {
        self.spin && self.clock.now_ns() - self.last_ns < POLLS_FOR_NS
    }

    #[inline]
    fn tell(&mut self, frame: &[u8], received: &Received, read_ns: i64) {
        let Some(Parsed { destination, source, vlan, avtp: Some(avtp), probe, .. }) = parse(frame) else { return };
        let arrival = Arrival {
            read_ns,
            stamp_ns: received.stamp_ns.map(|stamp_ns| self.on_our_clock(stamp_ns)),
            length: received.length + if received.tci.is_some() { TAG } else { 0 },
            source,
            destination,
            tci: received.tci.map(Tci::from_bits).or(vlan),
            avtp,
            probe,
        };
        if self.arrivals.push(arrival).is_err() {
            add(&self.shared.not_told, 1);
        }
    }

    /// A moment of CLOCK_REALTIME on the clock of the listener, ns: both are looked at in turn, so that a clock that is set
    /// during the run does no harm. Of a few looks the first counts that nothing came in between.
    #[inline]
    fn on_our_clock(&self, stamp_ns: i64) -> i64 {
        const QUICK_NS: i64 = 1_000;
        let mut converted_ns = 0;
        for _ in 0..5 {
            let before_ns = self.clock.now_ns();
            let ago_ns = Clock::Realtime.now_ns() - stamp_ns;
            let took_ns = self.clock.now_ns() - before_ns;
            converted_ns = before_ns + took_ns / 2 - ago_ns;
            if took_ns < QUICK_NS {
                break;
            }
        }
        converted_ns
    }

    #[cold]
    fn note_error(&self, error: &io::Error) {
        add(&self.shared.errors, 1);
        self.shared.error.store(error.raw_os_error().unwrap_or_default(), Relaxed);
    }
}
