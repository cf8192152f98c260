//! Streams: a timer thread sends frames and another thread receives them, on an interface or between two namespaces.
//!
//! | module | contains |
//! |---|---|
//! | `interface` | checks that an interface can carry a stream |
//! | `link` | watches the carrier of the talker's interface |
//! | `maap` | the destination addresses that the talker claims |
//! | `list` | the streams of a talker and their threads |
//! | `prepare` | creates a talker and a listener from the options |
//! | `endpoints` | the interface or veth pair of a stream |
//! | `sender`, `receiver` | the sockets of talkers and listeners |
//! | [`offset`] | the wake-up offset |
//! | `observe` | captures the stream, and analyses the capture |
//! | `sync` | the synchronisation over PTP that a stream requires |
//! | `error` | errors, each with its remedy |

mod endpoints;
mod error;
mod interface;
pub(super) mod link;
mod list;
mod maap;
pub(crate) mod observe;
pub mod offset;
mod prepare;
mod receiver;
mod sender;
pub(crate) mod sync;

use std::path::{Path, PathBuf};

use frames::{Class, Format, template};
use machine::{CpuList, Root, nic::Launching};
use probes::{
    ReceiveWait,
    probe_threads::ProbeThreads,
    stream::{listener::NamedStream, remote::RemoteTalker, transmit::TransmitMode},
};
use sys::{clock::Clock, packet::SentStamps, sched::Policy};

use endpoints::ETF_DELTA_NS;
pub use error::StreamError;
use interface::Interface;
use list::Group;
pub use list::ListedStream;
pub use observe::CaptureTo;
pub use offset::WakeupOffset;
pub use sync::SYNC_TIMEOUT;

use super::{
    check::PlanError,
    definition::{
        Definition, Network, PhaseContext, PlacementContext, PlacementRule, PrepareError, Properties, RunShape,
        ThreadPlan, Timing,
    },
    timer::{GUARD_REMEDIES, POLICY},
    xdp::XdpMode,
};

/// Most streams of a talker: as many frames as one system call sends.
#[expect(clippy::cast_possible_truncation, reason = "far below 65536")]
pub const STREAMS_MAX: u16 = sys::packet::BATCH as u16;
/// Time that the kernel takes to send one more frame in a slot, ns: 1 to 3 us on the machines of this project.
const SENDING_NS: u64 = 3_000;
/// Time that the kernel takes to send the first frame of a slot, ns: 16 us to a veth pair on a busy virtual machine.
const FIRST_SENDING_NS: u64 = 15_000;
/// Longest wake-up offset of a spinning real-time talker, per cent of the period. It must sleep for the rest.
pub const OFFSET_PERCENT: u64 = 95;

/// Options of the stream probe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamProbe {
    /// The ends of the stream that are on this machine.
    pub ends: StreamEnds,
    /// Reservation class, which sets priority, VLAN, samples per frame and transit time.
    pub class: Class,
    /// Time between two frames, ns; `None` for that of the class.
    pub period_ns: Option<u64>,
    /// Format of the samples in a frame.
    pub format: Format,
    /// Talker: wake-up offset; at most the period, or [`OFFSET_PERCENT`] of it if it spins until its slot under a
    /// real-time policy.
    pub offset: WakeupOffset,
    /// Talker: how frames are sent.
    pub mode: TransmitMode,
    /// Talker: timestamps of sent frames to request; `None` for none.
    pub stamps: Option<SentStamps>,
    /// Talker: number of its stream among those of the same address; of the first stream, if it has several.
    pub unique_id: u16,
    /// Talker: claim the destination addresses with MAAP, and defend them.
    pub maap: bool,
    /// Talker: number of streams after the first, below [`STREAMS_MAX`]. They have the next unique ids.
    pub further_streams: u16,
    /// Talker: streams from a file, in place of `class`, `period_ns`, `format` and `further_streams`; empty without a file.
    pub listed: Vec<ListedStream>,
    /// Largest offset of the clock from PTP time, ns: the run waits until it is reached; `None` if PTP is not required.
    pub require_sync_ns: Option<u64>,
    /// Listener: id of the stream to receive; `None` for the first one with the expected period.
    pub stream_id: Option<u64>,
    /// Listener: streams with a name of a talker elsewhere; empty to follow one stream.
    pub heard: Vec<NamedStream>,
    /// Listener: method by which it waits for frames.
    pub wait: ReceiveWait,
    /// Listener: AF_XDP mode; `None` for a socket of the network stack. Only that socket supports busy polling.
    pub xdp: Option<XdpMode>,
    /// Listener: the talker on another machine that reports to this one; the listener ends with it.
    pub talker_elsewhere: Option<RemoteTalker>,
    /// The queue of the interface that AF_XDP sends and receives on.
    pub queue: u32,
    /// File that an observer captures the stream to; `None` for no capture. The observer is on the receiving side if
    /// the listener is on this machine, else on the sending side.
    pub capture: Option<CaptureTo>,
    /// CPU of the talker; `None` before it is placed.
    pub talk_cpu: Option<u32>,
    /// CPUs of the talker's further threads, one for each group after the first.
    pub further_talk_cpus: Vec<u32>,
    /// CPU of the listener; `None` before it is placed.
    pub listen_cpu: Option<u32>,
}

