//! `punctual amp render`.

use std::{
    fs::{self, File},
    io::{self, Cursor, IsTerminal, Write},
    path::Path,
    time::{Duration, Instant},
};

use amp::{Chain, Parameter, Rig, resample, wav};
use anyhow::{Context, bail};
use hound::{SampleFormat, WavSpec, WavWriter};

use super::rig;
use crate::{cli::AmpRender, exit::Usage, output};

/// Frames that are played at a time.
const PIECE: usize = 4096;
/// What is wrong where `--bare` stands alone.
const BARE_WITHOUT_MODEL: &str = "--bare is the model alone: add --model FILE";
/// Work that takes longer says how far it is.
const SILENT: Duration = Duration::from_secs(2);

/// What was played, one list a channel.
struct Played {
    rate_hz: u32,
    channels: Vec<Vec<f32>>,
}

pub fn run(options: &AmpRender) -> anyhow::Result<u8> {
    refuse_contradictions(options)?;
    let input = input(&options.input)?;
    let rig = rig::read(&options.rig)?;
    refuse_to_write_over(
        &options.output,
        rig.paths().chain([options.input.as_path()]).chain(options.rig.preset.as_deref()),
    )?;
    let seconds = input.channels[0].len() as f64 / f64::from(input.rate_hz);
    let begin = Instant::now();
    let played = if options.bare { bare(options, &rig, &input)? } else { whole(options, &rig, &input)? };
    let took = begin.elapsed().as_secs_f64();
    write(&options.output, &played)?;
    let Played { rate_hz, channels } = &played;
    let sides = if channels.len() == 2 { "stereo" } else { "mono" };
    say!(
        "{} samples at {rate_hz} Hz, {sides}, written to {}: {:.0}x real time",
        channels[0].len(),
        options.output.display(),
        seconds / took.max(1e-6)
    );
    Ok(0)
}

fn refuse_contradictions(options: &AmpRender) -> Result<(), Usage> {
    let rig = &options.rig;
    let of_chain =
        rig.neutral || rig.series || rig.parallel || rig.cab_normalised || rig.cab_without_delay || options.mono;
    let more = of_chain || rig.preset.is_some() || rig.model2.is_some() || rig.cab.is_some() || !rig.set.is_empty();
    let text = match options.bare {
        true if more => {
            "--bare is the model alone, on one channel: leave out --preset, --model2, --cab, --set and all else that is the chain's"
        }
        true if rig.model.is_none() => BARE_WITHOUT_MODEL,
        false if options.no_prewarm => "--no-prewarm begins a model as it was made: add --bare",
        _ => return Ok(()),
    };
    Err(Usage(text.to_owned()))
}

/// The model alone, at its own rate.
fn bare(options: &AmpRender, rig: &Rig, input: &Played) -> anyhow::Result<Played> {
    let Some((path, file)) = rig.model(0) else {
        return Err(Usage(BARE_WITHOUT_MODEL.to_owned()).into());
    };
    let mut model = super::model(file, &options.rig.choice)?;
    if options.no_prewarm {
        model.reset(false);
    }
    let Some(own_hz) = rig.rate_hz() else {
        bail!("{} is made for {} Hz, to which no file can be resampled", path.display(), file.sample_rate);
    };
    let samples = resampled(&input.channels[0], input.rate_hz, own_hz)?;
    let mut made = vec![0.0; samples.len()];
    let mut progress = Progress::new(samples.len());
    for (input, output) in samples.chunks(PIECE).zip(made.chunks_mut(PIECE)) {
        model.process(input, output);
        progress.add(input.len());
    }
    if model.is_muted() {
        bail!("{} makes what is no number of {}: choose another model", path.display(), options.input.display());
    }
    finish(options, input, own_hz, &[made])
}

/// The whole chain, at the first model's rate: a file can be resampled better than a signal that is being played.
fn whole(options: &AmpRender, rig: &Rig, input: &Played) -> anyhow::Result<Played> {
    let rate_hz = rig.rate_hz().unwrap_or(input.rate_hz);
    let samples = resampled(&input.channels[0], input.rate_hz, rate_hz)?;
    let (mut chain, controls) = Chain::new(rate_hz, &rig.settings, rig::parts(rig, rate_hz)?);
    let channels = play(&mut chain, samples);
    let meters = controls.meters();
    if let Some(place) = meters.muted.iter().position(|&is_muted| is_muted) {
        let model = rig.model(place).map_or(Path::new("the model"), |(path, _)| path).display();
        bail!("{model} makes what is no number of {}: choose another model", options.input.display());
    }
    if meters.bad_input > 0 {
        say!(
            "note: {} samples of {} are more than 60 dB above full scale, and were left out: is it scaled otherwise? as sox in.wav out.wav norm",
            meters.bad_input,
            options.input.display()
        );
    }
    if meters.overloads > 0 {
        say!("note: what models or gains made was more than 60 dB above full scale, and was cut off there");
    }
    let stereo = rig.is_stereo() && !options.mono;
    let channels = match channels {
        [left, right] if stereo => vec![left, right],
        [left, right] => vec![left.iter().zip(&right).map(|(left, right)| 0.5 * (left + right)).collect()],
    };
    let played = finish(options, input, rate_hz, &channels)?;
    let clips = played.channels.iter().flatten().filter(|sample| sample.abs() > 1.0).count();
    if clips > 0 {
        let remedy = match rig.settings.is_on(Parameter::LimiterOn) {
            true => format!("resampling raised what was limited: lower limiter.ceiling_db, or add --rate {rate_hz}"),
            false => "lower output.gain_db, or leave the limiter on".to_owned(),
        };
        say!("note: {clips} samples are above full scale: {remedy}");
    }
    Ok(played)
}

