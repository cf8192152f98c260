//! `HdrHistogram` interval log, version 1.2: one line a series, with a tag and its histogram in the V2 encoding,
//! compressed and in base64.
//!
//! Source of the encodings: `HistogramLogWriter` and `AbstractHistogram.encodeIntoByteBuffer` of `HdrHistogram`. Values are
//! in ns; as in the reference, `Interval_Max` is in ms.

use std::{borrow::Cow, fmt::Write as _, io::Write as _};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, write::ZlibEncoder};
use record::{
    Histogram, Record, Series,
    export::{beyond, lacks_histogram},
    layout,
    visible::one_line,
};

use super::case::{self, series_ids};

/// First word of a histogram in the V2 encoding. The 1 in its second digit from the right is the word size of counts,
/// which the encoding does not use.
const COOKIE: u32 = 0x1c84_9313;
/// First word of a compressed histogram in the V2 encoding.
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;
/// Significant decimal digits, as in [`layout`].
const DIGITS: u32 = 3;

/// The corrected histogram of a series. Those of imports, and of a kind without correction, are raw.
fn times<'a>(record: &Record, series: &'a Series) -> &'a Histogram {
    if record.published.is_some() { &series.raw } else { &series.corrected }
}

/// The same with the samples beyond the last cell, which all have the maximum: without them, a reader computes too low
/// percentiles. They are left out if the maximum is not known.
fn whole_times<'a>(record: &Record, series: &'a Series) -> Cow<'a, Histogram> {
    let (times, beyond) = (times(record, series), beyond(record, series));
    let Some(max_ns) = series.max_ns.filter(|_| beyond > 0) else { return Cow::Borrowed(times) };
    let mut whole = times.clone();
    whole.add(max_ns, beyond);
    Cow::Owned(whole)
}

/// The kind of a thread, which those of other CPUs have, too. The phases of another tool are its threads, so they distinguish no
/// kinds.
fn kind(record: &Record, series: &Series) -> String {
    if record.published.is_some() {
        return series.role.clone();
    }
    let parts = [Some(&series.phase), Some(&series.role), series.host.as_ref()];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("-")
}

