//! Models and signals for tests.

use std::fs;

use tempfile::TempDir;

/// Sample rate of the tests, Hz.
pub(super) const RATE_HZ: u32 = 48_000;
/// Frames of a call; not a multiple of the plugin's own blocks.
pub(super) const FRAMES: usize = 100;

/// A model that multiplies the signal by `gain`.
pub(super) fn model(folder: &TempDir, name: &str, gain: f32) -> String {
    let path = folder.path().join(name);
    let text = format!(
        r#"{{"version": "0.5.4", "architecture": "Linear", "sample_rate": {RATE_HZ},
            "config": {{"receptive_field": 1, "bias": false}}, "weights": [{gain}]}}"#
    );
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// An impulse response in a folder: one sample of 0.5 after `delay` others.
pub(super) fn response(folder: &TempDir, name: &str, delay: usize) -> String {
    let path = folder.path().join(name);
    let bytes = 2 * u32::try_from(delay + 1).unwrap();
    let mut wav = [b"RIFF", &(36 + bytes).to_le_bytes()[..], b"WAVEfmt \x10\0\0\0\x01\0\x01\0"].concat();
    wav.extend([RATE_HZ, 2 * RATE_HZ].map(u32::to_le_bytes).concat());
    wav.extend([b"\x02\0\x10\0data", &bytes.to_le_bytes()[..], &vec![0; 2 * delay], &[0, 0x40]].concat());
    fs::write(&path, wav).unwrap();
    path.display().to_string()
}

/// A signal without a period that matters.
pub(super) fn guitar(block: usize) -> Vec<f32> {
    (block * FRAMES..(block + 1) * FRAMES)
        .map(|at| 0.4 * (at as f32 * 0.071).sin() + 0.1 * (at as f32 * 0.53).cos())
        .collect()
}

/// The largest difference between two signals.
pub(super) fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
