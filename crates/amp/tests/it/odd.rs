//! Files with something odd about them, which the programs that they are made for play all the same.

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

/// One weight, which halves, and what else is to be in the file.
fn keras(more: &Value) -> Value {
    let layer = json!({ "type": "dense", "activation": "", "shape": [null, null, 1], "weights": [[[0.5]], [0.0]] });
    with(&json!({ "in_shape": [null, null, 1], "layers": [layer] }), more)
}

/// The file with some fields more.
fn with(file: &Value, more: &Value) -> Value {
    let mut file = file.clone();
    file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    file
}

fn guitarml() -> Value {
    serde_json::from_slice(&bytes("guitarml_lstm20.json")).unwrap()
}

#[test]
fn guitarml_adds_the_input_unless_told_not_to() {
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
fn what_a_file_holds_tells_its_kind() {
    let more =
        [json!({ "version": "1.0" }), json!({ "architecture": "LSTM" }), json!({ "model_data": { "name": "x" } })];
    for more in more {
        assert_eq!(read(&keras(&more)).format, Format::Keras, "{more}");
    }
    for more in [json!({ "version": "1.0" }), json!({ "layers": 3 })] {
        assert_eq!(read(&with(&guitarml(), &more)).format, Format::GuitarMl, "{more}");
    }
}

/// A byte order mark before it, and zeros behind it.
#[test]
fn what_stands_around_the_text_is_left_out() {
    for name in ["linear_64.nam", "guitarml_lstm20.json", "aidax_lstm12_skip0.json"] {
        let around = [b"\xef\xbb\xbf", &bytes(name)[..], b"\0\0"].concat();
        let file = ModelFile::read(&around).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(played(&file), played(&ModelFile::read(&bytes(name)).unwrap()), "{name}");
    }
}
