//! The listener: a thread that receives frames, stamps them and queues them.

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

use frames::{Class, Parsed, Tci, ethernet::TAG, parse};
use record::{Granted, Reason, Series, SeriesKind, counted, grouped};
use rustix::io::Errno;
use sys::{
    alloc_guard::without_allocation,
    clock::{Around, Clock, Sleeper, Wait},
    link::Links,
    packet::{Poll, Received},
    sched::Policy,
};

use super::{
    identity,
    receive::{DropCounter, Dropped, Receive},
    remote::RemoteTalker,
    search::{Found, Search, SeenStream},
    tracker::{Arrival, Expected, SILENCE, Source, Tracker},
};
use crate::{
    ReceiveWait,
    probe_threads::ThreadInfo,
    setup::{AtEnd, Grant, STACK_BYTES, floor_ns, set_up},
    timer::{TimerError, shared::add},
};

/// Capacity of the queue: two seconds at 8000 frames per second.
const QUEUE: usize = 16_384;
/// Bytes of a frame that are copied: all headers and our payload.
const COPIED_BYTES: usize = 128;
/// A polling thread sleeps once no frame has come for this long, ns.
const POLLS_FOR_NS: i64 = 2_000_000;
/// A polling real-time thread sleeps after each frame for this part of the period.
const PAUSE_PART: i64 = 10;
/// Number of errors after which receiving is given up.
const MAX_ERRORS: u64 = 100;
/// Id of the reason that frames of other streams arrived, but none of a wanted one.
pub const ABSENT: &str = "stream.absent";
/// Most streams that a message names.
const SEEN_SHOWN: usize = 8;
/// Time for the thread to read the queued frames and to end.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerSettings {
    /// The stream and its expected properties.
    pub expected: Expected,
    /// Streams with a name, each with its own series; empty to follow one stream. `expected` gives the clock, and its period
    /// is the shortest of theirs.
    pub named: Vec<NamedStream>,
    /// Network interface that receives it.
    pub interface: String,
    /// Method of waiting. The receiver was configured already if the kernel should poll the driver.
    pub wait: ReceiveWait,
    /// Source of the frames, for the record: `socket`, `xdp copy native`.
    pub from: String,
    /// Notes from the setup.
    pub notes: Vec<String>,
    /// CPU to pin the thread to; `None` for any CPU.
    pub cpu: Option<u32>,
    /// Scheduling policy.
    pub policy: Policy,
    /// Clock to read; the talker's if both are on one machine.
    pub clock: Clock,
    /// The talker, if it is on another machine that reports its end.
    pub talker: Option<RemoteTalker>,
}

/// A stream from a file of streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStream {
    /// Its name.
    pub name: String,
    /// Its id.
    pub stream_id: u64,
    /// Time between two frames, ns.
    pub period_ns: u64,
    /// Longest time from the slot to the presentation time, ns.
    pub transit_ns: u64,
}

/// A listener with its receiving thread.
#[derive(Debug)]
pub struct Listener {
    settings: ListenerSettings,
    grant: Grant,
    drops: Box<dyn DropCounter>,
    shared: Arc<Shared>,
    queue: rtrb::Consumer<Arrival>,
    thread: JoinHandle<()>,
    /// One for each named stream; otherwise one for the followed stream.
    trackers: Vec<Tracker>,
    /// The search for the followed stream, while it lasts.
    search: Option<Search>,
    /// The streams that the search met.
    seen: Vec<SeenStream>,
    dropped: Option<Dropped>,
    fresh: (u64, Instant),
}

/// Data shared by the thread and its reader.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    not_queued: AtomicU64,
    errors: AtomicU64,
    error: AtomicI32,
    at_end: AtEnd,
}

