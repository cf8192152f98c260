//! `punctual amp render`.

use record::grouped;
use std::{
    fs,
    io::Cursor,
    path::Path,
    time::{Duration, Instant},
};

use ::play::render::{Audio, OnProgress, RenderError, RenderedChain, render_chain, render_model};
use amp::{Parameter, Rig, recording::Recording};
use anyhow::{Context, bail};
use hound::{SampleFormat, WavSpec, WavWriter};
use record::visible::{self, Passes};

use super::{loader, note, read_recording, rig, to_usage};
use crate::{cli::AmpRender, exit::Usage, output};

/// Usage error for `--bare` without a model.
const BARE_WITHOUT_MODEL: &str = "--bare plays the model alone: add --model FILE";
/// Time after which progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Time between two updates of the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

pub fn run(options: &AmpRender) -> anyhow::Result<u8> {
    check_combination(options)?;
    let input = read_input(options)?;
    let rig = rig::load(&options.rig)?;
    let inputs = rig.paths().chain([options.input.as_path()]).chain(options.rig.preset.as_deref());
    refuse_to_overwrite(&options.output, inputs)?;
    let began = Instant::now();
    let mut progress = Progress::default();
    let mut on_progress = |done, total| progress.update(done, total);
    let rendered = match options.bare {
        true => bare(options, &rig, &input, &mut on_progress)?,
        false => chain(options, &rig, &input, &mut on_progress)?,
    };
    drop(progress);
    let seconds = began.elapsed().as_secs_f64();
    write(&options.output, &rendered)?;
    let duration_s = input.frames() as f64 / f64::from(input.rate_hz);
    say!(
        "{} samples at {} Hz, {}, written to {}: {:.0}x real time",
        grouped(rendered.frames() as u64),
        rendered.rate_hz,
        if rendered.channels.len() == 2 { "stereo" } else { "mono" },
        options.output.display(),
        duration_s / seconds.max(1e-6)
    );
    Ok(0)
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

/// Renders through the model alone.
fn bare(options: &AmpRender, rig: &Rig, input: &Audio, on_progress: &mut OnProgress) -> anyhow::Result<Audio> {
    let Some((path, file)) = rig.model(0) else {
        return Err(Usage(BARE_WITHOUT_MODEL.to_owned()).into());
    };
    let mut model = super::model(file, &options.rig.choice)?;
    if options.no_prewarm {
        model.reset(false);
    }
    let Some(model_hz) = rig.rate_hz() else {
        bail!("{} has a sample rate of {} Hz, and no file can be resampled to it", path.display(), file.sample_rate);
    };
    let to_hz = options.rate.unwrap_or(input.rate_hz);
    render_model(&mut model, model_hz, input, to_hz, on_progress).map_err(|error| render_error(error, options, rig))
}

/// Renders through the whole chain.
fn chain(options: &AmpRender, rig: &Rig, input: &Audio, on_progress: &mut OnProgress) -> anyhow::Result<Audio> {
    let to_hz = options.rate.unwrap_or(input.rate_hz);
    let rendered = render_chain(rig, loader(), input, to_hz, options.mono, on_progress)
        .map_err(|error| render_error(error, options, rig))?;
    print_notes(&rendered, options, rig);
    Ok(rendered.audio)
}

fn render_error(error: RenderError, options: &AmpRender, rig: &Rig) -> anyhow::Error {
    match error {
        RenderError::Muted(index) => {
            let model = rig.model(index).map_or(Path::new("the model"), |(path, _)| path).display();
            let input = options.input.display();
            anyhow::anyhow!("the output of {model} for {input} is NaN or infinite: choose another model")
        }
        RenderError::Load(error) => rig::load_error(error),
        error @ RenderError::Rate(_) => to_usage(error, false),
    }
}

fn print_notes(rendered: &RenderedChain, options: &AmpRender, rig: &Rig) {
    if rendered.bad_input > 0 {
        note(&format!(
            "{} samples of {} are more than 60 dB above full scale and were played as silence: if the file is scaled \
             wrongly, run `sox in.wav out.wav norm`",
            grouped(rendered.bad_input),
            options.input.display()
        ));
    }
    if rendered.overloads > 0 {
        note("models or gains raised samples to more than 60 dB above full scale, where they were clipped");
    }
    if rendered.clips > 0 {
        let rate_hz = rendered.chain_rate_hz;
        let remedy = match rig.settings.is_on(Parameter::LimiterOn) {
            true => format!("resampling raised the limited output: lower limiter.ceiling_db, or add --rate {rate_hz}"),
            false => "lower output.gain_db, or leave the limiter on".to_owned(),
        };
        note(&format!("{} samples are above full scale: {remedy}", grouped(rendered.clips as u64)));
    }
}

fn read_input(options: &AmpRender) -> anyhow::Result<Audio> {
    let path = if is_stream(&options.input) { Path::new("/dev/stdin") } else { &options.input };
    let (file, channels) = Recording::read_all(&read_recording(path)?).with_context(|| path.display().to_string())?;
    let rate_hz = file.rate_hz;
    let count = channels.len();
    let guitar = match options.channel {
        Some(number) => channels.into_iter().nth(usize::from(number) - 1).ok_or_else(|| {
            let text = format!("{} has no channel {number}: use 1 to {count}", path.display());
            Usage(text)
        })?,
        None => {
            if count > 1 {
                note(&format!("{}: the mean of {count} channels is played; --channel N plays one", path.display()));
            }
            mean(channels)
        }
    };
    Ok(Audio { rate_hz, channels: vec![guitar] })
}

/// The mean of all channels, which have equal lengths.
fn mean(channels: Vec<Vec<f32>>) -> Vec<f32> {
    let share = 1.0 / channels.len().max(1) as f32;
    let mut channels = channels.into_iter();
    let mut sum = channels.next().unwrap_or_default();
    for channel in channels {
        sum.iter_mut().zip(channel).for_each(|(sum, sample)| *sum += sample);
    }
    sum.iter_mut().for_each(|sample| *sample *= share);
    sum
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

/// Writes a file as a whole or not at all. Pipes and devices are written to directly.
fn write(path: &Path, audio: &Audio) -> anyhow::Result<()> {
    let bytes = wav_bytes(audio).with_context(|| format!("cannot write {}", path.display()))?;
    if is_stream(path) {
        return output::audio(&bytes);
    }
    Ok(record::file::write_or_send(path, &bytes)?)
}

fn wav_bytes(audio: &Audio) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let channels = u16::try_from(audio.channels.len())?;
    let (sample_rate, sample_format) = (audio.rate_hz, SampleFormat::Float);
    let spec = WavSpec { channels, sample_rate, bits_per_sample: 32, sample_format };
    let mut writer = WavWriter::new(Cursor::new(&mut bytes), spec)?;
    for frame in 0..audio.frames() {
        audio.channels.iter().try_for_each(|channel| writer.write_sample(channel[frame]))?;
    }
    writer.finalize()?;
    Ok(bytes)
}

/// Shows the progress of long work on a terminal.
struct Progress {
    began: Instant,
    shown: Option<Instant>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { began: Instant::now(), shown: None }
    }
}

impl Progress {
    fn update(&mut self, done: usize, total: usize) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() > PROGRESS_EVERY);
        if self.began.elapsed() < PROGRESS_AFTER || !is_due || !visible::stderr(Passes::Text).is_terminal() {
            return;
        }
        let share = done as f64 / total as f64;
        let left = self.began.elapsed().as_secs_f64() * (1.0 / share - 1.0);
        say_part!(Passes::Drawing, "\r\x1b[Krendering: {:.0} %, {left:.0} s left", share * 100.0);
        self.shown = Some(Instant::now());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            say_part!(Passes::Drawing, "\r\x1b[K");
        }
    }
}
