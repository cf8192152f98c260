//! The round trip of a sound card.

use record::SoundLoop;

use super::page::Page;
use crate::sound_loop::{lines, title};

/// What was found.
pub(super) fn page(page: &mut Page, told: &SoundLoop) {
    page.heading(&title(told));
    for (name, text) in lines(told) {
        page.fact(name, 10, &text);
    }
}
