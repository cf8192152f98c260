//! Counting of received frames in order of arrival, without a socket.

use std::time::Duration;

use frames::{Avtp, CRF, Format, Mac, Payload, Tci, nearest_ns};
use record::{
    ClockRelation, ClockTie, DelayVariation, Histogram, MarginTally, Maxima, MediaClock, MediaFrame, OneWay,
    ReceivedStream, StreamIdentity,
};

use super::{identity, numbers::Numbers, receive::Dropped};
use crate::variation::{Variation, WINDOW_NS};

/// A stream that was silent for this long has ended.
pub(super) const SILENCE: Duration = Duration::from_secs(2);

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it was read, ns on the listener's clock.
    pub read_ns: i64,
    /// Timestamp of the kernel, ns on the same clock; `None` without one.
    pub stamp_ns: Option<i64>,
    /// Length with VLAN tag, bytes.
    pub length: usize,
    /// Source address.
    pub source: Mac,
    /// Destination address.
    pub destination: Mac,
    /// VLAN tag; `None` without one.
    pub tci: Option<Tci>,
    /// AVTP header.
    pub avtp: Avtp,
    /// Payload of punctual's talker; `None` for other talkers.
    pub probe: Option<Payload>,
}

impl Arrival {
    /// When it arrived, by the kernel's timestamp or else when it was read, ns.
    pub(super) fn arrived_ns(&self) -> i64 {
        self.stamp_ns.unwrap_or(self.read_ns)
    }
}

/// The expected properties of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Id of the stream to follow; `None` for the first frame's.
    pub stream_id: Option<u64>,
    /// Time between two frames, ns.
    pub period_ns: u64,
    /// Longest time from the slot to the presentation time, ns.
    pub transit_ns: u64,
    /// Common source of the talker's clock and ours.
    pub tie: ClockTie,
    /// True if the stream is received from its first frame, which has number 0.
    pub whole: bool,
}

/// The state so far.
#[derive(Debug, Clone)]
pub struct Tracker {
    expected: Expected,
    first: Option<Arrival>,
    last: Option<Arrival>,
    numbers: Numbers,
    listener: record::Listener,
    one_way: OneWay,
    way: Variation,
    whole: Variation,
    late: u64,
    early: u64,
    margins: MarginTally,
    media: MediaClock,
    /// Interval between each frame and the one before, minus the period.
    pub raw: Histogram,
    /// The largest of these values over time.
    pub maxima: Maxima,
    /// Restarts by another run of the talker, or by another talker.
    restarts: u64,
    /// The other streams of the same talker, in order of arrival.
    siblings: Vec<Sibling>,
    /// The streams of other talkers before the first frame, and their frames.
    strangers: Vec<(u64, u64)>,
    /// The talkers of the followed stream.
    sources: Vec<Source>,
    /// Place of the last frame's talker among them.
    source: usize,
    /// Frames of a talker that came after frames of another one, and not for the first time.
    returns: u64,
}

/// A talker of the followed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// Source address of its frames.
    pub address: Mac,
    /// Number of its run, if it is ours: two of our talkers on one interface have the same address.
    run: Option<u32>,
    /// Its frames.
    pub frames: u64,
}

/// Most talkers of one stream that are distinguished.
const SOURCES_MAX: usize = 16;
/// After so many returns, the talkers send at the same time: a talker that replaces another does not return so often.
const RETURNS_MIN: u64 = 10;
/// Most streams of other talkers that are counted one by one: ids from the network can be arbitrary.
const STRANGERS_MAX: usize = 256;

/// Most streams of one talker that are counted; further ones count as other streams.
const SIBLINGS_MAX: usize = 255;
/// Largest drift between two clocks, parts per billion. Crystals are accurate to about 100 ppm, and Linux corrects its clock
/// by at most 500 ppm (adjtimex).
const DRIFT_MAX_PPB: u64 = 1_000_000;
/// Number of intervals that show a period.
const INTERVALS_MIN: u64 = 100;
/// The period is another one than expected if it differs by this factor.
pub(super) const OTHER_PERIOD: f64 = 1.4;

/// The counts of a stream of the same talker as the followed one.
#[derive(Debug, Clone)]
struct Sibling {
    stream_id: u64,
    first: Option<Arrival>,
    last: Option<Arrival>,
    frames: u64,
    numbers: Numbers,
    max_gap_ns: Option<u64>,
    /// Restarts by another run of the talker, or by another talker.
    restarts: u64,
    /// The longest interval without the time of the lost frames in it, ns.
    pause_ns: u64,
}

