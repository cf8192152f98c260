//! Cabinets: what an impulse response is, and what it costs.

use std::path::Path;

use amp::{Cabinet, Ir, wav};
use anyhow::Context;

use super::{
    super::{cost::budget_us, name_of},
    BLOCK, Told, cost_in_words, cost_us,
};

pub fn told(path: &Path) -> anyhow::Result<Told> {
    let bytes = sys::file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wav = wav::read(&bytes).with_context(|| path.display().to_string())?;
    let (bits, is_float) = wav.sample;
    let ir = Ir::new(wav.rate_hz, wav.channels).with_context(|| path.display().to_string())?;
    let played = ir.clone().trimmed();
    let mut cabinet = Cabinet::new(&played);
    let mut right = [0.0; BLOCK];
    let cost_us = cost_us(|input, left| cabinet.process(input, left, &mut right));
    let rate_hz = f64::from(ir.rate_hz());
    let (budget_us, ms) = (budget_us(BLOCK, rate_hz), |frames: usize| frames as f64 / rate_hz * 1000.0);
    let silence = ir.frames() - ir.clone().without_delay().frames();
    let db = |factor: f32| 20.0 * f64::from(factor).log10();
    let sides = if cabinet.is_stereo() { "stereo" } else { "mono" };
    let kind = if is_float { "floating point" } else { "integer" };
    let lines = vec![
        ("cabinet", format!("{}: impulse response, {sides}", name_of(path))),
        ("sample rate", format!("{rate_hz} Hz, {bits}-bit {kind}")),
        ("length", format!("{} samples, {:.1} ms", ir.frames(), ms(ir.frames()))),
        ("played", format!("{} samples; what is cut off its end is below -110 dB", played.frames())),
        ("silence before", format!("{silence} samples, {:.2} ms", ms(silence))),
        ("largest sample", format!("{:.1} dB", db(ir.peak()))),
        ("gain", format!("{:+.1} dB for white noise", db(ir.gain()))),
        ("cost here", cost_in_words(cost_us, budget_us)),
    ];
    let json = serde_json::json!({
        "format": "Wav",
        "channels": ir.channels().len(),
        "sample_rate_hz": rate_hz,
        "bits": bits,
        "floating_point": is_float,
        "frames": ir.frames(),
        "played_frames": played.frames(),
        "silence_frames": silence,
        "peak_db": db(ir.peak()),
        "gain_db": db(ir.gain()),
        "block_samples": BLOCK,
        "block_us": cost_us,
        "block_share": cost_us / budget_us,
    });
    Ok(Told { lines, json, fault: None })
}
