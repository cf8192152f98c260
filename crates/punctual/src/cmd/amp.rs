//! `punctual amp`: models of guitar amplifiers.

mod bench;
mod devices;
mod info;
mod midi;
mod play;
mod qr;
mod render;
mod rig;
mod serve;

use std::{
    fs::{self, File},
    io::{self, Cursor},
    path::Path,
};

use ::play::RigLoader;
use amp::{Model, ModelFile, file::Options, recording::Recording};
use anyhow::Context;
use record::file::{read_bytes, remedy_of_reading};

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

/// Prints a note on standard error.
fn note(text: &str) {
    say!("note: {text}");
}

/// A loader that prints its notes on standard error.
fn loader() -> RigLoader {
    RigLoader::new(note)
}

/// An error of the command line if `is_choice` is true, else an error of a file or of the machine.
fn to_usage<E: std::error::Error + Send + Sync + 'static>(error: E, is_choice: bool) -> anyhow::Error {
    if is_choice { Usage(error.to_string()).into() } else { error.into() }
}

/// What failed, and what to do about it.
fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> anyhow::Error {
    move |error| anyhow::anyhow!("cannot read {}: {error}{}", path.display(), remedy_of_reading(&error))
}

/// The largest recording that is read from a pipe, bytes.
const RECORDING_BYTES_MAX: u64 = 1 << 32;

/// Opens a recording. A pipe is read into memory as a whole; `-` is standard input.
fn open_recording(path: &Path) -> anyhow::Result<Recording<'static>> {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let recording = match fs::metadata(path).map_err(unreadable(path))?.is_file() {
        true => Recording::open(File::open(path).map_err(unreadable(path))?),
        false => Recording::open(Cursor::new(read_bytes(path, RECORDING_BYTES_MAX).map_err(unreadable(path))?)),
    };
    recording.with_context(|| path.display().to_string())
}

/// Reads a model or a cabinet.
fn read_part(path: &Path) -> anyhow::Result<Vec<u8>> {
    read_bytes(path, amp::MAX_FILE_BYTES).map_err(unreadable(path))
}

fn read_model(path: &Path) -> anyhow::Result<ModelFile> {
    let file = ModelFile::read(&read_part(path)?).with_context(|| path.display().to_string())?;
    for warning in &file.warnings {
        note(&format!("{}: {warning}", path.display()));
    }
    Ok(file)
}

/// Refuses a model that was muted while its cost was measured: that is the cost of silence.
fn refuse_muted(path: &Path, model: &Model) -> anyhow::Result<()> {
    if model.is_muted() { Err(muted(path)) } else { Ok(()) }
}

fn muted(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("the output of {} is NaN or infinite, so it cannot be played: choose another model", path.display())
}

/// A file name without its folders.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The model of a file, with the chosen size and knobs.
fn model(file: &ModelFile, choice: &cli::ModelChoice) -> anyhow::Result<Model> {
    let options = Options { slim: choice.slim.unwrap_or(1.0), ..Options::default() };
    amp::configure::model(file, options, &choice.knobs()).map_err(|error| {
        let is_choice = error.is_invalid_option();
        to_usage(error, is_choice)
    })
}
