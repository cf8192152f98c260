//! Formats the rows as a table and as JSON.

use serde_json::{Value, json};

use crate::row::{Met, Row};

const HEADINGS: [&str; 8] = ["", "punctual", "cyclictest", "ratio", "quartiles", "rounds", "target", "met"];

/// The table with aligned columns, followed by the remarks.
pub fn text(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let widths: Vec<usize> =
        (0..HEADINGS.len()).map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0)).collect();
    let line = |cells: &[String; 8]| {
        let aligned = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 | 7 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        aligned.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let remarks = rows.iter().filter_map(|row| Some(format!("{}: {}\n", row.name, row.remark.as_ref()?)));
    lines.iter().map(line).chain(remarks).collect()
}

fn cells(row: &Row) -> [String; 8] {
    let nothing = || "-".to_owned();
    let median = |spread: Option<crate::statistics::Spread>| spread.map_or_else(nothing, |s| row.unit.show(s.median));
    // Ratios if there are any, else punctual's own figures.
    let show = |figure: f64| if row.ratio.is_some() { format!("{figure:.3}") } else { row.unit.show(figure) };
    [
        row.name.to_owned(),
        median(row.punctual),
        median(row.cyclictest),
        row.ratio.map_or_else(nothing, |ratio| show(ratio.median)),
        row.judged().filter(|judged| judged.count > 1).map_or_else(nothing, |judged| {
            format!("{} .. {}", show(judged.lower_quartile), show(judged.upper_quartile))
        }),
        row.judged().map_or_else(nothing, |judged| judged.count.to_string()),
        row.target.map_or_else(nothing, |target| format!("<= {}", show(target))),
        row.met().map_or_else(nothing, |met| in_words(met).to_owned()),
    ]
}

fn in_words(met: Met) -> &'static str {
    match (met.met, met.certain) {
        (true, true) => "yes",
        (true, false) => "yes, within noise",
        (false, false) => "no, within noise",
        (false, true) => "no",
    }
}

/// All rows as one JSON document; infinite ratios are null.
pub fn json(scene: &str, rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows.iter().map(row_as_json).collect();
    json!({"scene": scene, "rows": rows})
}

fn row_as_json(row: &Row) -> Value {
    let mut value = json!(row);
    if let Some(Met { met, certain }) = row.met() {
        value["met"] = json!(met);
        value["certain"] = json!(certain);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rounds::Pair, row::Unit};

    fn rows() -> Vec<Row> {
        let pairs = [(9_000.0, 10_000.0), (9_900.0, 10_000.0), (12_000.0, 10_000.0)];
        let pairs = pairs.map(|(own, peer)| Pair { own, peer });
        vec![
            Row::compared("median lateness", Unit::Time, pairs).with_target(1.0),
            Row::compared("instructions", Unit::Count, [Pair { own: 170.0, peer: 200.0 }])
                .with_remark("counted twice".to_owned()),
            Row::alone("size", Unit::Bytes, [3.0 * 1_048_576.0], 10.0 * 1_048_576.0),
        ]
    }

    #[test]
    fn aligns_columns() {
        let expected = "
                 punctual  cyclictest  ratio       quartiles  rounds        target  met
median lateness   9.90 us    10.00 us  0.990  0.945 .. 1.095       3      <= 1.000  yes, within noise
instructions        170.0       200.0  0.850               -       1             -  -
size             3.00 MiB           -      -               -       1  <= 10.00 MiB  yes
instructions: counted twice
";
        assert_eq!(text(&rows()), expected.trim_start_matches('\n'));
    }

    #[test]
    fn json_contains_figures_and_results() {
        let json = json("here", &rows());
        assert_eq!(json["rows"][0]["ratio"]["median"], 0.99);
        assert_eq!(json["rows"][0]["unit"], "time");
        assert_eq!((&json["rows"][0]["met"], &json["rows"][0]["certain"]), (&json!(true), &json!(false)));
        assert_eq!(json["rows"][1].get("met"), None);
        assert_eq!(json["rows"][2]["cyclictest"], Value::Null);
    }
}
