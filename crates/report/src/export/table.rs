//! Tables of a comparison for papers and comments: LaTeX, Markdown, and CSV with all digits.

use std::fmt::Write;

use analysis::versus::{self, Records};
use record::{
    Record, Versus,
    versus::{Across, Measure, MeasureEffect, VersusGroup},
    visible::one_line,
};

use super::{
    case,
    markdown::{cell, prose},
};
use crate::versus::{
    AcrossTable, HEADINGS, across, across_notes, answer, answers, name_across, names, notes, remarks, rows, side,
};

/// A Markdown comment: the answer, and a table for each group.
pub(super) fn markdown(versus: &Versus) -> String {
    let of = answer(versus);
    let mut out = format!("**{}** {}\n\n", of.word, prose(&of.sentence));
    let _ = writeln!(out, "- A: {}\n- B: {}", prose(&side(&versus.a)), prose(&side(&versus.b)));
    for (group, name) in versus.groups.iter().zip(names(versus)) {
        let rows: Vec<Vec<String>> = rows(group).into_iter().map(|row| row.cells.into()).collect();
        markdown_table(&mut out, &name, &HEADINGS, &rows);
        for remark in remarks(group) {
            let _ = write!(out, "\n{}\n", prose(&remark));
        }
    }
    for note in notes(versus) {
        let _ = write!(out, "\n{}\n", prose(&note));
    }
    out
}

/// A Markdown comment: the changes, and a table for each group.
pub(super) fn across_markdown(of: &Across) -> String {
    let mut out = String::new();
    for sentence in answers(of) {
        let _ = writeln!(out, "- {}", prose(&sentence));
    }
    for AcrossTable { name, headings, rows, .. } in across(of) {
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(cells, _)| cells).collect();
        markdown_table(&mut out, &name, &headings, &rows);
    }
    for note in across_notes(of) {
        let _ = write!(out, "\n{}\n", prose(&note));
    }
    out
}

/// A table whose first and last columns are words.
fn markdown_table<T: AsRef<str>>(out: &mut String, name: &str, headings: &[T], rows: &[Vec<String>]) {
    let headings: Vec<String> = headings.iter().map(|heading| cell(heading.as_ref())).collect();
    let _ = write!(out, "\n{}\n\n| {} |\n|---|", prose(name), headings.join(" | "));
    out.push_str(&"---:|".repeat(headings.len().saturating_sub(2)));
    out.push_str("---|\n");
    for row in rows {
        let _ = writeln!(out, "| {} |", row.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "));
    }
}

/// A LaTeX table for each group (package `booktabs`).
pub(super) fn latex(versus: &Versus) -> String {
    let mut out = String::from("% Needs \\usepackage{booktabs}.\n");
    let _ = writeln!(out, "% A: {}\n% B: {}", one_line(&side(&versus.a)), one_line(&side(&versus.b)));
    for (group, name) in versus.groups.iter().zip(names(versus)) {
        let rows: Vec<Vec<String>> = rows(group).into_iter().map(|row| row.cells.into()).collect();
        latex_table(&mut out, &name, &HEADINGS, &rows);
        for remark in remarks(group) {
            let _ = writeln!(out, "% {}", one_line(&remark));
        }
    }
    for note in notes(versus) {
        let _ = writeln!(out, "% {}", one_line(&note));
    }
    out
}

/// A LaTeX table for each group (package `booktabs`).
pub(super) fn across_latex(of: &Across) -> String {
    let mut out = String::from("% Needs \\usepackage{booktabs}.\n");
    for sentence in answers(of) {
        let _ = writeln!(out, "% {}", one_line(&sentence));
    }
    for AcrossTable { name, headings, rows, .. } in across(of) {
        let rows: Vec<Vec<String>> = rows.into_iter().map(|(cells, _)| cells).collect();
        latex_table(&mut out, &name, &headings, &rows);
    }
    for note in across_notes(of) {
        let _ = writeln!(out, "% {}", one_line(&note));
    }
    out
}

/// The table of one record, as of several ones that are shown together.
pub(super) fn latex_of_record(record: &Record) -> String {
    let name = match &record.published {
        Some(published) => published.name.clone(),
        None => record.machine.hostname.clone().unwrap_or_else(|| "this machine".to_owned()),
    };
    let mut side = Records::default();
    side.add(name.clone(), record);
    format!("% {}\n{}", case::title(record), across_latex(&versus::overlay(&[(name, side)])))
}

/// A table whose first and last columns are words.
fn latex_table<T: AsRef<str>>(out: &mut String, name: &str, headings: &[T], rows: &[Vec<String>]) {
    let line = |cells: Vec<String>| format!("{} \\\\", cells.join(" & "));
    let _ = writeln!(out, "\\begin{{table}}\n\\centering\n\\caption{{{}}}", in_latex(name));
    let _ = writeln!(out, "\\begin{{tabular}}{{l{}l}}\n\\toprule", "r".repeat(headings.len().saturating_sub(2)));
    let headings = headings.iter().map(|heading| in_latex(heading.as_ref())).collect();
    let _ = writeln!(out, "{}\n\\midrule", line(headings));
    for row in rows {
        let _ = writeln!(out, "{}", line(row.iter().map(|cell| in_latex(cell)).collect()));
    }
    out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}

fn in_latex(text: &str) -> String {
    one_line(text).chars().fold(String::new(), |mut out, c| {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            // OT1, the default font encoding, has other signs in their places.
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
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
    for (group, name) in versus.groups.iter().zip(names(versus)) {
        for (measure, of_measure) in &group.effects {
            let MeasureEffect { a, b, rounds_needed, .. } = of_measure;
            let _ = writeln!(
                out,
                "{},{},{a},{b},{},{},{},{}",
                in_csv(&name),
                column(*measure),
                effect(group, *measure),
                group.rounds_a,
                group.rounds_b,
                rounds_needed.map_or_else(String::new, |rounds| rounds.to_string()),
            );
        }
    }
    out
}

/// A row a figure and value: the medians, ns, and shares from 0 to 1. The effect, its interval and the result are against the
/// value before.
pub(super) fn across_csv(of: &Across) -> String {
    let mut out = String::from("group,value,rounds,figure,median,effect,low,high,result\n");
    for step in &of.steps {
        for group in &step.groups {
            let name = name_across(of, &group.conditions);
            let compared = step.versus.iter().flat_map(|versus| &versus.groups);
            let before = compared.into_iter().find(|compared| name_across(of, &compared.b) == name);
            for (measure, median) in &group.medians {
                let against = before.map_or_else(|| ",,,".to_owned(), |before| effect(before, *measure));
                let (name, value) = (in_csv(&name), in_csv(&step.value));
                let _ = writeln!(out, "{name},{value},{},{},{median},{against}", group.rounds, column(*measure));
            }
        }
    }
    out
}

/// Effect, lower and upper end, and result of a figure; empty if a side does not have it.
fn effect(group: &VersusGroup, measure: Measure) -> String {
    let Some(MeasureEffect { estimate, low, high, .. }) = group.effects.get(&measure) else { return ",,,".to_owned() };
    let end = |value: &Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let result = rows(group).into_iter().find(|row| row.cells[0] == measure.name()).map(|row| row.cells[5].clone());
    format!("{estimate},{},{},{}", end(low), end(high), result.unwrap_or_default())
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
        assert_eq!(in_latex("<a|b>"), "\\textless{}a\\textbar{}b\\textgreater{}");
        assert_eq!(in_csv("load \"x\", CPU 1"), "\"load \"\"x\"\", CPU 1\"");
    }
}
