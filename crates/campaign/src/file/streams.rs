//! Reads a file of streams: the tables `[[stream]]` of a talker.

use std::{collections::HashMap, io, path::Path};

use frames::{Mac, Tci, class::SAMPLE_RATE, ethernet, template};
use record::file::read_text;
use toml::de::DeTable;

use super::{
    FileMistakes,
    fields::Fields,
    mistake::Collector,
    stream::{CLASSES, FORMATS},
    values::{duration_in, one_of},
};
use crate::probe::{PERIOD_MAX_NS, PERIOD_MIN_NS, stream::ListedStream};

/// Largest payload of a frame, bytes: the MTU of Ethernet.
const PAYLOAD_MAX: usize = 1500;
/// Most channels of a stream: as many 32-bit samples as fit into a frame with one sample each.
const CHANNELS_MAX: u64 = 255;
/// Largest VLAN id. IEEE Std 802.1Q reserves 4095.
const VLAN_MAX: u64 = 4094;
/// Addresses that bridges do not forward: 01:80:C2:00:00:00 to 0F (IEEE Std 802.1Q).
const NOT_FORWARDED: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];

/// Largest file of streams, bytes.
const FILE_BYTES: u64 = 1 << 20;

/// The reasons why a file of streams is refused.
#[derive(Debug, thiserror::Error)]
pub enum StreamsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}; name a TOML file with [[stream]], or write a number of streams")]
    Read {
        /// The file.
        path: String,
        /// The error of the kernel, or that it is too long.
        source: io::Error,
    },
    /// The file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] FileMistakes),
}

/// Reads a file of streams of at most 1 MiB.
///
/// # Errors
/// [`StreamsError`].
pub fn read_streams(path: &Path) -> Result<Vec<ListedStream>, StreamsError> {
    let name = path.display().to_string();
    let text = read_text(path, FILE_BYTES).map_err(|source| StreamsError::Read { path: name.clone(), source })?;
    Ok(parse_streams(&name, &text)?)
}

/// Reads the streams from the text of the file `path`.
///
/// # Errors
/// All mistakes, each with its line; only the syntax errors if the file is not TOML.
pub fn parse_streams(path: &str, text: &str) -> Result<Vec<ListedStream>, FileMistakes> {
    let mistakes = Collector::new(path, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        mistakes.add(at, format!("not TOML: {}", error.message().replace('\n', ", ")));
    }
    let streams = if errors.is_empty() { streams(table.get_ref(), &mistakes) } else { Vec::new() };
    match mistakes.finish() {
        None => Ok(streams),
        Some(mistakes) => Err(mistakes),
    }
}

fn streams(table: &DeTable<'_>, mistakes: &Collector<'_>) -> Vec<ListedStream> {
    let mut fields = Fields::new("a file of streams", table, 0, mistakes);
    if !fields.has("stream") {
        mistakes.add(0, "the file has no stream: write a table [[stream]] with e.g. `name = \"mics\"`".to_owned());
    }
    let tables = fields.tables("stream", "a stream");
    fields.finish();
    let (mut names, mut destinations) = (HashMap::new(), HashMap::new());
    let mut all = Vec::new();
    for mut table in tables {
        let read = stream(&mut table);
        if let Some(stream) = read {
            let line = table.position().line;
            if let Some(first) = names.insert(stream.name.clone(), line) {
                table
                    .report("name", format!("name: {:?} is also in line {first}: give each its own name", stream.name));
            }
            if let Some(to) = stream.destination
                && let Some(first) = destinations.insert((to, stream.tci.vid), line)
            {
                let text = format!("destination: the stream in line {first} has it, too: give each its own address");
                table.report("destination", text);
            }
            all.push(stream);
        }
        table.finish();
    }
    all
}

