//! Runs apt with a separate directory for its configuration, state and downloads.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use super::cache::cache;
use crate::{Arch, GuestError, error::At, initramfs::find_program};

/// The maximum age of package lists. Older ones are downloaded again before a package is resolved.
const LISTS_MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// The keyring for suites other than that of this machine.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An apt directory.
pub(super) struct Apt {
    configuration: PathBuf,
    /// The error message if some package lists could not be downloaded. Packages may then be unknown.
    incomplete: Option<String>,
}

impl Apt {
    /// For packages of this architecture, from this machine's sources or from another Debian suite.
    pub(super) fn new(arch: Arch, suite: Option<&str>, say: &mut dyn FnMut(&str)) -> Result<Self, GuestError> {
        let arch = match arch {
            Arch::X86_64 => "amd64",
            Arch::Arm64 => "arm64",
        };
        let name = suite.map_or_else(|| arch.to_owned(), |suite| format!("{arch}-{suite}"));
        let root = cache().join(format!("apt-{name}"));
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).writing(&folder)?;
        }
        let mut apt = Self { configuration: root.join("apt.conf"), incomplete: None };
        let root_text = root.display();
        let mut configuration = format!(
            "APT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\nDir::State \"{root_text}/state\";\n\
             Dir::State::status \"{root_text}/status\";\nDir::Cache \"{root_text}/cache\";\nAPT::Sandbox::User \"root\";\n\
             Acquire::Languages \"none\";\nAcquire::Retries \"3\";\n"
        );
        if let Some(suite) = suite {
            let sources = root.join("suite.list");
            fs::write(&sources, format!("deb [signed-by={KEYS}] {} {suite} main\n", debian()?)).writing(&sources)?;
            configuration +=
                &format!("Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"-\";\n", sources.display());
        }
        fs::write(&apt.configuration, configuration).writing(&apt.configuration)?;
        let status = root.join("status");
        fs::write(&status, "").writing(&status)?;
        let fetched = root.join("fetched");
        let age = fs::metadata(&fetched)
            .and_then(|file| file.modified())
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.is_none_or(|age| age > LISTS_MAX_AGE) {
            say(&format!("fetching package lists for {name}"));
            // An unneeded source may be unreachable, or may have no packages for this architecture.
            match apt.run("apt-get", &["update", "--error-on=any"]) {
                Ok(_) => fs::write(&fetched, "").writing(&fetched)?,
                Err(GuestError::Command { said, .. }) => apt.incomplete = Some(said),
                Err(error) => return Err(error),
            }
        }
        Ok(apt)
    }

    /// The first dependency of `package` whose name starts with `begin`.
    pub(super) fn dependency(&self, package: &str, begin: &str) -> Result<String, GuestError> {
        let missing = || self.missing(package);
        let output = self.run("apt-cache", &["depends", package]).map_err(|_| missing())?;
        let names = output.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        names.into_iter().find(|name| name.starts_with(begin)).map(str::to_owned).ok_or_else(missing)
    }

    /// A package and its transitive dependencies.
    pub(super) fn closure(&self, package: &str) -> Result<Vec<String>, GuestError> {
        let only =
            ["--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances"];
        let arguments = [&["depends", "--recurse"], &only[..], &[package]].concat();
        let output = self.run("apt-cache", &arguments).map_err(|_| self.missing(package))?;
        Ok(packages_in(&output))
    }

    /// The error for an unknown package.
    fn missing(&self, package: &str) -> GuestError {
        let package = package.to_owned();
        match &self.incomplete {
            Some(said) => GuestError::NoLists { package, said: said.clone() },
            None => GuestError::NoPackage { package },
        }
    }

    /// Downloads a package, verified by apt, and unpacks it into `folder`.
    pub(super) fn unpack(&self, package: &str, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<(), GuestError> {
        let shown = self.run("apt-cache", &["show", "--no-all-versions", package]).unwrap_or_default();
        let bytes = shown.lines().find_map(|line| line.strip_prefix("Size: ")?.parse::<u64>().ok());
        say(&format!("fetching {package} ({} MB)", bytes.unwrap_or(0).div_ceil(1_000_000)));
        let downloads = folder.join(".download");
        fs::create_dir_all(&downloads).writing(&downloads)?;
        self.run_in(&downloads, "apt-get", &["download", package])?;
        for entry in fs::read_dir(&downloads).reading(&downloads)? {
            let path = entry.reading(&downloads)?.path();
            self.run("dpkg-deb", &["-x", &path.to_string_lossy(), &folder.to_string_lossy()])?;
        }
        fs::remove_dir_all(&downloads).writing(&downloads)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, GuestError> {
        self.run_in(&cache(), program, arguments)
    }

    fn run_in(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<String, GuestError> {
        let missing = || GuestError::Missing { program: program.to_owned(), package: "apt dpkg".to_owned() };
        let mut command = Command::new(find_program(program).ok_or_else(missing)?);
        command.args(arguments).current_dir(folder).env("APT_CONFIG", &self.configuration).env("LC_ALL", "C");
        run(command)
    }
}

/// The address of this machine's Debian mirror.
fn debian() -> Result<String, GuestError> {
    let mut command = Command::new("apt-get");
    let of_debian = ["Origin: Debian", "Component: main", "Created-By: Packages"];
    command.args(["indextargets", "--format", "$(SUITE) $(REPO_URI)"]).args(of_debian).env("LC_ALL", "C");
    let output = run(command)?;
    let none = || GuestError::NoPackage { package: "of Debian".to_owned() };
    mirror_in(&output).map(str::to_owned).ok_or_else(none)
}

/// Selects the mirror from lines of suite and address. Prefers a suite with a whole release, because others have few
/// packages.
fn mirror_in(output: &str) -> Option<&str> {
    let mut all: Vec<(&str, &str)> = output.lines().filter_map(|line| line.split_once(' ')).collect();
    all.sort_by_key(|(suite, _)| suite.contains('-'));
    all.first().map(|(_, address)| address.trim_end_matches('/'))
}

/// The packages in the output of `apt-cache depends --recurse`. Package names start a line; dependencies are indented,
/// and virtual packages are in angle brackets.
fn packages_in(output: &str) -> Vec<String> {
    let begins = |line: &&str| line.starts_with(|first: char| first.is_ascii_alphanumeric());
    output.lines().filter(begins).map(str::to_owned).collect()
}

/// Runs a command and returns its standard output.
pub(super) fn run(mut command: Command) -> Result<String, GuestError> {
    let command_line = || {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    };
    let line = command_line();
    let output = command.stdin(Stdio::null()).output().reading(Path::new(&line))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let message =
        message.lines().rfind(|line| line.starts_with("E:")).or(message.lines().last()).unwrap_or("no reason given");
    Err(GuestError::Command { command: line, said: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_a_whole_release() {
        let output = "stable-security http://mirror/debian-security/\nstable http://mirror/debian/\n";
        assert_eq!((mirror_in(output), mirror_in("")), (Some("http://mirror/debian"), None));
    }

    #[test]
    fn lists_each_dependency_once() {
        let output = "rtla\n  Depends: libc6\n  Depends: libtracefs1\nlibc6\n |Depends: libgcc-s1\n  Depends: <virtual>\n\
                    <virtual>\nlibtracefs1\n  Depends: libc6\nlibgcc-s1\n";
        assert_eq!(packages_in(output), ["rtla", "libc6", "libtracefs1", "libgcc-s1"]);
    }
}
