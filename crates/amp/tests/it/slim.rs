//! WaveNets reduced to fewer channels, compared with files that contain only these channels.

use amp::{ModelFile, file::Options};
use serde_json::{Value, json};

/// A weight that depends only on its position, not on the number of channels.
fn weight(of: usize, row: usize, column: usize, tap: usize) -> f32 {
    let mut x = (of * 31 + row * 1009 + column * 9176 + tap * 77_003 + 1) as u64;
    x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 29;
    ((x >> 11) % 2000) as f32 / 2500.0 - 0.4
}

const DILATIONS: [usize; 3] = [1, 3, 9];
const KERNEL: usize = 3;

/// Two arrays with these numbers of channels; `allowed` are the numbers that each can be reduced to.
fn file(channels: [usize; 2], allowed: Option<[&[usize]; 2]>) -> Value {
    let mut weights: Vec<f32> = Vec::new();
    let mut of = 0;
    let mut take = |rows: usize, columns: usize, taps: usize| {
        of += 1;
        for row in 0..rows {
            for column in 0..columns {
                weights.extend((0..taps).map(|tap| weight(of, row, column, tap)));
            }
        }
    };
    let mut layers = Vec::new();
    for index in 0..2 {
        let count = channels[index];
        let inputs = if index == 0 { 1 } else { channels[0] };
        let outputs = if index == 0 { channels[1] } else { 1 };
        take(count, inputs, 1);
        for _ in DILATIONS {
            take(count, count, KERNEL);
            take(count, 1, 1);
            take(count, 1, 1);
            take(count, count, 1);
            take(count, 1, 1);
        }
        take(outputs, count, 1);
        if index == 1 {
            take(outputs, 1, 1);
        }
        let mut layer = json!({
            "input_size": inputs, "condition_size": 1, "channels": count, "kernel_size": KERNEL, "dilations": DILATIONS,
            "activation": "Tanh", "head_size": outputs, "head_bias": index == 1,
        });
        if let Some(allowed) = allowed {
            layer["slimmable"] =
                json!({ "method": "slice_channels_uniform", "kwargs": { "allowed_channels": allowed[index] } });
        }
        layers.push(layer);
    }
    take(1, 1, 1);
    json!({ "version": "0.7.0", "architecture": "WaveNet", "config": { "layers": layers }, "weights": weights })
}

fn play(file: &Value, slim: f64) -> Vec<f32> {
    let file = ModelFile::read(file.to_string().as_bytes()).unwrap();
    let mut model = file.model(Options { slim, ..Options::default() }).unwrap();
    let input: Vec<f32> = (0..600).map(|frame| (frame as f32 * 0.07).sin() * 0.7).collect();
    let mut output = vec![0.0; input.len()];
    model.process(&input, &mut output);
    output
}

#[test]
fn a_reduced_network_equals_the_smaller_network() {
    let whole = file([8, 5], Some([&[3, 6, 8], &[2, 4, 5]]));
    // Index floor(slim * 3), at most 2.
    for (slim, channels) in
        [(0.0, [3, 2]), (0.3, [3, 2]), (0.34, [6, 4]), (0.66, [6, 4]), (0.67, [8, 5]), (1.0, [8, 5])]
    {
        let (cut, small) = (play(&whole, slim), play(&file(channels, None), 1.0));
        assert_eq!(cut, small, "{slim}: {channels:?}");
        assert!(cut.iter().any(|x| x.abs() > 1e-3));
    }
    let file = ModelFile::read(whole.to_string().as_bytes()).unwrap();
    assert!(file.is_slimmable());
}
