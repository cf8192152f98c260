//! `amp`: files through models, through the binary.

use std::{fs, path::PathBuf};

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};

use super::harness::Scratch;

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../amp/tests/vectors")
}

fn samples(name: &str) -> Vec<f32> {
    let bytes = fs::read(vectors().join(name)).unwrap();
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// A folder with `dry.wav`.
fn with_input(sample_rate: u32, samples: &[f32]) -> Scratch {
    let scratch = Scratch::new();
    let spec = WavSpec { channels: 1, sample_rate, bits_per_sample: 32, sample_format: SampleFormat::Float };
    let mut writer = WavWriter::create(scratch.path().join("dry.wav"), spec).unwrap();
    samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    scratch
}

fn output(scratch: &Scratch) -> Vec<f32> {
    let mut reader = WavReader::open(scratch.path().join("wet.wav")).unwrap();
    assert_eq!((reader.spec().bits_per_sample, reader.spec().sample_format), (32, SampleFormat::Float));
    reader.samples().map(Result::unwrap).collect()
}

#[test]
fn a_rendered_file_is_what_the_model_makes() {
    let cases = [
        ("wn_a1_nano.nam", "wn_a1_nano", "wn_a1_nano", 48_000, ""),
        ("a2_container.nam", "a2_container_slim025", "a2_container_slim025", 48_000, "--slim 0.25"),
        ("guitarml_lstm40_cond.json", "guitarml_lstm40_cond_p035", "guitarml_lstm40_cond_p080", 44_100, "--param 0.8"),
        ("aidax_lstm12_skip0.json", "aidax_lstm12_skip0", "aidax_lstm12_skip0_noprewarm", 48_000, "--no-prewarm"),
    ];
    for (model, input, expected, rate, more) in cases {
        let scratch = with_input(rate, &samples(&format!("{input}.in.f32")));
        let model = vectors().join(model);
        let run = scratch.run(&format!("amp render dry.wav wet.wav --bare --model {} {more}", model.display()));
        run.expect_status(0);
        let (played, expected) = (output(&scratch), samples(&format!("{expected}.out.f32")));
        assert_eq!(played.len(), expected.len());
        let worst = played.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst <= 5e-6, "{expected:?} {worst:e}", expected = model.display());
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_remedy() {
    let scratch = with_input(44_100, &[0.0; 100]);
    let model = vectors().join("wn_a1_nano.nam");
    let model = model.display();
    let refused = |arguments: &str, status: i32, told: &str| {
        let run = scratch.run(&format!("amp render dry.wav wet.wav {arguments}"));
        let said = run.expect_status(status).stderr();
        assert!(said.lines().count() == 1 && said.contains(told), "{said}");
        assert!(!scratch.path().join("wet.wav").exists(), "{arguments} wrote something");
    };
    refused(&format!("--bare --model {model}"), 1, "-r 48000");
    refused(&format!("--model {model}"), 64, "add --bare");
    refused(&format!("--bare --model {model} --slim 0.5"), 64, "leave out --slim");
    refused(&format!("--bare --model {model} --param 0.5"), 64, "the model has 0");
    let bad = vectors().join("truncated_weights.bad.nam");
    refused(&format!("--bare --model {}", bad.display()), 1, "198 weights, and 197 are there");
    refused("--bare --model no-such.nam", 1, "cannot read no-such.nam");
}

#[test]
fn a_file_tells_what_it_is_and_what_it_costs() {
    let scratch = Scratch::new();
    let model = vectors().join("wn_a1_standard.nam");
    let run = scratch.run(&format!("amp info {} --json", model.display()));
    let told: serde_json::Value = serde_json::from_str(&run.expect_status(0).stdout()).unwrap();
    assert_eq!((&told["format"], &told["architecture"]), (&"Nam".into(), &"WaveNet".into()));
    assert_eq!((&told["sample_rate_hz"], &told["settles_after_samples"]), (&48_000.0.into(), &4093.into()));
    assert_eq!(told["input_level_dbu"], 18.5);
    assert!(told["block_us"].as_f64().is_some_and(|us| us > 0.0));
    let page = scratch.run(&format!("amp info {}", model.display())).expect_status(0).stdout();
    assert!(page.contains("Neural Amp Modeler: WaveNet") && page.contains("real time"), "{page}");
}