/// Both sides, as many samples as came in, in their place: what makes the chain late is played on, and its beginning left out.
fn play(chain: &mut Chain, mut samples: Vec<f32>) -> [Vec<f32>; 2] {
    let late = chain.delay();
    samples.resize(samples.len() + late, 0.0);
    let (mut left, mut right) = (vec![0.0; samples.len()], vec![0.0; samples.len()]);
    let mut progress = Progress::new(samples.len());
    let outputs = left.chunks_mut(PIECE).zip(right.chunks_mut(PIECE));
    for (input, (left, right)) in samples.chunks(PIECE).zip(outputs) {
        chain.process(input, left, right);
        progress.add(input.len());
    }
    [left.split_off(late), right.split_off(late)]
}

/// At the rate that was asked for, or the input's; as long as the input.
fn finish(options: &AmpRender, input: &Played, rate_hz: u32, channels: &[Vec<f32>]) -> anyhow::Result<Played> {
    let to_hz = options.rate.unwrap_or(input.rate_hz);
    let frames = (input.channels[0].len() as u64 * u64::from(to_hz)).div_ceil(u64::from(input.rate_hz)) as usize;
    let finished = channels.iter().map(|channel| {
        let mut made = resampled(channel, rate_hz, to_hz)?;
        made.resize(frames, 0.0);
        Ok(made)
    });
    Ok(Played { rate_hz: to_hz, channels: finished.collect::<anyhow::Result<_>>()? })
}

fn resampled(samples: &[f32], from_hz: u32, to_hz: u32) -> anyhow::Result<Vec<f32>> {
    Ok(resample::resample(samples, from_hz, to_hz)?)
}

fn input(path: &Path) -> anyhow::Result<Played> {
    let path = if is_stream(path) { Path::new("/dev/stdin") } else { path };
    let bytes = sys::file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wav::Wav { rate_hz, channels, .. } = wav::read(&bytes).with_context(|| path.display().to_string())?;
    if channels.len() != 1 {
        bail!(
            "{} has {} channels, and an amplifier plays one: mix it first, as sox in.wav out.wav remix 1",
            path.display(),
            channels.len()
        );
    }
    Ok(Played { rate_hz, channels })
}

/// What is played stays: the same file under another name, too.
fn refuse_to_write_over<'a>(output: &Path, mut read: impl Iterator<Item = &'a Path>) -> Result<(), Usage> {
    let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
    let is_output = |path: &&Path| fs::canonicalize(path).is_ok_and(|path| path == output);
    match read.find(is_output) {
        Some(path) if output.is_file() => {
            Err(Usage(format!("{} is read, and would be lost: write to another file", path.display())))
        }
        _ => Ok(()),
    }
}

/// Standard input or output.
fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whole or not at all, but for what is no file: a pipe takes it as it comes.
fn write(path: &Path, played: &Played) -> anyhow::Result<()> {
    let what = || format!("cannot write {}", path.display());
    let bytes = as_wav(played).with_context(what)?;
    match fs::metadata(path) {
        _ if is_stream(path) => output::stdout(|out| out.write_all(&bytes)),
        Ok(there) if !there.is_file() && !there.is_dir() => {
            let mut file = File::options().write(true).open(path).with_context(what)?;
            file.write_all(&bytes).with_context(what)
        }
        _ => Ok(record::file::write_atomic(path, &bytes)?),
    }
}

fn as_wav(Played { rate_hz, channels }: &Played) -> hound::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let (count, sample_format) = (channels.len() as u16, SampleFormat::Float);
    let spec = WavSpec { channels: count, sample_rate: *rate_hz, bits_per_sample: 32, sample_format };
    let mut writer = WavWriter::new(Cursor::new(&mut bytes), spec)?;
    for at in 0..channels[0].len() {
        channels.iter().try_for_each(|channel| writer.write_sample(channel[at]))?;
    }
    writer.finalize()?;
    Ok(bytes)
}

/// Says on a terminal how far it is, once that takes long.
struct Progress {
    total: usize,
    done: usize,
    begin: Instant,
    said: Option<Instant>,
}

impl Progress {
    fn new(total: usize) -> Self {
        Self { total, done: 0, begin: Instant::now(), said: None }
    }

    fn add(&mut self, frames: usize) {
        self.done += frames;
        let is_due = self.said.is_none_or(|said| said.elapsed() > SILENT / 10);
        if self.begin.elapsed() < SILENT || !is_due || !io::stderr().is_terminal() {
            return;
        }
        let share = self.done as f64 / self.total as f64;
        let left = self.begin.elapsed().as_secs_f64() * (1.0 / share - 1.0);
        hint!("\r\x1b[Kplaying: {:.0} %, {left:.0} s left", share * 100.0);
        self.said = Some(Instant::now());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.said.is_some() {
            hint!("\r\x1b[K");
        }
    }
}
