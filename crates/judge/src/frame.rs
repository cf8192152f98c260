//! The results of the judge of punctual as bytes. The judge writes them little-endian.

/// First byte of a frame, which does not occur in text.
pub const SYNC: u8 = 0xa5;
/// Length of the frame of one result, bytes.
pub const RESULT_BYTES: usize = 28;
/// Length of the frame at the end of a run, bytes.
pub const END_BYTES: usize = 48;
/// The kind of the frame at the end of a run.
const END: u8 = 5;
/// The time of a question without an answer.
const NO_ANSWER: u32 = u32::MAX;
/// Flags of a result.
const ACTIVE_BEFORE: u8 = 1;
const DISCARDED: u8 = 2;

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// The result of a question, or a spurious edge.
    Result(QuestionResult),
    /// The end of a run, with its totals.
    End(End),
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer came within the timeout.
    Answered,
    /// No answer came before the next question.
    Missed,
    /// The answer came after the timeout.
    Late,
    /// An edge that answered no question.
    Spurious,
}

/// The result of a question, or a spurious edge. Times are in ticks of 8 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionResult {
    /// The outcome.
    pub kind: Kind,
    /// 1: the answer pin was active before. 2: edges were discarded. 4: edges were very short.
    pub flags: u8,
    /// Number of the frame in the run, from 0; lost frames have numbers, too.
    pub number: u32,
    /// Number of the last question, from 1.
    pub question: u32,
    /// Ticks from the start of the run to the question, or to a spurious edge.
    pub time: u64,
    /// Ticks from the question to the answer; `None` if there is none.
    pub after: Option<u32>,
    /// Frames lost directly before this one.
    pub lost_before: u16,
}

impl QuestionResult {
    /// True if the answer pin was still active when the question came.
    #[must_use]
    pub fn was_active_before(&self) -> bool {
        self.flags & ACTIVE_BEFORE != 0
    }

    /// True if the judge discarded edges since the last frame.
    #[must_use]
    pub fn has_discarded(&self) -> bool {
        self.flags & DISCARDED != 0
    }
}

/// The end of a run. Its totals include the results of lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Why the run ended.
    pub reason: EndReason,
    /// Number of frames before this one.
    pub number: u32,
    /// Number of questions.
    pub questions: u32,
    /// Ticks from the start to the end of the last question's time.
    pub time: u64,
    /// Questions answered within the timeout.
    pub answered: u32,
    /// Questions without an answer.
    pub missed: u32,
    /// Questions answered after the timeout.
    pub late: u32,
    /// Edges that answered no question.
    pub spurious: u32,
    /// Questions that came while the answer pin was active.
    pub active_before: u32,
    /// Frames that the line was too slow for.
    pub lost: u32,
    /// Times that edges were discarded.
    pub discarded: u16,
}

/// Why a run of the judge ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// All questions were asked.
    Count,
    /// The host asked for it.
    Stopped,
    /// The pin of the questions did not change, for example because of a short circuit.
    NoEdge,
}

impl EndReason {
    /// Why the run ended before it was stopped, in words.
    #[must_use]
    pub fn too_early(self) -> &'static str {
        match self {
            Self::Count | Self::Stopped => "its run ended too early: another program uses it",
            Self::NoEdge => "its question pin did not change: check it for a short circuit",
        }
    }
}

/// CRC-16 with the polynomial 0x1021 and the initial value 0xffff, not reflected ("CRC-16/CCITT-FALSE").
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    })
}

/// The length of a frame of this kind, bytes; `None` if there is no such kind.
#[must_use]
pub fn length_of(kind: u8) -> Option<usize> {
    match kind {
        1..=4 => Some(RESULT_BYTES),
        END => Some(END_BYTES),
        _ => None,
    }
}

/// Decodes a whole frame; `None` if its length, its CRC or a field is wrong.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Frame> {
    let (&[SYNC, kind, second, _, ..], Some(length)) = (bytes, length_of(*bytes.get(1)?)) else { return None };
    let (body, crc) = bytes.split_last_chunk::<2>()?;
    if bytes.len() != length || crc16(body) != u16::from_le_bytes(*crc) {
        return None;
    }
    let u16_at = |at: usize| Some(u16::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let (number, question, time) = (u32_at(4)?, u32_at(8)?, u64::from_le_bytes(*body.get(12..)?.first_chunk()?));
    if kind == END {
        let reason = match second {
            1 => EndReason::Count,
            2 => EndReason::Stopped,
            3 => EndReason::NoEdge,
            _ => return None,
        };
        let (answered, missed, late, spurious) = (u32_at(20)?, u32_at(24)?, u32_at(28)?, u32_at(32)?);
        let (active_before, lost, discarded) = (u32_at(36)?, u32_at(40)?, u16_at(44)?);
        let questions = question;
        return Some(Frame::End(End {
            reason,
            number,
            questions,
            time,
            answered,
            missed,
            late,
            spurious,
            active_before,
            lost,
            discarded,
        }));
    }
    let after = Some(u32_at(20)?).filter(|&after| after != NO_ANSWER);
    let kind = match (kind, after) {
        (1, Some(_)) => Kind::Answered,
        (2, None) => Kind::Missed,
        (3, Some(_)) => Kind::Late,
        (4, _) => Kind::Spurious,
        _ => return None,
    };
    Some(Frame::Result(QuestionResult { kind, flags: second, number, question, time, after, lost_before: u16_at(24)? }))
}

