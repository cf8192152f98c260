//! Interval logs of HdrHistogram (`HistogramLogReader`, `AbstractHistogram.decodeFromByteBuffer`), also those that punctual
//! exports as `.hlog`.

use std::{
    collections::{HashMap, HashSet},
    io::Read as _,
    ops::RangeInclusive,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;
use record::{Figures, Histogram};

use crate::{
    Ending, Format, Imported, Mistake, NOT_MEASURED, Unit, another_run, caveat, cells::Cells, cells::to_ns, date,
    exported_by,
};

/// The format.
pub struct Intervals;

/// First words of the V2 encoding, without and with compression.
const COOKIES: [u32; 2] = [0x1c84_9313, 0x1c84_9314];
/// Length of the header of an encoded histogram, bytes.
const HEADER_BYTES: usize = 40;
/// The longest encoded histogram, bytes. One with 3 digits and values up to 2^63 has at most 56 000 counts.
const HISTOGRAM_BYTES_MAX: u64 = 16 << 20;
/// The begin of a comment and of the heading that each log has once.
const VERSION: &str = "#[Histogram log format version";
const HEADING: &str = "\"StartTimestamp\"";
/// The comment in which punctual writes the unit.
const IN_NS: &str = "Unit of the values: ns";
/// The begin of the line with this comment.
const EXPORTED: &str = "#[Unit of the values: ns";

/// The kind of a thread in the comment of punctual `load-timer-cpu1: thread of load-timer, CPU 1`.
#[derive(Debug, Clone, Copy)]
struct Kind<'a> {
    role: &'a str,
    /// Empty for a thread without a CPU of its own.
    cpu: &'a str,
}

impl<'a> Kind<'a> {
    /// The tag and its kind.
    fn of(comment: &'a str) -> Option<(&'a str, Self)> {
        let (tag, rest) = comment.split_once(": thread of ")?;
        let (role, cpu) = rest.rsplit_once(", CPU ").unwrap_or((rest, ""));
        Some((tag, Self { role, cpu }))
    }
}

