//! The keys of stream probes in a campaign file.

use std::{collections::HashSet, path::Path};

use frames::{Class, Format};
use probes::{ReceiveWait, stream::transmit::TransmitMode};
use toml::de::DeValue;

use sys::packet::SentStamps;

use super::{
    fields::Fields,
    in_campaign_folder,
    mistake::nearest,
    streams::read_streams,
    values::{duration_in, one_of},
};
use crate::probe::{
    PERIOD_MAX_NS, StreamProbe,
    stream::{CaptureTo, ListedStream, STREAMS_MAX, StreamEnds, WakeupOffset, parse_stream_id},
    xdp::{QUEUE_MAX, XdpMode},
};

pub(super) const FORMATS: [(&str, Format); 2] = [("aaf", Format::Aaf), ("61883-6", Format::Iec61883)];
pub(super) const CLASSES: [(&str, Class); 2] = [("A", Class::A), ("B", Class::B)];
const MODES: [(&str, TransmitMode); 6] = [
    ("send", TransmitMode::Send),
    ("bypass", TransmitMode::Bypass),
    ("tx-ring", TransmitMode::TxRing),
    ("txtime", TransmitMode::Txtime),
    ("xdp", TransmitMode::Xdp),
    ("xdp-zerocopy", TransmitMode::XdpZerocopy),
];
pub(super) const RECEIVE: [(&str, Option<XdpMode>); 4] = [
    ("socket", None),
    ("xdp", Some(XdpMode::AsOffered)),
    ("xdp-zerocopy", Some(XdpMode::ZeroCopy)),
    ("xdp-generic", Some(XdpMode::Generic)),
];
const STAMPS: [(&str, Option<SentStamps>); 3] =
    [("none", None), ("all", Some(SentStamps::Driver)), ("hardware", Some(SentStamps::Card))];
/// Longest name of an interface in bytes: IFNAMSIZ without its NUL.
const LONGEST_NAME: usize = 15;

/// Reads the keys of this kind only. Also returns the wake-up offsets, one for each scenario.
pub(super) fn stream(
    fields: &mut Fields<'_>,
    period_ns: Option<u64>,
    wait: ReceiveWait,
) -> (StreamProbe, Vec<WakeupOffset>) {
    let (talk, listen) = (fields.parsed("talk", interface), fields.parsed("listen", interface));
    let default = StreamProbe::default();
    let unique_id = fields.integer("unique_id", 0..=u64::from(u16::MAX)).and_then(|id| u16::try_from(id).ok());
    let (further_streams, listed) = streams(fields);
    let queue = fields.integer("queue", 0..=u64::from(QUEUE_MAX)).and_then(|queue| u32::try_from(queue).ok());
    let stream = StreamProbe {
        ends: match (talk, listen) {
            (Some(interface), _) => StreamEnds::Talk(interface),
            (None, Some(interface)) => StreamEnds::Listen(interface),
            (None, None) => StreamEnds::Both,
        },
        period_ns,
        class: fields.parsed("class", |text| one_of(text, &CLASSES)).unwrap_or(default.class),
        format: fields.parsed("format", |text| one_of(text, &FORMATS)).unwrap_or(default.format),
        mode: fields.parsed("mode", |text| one_of(text, &MODES)).unwrap_or(default.mode),
        unique_id: unique_id.unwrap_or(default.unique_id),
        stamps: fields.parsed("stamps", |text| one_of(text, &STAMPS)).flatten(),
        maap: fields.flag("maap"),
        further_streams,
        listed,
        stream_id: fields.parsed("stream_id", parse_stream_id),
        xdp: fields.parsed("receive", receive).flatten(),
        wait,
        queue: queue.unwrap_or(default.queue),
        capture: fields.flag("capture").then_some(CaptureTo::BesideRecord),
        ..default
    };
    (stream, offsets(fields))
}