impl Sibling {
    fn new(stream_id: u64, whole: bool) -> Self {
        Self {
            stream_id,
            first: None,
            last: None,
            frames: 0,
            numbers: Numbers::of(whole),
            max_gap_ns: None,
            restarts: 0,
            pause_ns: 0,
        }
    }

    fn add(&mut self, now: &Arrival) {
        let last = self.last.replace(*now);
        let first = *self.first.get_or_insert(*now);
        let lost = self.numbers.lost;
        if is_restart(last.as_ref(), now, &self.numbers) {
            self.numbers.restart();
            self.restarts += 1;
        }
        count_number(&mut self.numbers, now);
        if let Some(last) = &last {
            let gap_ns = (now.read_ns - last.read_ns).max(0).cast_unsigned();
            self.max_gap_ns = self.max_gap_ns.max(Some(gap_ns));
            let slots = (self.frames + lost).max(2) - 1;
            let period_ns = elapsed_ns(&first, last) / slots;
            let lost_ns = period_ns.saturating_mul(self.numbers.lost.saturating_sub(lost));
            self.pause_ns = self.pause_ns.max(elapsed_ns(last, now).saturating_sub(lost_ns));
        }
        self.frames += 1;
    }

    /// The counts, for a followed stream with this first and last frame. `None` without one, or if the numbers of the frames
    /// also show losses at both ends.
    fn to_record(&self, followed: Option<[&Arrival; 2]>) -> ReceivedStream {
        let silences_ns = followed.zip(self.first.zip(self.last)).map(|([first, last], (own_first, own_last))| {
            [elapsed_ns(first, &own_first), elapsed_ns(&own_last, last), self.pause_ns]
        });
        let silence_ns = u64::try_from(SILENCE.as_nanos()).unwrap_or(u64::MAX);
        let long_ns = silences_ns.unwrap_or_default().map(|ns| if ns > silence_ns { ns } else { 0 });
        let [began_after_ns, ended_before_ns, paused_ns] = long_ns;
        ReceivedStream {
            stream_id: identity::stream_id(self.stream_id),
            destination: self.last.map(|last| identity::mac(last.destination)).unwrap_or_default(),
            frames: self.frames,
            max_gap_ns: self.max_gap_ns,
            restarts: self.restarts + self.numbers.restarts,
            began_after_ns,
            ended_before_ns,
            paused_ns,
            ..counts_of(&self.numbers)
        }
    }
}

/// Time from the arrival of a frame to that of a later one, ns; 0 if it was not later.
fn elapsed_ns(from: &Arrival, to: &Arrival) -> u64 {
    to.arrived_ns().saturating_sub(from.arrived_ns()).max(0).cast_unsigned()
}

/// The counts by the numbers of frames.
fn counts_of(numbers: &Numbers) -> ReceivedStream {
    let &Numbers { lost, loss_bursts, duplicates, reordered, .. } = numbers;
    ReceivedStream { lost, loss_bursts, duplicates, reordered, ..ReceivedStream::default() }
}

/// True if the numbers of the stream begin anew with this frame: it is of another run of the talker than the one before, or of
/// another talker that does not continue these numbers.
fn is_restart(last: Option<&Arrival>, now: &Arrival, numbers: &Numbers) -> bool {
    let Some(last) = last else { return false };
    match (last.probe, now.probe) {
        (Some(before), Some(now)) => before.run != now.run,
        (None, None) => last.source != now.source && !numbers.expects_short(now.avtp.sequence),
        // One of the talkers is ours, and its numbers have 64 bits.
        (Some(_), None) | (None, Some(_)) => true,
    }
}

/// Adds the number of a frame: that of our talker, or else that of AVTP.
fn count_number(numbers: &mut Numbers, now: &Arrival) {
    match now.probe {
        Some(probe) => numbers.add(probe.seq),
        None => numbers.add_short(now.avtp.sequence, now.arrived_ns()),
    }
}

/// The part of a stream id that is the address of its talker.
fn talker_of(stream_id: u64) -> u64 {
    stream_id >> 16
}

impl Tracker {
    /// Creates a tracker without frames.
    pub fn new(expected: Expected) -> Self {
        Self {
            expected,
            first: None,
            last: None,
            numbers: Numbers::of(expected.whole),
            listener: record::Listener::default(),
            one_way: OneWay::default(),
            way: Variation::default(),
            whole: Variation::default(),
            late: 0,
            early: 0,
            margins: MarginTally::default(),
            media: MediaClock::new(expected.period_ns as f64),
            raw: Histogram::default(),
            maxima: Maxima::default(),
            restarts: 0,
            siblings: Vec::new(),
            strangers: Vec::new(),
            sources: Vec::new(),
            source: 0,
            returns: 0,
        }
    }

