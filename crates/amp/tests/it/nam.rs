//! Valid and invalid options in the files of Neural Amp Modeler.

use std::slice::from_ref;

use amp::{LoadError, ModelFile, file::Options};
use serde_json::{Value, json};

use crate::reference::Numbers;

/// A file with layer arrays that have these fields in addition to the defaults.
fn file(arrays: &[Value]) -> Value {
    let array = |more: &Value| {
        let mut array = json!({
            "input_size": 1, "condition_size": 1, "channels": 4, "kernel_size": 3, "dilations": [1, 2, 4],
            "activation": "Tanh", "head_size": 1, "head_bias": true,
        });
        for (name, value) in more.as_object().unwrap() {
            array[name] = value.clone();
        }
        array
    };
    let layers: Vec<Value> = arrays.iter().map(array).collect();
    json!({ "version": "0.7.0", "architecture": "WaveNet", "config": { "layers": layers }, "weights": [] })
}

fn read(file: &Value) -> Result<ModelFile, LoadError> {
    ModelFile::read(file.to_string().as_bytes())
}

/// The file with random weights, as many as it needs.
fn filled(mut file: Value) -> Value {
    if let Err(LoadError::WeightsTooFew { needed, .. }) = read(&file) {
        let mut numbers = Numbers(needed);
        file["weights"] = (0..needed).map(|_| json!(numbers.signed() * 0.5)).collect();
    }
    file
}

/// The output for a sine.
fn play(file: &Value, slim: f64) -> Result<Vec<f32>, LoadError> {
    let mut model = read(file)?.model(Options { slim, ..Options::default() })?;
    let input: Vec<f32> = (0..300).map(|frame| (frame as f32 * 0.07).sin() * 0.7).collect();
    let mut output = vec![0.0; input.len()];
    model.process(&input, &mut output);
    assert!(output.iter().any(|x| x.abs() > 1e-3));
    Ok(output)
}

fn is_unfit<T>(result: &Result<T, LoadError>) -> bool {
    matches!(result, Err(LoadError::InconsistentShapes(_)))
}

fn slimmable(allowed: &[usize]) -> Value {
    json!({ "method": "slice_channels_uniform", "kwargs": { "allowed_channels": allowed } })
}

#[test]
fn rejects_channels_that_do_not_match() {
    let no_mix = json!({ "active": false, "groups": 1 });
    for bottleneck in [3, 5] {
        assert!(is_unfit(&read(&file(&[json!({ "layer1x1": no_mix, "bottleneck": bottleneck })]))), "{bottleneck}");
    }
    // The outputs of the first array's head are the start of the second array's sum, so their numbers must match.
    for (head, second) in [
        (6, json!({ "input_size": 4, "bottleneck": 6 })),
        (2, json!({ "input_size": 4, "bottleneck": 2 })),
        (4, json!({ "input_size": 4, "bottleneck": 2 })),
        (5, json!({ "input_size": 4, "head1x1": { "active": true, "out_channels": 5, "groups": 1 } })),
    ] {
        assert!(is_unfit(&read(&file(&[json!({ "head_size": head }), second.clone()]))), "{head}: {second}");
    }
}

/// The sum has fixed channels, but a reduced array before it has fewer outputs.
#[test]
fn an_array_with_a_fixed_sum_cannot_be_reduced() {
    let head1x1 = json!({ "active": true, "out_channels": 4, "groups": 1 });
    let first = json!({ "head_size": 4, "slimmable": slimmable(&[2, 4]) });
    let second = json!({ "input_size": 4, "head1x1": head1x1, "slimmable": slimmable(&[2, 4]) });
    let file = filled(file(&[first, second]));
    assert!(play(&file, 1.0).is_ok());
    assert!(is_unfit(&play(&file, 0.2)));
}

#[test]
fn a_container_plays_each_of_its_networks_whole() {
    let small = filled(file(&[json!({ "slimmable": slimmable(&[2, 4]) })]));
    let large = filled(file(&[json!({ "activation": "ReLU" })]));
    let container = json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "weights": [],
        "config": { "submodels": [{ "max_value": 0.9, "model": small }, { "max_value": 1.0, "model": large }] },
    });
    for (slim, expected) in [(0.2, &small), (0.6, &small), (0.95, &large), (1.0, &large)] {
        assert_eq!(play(&container, slim), play(expected, 1.0), "{slim}");
    }
    assert_ne!(play(&small, 0.2), play(&small, 1.0));
}

