//! `punctual amp serve`.

use std::{sync::Arc, thread, time::Duration};

use ::play::{ChainPlayer, Library, LibraryError, PageController, page::Page};
use amp::Chain;
use anyhow::Context;

use super::{loader, to_usage};
use crate::{cli::AmpServe, cmd::sound, output};

/// Time between two checks of the audio thread.
const INTERVAL: Duration = Duration::from_millis(100);

pub fn run(options: &AmpServe) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let folder = &options.folder;
    let library =
        Library::open(folder, loader()).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let page = Page::open(options.port)?;
    let url = page.url();
    let preset = options.preset.as_deref().map(|name| library.find_preset(name)).transpose().map_err(library_error)?;
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let start = match preset {
        Some(name) => library.load(Some(name), rate_hz),
        None => library.load_first(rate_hz),
    };
    let (start, parts) = start.map_err(library_error)?;
    let (chain, controls) = Chain::new(rate_hz, &start.preset.settings, parts);
    let engine = sound::start(ready, Box::new(ChainPlayer(chain)))?;
    let controller = Arc::new(PageController::new(library, start, controls, engine));
    page.serve(controller.clone()).context("cannot start the threads of the page; close other programs")?;
    output::stdout(|out| writeln!(out, "{url}"))?;
    while sys::signal::termination_requests() == 0 && !controller.has_ended() {
        controller.set_delay();
        thread::sleep(INTERVAL);
    }
    sound::check(controller.stop())?;
    Ok(0)
}

fn library_error(error: LibraryError) -> anyhow::Error {
    let is_choice = error.is_choice();
    to_usage(error, is_choice)
}
