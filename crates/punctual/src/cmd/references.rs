//! `punctual references`: published figures and their sources.

use crate::{cli::References, output};

pub fn run(options: &References) -> anyhow::Result<u8> {
    let Some(name) = &options.name else { return list(options) };
    let mut found = output::find_references(std::slice::from_ref(name))?;
    let Some((_, record)) = found.pop() else { return Ok(0) };
    if options.output.json {
        output::stdout(|out| out.write_all(&record::file::to_json(&record)))?;
    } else {
        output::print(options.output, |style, width| report::terminal::summary(&record, style, width))?;
    }
    Ok(0)
}

fn list(options: &References) -> anyhow::Result<u8> {
    let all = analysis::references();
    output::stdout(|out| {
        if options.output.json {
            return writeln!(out, "{}", output::json(&serde_json::json!(all)));
        }
        for published in all.iter().filter_map(|record| record.published.as_ref()) {
            write!(out, "{}", report::terminal::entry(&published.name, 17, &published.on, report::terminal::width()))?;
        }
        let end = "`punctual references NAME` shows the figures of one, with their source.";
        write!(out, "\n{}", report::terminal::entry("", 0, end, report::terminal::width()))
    })?;
    Ok(0)
}
