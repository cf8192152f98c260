//! The C interfaces of the hosts, and what both have in common: the only `unsafe` of this crate.

#![allow(unsafe_code, reason = "the C interfaces of LV2 and CLAP; each block states why it is sound")]

mod clap;
mod lv2;

use std::{ffi::CString, io::Write, ptr};

use record::visible::{self, Passes};

pub use self::{clap::clap_entry, lv2::lv2_descriptor};
use crate::player::Player;

/// The sample rate, Hz, to the nearest whole number, e.g. for 47,952.048 Hz; `None` if a chain cannot have it.
fn whole_rate(rate: f64) -> Option<u32> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    (8_000.0..=768_000.0).contains(&rate).then_some(rate.round() as u32)
}

/// A sentence for the log of a host. The names of files can have characters that control a terminal.
fn one_line(text: &str) -> CString {
    CString::new(visible::one_line(text).replace('\0', " ")).unwrap_or_default()
}

/// Shows an error if the host has no log.
fn print_error(error: &str) {
    // A failed write has no other reader.
    let _ = writeln!(visible::stderr(Passes::Text), "punctual: {error}");
}

/// Plays all frames, in blocks through buffers of its own: an output may have the memory of the input. The only output of
/// `channels` 1 is the mean of both sides.
///
/// # Safety
/// Buffers are null or have `frames` floats.
unsafe fn play(player: &mut Player, channels: u32, input: *const f32, outputs: [*mut f32; 2], frames: usize) {
    let (mut dry, mut left, mut right) = ([0.0; Player::BLOCK], [0.0; Player::BLOCK], [0.0; Player::BLOCK]);
    for at in (0..frames).step_by(Player::BLOCK) {
        let count = Player::BLOCK.min(frames - at);
        if !input.is_null() {
            // SAFETY: the caller guarantees the length; the target is an array of this function.
            unsafe { ptr::copy_nonoverlapping(input.add(at), dry.as_mut_ptr(), count) };
        }
        player.play(&dry[..count], &mut left[..count], &mut right[..count]);
        if channels == 1 {
            left.iter_mut().zip(&right).for_each(|(left, right)| *left = 0.5 * (*left + right));
        }
        for (output, from) in outputs.into_iter().zip([&left, &right]).filter(|(output, _)| !output.is_null()) {
            // SAFETY: as for the input.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), output.add(at), count) };
        }
    }
}

#[cfg(test)]
mod counting;
#[cfg(test)]
mod test_files;