    /// Follows the stream with this id. Called before the first frame.
    pub fn follow(&mut self, stream_id: u64) {
        self.expected.stream_id = Some(stream_id);
    }

    /// Adds a frame.
    pub fn add(&mut self, arrival: &Arrival) {
        let wanted = self.followed();
        if !arrival.avtp.stream_valid || wanted.is_some_and(|id| talker_of(id) != talker_of(arrival.avtp.stream_id)) {
            self.listener.other_streams += 1;
            self.count_stranger(arrival);
            return;
        }
        if wanted.is_some_and(|id| id != arrival.avtp.stream_id) {
            match self.sibling(arrival.avtp.stream_id) {
                Some(sibling) => sibling.add(arrival),
                None => self.listener.other_streams += 1,
            }
            return;
        }
        self.count_source(arrival);
        let first = *self.first.get_or_insert(*arrival);
        let last = self.last.replace(*arrival);
        self.listener.frames += 1;
        self.listener.wrong_tag += u64::from(arrival.tci != first.tci);
        if let Some(last) = last {
            self.count_interval(&last, arrival, first.read_ns);
        }
        self.count_number(last.as_ref(), arrival);
        self.count_header(last.as_ref(), arrival);
        self.count_media(&first, arrival);
        if self.expected.tie != ClockTie::None {
            self.count_one_way(arrival);
        } else if let Some(probe) = arrival.probe {
            self.whole.add(probe.sent_ns, arrival.read_ns);
            arrival.stamp_ns.iter().for_each(|&stamp_ns| self.way.add(probe.sent_ns, stamp_ns));
        }
    }

    /// The counts of another stream of the same talker; `None` if there are too many.
    fn sibling(&mut self, stream_id: u64) -> Option<&mut Sibling> {
        let known = self.siblings.iter().position(|sibling| sibling.stream_id == stream_id);
        let index = known.unwrap_or(self.siblings.len());
        if index == self.siblings.len() && index < SIBLINGS_MAX {
            self.siblings.push(Sibling::new(stream_id, self.expected.whole));
        }
        self.siblings.get_mut(index)
    }

    /// Counts a frame of another talker's stream, which matters only if none of the wanted one arrives.
    fn count_stranger(&mut self, now: &Arrival) {
        if self.first.is_some() || !now.avtp.stream_valid {
            return;
        }
        let id = now.avtp.stream_id;
        match self.strangers.iter().position(|(known, _)| *known == id) {
            Some(place) => self.strangers[place].1 += 1,
            None if self.strangers.len() < STRANGERS_MAX => self.strangers.push((id, 1)),
            None => {}
        }
    }

    fn count_source(&mut self, now: &Arrival) {
        let (address, run) = (now.source, now.probe.map(|probe| probe.run));
        let known = self.sources.iter().position(|source| source.address == address && source.run == run);
        let Some(place) = known.or((self.sources.len() < SOURCES_MAX).then_some(self.sources.len())) else { return };
        if known.is_none() {
            self.sources.push(Source { address, run, frames: 0 });
        }
        self.returns += u64::from(known.is_some() && place != self.source);
        self.sources[place].frames += 1;
        self.source = place;
    }

    /// The talkers of the followed stream, if several send it at the same time.
    pub fn mixed_sources(&self) -> Option<&[Source]> {
        (self.returns >= RETURNS_MIN).then_some(&self.sources)
    }

    /// The talkers of the followed stream, if one with another source address took it over from another.
    pub fn successive_sources(&self) -> Option<&[Source]> {
        let first = self.sources.first()?;
        let is_taken_over = self.sources.iter().any(|source| source.address != first.address);
        (is_taken_over && self.mixed_sources().is_none()).then_some(&self.sources)
    }

    /// Id of the followed stream; `None` if there is none yet.
    pub fn followed(&self) -> Option<u64> {
        self.first.map(|first| first.avtp.stream_id).or(self.expected.stream_id)
    }

    /// The other streams and their frames. Those of other talkers are complete only until the first frame.
    pub fn others(&self) -> impl Iterator<Item = (u64, u64)> {
        let siblings = self.siblings.iter().filter(|sibling| sibling.frames > 0);
        siblings.map(|sibling| (sibling.stream_id, sibling.frames)).chain(self.strangers.iter().copied())
    }

