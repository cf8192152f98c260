//! Changes that need a reboot: arguments of the kernel, and another kernel. They are made for one boot, by kexec; the
//! configuration of the boot loader is never written.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    CpuList, Root,
    boot_arguments::{self, name, words},
};

/// The name in front of the path of a kernel.
const KERNEL: &str = "kernel=";
/// Arguments that a boot loader adds for itself.
const OF_LOADER: [&str; 2] = ["BOOT_IMAGE", "initrd"];

/// A change of the next boot: `nohz_full=3`, `isolcpus=3 irqaffinity=0-2`, `kernel=/boot/vmlinuz-6.12-rt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootChange {
    /// Arguments of the kernel.
    pub arguments: Vec<String>,
    /// The image of another kernel.
    pub kernel: Option<PathBuf>,
}

impl fmt::Display for BootChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.iter().map(|path| format!("{KERNEL}{}", path.display()));
        f.write_str(&kernel.chain(self.arguments.iter().cloned()).collect::<Vec<_>>().join(" "))
    }
}

impl FromStr for BootChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kernels, arguments): (Vec<&str>, Vec<&str>) =
            text.split_whitespace().partition(|word| word.starts_with(KERNEL));
        let kernel = match kernels[..] {
            [] => None,
            [one] if one.starts_with("kernel=/") => Some(PathBuf::from(&one[KERNEL.len()..])),
            _ => return Err(format!("`{text}`: name one kernel by its whole path, e.g. kernel=/boot/vmlinuz-6.12-rt")),
        };
        // Quotes would need the rules of the kernel, and the unit of systemd those of systemd.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@+-".contains(c);
        if let Some(wrong) = text.split_whitespace().find(|word| !word.chars().all(is_plain) || word.starts_with('-')) {
            return Err(format!(
                "`{wrong}` cannot be an argument of the kernel here: use letters, digits and _./:=,@+-"
            ));
        }
        if kernel.is_none() && arguments.is_empty() {
            return Err("no argument of the kernel: use e.g. `isolcpus=3 nohz_full=3`".to_owned());
        }
        Ok(Self { arguments: arguments.into_iter().map(str::to_owned).collect(), kernel })
    }
}

/// The kernel to boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its image.
    pub kernel: PathBuf,
    /// Its initramfs; `None` for a kernel without one.
    pub initrd: Option<PathBuf>,
}

/// The image of the running kernel.
///
/// # Errors
/// One sentence with the remedy if it is in none of the usual places.
pub fn running_image(root: &Root) -> Result<Image, String> {
    let release = root.read("proc/sys/kernel/osrelease").unwrap_or_default();
    let places = [
        format!("boot/vmlinuz-{release}"),
        format!("boot/kernel-{release}"),
        format!("boot/Image-{release}"),
        format!("usr/lib/modules/{release}/vmlinuz"),
        format!("lib/modules/{release}/vmlinuz"),
    ];
    match places.iter().find(|place| root.exists(place)) {
        Some(place) => Ok(image(root, &Path::new("/").join(place))),
        None => Err(format!(
            "the image of the running kernel {release} was not found, e.g. as /{}: copy it there",
            places[0]
        )),
    }
}

/// The image at this path, with its initramfs if that is in one of the usual places.
#[must_use]
pub fn image(root: &Root, kernel: &Path) -> Image {
    let name = kernel.file_name().unwrap_or_default().to_string_lossy();
    let folder = kernel.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let version = ["vmlinuz-", "kernel-", "Image-"].into_iter().find_map(|start| name.strip_prefix(start));
    let version = version.unwrap_or(&folder);
    let beside = kernel.parent().unwrap_or(Path::new("/"));
    let in_folder = |folder: &Path| {
        let names = [
            format!("initrd.img-{version}"),
            format!("initramfs-{version}.img"),
            format!("initrd-{version}"),
            "initrd".to_owned(),
        ];
        names.into_iter().map(|name| folder.join(name)).collect::<Vec<_>>()
    };
    let found = [in_folder(beside), in_folder(Path::new("/boot"))].concat();
    let initrd = found.into_iter().find(|path| root.exists(path.to_string_lossy().trim_start_matches('/')));
    Image { kernel: kernel.to_owned(), initrd }
}

/// The arguments of the running kernel, without those of the boot loader and of an earlier search.
#[must_use]
pub fn running_arguments(root: &Root) -> String {
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let own = words(&cmdline).into_iter().filter(|word| !OF_LOADER.contains(&name(word)) && name(word) != MARK);
    own.collect::<Vec<_>>().join(" ")
}

/// The argument that names the round which a boot is for. The kernel ignores it.
pub const MARK: &str = "punctual.round";

/// True if the running kernel was booted with this mark.
#[must_use]
pub fn has_mark(root: &Root, mark: &str) -> bool {
    root.read("proc/cmdline").unwrap_or_default().split_whitespace().any(|word| word == mark)
}

