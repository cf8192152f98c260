//! Claims the destination addresses of a talker with MAAP before the first frame, and defends them during the run on an
//! ordinary thread.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use frames::{
    Mac,
    maap::{Addresses, Claim, Conflict, DESTINATION, Kind, Message, Resolution},
};
use record::{Caveat, ClaimedAddresses, Maap, MaapConflict, MaapMessage, MaapResolution, WORST_KEPT, counted};
use sys::{
    clock::Clock,
    link::{Link, Links},
    packet::{FrameReceiver, Poll, RawSender},
    sched,
};

use super::{Monitor, identity};
use crate::timer::TimerError;

/// Longest time to claim addresses: one claim takes at most 1.8 s without a conflict.
pub const CLAIM_TIMEOUT: Duration = Duration::from_secs(20);
/// Time between two checks of the link. The kernel counts its returns, so a shorter interruption is seen, too.
const LINK_CHECK: Duration = Duration::from_millis(250);
/// Time between two checks for the end, while messages are awaited.
const WAIT: Duration = Duration::from_millis(50);
/// The highest priority of an ordinary thread: a late DEFEND loses the addresses.
const NICENESS: i32 = -20;
/// Bytes of a frame that are read.
const MAX_BYTES: usize = 128;
/// Most messages that are read before our own are sent, so that a flood of them does not prevent that.
const MESSAGES_MAX: usize = 64;

/// A range of addresses to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedAddresses {
    /// The addresses.
    pub addresses: Addresses,
    /// True if no others may be chosen.
    pub is_fixed: bool,
}

/// Error: the addresses were not claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another device uses an address that must not be replaced.
    #[error(
        "{owner} uses the destination {address}, according to MAAP: give the stream another one, or leave it out to have \
         one chosen"
    )]
    Taken {
        /// The address.
        address: String,
        /// Address of the other device.
        owner: String,
    },
    /// Each chosen range was contested.
    #[error(
        "MAAP found no free destination within {} s and {conflicts} conflicts, so another device claims every address: find \
         it with `tcpdump -e ether proto 0x22f0`, or leave out --maap",
        CLAIM_TIMEOUT.as_secs()
    )]
    Timeout {
        /// Number of conflicts.
        conflicts: u64,
    },
    /// The interface has no link.
    #[error("{0} has no link, so MAAP can claim no destination: connect it (see `ip link`), or leave out --maap")]
    NoLink(String),
    /// A signal asked the program to end.
    #[error("interrupted while MAAP claimed the destination addresses")]
    Interrupted,
    /// Messages could not be sent or received.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The link of the interface that speaks MAAP.
#[derive(Debug)]
pub struct LinkWatch {
    links: Links,
    interface: String,
    is_up: bool,
    /// The kernel's count of returns; `None` on old kernels.
    returns: Option<u32>,
    next_check: Instant,
}

impl LinkWatch {
    /// Opens the link of an interface in the namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(interface: &str) -> io::Result<Self> {
        let mut links = Links::open()?;
        let link = links.find(interface)?;
        let next_check = Instant::now() + LINK_CHECK;
        let (is_up, returns) = (has_link(&link), link.carrier_ups);
        Ok(Self { links, interface: interface.to_owned(), is_up, returns, next_check })
    }

    /// True if the link has returned since the last call.
    fn has_returned(&mut self) -> bool {
        if Instant::now() < self.next_check {
            return false;
        }
        self.next_check = Instant::now() + LINK_CHECK;
        // The interface may have been removed.
        let link = self.links.find(&self.interface).ok();
        let (was_up, returns) = (self.is_up, self.returns);
        self.is_up = link.as_ref().is_some_and(has_link);
        // The count of a return is kept until the interface is up.
        if self.is_up {
            self.returns = link.and_then(|link| link.carrier_ups);
        }
        self.is_up && (!was_up || self.returns != returns)
    }
}

/// True if frames can leave the interface.
fn has_link(link: &Link) -> bool {
    link.is_up && link.has_carrier.unwrap_or(true)
}

/// A speaker of MAAP that has claimed its addresses.
#[derive(Debug)]
pub struct Speaker {
    receiver: FrameReceiver,
    sender: RawSender,
    link: LinkWatch,
    own: Mac,
    claims: Vec<Owned>,
    began_ns: i64,
    log: Log,
}

/// A claim, and the first of its addresses while they are claimed.
#[derive(Debug)]
struct Owned {
    claim: Claim,
    /// The first claimed address; read by the measuring threads. It remains after a loss until others are claimed.
    first: Arc<AtomicU64>,
    /// Index of the claimed addresses in the log.
    logged: Option<usize>,
}

