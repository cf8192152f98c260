//! Writes captures in which every late, lost and duplicated frame is known.

#![allow(dead_code, reason = "each test file uses only a part")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::fmt::Display;

use analysis::profiles;
use capture::{Analysis, Filter, Options, analyse, to_record};
use frames::{Class, Format, Payload, Stream};
use record::{Capture, Outcome};

/// The options without a selection.
pub const OPTIONS: Options = Options {
    filter: Filter {
        interface: None,
        stream: None,
        vlan: None,
        source: None,
        destination: None,
        ethertype: None,
        udp: None,
    },
    period_ns: None,
    analysed: None,
    number: None,
    stream_periods_ns: Vec::new(),
    idle_slope_bps: None,
    link_bps: 1_000_000_000,
    clock: None,
};

/// A captured frame: timestamp in ns since 1970, and bytes.
#[derive(Debug, Clone)]
pub struct Seen {
    pub at_ns: u64,
    pub interface: u32,
    pub bytes: Vec<u8>,
}

/// The start of the test captures: in 2026, at an odd nanosecond.
pub const BEGIN_NS: u64 = 1_790_000_000_000_000_007;

/// A class A stream of the talker with number `unique`.
pub fn stream(unique: u16) -> Stream {
    let source = [0x30, 0x64, 0x3e, 0x54, 0xee, unique.to_le_bytes()[0]];
    Stream {
        source,
        destination: frames::ethernet::multicast_of(source, unique),
        tci: Class::A.tci(),
        stream_id: frames::stream_id(source, unique),
        format: Format::Aaf,
        channels: frames::template::STEREO,
        samples: Class::A.samples(),
    }
}

/// A talker whose frames can be placed at any time. Times are ns after [`BEGIN_NS`] on the talker's clock.
pub struct Talker {
    frame: frames::Frame,
    run: u32,
    /// True if frames contain the probe's payload.
    pub probe: bool,
    pub interface: u32,
}

impl Talker {
    pub fn new(unique: u16) -> Self {
        Self { frame: stream(unique).frame(), run: 7, probe: true, interface: 0 }
    }

    /// A talker without the payload, so that frames have only AVTP's sequence numbers.
    pub fn plain(unique: u16) -> Self {
        Self { probe: false, ..Self::new(unique) }
    }

    /// Starts another run of the talker.
    pub fn restart(&mut self) {
        self.run += 1;
    }

    /// Frame number `seq`, captured at `at_ns`.
    pub fn seen(&mut self, seq: u64, at_ns: i64) -> Seen {
        let payload = Payload { run: self.run, seq, scheduled_ns: seq.cast_signed() * 125_000, ..Payload::default() };
        self.frame.patch(&payload, 2_000_000);
        let mut bytes = self.frame.bytes().to_vec();
        if !self.probe {
            bytes[18 + 24..18 + 24 + 4].fill(0);
        }
        Seen { at_ns: BEGIN_NS.wrapping_add_signed(at_ns), interface: self.interface, bytes }
    }

    /// `count` frames every 125 us, each with a jitter of 0 to 200 ns.
    pub fn steady(&mut self, count: u64) -> Vec<Seen> {
        (0..count).map(|seq| self.seen(seq, seq.cast_signed() * 125_000 + scatter(seq))).collect()
    }
}

/// A datagram to `port` without a sequence number, captured at `at_ns`.
pub fn datagram(at_ns: i64, port: u16) -> Seen {
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
    bytes[23] = 17;
    bytes[26..30].copy_from_slice(&[10, 0, 0, 1]);
    bytes[36..38].copy_from_slice(&port.to_be_bytes());
    Seen { at_ns: BEGIN_NS.wrapping_add_signed(at_ns), interface: 0, bytes }
}

/// A pseudo-random jitter of 0 to 200 ns.
pub fn scatter(n: u64) -> i64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ x >> 31) % 201).cast_signed()
}

/// A byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteOrder {
    pub big: bool,
}

