//! The keys of the live view, read from standard input if that is a terminal.
//!
//! The terminal gives keys without waiting for a whole line, and does not echo them. Ctrl-C and Ctrl-Z keep their meaning.

use std::io::{self, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// A request of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// End the run now, and show its results.
    Finish,
    /// Stop or continue to update the view.
    Pause,
    /// Show or hide the explanation of the view.
    Help,
}

impl Key {
    fn of(byte: u8) -> Option<Self> {
        match byte {
            b'q' | b'Q' => Some(Self::Finish),
            b'p' | b'P' | b' ' => Some(Self::Pause),
            b'?' | b'h' => Some(Self::Help),
            _ => None,
        }
    }
}

/// Standard input as a source of keys. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Keys {
    /// The settings of the terminal before.
    before: Termios,
}

impl Keys {
    /// Takes the keys of the terminal; `None` if standard input is not the terminal of this foreground process.
    pub(super) fn take() -> Option<Self> {
        if !io::stdin().is_terminal() || !is_in_foreground() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let keys = Self { before };
        keys.set_up().then_some(keys)
    }

    /// The keys pressed since the last call.
    pub(super) fn pressed(&self) -> Vec<Key> {
        // In the background, reading or changing the terminal would stop this process.
        if !is_in_foreground() {
            return Vec::new();
        }
        // A shell that has continued this process may have changed them.
        self.set_up();
        let stdin = io::stdin();
        let mut bytes = [0; 64];
        let mut all = Vec::new();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        while poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&now)) == Ok(1) {
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(length @ 1..) => all.extend(bytes[..length].iter().filter_map(|&byte| Key::of(byte))),
                Ok(0) | Err(_) => break,
            }
        }
        all
    }

    /// Lets the terminal give single keys. Returns false if it refuses.
    fn set_up(&self) -> bool {
        let Ok(mut now) = tcgetattr(io::stdin()) else { return false };
        let lines = LocalModes::ICANON | LocalModes::ECHO;
        if !now.local_modes.intersects(lines) {
            return true;
        }
        now.local_modes.remove(lines);
        tcsetattr(io::stdin(), OptionalActions::Now, &now).is_ok()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if is_in_foreground() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// True if this process may change its terminal.
fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_meanings() {
        assert_eq!(
            [b'q', b'p', b'?', b'x', 27].map(Key::of),
            [Some(Key::Finish), Some(Key::Pause), Some(Key::Help), None, None]
        );
    }
}