impl Format for Intervals {
    fn name(&self) -> &'static str {
        "HdrHistogram, hlog"
    }

    fn is_it(&self, text: &str) -> bool {
        text.lines().any(|line| line.starts_with(VERSION) || line.starts_with(HEADING))
    }

    fn ending(&self) -> Ending {
        Ending::Closed
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        let mut imported = Imported::default();
        let (mut tags, mut places): (Vec<Tag<'_>>, HashMap<&str, usize>) = Default::default();
        let (mut has_unit, mut beyond, mut without_max) = (false, HashMap::new(), HashSet::new());
        let mut kinds: HashMap<&str, Kind<'_>> = HashMap::new();
        let mut without_histogram: Vec<(&str, Figures)> = Vec::new();
        let is_exported = text.lines().any(|line| line.starts_with(EXPORTED));
        let probe = text.lines().next().filter(|_| is_exported).and_then(|line| exported_by(line, &mut imported));
        let probe = probe.unwrap_or_else(|| record::TIMER.to_owned());
        let (unit, units) = Unit::of(unit, Unit::Ns);
        let mut titles = (1..).zip(text.lines()).filter(|(_, line)| line.starts_with(VERSION));
        let mut headings = (1..).zip(text.lines()).filter(|(_, line)| line.starts_with(HEADING));
        if let Some((number, _)) = titles.nth(1).or_else(|| headings.nth(1)) {
            return Err(another_run(number));
        }
        let mut lines = HashSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(comment) = line.strip_prefix('#') {
                let comment = comment.trim_start_matches('[').trim_end_matches(']');
                has_unit |= comment.starts_with(IN_NS);
                beyond.extend(Beyond::of(comment).filter(|_| is_exported));
                without_max.extend(comment.strip_suffix(": the maximum is not known"));
                kinds.extend(Kind::of(comment).filter(|_| is_exported));
                without_histogram.extend(self::without_histogram(comment).filter(|_| is_exported));
                self::comment(comment, &mut imported);
            } else if !line.is_empty() && !line.starts_with('"') {
                if !lines.insert(line) {
                    return Err(Mistake::new(number, "the file has this interval twice"));
                }
                let interval = Interval::read(line).map_err(|text| Mistake::new(number, text))?;
                let place = *places.entry(interval.tag).or_insert(tags.len());
                if place == tags.len() {
                    tags.push(Tag { name: interval.tag.to_owned(), intervals: Vec::new() });
                }
                tags[place].intervals.push(interval);
            }
        }
        if tags.is_empty() && without_histogram.is_empty() {
            return Err(Mistake::new(0, "it has no histogram"));
        }
        let is_known = |name: &str| places.contains_key(name) || without_histogram.iter().any(|(id, _)| *id == name);
        if let Some(lacking) = kinds.keys().filter(|name| !is_known(name)).min() {
            return Err(Mistake::new(0, format!("it has no interval with the tag {lacking}; the file is cut")));
        }
        if !has_unit {
            imported.caveats.push(units);
        }
        let mut all: Vec<(Option<Kind<'_>>, Figures)> = Vec::new();
        for tag in tags {
            let unit_ns = if has_unit { 1 } else { unit.ns() };
            let has_max = !without_max.contains(tag.name.as_str());
            let beyond = beyond.get(tag.name.as_str()).copied().unwrap_or_default();
            let kind = kinds.get(tag.name.as_str()).copied();
            let max = if !has_max {
                Max::Unknown
            } else if is_exported {
                Max::Exact
            } else {
                Max::Printed
            };
            all.push((kind, tag.end(&mut imported, unit_ns, beyond, max).map_err(|text| Mistake::new(0, text))?));
        }
        all.extend(without_histogram.into_iter().map(|(id, figures)| (kinds.get(id).copied(), figures)));
        for (kind, mut figures) in all {
            if let Some(Kind { role, cpu }) = kind {
                // The role of a thread that has only that of its probe is empty.
                figures.role = if role == probe { String::new() } else { role.to_owned() };
                cpu.clone_into(&mut figures.cpus);
            }
            imported.figures.push(Figures { probe: probe.clone(), ..figures });
        }
        Ok(imported)
    }
}

/// Samples beyond the last cell of an imported histogram.
#[derive(Debug, Clone, Copy, Default)]
struct Beyond {
    samples: u64,
    /// True if the exported histogram has them at the maximum.
    is_counted: bool,
}

impl Beyond {
    /// The tag and the number in the comment of punctual `load-timer-cpu1: 3 samples are beyond the last cell of the histogram,
    /// and counted at the maximum`.
    fn of(comment: &str) -> Option<(&str, Self)> {
        let (id, rest) = comment.split_once(": ")?;
        let (samples, place) = rest.split_once(" samples are beyond the last cell of the histogram")?;
        Some((id, Self { samples: samples.parse().ok()?, is_counted: place.ends_with("counted at the maximum") }))
    }
}

/// The tag and the figures in the comment of punctual `thread-0-timer-unpinned: no histogram; 500 samples; maximum 45000 ns`.
fn without_histogram(comment: &str) -> Option<(&str, Figures)> {
    let (id, rest) = comment.split_once(": no histogram")?;
    let mut figures = Figures { phase: id.to_owned(), ..Figures::default() };
    for part in rest.split("; ").filter(|part| !part.is_empty()) {
        match part.strip_suffix(" samples") {
            Some(samples) => figures.samples = Some(samples.parse().ok()?),
            None => figures.max_ns = Some(part.strip_prefix("maximum ")?.strip_suffix(" ns")?.parse().ok()?),
        }
    }
    Some((id, figures))
}

