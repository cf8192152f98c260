//! Writes the description of the plugins into a bundle: `punctual-bundle FOLDER`.

use std::{env, fs, path::Path, process::ExitCode};

use punctual_plugin::describe::{DESCRIPTION, description, manifest};

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("error: name the folder of the bundle: punctual-bundle FOLDER");
        return ExitCode::from(64);
    };
    let folder = Path::new(&folder);
    let files = [("manifest.ttl", manifest()), (DESCRIPTION, description(env!("CARGO_PKG_VERSION")))];
    let write = || {
        fs::create_dir_all(folder)?;
        files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    };
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write the bundle {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
