//! The live view of playing: load, latency, xruns, levels and the tuner.

use std::io::{self, Stderr, Write};

use analysis::{float::to_usize, format_duration, format_unsigned_ns};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{can_draw, screen::Screen, terminal_size};
use crate::style::{ColorChoice, Ink, Style};
use record::grouped;
use record::visible::{self, Passes, Visible, one_line};

/// The lowest level that a bar shows, dB.
const QUIETEST_DB: f32 = -60.0;
/// Width of a bar, columns.
const BAR: usize = 24;
/// Least width of the view, columns.
const NARROWEST: u16 = 60;
/// Rows of the view.
const ROWS: u16 = 7;

/// The state of playing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Playing {
    /// The preset or model.
    pub what: String,
    /// The configuration of the card.
    pub card: String,
    /// Time since the start, ns.
    pub elapsed_ns: u64,
    /// Latency of the buffers from input to output, frames and ns; `None` if the ports are not connected.
    pub latency: Option<(u64, u64)>,
    /// Duration of a period, ns.
    pub period_ns: u64,
    /// Mean share of a period used for processing since the last update.
    pub share: f64,
    /// The largest share since the last update.
    pub most_share: f64,
    /// The number of xruns.
    pub xruns: u64,
    /// Peaks of input and output since the last update, relative to full scale.
    pub peaks: [f32; 2],
    /// The number of input samples at full scale.
    pub input_clips: u64,
    /// The lowest gain of the limiter since the last update; 1 if it did not limit.
    pub limiter_gain: f32,
    /// True if the gate is open.
    pub gate_is_open: bool,
    /// The part of the chain that was muted because it produced NaN or infinite values.
    pub muted: Option<String>,
    /// The note played, e.g. `E2`, and its deviation in cents; positive is sharp.
    pub note: Option<(String, f32)>,
}

/// Shows playing on standard error: in place on a terminal, otherwise one line per second. Erased when dropped.
#[derive(Debug)]
pub struct PlayingView {
    style: Style,
    screen: Option<Screen<Visible<Stderr>>>,
    lines: Lines,
}

/// Merges updates into one line per second.
#[derive(Debug, Default)]
struct Lines {
    last_s: Option<u64>,
    /// The number of updates since the last line, and their merged state. Its share is the sum of all updates.
    updates: u32,
    seen: Playing,
}

impl PlayingView {
    /// A view with the style from options and environment.
    #[must_use]
    pub fn new(color: ColorChoice) -> Self {
        let is_able = can_draw();
        let screen = is_able.then(|| Screen::new(visible::stderr(Passes::Drawing)));
        Self { style: Style::for_stderr(color), screen, lines: Lines::default() }
    }

    /// Shows the state. Write errors are ignored.
    pub fn update(&mut self, playing: &Playing) {
        let (columns, rows) = terminal_size();
        let _ = match &mut self.screen {
            Some(screen) if columns >= NARROWEST && rows > ROWS => {
                let mut buffer = Buffer::empty(Rect::new(0, 0, columns.min(100), ROWS));
                draw(&mut buffer, playing, self.style.unicode);
                screen.show(&buffer, self.style.color)
            }
            Some(screen) => screen.erase().and_then(|()| self.line(playing)),
            None => self.line(playing),
        };
    }

    fn line(&mut self, playing: &Playing) -> io::Result<()> {
        self.lines.next(playing).map_or(Ok(()), |line| writeln!(visible::stderr(Passes::Text), "{line}"))
    }

    /// Erases the view, so that a message can be written.
    pub fn erase(&mut self) {
        if let Some(screen) = &mut self.screen {
            let _ = screen.erase();
        }
    }
}

impl Lines {
    /// Adds an update. Returns a line once per second.
    fn next(&mut self, playing: &Playing) -> Option<String> {
        self.updates += 1;
        let seen = std::mem::take(&mut self.seen);
        self.seen = Playing {
            share: seen.share + playing.share,
            most_share: seen.most_share.max(playing.most_share),
            peaks: [0, 1].map(|side: usize| seen.peaks[side].max(playing.peaks[side])),
            note: playing.note.clone().or(seen.note),
            ..playing.clone()
        };
        let second = playing.elapsed_ns / 1_000_000_000;
        if self.last_s.replace(second) == Some(second) {
            return None;
        }
        let seen = std::mem::take(&mut self.seen);
        let updates = std::mem::take(&mut self.updates);
        Some(line(&Playing { share: seen.share / f64::from(updates), ..seen }))
    }
}

