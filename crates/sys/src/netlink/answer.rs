//! Decodes the kernel's answers.

use super::{
    attributes::{Attributes, align},
    error::AnswerError,
    request::{HEADER, Request, message},
};
use crate::native::{i32_at, u16_at, u32_at};

/// Length of `genlmsghdr`, bytes: command u8, version u8, reserved u16.
const GENERIC_HEADER: usize = 4;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

const NLM_F_DUMP_INTR: u16 = 0x10;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;

const NLMSGERR_ATTR_MSG: u16 = 1;

/// The complete bytes that the kernel sent for one request, including the final acknowledgement or error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer(Vec<u8>);

/// One message of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The message type: e.g. RTM_NEWLINK, or the number of a generic family.
    pub kind: u16,
    /// The bytes after the netlink header.
    pub payload: &'a [u8],
}

/// A message and its decoded header.
struct Framed<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
    whole: &'a [u8],
}

impl Answer {
    /// Creates an answer from bytes that were stored in a file.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Builds an answer for tests: these messages and then an acknowledgement.
    #[must_use]
    pub fn of(messages: &[Request]) -> Self {
        let mut bytes: Vec<u8> = messages.iter().flat_map(Request::as_answer).collect();
        bytes.extend(message(NLMSG_ERROR, NLM_F_CAPPED, 0, &[0; 4 + HEADER]));
        Self(bytes)
    }

    /// Builds a refusal for tests.
    #[must_use]
    pub fn refused(errno: i32) -> Self {
        let payload = [&(-errno).to_ne_bytes()[..], &[0; HEADER]].concat();
        Self(message(NLMSG_ERROR, NLM_F_CAPPED, 0, &payload))
    }

    /// The raw bytes, e.g. to store them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds those messages of a datagram that answer this request. Late answers to an earlier request are ignored.
    pub(super) fn extend(&mut self, datagram: &[u8], sequence: u32) {
        let mut frames = Frames(datagram);
        for frame in frames.by_ref().filter(|frame| frame.sequence == sequence) {
            self.0.extend_from_slice(frame.whole);
            self.0.resize(align(self.0.len()), 0);
        }
        // The remaining bytes are not a message. They are kept, so that the answer is recognised as malformed.
        self.0.extend_from_slice(frames.0);
    }

    /// True if the final message has arrived, or can no longer arrive.
    pub(super) fn is_whole(&self) -> bool {
        let mut frames = Frames(&self.0);
        frames.by_ref().any(|frame| matches!(frame.kind, NLMSG_ERROR | NLMSG_DONE)) || !frames.0.is_empty()
    }

    /// True if the listed objects changed during the dump, so that the list may be incomplete.
    pub(super) fn was_interrupted(&self) -> bool {
        Frames(&self.0).any(|frame| frame.flags & NLM_F_DUMP_INTR != 0)
    }

    /// The messages that answer the request.
    ///
    /// # Errors
    /// The kernel's refusal, or [`AnswerError::Malformed`].
    pub fn messages(&self) -> Result<Vec<Message<'_>>, AnswerError> {
        let mut messages = Vec::new();
        for frame in Frames(&self.0) {
            match frame.kind {
                NLMSG_NOOP => {}
                NLMSG_ERROR | NLMSG_DONE => return ending(&frame).map(|()| messages),
                kind => messages.push(Message { kind, payload: frame.payload }),
            }
        }
        Err(AnswerError::Malformed)
    }
}

/// Decodes the final message.
fn ending(frame: &Framed) -> Result<(), AnswerError> {
    let code = match i32_at(frame.payload, 0) {
        Some(code) => code,
        // Old kernels end a dump without an error code.
        None if frame.kind == NLMSG_DONE => 0,
        None => return Err(AnswerError::Malformed),
    };
    if code == 0 {
        return Ok(());
    }
    Err(AnswerError::Refused { errno: code.saturating_neg(), reason: reason(frame).unwrap_or_default() })
}

/// The kernel's error message, which follows the error code and the repeated request.
fn reason(frame: &Framed) -> Option<String> {
    if frame.flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let repeated = match frame.kind {
        NLMSG_DONE => 0,
        _ if frame.flags & NLM_F_CAPPED != 0 => HEADER,
        _ => align(u32_at(frame.payload, 4)? as usize),
    };
    let attributes = frame.payload.get(repeated.checked_add(4)?..)?;
    Attributes::read(attributes).ok()?.text(NLMSGERR_ATTR_MSG)
}

