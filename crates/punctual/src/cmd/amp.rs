//! `punctual amp`: models of amplifiers.

mod bench;
mod cost;
mod devices;
mod info;
mod play;
mod render;
mod rig;
mod serve;

use std::path::Path;

use amp::{Model, ModelFile, file::Options};
use anyhow::Context;

use crate::{cli, exit::Usage};

pub fn run(what: &cli::Amp) -> anyhow::Result<u8> {
    match what {
        cli::Amp::Bench(options) => bench::run(options),
        cli::Amp::Devices(options) => devices::run(options),
        cli::Amp::Info(options) => info::run(options),
        cli::Amp::Play(options) => play::run(options),
        cli::Amp::Render(options) => render::run(options),
        cli::Amp::Serve(options) => serve::run(options),
    }
}

fn read(path: &Path) -> anyhow::Result<ModelFile> {
    let bytes = sys::file::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = ModelFile::read(&bytes).with_context(|| path.display().to_string())?;
    for warning in &file.warnings {
        say!("note: {}: {warning}", path.display());
    }
    Ok(file)
}

/// The model, its knobs turned, settled.
fn model(file: &ModelFile, choice: &cli::ModelChoice) -> anyhow::Result<Model> {
    if choice.slim < 1.0 && !file.is_slimmable() {
        return Err(Usage("the model has one size: leave out --slim".to_owned()).into());
    }
    let mut model = file.model(Options { slim: choice.slim, ..Options::default() })?;
    if choice.param.len() > model.knobs() {
        let text = format!(
            "so many knobs are turned: {}, and the model has {}: leave out some of --param",
            choice.param.len(),
            model.knobs()
        );
        return Err(Usage(text).into());
    }
    for (knob, &value) in choice.param.iter().enumerate() {
        model.turn(knob, value as f32);
    }
    model.reset(true);
    Ok(model)
}