/// The ends of a stream that are on this machine, with their interface.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StreamEnds {
    /// Both, in network namespaces of their own, joined by a veth pair.
    #[default]
    Both,
    /// The talker.
    Talk(String),
    /// The listener.
    Listen(String),
}

impl StreamProbe {
    /// The interface; `None` for both ends on this machine.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match &self.ends {
            StreamEnds::Both => None,
            StreamEnds::Talk(interface) | StreamEnds::Listen(interface) => Some(interface),
        }
    }

    /// True if the talker is on this machine.
    #[must_use]
    pub fn talks(&self) -> bool {
        match self.ends {
            StreamEnds::Both | StreamEnds::Talk(_) => true,
            StreamEnds::Listen(_) => false,
        }
    }

    /// True if the listener is on this machine.
    #[must_use]
    pub fn listens(&self) -> bool {
        match self.ends {
            StreamEnds::Both | StreamEnds::Listen(_) => true,
            StreamEnds::Talk(_) => false,
        }
    }

    /// True if the wake-up offset is calibrated before the first frame.
    #[must_use]
    pub fn calibrates(&self) -> bool {
        match self.offset {
            WakeupOffset::Given(_) => false,
            WakeupOffset::Auto | WakeupOffset::Knee => self.talks(),
        }
    }

    /// Time before its slot at which a frame must be handed over, ns: the delta of the ETF queueing discipline; 0 without
    /// launch times.
    ///
    /// # Errors
    /// [`StreamError`], if the interface has no launch times.
    pub(crate) fn handover_ns(&self, root: &Root) -> Result<u64, StreamError> {
        match self.interface().filter(|_| self.has_launch_times()) {
            Some(interface) => {
                let of = |group: Group| Ok(Launching::of(root, interface, group.pcp)?.delta_ns);
                let deltas_ns: Vec<u64> =
                    self.groups(self.period_ns()).into_iter().map(of).collect::<Result<_, StreamError>>()?;
                Ok(deltas_ns.into_iter().max().unwrap_or_default())
            }
            None if self.has_launch_times() => Ok(u64::from(ETF_DELTA_NS)),
            None => Ok(0),
        }
    }

    /// Checks the named interface. This must succeed before frames are sent on it.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn check_interface(&self, root: &Root, period_ns: u64) -> Result<(), StreamError> {
        let Some(interface) = self.interface() else { return Ok(()) };
        let found = Interface::read(root, interface)?;
        if !self.talks() {
            return Ok(());
        }
        if link::stays_without_carrier(interface) {
            return Err(StreamError::NoCarrier(interface.to_owned()));
        }
        self.handover_ns(root)?;
        let groups = self.groups(period_ns);
        let of_stream = |period_ns: u64, stream: &ListedStream| {
            (template::length(stream.format, stream.channels, stream.samples), period_ns)
        };
        let frames: Vec<_> = groups
            .iter()
            .flat_map(|group| group.streams.iter().map(|(_, stream)| of_stream(group.period_ns, stream)))
            .collect();
        found.carries(&frames)
    }

    /// The stream id; `None` without a talker on an interface.
    ///
    /// # Errors
    /// [`StreamError`], if the interface cannot carry a stream.
    pub fn stream_id(&self, root: &Root) -> Result<Option<u64>, StreamError> {
        let Some(interface) = self.interface().filter(|_| self.talks()) else { return Ok(None) };
        Ok(Some(frames::stream_id(Interface::read(root, interface)?.mac, self.unique_id)))
    }

    /// The named streams with their ids; empty without a file of streams.
    ///
    /// # Errors
    /// [`StreamError`], if the interface cannot carry a stream.
    pub fn named_streams(&self, root: &Root) -> Result<Vec<NamedStream>, StreamError> {
        let Some(interface) = self.interface().filter(|_| self.talks()) else { return Ok(Vec::new()) };
        Ok(self.named(Interface::read(root, interface)?.mac))
    }

    /// Time that the kernel may take for the frames of a slot, ns, of the thread with the most streams.
    pub(crate) fn sending_ns(&self) -> u64 {
        let further_ns = self.groups(self.period_ns()).iter().map(Group::sending_ns).max().unwrap_or_default();
        further_ns.saturating_add(FIRST_SENDING_NS)
    }

    /// The error if a thread needs more than half of its period to send the frames of a slot, which leaves it no time to
    /// wake early. With launch times it hands frames over long before their slot.
    fn check_sending(&self, period_ns: u64) -> Result<(), PlanError> {
        let fits = |group: &Group| self.mode.keeps_slots() || group.sending_ns() <= group.period_ns / 2;
        let groups = self.groups(period_ns);
        let Some(group) = groups.iter().find(|group| !fits(group) || group.streams.len() > usize::from(STREAMS_MAX))
        else {
            return Ok(());
        };
        let (streams, period_ns) = (group.streams.len(), group.period_ns);
        if streams > usize::from(STREAMS_MAX) {
            return Err(PlanError::StreamsOfThread { streams, most: STREAMS_MAX });
        }
        let most = period_ns / 2 / SENDING_NS + 1;
        Err(PlanError::TooManyStreams { streams, sending_ns: group.sending_ns(), period_ns, most })
    }

    /// True if frames have launch times.
    fn has_launch_times(&self) -> bool {
        self.talks() && self.mode == TransmitMode::Txtime
    }

    /// True if the wake-up offset is at most one period and leaves the talker enough time to sleep.
    fn offset_fits(&self, policy: Policy, period_ns: u64) -> bool {
        let keeps_slots = self.talks() && self.mode.keeps_slots();
        let percent = if policy.is_realtime() && !keeps_slots { OFFSET_PERCENT } else { 100 };
        let most_ns = u128::from(period_ns) * u128::from(percent) / 100;
        u128::from(self.offset_ns()) <= most_ns
    }

    /// The wake-up offset, ns; 0 without a talker and before calibration.
    fn offset_ns(&self) -> u64 {
        if self.talks() { self.offset.ns() } else { 0 }
    }
}

