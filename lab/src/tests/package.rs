//! The Debian package of punctual, in a guest with the package manager of the current Debian.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use anyhow::{Result, ensure};

use crate::inside::{expect, recorded, run};

/// The path of the package in the guest.
pub const PACKAGE: &str = "/punctual.deb";
const INSTALLED: &str = "/usr/bin/punctual";

/// Installs the package, measures with it and removes it. It has no scripts, and its program has no additional rights.
pub fn is_installed_and_removed() -> Result<()> {
    for folder in ["/var/lib/dpkg/info", "/var/lib/dpkg/updates", "/var/log"] {
        fs::create_dir_all(folder)?;
    }
    fs::write("/var/lib/dpkg/status", "")?;
    expect(0, &run(&format!("dpkg --install {PACKAGE}"))?)?;
    let status = expect(0, &run("dpkg-query --show --showformat=${Status} punctual")?)?;
    ensure!(status == "install ok installed", "{status}");
    let verified = expect(0, &run("dpkg --verify punctual")?)?;
    ensure!(verified.is_empty(), "{verified}");
    let files = control_files()?;
    ensure!(files.iter().eq(["punctual.list", "punctual.md5sums"]), "{files:?}");
    let program = fs::metadata(INSTALLED)?;
    let mut name = [0_u8; 256];
    let attributes = rustix::fs::listxattr(INSTALLED, &mut name)?;
    ensure!(
        program.permissions().mode() & 0o7777 == 0o755 && program.uid() == 0 && attributes == 0,
        "{program:?}, {attributes} bytes of attribute names"
    );

    expect(0, &run(&format!("{INSTALLED} measure timer --quiet --record installed --samples 500"))?)?;
    let record = recorded("installed")?;
    ensure!(record.validity.valid && record.series[0].samples == 500, "{:?}", record.validity);

    expect(0, &run("dpkg --remove punctual")?)?;
    ensure!(!fs::exists(INSTALLED)? && !fs::exists("/usr/share/doc/punctual")?, "files of the package remain");
    Ok(())
}

/// The names of the control files of the installed package.
fn control_files() -> Result<BTreeSet<String>> {
    let entries = fs::read_dir("/var/lib/dpkg/info")?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    Ok(names.collect::<Result<Vec<_>>>()?.into_iter().filter(|name| name.starts_with("punctual.")).collect())
}