/// The events so far.
#[derive(Debug, Clone, Default)]
struct Log {
    claimed: Vec<ClaimedAddresses>,
    conflict_count: u64,
    conflicts: Vec<MaapConflict>,
    link_returns: u64,
    errors: u64,
    error: String,
}

impl Speaker {
    /// Claims all `wanted` ranges for the interface with the address `own`, and returns when they are claimed.
    /// `is_interrupted` is called about 20 times a second.
    ///
    /// # Errors
    /// [`ClaimError`].
    pub fn claim(
        receiver: FrameReceiver,
        sender: RawSender,
        link: LinkWatch,
        own: Mac,
        wanted: &[WantedAddresses],
        seed: u64,
        is_interrupted: impl Fn() -> bool,
    ) -> Result<Self, ClaimError> {
        let (began, began_ns) = (Instant::now(), Clock::Monotonic.now_ns());
        let owned = |(index, one): (usize, &WantedAddresses)| {
            let fixed = wanted.iter().enumerate().filter(|(other, range)| *other != index && range.is_fixed);
            let ours = fixed.map(|(_, range)| range.addresses).collect();
            let seed = seed.wrapping_add(index as u64);
            let claim = Claim::new(own, one.addresses, one.is_fixed, ours, seed, began_ns);
            Owned { claim, first: Arc::new(AtomicU64::new(one.addresses.first)), logged: None }
        };
        let claims = wanted.iter().enumerate().map(owned).collect();
        let mut speaker = Self { receiver, sender, link, own, claims, began_ns, log: Log::default() };
        while !speaker.claims.iter().all(|owned| owned.claim.is_claimed()) {
            if is_interrupted() {
                return Err(ClaimError::Interrupted);
            }
            if began.elapsed() > CLAIM_TIMEOUT {
                if !speaker.link.is_up {
                    return Err(ClaimError::NoLink(speaker.link.interface));
                }
                return Err(ClaimError::Timeout { conflicts: speaker.log.conflict_count });
            }
            speaker.step()?;
            if let Some(taken) = speaker.taken() {
                return Err(taken);
            }
        }
        Ok(speaker)
    }

    /// The first address of each claimed range, in the order of the wanted ones. It changes if others are claimed.
    #[must_use]
    pub fn first_addresses(&self) -> Vec<Arc<AtomicU64>> {
        self.claims.iter().map(|owned| owned.first.clone()).collect()
    }

    /// The error if fixed addresses were given up.
    fn taken(&self) -> Option<ClaimError> {
        let given_up = self.claims.iter().find(|owned| owned.claim.due_ns().is_none())?;
        let address = identity::mac(given_up.claim.addresses().at(0));
        let conflict = self.log.conflicts.iter().rfind(|conflict| conflict.first == address);
        Some(ClaimError::Taken { owner: conflict.map(|conflict| conflict.source.clone()).unwrap_or_default(), address })
    }

    /// Reads the messages that have arrived, waits for others, but not beyond the time of the next own one, and sends it
    /// unless the link is down.
    fn step(&mut self) -> io::Result<()> {
        if self.link.has_returned() {
            self.probe_again();
        }
        let due_ns = self.claims.iter().filter_map(|owned| owned.claim.due_ns()).min().filter(|_| self.link.is_up);
        let left_ns = due_ns.map_or(i64::MAX, |due_ns| due_ns - Clock::Monotonic.now_ns());
        let left = Duration::from_nanos(left_ns.max(0).cast_unsigned());
        let mut poll = Poll::Sleep;
        if left < WAIT {
            std::thread::sleep(left);
            poll = Poll::Spin;
        }
        let mut frame = [0; MAX_BYTES];
        for _ in 0..MESSAGES_MAX {
            let Some(received) = self.receiver.receive(&mut frame, poll)? else { break };
            poll = Poll::Spin;
            if let Some((source, message)) = Message::of_frame(&frame[..received.length.min(MAX_BYTES)]) {
                self.take(source, &message)?;
            }
        }
        if !self.link.is_up {
            return Ok(());
        }
        let now_ns = Clock::Monotonic.now_ns();
        for index in 0..self.claims.len() {
            let owned = &mut self.claims[index];
            let Some(message) = owned.claim.send(now_ns) else { continue };
            if message.kind == Kind::Announce {
                owned.note_claimed(&mut self.log, now_ns - self.began_ns);
            }
            self.sender.send(&message.frame(DESTINATION, self.own))?;
        }
        Ok(())
    }