impl Definition for StreamProbe {
    fn properties(&self) -> Properties {
        Properties {
            name: "stream",
            network: if self.interface().is_some() { Network::Interface } else { Network::Virtual },
            has_late_wake_ups: true,
            measures_trace_cost: false,
            guard_remedies: GUARD_REMEDIES,
            awaits_device: false,
            pacer_failed: None,
            evl: Err(PlanError::EvlProbe),
        }
    }

    fn policy(&self, requested: Option<Policy>) -> Policy {
        requested.unwrap_or(POLICY)
    }

    fn period_ns(&self) -> u64 {
        let listed_ns = self.listed.iter().map(|stream| stream.period_ns).min();
        listed_ns.or(self.period_ns).unwrap_or_else(|| self.class.interval_ns())
    }

    /// A spike is a wake-up that misses its slot; without an offset, one later than 100 us.
    fn timing(&self, period_ns: u64) -> Timing {
        let of_sleeper = Timing::of_sleeper(period_ns);
        match self.offset_ns() {
            0 => of_sleeper,
            offset_ns => Timing { threshold_ns: offset_ns + (period_ns / 100).max(1_000), ..of_sleeper },
        }
    }

    fn placement(&self) -> PlacementRule {
        let groups = if self.talks() { self.groups(self.period_ns()) } else { Vec::new() };
        let listener = self.listens().then(|| "listener".to_owned());
        let roles: Vec<_> = groups.into_iter().map(|group| group.role).chain(listener).collect();
        PlacementRule {
            by_thread: Some(roles.len()..=roles.len()),
            threads: format!("a {}", roles.join(" and a ")),
            remedy: "write one CPU for each, or cpus = \"last\"",
            takes_best_cpu: true,
            measured: usize::MAX,
            roles,
        }
    }

