//! The table of played and refused files in `docs/amp.md`: one case per row.

use amp::ModelFile;
use serde_json::{Value, json};

use crate::{
    bytes,
    guitarml::{GRU, LSTM, Spec},
};

/// Heading of the table's section.
const HEADING: &str = "## Which files are played";

/// A GuitarML file with changed fields of `model_data`.
fn guitarml(spec: Spec, changes: &Value) -> Value {
    with(spec.file(&spec.weights()), "/model_data", changes)
}

/// The object at a path of `file` with changed fields; a value of null removes the field.
fn with(mut file: Value, path: &str, changes: &Value) -> Value {
    let object = file.pointer_mut(path).unwrap().as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => object.remove(name),
            value => object.insert(name.clone(), value.clone()),
        };
    }
    file
}

/// An AIDA-X file with changed fields.
fn aidax(changes: &Value) -> Value {
    with(serde_json::from_slice(&bytes("aidax_lstm12_skip0.json")).unwrap(), "", changes)
}

/// An AIDA-X file whose recurrent layer has this type, and weights as the function makes them from those of an LSTM.
fn aidax_layer(kind: &str, make: fn(&[Value]) -> Value) -> Value {
    let file = aidax(&json!({}));
    let weights = make(file["layers"][0]["weights"].as_array().unwrap());
    with(file, "/layers/0", &json!({ "type": kind, "weights": weights }))
}

/// A file of RTNeural whose first layer has this type and weights, followed by the sum of two values.
fn rtneural(kind: &str, weights: &Value) -> Value {
    json!({
        "in_shape": [null, null, 1],
        "layers": [
            { "type": kind, "activation": "", "shape": [null, null, 2], "kernel_size": [1], "dilation": [1],
                "weights": weights },
            { "type": "dense", "activation": "", "shape": [null, null, 1], "weights": [[[0.5], [0.25]], [0.0]] },
        ],
    })
}

/// A NAM file with changed fields of its description.
fn nam(name: &str, changes: &Value) -> Value {
    with(serde_json::from_slice(&bytes(name)).unwrap(), "/config", changes)
}

/// A NAM file with changed fields.
fn nam_file(changes: &Value) -> Value {
    with(serde_json::from_slice(&bytes("linear_64.nam")).unwrap(), "", changes)
}

/// A container whose second network has another sample rate than the file.
fn container_of_two_rates() -> Value {
    let model = |rate: f64| nam_file(&json!({ "sample_rate": rate }));
    let submodels =
        json!([{ "max_value": 0.5, "model": model(48_000.0) }, { "max_value": 1.0, "model": model(44_100.0) }]);
    json!({
        "version": "0.7.0", "architecture": "SlimmableContainer", "sample_rate": 48_000, "weights": [],
        "config": { "submodels": submodels },
    })
}

/// The rows of the table by the text of the first column.
fn cases() -> Vec<(&'static str, Value)> {
    let two_outputs = json!({ "out_channels": 2 });
    let two_inputs = json!({ "in_channels": 2 });
    let without_bias = Spec { has_biases: false, ..LSTM };
    vec![
        ("GuitarML: LSTM or GRU, 1 to 3 inputs", guitarml(Spec { inputs: 3, ..GRU }, &json!({}))),
        ("GuitarML: several layers", guitarml(Spec { layers: 2, ..LSTM }, &json!({}))),
        ("GuitarML: `bias_fl` false, no biases", guitarml(without_bias, &json!({}))),
        ("GuitarML: `bias_fl` true or absent, no biases", guitarml(without_bias, &json!({ "bias_fl": true }))),
        ("GuitarML: `skip` 0", guitarml(LSTM, &json!({ "skip": 0 }))),
        ("GuitarML: `skip` absent", guitarml(LSTM, &json!({ "skip": null }))),
        ("GuitarML: `skip` 2 or more, several inputs", guitarml(Spec { inputs: 2, ..LSTM }, &json!({ "skip": 2 }))),
        ("GuitarML: 4 inputs", guitarml(Spec { inputs: 4, ..LSTM }, &json!({}))),
        ("GuitarML: 2 outputs", guitarml(LSTM, &json!({ "output_size": 2 }))),
        ("GuitarML: units of type RNN", guitarml(LSTM, &json!({ "unit_type": "RNN" }))),
        ("GuitarML: model of type RecNet", guitarml(LSTM, &json!({ "model": "RecNet" }))),
        ("GuitarML: description without weights", with(LSTM.file(&LSTM.weights()), "", &json!({ "state_dict": null }))),
        ("AIDA-X: LSTM or GRU, `in_skip` 0, 1 or absent", aidax(&json!({ "in_skip": 1 }))),
        ("AIDA-X: `in_skip` 2 or more", aidax(&json!({ "in_skip": 2 }))),
        ("AIDA-X: `in_skip` is text", aidax(&json!({ "in_skip": "2" }))),
        ("AIDA-X: 4 inputs", aidax(&json!({ "in_shape": [null, null, 4] }))),
        ("AIDA-X: LSTM without biases", aidax_layer("lstm", |weights| json!(weights[..2]))),
        ("AIDA-X: GRU with one row of biases", {
            // The weights of three of four gates.
            aidax_layer("gru", |weights| {
                let rows = |rows: &Value| -> Value {
                    rows.as_array().unwrap().iter().map(|row| json!(row.as_array().unwrap()[..36])).collect()
                };
                json!([rows(&weights[0]), rows(&weights[1]), weights[2].as_array().unwrap()[..36]])
            })
        }),
        (
            "RTNeural: dense, conv1d, prelu, batchnorm, activation",
            rtneural("conv1d", &json!([[[[0.5, -0.5]]], [0.0, 0.0]])),
        ),
        ("RTNeural: any other layer", rtneural("conv2d", &json!([]))),
        ("NAM: 1 input, 1 output", nam("linear_64.nam", &json!({ "in_channels": 1, "out_channels": 1 }))),
        ("NAM: WaveNet with 2 inputs", nam("wn_a1_nano.nam", &two_inputs)),
        ("NAM: LSTM with 2 inputs", nam("lstm_1x16.nam", &json!({ "in_channels": 2, "input_size": 2 }))),
        ("NAM: ConvNet with 2 inputs", nam("convnet_bn.nam", &two_inputs)),
        ("NAM: Linear with 2 inputs", nam("linear_64.nam", &json!({ "in_channels": 2, "out_channels": 2 }))),
        ("NAM: Linear with 2 outputs", nam("linear_64.nam", &two_outputs)),
        ("NAM: version 0.7.1", nam_file(&json!({ "version": "0.7.1" }))),
        ("NAM: version before 0.5 or after 0.7", nam_file(&json!({ "version": "0.8.0" }))),
        ("NAM: another architecture", nam_file(&json!({ "architecture": "PackedWaveNet" }))),
        ("NAM: too many or too few weights", nam_file(&json!({ "weights": [0.5] }))),
        ("NAM: container with submodels of two rates", container_of_two_rates()),
    ]
}

#[test]
fn the_table_says_what_is_played_and_why_not() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/amp.md")).unwrap();
    let section = page.split(HEADING).nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let cases = cases();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, cases.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (row, (name, file)) in rows.iter().zip(&cases) {
        let verdict = match ModelFile::read(file.to_string().as_bytes()) {
            Ok(_) => "played".to_owned(),
            Err(error) => format!("refused: {error}"),
        };
        assert!(verdict.starts_with(row[2]) && !row[1].is_empty(), "{name}: {verdict}");
    }
}