impl Listener {
    /// Starts the thread, which receives from now on.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(settings: &ListenerSettings, receiver: impl Receive) -> Result<Self, TimerError> {
        let drops = receiver.drops().map_err(TimerError::Spawn)?;
        let shared = Arc::new(Shared::default());
        let (arrivals, queue) = rtrb::RingBuffer::new(QUEUE);
        let (grant_sender, grant_receiver) = mpsc::channel();
        let mut receiving = Receiving {
            receiver,
            shared: shared.clone(),
            arrivals,
            clock: settings.clock,
            spin: settings.wait == ReceiveWait::Spin,
            pause_ns: if settings.policy.is_realtime() {
                settings.expected.period_ns.cast_signed() / PAUSE_PART
            } else {
                0
            },
            last_ns: 0,
        };
        let (cpu, policy, clock) = (settings.cpu, settings.policy, settings.clock);
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let granted = set_up(cpu, policy, || floor_ns(clock));
                let ready = granted.is_ok();
                // The other side waits for this message, so sending cannot fail.
                let _ = grant_sender.send(granted);
                let sleeper = Sleeper::new(clock, Wait::Nanosleep);
                if let Some(sleeper) = sleeper.ok().filter(|_| ready) {
                    without_allocation(|| receiving.run(&sleeper));
                    receiving.shared.at_end.read();
                }
            })
            .map_err(TimerError::Spawn)?;
        let granted = grant_receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Unsupported.into()));
        Ok(Self {
            settings: settings.clone(),
            grant: granted.map_err(TimerError::Spawn)?,
            drops,
            shared,
            queue,
            thread,
            trackers: trackers(settings),
            search: search(settings),
            seen: Vec::new(),
            dropped: None,
            fresh: (0, Instant::now()),
        })
    }

    /// The thread and its requested policy.
    pub fn thread_info(&self) -> ThreadInfo<'_> {
        ThreadInfo {
            place: "listener".to_owned(),
            policy: self.settings.policy,
            grant: &self.grant,
            at_end: self.shared.at_end.get(),
        }
    }

    /// Reads the queued frames.
    pub fn collect(&mut self) {
        while let Ok(arrival) = self.queue.pop() {
            match &mut self.search {
                None => self.tracker_of(arrival.avtp.stream_id).add(&arrival),
                Some(search) => {
                    if search.add(arrival) {
                        self.end_search();
                    }
                }
            }
        }
        // If the count cannot be read, losses still follow from the numbers of the frames.
        self.dropped = self.drops.dropped().ok().or(self.dropped);
        let frames = self.frames_so_far();
        if frames != self.fresh.0 {
            self.fresh = (frames, Instant::now());
        }
    }

    /// Frames of the followed streams so far. During a search, it can be any stream.
    fn frames_so_far(&self) -> u64 {
        let held = self.search.as_ref().map_or(0, Search::held);
        held + self.trackers.iter().map(Tracker::frames).sum::<u64>()
    }

    /// True if no frame has come yet, and no talker says when it starts.
    #[must_use]
    pub fn awaits_first(&self) -> bool {
        self.settings.talker.is_none() && self.frames_so_far() == 0
    }

    /// Ends the search for the followed stream, and counts the held frames.
    fn end_search(&mut self) {
        let Some(Found { stream_id, held, streams }) = self.search.take().map(Search::end) else { return };
        self.seen = streams;
        if let (Some(stream_id), [tracker]) = (stream_id, &mut self.trackers[..]) {
            tracker.follow(stream_id);
        }
        for arrival in held {
            self.tracker_of(arrival.avtp.stream_id).add(&arrival);
        }
    }

    /// True if the stream has ended, according to its talker or after two seconds of silence, or if nothing can be
    /// received any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let has_ended = match &self.settings.talker {
            Some(talker) => talker.has_ended(),
            None => self.fresh.0 > 0 && self.fresh.1.elapsed() > SILENCE,
        };
        has_ended || self.thread.is_finished()
    }

    /// The reason in words why no frames arrive any more; `None` while they do, or if the talker has reported its end.
    pub fn gone(&self) -> Option<String> {
        if self.settings.talker.as_ref().is_some_and(RemoteTalker::has_ended) {
            return None;
        }
        let silent = self.fresh.0 > 0 && self.fresh.1.elapsed() > SILENCE;
        if !silent && !self.has_failed() {
            let stream = self.trackers.iter().find_map(Tracker::ended_sibling)?;
            return Some(self.ended_alone(&stream.stream_id, stream.ended_before_ns as f64 / 1e9));
        }
        let (interface, seconds) = (&self.settings.interface, self.fresh.1.elapsed().as_secs_f64());
        if let Some(stream_id) = self.trackers.iter().find_map(|tracker| tracker.outlived(SILENCE / 2)) {
            return Some(self.ended_alone(&identity::stream_id(stream_id), seconds));
        }
        // An error from an earlier time does not explain a silence of the present.
        let why = match link_problem(interface) {
            Some(problem) => problem,
            None if self.has_failed() => io::Error::from_raw_os_error(self.shared.error.load(Relaxed)).to_string(),
            None => "the talker has ended, or the path from it is down".to_owned(),
        };
        Some(format!("no frame arrived on {interface} in the last {seconds:.1} s: {why}"))
    }

    /// The text about a stream that ended while others of its talker did not.
    fn ended_alone(&self, stream_id: &str, seconds: f64) -> String {
        let (name, interface) = (record::stream_name(stream_id), &self.settings.interface);
        format!(
            "no frame of stream {name} arrived on {interface} in the last {seconds:.1} s, but frames of another stream of its \
             talker did: the stream has ended, or its path is down"
        )
    }

    /// True if the thread gave up receiving.
    fn has_failed(&self) -> bool {
        self.shared.errors.load(Relaxed) >= MAX_ERRORS
    }

    /// Lets the thread read the remaining frames and end. `sent` contains the id of each stream of a talker on this
    /// machine, and the number of frames that it sent; it is empty for a talker elsewhere.
    pub fn finish(&mut self, sent: &[(u64, u64)]) {
        let talker = self.settings.talker.clone();
        let sent = talker.as_ref().map_or(sent, RemoteTalker::sent);
        let of_all: u64 = sent.iter().map(|(_, frames)| frames).sum();
        let began = Instant::now();
        while self.frames_of_all() < of_all && began.elapsed() < END_TIMEOUT / 5 {
            std::thread::sleep(Duration::from_millis(1));
            self.collect();
        }
        self.shared.stop.store(true, Relaxed);
        while !self.thread.is_finished() && began.elapsed() < END_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
            self.collect();
        }
        self.collect();
        self.end_search();
        for (index, tracker) in self.trackers.iter_mut().enumerate() {
            tracker.end();
            match self.settings.named.get(index) {
                Some(named) => {
                    sent.iter().filter(|(id, _)| *id == named.stream_id).for_each(|one| tracker.end_at(one.1));
                }
                None => tracker.end_each_at(sent),
            }
        }
    }

    /// The reasons why the figures are not those of the wanted streams.
    pub fn reasons(&self) -> Vec<Reason> {
        let mixed: Vec<Reason> = self.trackers.iter().filter_map(|tracker| self.mixed(tracker)).collect();
        // The period of a mixture is nobody's.
        let other_period = if mixed.is_empty() { self.other_period() } else { None };
        mixed.into_iter().chain(other_period).chain(self.absent()).collect()
    }

    /// The reason if several talkers send this stream at the same time.
    fn mixed(&self, tracker: &Tracker) -> Option<Reason> {
        let sources = tracker.mixed_sources()?;
        let stream = tracker.followed().map(identity::stream_name).unwrap_or_default();
        Some(Reason {
            id: "stream.several_talkers".to_owned(),
            text: format!(
                "{} talkers send stream {stream} at the same time: {}; the figures mix their frames",
                sources.len(),
                in_words(sources)
            ),
            remedy: "give each talker another stream id (measure stream talk --unique-id), or stop all but one"
                .to_owned(),
        })
    }

    /// The reason if none of the wanted stream's frames arrived, but frames of others did. It names them.
    fn absent(&self) -> Option<Reason> {
        let absent = self.trackers.iter().filter(|tracker| tracker.frames() == 0);
        let absent: Vec<String> = absent.filter_map(Tracker::followed).map(identity::stream_name).collect();
        let followed = self.trackers.iter().filter(|tracker| tracker.frames() > 0);
        let arrived: Vec<(u64, u64)> = followed
            .filter_map(|tracker| Some((tracker.followed()?, tracker.frames())))
            .chain(self.trackers.iter().flat_map(Tracker::others))
            .collect();
        let &(first, _) = arrived.first().filter(|_| !absent.is_empty())?;
        let described = arrived.iter().take(SEEN_SHOWN);
        let described: Vec<String> = described
            .map(|&(id, frames)| format!("{} ({})", identity::stream_name(id), counted(frames, "frame")))
            .collect();
        let more = match arrived.len().saturating_sub(described.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let interface = &self.settings.interface;
        Some(Reason {
            id: ABSENT.to_owned(),
            text: format!(
                "no frame of stream {} arrived on {interface}; streams that arrived: {}{more}",
                absent.join(", "),
                described.join(", ")
            ),
            remedy: match self.settings.named.is_empty() {
                true => {
                    format!("punctual measure stream listen {interface} --stream-id {}", identity::stream_name(first))
                }
                false => "start the talker with the same file of streams".to_owned(),
            },
        })
    }

    /// The reason if the followed stream has another period than expected: its figures would be those of the expectation.
    fn other_period(&self) -> Option<Reason> {
        let [tracker] = &self.trackers[..] else { return None };
        let found_ns = tracker.other_period_ns().filter(|_| self.settings.named.is_empty())?;
        let is_near = |class: &Class| found_ns.abs_diff(class.interval_ns()) < class.interval_ns() / 10;
        let option = match [Class::A, Class::B].into_iter().find(is_near) {
            Some(Class::A) => "--class A".to_owned(),
            Some(Class::B) => "--class B".to_owned(),
            None => {
                // Three digits: the median has the resolution of a histogram.
                let step_ns = 10_u64.pow(found_ns.ilog10().saturating_sub(2));
                format!("--period {}us", ((found_ns + step_ns / 2) / step_ns * step_ns) as f64 / 1e3)
            }
        };
        let (interface, expected_us) = (&self.settings.interface, tracker.period_ns() as f64 / 1e3);
        let (others, choice) = match &self.seen[..] {
            [first, _, ..] => {
                let all: Vec<_> = self.seen.iter().take(SEEN_SHOWN).map(SeenStream::describe).collect();
                let more = match self.seen.len().saturating_sub(all.len()) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let choice = format!("--stream-id {} ", identity::stream_name(first.stream_id));
                (format!("; streams that arrived: {}{more}", all.join(", ")), choice)
            }
            [] | [_] => (String::new(), String::new()),
        };
        Some(Reason {
            id: "stream.other_period".to_owned(),
            text: format!(
                "the stream has a frame about every {:.1} us, the listener expected one every {expected_us} us{others}",
                found_ns as f64 / 1e3
            ),
            remedy: format!("punctual measure stream listen {interface} {choice}{option}"),
        })
    }

    /// Frames of all streams of the talker so far.
    fn frames_of_all(&self) -> u64 {
        self.trackers.iter().map(Tracker::frames_of_all).sum()
    }

    /// The tracker of a stream; for an unknown stream the first one, which counts it as another stream.
    fn tracker_of(&mut self, stream_id: u64) -> &mut Tracker {
        let index = self.settings.named.iter().position(|named| named.stream_id == stream_id);
        &mut self.trackers[index.unwrap_or(0)]
    }

    /// The series so far: one for each named stream, otherwise one.
    #[must_use]
    pub fn series(&self, phase: &str) -> Vec<Series> {
        let names = self.settings.named.iter().map(|named| Some(named.name.as_str())).chain([None]);
        self.trackers.iter().zip(names).map(|(tracker, name)| self.series_of(tracker, name, phase)).collect()
    }

    fn series_of(&self, tracker: &Tracker, name: Option<&str>, phase: &str) -> Series {
        let raw = &tracker.raw;
        // The kernel counts dropped frames for all streams together.
        let dropped = self.dropped.filter(|dropped| self.trackers.len() == 1 || dropped.frames() == 0);
        let listener = record::Listener {
            not_told: self.shared.not_queued.load(Relaxed),
            wait: self.settings.wait.to_string(),
            from: self.settings.from.clone(),
            ..tracker.to_record(&self.settings.interface, dropped)
        };
        let period_ns = tracker.period_ns();
        let later = |ns: u64| ns.cast_signed() - period_ns.cast_signed();
        let span_ns = tracker.last_ns().zip(tracker.first_ns()).map(|(last_ns, first_ns)| last_ns - first_ns);
        Series {
            phase: phase.to_owned(),
            role: name.map_or_else(|| "listener".to_owned(), |name| format!("listener {name}")),
            cpu: self.settings.cpu.filter(|_| self.grant.pin_refused.is_none()),
            granted: Granted {
                policy: self.grant.policy.to_string(),
                cpus: self.grant.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                timer_slack_ns: if self.grant.policy.is_realtime() { 0 } else { self.grant.timer_slack_ns },
                ..Granted::default()
            },
            period_ns,
            first_deadline_ns: tracker.first_ns().unwrap_or_default(),
            samples: raw.total(),
            early: raw.iter().take_while(|&(value_ns, _)| value_ns < 0).map(|(_, count)| count).sum(),
            min_ns: raw.iter().next().map(|(value_ns, _)| value_ns),
            mean_ns: span_ns
                .filter(|_| !raw.is_empty())
                .map(|span_ns| span_ns as f64 / raw.total() as f64 - period_ns as f64),
            max_ns: listener.max_gap_ns.map(later),
            max_at_ns: listener.max_gap_at_ns,
            jitter_ns: raw.iter().map(|(value_ns, _)| value_ns.unsigned_abs()).max().unwrap_or_default(),
            raw: raw.clone(),
            corrected: raw.clone(),
            maxima: tracker.maxima.clone(),
            floor_ns: self.grant.floor_ns,
            notes: self.notes(tracker),
            kind: SeriesKind::Stream(record::Stream::Listener(Box::new(listener))),
            ..Series::default()
        }
    }

    fn notes(&self, tracker: &Tracker) -> Vec<String> {
        let mut notes = self.settings.notes.clone();
        if matches!(self.dropped, Some(Dropped::InRing(_))) && tracker.is_untagged() {
            let interface = &self.settings.interface;
            notes.push(format!(
                "frames came without a VLAN tag; if the talker sends one, the interface removes it before XDP: \
                 sudo ethtool -K {interface} rxvlan off"
            ));
        }
        let restarts = tracker.restarts();
        if let Some(sources) = tracker.successive_sources() {
            notes.push(format!(
                "another talker took over the stream: {}; frames lost where the talker changed are not counted",
                in_words(sources)
            ));
        } else if restarts > 0 && tracker.mixed_sources().is_none() {
            notes.push(format!(
                "the talker restarted {}; frames lost in between are not counted",
                counted(restarts, "time")
            ));
        }
        if let Some(drift_ppb) = tracker.impossible_drift_ppb() {
            notes.push(format!(
                "the times in the frames run {:.0} ppm faster or slower than this clock, which no clock does: the variation \
                 of the delay is not known",
                drift_ppb.unsigned_abs() as f64 / 1e3
            ));
        }
        let longer = tracker.longer_losses();
        if longer > 0 {
            notes.push(format!(
                "{} could be of 256 more frames each, by the time that they took: the reported losses are the least possible",
                counted(longer, "gap")
            ));
        }
        let errors = self.shared.errors.load(Relaxed);
        if errors > 0 {
            let why = io::Error::from_raw_os_error(self.shared.error.load(Relaxed));
            notes.push(format!("receiving failed {} times, last with: {why}", grouped(errors)));
        }
        let not_queued = self.shared.not_queued.load(Relaxed);
        if not_queued > 0 {
            let frames = grouped(not_queued);
            notes.push(format!("{frames} frames were read faster than they could be counted; they count as lost"));
        }
        notes
    }
}

