//! WaveNets with all options of the file format, and ConvNets, compared with a simple computation in `f64`, frame by
//! frame, from the definitions.

use amp::{InstructionSet, ModelFile, file::Options};
use serde_json::{Value, json};

/// A reproducible stream of pseudo-random numbers.
pub struct Numbers(pub u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// The next number, from -1 to 1.
    pub fn signed(&mut self) -> f32 {
        self.next() as f32 / (1_u64 << 30) as f32 - 1.0
    }
}

/// Reads weights in the order of a file; those of a convolution are `[group][output][input][tap]`.
struct WeightReader<'a>(&'a [f32], usize);

#[derive(Clone)]
struct Conv {
    weights: Vec<f64>,
    biases: Vec<f64>,
    inputs: usize,
    outputs: usize,
    kernel: usize,
    dilation: usize,
    groups: usize,
}

impl WeightReader<'_> {
    fn numbers(&mut self, count: usize) -> Vec<f64> {
        let taken = self.0[self.1..self.1 + count].iter().map(|&weight| f64::from(weight)).collect();
        self.1 += count;
        taken
    }

    fn conv(&mut self, [inputs, outputs, kernel, dilation, groups]: [usize; 5], bias: bool) -> Conv {
        let weights = self.numbers(outputs * (inputs / groups) * kernel);
        let biases = if bias { self.numbers(outputs) } else { vec![0.0; outputs] };
        Conv { weights, biases, inputs, outputs, kernel, dilation, groups }
    }
}

type Signal = Vec<Vec<f64>>;

impl Conv {
    /// The convolution of a signal after silence; the oldest tap has the first weight.
    fn of(&self, signal: &Signal) -> Signal {
        let (inputs_per_group, outputs_per_group) = (self.inputs / self.groups, self.outputs / self.groups);
        let value = |frame: usize, output: usize| {
            let mut sum = self.biases[output];
            for input in 0..inputs_per_group {
                for tap in 0..self.kernel {
                    let delay = self.dilation * (self.kernel - 1 - tap);
                    if frame >= delay {
                        let weight = self.weights[(output * inputs_per_group + input) * self.kernel + tap];
                        sum += weight * signal[frame - delay][output / outputs_per_group * inputs_per_group + input];
                    }
                }
            }
            sum
        };
        (0..signal.len()).map(|frame| (0..self.outputs).map(|output| value(frame, output)).collect()).collect()
    }
}

fn each(a: &Signal, b: &Signal, make: impl Fn(f64, f64) -> f64) -> Signal {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| make(a, b)).collect()).collect()
}

fn half(signal: &Signal, second: bool) -> Signal {
    let middle = signal[0].len() / 2;
    signal.iter().map(|row| if second { row[middle..].to_vec() } else { row[..middle].to_vec() }).collect()
}