impl ByteOrder {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

pub const LITTLE: ByteOrder = ByteOrder { big: false };
pub const BIG: ByteOrder = ByteOrder { big: true };

/// Converts a number to the type of a field in a file. Panics if the number does not fit.
fn field<T: TryFrom<N>, N: Copy + Display>(number: N) -> T {
    T::try_from(number).unwrap_or_else(|_| panic!("{number} does not fit in its field"))
}

/// A pcap file of this link type, with timestamps in ns or us.
pub fn pcap(order: ByteOrder, nanoseconds: bool, link_type: u32, frames: &[Seen]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.u32(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    file.extend([0; 8]);
    file.extend(order.u32(262_144));
    file.extend(order.u32(link_type));
    for seen in frames {
        let fraction = field(seen.at_ns % 1_000_000_000);
        file.extend(order.u32(field(seen.at_ns / 1_000_000_000)));
        file.extend(order.u32(if nanoseconds { fraction } else { fraction / 1000 }));
        file.extend(order.u32(field(seen.bytes.len())));
        file.extend(order.u32(field(seen.bytes.len())));
        file.extend(&seen.bytes);
    }
    file
}

/// A pcapng file under construction.
pub struct Pcapng {
    pub order: ByteOrder,
    pub bytes: Vec<u8>,
    /// Resolution and offset of the timestamps of each interface in the section.
    interfaces: Vec<(u8, i64)>,
}

impl Pcapng {
    /// A file that starts with a section.
    pub fn new(order: ByteOrder) -> Self {
        let mut file = Self { order, bytes: Vec::new(), interfaces: Vec::new() };
        file.section(order);
        file
    }

    /// Starts another section.
    pub fn section(&mut self, order: ByteOrder) -> &mut Self {
        self.order = order;
        self.interfaces.clear();
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend(order.u64(u64::MAX));
        self.block(0x0a0d_0d0a, &body)
    }

    pub fn block(&mut self, kind: u32, body: &[u8]) -> &mut Self {
        let padded = body.len().next_multiple_of(4);
        let length = self.order.u32(field(padded + 12));
        self.bytes.extend(self.order.u32(kind));
        self.bytes.extend(length);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(length);
        self
    }

    pub fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [self.order.u16(code), self.order.u16(field(value.len()))].concat();
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    /// Adds an interface with timestamp offset and resolution; `None` means the default of 1 us.
    pub fn interface(&mut self, link_type: u16, tsresol: Option<u8>, offset_s: i64) -> &mut Self {
        let mut body = [self.order.u16(link_type), [0; 2]].concat();
        body.extend([0; 4]);
        body.extend(self.option(2, b"tap"));
        if let Some(tsresol) = tsresol {
            body.extend(self.option(9, &[tsresol]));
        }
        body.extend(self.option(14, &self.order.u64(offset_s.cast_unsigned())));
        body.extend(self.option(0, &[]));
        self.interfaces.push((tsresol.unwrap_or(6), offset_s));
        self.block(1, &body)
    }

    /// Adds an enhanced packet block.
    pub fn packet(&mut self, seen: &Seen) -> &mut Self {
        self.truncated(seen, seen.bytes.len())
    }

    /// Adds an enhanced packet block with the first bytes of a frame, so many at most.
    pub fn truncated(&mut self, seen: &Seen, kept: usize) -> &mut Self {
        let bytes = &seen.bytes[..kept.min(seen.bytes.len())];
        let (tsresol, offset_s) = self.interfaces[seen.interface as usize];
        let ns = i128::from(seen.at_ns) - i128::from(offset_s) * 1_000_000_000;
        let exponent = u32::from(tsresol & 0x7f);
        let ticks: u64 = field(match tsresol & 0x80 {
            0 if exponent <= 9 => ns / 10i128.pow(9 - exponent),
            0 => ns * 10i128.pow(exponent - 9),
            _ => (ns << exponent) / 1_000_000_000,
        });
        let lengths = [bytes.len(), seen.bytes.len()].map(field);
        let [captured, original] = lengths;
        let fields = [seen.interface, field(ticks >> 32), field(ticks & 0xffff_ffff), captured, original];
        let mut body: Vec<u8> = fields.into_iter().flat_map(|value| self.order.u32(value)).collect();
        body.extend(bytes);
        self.block(6, &body)
    }

    /// Adds an enhanced packet block that says how many frames were dropped before it.
    pub fn packet_after_drops(&mut self, seen: &Seen, dropped: u64) -> &mut Self {
        let len = field(seen.bytes.len());
        let fields = [seen.interface, field(seen.at_ns >> 32), field(seen.at_ns & 0xffff_ffff), len, len];
        let mut body: Vec<u8> = fields.into_iter().flat_map(|value| self.order.u32(value)).collect();
        body.extend(&seen.bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.option(4, &self.order.u64(dropped)));
        body.extend(self.option(0, &[]));
        self.block(6, &body)
    }

    /// Adds interface statistics without counts.
    pub fn empty_statistics(&mut self, interface: u32) -> &mut Self {
        let mut body = self.order.u32(interface).to_vec();
        body.extend([0; 8]);
        self.block(5, &body)
    }

    /// Adds a simple packet block, which has no timestamp.
    pub fn simple(&mut self, bytes: &[u8]) -> &mut Self {
        let body = [&self.order.u32(field(bytes.len())), bytes].concat();
        self.block(3, &body)
    }

    /// Adds interface statistics with a drop count.
    pub fn statistics(&mut self, interface: u32, dropped: u64) -> &mut Self {
        let mut body = self.order.u32(interface).to_vec();
        body.extend([0; 8]);
        body.extend(self.option(5, &self.order.u64(dropped)));
        body.extend(self.option(0, &[]));
        self.block(5, &body)
    }
}

/// The analysis of these frames in a file with timestamps in ns or us.
pub fn analysed(frames: &[Seen], nanoseconds: bool, options: &Options) -> Analysis {
    let file = pcap(LITTLE, nanoseconds, 1, frames);
    analyse(|| Ok(&file[..]), "test", options).unwrap()
}

/// The analysis of these frames of AVTP.
pub fn avtp(frames: &[Seen]) -> Analysis {
    analysed(frames, true, &OPTIONS)
}

/// Lost frames and losses, duplicates, reordered and too late frames, and restarts; 0 if not known.
pub fn losses(capture: &Capture) -> [u64; 6] {
    let Capture { lost, losses, duplicates, reordered, too_late, restarts, .. } = *capture;
    [lost, losses, duplicates, reordered, too_late, restarts].map(|count| count.unwrap_or_default())
}

/// Options for datagrams to port 7000, or for AVTP, with this period.
pub fn options(udp: bool, period_ns: Option<u64>) -> Options {
    let filter = Filter { udp: udp.then_some(7_000), ..Filter::default() };
    Options { filter, period_ns, ..OPTIONS }
}

/// The analysis of datagrams to port 7000.
pub fn udp(frames: &[Seen]) -> Analysis {
    analysed(frames, true, &options(true, None))
}

/// A stream without numbers that sends frames at these times.
pub fn datagrams(times: impl IntoIterator<Item = i64>) -> Vec<Seen> {
    times.into_iter().map(|at_ns| datagram(at_ns, 7_000)).collect()
}

/// The outcome by this profile, and its reason.
pub fn outcome(found: &Analysis, profile: &str) -> (Outcome, String) {
    let profile = profiles().iter().find(|one| one.name == profile).unwrap();
    let verdict = analysis::judge(&to_record(found.clone(), Vec::new()), profile);
    (verdict.outcome, verdict.reason)
}

/// Sorts frames by time, as a capture contains them.
pub fn sorted(mut frames: Vec<Seen>) -> Vec<Seen> {
    frames.sort_by_key(|seen| seen.at_ns);
    frames
}

/// True for a pseudo-random part of the frames.
pub fn is_lost(n: u64, percent: i64) -> bool {
    scatter(n.wrapping_mul(0x9e37_79b9)) * 100 < percent * 201
}

/// Asserts that the profile of class A finds no fault.
#[track_caller]
pub fn assert_not_failed(found: &Analysis) {
    let (outcome, reason) = outcome(found, "avb-class-a");
    assert_eq!(outcome, Outcome::Inconclusive, "{reason}");
}
