//! Files with oddities that the programs they are made for accept.

use amp::{
    ModelFile,
    file::{Format, Options},
};
use serde_json::{Value, json};

use crate::{bytes, play};

fn read(file: &Value) -> ModelFile {
    ModelFile::read(file.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {file}"))
}

fn played(file: &ModelFile) -> Vec<f32> {
    let mut model = file.model(Options::default()).unwrap();
    model.reset(false);
    play(&mut model, &[0.5, -0.25, 0.125, 1.0], &[4])
}

/// A dense layer that halves the signal, plus additional fields.
fn keras(more: &Value) -> Value {
    let layer = json!({ "type": "dense", "activation": "", "shape": [null, null, 1], "weights": [[[0.5]], [0.0]] });
    with(&json!({ "in_shape": [null, null, 1], "layers": [layer] }), more)
}

/// The file with additional fields.
fn with(file: &Value, more: &Value) -> Value {
    let mut file = file.clone();
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

fn guitarml() -> Value {
    serde_json::from_slice(&bytes("guitarml_lstm20.json")).unwrap()
}

#[test]
fn a_malformed_field_does_not_affect_the_others() {
    let file = read(&keras(&json!({ "metadata": { "name": 7, "author": "me", "samplerate": "44100" } })));
    assert_eq!((file.sample_rate, file.has_sample_rate), (44_100.0, true));
    assert_eq!((file.about.name, file.about.modeled_by.as_deref()), (None, Some("me")));
    let file = read(&keras(&json!({ "metadata": { "name": "amp", "author": ["a", "b"], "samplerate": 44100 } })));
    assert_eq!((file.sample_rate, file.has_sample_rate), (44_100.0, true));
    assert_eq!((file.about.name.as_deref(), file.about.modeled_by), (Some("amp"), None));
}

#[test]
fn implausible_sample_rates_are_ignored() {
    for rate in [json!("44.1k"), json!("0"), json!(48), json!(-1), json!(null), json!([44100]), json!("inf")] {
        let file = read(&keras(&json!({ "metadata": { "samplerate": rate } })));
        assert_eq!((file.sample_rate, file.has_sample_rate), (48_000.0, false), "{rate}");
        let file = read(&keras(&json!({ "samplerate": 44100, "metadata": { "samplerate": rate } })));
        assert_eq!((file.sample_rate, file.has_sample_rate), (44_100.0, true), "{rate}");
    }
    // Neural Amp Modeler's core writes -1 for an unknown rate.
    let config = json!({ "receptive_field": 1, "bias": false });
    let linear = json!({ "version": "0.5.4", "architecture": "Linear", "config": config, "weights": [0.5] });
    for rate in [-1.0, 0.0] {
        let file = read(&with(&linear, &json!({ "sample_rate": rate })));
        assert_eq!((file.sample_rate, file.has_sample_rate), (48_000.0, false), "{rate}");
    }
}

#[test]
fn gains_and_skip_are_ignored_unless_they_are_numbers() {
    let plain = played(&read(&keras(&json!({}))));
    for odd in [json!(null), json!("3"), json!(true), json!([])] {
        let file = read(&keras(&json!({ "in_skip": odd, "in_gain": odd, "out_gain": odd })));
        assert_eq!(played(&file), plain, "{odd}");
    }
    let added: Vec<f32> = plain.iter().map(|y| 3.0 * y).collect();
    for skip in [json!(1), json!(1.0)] {
        assert_eq!(played(&read(&keras(&json!({ "in_skip": skip })))), added, "{skip}");
    }
    let louder = played(&read(&keras(&json!({ "out_gain": 20 }))));
    assert_eq!(louder, plain.iter().map(|y| 10.0 * y).collect::<Vec<_>>());
}

#[test]
fn guitarml_adds_the_input_by_default() {
    let of = |skip: Option<Value>| {
        let mut file = guitarml();
        let data = file["model_data"].as_object_mut().unwrap();
        match skip {
            Some(skip) => data.insert("skip".to_owned(), skip),
            None => data.remove("skip"),
        };
        played(&read(&file))
    };
    let (added, alone) = (of(Some(json!(1))), of(Some(json!(0))));
    assert_ne!(added, alone);
    for skip in [None, Some(json!(null)), Some(json!(true)), Some(json!(1.0))] {
        assert_eq!(of(skip.clone()), added, "{skip:?}");
    }
    for skip in [json!(false), json!(0.0)] {
        assert_eq!(of(Some(skip.clone())), alone, "{skip}");
    }
}

#[test]
fn whole_numbers_may_have_a_decimal_point() {
    let mut file = keras(&json!({ "in_shape": [null, null, 1.0] }));
    file["layers"][0]["shape"][2] = json!(1.0);
    assert_eq!(played(&read(&file)), played(&read(&keras(&json!({})))));
    let mut file = guitarml();
    file["model_data"]["hidden_size"] = json!(20.0);
    assert_eq!(played(&read(&file)), played(&read(&guitarml())));
    file["model_data"]["hidden_size"] = json!(20.5);
    let error = ModelFile::read(file.to_string().as_bytes()).unwrap_err().to_string();
    assert!(error.contains("20.5 is not a whole number"), "{error}");
}

#[test]
fn the_keys_determine_the_format() {
    let more =
        [json!({ "version": "1.0" }), json!({ "architecture": "LSTM" }), json!({ "model_data": { "name": "x" } })];
    for more in more {
        assert_eq!(read(&keras(&more)).format, Format::Keras, "{more}");
    }
    for more in [json!({ "version": "1.0" }), json!({ "layers": 3 })] {
        assert_eq!(read(&with(&guitarml(), &more)).format, Format::GuitarMl, "{more}");
    }
}

/// A byte order mark before the text, and zeros after it.
#[test]
fn bytes_around_the_text_are_ignored() {
    for name in ["linear_64.nam", "guitarml_lstm20.json", "aidax_lstm12_skip0.json"] {
        let around = [b"\xef\xbb\xbf", &bytes(name)[..], b"\0\0"].concat();
        let file = ModelFile::read(&around).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(played(&file), played(&ModelFile::read(&bytes(name)).unwrap()), "{name}");
    }
}
