//! Starting another kernel from this one (kexec), without firmware and boot loader.

use std::{ffi::CStr, fs::File, io, os::fd::AsRawFd};

use rustix::system::{RebootCommand, reboot};

/// The number of kexec_file_load(2), which libc lacks for aarch64 with musl: `include/uapi/asm-generic/unistd.h` and
/// `arch/x86/entry/syscalls/syscall_64.tbl` of Linux.
const FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
/// Unload the kernel that is loaded.
const UNLOAD: libc::c_ulong = 1;
/// There is no initramfs.
const NO_INITRAMFS: libc::c_ulong = 4;

/// Loads the kernel that the next restart starts, with its initramfs and arguments. Needs CAP_SYS_BOOT.
///
/// # Errors
/// The kernel's error: ENOSYS without `CONFIG_KEXEC_FILE`; EPERM without the right, if `kernel.kexec_load_disabled` is 1, or
/// in lockdown; EKEYREJECTED and similar ones for an image without a valid signature; ENOEXEC for another file.
pub fn load(kernel: &File, initrd: Option<&File>, arguments: &CStr) -> io::Result<()> {
    let flags = if initrd.is_some() { 0 } else { NO_INITRAMFS };
    file_load(kernel.as_raw_fd(), initrd.map_or(-1, AsRawFd::as_raw_fd), arguments, flags)
}

/// Unloads the kernel that [`load`] loaded. Does nothing if there is none.
///
/// # Errors
/// The kernel's error, as for [`load`].
pub fn unload() -> io::Result<()> {
    file_load(-1, -1, c"", UNLOAD)
}

/// Starts the loaded kernel at once: file systems must be synchronised, and all programs ended. Returns only an error.
///
/// # Errors
/// The kernel's error: EINVAL if none is loaded, EPERM without the right.
pub fn start() -> io::Result<()> {
    Ok(reboot(RebootCommand::Kexec)?)
}

fn file_load(kernel: i32, initrd: i32, arguments: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let length = arguments.to_bytes_with_nul().len();
    // SAFETY: the kernel reads `length` bytes of `arguments`, which is that long, and keeps no pointer.
    let result = unsafe { libc::syscall(FILE_LOAD, kernel, initrd, length, arguments.as_ptr(), flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
