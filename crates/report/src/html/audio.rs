//! Audio: one section per series, the result of a buffer search, and the key figures.

use analysis::{format_ns, when};
use record::{Audio, BufferSearch, Record, Series, SoundLoop, counted, grouped};

use super::figure::{Key, Part, Table};
use crate::{
    audio::{FIGURES, TRIED, fault_lines, found, outcomes, remarks, times, title, tried, worst},
    blame::unsigned,
    sound_loop,
    words::sentence,
};

fn all(record: &Record) -> impl Iterator<Item = (&Series, &Audio)> {
    record.series.iter().filter_map(|series| Some((series, series.kind.audio()?)))
}

/// The round trip through a cable, the buffer search, and each series of audio.
pub fn sections(record: &Record) -> Vec<Part> {
    let search = record.buffer.iter().map(|search| Part {
        name: "Buffer".to_owned(),
        title: "Smallest buffer".to_owned(),
        more: Vec::new(),
        tables: vec![Table::plain(
            "Buffer sizes tried",
            &TRIED,
            tried(record).into_iter().map(|(cells, _)| cells.to_vec()).collect(),
        )],
        notes: found(record, search),
        only_on_screen: false,
    });
    let sound_loops = record.sound_loop.iter().map(loop_view);
    let parts = all(record).map(|(series, audio)| {
        let is_held = |search: &BufferSearch| search.held.is_none_or(|frames| frames == audio.frames);
        Part { only_on_screen: !record.buffer.as_ref().is_none_or(is_held), ..view(series, audio) }
    });
    sound_loops.chain(search).chain(parts).collect()
}

fn loop_view(sound_loop: &SoundLoop) -> Part {
    let rows = sound_loop::rounds(sound_loop).into_iter().map(|cells| cells.to_vec()).collect();
    Part {
        name: "Loopback".to_owned(),
        title: sound_loop::title(sound_loop),
        more: Vec::new(),
        tables: vec![Table::plain("Results of each round", &sound_loop::ROUND, rows)],
        notes: sound_loop::lines(sound_loop).into_iter().map(|(name, text)| format!("{name}: {text}")).collect(),
        only_on_screen: false,
    }
}

fn view(series: &Series, audio: &Audio) -> Part {
    let outcomes = outcomes(audio);
    let counts = vec![outcomes.iter().map(|(_, count, _)| grouped(*count)).collect()];
    let rows = times(series, audio).into_iter();
    let rows = rows.map(|(name, figures)| [name.trim().to_owned()].into_iter().chain(figures).collect()).collect();
    let head: Vec<&str> = ["time"].into_iter().chain(FIGURES).collect();
    let tables = vec![
        Table::plain("Periods by outcome", &outcomes.map(|(name, ..)| name), counts),
        Table::plain("Completion of periods, and times of their parts", &head, rows),
    ];
    let [meaning, statement] = remarks(series, audio);
    let notes = [statement].into_iter().chain(fault_lines(series)).chain(worst(series, audio)).chain([meaning]);
    let notes = notes.map(|note| sentence(&note));
    Part {
        name: format!("Audio, {}", when(series)),
        title: title(series, audio),
        tables,
        more: Vec::new(),
        notes: notes.collect(),
        only_on_screen: false,
    }
}

/// The key figures; empty for records without audio.
pub fn keys(record: &Record) -> Vec<Key> {
    let mut keys: Vec<Key> = record.sound_loop.iter().flat_map(loop_keys).collect();
    if let Some(frames) = record.buffer.as_ref().and_then(|search| search.held) {
        let detail = "smallest buffer that held".to_owned();
        keys.push(Key { label: "buffer", value: format!("{} frames", grouped(frames.into())), detail });
    }
    // Of a search, the figures of the size that held.
    let held = record.buffer.as_ref().and_then(|search| search.held);
    let all = || all(record).filter(|(_, audio)| held.is_none_or(|frames| audio.frames == frames));
    let done = all().filter_map(|(series, audio)| Some((series, audio, audio.completion.as_ref()?.max_ns)));
    if let Some((series, audio, max_ns)) = done.max_by_key(|(.., max_ns)| *max_ns) {
        let detail = format!("after the deadline, limit {}, {}", unsigned(audio.limit_ns), when(series));
        keys.push(Key { label: "worst completion", value: format_ns(max_ns), detail });
        let sum = |of: fn(&Audio) -> u64| all().map(|(_, audio)| of(audio)).fold(0, u64::saturating_add);
        let detail = format!("of {} periods played", grouped(sum(|audio| audio.played)));
        keys.push(Key { label: "xruns", value: grouped(sum(|audio| audio.xruns)), detail });
    }
    keys
}

/// The round trip, and the latency of the buffers alone.
fn loop_keys(sound_loop: &SoundLoop) -> Vec<Key> {
    let key = |label, samples: u64, detail: String| Key { label, value: counted(samples, "sample"), detail };
    let ms = |samples: u64| format!("{:.2} ms", sound_loop.ms(samples as f64));
    let measured =
        sound_loop.round_trip_samples.map(|samples| key("round trip", samples, format!("{}, median", ms(samples))));
    let computed = sound_loop.computed_samples;
    let computed = key("computed", computed, format!("{}: {}", ms(computed), sound_loop.setup));
    measured.into_iter().chain([computed]).collect()
}