/// Reads one stream; `None` after a mistake.
fn stream(fields: &mut Fields<'_>) -> Option<ListedStream> {
    let name = fields.parsed("name", name);
    if !fields.has("name") {
        fields.report("name", "the stream has no name: write e.g. `name = \"mics\"`");
    }
    let class = fields.parsed("class", |text| one_of(text, &CLASSES));
    let period = |text: &str| duration_in(text, PERIOD_MIN_NS, PERIOD_MAX_NS, "1us to 1h, e.g. 1ms");
    let period_ns = fields.parsed("period", period);
    if !fields.has("class") && !fields.has("period") {
        fields.report("class", "the stream has no class: write `class = \"A\"` or \"B\", or e.g. `period = \"1ms\"`");
    }
    let vlan = fields.integer("vlan", 0..=VLAN_MAX);
    let priority = fields.integer("priority", 0..=7);
    let destination = fields.parsed("destination", destination);
    let format = fields.parsed("format", |text| one_of(text, &FORMATS));
    let channels = fields.integer("channels", 1..=CHANNELS_MAX);
    let samples = fields.integer("samples", 1..=u64::from(u8::MAX));
    let keys = [
        ("class", class.is_some()),
        ("period", period_ns.is_some()),
        ("vlan", vlan.is_some()),
        ("priority", priority.is_some()),
        ("destination", destination.is_some()),
        ("format", format.is_some()),
        ("channels", channels.is_some()),
        ("samples", samples.is_some()),
    ];
    if keys.iter().any(|(key, is_read)| fields.has(key) && !is_read) {
        return None;
    }
    let class = class.unwrap_or_default();
    let period_ns = period_ns.unwrap_or_else(|| class.interval_ns());
    let of_class = class.tci();
    let pcp = priority.and_then(|pcp| u8::try_from(pcp).ok()).unwrap_or(of_class.pcp);
    let vid = vlan.and_then(|vid| u16::try_from(vid).ok()).unwrap_or(of_class.vid);
    let channels = channels.map_or(Some(template::STEREO), |channels| u8::try_from(channels).ok())?;
    let least = template::min_samples(channels);
    let of_period = u8::try_from(period_ns.saturating_mul(SAMPLE_RATE) / 1_000_000_000).unwrap_or(u8::MAX);
    let samples = samples.map_or(Some(of_period.max(least)), |samples| u8::try_from(samples).ok())?;
    let format = format.unwrap_or_default();
    if samples < least {
        let text = format!("samples: {samples} leave no space for punctual's payload: write {least} or more");
        fields.report("samples", text);
        return None;
    }
    let payload = template::length(format, channels, samples) - ethernet::HEADER - ethernet::TAG;
    if payload > PAYLOAD_MAX {
        let text = format!(
            "{channels} channels with {samples} samples each make frames of {payload} bytes, more than the \
             {PAYLOAD_MAX} of Ethernet: write fewer channels or samples"
        );
        fields.report(if fields.has("samples") { "samples" } else { "channels" }, text);
        return None;
    }
    let tci = Tci { pcp, vid, ..of_class };
    Some(ListedStream { name: name?, class, period_ns, tci, destination, format, channels, samples })
}

/// Checks a name, which becomes part of a role in the record.
fn name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=40).contains(&text.len()) && text.chars().all(fine) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} must be 1 to 40 letters, digits, hyphens or underscores, e.g. \"mics\""))
}

