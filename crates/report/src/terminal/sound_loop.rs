//! The round trip of a sound card.

use record::SoundLoop;

use super::page::Page;
use crate::sound_loop::{lines, title};

/// The results after the first one, which is the headline.
pub(super) fn brief(page: &mut Page, sound_loop: &SoundLoop) {
    for (name, text) in lines(sound_loop).into_iter().skip(1) {
        page.fact(name, 10, &text);
    }
}

/// The results of all rounds.
pub(super) fn page(page: &mut Page, sound_loop: &SoundLoop) {
    page.heading(&title(sound_loop));
    for (name, text) in lines(sound_loop) {
        page.fact(name, 10, &text);
    }
}
