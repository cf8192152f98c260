//! Limits of the memory that files use; playing allocates none.

use amp::{InstructionSet, ModelFile, file::Options};
use serde_json::{Value, json};

use crate::{bytes, counting_allocator, manifest, samples};

#[test]
fn playing_allocates_nothing_for_any_kind_of_model() {
    for case in manifest().cases {
        let input = samples(&case.input);
        let input = &input[..1000];
        for instructions in InstructionSet::all() {
            let mut model = case.model(instructions);
            let mut output = vec![0.0; input.len()];
            let before = counting_allocator::calls();
            for (input, output) in input.chunks(47).zip(output.chunks_mut(47)) {
                model.process(input, output);
                model.turn(0, 0.5);
            }
            model.reset(true);
            assert_eq!(counting_allocator::calls(), before, "{} with {}", case.name, instructions.name());
        }
    }
}

fn nam(architecture: &str, config: &Value, weights: usize) -> Vec<u8> {
    let zeros = "0,".repeat(weights);
    let zeros = zeros.trim_end_matches(',');
    format!(r#"{{"version":"0.7.0","architecture":"{architecture}","config":{config},"weights":[{zeros}]}}"#)
        .into_bytes()
}

fn array(channels: usize, kernel: usize, dilations: &[usize]) -> Value {
    json!({
        "input_size": 1, "condition_size": 1, "channels": channels, "kernel_size": kernel, "dilations": dilations,
        "activation": "Tanh", "head": { "out_channels": 1, "kernel_size": 1, "bias": false },
    })
}

fn keras(layers: &[Value]) -> Vec<u8> {
    json!({ "in_shape": [null, null, 1], "layers": layers }).to_string().into_bytes()
}

/// Files that request much memory with little text. Reading such a file, and building and playing the model if it is
/// valid, takes at most a few times the file size plus the maximum of a small network.
#[test]
fn no_file_takes_more_than_a_few_times_its_size() {
    let of_layers = |count: usize, channels: usize, kernel: usize, dilation: usize| {
        let config = json!({ "layers": [array(channels, kernel, &vec![dilation; count])] });
        let of_layer = channels * channels * kernel + channels + channels + channels * channels + channels;
        nam("WaveNet", &config, channels + count * of_layer + channels + 1)
    };
    let narrow = of_layers(1024, 1, 2, 1);
    let submodels: Vec<Value> = (1..=20)
        .map(|at| json!({ "max_value": f64::from(at) / 20.0, "model": serde_json::from_slice::<Value>(&narrow).unwrap() }))
        .collect();
    let layer = |kind: &str, outputs: usize, weights: Value| json!({ "type": kind, "shape": [outputs], "groups": 1024, "kernel_size": 100, "activation": "tanh", "weights": weights });
    // From one value to many, and back.
    let between = |layers: &[Value]| {
        let first = layer("dense", 1024, json!([[vec![0; 1024]]]));
        let last = layer("dense", 1, json!([vec![[0]; 1024]]));
        keras(&[&[first], layers, &[last]].concat())
    };
    let function = layer("activation", 1024, json!([]));
    let slopes = layer("prelu", 1024, json!([[[0.5]]]));
    let groups = layer("conv1d", 1024, json!([vec![[vec![0; 1024]]; 100], vec![0; 1024]]));
    let files = [
        ("several activations of many values", between(&vec![function.clone(); 10]), true),
        ("many activations of many values", between(&vec![function; 1000]), false),
        ("many slopes of many values", between(&vec![slopes; 1000]), false),
        ("many groups", between(&[groups]), false),
        ("narrow layers", narrow, true),
        ("narrow layers of one tap", of_layers(1024, 1, 1, 1), true),
        ("far taps", of_layers(2, 1, 2, 1 << 19), false),
        ("farther taps", of_layers(1, 2, 2, 1 << 20), false),
        ("wide layers without weights", nam("WaveNet", &json!({ "layers": [array(1024, 64, &[1; 1024])] }), 10), false),
        ("many arrays", nam("WaveNet", &json!({ "layers": vec![array(1, 1, &[1]); 1000] }), 7001), true),
        ("only weights", nam("LSTM", &json!({ "num_layers": 1, "input_size": 1, "hidden_size": 4 }), 1 << 20), false),
        (
            "units without weights",
            nam("LSTM", &json!({ "num_layers": 1024, "input_size": 1, "hidden_size": 1024 }), 9),
            false,
        ),
        ("a long response", nam("Linear", &json!({ "receptive_field": 1 << 17, "bias": false }), 1 << 17), true),
        ("many sizes", nam("SlimmableContainer", &json!({ "submodels": submodels }), 0), true),
    ];
    for (name, bytes, is_model) in files {
        let (played, peak) = counting_allocator::peak(|| {
            let mut model = ModelFile::read(&bytes).ok()?.model(Options::default()).ok()?;
            let mut output = [0.0; 100];
            model.process(&[0.1; 100], &mut output);
            Some(output)
        });
        assert_eq!(played.is_some(), is_model, "{name}");
        let most = 16 * bytes.len() + (12 << 20);
        println!("{name}: {} bytes, {peak} allocated", bytes.len());
        assert!(peak <= most, "{name}: {} bytes, {peak} allocated", bytes.len());
    }
}

/// The same limit for malformed files.
#[test]
fn no_malformed_file_takes_more() {
    for bad in manifest().malformed {
        let bytes = bytes(&bad.model);
        let (_, peak) = counting_allocator::peak(|| ModelFile::read(&bytes).is_err());
        assert!(peak <= 16 * bytes.len() + (1 << 20), "{}: {} bytes, {peak} allocated", bad.model, bytes.len());
    }
}
