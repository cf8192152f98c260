//! Audio: a section each, what a search found, and the figures that stand out.

use analysis::format_ns;
use record::{Audio, Record, Series, SoundLoop};

use super::{
    figure::{Row, Table},
    text::grouped,
    verdict::Key,
};
use crate::{
    audio::{FIGURES, TRIED, fates, found, remarks, times, title, to_blame, tried, worst},
    sound_loop,
};

/// A series of audio, or a search, as the template sees it.
pub struct AudioView {
    /// What was played.
    pub title: String,
    /// What became of periods; when they were done.
    pub tables: Vec<Table>,
    /// How to read that, who was to blame, and the worst periods.
    pub notes: Vec<String>,
}

fn all(record: &Record) -> impl Iterator<Item = (&Series, &Audio)> {
    record.series.iter().filter_map(|series| Some((series, series.kind.audio()?)))
}

/// What was found, and each series of audio.
pub fn sections(record: &Record) -> Vec<AudioView> {
    let search = record.buffer.iter().map(|search| AudioView {
        title: "The smallest buffer".to_owned(),
        tables: vec![table(
            "Sizes that were tried.",
            &TRIED,
            tried(record, search).into_iter().map(|(cells, _)| cells.to_vec()).collect(),
        )],
        notes: found(record, search),
    });
    let through_a_cable = record.sound_loop.iter().map(loop_view);
    through_a_cable.chain(search).chain(all(record).map(|(series, audio)| view(series, audio))).collect()
}

fn loop_view(told: &SoundLoop) -> AudioView {
    let rows = sound_loop::rounds(told).into_iter().map(|cells| cells.to_vec()).collect();
    AudioView {
        title: sound_loop::title(told),
        tables: vec![table("What each round found.", &sound_loop::ROUND, rows)],
        notes: sound_loop::lines(told).into_iter().map(|(name, text)| format!("{name}: {text}")).collect(),
    }
}

fn view(series: &Series, audio: &Audio) -> AudioView {
    let fates = fates(audio);
    let became = vec![fates.iter().map(|(_, count, _)| grouped(*count)).collect()];
    let took = times(series, audio).into_iter();
    let took = took.map(|(name, figures)| [name.trim().to_owned()].into_iter().chain(figures).collect()).collect();
    let head: Vec<&str> = ["time"].into_iter().chain(FIGURES).collect();
    let tables = vec![
        table("What became of each period.", &fates.map(|(name, ..)| name), became),
        table("When periods were done, and what their parts took.", &head, took),
    ];
    let [meaning, statement] = remarks(series, audio);
    let notes = [statement].into_iter().chain(to_blame(series)).chain(worst(series, audio)).chain([meaning]);
    AudioView { title: title(series, audio), tables, notes: notes.collect() }
}

fn table(caption: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        caption: caption.to_owned(),
        head: head.iter().map(|&head| head.to_owned()).collect(),
        rows: rows.into_iter().map(|cells| Row { swatch: String::new(), cells }).collect(),
    }
}

/// The figures that stand out; empty for records without audio.
pub fn keys(record: &Record) -> Vec<Key> {
    let mut keys: Vec<Key> = record.sound_loop.iter().flat_map(loop_keys).collect();
    if let Some(frames) = record.buffer.as_ref().and_then(|search| search.held) {
        let detail = "the smallest buffer that held".to_owned();
        keys.push(Key { label: "buffer", value: format!("{frames} frames"), detail });
    }
    let done = all(record).filter_map(|(series, audio)| Some((series, audio, audio.completion.as_ref()?.max_ns)));
    if let Some((series, audio, max_ns)) = done.max_by_key(|(.., max_ns)| *max_ns) {
        let detail =
            format!("after the deadline, of {} that there are, {}", format_ns(audio.limit_ns as i64), series.phase);
        keys.push(Key { label: "latest period done", value: format_ns(max_ns), detail });
        let sum = |of: fn(&Audio) -> u64| all(record).map(|(_, audio)| of(audio)).fold(0, u64::saturating_add);
        let detail = format!("of {} periods played", grouped(sum(|audio| audio.played)));
        keys.push(Key { label: "xruns", value: grouped(sum(|audio| audio.xruns)), detail });
    }
    keys
}

/// The round trip, and what the buffers alone take.
fn loop_keys(told: &SoundLoop) -> Vec<Key> {
    let key = |label, samples: f64, detail: String| Key { label, value: format!("{samples:.0} samples"), detail };
    let ms = |samples: f64| format!("{:.2} ms", told.ms(samples));
    let measured = told.round_trip_samples.map(|samples| samples as f64);
    let measured = measured.map(|samples| key("round trip", samples, format!("{}, the median", ms(samples))));
    let computed = told.computed_samples as f64;
    let computed = key("computed", computed, format!("{}: {}", ms(computed), told.setup));
    measured.into_iter().chain([computed]).collect()
}