/// Reads the number of streams of a talker, or the file that lists them. Returns the number of further streams of the talker,
/// and the listed ones.
fn streams(fields: &mut Fields<'_>) -> (u16, Vec<ListedStream>) {
    let campaign = fields.mistakes.path();
    if fields.value("streams").is_some_and(|value| value.get_ref().as_str().is_some()) {
        let read = |text: &str| {
            // A mistake is one line.
            let path = in_campaign_folder(campaign, text);
            read_streams(Path::new(&path)).map_err(|error| error.to_string().replace('\n', "; "))
        };
        return (0, fields.parsed("streams", read).unwrap_or_default());
    }
    let number = fields.integer("streams", 1..=u64::from(STREAMS_MAX)).and_then(|number| u16::try_from(number).ok());
    (number.map_or(0, |number| number - 1), Vec::new())
}

/// Reads the kind of socket that a listener receives on.
fn receive(text: &str) -> Result<Option<XdpMode>, String> {
    match text {
        "block" | "spin" => {
            Err(format!("{text:?} is not a kind of socket: write spin = true to spin, or leave it out to sleep"))
        }
        text => one_of(text, &RECEIVE),
    }
}

/// Reads one wake-up offset or a list of them; the default is that of the command.
fn offsets(fields: &mut Fields<'_>) -> Vec<WakeupOffset> {
    let offset = |text: &str| match text {
        "auto" => Ok(WakeupOffset::Auto),
        "knee" => Ok(WakeupOffset::Knee),
        word if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Err(format!("{word:?} is not a time{}: write e.g. 8us, or auto or knee", nearest(word, &["auto", "knee"])))
        }
        text => duration_in(text, 0, PERIOD_MAX_NS, "at most 1h, e.g. 8us, or auto or knee").map(WakeupOffset::Given),
    };
    let read = fields.texts("wakeup_offset", offset);
    let mut seen = HashSet::new();
    if let Some(twice) = read.iter().find(|offset| !seen.insert(offset.to_string())) {
        fields.report("wakeup_offset", format!("wakeup_offset has {twice} twice: leave one of them out"));
    }
    if read.is_empty() { vec![WakeupOffset::default()] } else { read }
}

/// Reports keys that do not fit together.
pub(super) fn check(fields: &mut Fields<'_>, stream: &StreamProbe) {
    if fields.has("talk") && fields.has("listen") {
        let text = "talk and listen exclude each other: leave one of them out, or both for both ends on this machine";
        fields.report("listen", text);
        return;
    }
    if fields
        .value("wakeup_offset")
        .is_some_and(|value| matches!(value.get_ref(), DeValue::Array(list) if list.is_empty()))
    {
        fields.report("wakeup_offset", "wakeup_offset is empty: leave it out, or write e.g. [\"0us\", \"auto\"]");
    }
    let (useless, other): (&[&str], &str) = match stream.ends {
        StreamEnds::Both => (&[], ""),
        StreamEnds::Talk(_) => (&["receive", "spin", "busy_poll", "stream_id"], "listener"),
        StreamEnds::Listen(_) => (&["wakeup_offset", "mode", "unique_id", "stamps", "maap", "streams"], "talker"),
    };
    for key in useless.iter().filter(|key| fields.has(key)) {
        fields.report(key, format!("{key} is for the {other} of a stream, which is on another machine: leave it out"));
    }
    if !stream.listed.is_empty() {
        for key in ["period", "class", "format"].into_iter().filter(|key| fields.has(key)) {
            fields.report(key, format!("{key} does not apply to listed streams: write it in the file of `streams`"));
        }
    }
    if fields.has("busy_poll") && stream.xdp.is_some() {
        fields.report("busy_poll", "busy_poll is only for receive = \"socket\": with xdp write spin = true");
    }
    if fields.has("queue") && stream.xdp.is_none() && !stream.mode.is_xdp() {
        fields.report("queue", "queue is only for xdp: leave it out, or write mode = \"xdp\" or receive = \"xdp\"");
    }
}

/// Checks the name of an interface.
fn interface(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(fine) && !text.starts_with('.') {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is not the name of an interface: write one that `ip link` lists, e.g. eth0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_modes_as_in_the_record() {
        assert!(MODES.iter().all(|(name, mode)| *name == mode.to_string()));
    }
}
