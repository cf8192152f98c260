//! `punctual machine`: hardware, kernel and settings of the machine, and what to change.

use record::{Record, SCHEMA};

use crate::{cli::Machine, output};

pub fn run(options: &Machine) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?;
    let machine = ::machine::facts(&root);
    let findings = ::machine::findings(&root, &machine);
    if options.output.json {
        let json = serde_json::json!({ "machine": machine, "findings": findings });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else if options.output.quiet && !options.extent.full {
        output::print(options.output, |style, width| report::terminal::machine_headline(&findings, style, width))?;
    } else if !options.extent.full {
        let root = options.root.as_ref().map(|root| root.to_string_lossy());
        let words = [vec!["punctual", "machine", "--full"], root.iter().flat_map(|root| ["--root", root]).collect()];
        let full = record::shell::command(&words.concat());
        output::print(options.output, |style, width| report::terminal::machine_answer(&findings, &full, style, width))?;
    } else {
        let record = Record { schema: SCHEMA.to_owned(), machine, findings, ..Record::default() };
        output::print(options.output, |style, width| report::terminal::machine(&record, style, width))?;
    }
    Ok(0)
}