    /// Probes all addresses again after the link has returned.
    fn probe_again(&mut self) {
        let now_ns = Clock::Monotonic.now_ns();
        self.log.link_returns += u64::from(self.claims.iter().any(|owned| owned.logged.is_some()));
        self.claims.iter_mut().for_each(|owned| owned.claim.probe_again(now_ns));
    }

    /// Lets each claim take a message, and answers it.
    fn take(&mut self, source: Mac, message: &Message) -> io::Result<()> {
        let now_ns = Clock::Monotonic.now_ns();
        let mut answers = Vec::new();
        for owned in &mut self.claims {
            let Some(conflict) = owned.claim.receive(now_ns, source, message) else { continue };
            self.log.add(&conflict, now_ns - self.began_ns);
            match conflict.resolution {
                Resolution::Defended(answer) => answers.push(answer),
                Resolution::Yielded => owned.note_lost(&mut self.log, &conflict, now_ns - self.began_ns),
                Resolution::Kept | Resolution::Left => {}
            }
        }
        answers.iter().try_for_each(|answer| self.sender.send(&answer.frame(source, self.own)))
    }
}

impl Owned {
    /// Notes that the addresses are claimed; nothing if they already were.
    fn note_claimed(&mut self, log: &mut Log, at_ns: i64) {
        if self.logged.is_some() {
            return;
        }
        let addresses = self.claim.addresses();
        self.first.store(addresses.first, Relaxed);
        self.logged = Some(log.claimed.len());
        log.claimed.push(ClaimedAddresses {
            first: identity::mac(addresses.at(0)),
            count: u64::from(addresses.count),
            is_fixed: self.claim.is_fixed(),
            claimed_at_ns: at_ns.max(0).cast_unsigned(),
            ..ClaimedAddresses::default()
        });
    }

    fn note_lost(&mut self, log: &mut Log, conflict: &Conflict, at_ns: i64) {
        if let Some(claimed) = self.logged.take().and_then(|index| log.claimed.get_mut(index)) {
            claimed.lost_at_ns = Some(at_ns.max(0).cast_unsigned());
            claimed.lost_to = Some(identity::mac(conflict.source));
        }
    }
}

impl Log {
    fn add(&mut self, conflict: &Conflict, at_ns: i64) {
        self.conflict_count += 1;
        if self.conflicts.len() == WORST_KEPT {
            return;
        }
        self.conflicts.push(MaapConflict {
            at_ns: at_ns.max(0).cast_unsigned(),
            source: identity::mac(conflict.source),
            message: match conflict.kind {
                Kind::Probe => MaapMessage::Probe,
                Kind::Defend => MaapMessage::Defend,
                Kind::Announce => MaapMessage::Announce,
            },
            first: identity::mac(conflict.ours.at(0)),
            count: u64::from(conflict.ours.count),
            resolution: match conflict.resolution {
                Resolution::Defended(_) => MaapResolution::Defended,
                Resolution::Kept => MaapResolution::Kept,
                Resolution::Left => MaapResolution::Left,
                Resolution::Yielded => MaapResolution::Yielded,
            },
        });
    }

    fn to_record(&self) -> Maap {
        let Self { claimed, conflict_count, conflicts, link_returns, .. } = self.clone();
        Maap { claimed, conflict_count, conflicts, link_returns, ..Maap::default() }
    }

    /// Describes lost addresses, losses of the link, and failures; `None` if there are none.
    fn caveat(&self) -> Option<Caveat> {
        let mut texts = Vec::new();
        for (index, lost) in self.claimed.iter().enumerate() {
            let (Some(lost_at_ns), Some(owner)) = (lost.lost_at_ns, &lost.lost_to) else { continue };
            let next = self.claimed[index + 1..].iter().find(|next| !next.is_fixed && !lost.is_fixed);
            let after = match next {
                Some(next) => {
                    let seconds = next.claimed_at_ns.saturating_sub(lost_at_ns) as f64 / 1e9;
                    format!("for {seconds:.1} s, until {} was claimed", next.first)
                }
                None => "until the end".to_owned(),
            };
            texts.push(format!(
                "the destination address {} was lost to {owner} (MAAP), and frames were still sent to it {after}",
                lost.first
            ));
        }
        if self.link_returns > 0 {
            let times = counted(self.link_returns, "time");
            texts.push(format!(
                "the link went down and returned {times}, and MAAP probed the destination addresses again"
            ));
        }
        if self.errors > 0 {
            texts.push(format!("MAAP messages failed {}, last with: {}", counted(self.errors, "time"), self.error));
        }
        (!texts.is_empty()).then(|| Caveat { kind: "maap".to_owned(), text: texts.join("; ") })
    }
}

