//! The end of a stream before that of the capture.

use record::saturating::Saturating;

use crate::Packet;

/// A clock that goes back by more than this was set, ns. A card may deliver its frames in another order, within less.
const SET_BACK_NS: i64 = 1_000_000;

/// A stream ended before the capture if its interface had frames for this many more periods.
const SILENT_PERIODS: i64 = 2;
/// It also ended if other interfaces had frames for this long, ns, and this many periods. Interfaces deliver their frames
/// in blocks, and not all at the same time.
const OTHERS_SILENT_NS: i64 = 100_000_000;
const OTHERS_SILENT_PERIODS: i64 = 10;
/// An interface delivers a frame at most this long after its time, ns.
const BLOCK_NS: i64 = 1_000_000_000;

/// The last frames of an interface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// The latest timestamp since the clock was last set back, ns.
    last_ns: i64,
    /// Number of the last frame in the file.
    number: u64,
    set: Option<SetBack>,
}

/// A frame before which the clock of the capture was set back.
#[derive(Debug, Clone, Copy)]
struct SetBack {
    number: u64,
    /// The latest timestamp before it, and the one of the frame, ns.
    before_ns: i64,
    after_ns: i64,
}

impl End {
    /// The end of an interface whose first frame has this number and timestamp.
    pub(crate) fn new(number: u64, at_ns: i64) -> Self {
        Self { last_ns: at_ns, number, set: None }
    }

    /// Adds the next frame.
    #[inline]
    pub(crate) fn add(&mut self, number: u64, at_ns: i64) {
        self.number = number;
        if at_ns >= self.last_ns {
            self.last_ns = at_ns;
        } else if self.last_ns.saturating_sub(at_ns) > SET_BACK_NS {
            self.set = Some(SetBack { number, before_ns: self.last_ns, after_ns: at_ns });
            self.last_ns = at_ns;
        }
    }

    /// Time from a frame with this number and timestamp to the end, ns.
    fn after_ns(&self, number: u64, at_ns: i64) -> i64 {
        match self.set.filter(|set| number < set.number) {
            Some(SetBack { before_ns, after_ns, .. }) => {
                before_ns.saturating_sub(at_ns).saturating_add(self.last_ns.saturating_sub(after_ns))
            }
            None => self.last_ns.saturating_sub(at_ns),
        }
    }
}

/// The last frame of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Last {
    pub(crate) interface: u32,
    pub(crate) number: u64,
    pub(crate) at_ns: i64,
}

/// The clocks of the other interfaces before the last frame of a stream, against the clock of its own.
pub(crate) struct Clocks {
    last: Last,
    own_ns: Option<i64>,
    /// How far each clock is ahead, ns; `None` without frames of both interfaces.
    ahead_ns: Vec<Option<i64>>,
}

impl Clocks {
    pub(crate) fn new(last: Last, interfaces: usize) -> Self {
        Self { last, own_ns: None, ahead_ns: vec![None; interfaces] }
    }

    /// Adds the next frame of the file.
    #[inline]
    pub(crate) fn add(&mut self, packet: &Packet) {
        let Some(at_ns) = packet.at_ns.filter(|_| packet.number < self.last.number) else { return };
        if packet.interface == self.last.interface {
            self.own_ns = Some(at_ns);
        } else if let (Some(own_ns), Some(ahead)) = (self.own_ns, self.ahead_ns.get_mut(packet.interface as usize)) {
            *ahead = Some(at_ns.minus(own_ns));
        }
    }

    /// The time of the stream's last frame by the clock of an interface, ns.
    fn last_by_ns(&self, interface: usize) -> i64 {
        // Interfaces deliver their frames in blocks, so the other clock can also seem to be behind.
        let ahead_ns = self.ahead_ns.get(interface).copied().flatten().filter(|ns| *ns > 0 || *ns < -BLOCK_NS);
        self.last.at_ns.saturating_add(ahead_ns.unwrap_or(0))
    }

    /// Time from the end of the stream to that of the capture, ns; 0 if the stream lasted to the end. These are the ends of all
    /// interfaces.
    pub(crate) fn ended_before_ns(&self, ends: &[Option<End>], period_ns: u64) -> u64 {
        let periods_ns = |periods| period_ns.cast_signed().saturating_mul(periods);
        let Last { interface, number, at_ns } = self.last;
        let own_ns = ends.get(interface as usize).copied().flatten().map_or(0, |end| end.after_ns(number, at_ns));
        // The last frames of an interface can be older than the stream's although their timestamps are later, if the clock was
        // set back.
        let later =
            ends.iter().enumerate().filter_map(|(other, end)| Some((other, end.filter(|end| end.number > number)?)));
        let after_ns = |(other, end): (usize, End)| end.after_ns(number, self.last_by_ns(other));
        let others_ns = later.map(after_ns).max().unwrap_or(0).max(own_ns);
        if others_ns > OTHERS_SILENT_NS.max(periods_ns(OTHERS_SILENT_PERIODS)) {
            others_ns.unsigned_abs()
        } else if own_ns > periods_ns(SILENT_PERIODS) {
            own_ns.unsigned_abs()
        } else {
            0
        }
    }
}
