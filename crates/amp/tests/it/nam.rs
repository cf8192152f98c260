//! What Neural Amp Modeler's files may say, and what they may not.

use std::slice::from_ref;

use amp::{LoadError, ModelFile, file::Options};
use serde_json::{Value, json};

use crate::reference::Numbers;

/// A file of layer arrays like these, each with what is told of it besides.
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

/// The same with as many weights as it lacks.
fn filled(mut file: Value) -> Value {
    if let Err(LoadError::WeightsTooFew { needed, .. }) = read(&file) {
        let mut numbers = Numbers(needed);
        file["weights"] = (0..needed).map(|_| json!(numbers.signed() * 0.5)).collect();
    }
    file
}

/// What it makes of a sine.
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
fn channels_that_do_not_fit_together_are_refused() {
    let no_mix = json!({ "active": false, "groups": 1 });
    for bottleneck in [3, 5] {
        assert!(is_unfit(&read(&file(&[json!({ "layer1x1": no_mix, "bottleneck": bottleneck })]))), "{bottleneck}");
    }
    // What the first array's head makes begins the second one's sum, and has as many channels as that has.
    for (head, second) in [
        (6, json!({ "input_size": 4, "bottleneck": 6 })),
        (2, json!({ "input_size": 4, "bottleneck": 2 })),
        (4, json!({ "input_size": 4, "bottleneck": 2 })),
        (5, json!({ "input_size": 4, "head1x1": { "active": true, "out_channels": 5, "groups": 1 } })),
    ] {
        assert!(is_unfit(&read(&file(&[json!({ "head_size": head }), second.clone()]))), "{head}: {second}");
    }
}

/// Its channels out stay as many, and what the array before makes does not.
#[test]
fn a_sum_of_fixed_channels_behind_an_array_is_played_whole_alone() {
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

/// Plays the file with each of these arrays, of the same sizes.
fn each_plays<const COUNT: usize>(arrays: [Value; COUNT]) -> [Vec<f32>; COUNT] {
    arrays.map(|array| play(&filled(file(from_ref(&array))), 1.0).unwrap_or_else(|error| panic!("{array}: {error}")))
}

#[test]
fn what_weighs_is_read_where_there_is_a_gating_mode() {
    let [sigmoid, tanh, old, broken] = each_plays([
        json!({ "gating_mode": "gated" }),
        json!({ "gating_mode": "gated", "secondary_activation": "Tanh" }),
        json!({ "gated": true, "secondary_activation": "Tanh" }),
        json!({ "gated": true, "secondary_activation": 7 }),
    ]);
    assert_ne!(sigmoid, tanh);
    assert_eq!([&old, &broken], [&sigmoid; 2]);
    // Layers without a gate take whatever stands there.
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

#[test]
fn one_slope_for_all_channels_is_no_list() {
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
fn what_is_of_another_type_is_told_in_words() {
    let told = |config: Value, architecture: &str| {
        let file = json!({ "version": "0.5.2", "architecture": architecture, "config": config, "weights": [0.0] });
        ModelFile::read(file.to_string().as_bytes()).unwrap_err().to_string()
    };
    for (config, architecture, words) in [
        (Value::Null, "WaveNet", "the file has invalid type: null, where a section belongs: "),
        (json!({ "receptive_field": 1e300, "bias": false }), "Linear", "where a whole number belongs: "),
        (json!({ "receptive_field": "5", "bias": false }), "Linear", "invalid type: string \"5\", expected f64: "),
        (json!({ "input_size": 2, "hidden_size": 3, "num_layers": 1 }), "LSTM", "the network has 2 inputs, not one: "),
    ] {
        let told = told(config, architecture);
        assert!(told.contains(words) && !told.contains(" line "), "{told}");
    }
    let told = read(&file(&[json!({ "activation": null })])).unwrap_err().to_string();
    assert!(told.starts_with("the file has a value of a type that does not belong there: "), "{told}");
}

#[test]
fn levels_that_no_signal_has_are_none_and_told() {
    let mut file = filled(json!({
        "version": "0.5.2", "architecture": "Linear", "config": { "receptive_field": 5, "bias": true }, "weights": [],
    }));
    file["metadata"] = json!({ "loudness": 1e9, "input_level_dbu": -100.0, "output_level_dbu": 12.5 });
    let ModelFile { about, warnings, .. } = read(&file).unwrap();
    assert_eq!((about.loudness, about.input_level_dbu, about.output_level_dbu), (None, None, Some(12.5)));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("is 1000000000 dB, which no signal has"), "{warnings:?}");
}

#[test]
fn whole_numbers_may_have_a_point() {
    let film = |groups: Value| json!({ "active": true, "shift": true, "groups": groups });
    let pointless = json!({ "conv_post_film": film(json!(1)), "slimmable": slimmable(&[2, 4]) });
    let mut with_point = json!({
        "input_size": 1.0, "condition_size": 1.0, "channels": 4.0, "bottleneck": 4.0, "kernel_size": 3.0,
        "dilations": [1.0, 2.0, 4.0], "groups_input": 1.0, "head_size": 1.0, "conv_post_film": film(json!(1.0)),
        "slimmable": { "method": "slice_channels_uniform", "kwargs": { "allowed_channels": [2.0, 4.0] } },
    });
    let made = |array: &Value| filled(file(from_ref(array)));
    for slim in [0.2, 1.0] {
        assert_eq!(play(&made(&with_point), slim), play(&made(&pointless), slim));
    }
    with_point["channels"] = json!(4.5);
    let told = read(&made(&with_point)).unwrap_err();
    assert!(matches!(told, LoadError::WrongType(_)) && told.to_string().contains("4.5"), "{told}");

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
fn what_says_nothing_is_as_if_it_were_not_there() {
    let whole = filled(file(&[json!({ "slimmable": false })]));
    assert!(!read(&whole).unwrap().is_slimmable());
    assert_eq!(play(&whole, 0.2), play(&filled(file(&[json!({})])), 1.0));
    for rate in [-1.0, 0.0] {
        let mut file = whole.clone();
        file["sample_rate"] = json!(rate);
        let read = read(&file).unwrap();
        assert_eq!((read.sample_rate, read.tells_sample_rate), (48_000.0, false), "{rate}");
    }
}

/// Of a convolution in groups no part can be told that the smaller network would have.
#[test]
fn groups_are_played_whole_alone() {
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
    // What is modulated here has as many channels in every size.
    let file = of_two(groups("input_mixin_pre_film", film(2), Some(&[2, 4])));
    assert!(play(&file, 0.2).is_ok());
}