/// Reads a destination address.
fn destination(text: &str) -> Result<Mac, String> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|byte| Some(byte).filter(|byte| byte.len() == 2))
        .map(|byte| u8::from_str_radix(byte?, 16).ok())
        .collect();
    let address: Option<Mac> = bytes.and_then(|bytes| bytes.try_into().ok());
    match address {
        None => Err(format!("{text:?} is not an address: write e.g. \"91:e0:f0:00:12:34\"")),
        Some([a, b, c, d, e, last]) if [a, b, c, d, e] == NOT_FORWARDED && last < 16 => {
            Err(format!("bridges do not forward {text}: write e.g. \"91:e0:f0:00:12:34\""))
        }
        Some(address) if address == [0xff; 6] || address == [0; 6] => {
            Err(format!("{text} is not the address of a stream: write e.g. \"91:e0:f0:00:12:34\""))
        }
        Some(address) => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use frames::{Class, Format};

    use super::*;

    #[test]
    fn reads_all_keys_and_fills_in_those_of_the_class() {
        let text = "[[stream]]\nname = \"a\"\nclass = \"B\"\n[[stream]]\nname = \"b\"\nperiod = \"1ms\"\nvlan = 7\n\
                    priority = 5\ndestination = \"91:E0:f0:00:12:34\"\nformat = \"61883-6\"\nchannels = 8\nsamples = 6\n";
        let [a, b] = &parse_streams("s.toml", text).unwrap()[..] else { panic!("two streams") };
        assert_eq!((a.class, a.period_ns, a.tci, a.destination), (Class::B, 250_000, Class::B.tci(), None));
        assert_eq!((a.format, a.channels, a.samples), (Format::Aaf, 2, 12));
        assert_eq!(
            (b.period_ns, b.tci, b.destination),
            (1_000_000, Tci { pcp: 5, dei: false, vid: 7 }, Some([0x91, 0xe0, 0xf0, 0, 0x12, 0x34]))
        );
        assert_eq!((b.format, b.channels, b.samples), (Format::Iec61883, 8, 6));
    }

    #[test]
    fn a_mono_stream_has_space_for_the_payload() {
        let [mono] = &parse_streams("s.toml", "[[stream]]\nname = \"a\"\nclass = \"A\"\nchannels = 1").unwrap()[..]
        else {
            panic!("one stream")
        };
        assert_eq!(mono.samples, 11, "6 samples of 4 bytes would be fewer than 44 bytes");
    }

    #[test]
    fn each_mistake_has_its_line_and_remedy() {
        let first = "[[stream]]\nname = \"a\"\nclass = \"A\"\n";
        for (text, expected) in [
            ("", "s.toml:1:1: the file has no stream: write a table [[stream]]"),
            ("stream = []", "stream is empty"),
            ("stream = 7", "stream must be a table, written [stream] or [[stream]]"),
            ("[[stream]", "s.toml:1:10: not TOML"),
            ("[[stream]]\nclass = \"A\"", "s.toml:1:1: the stream has no name: write e.g."),
            ("[[stream]]\nname = \"a b\"\nclass = \"A\"", "s.toml:2:8: name: \"a b\" must be 1 to 40 letters"),
            ("[[stream]]\nname = \"a\"", "the stream has no class: write `class = \"A\"`"),
            (&format!("{first}vlan = 4095"), "s.toml:4:8: vlan: 4095 must be a whole number from 0 to 4094"),
            (&format!("{first}priority = 8"), "s.toml:4:12: priority: 8 must be a whole number from 0 to 7"),
            (&format!("{first}pcp = 3"), "a stream has no key `pcp`"),
            (&format!("{first}channels = 0"), "channels: 0 must be a whole number from 1 to 255"),
            (&format!("{first}channels = 100"), "make frames of 2424 bytes, more than the 1500 of Ethernet"),
            (&format!("{first}samples = 5"), "samples: 5 leave no space for punctual's payload: write 6 or more"),
            (&format!("{first}destination = \"91:e0\""), "\"91:e0\" is not an address"),
            (&format!("{first}destination = \"01:80:c2:00:00:0e\""), "bridges do not forward 01:80:c2:00:00:0e"),
            (&format!("{first}period = \"0us\""), "must be 1us to 1h"),
            (&format!("{first}class = \"B\""), "not TOML"),
            (&format!("{first}{first}"), "s.toml:5:8: name: \"a\" is also in line 1: give each its own name"),
            (
                &format!(
                    "{first}destination = \"91:e0:f0:00:00:01\"\n[[stream]]\nname = \"b\"\nclass = \"B\"\ndestination = \"91:e0:f0:00:00:01\""
                ),
                "s.toml:8:15: destination: the stream in line 1 has it, too",
            ),
        ] {
            let mistakes = parse_streams("s.toml", text).unwrap_err().to_string();
            assert!(mistakes.contains(expected) && mistakes.starts_with("s.toml:"), "{text}: {mistakes}");
        }
    }
}