impl<'a> Message<'a> {
    /// For a generic family: the command and the attributes.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`].
    pub fn generic(&self) -> Result<(u8, Attributes<'a>), AnswerError> {
        let (header, attributes) = self.payload.split_at_checked(GENERIC_HEADER).ok_or(AnswerError::Malformed)?;
        Ok((header[0], Attributes::read(attributes)?))
    }

    /// For other families: the fixed header of `N` bytes and the attributes.
    ///
    /// # Errors
    /// [`AnswerError::Malformed`].
    pub fn with_header<const N: usize>(&self) -> Result<(&'a [u8; N], Attributes<'a>), AnswerError> {
        let (header, attributes) = self.payload.split_first_chunk::<N>().ok_or(AnswerError::Malformed)?;
        Ok((header, Attributes::read(attributes.get(align(N) - N..).unwrap_or_default())?))
    }
}

/// An iterator over messages. The bytes that remain at the end are not a message.
struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = Framed<'a>;

    fn next(&mut self) -> Option<Framed<'a>> {
        let bytes = self.0;
        let length = u32_at(bytes, 0)? as usize;
        let whole = bytes.get(..length).filter(|whole| whole.len() >= HEADER)?;
        self.0 = bytes.get(align(length)..).unwrap_or_default();
        Some(Framed {
            kind: u16_at(whole, 4)?,
            flags: u16_at(whole, 6)?,
            sequence: u32_at(whole, 8)?,
            payload: &whole[HEADER..],
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn returns_the_messages_before_the_end() {
        let answer = Answer::of(&[Request::generic(21, 20).u32(2, 50), Request::generic(21, 20).u32(2, 51)]);
        let messages = answer.messages().unwrap();
        let values: Vec<_> = messages.iter().map(|m| m.generic().unwrap().1.u32(2)).collect();
        assert_eq!(values, [Some(50), Some(51)]);
        assert!(answer.is_whole() && !answer.was_interrupted());
        let cut = Answer::from_bytes(answer.bytes()[..answer.bytes().len() - 1].to_vec());
        assert_eq!(cut.messages(), Err(AnswerError::Malformed));
        assert_eq!(Answer::default().messages(), Err(AnswerError::Malformed));
    }

    #[test]
    fn a_refusal_includes_the_kernels_message() {
        let refused = |errno, reason: &str| AnswerError::Refused { errno, reason: reason.to_owned() };
        assert_eq!(Answer::refused(95).messages(), Err(refused(95, "")));
        let message_attribute =
            Request::get(0).text(NLMSGERR_ATTR_MSG, "Device is busy").as_answer()[HEADER..].to_vec();
        for (flags, repeated) in [(NLM_F_CAPPED | NLM_F_ACK_TLVS, 16), (NLM_F_ACK_TLVS, 32)] {
            let mut payload = (-16_i32).to_ne_bytes().to_vec();
            payload.extend(message(0, 0, 0, &[0; 16]).into_iter().take(repeated));
            payload.extend(&message_attribute);
            let answer = Answer(message(NLMSG_ERROR, flags, 0, &payload));
            assert_eq!(answer.messages(), Err(refused(16, "Device is busy")));
        }
        let error = io::Error::from(refused(16, "Device is busy"));
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().starts_with("Device is busy ("), "{error}");
        assert_eq!(io::Error::from(refused(1, "")).raw_os_error(), Some(1));
    }

    #[test]
    fn ignores_late_answers_to_an_earlier_request() {
        let mut answer = Answer::default();
        answer.extend(&[message(16, 0, 1, &[1; 4]), message(16, 0, 2, &[2; 4])].concat(), 2);
        assert!(!answer.is_whole());
        answer.extend(&message(NLMSG_DONE, 0, 2, &[0; 4]), 2);
        assert_eq!(answer.messages().unwrap(), [Message { kind: 16, payload: &[2; 4] }]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), sequence in 0_u32..3) {
            let mut answer = Answer::default();
            answer.extend(&bytes, sequence);
            let _ = (answer.is_whole(), answer.was_interrupted());
            for message in Answer::from_bytes(bytes).messages().unwrap_or_default() {
                let _ = (message.generic(), message.with_header::<16>(), message.with_header::<3>());
            }
        }

        /// Well-formed messages with arbitrary payloads reach more of the decoder than arbitrary bytes.
        #[test]
        fn arbitrary_payloads_do_not_panic(
            parts in proptest::collection::vec((0_u16..5, 0_u16..0x400, proptest::collection::vec(any::<u8>(), 0..60)), 0..4),
        ) {
            let bytes: Vec<u8> = parts.iter().flat_map(|(kind, flags, payload)| message(*kind, *flags, 0, payload)).collect();
            let _ = Answer::from_bytes(bytes).messages();
        }
    }
}
