//! Colour and characters of text, decided from options, environment and output.

use std::env;

use ratatui::style::{Color, Modifier};
use record::visible::{self, Passes, one_line};

/// The value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// Colour on a terminal, unless the environment disables it.
    #[default]
    Auto,
    /// Colour for every output.
    Always,
    /// No colour.
    Never,
}

/// Colour and characters that text may use. Colour is never the only sign: a mark and a word repeat its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// True if escape sequences for colour and weight are written.
    pub color: bool,
    /// True if marks and bars may use characters beyond ASCII.
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
        Self::decide(choice, visible::stdout(Passes::Text).is_terminal(), |name| env::var(name).ok())
    }

    /// The style for messages and the live view on standard error.
    #[must_use]
    pub fn for_stderr(choice: ColorChoice) -> Self {
        Self::decide(choice, visible::stderr(Passes::Text).is_terminal(), |name| env::var(name).ok())
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
        // Fonts of the Linux console lack most marks and bars, whatever the locale.
        let unicode = term != "dumb" && term != "linux" && utf8_locale(set);
        Self { color, unicode }
    }

    /// The mark with the same meaning as the colour; empty for inks without a meaning.
    pub(crate) fn mark(self, ink: Ink) -> &'static str {
        match (ink, self.unicode) {
            (Ink::Good, true) => "✔",
            (Ink::Good, false) => "ok",
            (Ink::Bad, true) => "✘",
            (Ink::Bad, false) => "x",
            (Ink::Doubt, true) => "?",
            (Ink::Doubt, false) => "??",
            (Ink::Alarm, true) => "!",
            (Ink::Alarm, false) => "!!",
            (Ink::Plain | Ink::Title | Ink::Quiet | Ink::Accent, _) => "",
        }
    }

    /// The escape sequences of pages with this style.
    #[must_use]
    pub fn passes(self) -> Passes {
        if self.color { Passes::Colours } else { Passes::Text }
    }

    /// One line of text in the colour of `ink`, if colour is enabled. The text may come from outside.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        let text = one_line(text);
        if self.color && ink != Ink::Plain && !text.is_empty() {
            format!("{}{text}\x1b[0m", escape(ink.look()))
        } else {
            text
        }
    }
}

/// True for a UTF-8 locale. The first of the three variables that is set decides, as in the C library.
fn utf8_locale(set: impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The meaning of a piece of text, which determines its colour.
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
    /// Colour and weight, from the 8 colours that terminal themes define.
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

/// The escape sequence for such a colour and weight.
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

/// Pieces of text in one line.
pub(crate) type Spans = Vec<(Ink, String)>;

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(choice: ColorChoice, is_terminal: bool, vars: &[(&str, &str)]) -> Style {
        Style::decide(choice, is_terminal, |name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colour_depends_on_terminal_and_environment() {
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

    #[test]
    fn every_colour_passes_the_filter_and_no_colour_of_others() {
        let style = Style { color: true, unicode: true };
        use Ink::{Accent, Alarm, Bad, Doubt, Good, Plain, Quiet, Title};
        let painted: String =
            [Plain, Title, Quiet, Accent, Good, Bad, Doubt, Alarm].map(|ink| style.paint(ink, "a")).concat();
        let mut shown = Vec::new();
        let mut filter = visible::Visible::new(&mut shown, style.passes());
        std::io::Write::write_all(&mut filter, painted.as_bytes()).unwrap();
        filter.finish().unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), painted);
        assert_eq!(style.paint(Plain, "\x1b[0;32mPASS"), "\\u{1b}[0;32mPASS");
    }
}
