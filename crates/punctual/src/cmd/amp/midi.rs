//! The MIDI input of the options.

use std::{thread, time::Duration};

use ::play::{midi::Event, port::Port};
use anyhow::Context;
use machine::{Root, sound::find};

use crate::cli;

/// A MIDI input, or none.
pub struct Input {
    port: Option<Port>,
    /// The channel to accept, 0 to 15; all if `None`.
    channel: Option<u8>,
}

impl Input {
    /// Opens the port of the options: one named hw:CARD,DEVICE, or a file or pipe by its path.
    pub fn open(options: &cli::Midi) -> anyhow::Result<Self> {
        let port = options.port.as_deref().map(open_port).transpose()?;
        Ok(Self { port, channel: options.channel.map(|channel| channel - 1) })
    }

    /// True if a port is open.
    pub fn is_open(&self) -> bool {
        self.port.is_some()
    }

    /// Waits for messages, at most this long. Closes the port after an error, which must not end the sound, and returns a
    /// note about it.
    pub fn receive(&mut self, timeout: Duration) -> (Vec<Event>, Option<String>) {
        let Some(port) = &mut self.port else {
            thread::sleep(timeout);
            return (Vec::new(), None);
        };
        match port.events(timeout) {
            Ok(mut events) => {
                events.retain(|event| self.channel.is_none_or(|accepted| accepted == event.channel()));
                (events, None)
            }
            Err(error) => {
                self.port = None;
                (Vec::new(), Some(format!("MIDI stopped: {error}; is it still plugged in?")))
            }
        }
    }
}

fn open_port(name: &str) -> anyhow::Result<Port> {
    let path = match name.starts_with("hw:") {
        true => {
            let (card, device) = find(&Root::system(), name)?;
            format!("/dev/snd/midiC{card}D{device}")
        }
        false => name.to_owned(),
    };
    Port::open(path.as_ref()).with_context(|| format!("cannot read MIDI from {path}: `ls /dev/snd/midi*` lists ports"))
}
