//! Tables of a comparison for papers and comments: LaTeX, Markdown, and CSV with all digits.

use std::fmt::Write;

use record::{
    Versus,
    versus::{Measure, MeasureEffect},
    visible::one_line,
};

use super::markdown::{cell, prose};
use crate::versus::{HEADINGS, answer, name, notes, rows, side};

/// A Markdown comment: the answer, and a table for each group.
pub(super) fn markdown(versus: &Versus) -> String {
    let of = answer(versus);
    let mut out = format!("**{}** {}\n\n", of.word, prose(&of.sentence));
    let _ = writeln!(out, "- A: {}\n- B: {}", prose(&side(&versus.a)), prose(&side(&versus.b)));
    for group in &versus.groups {
        let _ = write!(out, "\n{}\n\n| {} |\n|---|", prose(&name(group)), HEADINGS.join(" | "));
        out.push_str(&"---:|".repeat(HEADINGS.len() - 2));
        out.push_str("---|\n");
        for row in rows(group) {
            let _ = writeln!(out, "| {} |", row.cells.map(|text| cell(&text)).join(" | "));
        }
    }
    for note in notes(versus) {
        let _ = write!(out, "\n{}\n", prose(&note));
    }
    out
}

/// A LaTeX table for each group (package `booktabs`).
pub(super) fn latex(versus: &Versus) -> String {
    let mut out = String::from("% Needs \\usepackage{booktabs}.\n");
    let _ = writeln!(out, "% A: {}\n% B: {}", one_line(&side(&versus.a)), one_line(&side(&versus.b)));
    for group in &versus.groups {
        let _ = writeln!(out, "\\begin{{table}}\n\\centering\n\\caption{{{}}}", in_latex(&name(group)));
        let _ = writeln!(out, "\\begin{{tabular}}{{l{}l}}\n\\toprule", "r".repeat(HEADINGS.len() - 2));
        let _ = writeln!(out, "{} \\\\\n\\midrule", HEADINGS.map(in_latex).join(" & "));
        for row in rows(group) {
            let _ = writeln!(out, "{} \\\\", row.cells.map(|cell| in_latex(&cell)).join(" & "));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
    }
    out
}

fn in_latex(text: &str) -> String {
    one_line(text).chars().fold(String::new(), |mut out, c| {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            _ => out.push(c),
        }
        out
    })
}

/// A row a figure: ns, and shares from 0 to 1.
pub(super) fn csv(versus: &Versus) -> String {
    let mut out = String::from("group,figure,a,b,effect,low,high,result,rounds_a,rounds_b,rounds_needed\n");
    for group in &versus.groups {
        for (measure, effect) in &group.effects {
            let end = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let MeasureEffect { a, b, estimate, low, high, rounds_needed, .. } = effect;
            let result =
                rows(group).into_iter().find(|row| row.cells[0] == measure.name()).map(|row| row.cells[5].clone());
            let _ = writeln!(
                out,
                "{},{},{a},{b},{estimate},{},{},{},{},{},{}",
                in_csv(&name(group)),
                column(*measure),
                end(*low),
                end(*high),
                result.unwrap_or_default(),
                group.rounds_a,
                group.rounds_b,
                rounds_needed.map_or_else(String::new, |rounds| rounds.to_string()),
            );
        }
    }
    out
}

/// The name with its unit.
fn column(measure: Measure) -> String {
    let unit = if measure == Measure::Missed { "share" } else { "ns" };
    format!("{}_{unit}", measure.name())
}

fn in_csv(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_text_has_no_meaning_in_the_formats() {
        assert_eq!(in_latex("50 % \\x{y}_z"), "50 \\% \\textbackslash{}x\\{y\\}\\_z");
        assert_eq!(in_csv("load \"x\", CPU 1"), "\"load \"\"x\"\", CPU 1\"");
    }
}
