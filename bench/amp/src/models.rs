//! Models of every kind: blocks of 64 frames beside nam-rs, and four of 16 beside our own of 64.

use std::{fs, hint::black_box, path::PathBuf};

use amp::{ModelFile, file::Options};
use anyhow::{Context, Result};

use crate::{
    Asked,
    rounds::{Engine, alternate},
    row::Row,
};

/// Name of the row, file, slim value, and the most that the ratio to nam-rs may be.
type Case = (&'static str, &'static str, f64, Option<f64>);

/// The most for the standard size where the processor has AVX-512.
const STANDARD_WITH_AVX512: f64 = 0.045;

/// nam-rs plays no file of GuitarML or AIDA-X, no ConvNet and no Linear.
const CASES: [Case; 14] = [
    ("standard", "wn_a1_standard.nam", 1.0, Some(0.055)),
    ("lite", "wn_a1_lite.nam", 1.0, None),
    ("feather", "wn_a1_feather.nam", 1.0, Some(0.10)),
    ("nano", "wn_a1_nano.nam", 1.0, Some(0.05)),
    ("A2 full", "a2_full.nam", 1.0, Some(0.15)),
    ("A2 lite", "a2_container.nam", 0.25, None),
    ("gated", "wn_gated.nam", 1.0, None),
    ("LSTM 1x16", "lstm_1x16.nam", 1.0, Some(0.04)),
    ("LSTM 2x8", "lstm_2x8.nam", 1.0, None),
    ("GuitarML 20", "guitarml_lstm20.json", 1.0, None),
    ("GuitarML 40", "guitarml_lstm40_cond.json", 1.0, None),
    ("AIDA-X LSTM 12", "aidax_lstm12_skip1.json", 1.0, None),
    ("ConvNet", "convnet_bn.nam", 1.0, None),
    ("Linear 2048", "linear_2048.nam", 1.0, None),
];

/// Frames that are timed together: reading the clock takes as long as a tenth of the shortest block of 16.
const TIMED: usize = 64;

/// What a sample may cost in blocks of 16, that in blocks of 64 being 1.
const SHORT_BLOCKS: f64 = 1.3;

/// What it does cost where that is missed: what is done once for a layer and block weighs where it has few channels and
/// vectors are long.
const SHORT_BLOCKS_KNOWN: [(&str, f64); 1] = [("nano", 1.45)];

/// All models that were asked for.
pub fn rows(asked: &Asked) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, file, slim, target) in CASES.into_iter().filter(|case| asked.has(case.0)) {
        eprintln!("{name}");
        let wide = name == "standard" && asked.level.name() == "AVX-512";
        let target = if wide { Some(STANDARD_WITH_AVX512) } else { target };
        rows.extend(of_model(name, file, slim, target, asked).with_context(|| file.to_owned())?);
    }
    Ok(rows)
}

fn of_model(name: &str, file: &str, slim: f64, target: Option<f64>, asked: &Asked) -> Result<[Row; 2]> {
    let path = vectors().join(file);
    let bytes = fs::read(&path)?;
    let input = input()?;
    let ours = |frames: usize| -> Result<Engine<'_>> {
        let mut model = ModelFile::read(&bytes)?.model(Options { slim, instructions: asked.level })?;
        let (mut timed, mut output) = (input.chunks_exact(TIMED).cycle(), vec![0.0; frames]);
        Ok(Box::new(move || {
            for block in timed.next().unwrap_or_default().chunks_exact(frames) {
                model.process(block, &mut output);
                black_box(&output);
            }
        }))
    };
    let mut engines = vec![ours(64)?, ours(16)?];
    if !asked.ours {
        engines.extend(peer(&String::from_utf8_lossy(&bytes), slim, &input));
    }
    let mut times = alternate(&mut engines, asked.effort).into_iter();
    let (long, short) = (times.next().unwrap_or_default(), times.next().unwrap_or_default());
    let peer = times.next();
    let target = target.filter(|_| peer.is_some());
    let known = SHORT_BLOCKS_KNOWN.iter().find(|known| known.0 == name).map(|known| known.1);
    Ok([
        Row::new(format!("{name}, 64 frames"), long.clone(), peer, target),
        Row::new(format!("{name}, four of 16 frames beside it"), short, Some(long), Some(SHORT_BLOCKS)).known(known),
    ])
}

/// nam-rs, where it plays the file.
fn peer<'a>(text: &str, slim: f64, input: &'a [f32]) -> Option<Engine<'a>> {
    let file = nam_rs::NamModel::from_json_str(text).ok()?;
    let mut model = nam_rs::Model::from_nam(&file).ok()?;
    if let Some(sizes) = model.as_slimmable_mut() {
        sizes.set_slim_size(slim as f32);
    }
    let (mut blocks, mut signal) = (input.chunks_exact(TIMED).cycle(), [0.0; TIMED]);
    Some(Box::new(move || {
        signal.copy_from_slice(blocks.next().unwrap_or_default());
        model.process_buffer(&mut signal);
        black_box(&signal);
    }))
}

/// What is played: the input of a test vector, which has loud and soft parts.
fn input() -> Result<Vec<f32>> {
    let bytes = fs::read(vectors().join("wn_a1_standard.in.f32"))?;
    Ok(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates/amp/tests/vectors")
}
