//! The bytes of a MIDI cable (MIDI 1.0 specification), as far as they choose and turn something.

/// What was chosen or turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A program, 0 to 127.
    Program {
        /// The channel, 0 to 15.
        channel: u8,
        /// Which one.
        program: u8,
    },
    /// A controller, 0 to 127, was turned to 0 to 127.
    Control {
        /// The channel, 0 to 15.
        channel: u8,
        /// Which one.
        controller: u8,
        /// Where to.
        value: u8,
    },
}

const CONTROL: u8 = 0xb0;
const PROGRAM: u8 = 0xc0;

/// Reads a stream of bytes, whatever pieces it comes in. What is not understood is passed over.
#[derive(Debug, Default)]
pub struct Parser {
    /// The status byte that data belongs to; it holds until another comes. 0 for one whose data means nothing to us.
    status: u8,
    first: Option<u8>,
}

impl Parser {
    /// The next byte; answers what it completes.
    pub fn push(&mut self, byte: u8) -> Option<Event> {
        match byte {
            // Clock, active sensing and the like may stand anywhere, even within another message.
            0xf8.. => return None,
            0x80.. => {
                // What the system says as a whole ends a running status, and its data is none of ours.
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
    fn running_status_and_what_stands_between() {
        let control = |controller, value| Event::Control { channel: 2, controller, value };
        // A controller, the clock within the next one, a note, a system exclusive message, data without a status.
        let stream = [0xb2, 7, 100, 8, 0xf8, 1, 0x92, 60, 64, 0xb2, 7, 3, 0xf0, 1, 2, 0xf7, 9, 9, 0xc2, 5];
        let program = Event::Program { channel: 2, program: 5 };
        assert_eq!(read(&stream), [control(7, 100), control(8, 1), control(7, 3), program]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(events in prop::collection::vec(event(), 0..40)) {
            let stream: Vec<u8> = events.iter().copied().flat_map(bytes).collect();
            prop_assert_eq!(read(&stream), events);
        }

        #[test]
        fn any_bytes_are_read_and_a_status_begins_anew(noise: Vec<u8>, event in event()) {
            let mut parser = Parser::default();
            for byte in noise {
                if let Some(Event::Program { channel, program: number } | Event::Control { channel, controller: number, .. }) = parser.push(byte) {
                    prop_assert!(channel < 16 && number < 128);
                }
            }
            let answers: Vec<Event> = bytes(event).into_iter().filter_map(|byte| parser.push(byte)).collect();
            prop_assert_eq!(answers, vec![event]);
        }
    }
}
