//! Models of every kind, compared with their exact output, which was computed in `f64` and verified with two other
//! engines.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod acceptance;
mod chain;
mod counting_allocator;
mod denormals;
mod guitarml;
mod keras;
mod memory_limits;
mod nam;
mod oddities;
mod reference;
mod slim;
mod system_calls;

use std::{fs, path::PathBuf};

use amp::{InstructionSet, LoadError, Model, ModelFile, SyntheticModel, Work, file::Options, work::NEON_ERROR};
use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    cases: Vec<Case>,
    malformed: Vec<Malformed>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    model: String,
    input: String,
    expected: String,
    sample_rate: f64,
    sample_rate_in_file: Option<serde_json::Value>,
    prewarm_samples: usize,
    tolerance_max_abs: f64,
    slim: Option<f64>,
    #[serde(default)]
    params: Vec<f32>,
}

#[derive(Deserialize)]
struct Malformed {
    model: String,
    report: String,
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)).unwrap()
}

fn samples(name: &str) -> Vec<f32> {
    bytes(name).chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn manifest() -> Manifest {
    serde_json::from_slice(&bytes("manifest.json")).unwrap()
}

impl Case {
    fn model(&self, instructions: InstructionSet) -> Model {
        let file = ModelFile::read(&bytes(&self.model)).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert_eq!(file.sample_rate, self.sample_rate, "{}", self.name);
        assert_eq!(file.has_sample_rate, self.sample_rate_in_file.is_some(), "{}", self.name);
        let options = Options { instructions, slim: self.slim.unwrap_or(1.0) };
        let mut model = file.model(options).unwrap();
        assert_eq!(model.knobs(), self.params.len(), "{}", self.name);
        self.params.iter().enumerate().for_each(|(knob, &value)| model.turn(knob, value));
        let prewarm = self.prewarm_samples > 0;
        if prewarm {
            assert_eq!(model.prewarm_frames(), self.prewarm_samples, "{}", self.name);
        }
        model.reset(prewarm);
        model
    }
}

/// Plays `input` in calls of the given lengths, repeatedly.
fn play(model: &mut Model, input: &[f32], lengths: &[usize]) -> Vec<f32> {
    let mut output = vec![0.0; input.len()];
    let (mut at, mut lengths) = (0, lengths.iter().cycle());
    while at < input.len() {
        let end = input.len().min(at + lengths.next().unwrap());
        model.process(&input[at..end], &mut output[at..end]);
        at = end;
    }
    output
}

#[test]
fn every_model_is_exact_with_every_instruction_set() {
    for case in manifest().cases {
        let (input, expected) = (samples(&case.input), samples(&case.expected));
        for instructions in InstructionSet::all() {
            let played = play(&mut case.model(instructions), &input, &[64]);
            let errors = played.iter().zip(&expected).map(|(a, b)| f64::from(a - b).abs());
            let worst = errors.fold(0.0, f64::max);
            let name = format!("{} with {}", case.name, instructions.name());
            assert!(worst <= case.tolerance_max_abs, "{name}: {worst:e} of {:e}", case.tolerance_max_abs);
            let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
            let error = squares(&mut played.iter().zip(&expected).map(|(a, b)| f64::from(a - b)));
            let signal = squares(&mut expected.iter().map(|&b| f64::from(b)));
            assert!(error / signal <= 1e-10, "{name}: error to signal {:e}", error / signal);
            let peak = expected.iter().fold(0.0, |peak: f64, &b| peak.max(f64::from(b).abs()));
            println!("{name}: {:.1e} of the peak, {:.1e} of the signal (RMS)", worst / peak, (error / signal).sqrt());
        }
    }
}

#[test]
fn block_sizes_do_not_change_the_output_bits() {
    for case in manifest().cases {
        let input = samples(&case.input);
        let input = &input[..input.len().min(3000)];
        for instructions in InstructionSet::all() {
            let mut model = case.model(instructions);
            let prewarm = case.prewarm_samples > 0;
            let whole = play(&mut model, input, &[input.len()]);
            for lengths in [&[1][..], &[16], &[63, 2, 64, 1], &[128, 7]] {
                model.reset(prewarm);
                let cut = play(&mut model, input, lengths);
                let differs = whole.iter().zip(&cut).position(|(a, b)| a.to_bits() != b.to_bits());
                assert_eq!(differs, None, "{} in {lengths:?} with {}", case.name, instructions.name());
            }
        }
    }
}

#[test]
fn malformed_files_are_rejected_with_the_right_error() {
    for bad in manifest().malformed {
        let error = ModelFile::read(&bytes(&bad.model)).expect_err(&bad.model);
        let reported = match error {
            LoadError::Empty => "empty",
            LoadError::NotJson(_) => "not_json",
            LoadError::TooDeep => "too_deep",
            LoadError::UnknownFormat => "unknown_format",
            LoadError::UnsupportedVersion(_) => "unsupported_version",
            LoadError::UnknownArchitecture(_) => "unknown_architecture",
            LoadError::UnknownPart { .. } => "unknown_part",
            LoadError::MissingKey(_) => "missing_key",
            LoadError::WrongType(_) => "wrong_type",
            LoadError::BadDimension { .. } => "bad_dimension",
            LoadError::TooLarge(_) => "too_large",
            LoadError::InconsistentShapes(_) => "inconsistent_shapes",
            LoadError::WeightsTooFew { .. } => "weights_too_few",
            LoadError::WeightsTooMany { .. } => "weights_too_many",
            LoadError::WeightNotFinite(_) => "weight_not_finite",
            LoadError::NotOne { .. } => "not_one",
            LoadError::TooManyInputs(_) => "too_many_inputs",
        };
        // JSON has no NaN, so it is reported as invalid JSON.
        let expected = if bad.report == "weight_not_finite" { "not_json" } else { &bad.report };
        assert_eq!(reported, expected, "{}: {error}", bad.model);
    }
}

/// AIDA-X's files contain an input and the model's output for it, from the initial state and without gains.
#[test]
fn models_reproduce_the_examples_in_their_files() {
    #[derive(Deserialize)]
    struct Example {
        input_batch: Vec<f32>,
        output_batch: Vec<f32>,
        in_gain: f32,
        out_gain: f32,
        in_skip: i32,
    }
    for name in ["aidax_lstm12_skip0.json", "aidax_lstm12_skip1.json"] {
        let example: Example = serde_json::from_slice(&bytes(name)).unwrap();
        let mut model = ModelFile::read(&bytes(name)).unwrap().model(Options::default()).unwrap();
        model.reset(false);
        let factor = |db: f32| 10.0_f32.powf(db / 20.0);
        let input: Vec<f32> = example.input_batch.iter().map(|x| x / factor(example.in_gain)).collect();
        let played = play(&mut model, &input, &[64]);
        let errors = played.iter().zip(&example.output_batch).map(|(a, b)| (a / factor(example.out_gain) - b).abs());
        let worst = errors.fold(0.0, f32::max);
        assert!(worst <= 3e-6, "{name} (skip {}): {worst:e}", example.in_skip);
    }
}

/// Biases, the scale of the output and unused weights are no multiplications.
#[test]
fn the_work_is_the_number_of_multiplications() {
    let standard = {
        let first = 16 + 10 * (16 * 16 * 3 + 16 + 16 * 16) + 16 * 8;
        // The last layer has no 1x1 convolution.
        first + 16 * 8 + 10 * (8 * 8 * 3 + 8) + 9 * 8 * 8 + 8
    };
    let convolved_in_partitions = 512 + 16 + 14 + 4 * 6;
    for (name, work) in [
        ("wn_a1_standard.nam", standard),
        ("lstm_1x16.nam", 4 * 16 * 17 + 16),
        ("guitarml_lstm20.json", 4 * 20 * 21 + 20),
        ("linear_64.nam", 64),
        ("linear_2048.nam", convolved_in_partitions),
    ] {
        let model = ModelFile::read(&bytes(name)).unwrap().model(Options::default()).unwrap();
        assert_eq!(model.work().multiplications, work, "{name}");
    }
    let gru = guitarml::GRU.file(&guitarml::GRU.weights()).to_string();
    let model = ModelFile::read(gru.as_bytes()).unwrap().model(Options::default()).unwrap();
    assert_eq!(model.work().multiplications, 3 * 9 * 10 + 9);
}

/// The instructions of a frame on arm64 were counted in a guest (`lab/src/tests/amp.rs`).
#[test]
fn estimated_instructions_are_within_their_error_of_the_counted_ones() {
    let files = [
        ("wn_a1_standard.nam", 7422.0),
        ("wn_a1_lite.nam", 3737.0),
        ("wn_a1_feather.nam", 1981.0),
        ("wn_a1_nano.nam", 808.0),
        ("a2_full.nam", 4813.0),
        ("lstm_1x16.nam", 1088.0),
        ("lstm_2x8.nam", 1021.0),
        ("convnet_bn.nam", 321.0),
        ("linear_2048.nam", 299.0),
        ("guitarml_lstm20.json", 1488.0),
        ("convnet_nobn.nam", 854.0),
        ("wn_gated.nam", 3176.0),
        ("wn_headbias_v050.nam", 1748.0),
        ("linear_64.nam", 49.0),
        ("aidax_lstm12_skip1.json", 700.0),
        ("guitarml_lstm40_cond.json", 4465.0),
    ];
    let files = files.map(|(name, counted)| (name.to_owned(), ModelFile::read(&bytes(name)).unwrap(), counted));
    // Direct convolution only, and many partitions.
    let responses = [(512, 229.0), (8192, 358.0)].map(|(taps, counted)| {
        let config = serde_json::json!({ "receptive_field": taps, "bias": false });
        let weights = vec![0.0; taps];
        let file = serde_json::json!({
            "version": "0.5.4", "architecture": "Linear", "config": config, "weights": weights,
        });
        (format!("linear of {taps}"), ModelFile::read(file.to_string().as_bytes()).unwrap(), counted)
    });
    for (name, file, counted) in files.into_iter().chain(responses) {
        let Work { neon_instructions, is_counted, .. } = file.model(Options::default()).unwrap().work();
        let error = neon_instructions / counted - 1.0;
        println!("{name}: {neon_instructions:.0}, counted {counted}, {error:+.3}");
        assert!(is_counted && error.abs() <= NEON_ERROR, "{name}: {neon_instructions:.0}, counted {counted}");
    }
}

#[test]
fn a_built_in_model_costs_as_much_as_a_file_of_its_shape() {
    for (synthetic, file) in [
        (SyntheticModel::Standard, "wn_a1_standard.nam"),
        (SyntheticModel::Feather, "wn_a1_feather.nam"),
        (SyntheticModel::Nano, "wn_a1_nano.nam"),
        (SyntheticModel::Lstm, "lstm_1x16.nam"),
    ] {
        let of_file = ModelFile::read(&bytes(file)).unwrap().model(Options::default()).unwrap();
        let built_in = synthetic.file(48_000.0).unwrap().model(Options::default()).unwrap();
        assert_eq!((built_in.work(), built_in.prewarm_frames()), (of_file.work(), of_file.prewarm_frames()), "{file}");
    }
}