impl Drop for PlayingView {
    fn drop(&mut self) {
        // The message of a panic is below the view.
        if !std::thread::panicking() {
            self.erase();
        }
    }
}

fn line(playing: &Playing) -> String {
    let [input, output] = playing.peaks.map(level);
    let note = playing.note.as_ref().map_or_else(String::new, |(note, cents)| format!(", {note} {cents:+.0} cents"));
    format!(
        "{}: {} so far, load {:.0} % (max {:.0} %), {} xruns, input {input}, output {output}{note}",
        one_line(&playing.what),
        format_duration(playing.elapsed_ns / 1_000_000_000 * 1_000_000_000),
        playing.share * 100.0,
        playing.most_share * 100.0,
        grouped(playing.xruns),
    )
}

fn db(peak: f32) -> f32 {
    20.0 * peak.log10()
}

fn level(peak: f32) -> String {
    if peak > 0.0 { format!("{:.1} dB", db(peak)) } else { "-inf dB".to_owned() }
}

fn draw(buffer: &mut Buffer, playing: &Playing, unicode: bool) {
    let (bar_on, bar_off) = if unicode { ("█", "░") } else { ("#", ".") };
    let bar = |share: f64| {
        let cells = to_usize((share.clamp(0.0, 1.0) * BAR as f64).round());
        format!("{}{}", bar_on.repeat(cells), bar_off.repeat(BAR - cells))
    };
    let of_peak = |peak: f32| bar(f64::from((db(peak) / -QUIETEST_DB) + 1.0));
    let good_or = |is_good: bool, other: Ink| if is_good { Ink::Good } else { other };
    let [input, output] = playing.peaks;
    let time = format_duration(playing.elapsed_ns / 1_000_000_000 * 1_000_000_000);
    let rows: [Vec<(Ink, String)>; ROWS as usize] = [
        vec![(Ink::Title, one_line(&playing.what)), (Ink::Quiet, format!("  {}  {time}", one_line(&playing.card)))],
        vec![
            (Ink::Plain, "latency  ".to_owned()),
            match playing.latency {
                Some((frames, ns)) => (Ink::Accent, format!("{} frames, {}", grouped(frames), format_unsigned_ns(ns))),
                None => (Ink::Doubt, "unknown".to_owned()),
            },
            (
                Ink::Quiet,
                if playing.latency.is_some() { "  of the buffers" } else { ": the JACK ports are not connected" }
                    .to_owned(),
            ),
        ],
        vec![
            (Ink::Plain, "load     ".to_owned()),
            (good_or(playing.most_share < 0.7, Ink::Doubt), bar(playing.share)),
            (Ink::Plain, format!(" {:3.0} %, max {:.0} %", playing.share * 100.0, playing.most_share * 100.0)),
            (Ink::Quiet, format!(" of {}", format_unsigned_ns(playing.period_ns))),
        ],
        vec![
            (Ink::Plain, "xruns    ".to_owned()),
            (good_or(playing.xruns == 0, Ink::Bad), grouped(playing.xruns)),
            (
                Ink::Bad,
                playing.muted.as_ref().map_or_else(String::new, |muted| format!("  {} is muted", one_line(muted))),
            ),
        ],
        vec![
            (Ink::Plain, "input    ".to_owned()),
            (good_or(input < 1.0, Ink::Bad), of_peak(input)),
            (Ink::Plain, format!(" {}", level(input))),
            (Ink::Quiet, if playing.gate_is_open { String::new() } else { "  gate closed".to_owned() }),
            (
                Ink::Bad,
                if playing.input_clips > 0 {
                    format!("  clipped {}", grouped(playing.input_clips))
                } else {
                    String::new()
                },
            ),
        ],
        vec![
            (Ink::Plain, "output   ".to_owned()),
            (good_or(output < 1.0, Ink::Bad), of_peak(output)),
            (Ink::Plain, format!(" {}", level(output))),
            (
                Ink::Quiet,
                if playing.limiter_gain < 1.0 {
                    format!("  limited by {:.1} dB", -db(playing.limiter_gain))
                } else {
                    String::new()
                },
            ),
        ],
        tuner(playing.note.as_ref(), unicode),
    ];
    for (y, spans) in (0..).zip(&rows) {
        let spans: Vec<Span> = spans
            .iter()
            .map(|(ink, text)| {
                let (color, weight) = ink.look();
                Span::styled(one_line(text), ratatui::style::Style::new().fg(color).add_modifier(weight))
            })
            .collect();
        buffer.set_line(0, y, &Line::from(spans), buffer.area.width);
    }
}