/// Reads a comment of punctual: start, and what its histograms lack.
fn comment(comment: &str, imported: &mut Imported) {
    if let Some((seconds, started_at)) =
        comment.strip_prefix("StartTime: ").and_then(|rest| rest.split_once(" (seconds since epoch), "))
    {
        // Java writes a date whose time zone only people know.
        let of_epoch = seconds.trim().parse().ok().and_then(date::of_epoch);
        let started_at = started_at.to_owned();
        imported.started_at =
            if date::timestamp(&started_at).is_some() { started_at } else { of_epoch.unwrap_or(started_at) };
    } else if let Some(text) = comment.strip_prefix("Verdict: ") {
        if !text.starts_with("NONE: ") {
            let text = format!("the verdict of the run was {}", text.trim_end_matches('.'));
            imported.caveats.push(caveat("verdict", text));
        }
    } else if let Some(text) =
        comment.strip_prefix("Caveat: ").filter(|text| ![NOT_MEASURED, crate::EXPORTED].contains(text))
    {
        imported.caveats.push(caveat("measured", text));
    } else if comment.contains("early wake-ups have the value 0") {
        imported.caveats.push(caveat("folded", comment));
    } else if comment.contains("counts for each omitted deadline") {
        let text = "omitted deadlines were added to the counts, so they are more than samples";
        imported.caveats.push(caveat("omission", text));
    }
}

/// The intervals of one tag.
struct Tag<'a> {
    name: String,
    intervals: Vec<Interval<'a>>,
}

impl Tag<'_> {
    /// The figures of all intervals together.
    fn end(self, imported: &mut Imported, unit_ns: i64, beyond: Beyond, max: Max) -> Result<Figures, String> {
        let name = if self.name.is_empty() { "histogram".to_owned() } else { self.name };
        if self.intervals.len() > 1 {
            let text = format!("{name}: {} intervals are summed; their sequence is lost", self.intervals.len());
            imported.caveats.push(caveat("mixed", text));
        }
        let mut left = if beyond.is_counted { beyond.samples } else { 0 };
        let (mut cells, mut largest, mut seconds) = (Cells::default(), None::<Largest>, 0.0);
        for interval in &self.intervals {
            for (value_ns, count) in interval.cells.histogram.iter().rev() {
                let of_cell = count.saturating_sub(left);
                left = left.saturating_sub(count);
                let value_ns = value_ns.checked_mul(unit_ns);
                let added = value_ns.and_then(|value_ns| cells.add(value_ns, 1, of_cell));
                added.ok_or_else(|| format!("{name}: too many samples, or too large values"))?;
            }
            largest = largest.max(interval.largest(max));
            seconds += interval.seconds;
        }
        if left > 0 {
            return Err(format!(
                "{name}: it has {} samples beyond the last cell, which are more than all",
                beyond.samples
            ));
        }
        let is_exact = max != Max::Unknown
            && self.intervals.iter().all(|of| of.cells.histogram.is_empty() || of.largest(max).is_some());
        cells.beyond = beyond.samples;
        if !is_exact && max != Max::Unknown {
            let text =
                format!("{name}: the maximum of the file is not in the last cell of its histogram, and is left out");
            imported.caveats.push(caveat("units", text));
        }
        let largest = largest.filter(|_| is_exact);
        if largest.is_some_and(|largest| largest.is_of_cell) {
            let text = format!("{name}: the file rounds its maximum, so it is the end of the last cell with samples");
            imported.caveats.push(caveat("clamped", text));
        }
        let cpu = name.rsplit_once("-cpu").filter(|(_, cpu)| cpu.parse::<u32>().is_ok());
        let mut figures = Figures {
            role: cpu.map_or(name.as_str(), |(role, _)| role).to_owned(),
            cpus: cpu.map(|(_, cpu)| cpu).unwrap_or_default().to_owned(),
            duration_ns: to_ns(seconds, 1e9).and_then(|ns| u64::try_from(ns).ok()).filter(|&ns| ns > 0),
            max_ns: largest.and_then(|largest| largest.ns.checked_mul(unit_ns)),
            ..Figures::default()
        };
        imported.caveats.extend(cells.overflow(&name, figures.max_ns));
        figures.phase = name;
        // An exact maximum is that of the last cell.
        cells.fill_unchecked(&mut figures);
        Ok(figures)
    }
}

