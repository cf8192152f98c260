//! Sound cards as the kernel lists them in `/proc/asound`.

use sys::pcm::{Direction, Duplex, Node, PcmError, StreamConfig};
use thiserror::Error;

use crate::{Root, Unreadable};

/// A sound card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Card number.
    pub number: u32,
    /// Short name, which stays the same when numbers change: `Loopback`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Its PCM devices.
    pub devices: Vec<Device>,
}

/// A device of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Device number on the card.
    pub number: u32,
    /// Name of the device.
    pub name: String,
    /// True if it has a playback direction.
    pub plays: bool,
    /// True if it has a capture direction.
    pub captures: bool,
}

/// The process that uses a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Id of the process, or of its thread that opened the device.
    pub process: u32,
    /// Name of the program.
    pub program: String,
}

/// Error: a name does not identify a card.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SoundError {
    /// The name has the wrong form.
    #[error("`{0}` is not a device name: write hw:CARD or hw:CARD,DEVICE, e.g. hw:0 or hw:USB,0")]
    Name(String),
    /// The machine has no card.
    #[error("there is no sound card: plug one in, or use `sudo modprobe snd-aloop` for a software loopback")]
    NoCard,
    /// The machine has other cards.
    #[error("there is no card `{given}`, only {there}: `punctual amp devices` lists their abilities")]
    Unknown {
        /// The requested card.
        given: String,
        /// The existing cards.
        there: String,
    },
}

/// All cards, in the order of their numbers.
#[must_use]
pub fn cards(root: &Root) -> Vec<Card> {
    let pcm = root.read("proc/asound/pcm").unwrap_or_default();
    let devices =
        |card| pcm.lines().filter_map(parse_device).filter(|(of, _)| *of == card).map(|(_, device)| device).collect();
    // Each card has two lines: ` 0 [Loopback       ]: Loopback - Loopback`, and its long name.
    let card = |line: &str| {
        let (number, rest) = line.split_once('[')?;
        let (id, rest) = rest.split_once(']')?;
        let number = number.trim().parse().ok()?;
        let name = rest.split_once(" - ").map_or(rest, |(_, name)| name).trim_start_matches(':').trim().to_owned();
        Some(Card { number, id: id.trim().to_owned(), name, devices: devices(number) })
    };
    cards_text(root).unwrap_or_default().lines().filter_map(card).collect()
}

/// The kernel's list of cards.
pub(crate) fn cards_text(root: &Root) -> Result<String, Unreadable> {
    root.text_if("proc/asound/cards", |text| text.contains('[') || text.contains("no soundcards"))
}

/// Parses a line `00-01: Loopback PCM : Loopback PCM : playback 8 : capture 8`.
fn parse_device(line: &str) -> Option<(u32, Device)> {
    let mut fields = line.split(':').map(str::trim);
    let (card, number) = fields.next()?.split_once('-')?;
    let name = fields.next()?.to_owned();
    let directions: Vec<&str> = fields.filter_map(|field| field.split_whitespace().next()).collect();
    let device = Device {
        number: number.parse().ok()?,
        name,
        plays: directions.contains(&"playback"),
        captures: directions.contains(&"capture"),
    };
    Some((card.parse().ok()?, device))
}

/// Card and device number of `hw:CARD` or `hw:CARD,DEVICE`, where CARD is a number or a short name. DEVICE defaults to
/// 0.
///
/// # Errors
/// [`SoundError`]. A device that the card lacks is not an error here.
pub fn find(root: &Root, name: &str) -> Result<(u32, u32), SoundError> {
    let wrong = || SoundError::Name(name.to_owned());
    let rest = name.strip_prefix("hw:").ok_or_else(wrong)?;
    let (card, device) = rest.split_once(',').unwrap_or((rest, "0"));
    let device = device.parse().map_err(|_| wrong())?;
    let card = card.strip_prefix("CARD=").unwrap_or(card);
    let all = cards(root);
    if all.is_empty() {
        return Err(SoundError::NoCard);
    }
    let is_named = |known: &&Card| known.id == card || card.parse() == Ok(known.number);
    match all.iter().find(is_named) {
        Some(found) => Ok((found.number, device)),
        None => {
            let there = all.iter().map(|card| format!("hw:{}", card.id)).collect::<Vec<_>>().join(", ");
            Err(SoundError::Unknown { given: card.to_owned(), there })
        }
    }
}