fn map(signal: &Signal, make: impl Fn(f64) -> f64) -> Signal {
    signal.iter().map(|row| row.iter().map(|&x| make(x)).collect()).collect()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn activation(name: &str, x: f64) -> f64 {
    match name {
        "Tanh" => x.tanh(),
        "LeakyReLU" if x < 0.0 => 0.01 * x,
        "LeakyReLU" => x,
        "ReLU" => x.max(0.0),
        name => panic!("{name}"),
    }
}

fn one_or_each(names: [&str; 3]) -> Value {
    if names == [names[0]; 3] { json!(names[0]) } else { json!(names) }
}

fn film(conv: &Option<Conv>, x: &Signal, condition: &Signal) -> Signal {
    let Some(conv) = conv else { return x.clone() };
    let factors = conv.of(condition);
    let channels = x[0].len();
    let value = |frame: usize, channel: usize| {
        let more = if conv.outputs == channels { 0.0 } else { factors[frame][channels + channel] };
        x[frame][channel] * factors[frame][channel] + more
    };
    (0..x.len()).map(|frame| (0..channels).map(|channel| value(frame, channel)).collect()).collect()
}

/// The description of an array of layers.
#[derive(Clone, Copy)]
struct ArraySpec {
    inputs: usize,
    condition: usize,
    channels: usize,
    bottleneck: usize,
    kernel: usize,
    dilations: [usize; 3],
    /// For each layer.
    activations: [&'static str; 3],
    /// For each layer.
    modes: [&'static str; 3],
    groups: usize,
    mixin_groups: usize,
    layer1x1: bool,
    head1x1: Option<usize>,
    head: (usize, usize),
    /// For each of the eight modulations: `None`, or true if it has a shift.
    films: [Option<bool>; 8],
}

const FILMS: [&str; 8] = [
    "conv_pre_film",
    "conv_post_film",
    "input_mixin_pre_film",
    "input_mixin_post_film",
    "activation_pre_film",
    "activation_post_film",
    "layer1x1_post_film",
    "head1x1_post_film",
];

impl ArraySpec {
    fn json(&self) -> Value {
        let mut json = json!({
            "input_size": self.inputs, "condition_size": self.condition, "channels": self.channels,
            "bottleneck": self.bottleneck, "kernel_size": self.kernel, "dilations": self.dilations,
            "activation": one_or_each(self.activations), "gating_mode": one_or_each(self.modes),
            "secondary_activation": "Sigmoid",
            "groups_input": self.groups, "groups_input_mixin": self.mixin_groups,
            "layer1x1": { "active": self.layer1x1, "groups": 1 },
            "head1x1": { "active": self.head1x1.is_some(), "out_channels": self.head1x1.unwrap_or(1), "groups": 1 },
            "head": { "out_channels": self.head.0, "kernel_size": self.head.1, "bias": true, "head_dilation": 2 },
        });
        for (name, film) in FILMS.iter().zip(self.films) {
            json[name] = film.map_or(json!(false), |shift| json!({ "active": true, "shift": shift, "groups": 1 }));
        }
        json
    }

    /// The outputs of the last layer and of the head.
    fn play(
        &self,
        weights: &mut WeightReader<'_>,
        input: &Signal,
        condition: &Signal,
        head: Option<Signal>,
    ) -> (Signal, Signal) {
        let mut v = weights.conv([self.inputs, self.channels, 1, 1, 1], false).of(input);
        let sum_channels = self.head1x1.unwrap_or(self.bottleneck);
        let mut sum = head.unwrap_or_else(|| vec![vec![0.0; sum_channels]; input.len()]);
        for (layer, dilation) in self.dilations.into_iter().enumerate() {
            let (activation, mode) = (|x| activation(self.activations[layer], x), self.modes[layer]);
            let z = if mode == "none" { self.bottleneck } else { 2 * self.bottleneck };
            let conv = weights.conv([self.channels, z, self.kernel, dilation, self.groups], true);
            let mixin = weights.conv([self.condition, z, 1, 1, self.mixin_groups], false);
            let layer1x1 = self.layer1x1.then(|| weights.conv([self.bottleneck, self.channels, 1, 1, 1], true));
            let head1x1 = self.head1x1.map(|outputs| weights.conv([self.bottleneck, outputs, 1, 1, 1], true));
            let sizes = [self.channels, z, self.condition, z, z, self.bottleneck, self.channels, sum_channels];
            let mut films = Vec::new();
            for (film, size) in self.films.iter().zip(sizes) {
                let outputs = film.map(|shift| size * if shift { 2 } else { 1 });
                films.push(outputs.map(|outputs| weights.conv([self.condition, outputs, 1, 1, 1], true)));
            }
            let convolved = film(&films[1], &conv.of(&film(&films[0], &v, condition)), condition);
            let mixed = film(&films[3], &mixin.of(&film(&films[2], condition, condition)), condition);
            let z = film(&films[4], &each(&convolved, &mixed, |a, b| a + b), condition);
            let activated = match mode {
                "none" => map(&z, activation),
                "gated" => each(&map(&half(&z, false), activation), &map(&half(&z, true), sigmoid), |a, b| a * b),
                _ => {
                    let (before, part) = (half(&z, false), map(&half(&z, true), sigmoid));
                    let kept = each(&part, &before, |part, x| (1.0 - part) * x);
                    each(&kept, &each(&part, &map(&before, activation), |part, x| part * x), |a, b| a + b)
                }
            };
            let activated = film(&films[5], &activated, condition);
            let to_sum = head1x1.map_or(activated.clone(), |conv| film(&films[7], &conv.of(&activated), condition));
            sum = each(&sum, &to_sum, |a, b| a + b);
            if let Some(conv) = layer1x1 {
                let mixed = conv.of(&activated);
                // Neural Amp Modeler's core applies this modulation only to blended channels.
                let mixed = if mode == "blended" { film(&films[6], &mixed, condition) } else { mixed };
                v = each(&v, &mixed, |a, b| a + b);
            }
        }
        let head = weights.conv([sum_channels, self.head.0, self.head.1, 2, 1], true);
        (v, head.of(&sum))
    }
}

const PLAIN: ArraySpec = ArraySpec {
    inputs: 1,
    condition: 1,
    channels: 4,
    bottleneck: 4,
    kernel: 3,
    dilations: [1, 5, 70],
    activations: ["Tanh"; 3],
    modes: ["none"; 3],
    groups: 1,
    mixin_groups: 1,
    layer1x1: true,
    head1x1: None,
    head: (1, 1),
    films: [None; 8],
};

/// More weights than needed; playing determines their number.
fn weights(scale: f32) -> Vec<f32> {
    let mut numbers = Numbers(7);
    (0..20_000).map(|_| numbers.signed() * scale).collect()
}

fn input() -> Vec<f32> {
    let mut numbers = Numbers(11);
    (0..700).map(|frame| (frame as f32 * 0.05).sin() * 0.5 + numbers.signed() * 0.2).collect()
}

/// The expected output of a file with these arrays, and the file.
fn expected(arrays: &[ArraySpec], condition: Option<(&Signal, Value)>) -> (Signal, Value) {
    let weights = weights(0.45);
    let mut taken = WeightReader(&weights, 0);
    let signal: Signal = input().iter().map(|&x| vec![f64::from(x)]).collect();
    let (condition_signal, condition_file) = match condition {
        Some((result, file)) => (result.clone(), file),
        None => (signal.clone(), Value::Null),
    };
    let (mut v, mut head) = (signal, None);
    for array in arrays {
        let (output, result) = array.play(&mut taken, &v, &condition_signal, head);
        (v, head) = (output, Some(result));
    }
    let scale = taken.numbers(1)[0];
    let layers: Vec<Value> = arrays.iter().map(ArraySpec::json).collect();
    let file = json!({
        "version": "0.7.0", "architecture": "WaveNet", "sample_rate": 48000, "weights": &weights[..taken.1],
        "config": { "layers": layers, "head": null, "head_scale": 1.0, "condition_dsp": condition_file },
    });
    (map(&head.unwrap(), |x| x * scale), file)
}

fn check(name: &str, expected: &Signal, file: &Value) {
    let file = ModelFile::read(file.to_string().as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (input, peak) = (input(), expected.iter().map(|row| row[0].abs()).fold(0.0, f64::max));
    for instructions in InstructionSet::all() {
        let mut model = file.model(Options { instructions, ..Options::default() }).unwrap();
        // The reference computation also starts with silence.
        model.reset(false);
        let mut played = vec![0.0; input.len()];
        model.process(&input, &mut played);
        let errors = played.iter().zip(expected).map(|(played, expected)| (f64::from(*played) - expected[0]).abs());
        let worst = errors.fold(0.0, f64::max);
        assert!(peak > 1e-3 && worst < 4e-6 * peak.max(1.0), "{name}, {}: {worst:e} of {peak}", instructions.name());
    }
}

#[test]
fn every_option_of_a_layer() {
    let only = |index: usize, shift: bool| std::array::from_fn(|film| (film == index).then_some(shift));
    let mut cases = vec![
        ("plain", PLAIN),
        ("bottleneck", ArraySpec { bottleneck: 3, ..PLAIN }),
        ("gated", ArraySpec { modes: ["gated"; 3], ..PLAIN }),
        ("blended", ArraySpec { modes: ["blended"; 3], bottleneck: 2, ..PLAIN }),
        ("groups", ArraySpec { groups: 2, ..PLAIN }),
        ("depthwise", ArraySpec { groups: 4, ..PLAIN }),
        ("no layer1x1", ArraySpec { layer1x1: false, ..PLAIN }),
        ("head1x1", ArraySpec { head1x1: Some(3), ..PLAIN }),
        ("long head", ArraySpec { head: (1, 16), ..PLAIN }),
        ("all modulations", ArraySpec { head1x1: Some(2), modes: ["blended"; 3], films: [Some(true); 8], ..PLAIN }),
        (
            "all modulations, gated",
            ArraySpec { head1x1: Some(2), modes: ["gated"; 3], films: [Some(false); 8], ..PLAIN },
        ),
    ];
    for (index, name) in FILMS.iter().enumerate() {
        let head1x1 = (index == 7).then_some(3);
        cases.push((name, ArraySpec { films: only(index, index % 2 == 0), head1x1, modes: ["blended"; 3], ..PLAIN }));
    }
    for (name, array) in cases {
        let (expected, file) = expected(&[array], None);
        check(name, &expected, &file);
    }
}

/// Up to more channels than any specialised code has.
#[test]
fn layers_of_every_width() {
    for channels in 1..=17 {
        for (activation, mode) in [("Tanh", "none"), ("Tanh", "gated"), ("LeakyReLU", "none"), ("ReLU", "none")] {
            let (activations, modes) = ([activation; 3], [mode; 3]);
            let (expected, file) =
                expected(&[ArraySpec { channels, bottleneck: channels, activations, modes, ..PLAIN }], None);
            check(&format!("{channels} channels, {activation}, {mode}"), &expected, &file);
        }
    }
}

/// The output of a layer does not depend on the code that computes it or the next layer.
#[test]
fn layers_of_several_kinds_in_an_array() {
    let kinds = [("Tanh", "none"), ("LeakyReLU", "none"), ("ReLU", "gated"), ("Tanh", "blended")];
    for channels in [3, 8, 16] {
        for all in 0..kinds.len().pow(3) {
            let layers = [all % 4, all / 4 % 4, all / 16].map(|kind| kinds[kind]);
            let (activations, modes) = (layers.map(|(activation, _)| activation), layers.map(|(_, mode)| mode));
            let array = ArraySpec { channels, bottleneck: channels, activations, modes, ..PLAIN };
            let (expected, file) = expected(&[array], None);
            check(&format!("{channels} channels, {layers:?}"), &expected, &file);
        }
    }
}

/// An activation and a convolution, repeated, after the scaled output of all arrays.
#[test]
fn convolutions_after_all_arrays() {
    let array = ArraySpec { head: (3, 1), ..PLAIN };
    for (kernels, channels) in [(vec![1], 3), (vec![8], 5), (vec![1, 8], 5), (vec![16, 3, 2], 2)] {
        let (mut signal, mut file) = expected(&[array], None);
        // The scale is the last weight in the file.
        let taken = file["weights"].as_array().unwrap().len();
        let weights = weights(0.45);
        let mut tail = WeightReader(&weights, taken - 1);
        let unscaled = map(&signal, |x| x / f64::from(weights[taken - 1]));
        let mut convs = Vec::new();
        for (index, &kernel) in kernels.iter().enumerate() {
            let inputs = if index == 0 { 3 } else { channels };
            let outputs = if index + 1 == kernels.len() { 1 } else { channels };
            convs.push(tail.conv([inputs, outputs, kernel, 1, 1], true));
        }
        let scale = tail.numbers(1)[0];
        signal = map(&unscaled, |x| x * scale);
        for conv in convs {
            signal = conv.of(&map(&signal, f64::tanh));
        }
        file["weights"] = json!(&weights[..tail.1]);
        file["config"]["head"] =
            json!({ "channels": channels, "out_channels": 1, "kernel_sizes": kernels, "activation": "Tanh" });
        check(&format!("after all arrays: {kernels:?}"), &signal, &file);
    }
}

#[test]
fn consecutive_arrays_and_a_condition_network() {
    let first = ArraySpec { head: (3, 1), ..PLAIN };
    let second = ArraySpec { inputs: 4, channels: 3, bottleneck: 3, modes: ["gated"; 3], ..PLAIN };
    let (result, file) = expected(&[first, second], None);
    check("two arrays", &result, &file);

    let of_condition = ArraySpec { head: (2, 3), ..PLAIN };
    let (condition, condition_file) = expected(&[of_condition], None);
    let conditioned = ArraySpec { condition: 2, mixin_groups: 2, ..PLAIN };
    let (result, file) = expected(&[conditioned], Some((&condition, condition_file)));
    check("condition", &result, &file);
}

/// Consecutive convolutions of two taps: every width, every way of computing an activation, normalised or not.
#[test]
fn consecutive_convolutions() {
    let leaky = |x: f64| if x < 0.0 { 0.25 * x } else { x };
    type Exact<'a> = &'a dyn Fn(f64) -> f64;
    let activations: [(Value, Exact<'_>); 4] = [
        (json!("Tanh"), &f64::tanh),
        (json!("ReLU"), &|x| x.max(0.0)),
        (json!({ "type": "LeakyReLU", "negative_slope": 0.25 }), &leaky),
        (json!("Sigmoid"), &sigmoid),
    ];
    for (channels, normalised) in (1..=9).flat_map(|channels| [(channels, false), (channels, true)]) {
        let (activation, exact) = &activations[channels % 4];
        let weights: Vec<f32> =
            weights(0.45).iter().map(|weight| if normalised { weight.abs() } else { *weight }).collect();
        let mut taken = WeightReader(&weights, 0);
        let mut signal: Signal = input().iter().map(|&x| vec![f64::from(x)]).collect();
        for dilation in [1, 70, 3] {
            let inputs = signal[0].len();
            signal = taken.conv([inputs, channels, 2, dilation, 1], !normalised).of(&signal);
            if normalised {
                let [mean, variance, scale, shift] = [(); 4].map(|()| taken.numbers(channels));
                let epsilon = taken.numbers(1)[0];
                let norm =
                    |(at, x): (usize, &f64)| scale[at] * (x - mean[at]) / (variance[at] + epsilon).sqrt() + shift[at];
                signal = signal.iter().map(|row| row.iter().enumerate().map(norm).collect()).collect();
            }
            signal = map(&signal, exact);
        }
        let result = taken.conv([channels, 1, 1, 1, 1], true).of(&signal);
        let file = json!({
            "version": "0.5.4", "architecture": "ConvNet", "sample_rate": 48000, "weights": &weights[..taken.1],
            "config": { "channels": channels, "dilations": [1, 70, 3], "batchnorm": normalised, "activation": activation },
        });
        check(&format!("{channels} channels, normalised: {normalised}"), &result, &file);
    }
}

/// A second output would be dropped silently.
#[test]
fn rejects_a_model_with_two_outputs() {
    let (_, file) = expected(&[ArraySpec { head: (2, 1), ..PLAIN }], None);
    let error = ModelFile::read(file.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("2 outputs, only 1 is supported"), "{error}");
}

/// An overflow mutes the model until the next reset.
#[test]
fn infinite_output_is_muted() {
    let file = json!({
        "version": "0.5.2", "architecture": "Linear", "sample_rate": 48000,
        "config": { "receptive_field": 2, "bias": false }, "weights": [3e38, 3e38],
    });
    let mut model = ModelFile::read(file.to_string().as_bytes()).unwrap().model(Options::default()).unwrap();
    let mut output = [1.0; 4];
    model.process(&[0.5, 0.5, 1.0, 1.0], &mut output);
    assert!(model.is_muted() && output == [0.0; 4], "{output:?}");
    model.process(&[0.0; 4], &mut output);
    assert_eq!(output, [0.0; 4]);
    model.reset(true);
    model.process(&[0.0; 4], &mut output);
    assert!(!model.is_muted());
}