/// One line: `Tag=NAME,start,length,max,histogram`; the tag can be absent.
struct Interval<'a> {
    tag: &'a str,
    seconds: f64,
    /// The maximum as the file prints it.
    printed: Printed,
    cells: Decoded,
}

impl<'a> Interval<'a> {
    fn read(line: &'a str) -> Result<Self, String> {
        let (tag, rest) = match line.strip_prefix("Tag=") {
            Some(rest) => rest.split_once(',').ok_or("the tag has no interval")?,
            None => ("", line),
        };
        let columns: Vec<&str> = rest.split(',').map(str::trim).collect();
        let [start, length, max, encoded] = columns[..] else {
            return Err(format!(
                "an interval has 4 columns: start, length, maximum, histogram (got {})",
                columns.len()
            ));
        };
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = |text: &str| number(text).ok_or_else(|| format!("{text:?} is no number"));
        number(start)?;
        let printed = Printed::of(max, number(max)?);
        let bytes = STANDARD.decode(encoded).map_err(|error| format!("the histogram is no base64: {error}"))?;
        Ok(Self { tag, seconds: number(length)?, printed, cells: decoded(&bytes)? })
    }

    /// The maximum, if it is known.
    fn largest(&self, max: Max) -> Option<Largest> {
        let last_ns = self.cells.last_ns.as_ref()?;
        let stated = |ns| Largest { ns, is_of_cell: false };
        match max {
            Max::Unknown => None,
            Max::Exact => self.printed.ns.map(stated),
            Max::Printed => {
                let (from_ns, end_ns) = self.printed.range_ns?;
                let is_in_last = from_ns <= *last_ns.end() && *last_ns.start() <= end_ns;
                let width_ns = last_ns.end() - last_ns.start();
                let is_finer = end_ns - from_ns <= width_ns;
                let printed = self.printed.ns.filter(|ns| is_finer && last_ns.contains(ns)).map(stated);
                is_in_last.then(|| printed.unwrap_or(Largest { ns: *last_ns.end(), is_of_cell: width_ns > 0 }))
            }
        }
    }
}

/// The maximum of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Largest {
    ns: i64,
    /// True if it is the end of the last cell, because the printed one is less exact.
    is_of_cell: bool,
}

/// A printed maximum, whose unit is ms.
struct Printed {
    ns: Option<i64>,
    /// The first and the last whole number of ns that is printed like this.
    range_ns: Option<(i64, i64)>,
}

impl Printed {
    /// `text` is the number `ms`.
    fn of(text: &str, ms: f64) -> Self {
        const MS: f64 = 1e6;
        let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
        // The Python port removes the fraction, and prints 6 zeros instead.
        let (from_ns, end_ns) = if decimals == "000000" {
            (ms * MS, (ms + 1.0) * MS - 1.0)
        } else {
            let half = MS * 0.1_f64.powi(i32::try_from(decimals.len()).unwrap_or(i32::MAX)) / 2.0;
            ((ms * MS - half).ceil(), (ms * MS + half).floor())
        };
        Self { ns: to_ns(ms, MS), range_ns: to_ns(from_ns, 1.0).zip(to_ns(end_ns, 1.0)) }
    }
}

/// The meaning of a printed maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Max {
    /// It is the exact one, as in exports of punctual. It can be below the end of the last cell, which is that of a cell of another
    /// tool.
    Exact,
    /// It is in the last cell with samples, which can be narrower than its last digit; else its unit is another one.
    Printed,
    /// It is the end of the last cell.
    Unknown,
}

/// A decoded histogram.
struct Decoded {
    histogram: Histogram,
    /// The times of the last cell with samples; `None` if it is empty.
    last_ns: Option<RangeInclusive<i64>>,
}

