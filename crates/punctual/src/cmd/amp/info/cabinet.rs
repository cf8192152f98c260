//! Description of impulse responses, and their cost.

use record::grouped;
use std::path::Path;

use amp::{Cabinet, Ir};
use anyhow::Context;

use super::{
    super::{file_name, read_part},
    BLOCK, Cost, Description,
};

pub fn describe(path: &Path) -> anyhow::Result<Description> {
    let (file, ir) = Ir::with_properties(&read_part(path)?).with_context(|| path.display().to_string())?;
    let played = ir.clone().trimmed();
    let silence = ir.frames() - ir.clone().without_delay().frames();
    let mut cabinet = Cabinet::new(&played);
    let mut right = [0.0; BLOCK];
    let rate_hz = f64::from(ir.rate_hz());
    let cost = Cost::measure(rate_hz, |input, left| cabinet.process(input, left, &mut right));
    let ms = |frames: usize| frames as f64 / rate_hz * 1000.0;
    let samples = |frames: usize| grouped(frames as u64);
    let db = |factor: f32| 20.0 * f64::from(factor).log10();
    let channels = if cabinet.is_stereo() { "stereo" } else { "mono" };
    let kind = if file.is_float { "floating point" } else { "integer" };
    let bits = file.bits.map_or_else(|| "-".to_owned(), |bits| bits.to_string());
    let lines = vec![
        ("cabinet", format!("{}: impulse response, {channels}", file_name(path))),
        ("sample rate", format!("{rate_hz} Hz, {bits}-bit {kind}")),
        ("length", format!("{} samples, {:.1} ms", samples(ir.frames()), ms(ir.frames()))),
        ("played", format!("{} samples; the rest is below -110 dB", samples(played.frames()))),
        ("silence before", format!("{} samples, {:.2} ms", samples(silence), ms(silence))),
        ("largest sample", format!("{:.1} dB", db(ir.peak()))),
        ("gain", format!("{:+.1} dB for white noise", db(ir.gain()))),
        ("cost here", cost.describe()),
    ];
    let json = serde_json::json!({
        "format": format!("{:?}", file.format),
        "channels": ir.channels().len(),
        "sample_rate_hz": rate_hz,
        "bits": file.bits,
        "floating_point": file.is_float,
        "frames": ir.frames(),
        "played_frames": played.frames(),
        "silence_frames": silence,
        "peak_db": db(ir.peak()),
        "gain_db": db(ir.gain()),
        "block_samples": BLOCK,
        "block_us": cost.us,
        "block_share": cost.share,
    });
    Ok(Description { lines, json, error: None })
}