    fn place(&mut self, mut cpus: Vec<u32>, machine: &PlacementContext<'_>) -> Vec<u32> {
        let Some(&first) = cpus.first() else { return cpus };
        let talkers = if self.talks() { self.groups(self.period_ns()).len() } else { 0 };
        // Of fewer CPUs than threads, the first is for the first talker, and the last for the listener.
        let listen = cpus.get(1..).and_then(<[u32]>::last).copied().filter(|_| self.listens());
        let mut talk: Vec<u32> = cpus[..cpus.len() - usize::from(listen.is_some())].to_vec();
        while talk.len() < talkers {
            let free = machine.usable.iter().rfind(|cpu| !talk.contains(cpu) && Some(*cpu) != listen);
            talk.push(free.or(listen.filter(|cpu| !talk.contains(cpu))).unwrap_or(first));
        }
        talk.truncate(talkers);
        self.talk_cpu = talk.first().copied();
        self.further_talk_cpus = talk.get(1..).unwrap_or_default().to_vec();
        self.listen_cpu = match (self.listens(), talk.is_empty()) {
            (false, _) => None,
            (true, true) => cpus.last().copied(),
            (true, false) => Some(listen.unwrap_or_else(|| listen_cpu(machine.usable, &talk))),
        };
        cpus = talk;
        cpus.extend(self.listen_cpu);
        cpus
    }

    fn threads(&self, policy: Policy) -> Vec<ThreadPlan> {
        if !self.talks() {
            return Vec::new();
        }
        let cpus = self.talk_cpu.into_iter().chain(self.further_talk_cpus.iter().copied());
        let talker =
            |(group, cpu): (Group, u32)| ThreadPlan { role: group.role, cpu, policy, period_ns: group.period_ns };
        self.groups(self.period_ns()).into_iter().zip(cpus).map(talker).collect()
    }

    fn interface_name(&self) -> Result<Option<String>, PrepareError> {
        Ok(self.interface().map(str::to_owned))
    }

    fn files(&self, record_path: Option<&Path>) -> Vec<PathBuf> {
        self.capture_file(record_path).into_iter().collect()
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.capture.is_some() && self.is_hidden() {
            return Err(PlanError::CaptureHidden);
        }
        if self.stamps.is_some() && (self.mode == TransmitMode::TxRing || self.mode.is_xdp()) {
            return Err(PlanError::StampsOfMode(self.mode));
        }
        if self.stamps == Some(SentStamps::Card) && self.interface().is_none() {
            return Err(PlanError::CardOfOwnPeer);
        }
        if self.maap && !self.has_address_to_claim() {
            return Err(PlanError::NoAddressToClaim);
        }
        let further = self.listed.len().checked_sub(1).unwrap_or(usize::from(self.further_streams));
        if usize::from(self.unique_id) + further > usize::from(u16::MAX) {
            return Err(PlanError::UniqueIds { first: self.unique_id, streams: further + 1 });
        }
        if !self.listed.is_empty() {
            let threads = self.groups(self.period_ns()).len();
            if threads > 1 && self.mode.is_xdp() {
                return Err(PlanError::TalkersOfQueue(threads));
            }
            let cpus: Vec<u32> = self.talk_cpu.into_iter().chain(self.further_talk_cpus.iter().copied()).collect();
            if (1..cpus.len()).any(|index| cpus[..index].contains(&cpus[index])) {
                return Err(PlanError::TalkersOfCpu(threads));
            }
        }
        Ok(())
    }

