//! `punctual amp render`.

use std::path::Path;

use anyhow::{Context, bail};
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};

use crate::{cli::AmpRender, exit::Usage};

/// Frames that are played at a time.
const PIECE: usize = 4096;

pub fn run(options: &AmpRender) -> anyhow::Result<u8> {
    if !options.bare {
        return Err(Usage(
            "models are played alone so far, without cabinet and knobs of an amplifier: add --bare".to_owned(),
        )
        .into());
    }
    let file = super::read(&options.model)?;
    let mut model = super::model(&file, &options.choice)?;
    if options.no_prewarm {
        model.reset(false);
    }
    let (rate, mut samples) = input(&options.input)?;
    if f64::from(rate) != file.sample_rate {
        bail!(
            "{} has {rate} Hz, and the model plays {} Hz: resample it first, as sox in.wav -r {} out.wav",
            options.input.display(),
            file.sample_rate,
            file.sample_rate
        );
    }
    let mut played = vec![0.0; samples.len()];
    for (input, output) in samples.chunks_mut(PIECE).zip(played.chunks_mut(PIECE)) {
        model.process(input, output);
    }
    if model.is_muted() {
        bail!(
            "{} makes what is no number of {}: choose another model",
            options.model.display(),
            options.input.display()
        );
    }
    write(&options.output, rate, &played)?;
    eprintln!("{} samples at {rate} Hz written to {}", played.len(), options.output.display());
    Ok(0)
}

/// Sample rate, Hz, and samples of full scale 1.
fn input(path: &Path) -> anyhow::Result<(u32, Vec<f32>)> {
    let what = || format!("cannot read {} as WAV", path.display());
    let reader = WavReader::open(path).with_context(what)?;
    let spec = reader.spec();
    if spec.channels != 1 {
        bail!(
            "{} has {} channels, and a model plays one: mix it first, as sox in.wav out.wav remix 1",
            path.display(),
            spec.channels
        );
    }
    let samples: Result<Vec<f32>, _> = match spec.sample_format {
        SampleFormat::Float => reader.into_samples::<f32>().collect(),
        SampleFormat::Int => {
            let full_scale = 2.0_f64.powi(i32::from(spec.bits_per_sample) - 1);
            reader.into_samples::<i32>().map(|sample| sample.map(|x| (f64::from(x) / full_scale) as f32)).collect()
        }
    };
    let samples = samples.with_context(what)?;
    if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
        bail!("sample {at} of {} is no finite number: export it again", path.display());
    }
    Ok((spec.sample_rate, samples))
}

fn write(path: &Path, sample_rate: u32, samples: &[f32]) -> anyhow::Result<()> {
    let what = || format!("cannot write {}", path.display());
    let spec = WavSpec { channels: 1, sample_rate, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut writer = WavWriter::create(path, spec).with_context(what)?;
    samples.iter().try_for_each(|&sample| writer.write_sample(sample)).with_context(what)?;
    writer.finalize().with_context(what)
}
