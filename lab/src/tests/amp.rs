//! The instructions that the amplifier's models take on arm64 (NEON), in virtual time: each takes 4 ns there.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::inside::{expect, punctual};

/// Virtual time of an instruction, ns: QEMU's `-icount shift=2`.
const INSTRUCTION_NS: f64 = 4.0;
/// Frames of a block.
const FRAMES: u32 = 64;
/// Deviation that is no change: the kernel's interrupts and the reading of the clock are in a block, too.
const TOLERANCE: f64 = 0.03;
/// Error of an estimate: that of `amp::work`, and the deviation of a count.
const ESTIMATE_TOLERANCE: f64 = 0.12;

/// A model with its file and the instructions of a frame.
struct Model {
    name: &'static str,
    file: &'static [u8],
    instructions: f64,
}

macro_rules! model {
    ($name:literal, $instructions:literal) => {
        Model {
            name: $name,
            file: include_bytes!(concat!("../../../crates/amp/tests/vectors/", $name)),
            instructions: $instructions,
        }
    };
}

/// Models of each kind. A change that makes one of them cheaper changes its figure here.
const MODELS: &[Model] = &[
    model!("wn_a1_standard.nam", 7422.0),
    model!("wn_a1_lite.nam", 3737.0),
    model!("wn_a1_feather.nam", 1981.0),
    model!("wn_a1_nano.nam", 808.0),
    model!("a2_full.nam", 4813.0),
    model!("lstm_1x16.nam", 1088.0),
    model!("lstm_2x8.nam", 1021.0),
    model!("convnet_bn.nam", 321.0),
    model!("linear_2048.nam", 299.0),
    model!("guitarml_lstm20.json", 1488.0),
    model!("convnet_nobn.nam", 854.0),
    model!("wn_gated.nam", 3176.0),
    model!("wn_headbias_v050.nam", 1748.0),
    model!("linear_64.nam", 49.0),
    model!("aidax_lstm12_skip1.json", 700.0),
    model!("guitarml_lstm40_cond.json", 4465.0),
];

/// Each model takes as many instructions as before, and about as many as `amp bench --board` estimates.
pub fn takes_known_instructions() -> Result<()> {
    let folder = Path::new("models");
    fs::create_dir(folder)?;
    for model in MODELS {
        fs::write(folder.join(model.name), model.file)?;
    }
    let measured = bench(&format!("--frames {FRAMES}"))?;
    let estimated = bench("--board cortex-a72")?;
    let mut changed = Vec::new();
    for Model { name, instructions, .. } in MODELS {
        let of_measured = of_model(&measured, name).filter(|model| model["instructions"] == "NEON");
        let best_us = of_measured.and_then(|model| model["best_us"].as_f64());
        let now = best_us.with_context(|| format!("no figure of {name}: {measured}"))? * 1000.0
            / INSTRUCTION_NS
            / f64::from(FRAMES);
        if (now / instructions - 1.0).abs() > TOLERANCE {
            changed.push(format!("{name}: {now:.0} instructions a frame, before {instructions:.0}"));
        }
        let estimate = of_model(&estimated, name).and_then(|model| model["instructions_a_frame"].as_f64());
        let estimate = estimate.with_context(|| format!("no estimate of {name}: {estimated}"))?;
        if (estimate / now - 1.0).abs() > ESTIMATE_TOLERANCE {
            changed.push(format!("{name}: {now:.0} instructions a frame, estimated {estimate:.0}: change amp::work"));
        }
    }
    ensure!(changed.is_empty(), "{}", changed.join("; "));
    Ok(())
}

/// The JSON of `amp bench` with these options, of all models.
fn bench(options: &str) -> Result<Value> {
    let output = expect(0, &punctual(&format!("amp bench models --json {options}"))?)?;
    serde_json::from_str(&output).with_context(|| output.clone())
}

/// The part of the JSON about a model.
fn of_model<'a>(json: &'a Value, name: &str) -> Option<&'a Value> {
    json["models"].as_array()?.iter().find(|model| model["file"] == name)
}