/// Encodes a frame, as the judge does.
#[must_use]
pub fn encode(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![SYNC];
    match frame {
        Frame::Result(result) => {
            let kind = match result.kind {
                Kind::Answered => 1,
                Kind::Missed => 2,
                Kind::Late => 3,
                Kind::Spurious => 4,
            };
            bytes.extend([kind, result.flags, 0]);
            bytes.extend(result.number.to_le_bytes());
            bytes.extend(result.question.to_le_bytes());
            bytes.extend(result.time.to_le_bytes());
            bytes.extend(result.after.unwrap_or(NO_ANSWER).to_le_bytes());
            bytes.extend(result.lost_before.to_le_bytes());
        }
        Frame::End(end) => {
            let reason = match end.reason {
                EndReason::Count => 1,
                EndReason::Stopped => 2,
                EndReason::NoEdge => 3,
            };
            bytes.extend([END, reason, 0]);
            bytes.extend(end.number.to_le_bytes());
            bytes.extend(end.questions.to_le_bytes());
            bytes.extend(end.time.to_le_bytes());
            let End { answered, missed, late, spurious, active_before, lost, discarded, .. } = end;
            for count in [answered, missed, late, spurious, active_before, lost] {
                bytes.extend(count.to_le_bytes());
            }
            bytes.extend(discarded.to_le_bytes());
        }
    }
    let crc = crc16(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of a hexadecimal text.
    pub fn bytes_of(text: &str) -> Vec<u8> {
        text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    /// The example frames of `judge/PROTOCOL.md`.
    pub const LATE: &str = "a5 03 01 00 29 00 00 00 2a 00 00 00 e1 1b 50 00 00 00 00 00 d5 30 00 00 03 00 28 81";
    pub const ENDED: &str = "a5 05 01 00 eb 03 00 00 e8 03 00 00 88 41 75 07 00 00 00 00 de 03 00 00 07 00 00 00 03 00 \
                             00 00 03 00 00 00 01 00 00 00 03 00 00 00 00 00 59 9e";

    #[test]
    fn reads_the_frames_of_the_documents() {
        assert_eq!(crc16(b"123456789"), 0x29b1);
        let late = Frame::Result(QuestionResult {
            kind: Kind::Late,
            flags: 1,
            number: 41,
            question: 42,
            time: 5_250_017,
            after: Some(12_501),
            lost_before: 3,
        });
        assert_eq!((decode(&bytes_of(LATE)), encode(&late)), (Some(late), bytes_of(LATE)));
        let end = Frame::End(End {
            reason: EndReason::Count,
            number: 1003,
            questions: 1000,
            time: 125_125_000,
            answered: 990,
            missed: 7,
            late: 3,
            spurious: 3,
            active_before: 1,
            lost: 3,
            discarded: 0,
        });
        assert_eq!((decode(&bytes_of(ENDED)), encode(&end)), (Some(end), bytes_of(ENDED)));
    }

    #[test]
    fn a_damaged_frame_is_none() {
        for whole in [LATE, ENDED].map(bytes_of) {
            for at in 0..whole.len() {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x10;
                assert_eq!(decode(&damaged), None, "byte {at}");
            }
            assert_eq!(decode(&whole[..whole.len() - 1]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(frame) = decode(&bytes) {
                prop_assert_eq!(decode(&encode(&frame)), Some(frame));
            }
        }

        #[test]
        fn a_result_comes_back(number: u32, question: u32, time: u64, after in 0..u32::MAX, lost_before: u16, flags: u8) {
            let result = QuestionResult { kind: Kind::Answered, flags, number, question, time, after: Some(after), lost_before };
            prop_assert_eq!(decode(&encode(&Frame::Result(result))), Some(Frame::Result(result)));
        }
    }
}
