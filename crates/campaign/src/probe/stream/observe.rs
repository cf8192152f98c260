//! The capture of a run's own stream: an observer beside the talker and the listener, and what its file tells at the end.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use machine::Root;
use probes::stream::observer::{FrameSink, Observer};
use record::{CAPTURE, Caveat, ObservedAt, Record};

use super::{StreamProbe, error::StreamError, interface::link_bps, places::Places};
use crate::probe::definition::PrepareError;

/// Extension of a capture that lies beside its record.
pub const EXTENSION: &str = "pcapng";
/// Speed of a link that has none, as a virtual one, bit/s.
const LINK_BPS: u64 = 1_000_000_000;
/// Frames are written in pieces of this length, bytes.
const PIECE: usize = 256 << 10;

/// Where the frames of a stream go that an observer captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureTo {
    /// Into this file.
    File(PathBuf),
    /// Beside the record, under its name with the extension `EXTENSION`.
    BesideRecord,
}

/// Captured frames on their way to the file.
#[derive(Debug)]
struct Kept(capture::Writer<BufWriter<File>>);

impl FrameSink for Kept {
    fn store(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()> {
        self.0.frame(at_ns, frame, length)
    }

    fn end(&mut self, dropped: u64) -> io::Result<()> {
        self.0.end(dropped)
    }
}

impl StreamProbe {
    /// Where the observer stands: where frames come in, if this machine is that end, else where they leave.
    fn observed_at(&self) -> ObservedAt {
        if self.listens() { ObservedAt::Receiving } else { ObservedAt::Sending }
    }

    /// True if an observer would see no frame, because frames take another route through the kernel.
    pub(super) fn is_hidden(&self) -> bool {
        if self.listens() { self.xdp.is_some() } else { !self.mode.is_seen() }
    }

    /// Starts the observer, where one is asked for.
    pub(super) fn observer(
        &self,
        record_path: Option<&Path>,
        places: &Places,
    ) -> Result<Option<Observer>, PrepareError> {
        let Some(path) = self.capture_file(record_path) else { return Ok(None) };
        let at = self.observed_at();
        let (interface, in_words) = match at {
            ObservedAt::Receiving => (places.far_interface(), "where frames come in"),
            ObservedAt::Sending => (places.near_interface(), "where frames leave"),
        };
        let receiver = places.observed(at)?;
        let failed = |source| StreamError::Capture { path: path.clone(), source };
        let to = BufWriter::with_capacity(PIECE, File::create(&path).map_err(failed)?);
        let writer = capture::Writer::begin(to, interface, in_words).map_err(failed)?;
        let own = self.talks().then(|| frames::stream_id(places.mac(), self.unique_id));
        let wanted = own.or(self.stream_id);
        Ok(Some(Observer::start(receiver, Kept(writer), wanted)?))
    }

    /// The file that captured frames go into; `None` where none are captured.
    pub(crate) fn capture_file(&self, record_path: Option<&Path>) -> Option<PathBuf> {
        match self.capture.as_ref()? {
            CaptureTo::File(path) => Some(path.clone()),
            CaptureTo::BesideRecord => Some(record_path?.with_extension(EXTENSION)),
        }
    }
}

/// Adds the analysis of the stream's capture to the record of a run.
pub(crate) fn add_capture(record: &mut Record, stream: &StreamProbe, record_path: Option<&Path>, root: &Root) {
    let Some(path) = stream.capture_file(record_path) else { return };
    let ends = record.series.iter().filter_map(|series| series.kind.stream());
    let Some(identity) = ends.map(|end| end.identity().clone()).find(|identity| !identity.stream_id.is_empty()) else {
        return say(record, &path, "no frame of a stream came");
    };
    let options = capture::Options {
        filter: capture::Filter {
            stream: u64::from_str_radix(&identity.stream_id, 16).ok(),
            ..capture::Filter::default()
        },
        period_ns: record.phases.first().map(|phase| phase.period_ns),
        idle_slope_bps: None,
        link_bps: stream.interface().and_then(|name| link_bps(root, name)).unwrap_or(LINK_BPS),
    };
    match capture::analyse(|| File::open(&path), &path.to_string_lossy(), &options) {
        Ok(analysis) => add(record, stream.observed_at(), analysis),
        Err(error) => say(record, &path, &error.to_string()),
    }
}

/// Adds what the analysis found.
fn add(record: &mut Record, at: ObservedAt, analysis: capture::Analysis) {
    let capture::Analysis { mut capture, mut series, caveats } = analysis;
    if let Some(phase) = record.phases.first() {
        series.phase.clone_from(&phase.name);
    }
    let is_seen = |end: &&record::Stream| match at {
        ObservedAt::Receiving => end.listener().is_some(),
        ObservedAt::Sending => end.talker().is_some(),
    };
    let interface = record.series.iter().filter_map(|series| series.kind.stream()).find(is_seen);
    let interface = interface.map(|end| end.identity().interface.clone()).unwrap_or_default();
    capture.observer = Some(record::Observer { interface, at });
    let named = |caveat: Caveat| Caveat { text: format!("capture: {}", caveat.text), ..caveat };
    record.caveats.extend(caveats.into_iter().map(named));
    record.caveats.push(Caveat {
        kind: "observer".to_owned(),
        text: "capturing on the machine that is measured takes time from it: without a capture its own figures may be better; what \
               a network card adds, only a tap with stamps of its own sees"
            .to_owned(),
    });
    // Its latest frames stand in the capture; spikes are what the run's own threads had.
    (series.spikes, series.spikes_total) = (Vec::new(), 0);
    record.series.push(series);
    record.capture = Some(capture);
}

/// Says why there is nothing to add.
fn say(record: &mut Record, path: &Path, why: &str) {
    let text = format!("the capture {} tells nothing: {why}", path.display());
    record.caveats.push(Caveat { kind: CAPTURE.to_owned(), text });
}