    fn count_interval(&mut self, last: &Arrival, now: &Arrival, first_ns: i64) {
        let period_ns = self.expected.period_ns.cast_signed();
        let listener = &mut self.listener;
        let interval_ns = now.read_ns - last.read_ns;
        let at_ns = (now.read_ns - first_ns).max(0).cast_unsigned();
        listener.interval.record(interval_ns);
        listener.gaps += u64::from(interval_ns > 2 * period_ns);
        *listener.late_packets.get_or_insert(0) += u64::from(2 * interval_ns > 3 * period_ns);
        if Some(interval_ns.max(0).cast_unsigned()) > listener.max_gap_ns {
            listener.max_gap_ns = Some(interval_ns.max(0).cast_unsigned());
            listener.max_gap_at_ns = Some(at_ns);
        }
        self.raw.record(interval_ns - period_ns);
        self.maxima.add(at_ns, interval_ns - period_ns);
        let mut on_the_wire_ns = interval_ns;
        if let (Some(before_ns), Some(now_ns)) = (last.stamp_ns, now.stamp_ns) {
            on_the_wire_ns = now_ns - before_ns;
            listener.kernel_interval.record(on_the_wire_ns);
            listener.max_kernel_gap_ns = listener.max_kernel_gap_ns.max(Some(on_the_wire_ns.max(0).cast_unsigned()));
        }
        listener.window_violations += u64::from(2 * on_the_wire_ns < period_ns);
    }

    fn count_number(&mut self, last: Option<&Arrival>, now: &Arrival) {
        if is_restart(last, now, &self.numbers) {
            self.numbers.restart();
            self.media.restart();
            self.end();
            self.restarts += 1;
        }
        count_number(&mut self.numbers, now);
    }

    fn count_header(&mut self, last: Option<&Arrival>, now: &Arrival) {
        let (counters, avtp) = (&mut self.listener.counters, &now.avtp);
        counters.frames_rx += 1;
        counters.timestamp_uncertain += u64::from(avtp.timestamp_uncertain);
        // Each frame of a clock reference has timestamps, and no bit for it.
        let (is_crf, has_timestamp) = (avtp.subtype == CRF, avtp.timestamp.is_some());
        counters.timestamp_valid += u64::from(has_timestamp || is_crf);
        counters.timestamp_not_valid += u64::from(!has_timestamp && !is_crf);
        counters.unsupported_format += u64::from(Format::of(avtp.subtype).is_none() && !is_crf);
        if let Some(Arrival { avtp: before, .. }) = last {
            counters.seq_num_mismatch += u64::from(avtp.sequence != before.sequence.wrapping_add(1));
            counters.media_reset += u64::from(avtp.media_restart != before.media_restart);
        }
        if let Some(stamp_ns) = now.stamp_ns {
            self.listener.read_delay.record(now.read_ns - stamp_ns);
        }
    }

    fn count_media(&mut self, first: &Arrival, now: &Arrival) {
        let at_ns = now.arrived_ns() - first.arrived_ns();
        let near_ns = self.media.near_ns(at_ns).unwrap_or(0);
        let Avtp { sequence, media_restart, timestamp, .. } = now.avtp;
        let time_ns = timestamp.map(|timestamp| nearest_ns(timestamp, near_ns));
        let frame = self.listener.frames;
        let of_run = now.probe.map(|probe| (probe.run, probe.seq));
        self.media.add(MediaFrame { frame, at_ns, sequence, of_run, restart_bit: media_restart, time_ns });
    }

    fn count_one_way(&mut self, now: &Arrival) {
        if let Some(margin_ns) = now.avtp.margin_ns(now.arrived_ns()) {
            let first_ns = self.first.as_ref().map_or(0, Arrival::arrived_ns);
            self.margins.add(self.listener.frames, now.arrived_ns() - first_ns, margin_ns, true);
        }
        if let Some(timestamp) = now.avtp.timestamp {
            let slack_ns = nearest_ns(timestamp, now.read_ns) - now.read_ns;
            self.late += u64::from(slack_ns < 0);
            self.early += u64::from(slack_ns > self.expected.transit_ns.cast_signed());
            let least_ns = self.one_way.least_slack_ns;
            self.one_way.least_slack_ns = Some(least_ns.map_or(slack_ns, |least_ns| least_ns.min(slack_ns)));
        }
        if let Some(probe) = now.probe {
            self.one_way.whole.record(now.read_ns - probe.sent_ns);
            if let Some(stamp_ns) = now.stamp_ns {
                self.one_way.way.record(stamp_ns - probe.sent_ns);
            }
        }
    }

