//! Reads the probes of a campaign file, with one entry of `KINDS` for each kind of probe.
//!
//! A key with a mistake gets its default, so that reading goes on and finds all mistakes.

use std::collections::BTreeSet;

use crate::Cores;
use blame::BlameMode;
use probes::stream::transmit::TransmitMode;
use sys::{
    clock::{Clock, Wait},
    sched::Policy,
};

use super::{
    audio,
    default_names::{self, KeyValues},
    fields::Fields,
    mistake::Position,
    model::CampaignProbe,
    parts::{check_names, part_name},
    round_trip, stream,
    values::{duration_in, one_of},
};
use crate::{
    plan::Length,
    probe::{
        InterruptProbe, NoiseProbe, PERIOD_MAX_NS, PERIOD_MIN_NS, Probe, ThreadsProbe, TimerProbe,
        interrupt::{Judge, Judged},
        stream::WakeupOffset,
        threads::ThreadAsk,
    },
};

/// Longest run of one scenario, ns: a week.
const LENGTH_MAX_NS: u64 = 7 * 86_400_000_000_000;

const BLAME: [(&str, BlameMode); 5] = [
    ("auto", BlameMode::Auto),
    ("trace", BlameMode::Trace),
    ("deep", BlameMode::Deep),
    ("counters", BlameMode::Counters),
    ("off", BlameMode::Off),
];

/// A kind of probe.
struct Kind {
    /// The value of `kind`.
    word: &'static str,
    /// The keys of this kind, without those that every probe has.
    keys: &'static [&'static str],
    /// Reads these keys.
    read: fn(&mut Fields<'_>) -> Read,
}

