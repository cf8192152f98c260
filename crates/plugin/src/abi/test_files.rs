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
