//! `punctual machine`: hardware, kernel and settings of the machine, and what to change.

use record::{Record, SCHEMA};
use report::export::Format;

use crate::{
    cli::Machine,
    output::{self, Export},
};

pub fn run(options: &Machine) -> anyhow::Result<u8> {
    let exports = Export::among(&options.exports, &Format::OF_FINDINGS)?;
    let root = output::root(options.root.as_ref())?;
    let machine = ::machine::facts(&root);
    let findings = ::machine::findings(&root, &machine);
    for export in &exports {
        if let Some(bytes) = export.format().findings(&machine, &findings) {
            export.write_bytes(&bytes)?;
        }
    }
    output::print_exports(options.output, &exports);
    if options.output.json {
        let json = serde_json::json!({ "machine": machine, "findings": findings });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else if !exports.is_empty() {
        // As for a record, exports replace the text.
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