/// The values of the keys of one kind.
struct Read {
    probe: Probe,
    offsets: Vec<WakeupOffset>,
    /// Positions of the keys that name files, devices or CPUs, which a machine may not have.
    keys: Vec<(&'static str, Position)>,
    /// The default clock.
    clock: Clock,
}

impl Read {
    fn of(probe: Probe) -> Self {
        Self { probe, offsets: Vec::new(), keys: Vec::new(), clock: Clock::Monotonic }
    }
}

const KINDS: [Kind; 9] = [
    Kind {
        word: "timer",
        keys: &["period", "samples", "clock", "wait", "core", "offset"],
        read: |fields| {
            let period_ns = fields.parsed("period", period);
            Read::of(Probe::Timer(period_ns.map_or_else(TimerProbe::default, |period_ns| TimerProbe { period_ns })))
        },
    },
    Kind {
        word: "threads",
        keys: &["threads", "clock", "wait", "core", "offset"],
        read: |fields| {
            let threads: Vec<ThreadAsk> = fields.tables("threads", "a thread").into_iter().map(thread).collect();
            let default = ThreadsProbe::default();
            Read::of(Probe::Threads(if threads.is_empty() { default } else { ThreadsProbe { threads } }))
        },
    },
    Kind {
        word: "noise",
        keys: &["period", "runtime"],
        read: |fields| {
            let period_ns = fields.parsed("period", period).unwrap_or(NoiseProbe::default().period_ns);
            Read::of(Probe::Noise(NoiseProbe { period_ns, runtime_ns: fields.parsed("runtime", period) }))
        },
    },
    Kind {
        word: "udp",
        keys: &[
            "period",
            "samples",
            "spin",
            "busy_poll",
            "peer",
            "size",
            "max_rate",
            "timeout",
            "send_policy",
            "receive_policy",
            "echo_policy",
            "stamps",
            "transport",
            "queue",
        ],
        read: |fields| {
            let (period_ns, wait) = (fields.parsed("period", period), round_trip::wait(fields));
            Read::of(Probe::RoundTrip(Box::new(round_trip::udp(fields, period_ns, wait))))
        },
    },
    Kind {
        word: "ping",
        keys: &[
            "period",
            "samples",
            "spin",
            "busy_poll",
            "peer",
            "size",
            "max_rate",
            "timeout",
            "send_policy",
            "receive_policy",
            "stamps",
        ],
        read: |fields| {
            let (period_ns, wait) = (fields.parsed("period", period), round_trip::wait(fields));
            Read::of(Probe::RoundTrip(Box::new(round_trip::ping(fields, period_ns, wait))))
        },
    },
    Kind {
        word: "round-trip",
        keys: &[
            "period",
            "samples",
            "spin",
            "busy_poll",
            "interface",
            "to",
            "ethertype",
            "vlan",
            "priority",
            "classes",
            "size",
            "max_rate",
            "timeout",
            "send_policy",
            "receive_policy",
            "echo_policy",
            "stamps",
            "transport",
            "queue",
        ],
        read: |fields| {
            let (period_ns, wait) = (fields.parsed("period", period), round_trip::wait(fields));
            Read::of(Probe::RoundTrip(Box::new(round_trip::mirror(fields, period_ns, wait))))
        },
    },
    Kind {
        word: "stream",
        keys: &[
            "period",
            "clock",
            "wait",
            "spin",
            "busy_poll",
            "talk",
            "listen",
            "class",
            "format",
            "wakeup_offset",
            "mode",
            "unique_id",
            "stamps",
            "maap",
            "streams",
            "stream_id",
            "receive",
            "queue",
            "capture",
        ],
        read: |fields| {
            let (period_ns, wait) = (fields.parsed("period", period), round_trip::wait(fields));
            let (stream, offsets) = stream::stream(fields, period_ns, wait);
            stream::check(fields, &stream);
            let clock = if stream.mode == TransmitMode::Txtime { Clock::Tai } else { Clock::Monotonic };
            Read { offsets, clock, ..Read::of(Probe::Stream(Box::new(stream))) }
        },
    },
    Kind {
        word: "interrupt",
        keys: &["source", "drive", "irq_cpu", "answer", "judge", "period", "samples", "core"],
        read: |fields| {
            if !fields.has("source") {
                fields.report("kind", "an interrupt needs a source: write e.g. source = \"hpet\"".to_owned());
            }
            let default = InterruptProbe::default();
            let answer = fields.parsed("answer", str::parse);
            let judge = fields.parsed("judge", str::parse);
            if fields.has("answer") != fields.has("judge") {
                let given = if fields.has("answer") { "answer" } else { "judge" };
                fields.report(given, "answer and judge belong together: write both, or neither".to_owned());
            }
            let probe = InterruptProbe {
                source: fields.parsed("source", str::parse).unwrap_or(default.source),
                drive: fields.parsed("drive", str::parse),
                judged: answer.zip(judge).map(|(answer, judge)| Judged { answer, judge: Judge::Here(judge) }),
                period_ns: fields.parsed("period", period),
                cpu: None,
                irq_cpu: fields.integer("irq_cpu", 0..=65_535).and_then(|cpu| u32::try_from(cpu).ok()),
            };
            let keys = ["source", "drive", "answer", "irq_cpu"].map(|key| (key, fields.position_of(key))).to_vec();
            Read { keys, ..Read::of(Probe::Interrupt(Box::new(probe))) }
        },
    },
    Kind {
        word: "audio",
        keys: &[
            "clock", "wait", "core", "format", "rate", "frames", "periods", "model", "cab", "preset", "device", "input",
        ],
        read: |fields| {
            let (audio, keys) = audio::audio(fields);
            audio::check(fields, &audio);
            Read { keys, ..Read::of(Probe::Audio(Box::new(audio))) }
        },
    },
];

/// The kind of a probe without `kind`.
const DEFAULT_KIND: &str = KINDS[0].word;

pub(super) fn probes(campaign: &mut Fields<'_>) -> Vec<CampaignProbe> {
    let mut probes: Vec<(CampaignProbe, Option<KeyValues>)> = match campaign.tables("probe", "a probe") {
        tables if tables.is_empty() => vec![(default_probe(campaign.position()), None)],
        tables => tables.into_iter().map(probe_and_key_values).collect(),
    };
    default_names::make_unique(&mut probes, campaign);
    let probes: Vec<CampaignProbe> = probes.into_iter().map(|(probe, _)| probe).collect();
    check_names("probes", probes.iter().map(|probe| (&*probe.name, probe.position)), campaign);
    probes
}

fn default_probe(position: Position) -> CampaignProbe {
    CampaignProbe {
        name: DEFAULT_KIND.to_owned(),
        probe: Probe::Timer(TimerProbe::default()),
        offsets: Vec::new(),
        length: Length::default(),
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Cores::Linux,
        offset_ns: 0,
        threshold_ns: None,
        blame: BlameMode::Auto,
        keys: Vec::new(),
        position,
    }
}

/// Reads a probe, and for a probe without a name its keys and values.
fn probe_and_key_values(fields: Fields<'_>) -> (CampaignProbe, Option<KeyValues>) {
    let key_values = (!fields.has("name")).then(|| default_names::key_values(&fields));
    (probe(fields), key_values)
}

fn probe(mut fields: Fields<'_>) -> CampaignProbe {
    let default = default_probe(fields.position());
    let name = fields.parsed("name", part_name);
    let words: Vec<(&str, usize)> = KINDS.iter().enumerate().map(|(index, kind)| (kind.word, index)).collect();
    let index = fields.parsed("kind", |text| one_of(text, &words));
    let index = if fields.has("kind") { index } else { Some(0) };
    let threshold_ns = fields.parsed("threshold", |text| duration_in(text, 1, PERIOD_MAX_NS, "1ns to 1h, e.g. 100us"));
    let blame = fields.parsed("blame", |text| one_of(text, &BLAME));
    // For an unknown kind the keys of the default kind are read, to find their mistakes.
    let kind = &KINDS[index.unwrap_or(0)];
    let Read { probe, offsets, keys, clock } = (kind.read)(&mut fields);
    if let Err(error) = probe.definition().check() {
        fields.report(error.key().unwrap_or("kind"), error.to_string());
    }
    let own = |key: &str| kind.keys.contains(&key);
    let length = length(&mut fields, probe.definition().period_ns(), own("samples"));
    let mut own_clock = None;
    let (mut wait, mut core, mut offset_ns) = (None, None, None);
    if own("clock") {
        own_clock = fields.parsed("clock", str::parse::<Clock>);
    }
    if own("wait") {
        wait = fields.parsed("wait", str::parse::<Wait>);
    }
    if own("core") {
        core = fields.parsed("core", str::parse::<Cores>);
    }
    if own("offset") {
        offset_ns = fields.parsed("offset", |text| duration_in(text, 0, PERIOD_MAX_NS, "at most 1h, e.g. 50us"));
    }
    for (key, kinds) in keys_of_others(kind).filter(|(key, _)| fields.has(key)).collect::<Vec<_>>() {
        if index.is_some() {
            let word = kind.word;
            fields.report(key, format!("{key} is not for kind = {word:?}: {}", instead(key, &kinds, word)));
        }
        fields.pass_over(key);
    }
    fields.finish();
    CampaignProbe {
        name: name.unwrap_or_else(|| kind.word.to_owned()),
        probe,
        offsets,
        length,
        clock: own_clock.unwrap_or(clock),
        wait: wait.unwrap_or(default.wait),
        core: core.unwrap_or(default.core),
        offset_ns: offset_ns.unwrap_or(default.offset_ns),
        threshold_ns,
        blame: blame.unwrap_or(default.blame),
        keys,
        position: default.position,
    }
}

/// The keys that this kind does not have, each with the kinds that have it.
fn keys_of_others(kind: &Kind) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let keys: BTreeSet<&str> = KINDS.iter().flat_map(|other| other.keys).copied().collect();
    let kinds = |key: &str| KINDS.iter().filter(|other| other.keys.contains(&key)).map(|other| other.word).collect();
    keys.into_iter().filter(|key| !kind.keys.contains(key)).map(move |key| (key, kinds(key)))
}