/// Plays one file per array; all arrays have the same sizes.
fn each_plays<const COUNT: usize>(arrays: [Value; COUNT]) -> [Vec<f32>; COUNT] {
    arrays.map(|array| play(&filled(file(from_ref(&array))), 1.0).unwrap_or_else(|error| panic!("{array}: {error}")))
}

#[test]
fn gate_activations_are_only_used_with_a_gating_mode() {
    let [sigmoid, tanh, old, broken] = each_plays([
        json!({ "gating_mode": "gated" }),
        json!({ "gating_mode": "gated", "secondary_activation": "Tanh" }),
        json!({ "gated": true, "secondary_activation": "Tanh" }),
        json!({ "gated": true, "secondary_activation": 7 }),
    ]);
    assert_ne!(sigmoid, tanh);
    assert_eq!([&old, &broken], [&sigmoid; 2]);
    // Layers without a gate accept any value.
    let [plain] = each_plays([json!({})]);
    for second in [json!(""), json!({}), json!([]), json!(["Tanh"]), json!(false)] {
        let [played] = each_plays([json!({ "gating_mode": "none", "secondary_activation": second })]);
        assert_eq!(played, plain, "{second}");
    }
    let modes = json!(["gated", "none", "gated"]);
    let [one, of_each] = each_plays([
        json!({ "gating_mode": modes, "secondary_activation": "Tanh" }),
        json!({ "gating_mode": modes, "secondary_activation": ["Tanh", false, { "type": "Tanh" }] }),
    ]);
    assert_eq!(one, of_each);
    for second in [json!(false), json!(["Tanh", false, {}]), json!(["Tanh", "Tanh"])] {
        let error = read(&file(&[json!({ "gating_mode": modes, "secondary_activation": second })])).unwrap_err();
        assert!(matches!(error, LoadError::WrongType(_) | LoadError::InconsistentShapes(_)), "{second}: {error}");
    }
}

/// The instructions of layers with rare options were not counted on arm64.
#[test]
fn the_instructions_of_layers_with_rare_options_are_unknown() {
    for (array, is_counted) in [
        (json!({}), true),
        (json!({ "gating_mode": "gated" }), true),
        (json!({ "gating_mode": "gated", "secondary_activation": "Tanh" }), false),
        (json!({ "gating_mode": "blended" }), false),
        (json!({ "activation": "Softsign" }), false),
    ] {
        let model = read(&filled(file(from_ref(&array)))).unwrap().model(Options::default()).unwrap();
        assert_eq!(model.work().is_counted, is_counted, "{array}");
    }
}

#[test]
fn a_leaky_relu_has_one_slope_for_all_channels() {
    let slopes = [0.5, 0.4, 0.3, 0.2];
    let [plain, listed, of_each] = each_plays([
        json!({ "activation": "LeakyReLU" }),
        json!({ "activation": { "type": "LeakyReLU", "negative_slopes": slopes } }),
        json!({ "activation": { "type": "PReLU", "negative_slopes": slopes } }),
    ]);
    assert_eq!(listed, plain);
    assert_ne!(of_each, plain);
}

#[test]
fn type_errors_are_readable() {
    let error_of = |config: Value, architecture: &str| {
        let file = json!({ "version": "0.5.2", "architecture": architecture, "config": config, "weights": [0.0] });
        ModelFile::read(file.to_string().as_bytes()).unwrap_err().to_string()
    };
    for (config, architecture, words) in [
        (Value::Null, "WaveNet", "malformed model file: invalid type: null, expected an object; "),
        (json!({ "receptive_field": 1e300, "bias": false }), "Linear", " is not a whole number; "),
        (json!({ "receptive_field": "5", "bias": false }), "Linear", "invalid type: string \"5\", expected f64; "),
        (
            json!({ "input_size": 2, "hidden_size": 3, "num_layers": 1 }),
            "LSTM",
            "the network has 2 inputs, only 1 is supported; ",
        ),
    ] {
        let error = error_of(config, architecture);
        assert!(error.contains(words) && !error.contains(" line "), "{error}");
    }
    let error = read(&file(&[json!({ "activation": null })])).unwrap_err().to_string();
    assert!(error.starts_with("malformed model file: a value has an unexpected type; "), "{error}");
}

