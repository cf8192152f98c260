//! `punctual machine`: hardware, kernel and configuration of the machine.

use record::{Record, SCHEMA};

use crate::{
    cli::Machine,
    output::{self, command_of},
};

pub fn run(options: &Machine) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?.at_once();
    let machine = ::machine::facts(&root);
    if options.output.json {
        let json = serde_json::json!({ "machine": machine });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
        return Ok(0);
    }
    let root = options.root.as_ref().map(|root| root.to_string_lossy());
    let named = [("--root", root.as_deref())];
    let check = command_of(&["punctual", "check"], &named);
    let full = (!options.extent.full).then(|| command_of(&["punctual", "machine", "--full"], &named));
    let record = Record { schema: SCHEMA.to_owned(), machine, ..Record::default() };
    output::print(options.output, |style, width| {
        report::terminal::machine(&record, &check, full.as_deref(), style, width)
    })?;
    Ok(0)
}