/// Error: a card cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The name does not identify a card.
    #[error(transparent)]
    Name(#[from] SoundError),
    /// The kernel refused to open it.
    #[error(transparent)]
    Refused(#[from] Box<PcmError>),
    /// Another program uses the device.
    #[error("{node} is in use by {program} (process {process}): end it, e.g. `kill {process}`")]
    Held {
        /// The device and its direction.
        node: Node,
        /// Name of the program.
        program: String,
        /// Its process id.
        process: u32,
    },
    /// The card has fewer inputs.
    #[error("{capture} has only {inputs} inputs: choose one of them, e.g. --input 1")]
    Input {
        /// Name of the capture device.
        capture: String,
        /// The number of its inputs.
        inputs: u32,
    },
}

/// Opens both directions and configures them alike. `input`, counted from 0, must be among the captured channels.
///
/// # Errors
/// [`OpenError`]; each message names the alternatives.
pub fn open(
    root: &Root,
    capture: &str,
    playback: &str,
    config: &StreamConfig,
    input: u32,
) -> Result<Duplex, OpenError> {
    let name = capture;
    let node = |name, direction| {
        let (card, device) = find(root, name)?;
        Ok::<_, SoundError>(Node { card, device, direction })
    };
    let (capture, playback) = (node(capture, Direction::Capture)?, node(playback, Direction::Playback)?);
    let duplex = Duplex::open(capture, playback, config).map_err(|error| {
        let PcmError::Busy(node) = error else { return Box::new(error).into() };
        match holder(root, node.card, node.device, node.direction == Direction::Playback) {
            Some(Holder { process, program }) => OpenError::Held { node, program, process },
            None => OpenError::from(Box::new(error)),
        }
    })?;
    match duplex.capture().channels() {
        inputs if input >= inputs => Err(OpenError::Input { capture: name.to_owned(), inputs }),
        _ => Ok(duplex),
    }
}

/// The process that uses a direction of a device: the owner of its first open substream.
#[must_use]
pub fn holder(root: &Root, card: u32, device: u32, is_playback: bool) -> Option<Holder> {
    let letter = if is_playback { 'p' } else { 'c' };
    let folder = format!("proc/asound/card{card}/pcm{device}{letter}");
    root.list(&folder).iter().filter(|name| name.starts_with("sub")).find_map(|sub| {
        let status = root.read(&format!("{folder}/{sub}/status"))?;
        let owner = status.lines().find_map(|line| line.strip_prefix("owner_pid"))?;
        let process = owner.trim_start_matches([' ', ':', '\t']).parse().ok()?;
        let program = root.read(&format!("proc/{process}/comm")).unwrap_or_else(|| "a program".to_owned());
        Some(Holder { process, program })
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A machine with a loopback card and a USB interface whose playback is in use.
    fn machine() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        let cards = " 0 [Loopback       ]: Loopback - Loopback\n                      Loopback 1\n \
                     1 [USB            ]: USB-Audio - Scarlett 2i2 USB\n                      Focusrite Scarlett 2i2 USB at usb-1\n";
        write("proc/asound/cards", cards);
        let pcm = "00-00: Loopback PCM : Loopback PCM : playback 8 : capture 8\n00-01: Loopback PCM : Loopback PCM : \
                   playback 8 : capture 8\n01-00: USB Audio : USB Audio : playback 1\n01-01: USB Audio #1 : : capture 1\n";
        write("proc/asound/pcm", pcm);
        write("proc/asound/card1/pcm0p/info", "card: 1\n");
        write("proc/asound/card1/pcm0p/sub0/status", "state: RUNNING\nowner_pid   : 1234\ntrigger_time: 1.0\n");
        write("proc/asound/card1/pcm1c/sub0/status", "closed\n");
        write("proc/1234/comm", "jackd\n");
        (folder, root)
    }

    #[test]
    fn lists_cards_and_devices() {
        let (_folder, root) = machine();
        let cards = cards(&root);
        let found: Vec<_> =
            cards.iter().map(|card| (card.number, &*card.id, &*card.name, card.devices.len())).collect();
        assert_eq!(found, [(0, "Loopback", "Loopback", 2), (1, "USB", "Scarlett 2i2 USB", 2)]);
        let usb: Vec<_> =
            cards[1].devices.iter().map(|device| (device.number, device.plays, device.captures)).collect();
        assert_eq!(usb, [(0, true, false), (1, false, true)]);
    }

    #[test]
    fn finds_cards_by_name() {
        let (_folder, root) = machine();
        for (name, found) in [("hw:0", (0, 0)), ("hw:USB", (1, 0)), ("hw:1,1", (1, 1)), ("hw:CARD=Loopback,1", (0, 1))]
        {
            assert_eq!(find(&root, name), Ok(found));
        }
        for name in ["default", "hw:0,x", "plughw:0", "hw:0,0,1"] {
            assert_eq!(find(&root, name), Err(SoundError::Name(name.to_owned())));
        }
        let unknown = find(&root, "hw:PCH").unwrap_err().to_string();
        assert!(unknown.contains("`PCH`, only hw:Loopback, hw:USB"), "{unknown}");
        assert_eq!(find(&Root::at("/nowhere"), "hw:0"), Err(SoundError::NoCard));
    }

    #[test]
    fn finds_the_user_of_a_device() {
        let (_folder, root) = machine();
        assert_eq!(holder(&root, 1, 0, true), Some(Holder { process: 1234, program: "jackd".to_owned() }));
        assert_eq!((holder(&root, 1, 1, false), holder(&root, 0, 0, true)), (None, None));
    }
}
