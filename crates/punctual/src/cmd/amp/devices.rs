//! `punctual amp devices`.

mod jack;

use machine::{
    Root,
    sound::{self, Card, Holder},
};
use record::grouped;
use serde_json::json;
use sys::pcm::{self, Direction, Node, Offer, PcmError};

use crate::{cli::AmpDevices, output};

pub fn run(options: &AmpDevices) -> anyhow::Result<u8> {
    let root = Root::system();
    let cards = sound::cards(&root);
    let jack = jack::endpoints();
    if cards.is_empty() && jack.is_empty() && !options.json {
        return Err(sound::SoundError::NoCard.into());
    }
    let endpoints: Vec<Endpoint> = cards.iter().flat_map(|card| endpoints(&root, card)).collect();
    output::stdout(|out| match options.json {
        true => {
            let all = endpoints.iter().map(Endpoint::to_json).chain(jack.iter().map(jack::Endpoint::to_json));
            writeln!(out, "{}", output::json(&all.collect()))
        }
        false => {
            let mut lines =
                endpoints.iter().flat_map(Endpoint::lines).chain(jack.iter().flat_map(jack::Endpoint::lines));
            lines.try_for_each(|line| writeln!(out, "{line}"))
        }
    })?;
    Ok(0)
}

/// A device of a card in one direction.
struct Endpoint<'a> {
    card: &'a Card,
    node: Node,
    name: &'a str,
    offer: Result<Offer, PcmError>,
    holder: Option<Holder>,
}

fn endpoints<'a>(root: &Root, card: &'a Card) -> Vec<Endpoint<'a>> {
    let endpoint = |device: &'a sound::Device, direction| {
        let node = Node { card: card.number, device: device.number, direction };
        let holder = sound::holder(root, card.number, device.number, direction == Direction::Playback);
        Endpoint { card, node, name: &device.name, offer: pcm::offer(node), holder }
    };
    let both = |device: &'a sound::Device| {
        let plays = device.plays.then(|| endpoint(device, Direction::Playback));
        plays.into_iter().chain(device.captures.then(|| endpoint(device, Direction::Capture)))
    };
    card.devices.iter().flat_map(both).collect()
}

impl Endpoint<'_> {
    fn hw(&self) -> String {
        format!("hw:{},{}", self.card.id, self.node.device)
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{:<8} {}: {}, {}", self.node.direction, self.hw(), self.card.name, self.name)];
        match &self.offer {
            Err(PcmError::Busy(_)) if let Some(Holder { process, program }) = &self.holder => {
                lines.push(format!("         in use by {program} (process {process})"));
            }
            Err(error) => lines.push(format!("         {error}")),
            Ok(offer) => {
                let joined = |words: Vec<String>| words.join(", ");
                let frames = |frames: &u32| grouped(u64::from(*frames));
                let (channels, periods, buffers) = (&offer.channels, &offer.period_frames, &offer.buffer_frames);
                lines.push(format!(
                    "         {} to {} channels; {}; {} Hz",
                    channels.start(),
                    channels.end(),
                    joined(offer.formats.iter().map(ToString::to_string).collect()),
                    joined(offer.rates.iter().map(ToString::to_string).collect()),
                ));
                lines.push(format!(
                    "         periods of {} to {} frames, buffers of {} to {}{}",
                    frames(periods.start()),
                    frames(periods.end()),
                    frames(buffers.start()),
                    frames(buffers.end()),
                    if offer.can_map { "" } else { "; cannot be used, because its buffer cannot be mapped" },
                ));
            }
        }
        lines
    }

    fn to_json(&self) -> serde_json::Value {
        let offer = self.offer.as_ref().ok();
        let range = |range: &std::ops::RangeInclusive<u32>| [*range.start(), *range.end()];
        json!({
            "device": self.hw(),
            "direction": self.node.direction.to_string(),
            "card": self.card.name,
            "name": self.name,
            "formats": offer.map(|offer| offer.formats.iter().map(ToString::to_string).collect::<Vec<_>>()),
            "rates_hz": offer.map(|offer| &offer.rates),
            "channels": offer.map(|offer| range(&offer.channels)),
            "period_frames": offer.map(|offer| range(&offer.period_frames)),
            "buffer_frames": offer.map(|offer| range(&offer.buffer_frames)),
            "can_map": offer.map(|offer| offer.can_map),
            "error": self.offer.as_ref().err().map(ToString::to_string),
            "held_by": self.holder.as_ref().map(|holder| &holder.program),
        })
    }
}
