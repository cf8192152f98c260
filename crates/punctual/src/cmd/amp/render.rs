//! `punctual amp render`.

use std::{
    collections::BTreeMap,
    fs, iter,
    num::NonZero,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use ::play::{
    RigLoader,
    render::{Form, RenderError, Rendered, Through, render},
};
use amp::{Parameter, Rig};
use anyhow::{Context, bail};
use record::{
    file::{FileError, fill_or_send},
    grouped,
    visible::{self, Passes},
};

use super::{loader, note, open_recording, rig, to_usage};
use crate::{
    cli::AmpRender,
    exit::{INTERRUPTED, Usage},
    output,
};

/// Usage error for `--bare` without a model.
const BARE_WITHOUT_MODEL: &str = "--bare plays the model alone: add --model FILE";
/// Time after which progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Time between two updates of the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// A recording to render.
struct Job<'o> {
    options: &'o AmpRender,
    rig: &'o Rig,
    input: &'o Path,
    output: PathBuf,
    /// Number of frames; 0 if the file does not state it.
    frames: u64,
}

/// A rendered recording, with its notes.
struct Done {
    rendered: Rendered,
    /// Number of channels of the recording.
    channels: usize,
    seconds: f64,
}

/// The result of all recordings: how many failed, and how many a signal stopped.
struct Ended {
    failed: usize,
    unfinished: usize,
}

/// The state that the workers share.
struct Work<'o> {
    jobs: Vec<Job<'o>>,
    next: AtomicUsize,
    /// Frames that were rendered.
    frames: AtomicU64,
}

pub fn run(options: &AmpRender) -> anyhow::Result<u8> {
    check_combination(options)?;
    let outputs = outputs(options)?;
    let rig = rig::load(&options.rig)?;
    for output in &outputs {
        let inputs = rig.paths().chain(options.inputs.iter().map(PathBuf::as_path));
        refuse_to_overwrite(output, inputs.chain(options.rig.preset.as_deref()))?;
    }
    let job = |(input, output): (_, PathBuf)| {
        // A pipe can be read only once. What is wrong with a file is reported when it is rendered, so that the others are.
        let is_file = !is_stream(input) && input.is_file();
        let recording = if is_file { open_recording(input).ok() } else { None };
        let frames = recording.and_then(|recording| recording.properties().frames).unwrap_or(0);
        Job { options, rig: &rig, input, output, frames }
    };
    let inputs = options.inputs.iter().map(PathBuf::as_path);
    let jobs: Vec<_> = inputs.zip(outputs).map(job).collect();
    let work = Work { jobs, next: AtomicUsize::new(0), frames: AtomicU64::new(0) };
    // So that a signal leaves no incomplete file behind. It must still end a wait for a pipe.
    let to_file = |output: &Path| !is_stream(output) && (output.is_file() || !output.exists());
    if work.jobs.iter().all(|job| job.input.is_file() && to_file(&job.output)) {
        sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    }
    let Ended { failed, unfinished } = work.run()?;
    if unfinished > 0 {
        note("interrupted: recordings that were not finished were not written");
        return Ok(INTERRUPTED);
    }
    match (failed, work.jobs.len()) {
        (0, _) => Ok(0),
        (failed, count) => bail!("{failed} of {count} recordings were not rendered, for the reasons above"),
    }
}

/// The file to write for each input.
fn outputs(options: &AmpRender) -> Result<Vec<PathBuf>, Usage> {
    let AmpRender { inputs, output, .. } = options;
    if !output.is_dir() {
        let has_slash = output.as_os_str().as_bytes().ends_with(b"/");
        return match &inputs[..] {
            [_] if has_slash => Err(Usage(format!(
                "{} is no folder: create it, or name a file without `/` at the end",
                output.display()
            ))),
            [_] if is_of_other_format(output) => Err(Usage(format!(
                "recordings are rendered to WAV files, and {} is named as another kind: name it {}",
                output.display(),
                output.with_extension("wav").display()
            ))),
            [_] => Ok(vec![output.clone()]),
            _ => Err(Usage(format!(
                "several recordings are rendered to a folder, and {} is none: name a folder, or create it",
                output.display()
            ))),
        };
    }
    let mut named: BTreeMap<PathBuf, &Path> = BTreeMap::new();
    let mut outputs = Vec::new();
    for input in inputs {
        let Some(stem) = input.file_stem().filter(|_| !is_stream(input)) else {
            return Err(Usage(format!("standard input has no name for a file in {}: name a file", output.display())));
        };
        let mut name = stem.to_owned();
        name.push(".wav");
        let path = output.join(name);
        if let Some(other) = named.insert(path.clone(), input) {
            let (input, other, path) = (input.display(), other.display(), path.display());
            return Err(Usage(format!("{other} and {input} would both be written to {path}: render them separately")));
        }
        outputs.push(path);
    }
    Ok(outputs)
}

/// True if the name of a file ends like that of a recording of another format.
fn is_of_other_format(path: &Path) -> bool {
    const OTHERS: [&str; 9] = ["flac", "aif", "aiff", "mp3", "ogg", "opus", "m4a", "aac", "wma"];
    path.extension().is_some_and(|ending| OTHERS.iter().any(|other| ending.eq_ignore_ascii_case(other)))
}