#[test]
fn implausible_levels_are_ignored_with_a_warning() {
    let mut file = filled(json!({
        "version": "0.5.2", "architecture": "Linear", "config": { "receptive_field": 5, "bias": true }, "weights": [],
    }));
    file["metadata"] = json!({ "loudness": 1e9, "input_level_dbu": -100.0, "output_level_dbu": 12.5 });
    let ModelFile { about, warnings, .. } = read(&file).unwrap();
    assert_eq!((about.loudness, about.input_level_dbu, about.output_level_dbu), (None, None, Some(12.5)));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("1000000000 dB is outside -100 to 100 dB"), "{warnings:?}");
}

#[test]
fn whole_numbers_may_have_a_decimal_point() {
    let film = |groups: Value| json!({ "active": true, "shift": true, "groups": groups });
    let pointless = json!({ "conv_post_film": film(json!(1)), "slimmable": slimmable(&[2, 4]) });
    let mut with_point = json!({
        "input_size": 1.0, "condition_size": 1.0, "channels": 4.0, "bottleneck": 4.0, "kernel_size": 3.0,
        "dilations": [1.0, 2.0, 4.0], "groups_input": 1.0, "head_size": 1.0, "conv_post_film": film(json!(1.0)),
        "slimmable": { "method": "slice_channels_uniform", "kwargs": { "allowed_channels": [2.0, 4.0] } },
    });
    let build = |array: &Value| filled(file(from_ref(array)));
    for slim in [0.2, 1.0] {
        assert_eq!(play(&build(&with_point), slim), play(&build(&pointless), slim));
    }
    with_point["channels"] = json!(4.5);
    let error = read(&build(&with_point)).unwrap_err();
    assert!(matches!(error, LoadError::WrongType(_)) && error.to_string().contains("4.5"), "{error}");

    let plain = |architecture: &str, config: Value| {
        filled(json!({ "version": "0.7.0", "architecture": architecture, "config": config, "weights": [] }))
    };
    for file in [
        plain("Linear", json!({ "receptive_field": 5.0, "bias": true })),
        plain("LSTM", json!({ "num_layers": 1.0, "input_size": 1.0, "hidden_size": 4.0 })),
        plain("ConvNet", json!({ "channels": 4.0, "dilations": [1.0, 3.0], "batchnorm": false, "activation": "ReLU" })),
    ] {
        assert!(play(&file, 1.0).is_ok(), "{file}");
    }
}

#[test]
fn meaningless_values_are_ignored() {
    let whole = filled(file(&[json!({ "slimmable": false })]));
    assert!(!read(&whole).unwrap().is_slimmable());
    assert_eq!(play(&whole, 0.2), play(&filled(file(&[json!({})])), 1.0));
    for rate in [-1.0, 0.0] {
        let mut file = whole.clone();
        file["sample_rate"] = json!(rate);
        let read = read(&file).unwrap();
        assert_eq!((read.sample_rate, read.has_sample_rate), (48_000.0, false), "{rate}");
    }
}

/// A convolution in groups has no part that corresponds to a smaller network.
#[test]
fn networks_with_groups_cannot_be_reduced() {
    let groups = |name: &str, value: Value, allowed: Option<&[usize]>| {
        let slimmable = allowed.map_or(json!({ "method": "slice_channels_uniform" }), slimmable);
        let mut array = json!({ "slimmable": slimmable });
        array[name] = value;
        array
    };
    let film = |groups: usize| json!({ "active": true, "shift": true, "groups": groups });
    let condition = filled(file(&[json!({ "head_size": 2 })]));
    let of_two = |mut array: Value| {
        array["condition_size"] = json!(2);
        let mut file = file(&[array]);
        file["config"]["condition_dsp"] = condition.clone();
        filled(file)
    };
    let head1x1 = json!({ "active": true, "out_channels": 2, "groups": 2 });
    for array in [
        groups("groups_input", json!(2), Some(&[2, 4])),
        groups("groups_input", json!(2), None),
        groups("groups_input_mixin", json!(2), Some(&[2, 4])),
        groups("layer1x1", json!({ "active": true, "groups": 2 }), Some(&[2, 4])),
        groups("head1x1", head1x1, Some(&[2, 4])),
        groups("conv_post_film", film(2), Some(&[2, 4])),
    ] {
        let file = of_two(array.clone());
        assert!(read(&file).unwrap().is_slimmable(), "{array}");
        assert!(play(&file, 1.0).is_ok(), "{array}");
        assert!(is_unfit(&play(&file, 0.2)), "{array}");
    }
    // The modulated signal has the same channels in every size.
    let file = of_two(groups("input_mixin_pre_film", film(2), Some(&[2, 4])));
    assert!(play(&file, 0.2).is_ok());
}