/// A needle from 50 cents flat to 50 cents sharp; in tune within 3.
fn tuner(note: Option<&(String, f32)>, unicode: bool) -> Vec<(Ink, String)> {
    let title = (Ink::Plain, "tuner    ".to_owned());
    let Some((name, cents)) = note else { return vec![title, (Ink::Quiet, "-".to_owned())] };
    let (track, middle, needle) = if unicode { ("─", "┼", "●") } else { ("-", "+", "O") };
    let at = to_usize(f64::from((cents.clamp(-50.0, 50.0) + 50.0) / 100.0 * BAR as f32).round());
    let cell = |place: usize| {
        if place == at {
            needle
        } else if place == BAR / 2 {
            middle
        } else {
            track
        }
    };
    let scale: String = (0..=BAR).map(cell).collect();
    let ink = if cents.abs() <= 3.0 { Ink::Good } else { Ink::Doubt };
    vec![title, (ink, scale), (Ink::Title, format!(" {}", one_line(name))), (Ink::Plain, format!(" {cents:+.0} cents"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Playing {
        Playing {
            what: "crunch (2 of 5)".to_owned(),
            card: "hw:USB, 2 periods of 64 frames at 48000 Hz".to_owned(),
            elapsed_ns: 83_400_000_000,
            latency: Some((128, 2_666_666)),
            period_ns: 1_333_333,
            share: 0.234,
            most_share: 0.41,
            xruns: 2,
            peaks: [0.25, 0.5],
            input_clips: 3,
            limiter_gain: 0.5,
            gate_is_open: true,
            muted: None,
            note: Some(("E2".to_owned(), -25.0)),
        }
    }

    fn drawn(width: u16, playing: &Playing, unicode: bool) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, ROWS));
        draw(&mut buffer, playing, unicode);
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..ROWS).map(row).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn draws_the_state_of_playing() {
        insta::assert_snapshot!(drawn(80, &example(), false));
    }

    #[test]
    fn shows_silence_and_muted_parts() {
        let playing =
            Playing { peaks: [0.0; 2], note: None, gate_is_open: false, muted: Some("a.nam".to_owned()), ..example() };
        let text = drawn(80, &playing, false);
        assert!(
            text.contains("a.nam is muted") && text.contains("-inf dB  gate closed") && text.ends_with("tuner    -"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_latency_is_not_0() {
        let text = drawn(80, &Playing { latency: None, ..example() }, false);
        assert!(text.contains("latency  unknown: the JACK ports are not connected"), "{text}");
    }

    #[test]
    fn a_line_shows_the_same_state() {
        insta::assert_snapshot!(line(&example()), @"crunch (2 of 5): 1 min 23 s so far, load 23 % (max 41 %), 2 xruns, input -12.0 dB, output -6.0 dB, E2 -25 cents");
    }

    #[test]
    fn a_line_shows_the_worst_of_its_second() {
        let mut lines = Lines::default();
        let quiet = Playing { peaks: [0.1; 2], share: 0.1, most_share: 0.2, note: None, ..example() };
        let mut next = |elapsed_ms: u64, playing: &Playing| {
            lines.next(&Playing { elapsed_ns: elapsed_ms * 1_000_000, ..playing.clone() })
        };
        assert!(next(0, &quiet).is_some(), "the first line comes at once");
        assert_eq!(next(100, &Playing { peaks: [1.0, 0.1], note: example().note, ..quiet.clone() }), None);
        assert_eq!(next(200, &Playing { peaks: [0.1, 0.5], share: 0.7, most_share: 1.5, ..quiet.clone() }), None);
        let line = next(1000, &quiet).unwrap();
        let expected = "1 s so far, load 30 % (max 150 %), 2 xruns, input 0.0 dB, output -6.0 dB, E2 -25 cents";
        assert!(line.ends_with(expected), "{line}");
        // The next line starts from scratch.
        let line = next(2000, &quiet).unwrap();
        assert!(line.ends_with("load 10 % (max 20 %), 2 xruns, input -20.0 dB, output -20.0 dB"), "{line}");
    }

    #[test]
    fn accepts_any_value_and_size() {
        for value in [f32::NAN, f32::INFINITY, -1.0, 1e9] {
            let playing = Playing {
                peaks: [value; 2],
                limiter_gain: value,
                share: value.into(),
                note: Some((String::new(), value)),
                ..example()
            };
            for width in 0..70 {
                drawn(width, &playing, true);
            }
        }
    }
}