impl Work<'_> {
    /// Renders all recordings on all CPUs. If there is only one recording, its error is returned.
    fn run(&self) -> anyhow::Result<Ended> {
        let workers = thread::available_parallelism().map_or(1, NonZero::get).min(self.jobs.len());
        let (sender, results) = channel();
        let mut progress = Progress::new(self);
        let (mut failed, mut unfinished) = (0, self.jobs.len());
        thread::scope(|scope| {
            iter::repeat_n(sender, workers).for_each(|sender| drop(scope.spawn(move || self.work(&sender))));
            loop {
                match results.recv_timeout(PROGRESS_EVERY) {
                    Ok((index, result)) => {
                        progress.clear();
                        let job: &Job = &self.jobs[index];
                        unfinished -= usize::from(!result.as_ref().is_err_and(is_stopped));
                        match result {
                            Ok(done) => job.print(&done),
                            Err(error) if is_stopped(&error) => {}
                            Err(error) if self.jobs.len() == 1 => return Err(error),
                            Err(error) => {
                                failed += 1;
                                job.print_failure(&error);
                            }
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => progress.draw(),
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        })?;
        Ok(Ended { failed, unfinished })
    }

    /// Renders recordings until there are none left.
    fn work(&self, results: &Sender<(usize, anyhow::Result<Done>)>) {
        loop {
            let index = self.next.fetch_add(1, Relaxed);
            let Some(job) = self.jobs.get(index).filter(|_| sys::signal::termination_requests() == 0) else { return };
            // The notes of the rig are the same for all recordings.
            let loader = if index == 0 { loader() } else { RigLoader::new(|_| ()) };
            let result = job.render(loader, &self.frames);
            if results.send((index, result)).is_err() {
                return;
            }
        }
    }
}

fn check_combination(options: &AmpRender) -> Result<(), Usage> {
    let rig = &options.rig;
    let has_chain_switch =
        rig.neutral || rig.series || rig.parallel || rig.cab_normalised || rig.cab_without_delay || options.mono;
    let has_chain_option = has_chain_switch
        || rig.preset.is_some()
        || rig.model2.is_some()
        || rig.cab.is_some()
        || rig.reverb_ir.is_some()
        || !rig.set.is_empty();
    let text = match options.bare {
        true if has_chain_option => {
            "--bare plays the model alone, on one channel: leave out --preset, --model2, --cab, --set and all other \
             options of the chain"
        }
        true if rig.model.is_none() => BARE_WITHOUT_MODEL,
        false if options.no_prewarm => "--no-prewarm applies to a model alone: add --bare",
        _ => return Ok(()),
    };
    Err(Usage(text.to_owned()))
}

/// True if a signal stopped the rendering.
fn is_stopped(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(RenderError::Stopped))
}

impl Job<'_> {
    /// Renders the recording; adds the number of frames that were rendered to `frames`.
    fn render(&self, loader: RigLoader, frames: &AtomicU64) -> anyhow::Result<Done> {
        let Self { options, input, output, .. } = self;
        let began = Instant::now();
        let mut recording = open_recording(input)?;
        let channels = recording.properties().channels;
        let channel = options.channel.map(|number| usize::from(number) - 1);
        if channel.is_some_and(|channel| channel >= channels) {
            let number = channel.map_or(0, |channel| channel + 1);
            let text = format!("{} has no channel {number}: use 1 to {channels}", input.display());
            return Err(Usage(text).into());
        }
        let form = Form { channel, rate_hz: options.rate, mono: options.mono };
        let through = self.through(loader)?;
        let mut counted = 0;
        let mut on_progress = |done: u64| {
            frames.fetch_add(done - counted, Relaxed);
            counted = done;
            sys::signal::termination_requests() == 0
        };
        let failed = |error| self.render_error(error);
        let rendered = if is_stream(output) {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let rendered = render(&mut recording, through, form, &mut bytes, &mut on_progress).map_err(failed)?;
            output::audio(bytes.get_ref())?;
            rendered
        } else {
            fill_or_send(output, |out| render(&mut recording, through, form, out, &mut on_progress).map_err(failed))?
        };
        Ok(Done { rendered, channels, seconds: began.elapsed().as_secs_f64() })
    }

    /// The model alone, or the chain.
    fn through(&self, loader: RigLoader) -> anyhow::Result<Through<'_>> {
        let Self { options, rig, .. } = self;
        if !options.bare {
            return Ok(Through::Chain { rig, loader });
        }
        let Some((path, file)) = rig.model(0) else {
            return Err(Usage(BARE_WITHOUT_MODEL.to_owned()).into());
        };
        let mut model = super::model(file, &options.rig.choice)?;
        if options.no_prewarm {
            model.reset(false);
        }
        let Some(rate_hz) = rig.rate_hz() else {
            bail!(
                "{} has a sample rate of {} Hz, and no file can be resampled to it",
                path.display(),
                file.sample_rate
            );
        };
        Ok(Through::Model { model: Box::new(model), rate_hz })
    }

    fn render_error(&self, error: RenderError) -> anyhow::Error {
        let input = self.input.display();
        match error {
            RenderError::Muted(index) => {
                let model = self.rig.model(index).map_or(Path::new("the model"), |(path, _)| path).display();
                anyhow::anyhow!("the output of {model} for {input} is NaN or infinite: choose another model")
            }
            RenderError::Load(error) => rig::load_error(error),
            RenderError::Recording(error) => anyhow::Error::from(error).context(input.to_string()),
            RenderError::Write(source) => FileError::Write { path: self.output.clone(), source }.into(),
            error @ RenderError::Stopped => error.into(),
            error @ RenderError::Rate(_) => to_usage(error, false),
        }
    }

    /// Prints why the recording was not rendered. Errors of files name the file themselves.
    fn print_failure(&self, error: &anyhow::Error) {
        let (input, text) = (self.input.display().to_string(), format!("{error:#}"));
        let names_it = text.contains(&input) || text.contains(&self.output.display().to_string());
        note(&if names_it { text } else { format!("{input}: {text}") });
    }

    /// Prints the properties of the output, with notes.
    fn print(&self, Done { rendered, channels, seconds }: &Done) {
        let input = self.input.display();
        if *channels > 1 && self.options.channel.is_none() {
            note(&format!("{input}: the mean of {channels} channels is played; --channel N plays one"));
        }
        if rendered.bad_input > 0 {
            note(&format!(
                "{} samples of {input} are more than 60 dB above full scale and were played as silence: if the file is \
                 scaled wrongly, run `sox in.wav out.wav norm`",
                grouped(rendered.bad_input),
            ));
        }
        if rendered.overloads > 0 {
            note(&format!(
                "{input}: models or gains raised samples to more than 60 dB above full scale, where they were clipped"
            ));
        }
        if rendered.clips > 0 && !self.options.bare {
            let rate_hz = rendered.inner_rate_hz;
            let remedy = match self.rig.settings.is_on(Parameter::LimiterOn) {
                true => {
                    format!("resampling raised the limited output: lower limiter.ceiling_db, or add --rate {rate_hz}")
                }
                false => "lower output.gain_db, or add --set limiter.on=on".to_owned(),
            };
            note(&format!("{input}: {} samples of the output are above full scale: {remedy}", grouped(rendered.clips)));
        }
        say!(
            "{} samples at {} Hz, {}, written to {}: {:.0}x real time",
            grouped(rendered.frames),
            rendered.rate_hz,
            if rendered.channels == 2 { "stereo" } else { "mono" },
            self.output.display(),
            rendered.duration_s / seconds.max(1e-6)
        );
    }
}