/// The address of each talker, and the number of its frames.
fn in_words(sources: &[Source]) -> String {
    let each = |source: &Source| format!("{} ({})", identity::mac(source.address), counted(source.frames, "frame"));
    sources.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// The reason in words why no frame can pass an interface of this namespace now; `None` if there is none, or if the kernel
/// does not report it.
fn link_problem(interface: &str) -> Option<String> {
    match Links::open().and_then(|mut links| links.find(interface)) {
        Err(error) => (Errno::from_io_error(&error) == Some(Errno::NODEV)).then(|| "the interface is gone".to_owned()),
        Ok(link) if !link.is_up => Some("the interface is down".to_owned()),
        Ok(link) if link.has_carrier == Some(false) => {
            Some("the interface has no carrier: check its cable, and the device at the other end".to_owned())
        }
        Ok(_) => None,
    }
}

/// Creates the trackers of the named streams, or that of the followed one.
fn trackers(settings: &ListenerSettings) -> Vec<Tracker> {
    let expected = settings.expected;
    let of = |named: &NamedStream| {
        let &NamedStream { stream_id, period_ns, transit_ns, .. } = named;
        Tracker::new(Expected { stream_id: Some(stream_id), period_ns, transit_ns, ..expected })
    };
    if settings.named.is_empty() { vec![Tracker::new(expected)] } else { settings.named.iter().map(of).collect() }
}

/// The search for the stream to follow; `None` if it is given, or if this machine or the other end sends it.
fn search(settings: &ListenerSettings) -> Option<Search> {
    let Expected { stream_id, period_ns, whole, .. } = settings.expected;
    let is_open = stream_id.is_none() && !whole && settings.named.is_empty();
    is_open.then(|| Search::new(period_ns))
}

/// The state of the loop. It does not allocate, lock, print or call anything unnecessary.
struct Receiving<R> {
    receiver: R,
    shared: Arc<Shared>,
    arrivals: rtrb::Producer<Arrival>,
    clock: Clock,
    spin: bool,
    pause_ns: i64,
    /// When the last frame was read, or when waiting began.
    last_ns: i64,
}

impl<R: Receive> Receiving<R> {
    fn run(&mut self, sleeper: &Sleeper) {
        let mut frame = [0; COPIED_BYTES];
        while self.shared.errors.load(Relaxed) < MAX_ERRORS {
            let stopped = self.shared.stop.load(Relaxed);
            // Frames that are already queued are still read before the end.
            let poll = if stopped || self.polls() { Poll::Spin } else { Poll::Sleep };
            match self.receiver.receive(&mut frame, poll) {
                Ok(Some(received)) => {
                    let read_ns = self.clock.now_ns();
                    self.queue(&frame[..received.length.min(COPIED_BYTES)], &received, read_ns);
                    self.last_ns = read_ns;
                    if self.spin && self.pause_ns > 0 && !stopped {
                        // A clock that does not support sleeping was refused before.
                        let _ = sleeper.sleep_until(read_ns + self.pause_ns);
                    }
                }
                Ok(None) if stopped => return,
                Ok(None) => {}
                Err(error) => self.note_error(&error),
            }
        }
    }

    /// True if the thread should poll again at once. Without frames, a polling real-time thread would keep its CPU from
    /// all others.
    #[inline]
    fn polls(&self) -> bool {
        self.spin && self.clock.now_ns() - self.last_ns < POLLS_FOR_NS
    }

    #[inline]
    fn queue(&mut self, frame: &[u8], received: &Received, read_ns: i64) {
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
            add(&self.shared.not_queued, 1);
        }
    }

    /// Converts a timestamp of CLOCK_REALTIME to the listener's clock, ns. Both clocks are read each time, so setting
    /// the clock during the run does no harm.
    #[inline]
    fn on_our_clock(&self, stamp_ns: i64) -> i64 {
        let Around { value: real_ns, at_ns, .. } = self.clock.around(1_000, || Clock::Realtime.now_ns());
        at_ns - (real_ns - stamp_ns)
    }

    #[cold]
    fn note_error(&self, error: &io::Error) {
        add(&self.shared.errors, 1);
        self.shared.error.store(error.raw_os_error().unwrap_or_default(), Relaxed);
    }
}
