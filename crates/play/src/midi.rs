//! Parsing of MIDI messages (MIDI 1.0 specification): program changes and control changes.

/// A MIDI message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A program change.
    Program {
        /// The channel, 0 to 15.
        channel: u8,
        /// The program, 0 to 127.
        program: u8,
    },
    /// A control change.
    Control {
        /// The channel, 0 to 15.
        channel: u8,
        /// The controller, 0 to 127.
        controller: u8,
        /// Its new value, 0 to 127.
        value: u8,
    },
}

impl Event {
    /// The channel, 0 to 15.
    #[must_use]
    pub fn channel(self) -> u8 {
        let (Self::Program { channel, .. } | Self::Control { channel, .. }) = self;
        channel
    }
}

const CONTROL: u8 = 0xb0;
const PROGRAM: u8 = 0xc0;

/// Parses a stream of bytes that may arrive in pieces of any length. Ignores all other messages.
#[derive(Debug, Default)]
pub struct Parser {
    /// The running status; 0 if its data must be ignored.
    status: u8,
    first: Option<u8>,
}

impl Parser {
    /// Parses the next byte; returns the message that it completes.
    pub fn push(&mut self, byte: u8) -> Option<Event> {
        match byte {
            // System real-time messages (clock, active sensing) may occur anywhere, even within another message.
            0xf8.. => return None,
            0x80.. => {
                // A system common message ends the running status, and its data is ignored.
                self.status = if byte < 0xf0 { byte } else { 0 };
                self.first = None;
                return None;
            }
            _ => {}
        }
        let channel = self.status & 0x0f;
        match self.status & 0xf0 {
            PROGRAM => Some(Event::Program { channel, program: byte }),
            CONTROL => match self.first.take() {
                None => {
                    self.first = Some(byte);
                    None
                }
                Some(controller) => Some(Event::Control { channel, controller, value: byte }),
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Vec<Event> {
        let mut parser = Parser::default();
        bytes.iter().filter_map(|&byte| parser.push(byte)).collect()
    }

    fn bytes(event: Event) -> Vec<u8> {
        match event {
            Event::Program { channel, program } => vec![PROGRAM | channel, program],
            Event::Control { channel, controller, value } => vec![CONTROL | channel, controller, value],
        }
    }

    fn event() -> impl Strategy<Value = Event> {
        (0_u8..16, 0_u8..128, 0_u8..128, any::<bool>()).prop_map(
            |(channel, number, value, is_program)| match is_program {
                true => Event::Program { channel, program: number },
                false => Event::Control { channel, controller: number, value },
            },
        )
    }

    #[test]
    fn parses_running_status_with_interleaved_messages() {
        let control = |controller, value| Event::Control { channel: 2, controller, value };
        // A controller, the clock within the next one, a note, a system exclusive message, data without a status.
        let stream = [0xb2, 7, 100, 8, 0xf8, 1, 0x92, 60, 64, 0xb2, 7, 3, 0xf0, 1, 2, 0xf7, 9, 9, 0xc2, 5];
        let program = Event::Program { channel: 2, program: 5 };
        assert_eq!(read(&stream), [control(7, 100), control(8, 1), control(7, 3), program]);
    }

    proptest! {
        #[test]
        fn parses_every_encoded_message(events in prop::collection::vec(event(), 0..40)) {
            let stream: Vec<u8> = events.iter().copied().flat_map(bytes).collect();
            prop_assert_eq!(read(&stream), events);
        }

        #[test]
        fn resynchronizes_at_a_status_byte_after_noise(noise: Vec<u8>, event in event()) {
            let mut parser = Parser::default();
            for byte in noise {
                if let Some(Event::Program { channel, program: number } | Event::Control { channel, controller: number, .. }) = parser.push(byte) {
                    prop_assert!(channel < 16 && number < 128);
                }
            }
            let parsed: Vec<Event> = bytes(event).into_iter().filter_map(|byte| parser.push(byte)).collect();
            prop_assert_eq!(parsed, vec![event]);
        }
    }
}
