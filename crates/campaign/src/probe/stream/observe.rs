//! The capture of a run's own stream: an observer thread writes it to a file, which is analysed after the run.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
};

use machine::Root;
use probes::stream::observer::{FrameSink, Observer};
use record::{CAPTURE, Caveat, ObservedAt, Record};

use super::{StreamProbe, endpoints::Endpoints, error::StreamError, interface::link_bps};
use crate::probe::definition::{Definition, PrepareError};

/// Extension of a capture in the folder of its record.
pub const EXTENSION: &str = "pcapng";
/// Assumed speed of a link without a speed, such as a virtual one, bit/s.
const LINK_BPS: u64 = 1_000_000_000;
/// Size of the write buffer, bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// The file that an observer captures a stream to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureTo {
    /// This file.
    File(PathBuf),
    /// The file of the record with the extension `EXTENSION`.
    BesideRecord,
}

/// Writes captured frames to the file.
#[derive(Debug)]
struct CaptureFile(capture::Writer<BufWriter<File>>);

impl FrameSink for CaptureFile {
    fn store(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()> {
        self.0.frame(at_ns, frame, length)
    }

    fn end(&mut self, dropped: u64) -> io::Result<()> {
        self.0.end(dropped)
    }
}

impl StreamProbe {
    /// The side of the observer: where frames are received if the listener is on this machine, else where they are
    /// sent.
    fn observed_at(&self) -> ObservedAt {
        if self.listens() { ObservedAt::Receiving } else { ObservedAt::Sending }
    }

    /// True if an observer would see no frame, because the frames bypass its socket.
    pub(super) fn is_hidden(&self) -> bool {
        if self.listens() { self.xdp.is_some() } else { !self.mode.is_seen() }
    }

    /// Starts the observer; `None` if no capture is requested.
    pub(super) fn observer(
        &self,
        record_path: Option<&Path>,
        endpoints: &Endpoints,
    ) -> Result<Option<Observer>, PrepareError> {
        let Some(path) = self.capture_file(record_path) else { return Ok(None) };
        let at = self.observed_at();
        let (interface, in_words) = match at {
            ObservedAt::Receiving => (endpoints.far_interface(), "where frames come in"),
            ObservedAt::Sending => (endpoints.near_interface(), "where frames leave"),
        };
        let receiver = endpoints.observed(at)?;
        let failed = |source| StreamError::Capture { path: path.clone(), source };
        let to = BufWriter::with_capacity(BUFFER_BYTES, record::file::create(&path).map_err(failed)?);
        let writer = capture::Writer::begin(to, interface, in_words).map_err(failed)?;
        let source = endpoints.mac();
        let own = self.groups(self.period_ns()).into_iter().flat_map(|group| group.streams);
        let own = own.filter(|_| self.talks()).map(|(unique_id, _)| frames::stream_id(source, unique_id));
        let heard = self.heard.iter().map(|named| named.stream_id).chain(self.stream_id);
        let wanted = own.chain(heard).collect();
        Ok(Some(Observer::start(receiver, CaptureFile(writer), wanted)?))
    }

    /// The file of the capture; `None` if no capture is requested.
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
        return add_failure(record, &path, "no frame of a stream was captured");
    };
    let options = capture::Options {
        // The observer stored only streams of this run, so each is listed.
        filter: capture::Filter::default(),
        number: None,
        analysed: u64::from_str_radix(&identity.stream_id, 16).ok(),
        period_ns: record.phases.first().map(|phase| phase.period_ns),
        stream_periods_ns: periods_ns(record, stream),
        idle_slope_bps: None,
        link_bps: stream.interface().and_then(|name| link_bps(root, name)).unwrap_or(LINK_BPS),
        // The presentation times are those of the talker's clock, and the stamps those of the system clock.
        clock: None,
    };
    match capture::analyse(|| File::open(&path), &path.to_string_lossy(), &options) {
        Ok(analysis) => add(record, stream.observed_at(), analysis),
        Err(error) => add_failure(record, &path, &error.to_string()),
    }
}

/// The period of each stream of the run whose id is known, ns. A talker can have several.
fn periods_ns(record: &Record, stream: &StreamProbe) -> Vec<(u64, u64)> {
    let talkers = record.series.iter().filter_map(|series| Some((series, series.kind.talker()?)));
    let sent = talkers.flat_map(|(series, talker)| {
        let ids = talker.streams.iter().map(|sent| &sent.stream_id).chain([&talker.identity.stream_id]);
        ids.filter_map(|id| Some((u64::from_str_radix(id, 16).ok()?, series.period_ns)))
    });
    let heard = stream.heard.iter().map(|named| (named.stream_id, named.period_ns));
    heard.chain(sent).collect()
}

/// Adds the analysis of the capture to the record.
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
        text: "capturing takes CPU time from the measured machine, so its figures may be better without a capture; \
        only a tap with its own timestamps sees the delay of the network card"
            .to_owned(),
    });
    // The capture lists its latest frames; the spikes of a record are those of its own threads.
    (series.spikes, series.spikes_total) = (Vec::new(), 0);
    record.series.push(series);
    record.capture = Some(capture);
}

/// Adds a caveat that the capture could not be analysed.
fn add_failure(record: &mut Record, path: &Path, reason: &str) {
    let text = format!("the capture {} could not be analysed: {reason}", path.display());
    record.caveats.push(Caveat { kind: CAPTURE.to_owned(), text });
}
