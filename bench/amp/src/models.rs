//! Models of each kind: blocks of 64 frames compared with nam-rs and with their multiplications alone, four blocks of 16
//! compared with one of 64, and the chosen instruction set compared with the next one, which has shorter vectors.

use std::{fs, hint::black_box, path::PathBuf};

use amp::{InstructionSet, ModelFile, file::Options};
use anyhow::{Context, Result};

use crate::{
    Arguments,
    rounds::{Engine, alternate},
    row::Row,
};

/// Name of the row, file, slim value, and upper limit for the ratio to nam-rs.
type Case = (&'static str, &'static str, f64, Option<f64>);

/// Upper limit for the standard size on processors with AVX-512.
const STANDARD_WITH_AVX512: f64 = 0.045;

/// nam-rs supports neither GuitarML nor AIDA-X files, nor ConvNet, nor Linear.
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

/// Frames that are timed together, because reading the clock takes up to a tenth of the shortest block of 16.
const TIMED_FRAMES: usize = 64;

/// Upper limit for the time of four blocks of 16, relative to one block of 64.
const SHORT_BLOCKS_LIMIT: f64 = 1.3;

/// Known ratios above this limit. The fixed cost of a layer and block matters if the layer has few channels and vectors
/// are long. A direct convolution of 16 frames has only one vector of frames for each value that it loads.
const SHORT_BLOCKS_KNOWN_RATIOS: [(&str, f64); 2] = [("nano", 1.45), ("Linear 2048", 1.6)];

/// Upper limits for the time, relative to that of the model's multiplications alone: 55 % of the processor's peak, and 35 %.
const PEAK_LIMITS: [(&str, f64); 4] = [("standard", 1.82), ("nano", 2.86), ("A2 lite", 2.86), ("LSTM 2x8", 2.86)];

/// Upper limit for the time with the chosen instruction set, relative to the next one.
const CHOICE_LIMIT: f64 = 1.0;

/// Measures all selected models.
pub fn rows(arguments: &Arguments) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, file, slim, target) in CASES.into_iter().filter(|case| arguments.has(case.0)) {
        eprintln!("{name}");
        let wide = name == "standard" && arguments.level.name() == "AVX-512";
        let target = if wide { Some(STANDARD_WITH_AVX512) } else { target };
        rows.extend(of_model(name, file, slim, target, arguments).with_context(|| file.to_owned())?);
    }
    Ok(rows)
}

fn of_model(name: &str, file: &str, slim: f64, target: Option<f64>, arguments: &Arguments) -> Result<Vec<Row>> {
    let path = vectors().join(file);
    let bytes = fs::read(&path)?;
    let input = input()?;
    let file = ModelFile::read(&bytes)?;
    let ours = |frames: usize, instructions: InstructionSet| -> Result<Engine<'_>> {
        let mut model = file.model(Options { slim, instructions })?;
        let (mut timed, mut output) = (input.chunks_exact(TIMED_FRAMES).cycle(), vec![0.0; frames]);
        Ok(Box::new(move || {
            for block in timed.next().unwrap_or_default().chunks_exact(frames) {
                model.process(block, &mut output);
                black_box(&output);
            }
        }))
    };
    let model = file.model(Options { slim, instructions: arguments.level })?;
    let (chosen, multiplications) = (model.instructions(), model.work().multiplications);
    // The portable code is no alternative to another one.
    let next = InstructionSet::all().into_iter().skip_while(|set| *set != chosen).nth(1);
    let next = next.filter(|set| set.lanes() < chosen.lanes() && set.lanes() > 4);
    let mut engines = vec![ours(64, arguments.level)?, ours(16, arguments.level)?];
    engines.extend(next.map(|set| ours(64, set)).transpose()?);
    let peak_limit = PEAK_LIMITS.iter().find(|limit| limit.0 == name).map(|limit| limit.1);
    let peak = alone(multiplications * TIMED_FRAMES as u64);
    let has_peak = peak.is_some();
    engines.extend(peak);
    if !arguments.ours {
        engines.extend(peer(&String::from_utf8_lossy(&bytes), slim, &input));
    }
    let mut times = alternate(&mut engines, arguments.effort).into_iter();
    let (long, short) = (times.next().unwrap_or_default(), times.next().unwrap_or_default());
    let of_next = next.and_then(|set| Some((set, times.next()?)));
    let of_peak = if has_peak { times.next() } else { None };
    let peer = times.next();
    let target = target.filter(|_| peer.is_some());
    let known = SHORT_BLOCKS_KNOWN_RATIOS.iter().find(|known| known.0 == name).map(|known| known.1);
    let mut rows = vec![
        Row::new(format!("{name}, 64 frames"), long.clone(), peer, target),
        Row::new(
            format!("{name}, four of 16 frames vs one of 64"),
            short,
            Some(long.clone()),
            Some(SHORT_BLOCKS_LIMIT),
        )
        .known(known),
    ];
    rows.extend(of_peak.map(|times| {
        let name = format!("{name}, 64 frames vs its multiplications alone");
        Row::new(name, long.clone(), Some(times), peak_limit)
    }));
    rows.extend(of_next.map(|(set, times)| {
        let name = format!("{name}, {} vs {}", chosen.name(), set.name());
        Row::new(name, long, Some(times), Some(CHOICE_LIMIT))
    }));
    Ok(rows)
}

/// Sums that are independent of each other: enough vectors to use every multiplier in each cycle, and no more than fit in
/// the registers.
const SUMS: usize = if cfg!(target_feature = "avx512f") { 12 } else { 5 };

/// Multiplies and adds this often, in registers: the time at the peak of the processor. `None` if the build has no
/// instruction for it.
fn alone<'a>(multiplications: u64) -> Option<Engine<'a>> {
    const LANES: usize = 16;
    if !cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        return None;
    }
    let passes = multiplications.div_ceil((SUMS * LANES) as u64);
    Some(Box::new(move || {
        let (weight, sample) = black_box((0.5_f32, 1.0_f32));
        let mut sums = black_box([[1.0_f32; LANES]; SUMS]);
        for _ in 0..passes {
            for value in sums.as_flattened_mut() {
                *value = value.mul_add(weight, sample);
            }
        }
        black_box(&sums);
    }))
}

/// nam-rs, if it supports the file.
fn peer<'a>(text: &str, slim: f64, input: &'a [f32]) -> Option<Engine<'a>> {
    let file = nam_rs::NamModel::from_json_str(text).ok()?;
    let mut model = nam_rs::Model::from_nam(&file).ok()?;
    if let Some(sizes) = model.as_slimmable_mut() {
        #[expect(clippy::cast_possible_truncation, reason = "all slim values of the cases are multiples of 0.25")]
        sizes.set_slim_size(slim as f32);
    }
    let (mut blocks, mut signal) = (input.chunks_exact(TIMED_FRAMES).cycle(), [0.0; TIMED_FRAMES]);
    Some(Box::new(move || {
        signal.copy_from_slice(blocks.next().unwrap_or_default());
        model.process_buffer(&mut signal);
        black_box(&signal);
    }))
}

/// The input signal: that of a test vector, with loud and soft parts.
pub fn input() -> Result<Vec<f32>> {
    let bytes = fs::read(vectors().join("wn_a1_standard.in.f32"))?;
    Ok(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// The folder of the test vectors.
pub fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates/amp/tests/vectors")
}
