//! The live view: the progress of a run, on standard error.
//!
//! It needs little from the terminal: no raw mode, no queries, no alternate screen, no hidden cursor. Ctrl-C stays SIGINT.
//! If standard input is the terminal, it takes single keys without echo, see `keys`.

mod keys;
mod line;
mod playing;
mod screen;
mod view;

use std::env;
use std::io::{self, Stderr, Write};
use std::time::{Duration, Instant};

use analysis::{Profile, SoFar};
use keys::{Key, Keys};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use record::visible::{self, Passes, Visible};
use record::{Record, Series, Tail};

use crate::style::{ColorChoice, Style};
use crate::terminal;
pub use playing::{Playing, PlayingView};
use screen::Screen;

/// The kind of progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LiveMode {
    /// A view in place on a terminal, otherwise plain lines.
    #[default]
    Auto,
    /// No output.
    Off,
    /// One plain line per second.
    Lines,
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The current phase: `at rest`, `under load (cpu, cache)`.
    pub phase: String,
    /// Time since the start of the run, over all phases, ns.
    pub elapsed_ns: u64,
    /// Planned duration of the run, over all phases, ns; `None` if the run ends after a number of samples.
    pub total_ns: Option<u64>,
    /// True if the run ends as soon as its verdict is decided, probably after `total_ns`.
    pub decides: bool,
    /// Index of the current phase in [`Record::phases`].
    pub phase_index: usize,
    /// The number of planned phases.
    pub phase_count: usize,
}

/// The title of a phase of a run of `count` phases, as the result names it: `at rest`, `at rest, 125 us`,
/// `under load (cpu, cache)`.
#[must_use]
pub fn phase_title(record: &Record, index: usize, count: usize) -> String {
    if let Some(program) = &record.program {
        return format!("process {}", program.pid);
    }
    match record.phases.get(index) {
        Some(phase) if phase.name == record::CALIBRATION => "finding the wake-up offset".to_owned(),
        // The name of a cell of a matrix contains the CPUs of its threads.
        Some(phase) if count > 1 && !phase.threads.is_empty() => format!("{}/{count} {}", index + 1, phase.name),
        Some(phase) if !phase.asked_loads.is_empty() => format!("under load ({})", phase.asked_loads.join(", ")),
        Some(phase) if phase.name == "rest-fast" => analysis::phase_in_words(&phase.name, phase.period_ns),
        _ => "at rest".to_owned(),
    }
}

/// Time between two judgements of the uses.
const JUDGE_EVERY: Duration = Duration::from_secs(1);
/// Time between two fits of the tail, which take 0.1 s each: less than 1 % of a CPU.
const FIT_EVERY: Duration = Duration::from_secs(30);

/// Shows the progress of a run. Erases its drawing when finished or dropped.
#[derive(Debug)]
pub struct Live {
    style: Style,
    output: Output,
    /// The number of the record's reasons that were already shown.
    shown: usize,
    keys: Option<Keys>,
    is_paused: bool,
    is_helping: bool,
    /// The uses, from the least to the most demanding one, with what the run has shown about each.
    uses: Vec<(Profile, SoFar)>,
    /// When the uses were last judged.
    judged: Option<Instant>,
    /// The time without a stall that the most demanding use without late cycles still needs for PASS, ns.
    left_ns: Option<u64>,
    /// The larger values to expect by the phase of this index, so far.
    tail: Option<Tail>,
    /// When the tail was last fitted.
    fitted: Option<Instant>,
}

/// True if standard error is a terminal on which a view can be drawn in place.
#[must_use]
pub fn can_draw() -> bool {
    visible::stderr(Passes::Text).is_terminal() && env::var("TERM").is_ok_and(|term| term != "dumb")
}

#[derive(Debug)]
enum Output {
    Off,
    Lines(line::Pace),
    /// In place, or in lines while the terminal is too small.
    InPlace(Screen<Visible<Stderr>>, line::Pace),
}

impl Live {
    /// A live view on standard error, with the style from the environment.
    #[must_use]
    pub fn new(mode: LiveMode) -> Self {
        let output = match mode {
            LiveMode::Off => Output::Off,
            LiveMode::Auto if can_draw() => {
                Output::InPlace(Screen::new(visible::stderr(Passes::Drawing)), line::Pace::default())
            }
            LiveMode::Auto | LiveMode::Lines => Output::Lines(line::Pace::default()),
        };
        let keys = if let Output::InPlace(..) = output { Keys::take() } else { None };
        Self {
            style: Style::for_stderr(ColorChoice::Auto),
            output,
            shown: 0,
            keys,
            is_paused: false,
            is_helping: false,
            uses: Vec::new(),
            judged: None,
            left_ns: None,
            tail: None,
            fitted: None,
        }
    }

    /// Returns the same view, which also shows what the run has shown about these uses, from the least to the most
    /// demanding one.
    #[must_use]
    pub fn with_uses(mut self, uses: Vec<Profile>) -> Self {
        self.uses = uses.into_iter().map(|profile| (profile, SoFar::Nothing)).collect();
        self
    }

