//! The probes of a campaign file.
//!
//! Each key has a default, so that one mistake hides no other.

use std::collections::HashSet;

use probes::timer::Core;
use record::BlameMode;
use sys::clock::{Clock, Wait};

use super::{
    Fields, Place, Probe, ProbeKind, Thread, audio, duration_in, one_of,
    parts::{check_names, part_name},
    stream, udp,
    unnamed::{self, Said},
};
use crate::{
    Length, ThreadAsk, TransmitMode,
    plan::{NOISE_PERIOD_NS, PERIOD_MAX_NS},
};

/// Longest run of one scenario, ns: a week.
const LENGTH_MAX_NS: u64 = 7 * 86_400_000_000_000;
const DEFAULT_LENGTH_NS: u64 = 10_000_000_000;
const DEFAULT_PERIOD_NS: u64 = 1_000_000;

const BLAME: [(&str, blame::Asked); 5] = [
    ("auto", blame::Asked::Auto),
    ("trace", blame::Asked::Only(BlameMode::Trace)),
    ("deep", blame::Asked::Only(BlameMode::Deep)),
    ("counters", blame::Asked::Only(BlameMode::Counters)),
    ("off", blame::Asked::Only(BlameMode::Off)),
];

pub(super) fn probes(campaign: &mut Fields<'_>) -> Vec<Probe> {
    let mut probes: Vec<(Probe, Option<Said>)> = match campaign.tables("probe", "a probe") {
        tables if tables.is_empty() => vec![(default_probe(campaign.place()), None)],
        tables => tables.into_iter().map(probe_and_said).collect(),
    };
    unnamed::tell_apart(&mut probes, campaign);
    let probes: Vec<Probe> = probes.into_iter().map(|(probe, _)| probe).collect();
    check_names("probes", probes.iter().map(|probe| (&*probe.name, probe.place)), campaign);
    probes
}

fn default_probe(place: Place) -> Probe {
    Probe {
        name: "timer".to_owned(),
        kind: ProbeKind::Timer { period_ns: DEFAULT_PERIOD_NS },
        length: Length::Duration(DEFAULT_LENGTH_NS),
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        offset_ns: 0,
        threshold_ns: None,
        blame: blame::Asked::Auto,
        place,
    }
}

/// Keys that not every kind has a use for, with the kinds that have.
const KINDS_OF: &[(&str, &[&str])] = &[
    ("period", &["timer", "noise", "udp", "stream"]),
    ("samples", &["timer", "udp"]),
    ("clock", &["timer", "threads", "stream", "audio"]),
    ("wait", &["timer", "threads", "stream", "audio"]),
    ("core", &["timer", "threads", "audio"]),
    ("offset", &["timer", "threads"]),
    ("threads", &["threads"]),
    ("runtime", &["noise"]),
    ("spin", &["udp", "stream"]),
    ("busy_poll", &["udp", "stream"]),
    ("peer", &["udp"]),
    ("size", &["udp"]),
    ("timeout", &["udp"]),
    ("send_policy", &["udp"]),
    ("receive_policy", &["udp"]),
    ("echo_policy", &["udp"]),
    ("stamps", &["udp"]),
    ("talk", &["stream"]),
    ("listen", &["stream"]),
    ("class", &["stream"]),
    ("format", &["stream", "audio"]),
    ("wakeup_offset", &["stream"]),
    ("mode", &["stream"]),
    ("unique_id", &["stream"]),
    ("stream_id", &["stream"]),
    ("receive", &["stream"]),
    ("queue", &["stream"]),
    ("capture", &["stream"]),
    ("rate", &["audio"]),
    ("frames", &["audio"]),
    ("periods", &["audio"]),
    ("model", &["audio"]),
    ("cab", &["audio"]),
    ("preset", &["audio"]),
    ("device", &["audio"]),
    ("input", &["audio"]),
];
const KINDS: [(&str, &str); 6] = [
    ("timer", "timer"),
    ("threads", "threads"),
    ("noise", "noise"),
    ("udp", "udp"),
    ("stream", "stream"),
    ("audio", "audio"),
];

/// A probe, and what it says where it has no name.
fn probe_and_said(fields: Fields<'_>) -> (Probe, Option<Said>) {
    let said = (!fields.has("name")).then(|| unnamed::said(&fields));
    (probe(fields), said)
}