    fn check_run(&self, run: &RunShape<'_>) -> Result<(), PlanError> {
        if matches!(run.policy, Policy::Deadline { .. }) {
            return Err(PlanError::StreamDeadline);
        }
        if self.has_launch_times() && run.clock != Clock::Tai {
            return Err(PlanError::LaunchClock);
        }
        if self.require_sync_ns.is_some() && run.clock != Clock::Tai {
            return Err(PlanError::SyncClock);
        }
        if self.has_launch_times() && self.offset == WakeupOffset::Knee {
            return Err(PlanError::KneeOfLaunchTimes);
        }
        if self.capture.is_some() && run.periods_ns.len() > 1 {
            return Err(PlanError::CaptureOfPhases);
        }
        if self.talks() {
            run.periods_ns.iter().try_for_each(|period_ns| self.check_sending(*period_ns))?;
        }
        let fits = run.periods_ns.iter().all(|period_ns| self.offset_fits(run.policy, *period_ns));
        fits.then_some(()).ok_or(PlanError::WakeupOffset { percent: 100 - OFFSET_PERCENT })
    }

    fn prepare(&self, context: &PhaseContext<'_>) -> Result<Option<Box<dyn ProbeThreads>>, PrepareError> {
        Ok(Some(Box::new(self.stream(context)?)))
    }
}

/// The CPU of a listener at the other end of a veth pair: the last one without a talker, or else the last one that is not
/// the first talker's.
fn listen_cpu(usable: &CpuList, talk: &[u32]) -> u32 {
    let first = talk.first().copied();
    let free = usable.iter().rfind(|cpu| !talk.contains(cpu));
    free.or_else(|| usable.iter().rfind(|&cpu| Some(cpu) != first)).or(first).unwrap_or_default()
}

/// Reads a stream id of 16 hexadecimal digits, with or without separators: `3064 3e54 ee01 0001`,
/// `30:64:3e:54:ee:01:00:01`, `0x30643e54ee010001`.
///
/// # Errors
/// The text does not have 16 hexadecimal digits.
pub fn parse_stream_id(text: &str) -> Result<u64, String> {
    let digits: String = text.trim_start_matches("0x").chars().filter(|c| !": .-".contains(*c)).collect();
    let is_whole = digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let id = u64::from_str_radix(&digits, 16).ok().filter(|_| is_whole);
    id.ok_or_else(|| "must be 16 hexadecimal digits, e.g. 30:64:3e:54:ee:01:0001".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talker_needs_at_most_half_of_the_period_to_send() {
        let talk = |streams: u16, mode| StreamProbe { further_streams: streams - 1, mode, ..StreamProbe::default() };
        let check = |probe: &StreamProbe, class: Class| {
            let run = RunShape { periods_ns: &[class.interval_ns()], policy: POLICY, clock: Clock::Tai };
            probe.check_run(&run).map_err(|error| error.to_string())
        };
        let send = |streams| talk(streams, TransmitMode::Send);
        for fits in [1, 16, 21] {
            assert_eq!(check(&send(fits), Class::A), Ok(()), "{fits}");
        }
        assert_eq!((check(&send(35), Class::B), check(&send(42), Class::B)), (Ok(()), Ok(())));
        let refused = check(&send(STREAMS_MAX), Class::A).unwrap_err();
        assert!(
            refused.starts_with("64 streams need about 189 us of each 125 us to send: use 21 or fewer"),
            "{refused}"
        );
        let refused = check(&send(STREAMS_MAX), Class::B).unwrap_err();
        assert!(
            refused.starts_with("64 streams need about 189 us of each 250 us to send: use 42 or fewer"),
            "{refused}"
        );
        let launched = talk(STREAMS_MAX, TransmitMode::Txtime);
        assert_eq!((check(&launched, Class::A), check(&launched, Class::B)), (Ok(()), Ok(())));
        let heard = StreamProbe { ends: StreamEnds::Listen("eth0".to_owned()), ..send(STREAMS_MAX) };
        assert_eq!(check(&heard, Class::A), Ok(()));
    }

    #[test]
    fn reads_stream_ids_of_16_digits() {
        for text in ["30643e54ee010001", "0x30643E54EE010001", "30:64:3e:54:ee:01:00:01"] {
            assert_eq!(parse_stream_id(text), Ok(0x3064_3e54_ee01_0001));
        }
        for wrong in ["", "1", "30643e54ee0100010", "30643e54ee01000g", "+0643e54ee010001"] {
            assert!(parse_stream_id(wrong).is_err(), "{wrong}");
        }
    }
}
