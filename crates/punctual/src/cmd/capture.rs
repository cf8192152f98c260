//! `punctual capture`: analyses the timing of a stream in a capture file.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
    time::{Duration, Instant},
};

use analysis::format_duration;
use anyhow::{Context, bail};
use capture::CaptureError;
use record::{
    CaptureClock, grouped,
    visible::{self, Passes},
};

use crate::{
    cli::{Capture, TiedClock},
    exit::Usage,
    output::{self, RecordFiles},
};

/// Time without output before progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);

pub fn run(options: &Capture) -> anyhow::Result<u8> {
    output::find_profiles(&options.profiles)?;
    if let Some(idle_slope) = options.idle_slope.filter(|idle_slope| idle_slope.0 > options.link_speed.0) {
        let [idle_slope, link] = [idle_slope, options.link_speed].map(|rate| grouped(rate.0));
        let text = format!("--idle-slope must be at most --link-speed, {link} bit/s (got {idle_slope} bit/s)");
        return Err(Usage(text).into());
    }
    let files = RecordFiles::choose(options.record.as_deref(), options.record.is_none())?;
    let files = files.with_exports(&options.exports)?;
    if let Some(path) = &files.record {
        record::file::check_writable(path)?;
    }
    let name = options.file.display().to_string();
    let path = readable_twice(&options.file)?;
    let begin = Instant::now();
    let show = !options.output.quiet && visible::stderr(Passes::Text).is_terminal();
    let total = std::fs::metadata(path).map_or(0, |file| file.len()).saturating_mul(2);
    let (mut passes, started_at) = (0, campaign::now());
    let open = || {
        let done = total / 2 * passes;
        passes += 1;
        Ok(ProgressReader { file: File::open(path)?, begin, done, total, last_shown: begin, show })
    };
    let interface = options.interface.as_deref().map(|wanted| find_interface(path, wanted)).transpose();
    let interface = interface.with_context(|| name.clone())?;
    let analysis = capture::analyse(open, &name, &analysis_options(options, interface)).with_context(|| name.clone());
    if show && begin.elapsed() > PROGRESS_AFTER {
        say_part!(Passes::Drawing, "\r\x1b[K");
    }
    let mut record = capture::to_record(analysis?, output::command_line());
    record.started_at = started_at;
    record.written_at = campaign::now();
    record.scenario.profiles.clone_from(&options.profiles);
    output::judge(&mut record, &options.profiles)?;
    output::deliver(options.output, options.extent, &record, &files, |style, width| {
        report::terminal::summary(&record, style, width)
    })?;
    Ok(output::status(&record))
}

/// The path to open: a capture is read twice, which a pipe does not allow. `-` is the standard input unless a file has
/// this name.
fn readable_twice(file: &Path) -> anyhow::Result<&Path> {
    const STDIN: &str = "/dev/stdin";
    let is_stdin = file == Path::new("-") && !file.exists();
    let path = if is_stdin { Path::new(STDIN) } else { file };
    // Opening a FIFO would wait for a writer, and reading a terminal for its user.
    let kind = std::fs::metadata(path).map(|file| file.file_type());
    let is_pipe = kind.is_ok_and(|kind| if is_stdin { !kind.is_file() } else { kind.is_fifo() });
    if is_pipe {
        bail!("{}: a pipe cannot be read twice: write the capture to a file first", file.display());
    }
    Ok(path)
}

fn find_interface(path: &Path, wanted: &str) -> Result<u32, CaptureError> {
    let file = File::open(path).map_err(|reason| CaptureError::Open { reason })?;
    capture::find_interface(file, wanted)
}

fn analysis_options(options: &Capture, interface: Option<u32>) -> capture::Options {
    capture::Options {
        filter: capture::Filter {
            interface,
            stream: options.stream_id,
            vlan: options.vlan,
            source: options.source.map(|mac| mac.0),
            destination: options.destination.map(|mac| mac.0),
            ethertype: options.ethertype,
            udp: options.udp,
        },
        period_ns: options.period,
        analysed: None,
        number: options.stream.map(|number| number as usize),
        stream_periods_ns: Vec::new(),
        idle_slope_bps: options.idle_slope.map(|rate| rate.0),
        link_bps: options.link_speed.0,
        clock: options.clock.map(|clock| match clock {
            TiedClock::Gptp => CaptureClock::Gptp,
            TiedClock::Utc => CaptureClock::Utc,
        }),
    }
}

/// Reads a file, and shows the progress and the time left on standard error.
struct ProgressReader {
    file: File,
    begin: Instant,
    done: u64,
    total: u64,
    last_shown: Instant,
    show: bool,
}

impl Read for ProgressReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.done += read as u64;
        let elapsed = self.begin.elapsed();
        if self.show
            && elapsed > PROGRESS_AFTER
            && self.last_shown.elapsed() > Duration::from_millis(200)
            && self.total > 0
        {
            self.last_shown = Instant::now();
            let share = self.done as f64 / self.total as f64;
            let left_s = (elapsed.as_secs_f64() * (1.0 / share - 1.0)).max(0.0).ceil();
            let left_s = Duration::try_from_secs_f64(left_s).unwrap_or_default().as_secs();
            let left = format_duration(left_s.saturating_mul(1_000_000_000));
            say_part!(Passes::Drawing, "\r{:3.0} %, {left} left\x1b[K", share * 100.0);
        }
        Ok(read)
    }
}