/// Defends claimed addresses during a run.
#[derive(Debug)]
pub struct Defence {
    stop: Arc<AtomicBool>,
    log: Arc<Mutex<Log>>,
    thread: Option<JoinHandle<()>>,
}

impl Defence {
    /// Starts the thread.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(mut speaker: Speaker) -> Result<Self, TimerError> {
        let (stop, log) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(speaker.log.clone())));
        let (stopped, shared) = (stop.clone(), log.clone());
        let defend = move || {
            // Without the permission, it runs at normal priority.
            let _ = sched::set_niceness(NICENESS);
            while !stopped.load(Relaxed) {
                if let Err(error) = speaker.step() {
                    speaker.log.errors += 1;
                    speaker.log.error = error.to_string();
                    // An interface that is down reports it at once.
                    std::thread::sleep(WAIT);
                }
                shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&speaker.log);
            }
        };
        let thread = std::thread::Builder::new().name("maap".to_owned()).spawn(defend).map_err(TimerError::Spawn)?;
        Ok(Self { stop, log, thread: Some(thread) })
    }

    fn log(&self) -> Log {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Monitor for Defence {
    fn finish(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.errors += 1;
            log.error = "its thread panicked".to_owned();
        }
    }

    fn caveat(&self) -> Option<Caveat> {
        self.log().caveat()
    }

    fn add_to(&self, talker: &mut record::Talker) {
        talker.maap = Some(self.log().to_record());
    }
}

impl Drop for Defence {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(first: &str, is_fixed: bool, lost_at_ns: Option<u64>) -> ClaimedAddresses {
        let lost_to = lost_at_ns.map(|_| "02:00:00:00:00:01".to_owned());
        let claimed_at_ns = 5_000_000_000;
        ClaimedAddresses { first: first.to_owned(), count: 1, is_fixed, claimed_at_ns, lost_at_ns, lost_to }
    }

    fn caveat(claimed: &[ClaimedAddresses]) -> Option<String> {
        Log { claimed: claimed.to_vec(), ..Log::default() }.caveat().map(|caveat| caveat.text)
    }

    #[test]
    fn lost_addresses_are_a_caveat_with_their_time() {
        assert_eq!(caveat(&[claimed("a", false, None)]), None);
        let text = "the destination address a was lost to 02:00:00:00:00:01 (MAAP), and frames were still sent to it";
        let lost = claimed("a", false, Some(3_200_000_000));
        assert_eq!(caveat(std::slice::from_ref(&lost)), Some(format!("{text} until the end")));
        let moved = caveat(&[lost, claimed("fixed", true, None), claimed("b", false, None)]);
        assert_eq!(moved, Some(format!("{text} for 1.8 s, until b was claimed")));
        let fixed = claimed("a", true, Some(1));
        assert_eq!(caveat(&[fixed, claimed("b", false, None)]), Some(format!("{text} until the end")));
    }

    #[test]
    fn a_link_that_returned_is_a_caveat() {
        let log = Log { link_returns: 2, ..Log::default() };
        let text = log.caveat().map(|caveat| caveat.text);
        let expected = "the link went down and returned 2 times, and MAAP probed the destination addresses again";
        assert_eq!(text.as_deref(), Some(expected));
        assert_eq!(log.to_record().link_returns, 2);
    }

    #[test]
    fn failed_messages_are_a_caveat() {
        let log = Log { errors: 1_234, error: "Network is down".to_owned(), ..Log::default() };
        let text = log.caveat().map(|caveat| caveat.text);
        assert_eq!(text.as_deref(), Some("MAAP messages failed 1,234 times, last with: Network is down"));
    }

    #[test]
    fn further_conflicts_are_counted_only() {
        let ours = Addresses { first: 0x91e0_f000_0001, count: 2 };
        let conflict = Conflict { ours, kind: Kind::Announce, source: [2; 6], resolution: Resolution::Kept };
        let mut log = Log::default();
        (0..25).for_each(|at_ns| log.add(&conflict, at_ns));
        let recorded = log.to_record();
        assert_eq!((recorded.conflict_count, recorded.conflicts.len()), (25, WORST_KEPT));
        assert_eq!(recorded.conflicts[0].first, "91:e0:f0:00:00:01");
    }
}
