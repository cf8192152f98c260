//! The state machine that claims and defends a range of addresses (IEEE Std 1722-2016, table B.7), without I/O. The caller
//! gives the time.

use super::{Addresses, Kind, Message, POOL};
use crate::Mac;

/// Number of PROBE messages before the addresses are claimed (table B.8).
const PROBES: u8 = 3;
/// Time between two PROBE messages, ns: the base, and the largest random addition (table B.8).
const PROBE_NS: (u64, u64) = (500_000_000, 100_000_000);
/// Time between two ANNOUNCE messages, ns: the base, and the largest random addition (table B.8).
const ANNOUNCE_NS: (u64, u64) = (30_000_000_000, 2_000_000_000);
/// Conflicts in a row after which the next PROBE waits for an interval, so that a device that contests every address causes no
/// storm. The standard has no limit; the number is that of `MAX_CONFLICTS` in RFC 3927.
const CONFLICTS_MAX: u32 = 10;
/// Most ranges of others that are remembered.
const OTHERS_MAX: usize = 256;
/// Number of random ranges to try before those of others are no longer avoided.
const TRIES: usize = 1_000;

/// A range of addresses that is being claimed or is claimed.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Address of the interface.
    own: Mac,
    addresses: Addresses,
    /// True if only these addresses are wanted.
    is_fixed: bool,
    state: State,
    /// True if the addresses are claimed, or were until the link went down.
    is_used: bool,
    /// When the next message is due, ns; `None` if nothing more is sent.
    due_ns: Option<i64>,
    /// Ranges that were left since the last claim.
    moves: u32,
    /// Further ranges of this speaker.
    ours: Vec<Addresses>,
    /// Ranges that others have claimed, the newest last.
    others: Vec<Addresses>,
    random: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// This number of PROBE messages has been sent.
    Probing(u8),
    Claimed,
    /// Fixed addresses that somebody else uses.
    GivenUp,
}

/// A message of somebody else about our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Our range when the message arrived.
    pub ours: Addresses,
    /// Type of the message.
    pub kind: Kind,
    /// The other's address.
    pub source: Mac,
    /// Our reaction.
    pub resolution: Resolution,
}

/// The reaction to a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// Ours remain, and this DEFEND must be sent to the other.
    Defended(Message),
    /// Ours remain, because the other must yield.
    Kept,
    /// Not used by us yet: another range is probed, or none if the addresses are fixed.
    Left,
    /// No longer used by us: another range is probed, or none if the addresses are fixed.
    Yielded,
}

impl Claim {
    /// Begins to claim `addresses` for the interface with the address `own` at `now_ns`. With `is_fixed`, no other addresses
    /// are chosen after a conflict. `ours` are further ranges of this speaker, which are not chosen. `seed` is the source of
    /// random choices.
    #[must_use]
    pub fn new(own: Mac, addresses: Addresses, is_fixed: bool, ours: Vec<Addresses>, seed: u64, now_ns: i64) -> Self {
        let (state, due_ns) = (State::Probing(0), Some(now_ns));
        let is_taken = !is_fixed && ours.iter().any(|ours| ours.common(addresses).is_some());
        let mut claim = Self {
            own,
            addresses,
            is_fixed,
            state,
            is_used: false,
            due_ns,
            moves: 0,
            ours,
            others: Vec::new(),
            random: seed,
        };
        if is_taken {
            claim.move_away(now_ns);
        }
        claim
    }

