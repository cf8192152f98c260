//! The page of a search for the changes that help, a separate document.

use std::fmt::Write;

use analysis::format_ns;
use askama::Template;
use record::{
    Proof, counted,
    proof::{CONTROL, Effect, Figure, Judgement},
    visible::escape,
};

use super::{
    Origin,
    figure::{Key, Table},
    svg::{self, Axis, Frame, Path, Tick, number},
    text,
    verdict::Headline,
};
use crate::proof::{answer, blocks, details, ending, rows};

/// Height of the row of a candidate.
const ROW: f64 = 26.0;
/// The names of the candidates end here.
const NAMES: f64 = 250.0;

#[derive(Template)]
#[template(path = "proof.html")]
struct Page<'a> {
    proof: &'a Proof,
    title: String,
    origin: Origin<'a>,
    headline: Headline,
    keys: Vec<Key>,
    ending: &'static str,
    command: String,
    results: Table,
    charts: Vec<Chart>,
    all: Table,
    changes: Vec<(&'a str, &'a str)>,
}

/// The effects of all candidates on one figure.
struct Chart {
    id: String,
    title: String,
    /// Trusted SVG.
    svg: String,
}

/// Renders a search as one HTML document in UTF-8, which loads nothing.
///
/// # Panics
/// Never: writing to a string does not fail.
#[must_use]
pub fn render_proof(proof: &Proof) -> String {
    let answer = answer(proof);
    let class = match (answer.is_found, &proof.conclusion) {
        (true, _) => "pass",
        (false, Some(_)) => "measured",
        (false, None) => "inconclusive",
    };
    let (screening, confirmation) = blocks(proof);
    let round = format_ns(i64::try_from(proof.round_ns).unwrap_or(i64::MAX));
    let kept = proof.conclusion.as_ref().map_or(0, |conclusion| conclusion.kept.len());
    let all = details(proof);
    let tried = proof.candidates.iter().filter(|candidate| candidate.id != CONTROL).count() as u64;
    let key = |label, value: String, detail: String| Key { label, value, detail };
    let cells = |row: crate::proof::Row| {
        vec![row.name.to_owned(), row.figure.to_owned(), row.effect, row.interval, row.judgement]
    };
    let page = Page {
        proof,
        title: format!("{}: tune --prove", answer.word),
        origin: Origin {
            host: proof.hostname.as_deref(),
            kernel: proof.kernel.as_deref(),
            preempt: None,
            started_at: &proof.started_at,
        },
        headline: Headline {
            word: answer.word,
            class,
            sentence: answer.sentence,
            reason: text::with_code(&answer.reason),
        },
        keys: vec![
            key("kept", kept.to_string(), format!("of {}", counted(tried, "change"))),
            key("rounds", proof.rounds.len().to_string(), format!("of {round}, probe {}", proof.scenario.probe)),
            key("to find what helps", screening.to_string(), "blocks of four rounds".to_owned()),
            key("to confirm it", confirmation.to_string(), "blocks of four rounds".to_owned()),
        ],
        ending: ending(proof),
        command: proof.next_command(),
        results: Table::plain(
            "Results",
            &["change", "figure", "effect", "interval", "result"],
            rows(proof).into_iter().map(cells).collect(),
        ),
        charts: Figure::ALL.into_iter().filter_map(|figure| chart(proof, figure)).collect(),
        all: Table::plain("All figures", &all.headings, all.rows),
        changes: proof.candidates.iter().map(|one| (one.id.as_str(), one.change.as_str())).collect(),
    };
    escape(page.render().expect("writing to a string does not fail, and the template has no other way to fail"))
}

/// The intervals of all candidates for one figure; `None` for `missed`, whose differences have no ratio, and without any.
fn chart(proof: &Proof, figure: Figure) -> Option<Chart> {
    if figure == Figure::Missed {
        return None;
    }
    let conclusion = proof.conclusion.as_ref()?;
    let named = proof.candidates.iter().map(|candidate| candidate.id.as_str()).zip(&conclusion.effects);
    let together = conclusion.together.iter().map(|effect| ("all chosen together", effect));
    let drawn: Vec<(&str, &Effect)> =
        named.chain(together).filter(|(_, effect)| effect.on.contains_key(&figure)).collect();
    if drawn.is_empty() {
        return None;
    }
    let ends = drawn.iter().flat_map(|(_, effect)| {
        let interval = effect.on[&figure];
        [Some(interval.estimate), interval.low, interval.high]
    });
    let farthest = ends.flatten().map(|ratio| ratio.max(1e-6).log10().abs()).fold(0.1, f64::max) * 1.05;
    let bottom = svg::TOP + ROW * drawn.len() as f64;
    let x = Axis { lo: -farthest, hi: farthest, from: NAMES, to: svg::FAR_RIGHT };
    let y = Axis { lo: 0.0, hi: drawn.len() as f64, from: bottom, to: svg::TOP };
    let mut body = String::new();
    let mut one = Path::default();
    one.move_to(x.at(0.0), svg::TOP).up_or_down(bottom);
    let _ = write!(body, "<path class=\"axis\" d=\"{}\"/>", one.d());
    for (index, (name, effect)) in drawn.iter().enumerate() {
        let interval = effect.on[&figure];
        let middle = svg::TOP + ROW * (index as f64 + 0.5);
        // The colours of the judgement: green, red, grey.
        let hue = match effect.judgement {
            Judgement::Helps => "h2",
            Judgement::Harms => "h1",
            Judgement::Mixed | Judgement::RareHarm => "h4",
            Judgement::NoDifference => "h6",
        };
        let at = |ratio: f64| x.at(ratio.max(1e-6).log10());
        let mut line = Path::default();
        line.move_to(interval.low.map_or(x.from, at), middle).across(interval.high.map_or(x.to, at));
        let _ = write!(
            body,
            "<g class=\"{hue}\"><path class=\"line solid\" d=\"{}\"/><circle class=\"dots\" cx=\"{}\" cy=\"{}\" r=\"5\"/></g>\
             <text class=\"title\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            line.d(),
            number(at(interval.estimate)),
            number(middle),
            number(NAMES - 10.0),
            number(middle + 4.0),
            text::escape(name)
        );
    }
    // Intervals rarely span a decade.
    let steps = [0.01, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0, 3.0, 5.0, 10.0, 100.0];
    let near = |ratio: &f64| ratio.log10().abs() <= farthest;
    let ticks = steps.into_iter().filter(near).map(|ratio: f64| Tick { at: ratio.log10(), label: ratio.to_string() });
    let ticks = ticks.collect();
    let (id, title) = (format!("effect-{}", figure.name().replace('.', "-")), format!("Effect on {}", figure.name()));
    let frame = Frame {
        id: &id,
        title: &title,
        summary: "One line per change: the estimate and its interval, as a ratio; the table has the figures.",
        height: bottom + 54.0,
        x: (x, ticks, "with the change / without it (1: no effect, below 1: better)"),
        y: (y, Vec::new(), ""),
        data: "",
    };
    let svg = frame.draw(&body);
    Some(Chart { id, title, svg })
}
