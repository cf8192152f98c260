//! How text may look: decided once, from what the user asked for, the environment and the output.

use std::env;
use std::io::{self, IsTerminal};

use ratatui::style::{Color, Modifier};

/// What the user asked for with `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// Colour on a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Colour wherever the text goes.
    Always,
    /// No colour.
    Never,
}

/// How text may look. Colour never stands alone: a mark and a word always say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether escape sequences for colour and weight are written.
    pub color: bool,
    /// Whether marks and bars beyond ASCII are written.
    pub unicode: bool,
}

impl Style {
    /// Plain ASCII text.
    #[must_use]
    pub fn plain() -> Self {
        Self::default()
    }

    /// The style for results on standard output.
    #[must_use]
    pub fn for_stdout(choice: ColorChoice) -> Self {
        Self::decide(choice, io::stdout().is_terminal(), |name| env::var(name).ok())
    }

    /// The style for talk and the live view on standard error.
    #[must_use]
    pub fn for_stderr(choice: ColorChoice) -> Self {
        Self::decide(choice, io::stderr().is_terminal(), |name| env::var(name).ok())
    }

    fn decide(choice: ColorChoice, is_terminal: bool, env: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let term = set("TERM").unwrap_or_default();
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if set("NO_COLOR").is_some() => false,
            ColorChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
            ColorChoice::Auto => is_terminal && term != "dumb",
        };
        // The fonts of the Linux console lack most marks and bars, whatever the locale.
        let unicode = term != "dumb" && term != "linux" && utf8_locale(set);
        Self { color, unicode }
    }

    /// The mark that says what a colour says; empty for ink without a meaning of its own.
    pub(crate) fn mark(self, ink: Ink) -> &'static str {
        match (ink, self.unicode) {
            (Ink::Good, true) => "✔",
            (Ink::Good, false) => "ok",
            (Ink::Bad, true) => "✘",
            (Ink::Bad, false) => "no",
            (Ink::Doubt, true) => "?",
            (Ink::Doubt, false) => "??",
            (Ink::Alarm, true) => "!",
            (Ink::Alarm, false) => "!!",
            (Ink::Plain | Ink::Title | Ink::Quiet | Ink::Accent, _) => "",
        }
    }

    /// `text` in the colour of `ink`, where colour is allowed.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        if self.color && ink != Ink::Plain && !text.is_empty() {
            format!("{}{text}\x1b[0m", escape(ink.look()))
        } else {
            text.to_owned()
        }
    }
}

/// The first of the three variables that is set decides, as in the C library.
fn utf8_locale(set: impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// What a piece of text means, and so its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Title,
    Quiet,
    Accent,
    Good,
    Bad,
    Doubt,
    Alarm,
}

impl Ink {
    /// Colour and weight, of the 8 colours that every terminal themes itself.
    pub(crate) fn look(self) -> (Color, Modifier) {
        match self {
            Self::Plain => (Color::Reset, Modifier::empty()),
            Self::Title => (Color::Reset, Modifier::BOLD),
            Self::Quiet => (Color::Reset, Modifier::DIM),
            Self::Accent => (Color::Cyan, Modifier::empty()),
            Self::Good => (Color::Green, Modifier::empty()),
            Self::Bad => (Color::Red, Modifier::empty()),
            Self::Doubt => (Color::Yellow, Modifier::empty()),
            Self::Alarm => (Color::Magenta, Modifier::empty()),
        }
    }
}

/// The escape sequence for one of the looks above.
pub(crate) fn escape((color, weight): (Color, Modifier)) -> String {
    let weight = match weight {
        Modifier::BOLD => ";1",
        Modifier::DIM => ";2",
        _ => "",
    };
    let color = match color {
        Color::Cyan => ";36",
        Color::Green => ";32",
        Color::Red => ";31",
        Color::Yellow => ";33",
        Color::Magenta => ";35",
        _ => "",
    };
    format!("\x1b[0{weight}{color}m")
}

/// Pieces of text that make up one line.
pub(crate) type Spans = Vec<(Ink, String)>;

/// `text` without control characters: a record may come from anywhere, and must not drive the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(choice: ColorChoice, is_terminal: bool, vars: &[(&str, &str)]) -> Style {
        Style::decide(choice, is_terminal, |name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_is_for_terminals_unless_told_otherwise() {
        use ColorChoice::{Always, Auto, Never};
        assert!(decide(Auto, true, &[]).color);
        assert!(!decide(Auto, false, &[]).color);
        assert!(!decide(Auto, true, &[("TERM", "dumb")]).color);
        assert!(!decide(Auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]).color);
        assert!(decide(Auto, true, &[("NO_COLOR", "")]).color);
        assert!(decide(Auto, false, &[("CLICOLOR_FORCE", "1")]).color);
        assert!(!decide(Auto, false, &[("CLICOLOR_FORCE", "0")]).color);
        assert!(decide(Always, false, &[("NO_COLOR", "1")]).color);
        assert!(!decide(Never, true, &[("CLICOLOR_FORCE", "1")]).color);
    }

    #[test]
    fn the_locale_decides_on_unicode() {
        let unicode = |vars: &[(&str, &str)]| decide(ColorChoice::Auto, true, vars).unicode;
        assert!(unicode(&[("LANG", "de_DE.UTF-8")]));
        assert!(unicode(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!unicode(&[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]));
        assert!(!unicode(&[]));
        assert!(!unicode(&[("LANG", "C.UTF-8"), ("TERM", "linux")]));
    }

    #[test]
    fn paint_writes_nothing_without_colour() {
        assert_eq!(Style::plain().paint(Ink::Bad, "late"), "late");
        assert_eq!(Style { color: true, unicode: false }.paint(Ink::Bad, "late"), "\x1b[0;31mlate\x1b[0m");
    }
}