/// Writes the histogram of each series. Imported figures without one have a comment with their maximum and number of samples.
pub(super) fn hlog(record: &Record) -> String {
    let run = case::run(record);
    let mut comments = vec![
        case::title(record),
        format!("Verdict: {}: {}", case::name(run.outcome), run.reason),
        match record.published {
            Some(_) => "Unit of the values: ns",
            None => "Unit of the values: ns. Lateness counts for each omitted deadline, too (corrected histograms)",
        }
        .to_owned(),
    ];
    comments.extend(record.caveats.iter().map(|caveat| format!("Caveat: {}", caveat.text)));
    let mut out = String::new();
    // Writing to a string does not fail.
    for text in &comments {
        let _ = writeln!(out, "#[{}]", one_line(text));
    }
    out.push_str("#[Histogram log format version 1.2]\n");
    if let Some(started) = case::unix_seconds(&record.started_at) {
        let _ = writeln!(out, "#[BaseTime: {started:.3} (seconds since epoch)]");
        let _ = writeln!(out, "#[StartTime: {started:.3} (seconds since epoch), {}]", one_line(&record.started_at));
    }
    let ids = series_ids(record);
    for (series, id) in record.series.iter().zip(&ids) {
        let early = times(record, series).iter().take_while(|&(value_ns, _)| value_ns < 0);
        let early = early.fold(0_u64, |sum, (_, count)| sum.saturating_add(count));
        if early > 0 {
            let _ = writeln!(
                out,
                "#[{id}: {early} early wake-ups have the value 0, because the format has no negative ones]"
            );
        }
    }
    for (series, id) in record.series.iter().zip(&ids) {
        let cpu = series.cpu.map_or_else(String::new, |cpu| format!(", CPU {cpu}"));
        let _ = writeln!(out, "#[{id}: thread of {}{cpu}]", one_line(&kind(record, series)));
        if lacks_histogram(record, series) {
            let samples = Some(series.samples).filter(|&samples| samples > 0);
            let samples = samples.map(|samples| format!("; {samples} samples")).unwrap_or_default();
            let max = series.max_ns.map(|max_ns| format!("; maximum {max_ns} ns")).unwrap_or_default();
            let _ = writeln!(out, "#[{id}: no histogram{samples}{max}]");
            continue;
        }
        let beyond = beyond(record, series);
        if beyond > 0 {
            let place = if series.max_ns.is_some() { "counted at the maximum" } else { "left out" };
            let _ = writeln!(out, "#[{id}: {beyond} samples are beyond the last cell of the histogram, and {place}]");
        }
        if series.max_ns.is_none() && !times(record, series).is_empty() {
            let _ = writeln!(out, "#[{id}: the maximum is not known]");
        }
    }
    out.push_str("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
    for (series, id) in record.series.iter().zip(&ids).filter(|(series, _)| !lacks_histogram(record, series)) {
        let (start_ns, length_ns) =
            record.phase(&series.phase).map_or((0, 0), |phase| (phase.start_ns, phase.duration_ns));
        let (start, length) = (start_ns as f64 / 1e9, length_ns as f64 / 1e9);
        let times = whole_times(record, series);
        // Without an exact maximum, the end of the last cell.
        let max_ns = series.max_ns.or_else(|| Some(times.iter().next_back()?.0)).unwrap_or_default();
        let max_ms = max_ns as f64 / 1e6;
        let histogram = STANDARD.encode(compressed(&encoded(&times)));
        let _ = writeln!(out, "Tag={id},{start:.3},{length:.3},{max_ms:.6},{histogram}");
    }
    out
}

/// A compressed histogram: its own cookie, the length, and the encoded histogram.
fn compressed(encoded: &[u8]) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packer.write_all(encoded);
    let packed = packer.finish().unwrap_or_default();
    [&COMPRESSED_COOKIE.to_be_bytes()[..], &length(&packed), &packed].concat()
}

/// A histogram in the V2 encoding: a header of 40 bytes, then the counts from the bucket of 0 on.
fn encoded(histogram: &Histogram) -> Vec<u8> {
    let mut counts = Vec::new();
    let mut next = 0;
    for (index, count) in by_index(histogram) {
        // A negative number is a number of empty buckets.
        if index > next {
            put(&mut counts, -i64::try_from(index - next).unwrap_or(i64::MAX));
        }
        put(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
        next = index + 1;
    }
    let highest = layout::highest_in(next.saturating_sub(1)).max(2);
    let mut out = Vec::with_capacity(40 + counts.len());
    out.extend(COOKIE.to_be_bytes());
    out.extend(length(&counts));
    let normalizing_offset = 0_u32;
    out.extend([normalizing_offset, DIGITS].iter().flat_map(|word| word.to_be_bytes()));
    let lowest_discernible = 1_u64;
    out.extend([lowest_discernible, highest].iter().flat_map(|word| word.to_be_bytes()));
    let integer_to_double_ratio = 1_f64;
    out.extend(integer_to_double_ratio.to_be_bytes());
    out.extend(counts);
    out
}

/// The counts by the index of their bucket, ascending. Negative values count as 0.
fn by_index(histogram: &Histogram) -> Vec<(usize, u64)> {
    let mut all: Vec<(usize, u64)> = Vec::new();
    for (value_ns, count) in histogram.iter() {
        let index = layout::index_of(u64::try_from(value_ns).unwrap_or(0));
        match all.last_mut() {
            Some((last, sum)) if *last == index => *sum = sum.saturating_add(count),
            _ => all.push((index, count)),
        }
    }
    all
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// Appends a number as LEB128 of its zigzag value, with at most 9 bytes: the ninth has 8 bits.
fn put(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    for _ in 0..8 {
        let [low, ..] = rest.to_le_bytes();
        if rest < 0x80 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}
