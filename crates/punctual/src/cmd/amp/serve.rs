//! `punctual amp serve`: the audio thread plays, a browser chooses and turns.

mod controller;
mod library;

use std::{sync::Arc, thread, time::Duration};

use amp::{Chain, Parts};
use anyhow::Context;
use play::{ChainPlayer, page::Page};

use self::{
    controller::{PageController, Start},
    library::Library,
};
use super::rig;
use crate::{cli::AmpServe, cmd::sound, exit::Usage, output};

const LOOK_EVERY: Duration = Duration::from_millis(100);

pub fn run(options: &AmpServe) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let folder = &options.folder;
    let library = Library::open(folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    let page = Page::open(options.port)?;
    let url = page.url();
    let asked = options.preset.as_deref().map(|asked| find_preset(&library, asked)).transpose()?;
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let (start, parts) = first(&library, asked, rate_hz)?;
    let (chain, controls) = Chain::new(rate_hz, &start.preset.settings, parts);
    let engine = sound::start(ready, Box::new(ChainPlayer(chain)))?;
    let controller = Arc::new(PageController::new(library, start, (controls, engine)));
    page.serve(controller.clone()).context("cannot start the threads of the page; close other programs")?;
    output::stdout(|out| writeln!(out, "{url}"))?;
    while sys::signal::termination_requests() == 0 && !controller.has_ended() {
        controller.tell_delay();
        thread::sleep(LOOK_EVERY);
    }
    sound::check(controller.stop())?;
    Ok(0)
}

/// What is played at first: the preset that was asked for, or the first one that can be played.
fn first(library: &Library, asked: Option<String>, rate_hz: u32) -> anyhow::Result<(Start, Parts)> {
    if asked.is_some() {
        return load(library, asked, rate_hz);
    }
    for name in library.files().presets {
        match load(library, Some(name.clone()), rate_hz) {
            Err(error) => say!("note: {name} is left out: {error:#}; mend it, then choose it on the page"),
            good => return good,
        }
    }
    load(library, None, rate_hz)
}

/// A preset of the library, ready to be played; the standing settings where there is none.
fn load(library: &Library, name: Option<String>, rate_hz: u32) -> anyhow::Result<(Start, Parts)> {
    let preset = name.as_deref().map(|name| library.preset(name)).transpose()?.unwrap_or_default();
    let rig = library.rig(&preset, &[])?;
    let parts = rig::parts(&rig, rate_hz)?;
    Ok((Start { preset, name, rig }, parts))
}

/// The file of the preset that was asked for, with its ending or without.
fn find_preset(library: &Library, asked: &str) -> anyhow::Result<String> {
    let presets = library.files().presets;
    match presets.iter().find(|name| *name == asked || name.strip_suffix(".toml") == Some(asked)) {
        Some(name) => Ok(name.clone()),
        None => {
            let there = if presets.is_empty() { "none".to_owned() } else { presets.join(", ") };
            Err(Usage(format!("there is no preset {asked} in the folder, which has {there}")).into())
        }
    }
}
