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

/// A file's name without its folders.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The model as it was chosen, settled.
fn model(file: &ModelFile, choice: &cli::ModelChoice) -> anyhow::Result<Model> {
    let options = Options { slim: choice.slim.unwrap_or(1.0), ..Options::default() };
    let knobs: Vec<f32> = choice.param.iter().map(|&value| value as f32).collect();
    amp::configure::model(file, options, &knobs).map_err(|error| match error.is_invalid_option() {
        true => Usage(error.to_string()).into(),
        false => error.into(),
    })
}