    /// Ends the current window of delays: the stream ended or restarted.
    pub fn end(&mut self) {
        self.way.close();
        self.whole.close();
    }

    /// Ends the stream, of which the talker sent `sent` frames.
    pub fn end_at(&mut self, sent: u64) {
        self.numbers.end_at(sent);
    }

    /// Ends all streams of a talker that sent these numbers of frames: id and frames of each. The followed stream is the
    /// one that was found, or the first of the talker.
    pub fn end_each_at(&mut self, sent: &[(u64, u64)]) {
        let followed = self.followed();
        for (index, &(stream_id, frames)) in sent.iter().enumerate() {
            match followed {
                Some(followed) if followed != stream_id => {
                    if let Some(sibling) = self.sibling(stream_id) {
                        sibling.numbers.end_at(frames);
                    }
                }
                Some(_) => self.end_at(frames),
                None if index == 0 => self.end_at(frames),
                None => {}
            }
        }
    }

    /// The first and the last frame of the followed stream; `None` if the numbers of the frames also show losses at both ends.
    fn span(&self) -> Option<[&Arrival; 2]> {
        self.first.as_ref().zip(self.last.as_ref()).filter(|_| !self.expected.whole).map(<[_; 2]>::from)
    }

    /// The other stream of the same talker that ended first, if it ended before the followed one: its counts.
    pub fn ended_sibling(&self) -> Option<ReceivedStream> {
        let siblings = self.siblings.iter().map(|sibling| sibling.to_record(self.span()));
        siblings.filter(|sibling| sibling.ended_before_ns > 0).max_by_key(|sibling| sibling.ended_before_ns)
    }

    /// Id of the followed stream, if frames of another one of its talker came more than `by` after its last one.
    pub fn outlived(&self, by: Duration) -> Option<u64> {
        let last = self.last?;
        let lasts = self.siblings.iter().filter_map(|sibling| sibling.last);
        let longest_ns = lasts.map(|other| elapsed_ns(&last, &other)).max()?;
        (Duration::from_nanos(longest_ns) > by).then_some(last.avtp.stream_id)
    }

    /// Frames of all streams of the talker so far.
    pub fn frames_of_all(&self) -> u64 {
        self.listener.frames + self.siblings.iter().map(|sibling| sibling.frames).sum::<u64>()
    }

    /// The drift between the clocks of talker and listener, parts per billion, if no two clocks drift so much: the times in
    /// the frames are wrong then, and the variation of the delay is not known.
    pub fn impossible_drift_ppb(&self) -> Option<i64> {
        Some(self.whole.drift_ppb()).filter(|ppb| ppb.unsigned_abs() > DRIFT_MAX_PPB)
    }

    /// Runs of losses that lasted longer than the 8-bit numbers show.
    pub fn longer_losses(&self) -> u64 {
        self.numbers.longer_losses + self.siblings.iter().map(|sibling| sibling.numbers.longer_losses).sum::<u64>()
    }

    /// Restarts of the talker.
    pub fn restarts(&self) -> u64 {
        self.restarts + self.numbers.restarts
    }

    /// Expected time between two frames, ns.
    pub fn period_ns(&self) -> u64 {
        self.expected.period_ns
    }

    /// The usual time between two frames, if it is another one than expected, ns.
    ///
    /// Several frames can be read at once, and many can be lost: only if both the median and the mean of the intervals
    /// differ, the talker sends less often. A shorter mean alone shows that it sends more often.
    pub fn other_period_ns(&self) -> Option<u64> {
        let span_ns = self.last_ns()?.checked_sub(self.first_ns()?)?;
        let intervals = self.raw.total();
        if intervals < INTERVALS_MIN {
            return None;
        }
        let longer = |ns: i64, than_ns: i64| ns as f64 > than_ns as f64 * OTHER_PERIOD;
        let expected_ns = self.expected.period_ns.cast_signed();
        let mean_ns = span_ns / intervals.cast_signed();
        let median_ns = self.raw.percentile(50.0)?.saturating_add_unsigned(self.expected.period_ns);
        let other_ns =
            match (longer(median_ns, expected_ns) && longer(mean_ns, expected_ns), longer(expected_ns, mean_ns)) {
                (true, _) => Some(median_ns),
                (_, true) => Some(mean_ns),
                (false, false) => None,
            };
        other_ns.and_then(|ns| u64::try_from(ns).ok()).filter(|&ns| ns > 0)
    }

