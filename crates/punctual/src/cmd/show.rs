//! `punctual show`: a record again, in the terminal or in another format.

use crate::{
    cli::Show,
    output::{self, Export},
};

pub fn run(options: &Show) -> anyhow::Result<u8> {
    let exports = Export::all(&options.exports)?;
    let mut record = record::file::read(&options.record)?;
    if !options.profiles.is_empty() {
        output::judge(&mut record, &options.profiles)?;
    }
    for export in &exports {
        export.write(&record)?;
    }
    if options.talk.json {
        output::stdout(|out| std::io::Write::write_all(out, &record::file::to_json(&record)))?;
    } else if exports.is_empty() {
        output::print(options.talk, |style, width| report::terminal::summary(&record, style, width))?;
    }
    Ok(output::status(&record))
}