/// Refuses to overwrite an input file, even under another name.
fn refuse_to_overwrite<'a>(output: &Path, mut inputs: impl Iterator<Item = &'a Path>) -> Result<(), Usage> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    let is_output = |path: &&Path| fs::canonicalize(path).is_ok_and(|path| path == output);
    match inputs.find(is_output) {
        Some(path) if output.is_file() => {
            Err(Usage(format!("{} is an input and would be overwritten: write to another file", path.display())))
        }
        _ => Ok(()),
    }
}

/// True for standard input or output.
fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Shows the progress of long work on a terminal.
struct Progress<'w> {
    work: &'w Work<'w>,
    began: Instant,
    /// Number of frames of all recordings.
    frames: u64,
    is_shown: bool,
}

impl<'w> Progress<'w> {
    fn new(work: &'w Work<'w>) -> Self {
        let frames = work.jobs.iter().map(|job| job.frames).sum();
        Self { work, began: Instant::now(), frames, is_shown: false }
    }

    fn draw(&mut self) {
        if self.began.elapsed() < PROGRESS_AFTER || !visible::stderr(Passes::Text).is_terminal() {
            return;
        }
        let text = remaining(self.work.frames.load(Relaxed), self.frames, self.began.elapsed());
        say_part!(Passes::Drawing, "\r\x1b[Krendering: {text}");
        self.is_shown = true;
    }

    fn clear(&mut self) {
        if self.is_shown {
            say_part!(Passes::Drawing, "\r\x1b[K");
        }
        self.is_shown = false;
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The share that is complete, and the time that is left at the same speed; the number of frames if the total is not
/// known.
fn remaining(done: u64, total: u64, elapsed: Duration) -> String {
    if total == 0 || done > total {
        return format!("{} samples", grouped(done));
    }
    let share = done as f64 / total as f64;
    let left_s = match done {
        0 => "-".to_owned(),
        _ => format!("{:.0}", elapsed.as_secs_f64() * (1.0 / share - 1.0)),
    };
    format!("{:.0} %, {left_s} s left", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_share() {
        let after = |done, total| remaining(done, total, Duration::from_secs(30));
        assert_eq!(after(25, 100), "25 %, 90 s left");
        assert_eq!(after(100, 100), "100 %, 0 s left");
        assert_eq!(after(0, 100), "0 %, - s left");
        assert_eq!(after(48_000, 0), "48,000 samples");
    }
}
