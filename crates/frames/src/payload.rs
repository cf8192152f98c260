//! The probe's payload, which replaces the samples in each frame of our talker.

use crate::bytes;

/// The magic number at the start of the payload.
pub const MAGIC: [u8; 4] = *b"PNCT";
/// Version of the payload layout.
pub const VERSION: u8 = 1;
/// Length of the payload, bytes. It fits into six stereo samples of 32 bits.
pub const LENGTH: usize = 44;

/// Offset of [`Payload::sent_ns`].
pub(crate) const SENT: usize = 36;

/// The probe's payload. Times are on the talker's clock.
///
/// | byte | field |
/// |---|---|
/// | 0-3 | [`MAGIC`] |
/// | 4 | [`VERSION`] |
/// | 5-7 | 0 |
/// | 8-11 | run |
/// | 12-19 | sequence number |
/// | 20-27 | scheduled, ns |
/// | 28-35 | woken, ns |
/// | 36-43 | sent, ns |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Payload {
    /// A number that identifies the talker's run.
    pub run: u32,
    /// Frames sent before this one. AVTP's 8-bit sequence number cannot detect the loss of 256 frames.
    pub seq: u64,
    /// The scheduled transmission time (the slot), ns.
    pub scheduled_ns: i64,
    /// The time when the talker woke up for the frame, ns.
    pub woke_ns: i64,
    /// The talker's clock immediately before sending, ns.
    pub sent_ns: i64,
}

impl Payload {
    /// Encodes the payload.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LENGTH] {
        let mut all = [0; LENGTH];
        all[..4].copy_from_slice(&MAGIC);
        all[4] = VERSION;
        all[8..12].copy_from_slice(&self.run.to_be_bytes());
        all[12..20].copy_from_slice(&self.seq.to_be_bytes());
        all[20..28].copy_from_slice(&self.scheduled_ns.to_be_bytes());
        all[28..36].copy_from_slice(&self.woke_ns.to_be_bytes());
        all[SENT..].copy_from_slice(&self.sent_ns.to_be_bytes());
        all
    }

    /// Decodes a payload; `None` if the data is something else.
    #[must_use]
    #[inline(always)]
    pub fn read(from: &[u8]) -> Option<Self> {
        let from: &[u8; LENGTH] = from.first_chunk()?;
        if bytes(from, 0)? != MAGIC || bytes(from, 4)? != [VERSION, 0, 0, 0] {
            return None;
        }
        let time = |at| bytes(from, at).map(i64::from_be_bytes);
        Some(Self {
            run: u32::from_be_bytes(bytes(from, 8)?),
            seq: u64::from_be_bytes(bytes(from, 12)?),
            scheduled_ns: time(20)?,
            woke_ns: time(28)?,
            sent_ns: time(SENT)?,
        })
    }
}