    /// The addresses that are being claimed, or are claimed.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// True if only these addresses are wanted.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// True if the addresses are claimed.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.state == State::Claimed
    }

    /// When the next message is due, ns; `None` if nothing more is sent.
    #[must_use]
    pub fn due_ns(&self) -> Option<i64> {
        self.due_ns
    }

    /// Returns the message to send to [`super::DESTINATION`] if it is due at `now_ns`. The ANNOUNCE after the last PROBE
    /// claims the addresses.
    pub fn send(&mut self, now_ns: i64) -> Option<Message> {
        if self.due_ns.is_none_or(|due_ns| due_ns > now_ns) {
            return None;
        }
        let kind = match self.state {
            State::Probing(sent) if sent < PROBES => {
                self.state = State::Probing(sent + 1);
                Kind::Probe
            }
            State::Probing(_) | State::Claimed => {
                (self.state, self.is_used, self.moves) = (State::Claimed, true, 0);
                Kind::Announce
            }
            State::GivenUp => return None,
        };
        self.due_ns = Some(self.after(now_ns, if kind == Kind::Probe { PROBE_NS } else { ANNOUNCE_NS }));
        Some(Message { kind, requested: self.addresses, conflict: None })
    }

    /// Probes the addresses again, because the link has returned at `now_ns`: another device may have claimed them in the
    /// meantime (event `PortOperational!` of table B.7). Until a conflict, they are still used.
    pub fn probe_again(&mut self, now_ns: i64) {
        if self.state != State::GivenUp {
            (self.state, self.due_ns) = (State::Probing(0), Some(now_ns));
        }
    }

    /// Takes a message from `source` that arrived at `now_ns`. Returns the conflict, if there is one.
    pub fn receive(&mut self, now_ns: i64, source: Mac, message: &Message) -> Option<Conflict> {
        // A bridge or the kernel may return our own messages.
        if source == self.own {
            return None;
        }
        let theirs = message.conflict.filter(|_| message.kind == Kind::Defend).unwrap_or(message.requested);
        if message.kind != Kind::Probe {
            self.remember(theirs);
        }
        let answers_ours = message.kind == Kind::Defend && message.requested == self.addresses;
        let common = self.addresses.common(theirs);
        if self.state == State::GivenUp || common.is_none() && !answers_ours {
            return None;
        }
        let ours = self.addresses;
        let resolution = match (self.state, message.kind, common) {
            (State::Claimed, Kind::Probe, Some(_)) => {
                let conflict = common;
                Resolution::Defended(Message { kind: Kind::Defend, requested: message.requested, conflict })
            }
            (State::Claimed, _, _) if is_lower(self.own, source) => Resolution::Kept,
            (State::Probing(_), Kind::Probe, _) if is_lower(self.own, source) => Resolution::Kept,
            _ if self.is_used => Resolution::Yielded,
            _ => Resolution::Left,
        };
        if matches!(resolution, Resolution::Left | Resolution::Yielded) {
            self.move_away(now_ns);
        }
        Some(Conflict { ours, kind: message.kind, source, resolution })
    }

    /// Remembers a range of somebody else, in order not to choose it.
    fn remember(&mut self, theirs: Addresses) {
        if theirs.common(POOL).is_none() || self.others.contains(&theirs) {
            return;
        }
        if self.others.len() == OTHERS_MAX {
            self.others.remove(0);
        }
        self.others.push(theirs);
    }

    /// Begins to claim another random range, or gives up if the addresses are fixed.
    fn move_away(&mut self, now_ns: i64) {
        self.is_used = false;
        if self.is_fixed {
            (self.state, self.due_ns) = (State::GivenUp, None);
            return;
        }
        self.remember(self.addresses);
        let is_free = |addresses: Addresses, taken: &[Addresses]| !taken.iter().any(|t| t.common(addresses).is_some());
        for attempt in 0..2 * TRIES {
            let places = u64::from(POOL.count.saturating_sub(self.addresses.count)) + 1;
            self.addresses.first = POOL.first + self.below(places);
            // Somebody may have announced the whole pool, so other ranges are avoided only if there is space.
            let others: &[Addresses] = if attempt < TRIES { &self.others } else { &[] };
            if is_free(self.addresses, &self.ours) && is_free(self.addresses, others) {
                break;
            }
        }
        self.moves = self.moves.saturating_add(1);
        let due_ns = if self.moves > CONFLICTS_MAX { self.after(now_ns, PROBE_NS) } else { now_ns };
        (self.state, self.due_ns) = (State::Probing(0), Some(due_ns));
    }

    /// The time after an interval of a base and a random addition, ns.
    fn after(&mut self, now_ns: i64, (base_ns, variation_ns): (u64, u64)) -> i64 {
        let wait_ns = base_ns + self.below(variation_ns + 1);
        now_ns.saturating_add(wait_ns.cast_signed())
    }

    /// A random number below `limit`, which must not be 0: `SplitMix64` (Steele, Lea and Flood, 2014).
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

/// True if `own` wins against `other`: the comparison begins with the last octet, and the lower address wins (annex B,
/// `compare_MAC`).
fn is_lower(own: Mac, other: Mac) -> bool {
    own.iter().rev().lt(other.iter().rev())
}

#[cfg(test)]
mod tests;
