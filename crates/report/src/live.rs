//! The live view: how a run is going, on standard error while it is under way.
//!
//! It needs nothing from the terminal but its size: no raw mode, no question that the terminal has to answer, no other
//! screen, no hidden cursor. So Ctrl-C stays SIGINT, and whatever ends the process leaves the terminal as it was.

mod line;
mod playing;
mod screen;
mod view;

use std::env;
use std::io::{self, IsTerminal, Stderr, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use record::{Record, Series};

use crate::style::{ColorChoice, Style};
use crate::terminal;
pub use playing::{Playing, PlayingView};
use screen::Screen;

/// What is shown while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveMode {
    /// A view in place on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// Nothing.
    Off,
    /// One plain line a second.
    Lines,
}

/// How far a run has got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// What is under way, in plain words: `at rest`, `under load (cpu, cache)`.
    pub phase: String,
    /// Time since the run began, all phases taken together, ns.
    pub elapsed_ns: u64,
    /// How long the run is to take, all phases taken together, ns; `None` when a number of samples ends it.
    pub total_ns: Option<u64>,
    /// Index of the phase under way in [`Record::phases`].
    pub phase_index: usize,
    /// Number of phases that the run is to have.
    pub phase_count: usize,
}

/// Shows a run while it is under way. Erases what it drew when it finishes or is dropped.
#[derive(Debug)]
pub struct Live {
    style: Style,
    way: Way,
    /// How many reasons of the record were said.
    said: usize,
}

#[derive(Debug)]
enum Way {
    Off,
    Lines(line::Pace),
    /// In place, and in lines for as long as the terminal is too small.
    InPlace(Screen<Stderr>, line::Pace),
}

impl Live {
    /// A live view on standard error, in the style that the environment asks for.
    #[must_use]
    pub fn new(mode: LiveMode) -> Self {
        let able = || io::stderr().is_terminal() && env::var("TERM").is_ok_and(|term| term != "dumb");
        let way = match mode {
            LiveMode::Off => Way::Off,
            LiveMode::Auto if able() => Way::InPlace(Screen::new(io::stderr()), line::Pace::default()),
            LiveMode::Auto | LiveMode::Lines => Way::Lines(line::Pace::default()),
        };
        Self { style: Style::for_stderr(ColorChoice::Auto), way, said: 0 }
    }

    /// The same view in another style.
    #[must_use]
    pub fn with_style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Shows the state of the run. Meant to be called up to 5 times a second; lines are thinned to one a second here.
    ///
    /// A terminal that cannot be written to is left alone from then on.
    pub fn update(&mut self, record: &Record, progress: &Progress) {
        if !matches!(self.way, Way::Off)
            && self.say_refusals(record).and_then(|()| self.show(record, progress)).is_err()
        {
            self.way = Way::Off;
        }
    }

    fn show(&mut self, record: &Record, progress: &Progress) -> io::Result<()> {
        match &mut self.way {
            Way::Off => Ok(()),
            Way::Lines(pace) => pace.print(&mut io::stderr(), record, progress),
            Way::InPlace(screen, pace) => match view::fit(terminal_size(), running(record, progress).len()) {
                Some((width, height)) => {
                    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
                    view::draw(&mut buffer, record, progress, self.style.unicode);
                    screen.show(&buffer, self.style.color)
                }
                None => screen.erase().and_then(|()| pace.print(&mut io::stderr(), record, progress)),
            },
        }
    }

    /// Says above the view, or between the lines, what the kernel refused: at once, and once.
    fn say_refusals(&mut self, record: &Record) -> io::Result<()> {
        let new = record.validity.reasons.get(self.said..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        self.said += new.len();
        if let Way::InPlace(screen, _) = &mut self.way {
            screen.erase()?;
        }
        let columns = terminal_size().0;
        let width = if columns == 0 { 100 } else { usize::from(columns) };
        io::stderr().write_all(terminal::reasons(new, &self.style, width).as_bytes())
    }

    /// Ends the view and erases it; nothing is shown from then on.
    pub fn finish(&mut self) {
        if let Way::InPlace(screen, _) = &mut self.way {
            let _ = screen.erase();
        }
        self.way = Way::Off;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A panic's message stands below the view by now: erasing the view would take the message along.
        if !std::thread::panicking() {
            self.finish();
        }
    }
}

/// Columns and rows of the terminal; 0 where it does not say, as on a serial line.
fn terminal_size() -> (u16, u16) {
    rustix::termios::tcgetwinsize(io::stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row))
}

/// The probe's series of the phase under way.
fn running<'a>(record: &'a Record, progress: &Progress) -> Vec<&'a Series> {
    let phase = record.phases.get(progress.phase_index).map(|phase| phase.name.as_str());
    record.of_the_probe().filter(|series| Some(series.phase.as_str()) == phase).collect()
}

/// The time that is left, in words; nothing where only a number of samples ends the run.
fn time_left(progress: &Progress) -> Option<String> {
    let left_ns = progress.total_ns?.saturating_sub(progress.elapsed_ns);
    // Whole seconds, rounded up: a countdown that ends at 0 and not before.
    Some(analysis::format_duration(left_ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000)))
}