fn probe(mut fields: Fields<'_>) -> Probe {
    let default = default_probe(fields.place());
    let name = fields.parsed("name", part_name);
    let word = fields.parsed("kind", |text| one_of(text, &KINDS));
    let word = if fields.has("kind") { word } else { Some("timer") };
    let period_ns = fields.parsed("period", period);
    let runtime_ns = fields.parsed("runtime", period);
    let threads: Vec<Thread> = fields.tables("threads", "a thread").into_iter().map(thread).collect();
    let length = length(&mut fields, period_ns.unwrap_or(DEFAULT_PERIOD_NS));
    let (clock, wait) = (fields.parsed("clock", str::parse::<Clock>), fields.parsed("wait", str::parse::<Wait>));
    let core = fields.parsed("core", str::parse::<Core>);
    let offset_ns = fields.parsed("offset", |text| duration_in(text, 0, PERIOD_MAX_NS, "at most 1h, as 50us"));
    let threshold_ns = fields.parsed("threshold", |text| duration_in(text, 1, PERIOD_MAX_NS, "1ns to 1h, as 100us"));
    let blame = fields.parsed("blame", |text| one_of(text, &BLAME));
    let receive_wait = udp::wait(&mut fields);
    let udp = udp::udp(&mut fields, period_ns.unwrap_or(DEFAULT_PERIOD_NS), receive_wait);
    let mut stream = stream::stream(&mut fields, period_ns, receive_wait);
    let mut audio = audio::audio(&mut fields);
    // Both have formats, of different words.
    match word {
        Some("audio") => audio::format(&mut fields, &mut audio),
        _ => stream.format = stream::format(&mut fields),
    }
    let has_launch_times = stream.mode == TransmitMode::Txtime;
    let kind = match word {
        Some("threads") if threads.is_empty() => ProbeKind::Threads(base_and_servo()),
        Some("threads") => ProbeKind::Threads(threads),
        Some("noise") => ProbeKind::Noise { period_ns: period_ns.unwrap_or(NOISE_PERIOD_NS), runtime_ns },
        Some("udp") => ProbeKind::Udp(Box::new(udp)),
        Some("stream") => ProbeKind::Stream(Box::new(stream)),
        Some("audio") => ProbeKind::Audio(Box::new(audio)),
        _ => ProbeKind::Timer { period_ns: period_ns.unwrap_or(DEFAULT_PERIOD_NS) },
    };
    check(&mut fields, &kind);
    if let Some(word) = word {
        let useless = |(key, kinds): &&(&str, &[&str])| fields.has(key) && !kinds.contains(&word);
        for (key, kinds) in KINDS_OF.iter().filter(useless) {
            fields.wrong(key, format!("{key} is of no use with kind = {word:?}: {}", instead(key, kinds, word)));
        }
    }
    fields.finish();
    Probe {
        name: name.unwrap_or_else(|| word.unwrap_or("timer").to_owned()),
        kind,
        length,
        clock: clock.unwrap_or(if has_launch_times { Clock::Tai } else { default.clock }),
        wait: wait.unwrap_or(default.wait),
        core: core.unwrap_or(default.core),
        offset_ns: offset_ns.unwrap_or(0),
        threshold_ns,
        blame: blame.unwrap_or(default.blame),
        place: default.place,
    }
}

/// What is wrong with keys that are right each by itself.
fn check(fields: &mut Fields<'_>, kind: &ProbeKind) {
    match kind {
        ProbeKind::Threads(threads) => {
            let mut roles = HashSet::new();
            if let Some(twice) = threads.iter().find(|thread| !roles.insert(&thread.role)) {
                let text = format!("two threads are called `{}`: give each a name of its own", twice.role);
                fields.wrong("threads", text);
            }
        }
        ProbeKind::Noise { period_ns, runtime_ns: Some(runtime_ns) } if runtime_ns > period_ns => {
            fields.wrong("runtime", "runtime must be at most the period: it is the part of it that the probe spins");
        }
        ProbeKind::Udp(udp) => udp::check(fields, udp),
        ProbeKind::Stream(stream) => stream::check(fields, stream),
        ProbeKind::Audio(audio) => audio::check(fields, audio),
        ProbeKind::Timer { .. } | ProbeKind::Noise { .. } => {}
    }
}

/// What to do about a key that a kind of probe has no use for.
fn instead(key: &str, kinds: &[&str], word: &str) -> String {
    match (key, kinds) {
        ("threads", _) => "write kind = \"threads\"".to_owned(),
        ("period", _) if word == "audio" => "write frames = 64 and rate = 48000 instead".to_owned(),
        ("period", _) => "leave it out; each of the `threads` has its own".to_owned(),
        ("samples", _) => "write how long it runs, as duration = \"60s\"".to_owned(),
        (_, [only @ ("udp" | "stream" | "audio")]) => format!("leave it out, or write kind = {only:?}"),
        _ => "leave it out".to_owned(),
    }
}

/// The two threads of machine-tool control.
fn base_and_servo() -> Vec<Thread> {
    let of = |ask: ThreadAsk| Thread { role: ask.role, period_ns: ask.period_ns, priority: None };
    ThreadAsk::base_and_servo().into_iter().map(of).collect()
}

fn thread(mut fields: Fields<'_>) -> Thread {
    let role = fields.parsed("name", part_name);
    let period_ns = fields.parsed("period", period);
    let priority = fields.integer("priority", 1..=99).map(|priority| priority as u8);
    for key in ["name", "period"].into_iter().filter(|key| !fields.has(key)) {
        fields
            .wrong(key, format!("a thread needs a {key}: write for example {{ name = \"servo\", period = \"1ms\" }}"));
    }
    fields.finish();
    Thread { role: role.unwrap_or_default(), period_ns: period_ns.unwrap_or(DEFAULT_PERIOD_NS), priority }
}

fn length(fields: &mut Fields<'_>, period_ns: u64) -> Length {
    let duration_ns =
        fields.parsed("duration", |text| duration_in(text, 1, LENGTH_MAX_NS, "longer than 0 and at most 7d, as 60s"));
    let samples = fields.integer("samples", 1..=i64::MAX as u64);
    if fields.has("duration") && fields.has("samples") {
        fields.wrong("samples", "duration and samples both say when the probe ends: leave one of them out");
    }
    match (duration_ns, samples) {
        (_, Some(samples)) => {
            if samples.checked_mul(period_ns).is_none_or(|length_ns| length_ns > LENGTH_MAX_NS) {
                fields.wrong("samples", format!("samples: {samples} at this period take more than 7d: ask for fewer"));
            }
            Length::Samples(samples)
        }
        (duration_ns, None) => Length::Duration(duration_ns.unwrap_or(DEFAULT_LENGTH_NS)),
    }
}

fn period(text: &str) -> Result<u64, String> {
    duration_in(text, 1, PERIOD_MAX_NS, "longer than 0 and at most 1h, as 1ms")
}
