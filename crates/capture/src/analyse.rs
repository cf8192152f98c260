//! A file in, the figures of one of its streams out. The file is read twice: first for its streams and their grids, then
//! for the stream that is looked at.

use std::{
    cmp::Reverse,
    io::{self, Read},
};

use frames::wire_bytes;
use record::{Capture, CapturedPeriod, Caveat, Series, ToldBy};

use crate::{
    CaptureError, Filter, Reader,
    caveats::{self, FileSummary, Unclear},
    filter::{Key, Seen},
    fit::Grid,
    measure::{Against, Measure},
    source::ETHERNET,
    streams::{Stream, Streams},
};

/// What is asked of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which frames count; of the streams among them the busiest is taken.
    pub filter: Filter,
    /// Time from frame to frame, ns; `None` for that of the stream's class, or the median.
    pub period_ns: Option<u64>,
    /// Bandwidth that is reserved for the stream, bit/s; `None` for its longest frame once a period.
    pub idle_slope_bps: Option<u64>,
    /// Speed of the link, bit/s.
    pub link_bps: u64,
}

/// What a capture tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The stream.
    pub capture: Capture,
    /// Its lateness.
    pub series: Series,
    /// What these figures cannot tell.
    pub caveats: Vec<Caveat>,
}

/// Analyses the file called `name` that `open` opens; twice.
///
/// # Errors
/// When it cannot be read, is no capture, or holds no such stream.
pub fn analyse<R: Read>(
    mut open: impl FnMut() -> io::Result<R>,
    name: &str,
    options: &Options,
) -> Result<Analysis, CaptureError> {
    let mut opened = || open().map_err(|reason| CaptureError::Open { reason });
    let (file, mut streams) = survey(opened()?, options)?;
    let index = pick(&file, &streams, options)?;
    let mut list: Vec<_> = streams.all.iter().map(Stream::to_record).collect();
    list.sort_by_key(|stream| Reverse(stream.frames));
    let stream = streams.all.swap_remove(index);
    let told = stream.to_record();
    let (key, snapped, without_stamp) = (stream.key, stream.snapped, stream.without_stamp);
    let (against, period) = against(stream, &file, options)?;
    let measure = look_again(opened()?, &options.filter, key, Measure::new(against))?;
    let (capture, series) = measure.finish(Capture {
        file: name.to_owned(),
        format: file.format.to_owned(),
        file_frames: file.frames,
        streams: list,
        left_out: streams.left_out,
        stream: told,
        period,
        dropped: file.interfaces.get(key.interface as usize).map_or(0, |interface| interface.dropped),
        ..Capture::default()
    });
    let caveats = caveats::all(&capture, &file, &Unclear { snapped, without_stamp, foreign: streams.foreign });
    Ok(Analysis { capture, series, caveats })
}

/// The first look.
fn survey<R: Read>(from: R, options: &Options) -> Result<(FileSummary, Streams), CaptureError> {
    let mut reader = Reader::new(from)?;
    let mut streams = Streams::default();
    while let Some(packet) = reader.next()? {
        streams.take_in(&options.filter, &packet, options.period_ns);
    }
    let file = FileSummary {
        frames: reader.frames(),
        format: reader.format(),
        cut_at: reader.cut_at(),
        interfaces: reader.interfaces().to_vec(),
    };
    Ok((file, streams))
}

/// The stream to look at.
fn pick(file: &FileSummary, streams: &Streams, options: &Options) -> Result<usize, CaptureError> {
    if file.frames == 0 {
        return Err(CaptureError::Empty);
    }
    let other = file.interfaces.iter().find(|interface| interface.link_type != ETHERNET);
    if let (Some(other), true) = (other, streams.foreign == file.frames) {
        return Err(CaptureError::LinkType { found: other.link_type });
    }
    streams
        .busiest()
        .ok_or_else(|| CaptureError::NoStream { wanted: options.filter.to_string(), found: streams.others_in_words() })
}

/// What the stream is held against, and its period as the record tells it.
fn against(stream: Stream, file: &FileSummary, options: &Options) -> Result<(Against, CapturedPeriod), CaptureError> {
    let interface = file.interfaces.get(stream.key.interface as usize);
    let resolution_ns = interface.map_or(1, |interface| interface.resolution_ns);
    let wire_bits = wire_bytes(stream.longest as usize) as u64 * 8;
    if stream.first_ns.is_none() {
        return Err(CaptureError::NoStamps);
    }
    let tracked = stream.track.finish().ok_or(CaptureError::TooFew { frames: stream.frames })?;
    let nominal = tracked.nominal;
    let grid = Grid::fit(nominal, &tracked.earliest);
    let guessed = nominal.told_by == ToldBy::Median;
    let ppm = (grid.period_ns / nominal.ns as f64 - 1.0) * 1e6;
    let period = CapturedPeriod {
        nominal_ns: nominal.ns,
        told_by: nominal.told_by,
        stretches: tracked.earliest.kept.len() as u64,
        fitted_ns: grid.period_ns,
        // Against a guess from the same frames it would tell nothing.
        clock_ppm: (!guessed).then_some(ppm),
        clock_error_ppm: (!guessed).then_some(grid.slope_error * 1e6),
        wander_ns: grid.wander_ns,
    };
    let once_a_period = u128::from(wire_bits) * 1_000_000_000 / u128::from(nominal.ns);
    let against = Against {
        nominal,
        grid,
        idle_slope_bps: options.idle_slope_bps.unwrap_or(u64::try_from(once_a_period).unwrap_or(u64::MAX)),
        idle_slope_asked: options.idle_slope_bps.is_some(),
        link_bps: options.link_bps,
        clock_ratio: period.clock_ppm.map_or(1.0, |_| nominal.ns as f64 / grid.period_ns),
        resolution_ns,
    };
    Ok((against, period))
}

/// The second look.
fn look_again<R: Read>(from: R, filter: &Filter, key: Key, mut measure: Measure) -> Result<Measure, CaptureError> {
    let mut reader = Reader::new(from)?;
    while let Some(packet) = reader.next()? {
        match filter.look(&packet) {
            Seen::Of(found, parsed) if found == key => measure.take_in(&packet, &parsed),
            _ => {}
        }
    }
    Ok(measure)
}