/// The remedy for a key that a kind of probe does not have.
fn instead(key: &str, kinds: &[&str], word: &str) -> String {
    match (key, kinds) {
        ("threads", _) => "write kind = \"threads\"".to_owned(),
        ("period", _) if word == "audio" => "write frames = 64 and rate = 48000 instead".to_owned(),
        ("period", _) => "leave it out; each of the `threads` has its own".to_owned(),
        ("samples", _) => "write a duration, e.g. duration = \"60s\"".to_owned(),
        (_, [only]) => format!("leave it out, or write kind = {only:?}"),
        _ => "leave it out".to_owned(),
    }
}

fn thread(mut fields: Fields<'_>) -> ThreadAsk {
    let role = fields.parsed("name", part_name);
    let period_ns = fields.parsed("period", period);
    let priority = fields.integer("priority", 1..=99).and_then(|priority| u8::try_from(priority).ok());
    for key in ["name", "period"].into_iter().filter(|key| !fields.has(key)) {
        fields.report(key, format!("a thread needs a {key}: write e.g. {{ name = \"servo\", period = \"1ms\" }}"));
    }
    fields.finish();
    ThreadAsk {
        role: role.unwrap_or_default(),
        period_ns: period_ns.unwrap_or(TimerProbe::default().period_ns),
        cpu: None,
        policy: priority.map(Policy::Fifo),
    }
}

fn length(fields: &mut Fields<'_>, period_ns: u64, has_samples: bool) -> Length {
    let duration_ns =
        fields.parsed("duration", |text| duration_in(text, 1, LENGTH_MAX_NS, "longer than 0 and at most 7d, e.g. 60s"));
    let samples = if has_samples { fields.integer("samples", 1..=i64::MAX.unsigned_abs()) } else { None };
    if has_samples && fields.has("duration") && fields.has("samples") {
        fields.report("samples", "duration and samples exclude each other: leave one of them out");
    }
    match (duration_ns, samples) {
        (_, Some(samples)) => {
            if samples.checked_mul(period_ns).is_none_or(|length_ns| length_ns > LENGTH_MAX_NS) {
                fields.report("samples", format!("samples: {samples} at this period take more than 7d: use fewer"));
            }
            Length::Samples(samples)
        }
        (duration_ns, None) => duration_ns.map_or_else(Length::default, Length::Duration),
    }
}

fn period(text: &str) -> Result<u64, String> {
    duration_in(text, PERIOD_MIN_NS, PERIOD_MAX_NS, "1us to 1h, e.g. 1ms")
}