/// Decodes a histogram, with or without compression.
fn decoded(bytes: &[u8]) -> Result<Decoded, String> {
    let cookie = word(bytes, 0)?;
    // The second digit from the right is a word size, which the encoding does not use.
    match cookie | 0x10 {
        of if of == COOKIES[0] => counts(bytes),
        of if of == COOKIES[1] => {
            let length = word(bytes, 4)? as usize;
            let packed = bytes.get(8..).filter(|rest| rest.len() >= length).ok_or("the histogram is cut")?;
            let mut encoded = Vec::new();
            let unpacked = ZlibDecoder::new(&packed[..length]).take(HISTOGRAM_BYTES_MAX).read_to_end(&mut encoded);
            unpacked.map_err(|error| format!("the histogram is not compressed with zlib: {error}"))?;
            if word(&encoded, 0)? | 0x10 != COOKIES[0] {
                return Err("the compressed histogram is in no V2 encoding".to_owned());
            }
            counts(&encoded)
        }
        _ => Err(format!("only histograms in the V2 encoding can be read (its first word is {cookie:#010x})")),
    }
}

/// Reads a histogram in the V2 encoding: a header of [`HEADER_BYTES`], then the counts by cell. A negative count is a number
/// of empty cells.
fn counts(bytes: &[u8]) -> Result<Decoded, String> {
    let (length, offset, digits) = (word(bytes, 4)? as usize, word(bytes, 8)?, word(bytes, 12)?);
    let lowest = u64::from(word(bytes, 16)?) << 32 | u64::from(word(bytes, 20)?);
    if offset != 0 || digits > 5 || lowest == 0 {
        return Err(format!(
            "shifted histograms and those with more than 5 digits cannot be read (offset {offset}, {digits} digits)"
        ));
    }
    // The cells of a value: as many as twice the resolution, rounded up to a power of two.
    let half_bits = (2 * 10_u64.pow(digits)).next_power_of_two().trailing_zeros() - 1;
    let half = 1_u64 << half_bits;
    let unit_bits = lowest.ilog2();
    let end = HEADER_BYTES.checked_add(length).filter(|&end| end <= bytes.len()).ok_or("the histogram is cut")?;
    let mut rest = &bytes[HEADER_BYTES..end];
    let (mut histogram, mut last_ns, mut index) = (Histogram::default(), None, 0_u64);
    while !rest.is_empty() {
        let number = take(&mut rest).ok_or("the histogram is cut")?;
        if number <= 0 {
            index = index.checked_add(number.unsigned_abs().max(1)).ok_or("the histogram has too many cells")?;
            continue;
        }
        // The first two halves have cells of one unit; each next one is twice as wide.
        let shift = (index >> half_bits).saturating_sub(1);
        let place = if index < 2 * half { index } else { (index & (half - 1)) + half };
        let shift = shift.saturating_add(u64::from(unit_bits)).min(64);
        let (from, end) = (u128::from(place) << shift, u128::from(place + 1) << shift);
        let cell = i64::try_from(from).ok().zip(i64::try_from(end - 1).ok());
        let (lowest_ns, highest_ns) = cell.ok_or("a cell is out of range")?;
        histogram.total().checked_add(number.unsigned_abs()).ok_or("the histogram has too many samples")?;
        histogram.add(highest_ns, number.unsigned_abs());
        last_ns = Some(lowest_ns..=highest_ns);
        index += 1;
    }
    Ok(Decoded { histogram, last_ns })
}

/// Takes a number off the begin: LEB128 of its zigzag value, with at most 9 bytes, of which the last one has 8 bits.
fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut zigzag = 0_u64;
    for at in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let is_last = at == 8 || byte < 0x80;
        let bits = if at == 8 { byte } else { byte & 0x7f };
        zigzag |= u64::from(bits) << (7 * at);
        if is_last {
            break;
        }
    }
    Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

/// The word at a place, in network byte order.
fn word(bytes: &[u8], at: usize) -> Result<u32, String> {
    let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_be_bytes).ok_or_else(|| "the histogram is cut".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_nine_bytes() {
        let number = |bytes: &[u8]| take(&mut &bytes[..]);
        assert_eq!(number(&[0x06]), Some(3));
        assert_eq!(number(&[0x05]), Some(-3));
        assert_eq!(number(&[0x80, 0x01]), Some(64));
        assert_eq!(number(&[0xff; 9]), Some(i64::MIN));
        assert_eq!(number(&[0x80]), None);
    }
}
