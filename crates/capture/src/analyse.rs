//! Computes the results for one stream of a file. Reads the file twice: the first pass finds the streams and their
//! grids, the second pass measures the selected stream.

use std::{
    cmp::Reverse,
    io::{self, Read},
};

use frames::wire_bytes;
use record::{Capture, CapturedPeriod, Caveat, PeriodSource, Series};

use crate::{
    CaptureError, Filter, Interface, Reader,
    caveats::{self, FileSummary, IncompleteFrames},
    filter::{FrameMatch, Key},
    fit::Grid,
    measure::{Measure, Reference},
    source::ETHERNET,
    streams::{Stream, Streams},
};

/// Options of the analysis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Selects the frames. Among the selected streams, the busiest one is analysed.
    pub filter: Filter,
    /// Interval between frames, ns; `None` uses that of the stream's class, or the median interval.
    pub period_ns: Option<u64>,
    /// Bandwidth reserved for the stream, bit/s; `None` means one frame of the maximum length per period.
    pub idle_slope_bps: Option<u64>,
    /// Speed of the link, bit/s.
    pub link_bps: u64,
}

/// The results of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The figures of the stream.
    pub capture: Capture,
    /// The lateness of its frames.
    pub series: Series,
    /// Limitations of these figures.
    pub caveats: Vec<Caveat>,
}

/// The index of the interface with this name, or with this number if none has the name.
///
/// # Errors
/// If the file cannot be read, is not a capture, or has no such interface.
pub fn find_interface(from: impl Read, name: &str) -> Result<u32, CaptureError> {
    let mut reader = Reader::new(from)?;
    let position =
        |reader: &Reader<_>| reader.interfaces().iter().position(|interface| interface.name.as_deref() == Some(name));
    let mut found = position(&reader);
    while found.is_none() && reader.next()?.is_some() {
        found = position(&reader);
    }
    let number = || name.parse().ok().filter(|&number| number < reader.interfaces().len());
    found.or_else(number).and_then(|index| u32::try_from(index).ok()).ok_or_else(|| {
        let named = |(number, interface): (usize, &Interface)| match &interface.name {
            Some(name) => format!("{number} ({name})"),
            None => number.to_string(),
        };
        let found: Vec<_> = reader.interfaces().iter().enumerate().map(named).collect();
        CaptureError::NoInterface { wanted: name.to_owned(), found: found.join(", ") }
    })
}

/// Analyses the file `name`, which `open` must open twice.
///
/// # Errors
/// If the file cannot be read, is not a capture, or has no such stream.
pub fn analyse<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    name: &str,
    options: &Options,
) -> Result<Analysis, CaptureError> {
    let mut opened = || open().map_err(|reason| CaptureError::Open { reason });
    let (file, mut streams) = first_pass(opened()?, options)?;
    let index = select(&file, &streams, options)?;
    let mut list: Vec<_> = streams.all.iter().map(Stream::to_record).collect();
    list.sort_by_key(|stream| Reverse(stream.frames));
    let stream = streams.all.swap_remove(index);
    let record = stream.to_record();
    let (key, truncated, without_stamp) = (stream.key, stream.truncated, stream.without_stamp);
    let silent_ns = file.last_ns.map_or(0, |last_ns| last_ns.saturating_sub(stream.last_ns));
    let (reference, period) = reference(stream, &file, options)?;
    let measure = second_pass(opened()?, &options.filter, key, Measure::new(reference))?;
    let (capture, series) = measure.finish(Capture {
        file: name.to_owned(),
        format: file.format.to_owned(),
        file_frames: file.frames,
        streams: list,
        left_out: streams.left_out,
        stream: record,
        period,
        dropped: file.interfaces.get(key.interface as usize).map_or(0, |interface| interface.dropped),
        ..Capture::default()
    });
    let incomplete = IncompleteFrames { truncated, without_stamp, foreign: streams.foreign, silent_ns };
    let caveats = caveats::all(&capture, &file, &incomplete);
    Ok(Analysis { capture, series, caveats })
}

/// The first pass.
fn first_pass<R: Read>(from: R, options: &Options) -> Result<(FileSummary, Streams), CaptureError> {
    let mut reader = Reader::new(from)?;
    let mut streams = Streams::default();
    let mut last_ns = None;
    while let Some(packet) = reader.next()? {
        last_ns = last_ns.max(packet.at_ns);
        streams.add(&options.filter, &packet, options.period_ns);
    }
    let file = FileSummary {
        frames: reader.frames(),
        format: reader.format(),
        cut_at: reader.cut_at(),
        interfaces: reader.interfaces().to_vec(),
        last_ns,
    };
    Ok((file, streams))
}

/// The index of the stream to analyse.
fn select(file: &FileSummary, streams: &Streams, options: &Options) -> Result<usize, CaptureError> {
    if file.frames == 0 {
        return Err(CaptureError::Empty);
    }
    let other = file.interfaces.iter().find(|interface| interface.link_type != ETHERNET);
    if let (Some(other), true) = (other, streams.foreign == file.frames) {
        return Err(CaptureError::LinkType { found: other.link_type });
    }
    streams
        .busiest()
        .ok_or_else(|| CaptureError::NoStream { wanted: options.filter.to_string(), found: streams.describe_others() })
}

/// The reference for the stream, and its period for the record.
fn reference(
    stream: Stream,
    file: &FileSummary,
    options: &Options,
) -> Result<(Reference, CapturedPeriod), CaptureError> {
    let interface = file.interfaces.get(stream.key.interface as usize);
    let resolution_ns = interface.map_or(1, |interface| interface.resolution_ns);
    let wire_bits = wire_bytes(stream.longest as usize) as u64 * 8;
    if stream.first_ns.is_none() {
        return Err(CaptureError::NoStamps);
    }
    let tracked = stream.track.finish().ok_or(CaptureError::TooFew { frames: stream.frames })?;
    let nominal = tracked.nominal;
    let grid = Grid::fit(nominal, &tracked.earliest);
    let guessed = nominal.told_by == PeriodSource::Median;
    let ppm = (grid.period_ns / nominal.ns as f64 - 1.0) * 1e6;
    let period = CapturedPeriod {
        nominal_ns: nominal.ns,
        told_by: nominal.told_by,
        stretches: tracked.earliest.kept.len() as u64,
        fitted_ns: grid.period_ns,
        // A ratio to a period estimated from the same frames would be meaningless.
        clock_ppm: (!guessed).then_some(ppm),
        clock_error_ppm: (!guessed).then_some(grid.slope_error * 1e6),
        wander_ns: grid.wander_ns,
    };
    let one_frame_per_period_bps = u128::from(wire_bits) * 1_000_000_000 / u128::from(nominal.ns);
    let reference = Reference {
        nominal,
        grid,
        idle_slope_bps: options.idle_slope_bps.unwrap_or(u64::try_from(one_frame_per_period_bps).unwrap_or(u64::MAX)),
        idle_slope_asked: options.idle_slope_bps.is_some(),
        link_bps: options.link_bps,
        clock_ratio: period.clock_ppm.map_or(1.0, |_| nominal.ns as f64 / grid.period_ns),
        resolution_ns,
    };
    Ok((reference, period))
}

/// The second pass.
fn second_pass<R: Read>(from: R, filter: &Filter, key: Key, mut measure: Measure) -> Result<Measure, CaptureError> {
    let mut reader = Reader::new(from)?;
    while let Some(packet) = reader.next()? {
        match filter.classify(&packet) {
            FrameMatch::Stream(found, parsed) if found == key => measure.add(&packet, &parsed),
            _ => {}
        }
    }
    Ok(measure)
}
