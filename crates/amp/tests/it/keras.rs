//! Layers of AIDA-X's files, compared with a simple computation in `f64` from the definitions of Keras.

use amp::{InstructionSet, ModelFile, file::Options};
use serde_json::{Value, json};

use crate::reference::Numbers;

type Rows = Vec<Vec<f32>>;

fn rows(numbers: &mut Numbers, count: usize, columns: usize) -> Rows {
    (0..count).map(|_| (0..columns).map(|_| numbers.signed() * 0.6).collect()).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The product of the row `x` and a column of the weights.
fn times(x: &[f64], weights: &Rows, column: usize) -> f64 {
    x.iter().zip(weights).map(|(x, row)| x * f64::from(row[column])).sum()
}

/// A gated recurrent unit whose reset gate applies after the multiplication (`reset_after`); gates update, reset,
/// candidate.
fn gru(signal: &[Vec<f64>], (kernel, recurrent, bias): &(Rows, Rows, Rows)) -> Vec<Vec<f64>> {
    let units = recurrent.len();
    let mut hidden = vec![0.0; units];
    let mut step = |x: &Vec<f64>| {
        let gate = |gate: usize, unit: usize| {
            let column = gate * units + unit;
            let (of_input, of_units) = (times(x, kernel, column), times(&hidden, recurrent, column));
            (of_input + f64::from(bias[0][column]), of_units + f64::from(bias[1][column]))
        };
        let now = (0..units).map(|unit| {
            let [update, reset] = [0, 1].map(|index| {
                let (of_input, of_units) = gate(index, unit);
                sigmoid(of_input + of_units)
            });
            let (of_input, of_units) = gate(2, unit);
            update * hidden[unit] + (1.0 - update) * (of_input + reset * of_units).tanh()
        });
        hidden = now.collect();
        hidden.clone()
    };
    signal.iter().map(&mut step).collect()
}

/// Long short-term memory; gates input, forget, candidate, output.
fn lstm(signal: &[Vec<f64>], (kernel, recurrent, bias): &(Rows, Rows, Vec<f32>)) -> Vec<Vec<f64>> {
    let units = recurrent.len();
    let (mut hidden, mut cell) = (vec![0.0; units], vec![0.0; units]);
    let mut step = |x: &Vec<f64>| {
        let gate = |gate: usize, unit: usize| {
            let column = gate * units + unit;
            times(x, kernel, column) + times(&hidden, recurrent, column) + f64::from(bias[column])
        };
        let now: Vec<(f64, f64)> = (0..units)
            .map(|unit| {
                let kept = sigmoid(gate(1, unit)) * cell[unit] + sigmoid(gate(0, unit)) * gate(2, unit).tanh();
                (kept, sigmoid(gate(3, unit)) * kept.tanh())
            })
            .collect();
        (cell, hidden) = now.into_iter().unzip();
        hidden.clone()
    };
    signal.iter().map(&mut step).collect()
}

fn dense(signal: &[Vec<f64>], (weights, bias): &(Rows, Vec<f32>), function: fn(f64) -> f64) -> Vec<Vec<f64>> {
    let value = |x: &Vec<f64>, column: usize| function(times(x, weights, column) + f64::from(bias[column]));
    signal.iter().map(|x| (0..bias.len()).map(|column| value(x, column)).collect()).collect()
}

/// `weights[tap][input][output]`, the oldest tap first. The outputs of a group depend on the inputs of the same group.
fn conv(signal: &[Vec<f64>], weights: &[Rows], bias: &[f32], dilation: usize, groups: usize) -> Vec<Vec<f64>> {
    let (inputs_per_group, outputs_per_group) = (signal[0].len() / groups, bias.len() / groups);
    let value = |frame: usize, output: usize| {
        let tap = |tap: usize| {
            let delay = (weights.len() - 1 - tap) * dilation;
            let at = |input: usize| {
                let x = frame
                    .checked_sub(delay)
                    .map_or(0.0, |frame| signal[frame][output / outputs_per_group * inputs_per_group + input]);
                x * f64::from(weights[tap][input][output])
            };
            (0..inputs_per_group).map(at).sum::<f64>()
        };
        f64::from(bias[output]) + (0..weights.len()).map(tap).sum::<f64>()
    };
    (0..signal.len()).map(|frame| (0..bias.len()).map(|output| value(frame, output)).collect()).collect()
}

fn input() -> Vec<f32> {
    let mut numbers = Numbers(5);
    (0..500).map(|frame| (frame as f32 * 0.11).sin() * 0.6 + numbers.signed() * 0.3).collect()
}

fn check(name: &str, expected: &[Vec<f64>], layers: &Value) {
    let file = json!({ "in_shape": [null, null, 1], "layers": layers }).to_string();
    let file = ModelFile::read(file.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let peak = expected.iter().map(|row| row[0].abs()).fold(0.0, f64::max);
    for instructions in InstructionSet::all() {
        let mut model = file.model(Options { instructions, ..Options::default() }).unwrap();
        model.reset(false);
        let input = input();
        let mut played = vec![0.0; input.len()];
        for (input, played) in input.chunks(37).zip(played.chunks_mut(37)) {
            model.process(input, played);
        }
        let errors = played.iter().zip(expected).map(|(played, expected)| (f64::from(*played) - expected[0]).abs());
        let worst = errors.fold(0.0, f64::max);
        assert!(
            peak > 1e-2 && worst < 3e-6 * peak.max(1.0),
            "{name} with {}: {worst:e} of {peak}",
            instructions.name()
        );
    }
}

#[test]
fn recurrent_layers_of_every_width() {
    let signal: Vec<Vec<f64>> = input().iter().map(|&x| vec![f64::from(x)]).collect();
    // Numbers below, at and above the vectors that are computed together, including those with code of their own.
    for units in [1, 3, 8, 12, 16, 20, 25, 40, 50] {
        let mut numbers = Numbers(units as u64);
        let head = (rows(&mut numbers, units, 1), vec![0.1]);
        let of_head = json!({ "type": "dense", "shape": [null, null, 1], "activation": "", "weights": head });
        let of_gru =
            (rows(&mut numbers, 1, 3 * units), rows(&mut numbers, units, 3 * units), rows(&mut numbers, 2, 3 * units));
        let expected = dense(&gru(&signal, &of_gru), &head, |x| x);
        let layer = json!({ "type": "gru", "shape": [null, null, units], "activation": "tanh", "weights": of_gru });
        check(&format!("GRU of {units} units"), &expected, &json!([layer, of_head]));
        let bias = rows(&mut numbers, 1, 4 * units).remove(0);
        let of_lstm = (rows(&mut numbers, 1, 4 * units), rows(&mut numbers, units, 4 * units), bias);
        let expected = dense(&lstm(&signal, &of_lstm), &head, |x| x);
        let layer = json!({ "type": "lstm", "shape": [null, null, units], "activation": "tanh", "weights": of_lstm });
        check(&format!("LSTM of {units} units"), &expected, &json!([layer, of_head]));
    }
}

#[test]
fn convolutions_and_layers_between_them() {
    let signal: Vec<Vec<f64>> = input().iter().map(|&x| vec![f64::from(x)]).collect();
    let mut numbers = Numbers(9);
    let mut cube = |taps: usize, inputs: usize, outputs: usize| -> Vec<Rows> {
        (0..taps).map(|_| rows(&mut numbers, inputs, outputs)).collect()
    };
    let (first, second) = (cube(3, 1, 6), cube(2, 3, 4));
    let (first_bias, second_bias) = ([0.1, -0.2, 0.3, 0.0, 0.2, -0.1], [0.05, 0.1, -0.1, 0.2]);
    let hidden = (cube(1, 4, 5).remove(0), vec![0.1, 0.2, -0.3, 0.0, 0.4]);
    let head = (cube(1, 5, 1).remove(0), vec![-0.05]);
    let output = conv(&signal, &first, &first_bias, 7, 1);
    let output: Vec<Vec<f64>> = output.iter().map(|row| row.iter().map(|x| x.tanh()).collect()).collect();
    let output = conv(&output, &second, &second_bias, 2, 2);
    let output = dense(&dense(&output, &hidden, |x| x.max(0.0)), &head, sigmoid);
    let layer = |kernel: &Value, bias: &[f32], dilation: usize, groups: usize, activation: &str| {
        let taps = kernel.as_array().unwrap().len();
        json!({ "type": "conv1d", "shape": [null, null, bias.len()], "kernel_size": [taps], "dilation": [dilation],
            "groups": groups, "activation": activation, "weights": [kernel, bias] })
    };
    let layers = json!([
        layer(&json!(first), &first_bias, 7, 1, "tanh"),
        layer(&json!(second), &second_bias, 2, 2, ""),
        { "type": "dense", "shape": [null, null, 5], "activation": "relu", "weights": hidden },
        { "type": "time-distributed-dense", "shape": [null, null, 1], "activation": "sigmoid", "weights": head },
    ]);
    check("convolutions", &output, &layers);
}

/// ELU, PReLU with one slope per value or one for all, and batch normalisation.
#[test]
fn activations_and_normalisations_of_values() {
    let signal: Vec<Vec<f64>> = input().iter().map(|&x| vec![f64::from(x)]).collect();
    let mut numbers = Numbers(3);
    let (first, head) =
        ((rows(&mut numbers, 1, 5), vec![0.1, -0.2, 0.3, -0.4, 0.0]), (rows(&mut numbers, 5, 1), vec![0.1]));
    let layer = |kind: &str, activation: &str, units: usize, weights: &Value| json!({ "type": kind, "activation": activation, "shape": [null, null, units], "epsilon": 0.001, "weights": weights });
    let of_head = layer("dense", "", 1, &json!(head));
    let elu = |x: f64| if x < 0.0 { x.exp_m1() } else { x };
    let output = dense(&dense(&signal, &first, elu), &head, |x| x);
    check("ELU", &output, &json!([layer("dense", "elu", 5, &json!(first)), of_head]));

    let plain = dense(&signal, &first, |x| x);
    let each = |make: &dyn Fn(f64, usize) -> f64| -> Vec<Vec<f64>> {
        plain.iter().map(|row| row.iter().enumerate().map(|(at, &x)| make(x, at)).collect()).collect()
    };
    let of_first = layer("dense", "", 5, &json!(first));
    let slopes = [0.1, -0.3, 0.0, 1.5, 0.25];
    for slopes in [&slopes[..], &slopes[..1]] {
        let output = each(&|x, at| if x < 0.0 { slopes[at % slopes.len()] * x } else { x });
        let layers = json!([of_first, layer("prelu", "", 5, &json!([[slopes]])), of_head]);
        check("PReLU", &dense(&output, &head, |x| x), &layers);
    }

    let (factor, added) = ([1.1, 0.9, -0.5, 0.0, 2.0], [0.1, 0.2, -0.3, 0.4, 0.0]);
    let (mean, variance) = ([0.05, -0.1, 0.3, 0.2, -0.4], [0.8, 1.2, 0.02, 0.5, 0.0]);
    let normal = |x: f64, at: usize| (x - mean[at]) / (variance[at] + 0.001_f64).sqrt();
    let output = each(&|x, at| factor[at] * normal(x, at) + added[at]);
    let layers = json!([of_first, layer("batchnorm", "", 5, &json!([factor, added, mean, variance])), of_head]);
    check("scaled normalisation", &dense(&output, &head, |x| x), &layers);
    let output = dense(&each(&normal), &head, f64::tanh);
    let layers =
        json!([of_first, layer("batchnorm", "", 5, &json!([mean, variance])), layer("dense", "tanh", 1, &json!(head))]);
    check("plain normalisation", &output, &layers);
}

/// As in RTNeural, a dense layer may have no biases, and additional weights are ignored.
#[test]
fn dense_layers_may_have_no_biases() {
    let signal: Vec<Vec<f64>> = input().iter().map(|&x| vec![f64::from(x)]).collect();
    let mut numbers = Numbers(4);
    let (first, head) = (rows(&mut numbers, 1, 5), rows(&mut numbers, 5, 1));
    let layer =
        |units: usize, weights: &Value| json!({ "type": "dense", "shape": [null, null, units], "weights": weights });
    let output = dense(&dense(&signal, &(first.clone(), vec![0.0; 5]), |x| x), &(head.clone(), vec![0.25]), |x| x);
    check("sums", &output, &json!([layer(5, &json!([first])), layer(1, &json!([head, [0.25], [], "more"]))]));
}

#[test]
fn errors_name_the_layer() {
    let layer = |kind: &str, units: usize, weights: &Value| json!({ "type": kind, "activation": "", "shape": [null, null, units], "epsilon": 0.1, "weights": weights });
    let (zero, row) = ([0.0], [0.0, 0.0]);
    let first = layer("dense", 2, &json!([[row], row]));
    let of = |kind: &str, weights: Value| layer(kind, if kind == "dense" { 1 } else { 2 }, &weights);
    let bad = [
        of("dense", json!([])),
        of("dense", json!([[zero], zero])),
        of("dense", json!([[zero, ["0"]], zero])),
        of("dense", json!({ "kernel": [zero, zero] })),
        of("lstm", json!([[row], [row]])),
        of("gru", json!([])),
        of("conv1d", json!([[[row]]])),
        of("prelu", json!([])),
        of("prelu", json!([[]])),
        of("prelu", json!([[[]]])),
        of("prelu", json!([[[0.1, 0.2, 0.3]]])),
        of("batchnorm", json!([row, row, row])),
        of("batchnorm", json!([row, zero])),
        // Layers without weights must not add values.
        layer("activation", 40, &json!([])),
        layer("batchnorm", 1, &json!([zero, zero])),
    ];
    for bad in bad {
        let kind = bad["type"].as_str().unwrap();
        let file = json!({ "in_shape": [null, null, 1], "layers": [first, bad] }).to_string();
        let error = ModelFile::read(file.as_bytes()).expect_err(&file).to_string();
        let expected = format!("inconsistent network: the weights of layer 2 ({kind}) do not match 2 inputs and ");
        assert!(error.starts_with(&expected), "{error}: {file}");
    }
    for (name, expected) in [("weights", "missing the weights of layer 2 (batchnorm)"), ("epsilon", "missing epsilon")]
    {
        let mut bad = of("batchnorm", json!([row, row]));
        bad.as_object_mut().unwrap().remove(name);
        let file = json!({ "in_shape": [null, null, 1], "layers": [first, bad] }).to_string();
        let error = ModelFile::read(file.as_bytes()).expect_err(&file).to_string();
        assert!(error.contains(expected), "{error}");
    }
    // A negative variance.
    let layers = json!([first, of("batchnorm", json!([row, [-1.0, 0.0]])), of("dense", json!([[zero, zero]]))]);
    let file = json!({ "in_shape": [null, null, 1], "layers": layers }).to_string();
    let error = ModelFile::read(file.as_bytes()).expect_err(&file).to_string();
    assert!(error.contains("NaN or infinite"), "{error}");
}
