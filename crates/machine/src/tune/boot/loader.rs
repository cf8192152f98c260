//! The boot loader that started the running kernel, as far as the machine shows it: files of another one can be left over.

use crate::{Root, boot_arguments};

/// The id of the variables that boot loaders write for the system (<https://systemd.io/BOOT_LOADER_INTERFACE>).
pub(crate) const VENDOR: &str = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// A boot loader whose arguments of the kernel are known how to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loader {
    /// The firmware of a Raspberry Pi.
    PiFirmware,
    /// The boot loader is systemd-boot.
    SystemdBoot,
    /// An image with the arguments in it, which other boot loaders and the firmware start.
    UnifiedImage,
    /// SYSLINUX, or U-Boot with a configuration in its format.
    Extlinux,
    /// U-Boot with its own variables.
    UBoot,
    /// GRUB, version 2.
    Grub,
}

/// The traces of the boot loader in the running system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Traces {
    /// GRUB and SYSLINUX add `BOOT_IMAGE=` to the arguments (grub-core/loader/i386/linux.c; com32/elflink/ldlinux/kernel.c).
    has_boot_image: bool,
    /// True if the arguments show that GRUB, which always adds `BOOT_IMAGE=`, did not start the kernel. Under Xen, they are
    /// those of a module, or a program of the host reads the configuration of GRUB. A kernel that another kernel started
    /// shows nothing: kexec(8) removes the argument, and Petitboot reads the configuration of GRUB.
    lacks_boot_image: bool,
    /// SYSLINUX also adds `initrd=`, which GRUB does not.
    has_initrd: bool,
    /// The name in the variable `LoaderInfo` of EFI: `systemd-boot 257.9`, `GRUB 2.12`.
    info: Option<String>,
    /// U-Boot writes its version to the device tree (boot/fdt_support.c).
    is_uboot: bool,
}

impl Traces {
    pub(super) fn read(root: &Root) -> Self {
        let cmdline = root.read("proc/cmdline").unwrap_or_default();
        let has = |name: &str| boot_arguments::value(&cmdline, name).is_some();
        let variable = format!("sys/firmware/efi/efivars/LoaderInfo-{VENDOR}");
        Self {
            has_boot_image: has("BOOT_IMAGE"),
            lacks_boot_image: !cmdline.is_empty()
                && !has("BOOT_IMAGE")
                && !root.exists("sys/hypervisor/type")
                && !is_by_kernel(root),
            has_initrd: has("initrd"),
            info: root.read_bytes(&variable).ok().and_then(|bytes| variable_text(&bytes)),
            // Its implementation of EFI can start another boot loader.
            is_uboot: root.exists("proc/device-tree/chosen/u-boot,version") && !root.exists("sys/firmware/efi"),
        }
    }

    /// True unless another boot loader has left its traces. Each of several ones in a chain leaves some: the last one counts.
    pub(super) fn allow(&self, loader: Loader) -> bool {
        if self.has_boot_image {
            return loader == Loader::Grub || loader == Loader::Extlinux;
        }
        if let Some(info) = &self.info {
            return match loader {
                Loader::SystemdBoot => info.starts_with("systemd-boot"),
                Loader::Grub => info.starts_with("GRUB"),
                Loader::UnifiedImage => true,
                Loader::PiFirmware | Loader::Extlinux | Loader::UBoot => false,
            };
        }
        if loader == Loader::Grub && self.lacks_boot_image {
            return false;
        }
        // A script of U-Boot can pass on the arguments of the firmware of a Raspberry Pi.
        !self.is_uboot || matches!(loader, Loader::PiFirmware | Loader::Extlinux | Loader::UBoot)
    }

    /// True if U-Boot started the kernel without another boot loader.
    pub(super) fn is_uboot(&self) -> bool {
        self.is_uboot && !self.has_boot_image && self.info.is_none()
    }

    /// True if SYSLINUX, not GRUB, started the kernel of a machine with the files of both.
    pub(super) fn is_syslinux(&self) -> bool {
        self.has_boot_image && self.has_initrd
    }

    /// True if systemd-boot says that it started the kernel.
    pub(super) fn is_systemd_boot(&self) -> bool {
        self.info.is_some() && self.allow(Loader::SystemdBoot)
    }
}

/// True if another kernel started this one: by its type of boot loader on x86 (`type_of_loader` 0xD in
/// Documentation/arch/x86/boot.rst, `bootloader_type` in admin-guide/sysctl/kernel.rst), by the property that the kernel adds
/// to the device tree (drivers/of/kexec.c), or because the firmware of the machine is OPAL, which ends in Petitboot.
fn is_by_kernel(root: &Root) -> bool {
    const KEXEC: u32 = 0xd;
    root.number::<u32>("proc/sys/kernel/bootloader_type").is_some_and(|kind| kind >> 4 == KEXEC)
        || root.exists("proc/device-tree/chosen/linux,booted-from-kexec")
        || root.exists("proc/device-tree/ibm,opal")
}

/// The text of a variable of EFI: four bytes of attributes, and UTF-16 that ends with 0.
fn variable_text(bytes: &[u8]) -> Option<String> {
    let units = bytes.get(4..)?.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text = String::from_utf16(&units.take_while(|unit| *unit != 0).collect::<Vec<_>>()).ok()?;
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_efi_has_its_text_after_the_attributes() {
        let bytes = |text: &str| {
            let units = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes);
            [6, 0, 0, 0].into_iter().chain(units).collect::<Vec<u8>>()
        };
        assert_eq!(variable_text(&bytes("systemd-boot 257.9-1")).as_deref(), Some("systemd-boot 257.9-1"));
        for bytes in [&[][..], &[6, 0, 0], &[6, 0, 0, 0], &bytes(""), &[6, 0, 0, 0, 0, 0xd8, 1, 0]] {
            assert_eq!(variable_text(bytes), None, "{bytes:?}");
        }
    }
}