/// The arguments of a boot with these changes: an argument of a change replaces those of the same name.
#[must_use]
pub fn arguments_with(base: &str, changes: &[&BootChange], mark: &str) -> String {
    let added = changes.iter().flat_map(|change| &change.arguments).map(String::as_str);
    boot_arguments::with(base, &added.chain([mark]).collect::<Vec<_>>())
}

/// Two of these changes that cannot be made together: both set the same argument, or both name a kernel.
#[must_use]
pub fn conflict(changes: &[BootChange]) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    for change in changes {
        let kernel = change.kernel.iter().map(|_| "kernel");
        let own: Vec<&str> = change.arguments.iter().map(|word| name(word)).chain(kernel).collect();
        if let Some(both) = own.iter().find(|name| seen.contains(name)) {
            return Some((*both).to_owned());
        }
        seen.extend(own);
    }
    None
}

/// The changes that keep other work off these CPUs, each argument by itself; empty if the kernel was booted with all.
#[must_use]
pub fn isolation(root: &Root, cpus: &CpuList) -> Vec<BootChange> {
    let Some(others) = boot_arguments::others_at_boot(root, cpus) else { return Vec::new() };
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let missing = boot_arguments::missing_isolation(root, &cmdline, cpus, &others).into_iter();
    missing.map(|word| BootChange { arguments: vec![word], kernel: None }).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn change(text: &str) -> BootChange {
        text.parse().unwrap()
    }

    #[test]
    fn a_change_replaces_arguments_of_the_same_name() {
        let changes = [change("isolcpus=3 nohz_full=3"), change("kernel=/boot/vmlinuz-6.1-rt preempt=full")];
        let changes: Vec<_> = changes.iter().collect();
        assert_eq!(
            arguments_with("root=/dev/sda isolcpus=1 quiet -- single", &changes, "punctual.round=a.1"),
            "root=/dev/sda quiet isolcpus=3 nohz_full=3 preempt=full punctual.round=a.1 -- single"
        );
        assert_eq!(arguments_with("quiet", &[], "punctual.round=a.2"), "quiet punctual.round=a.2");
    }

    #[test]
    fn changes_are_read_and_printed() {
        for text in
            ["isolcpus=managed_irq,domain,3", "kernel=/boot/vmlinuz-6.1-rt", "kernel=/a quiet", "nosmt threadirqs"]
        {
            assert_eq!(change(text).to_string(), text);
        }
        let bad =
            ["", " ", "kernel=vmlinuz", "kernel=/a kernel=/b", "dyndbg=\"x y\"", "a=$b", "-quiet", "a;b", "--", "ö=1"];
        for text in bad {
            assert!(text.parse::<BootChange>().is_err(), "{text}");
        }
    }

    #[test]
    fn changes_that_cannot_be_made_together_are_found() {
        let conflict = |texts: &[&str]| conflict(&texts.iter().map(|text| change(text)).collect::<Vec<_>>());
        assert_eq!(conflict(&["preempt=full", "nohz=off preempt=lazy"]).as_deref(), Some("preempt"));
        assert_eq!(conflict(&["kernel=/a", "kernel=/b"]).as_deref(), Some("kernel"));
        assert_eq!(conflict(&["kernel=/a", "nohz=off", "nohz_full=1"]), None);
    }

    #[test]
    fn the_running_kernel_and_its_initramfs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.12.0-rt\n");
        write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda initrd=/x quiet punctual.round=0.1\n");
        assert_eq!(running_arguments(&root), "root=/dev/sda quiet");
        assert!(has_mark(&root, "punctual.round=0.1") && !has_mark(&root, "punctual.round=0.10"));
        assert!(running_image(&root).unwrap_err().contains("e.g. as /boot/vmlinuz-6.12.0-rt: copy it there"));
        write("usr/lib/modules/6.12.0-rt/vmlinuz", "");
        let image = running_image(&root).unwrap();
        assert_eq!((image.kernel.to_str(), image.initrd), (Some("/usr/lib/modules/6.12.0-rt/vmlinuz"), None));
        write("boot/initramfs-6.12.0-rt.img", "");
        let initrd = running_image(&root).unwrap().initrd.unwrap();
        assert_eq!(initrd.to_str(), Some("/boot/initramfs-6.12.0-rt.img"));
        write("boot/vmlinuz-6.12.0-rt", "");
        write("boot/initrd.img-6.12.0-rt", "");
        let image = running_image(&root).unwrap();
        assert_eq!(image.kernel.to_str(), Some("/boot/vmlinuz-6.12.0-rt"));
        assert_eq!(image.initrd.unwrap().to_str(), Some("/boot/initrd.img-6.12.0-rt"));
    }
}
