//! `punctual amp serve`: the audio thread plays, a browser chooses and turns.

mod desk;
mod library;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use amp::{Chain, Preset};
use anyhow::Context;
use play::page::Page;

use self::{
    desk::{Desk, Start},
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
    let name = first_preset(&library, options.preset.as_deref())?;
    let preset = match &name {
        Some(name) => rig::read_preset(&folder.join(name))?,
        None => Preset::default(),
    };
    let rig = rig::of(&preset, folder, &[])?;
    let ready = sound::open(&options.sound)?;
    let rate_hz = ready.rate_hz();
    let parts = rig::parts(&rig, rate_hz)?;
    let (chain, controls) = Chain::new(rate_hz, &preset.settings, parts);
    let engine = sound::start(ready, Box::new(chain))?;
    let start = Start { preset, name, rig };
    let desk = Desk::new(library, start, (controls, engine));
    output::stdout(|out| writeln!(out, "{}", page.url()))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| page.serve(&desk, &stop));
        while sys::signal::termination_requests() == 0 && !desk.has_ended() {
            desk.tell_delay();
            thread::sleep(LOOK_EVERY);
        }
        stop.store(true, Relaxed);
    });
    sound::check(desk.stop())?;
    Ok(0)
}

fn first_preset(library: &Library, asked: Option<&str>) -> anyhow::Result<Option<String>> {
    let presets = library.files().presets;
    let Some(asked) = asked else { return Ok(presets.into_iter().next()) };
    match presets.iter().find(|name| *name == asked || name.strip_suffix(".toml") == Some(asked)) {
        Some(name) => Ok(Some(name.clone())),
        None => {
            let there = if presets.is_empty() { "none".to_owned() } else { presets.join(", ") };
            Err(Usage(format!("there is no preset {asked} in the folder, which has {there}")).into())
        }
    }
}
