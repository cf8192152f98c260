//! Writes the description of the plugins into a bundle, and presets of `punctual amp` as presets of hosts:
//! `punctual-bundle FOLDER [PRESET.toml]...`.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use amp::Preset;
use punctual_plugin::{
    describe::{DESCRIPTION, HostPreset, description, manifest},
    modgui,
};
use record::visible::{self, Passes};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let Some(folder) = arguments.next() else {
        report("name the folder of the bundle: punctual-bundle FOLDER [PRESET.toml]...");
        return ExitCode::from(64);
    };
    match files(arguments).and_then(|files| write(&folder, &files)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn report(error: &str) {
    // A failed write has no other reader.
    let _ = writeln!(visible::stderr(Passes::Text), "error: {error}");
}

/// The files of the bundle, each with its path and its bytes.
fn files(presets: impl Iterator<Item = PathBuf>) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut list = manifest();
    let mut files = vec![(DESCRIPTION.to_owned(), description(env!("CARGO_PKG_VERSION")).into_bytes())];
    files.extend(modgui::files().into_iter().map(|(path, bytes)| (path.to_owned(), bytes)));
    for (number, path) in (1..).zip(presets) {
        let preset = read(&path)?;
        list += &preset.in_manifest(number);
        files.push((HostPreset::file(number), preset.description(number).into_bytes()));
    }
    files.push(("manifest.ttl".to_owned(), list.into_bytes()));
    Ok(files)
}

fn read(path: &Path) -> Result<HostPreset, String> {
    let preset = Preset::read(path, |path| fs::read(path)).map_err(|error| error.to_string())?;
    let whole = fs::canonicalize(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(HostPreset { name, path: whole, settings: preset.settings })
}

fn write(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), String> {
    let written = || -> io::Result<()> {
        for (path, bytes) in files {
            let path = folder.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, bytes)?;
        }
        Ok(())
    };
    written().map_err(|error| format!("cannot write the bundle {}: {error}", folder.display()))
}
