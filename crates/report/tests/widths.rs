//! The answer and the page of each kind of measurement at three widths.

#![allow(clippy::unwrap_used, reason = "a panic is the failure of a test")]

use insta::assert_snapshot;
use record::{
    Campaign, Record,
    file::{parse, parse_campaign},
};
use report::{
    Style,
    terminal::{MatrixFigure, answer, campaign, campaign_answer, machine, matrix, summary},
};

const UNICODE: Style = Style { color: false, unicode: true };
const WIDTHS: [usize; 3] = [40, 80, 120];
const FULL: &str = "punctual show --full a.punctual.json";

fn record(name: &str) -> Record {
    let text = match name {
        "audio" => include_str!("../../record/tests/records-0.1/audio.json"),
        "capture" => include_str!("../../record/tests/records-0.1/capture.json"),
        "machine" | "timer" => include_str!("../../record/tests/records-0.1/timer.json"),
        "matrix" => include_str!("../../record/tests/records-0.1/matrix.json"),
        "noise" => include_str!("../../record/tests/records-0.1/noise.json"),
        "process" => include_str!("../../record/tests/records-0.1/process.json"),
        "stream" => include_str!("../../record/tests/records-0.1/stream.json"),
        "udp" => include_str!("../../record/tests/records-0.1/udp.json"),
        other => panic!("no record of {other}"),
    };
    parse(text.as_bytes()).unwrap()
}

fn of_campaign() -> Campaign {
    parse_campaign(include_bytes!("../../record/tests/records-0.1/campaign.json")).unwrap()
}

/// The answer, then the page.
fn shown(name: &str, width: usize) -> String {
    let (answer, page) = match name {
        "campaign" => {
            let of = of_campaign();
            (campaign_answer(&of, FULL, &UNICODE, width), campaign(&of, &UNICODE, width))
        }
        "machine" => (String::new(), machine(&record(name), &UNICODE, width)),
        "matrix" => {
            let figures = [MatrixFigure::Jitter, MatrixFigure::Lateness, MatrixFigure::Missed];
            let record = record(name);
            (answer(&record, FULL, &UNICODE, width), matrix(&record, &figures, &UNICODE, width))
        }
        _ => {
            let record = record(name);
            (answer(&record, FULL, &UNICODE, width), summary(&record, &UNICODE, width))
        }
    };
    format!("{answer}{}\n{page}", "=".repeat(width))
}

fn check(name: &str) {
    for width in WIDTHS {
        let text = shown(name, width);
        for line in text.lines() {
            // A word is not broken, because a command or a path could not be pasted.
            let unbreakable = line.trim().trim_end_matches(" \\").split(' ').count() == 1;
            assert!(line.chars().count() <= width || unbreakable, "{name} is wider than {width}: {line:?}\n{text}");
        }
        assert_snapshot!(format!("{name}_{width}"), text);
    }
}

#[test]
fn pages_fit_at_three_widths() {
    for name in ["audio", "campaign", "capture", "machine", "matrix", "noise", "process", "stream", "timer", "udp"] {
        check(name);
    }
}