    /// When the first frame was read, ns.
    pub fn first_ns(&self) -> Option<i64> {
        self.first.map(|first| first.read_ns)
    }

    /// When the last frame was read, ns.
    pub fn last_ns(&self) -> Option<i64> {
        self.last.map(|last| last.read_ns)
    }

    /// Frames of the stream so far.
    pub fn frames(&self) -> u64 {
        self.listener.frames
    }

    /// True if frames came and the first had no VLAN tag.
    pub fn is_untagged(&self) -> bool {
        self.first.is_some_and(|first| first.tci.is_none())
    }

    /// The figures so far, with the number of frames that this machine dropped, if known.
    pub fn to_record(&self, interface: &str, dropped: Option<Dropped>) -> record::Listener {
        let Numbers { lost, loss_bursts, duplicates, reordered, strays, .. } = self.numbers;
        let mut media = self.media.clone();
        media.learn();
        let mut listener = record::Listener {
            identity: self.identity(interface),
            lost,
            loss_bursts,
            duplicates,
            reordered,
            strays,
            streams: self.streams(),
            jumps: media.jumps(),
            media_changes: media.changes().to_vec(),
            numbers: if self.first.is_some_and(|first| first.probe.is_none()) { "avtp" } else { "probe" }.to_owned(),
            ..self.listener.clone()
        };
        // The dropped frames may include those of other streams.
        let is_alone = listener.other_streams == 0 && self.siblings.is_empty();
        let of_ours = |dropped: u64| (is_alone || dropped == 0).then(|| dropped.min(lost));
        (listener.lost_in_socket, listener.lost_in_ring) = match dropped {
            Some(Dropped::InSocket(dropped)) => (of_ours(dropped), None),
            Some(Dropped::InRing(dropped)) => (None, of_ours(dropped)),
            None => (None, None),
        };
        if self.expected.tie != ClockTie::None {
            // The caller knows how accurately another machine's clock is synchronised.
            let clock = match self.expected.tie {
                ClockTie::SameHost => ClockRelation::same_host(),
                tie => ClockRelation { tie, ..ClockRelation::default() },
            };
            let margin = self.margins.to_record();
            listener.one_way = Some(OneWay { clock, late_presentation: self.late, margin, ..self.one_way.clone() });
            listener.counters.late_timestamp = Some(self.late);
            listener.counters.early_timestamp = Some(self.early);
        } else if self.whole.longer.total() > 0 && self.impossible_drift_ppb().is_none() {
            listener.delay_variation = Some(DelayVariation {
                way: self.way.longer.clone(),
                whole: self.whole.longer.clone(),
                drift_ppb: self.whole.drift_ppb(),
                window_ns: WINDOW_NS as u64,
            });
        }
        listener
    }

    /// The counts of each stream of the talker, the followed one first, then by id; empty if there is only one.
    fn streams(&self) -> Vec<ReceivedStream> {
        if self.siblings.is_empty() {
            return Vec::new();
        }
        let followed = ReceivedStream {
            stream_id: self.first.map(|first| identity::stream_id(first.avtp.stream_id)).unwrap_or_default(),
            destination: self.first.map(|first| identity::mac(first.destination)).unwrap_or_default(),
            frames: self.listener.frames,
            max_gap_ns: self.listener.max_gap_ns,
            restarts: self.restarts(),
            ..counts_of(&self.numbers)
        };
        let mut siblings: Vec<_> = self.siblings.iter().map(|sibling| sibling.to_record(self.span())).collect();
        siblings.sort_by(|a, b| a.stream_id.cmp(&b.stream_id));
        [followed].into_iter().chain(siblings).collect()
    }

    fn identity(&self, interface: &str) -> StreamIdentity {
        let interface = interface.to_owned();
        let Some(first) = self.first else {
            let stream_id = self.expected.stream_id.map(identity::stream_id).unwrap_or_default();
            return StreamIdentity { interface, stream_id, ..StreamIdentity::default() };
        };
        StreamIdentity {
            interface,
            stream_id: identity::stream_id(first.avtp.stream_id),
            source: identity::mac(first.source),
            destination: identity::mac(first.destination),
            format: identity::format(first.avtp.subtype),
            pcp: first.tci.map(|tci| tci.pcp),
            vid: first.tci.map(|tci| tci.vid),
            frame_bytes: first.length as u64,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