    /// Returns the same view with another style.
    #[must_use]
    pub fn with_style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Shows the state of the run. Callers update up to 5 times a second; lines are limited to one a second. Returns true
    /// if the user wants to end the run now.
    ///
    /// After a write error, nothing more is written.
    pub fn update(&mut self, record: &Record, progress: &Progress) -> bool {
        let was_paused = self.is_paused;
        let mut finishes = false;
        for key in self.keys.iter().flat_map(Keys::pressed) {
            match key {
                Key::Finish => finishes = true,
                Key::Pause => self.is_paused = !self.is_paused,
                Key::Help => self.is_helping = !self.is_helping,
            }
        }
        let is_frozen = was_paused && self.is_paused;
        if !matches!(self.output, Output::Off) && !is_frozen {
            self.judge(record);
            self.fit(record, progress);
            if self.show_reasons(record).and_then(|()| self.show(record, progress)).is_err() {
                self.output = Output::Off;
            }
        }
        finishes
    }

    /// Judges the uses, if it is time.
    fn judge(&mut self, record: &Record) {
        if self.judged.is_some_and(|at| at.elapsed() < JUDGE_EVERY) {
            return;
        }
        self.judged = Some(Instant::now());
        self.uses.iter_mut().for_each(|(profile, so_far)| *so_far = analysis::so_far(record, profile));
        // An invalid run does not pass.
        let is_valid = record.validity.reasons.is_empty();
        let last = self.uses.iter().rfind(|(_, so_far)| *so_far == SoFar::NoneLate && is_valid);
        self.left_ns = last.and_then(|(profile, _)| analysis::time_to_pass_ns(record, profile));
    }

    /// Fits the tail of the current phase for the view, if it is time.
    fn fit(&mut self, record: &Record, progress: &Progress) {
        let phase = record.phases.get(progress.phase_index).map_or("", |phase| &*phase.name);
        let is_same = self.tail.as_ref().is_some_and(|tail| tail.phase == phase);
        let is_drawn = matches!(self.output, Output::InPlace(..));
        if !is_drawn || is_same && self.fitted.is_some_and(|at| at.elapsed() < FIT_EVERY) {
            return;
        }
        // The limit of the most demanding use that can still pass.
        let last = self.uses.iter().rfind(|(_, so_far)| *so_far == SoFar::NoneLate);
        let limits_ns: Vec<i64> = last.iter().map(|(profile, _)| profile.limit_ns).collect();
        self.tail = analysis::tail_so_far(record, phase, &limits_ns);
        self.fitted = Some(Instant::now());
    }

    fn show(&mut self, record: &Record, progress: &Progress) -> io::Result<()> {
        match &mut self.output {
            Output::Off => Ok(()),
            Output::Lines(pace) => pace.print(&mut visible::stderr(Passes::Text), record, progress),
            Output::InPlace(screen, pace) => match view::fit(terminal_size(), running(record, progress).len()) {
                Some((width, height)) => {
                    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
                    let view = view::View {
                        record,
                        progress,
                        uses: &self.uses,
                        left_ns: self.left_ns,
                        tail: self.tail.as_ref(),
                        has_keys: self.keys.is_some(),
                        is_paused: self.is_paused,
                        is_helping: self.is_helping,
                        unicode: self.style.unicode,
                    };
                    view.draw(&mut buffer);
                    screen.show(&buffer, self.style.color)
                }
                None => screen.erase().and_then(|()| pace.print(&mut visible::stderr(Passes::Text), record, progress)),
            },
        }
    }

    /// Shows new reasons why the run is invalid, once each, above the view or between lines.
    fn show_reasons(&mut self, record: &Record) -> io::Result<()> {
        let new = record.validity.reasons.get(self.shown..).unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        self.shown += new.len();
        if let Output::InPlace(screen, _) = &mut self.output {
            screen.erase()?;
        }
        let columns = terminal_size().0;
        let width = if columns == 0 { 100 } else { usize::from(columns) };
        visible::stderr(self.style.passes()).write_all(terminal::reasons(new, &self.style, width).as_bytes())
    }

    /// Ends and erases the view. Later updates show nothing.
    pub fn finish(&mut self) {
        if let Output::InPlace(screen, _) = &mut self.output {
            let _ = screen.erase();
        }
        self.output = Output::Off;
        self.keys = None;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The message of a panic is below the view: erasing the view would erase the message.
        if !std::thread::panicking() {
            self.finish();
        }
    }
}

/// Columns and rows of the terminal; 0 if unknown, e.g. on a serial line.
fn terminal_size() -> (u16, u16) {
    rustix::termios::tcgetwinsize(visible::stderr(Passes::Text)).map_or((0, 0), |size| (size.ws_col, size.ws_row))
}

/// The probe's series of the current phase.
fn running<'a>(record: &'a Record, progress: &Progress) -> Vec<&'a Series> {
    let phase = record.phases.get(progress.phase_index).map(|phase| phase.name.as_str());
    record.probe_series().filter(|series| Some(series.phase.as_str()) == phase).collect()
}

/// The remaining time; `None` if a number of samples ends the run.
fn time_left(progress: &Progress) -> Option<String> {
    let left_ns = progress.total_ns?.saturating_sub(progress.elapsed_ns);
    // Rounded up to whole seconds, so that 0 means the end.
    Some(analysis::format_duration(left_ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000)))
}

#[cfg(test)]
mod tests {
    use record::Phase;

    use super::*;

    #[test]
    fn parts_at_rest_are_named_as_in_the_result() {
        let phase = |name: &str, period_ns| Phase { name: name.into(), period_ns, ..Phase::default() };
        let phases = vec![phase("rest", 1_000_000), phase("rest-fast", 125_000)];
        let record = Record { phases, ..Record::default() };
        assert_eq!([0, 1].map(|index| phase_title(&record, index, 3)), ["at rest", "at rest, 125 us"]);
    }
}
