//! `punctual amp serve`.

use std::{sync::Arc, time::Duration};

use ::play::{ChainPlayer, Library, LibraryError, PageController, page::Page, preset_bank::BankError};
use amp::Chain;
use anyhow::Context;
use record::visible::{self, Passes};
use report::{ColorChoice, Style};

use super::{loader, midi::Input, note, qr, to_usage};
use crate::{cli::AmpServe, cmd::sound, output};

/// Time between two checks of the audio thread.
const INTERVAL: Duration = Duration::from_millis(100);

pub fn run(options: &AmpServe) -> anyhow::Result<u8> {
    sys::signal::count_termination()?;
    let folder = &options.folder;
    let library =
        Library::open(folder, loader()).map_err(|error| BankError::Folder { folder: folder.clone(), error })?;
    let page = Page::open(options.bind, options.port, options.token_file.as_deref())?;
    let mut midi = Input::open(&options.midi)?;
    let (url, is_public) = (page.url(), page.is_public());
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
    let controller = Arc::new(PageController::new(library, start, controls, engine)?);
    controller.set_midi_open(midi.is_open());
    let threads = "cannot start the threads of the page; close other programs";
    controller.watch_files().context(threads)?;
    page.serve(controller.clone()).context(threads)?;
    print_link(&url, is_public)?;
    while sys::signal::termination_requests() == 0 && !controller.has_ended() {
        controller.set_delay();
        let (events, error) = midi.receive(INTERVAL);
        controller.follow(&events).iter().for_each(|text| note(text));
        if let Some(error) = error {
            note(&error);
            controller.notify(&error);
            controller.set_midi_open(false);
        }
    }
    sound::check(controller.stop())?;
    Ok(0)
}

/// Prints the link, and on a terminal a QR code of it if phones can open it.
fn print_link(url: &str, is_public: bool) -> anyhow::Result<()> {
    output::stdout(|out| writeln!(out, "{url}"))?;
    let style = Style::for_stdout(ColorChoice::Auto);
    if !is_public {
        return Ok(());
    }
    if style.unicode && visible::stdout(Passes::Text).is_terminal() {
        // A longer text than a code can contain does not occur: the link is still printed.
        if let Ok(code) = qr::code(url, style.color) {
            output::stdout_in_colour(&code)?;
        }
    }
    note(
        "whoever has this link can change the sound and add files; the connection is not encrypted, so use a network that you trust",
    );
    Ok(())
}

fn library_error(error: LibraryError) -> anyhow::Error {
    let is_choice = error.is_choice();
    to_usage(error, is_choice)
}
