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

/// One model of each kind. A change that makes one of them cheaper changes its figure here.
const MODELS: &[Model] = &[
    model!("wn_a1_standard.nam", 7422.0),
    model!("wn_a1_lite.nam", 3737.0),
    model!("wn_a1_feather.nam", 1981.0),
    model!("wn_a1_nano.nam", 808.0),
    model!("a2_full.nam", 4813.0),
    model!("lstm_1x16.nam", 1092.0),
    model!("lstm_2x8.nam", 1030.0),
    model!("convnet_bn.nam", 321.0),
    model!("linear_2048.nam", 299.0),
    model!("guitarml_lstm20.json", 1496.0),
];

/// Each model takes the instructions that it took before.
pub fn takes_known_instructions() -> Result<()> {
    let folder = Path::new("models");
    fs::create_dir(folder)?;
    for model in MODELS {
        fs::write(folder.join(model.name), model.file)?;
    }
    let output = expect(0, &punctual(&format!("amp bench models --json --frames {FRAMES}"))?)?;
    let measured: Value = serde_json::from_str(&output).with_context(|| output.clone())?;
    let of = |name: &str| -> Option<f64> {
        let model = measured["models"].as_array()?.iter().find(|model| model["file"] == name)?;
        let best_us = model["best_us"].as_f64().filter(|_| model["instructions"] == "NEON")?;
        Some(best_us * 1000.0 / INSTRUCTION_NS / f64::from(FRAMES))
    };
    let mut changed = Vec::new();
    for Model { name, instructions, .. } in MODELS {
        let now = of(name).with_context(|| format!("no figure of {name}: {output}"))?;
        if (now / instructions - 1.0).abs() > TOLERANCE {
            changed.push(format!("{name}: {now:.0} instructions a frame, before {instructions:.0}"));
        }
    }
    ensure!(changed.is_empty(), "{}", changed.join("; "));
    Ok(())
}
