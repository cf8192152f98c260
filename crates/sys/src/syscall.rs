//! Numbers and names of the system calls that can wait, and of some others, for this architecture.

/// One system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall {
    /// Its number.
    pub number: u32,
    /// Its name, as in the manual.
    pub name: &'static str,
}

macro_rules! syscalls {
    ($($(#[$condition:meta])* $constant:ident $name:literal,)*) => {
        &[$($(#[$condition])* Syscall { number: number(libc::$constant), name: $name },)*]
    };
}

/// Numbers of system calls are small and not negative.
#[allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "the kernel's tables have below 1000 entries"
)]
const fn number(number: libc::c_long) -> u32 {
    number as u32
}

/// The system calls that can wait, those that set a policy, and `rt_sigreturn`, which ends a signal handler. The most
/// frequent ones come first, because the kernel compares a call with these in order. A wait in any other call has an
/// unknown cause.
pub const WAITING: &[Syscall] = syscalls![
    SYS_futex "futex",
    SYS_read "read",
    SYS_write "write",
    #[cfg(target_arch = "x86_64")]
    SYS_poll "poll",
    SYS_ppoll "ppoll",
    #[cfg(target_arch = "x86_64")]
    SYS_epoll_wait "epoll_wait",
    SYS_epoll_pwait "epoll_pwait",
    SYS_epoll_pwait2 "epoll_pwait2",
    SYS_clock_nanosleep "clock_nanosleep",
    SYS_nanosleep "nanosleep",
    SYS_ioctl "ioctl",
    SYS_recvfrom "recvfrom",
    SYS_recvmsg "recvmsg",
    SYS_recvmmsg "recvmmsg",
    SYS_sendto "sendto",
    SYS_sendmsg "sendmsg",
    #[cfg(target_arch = "x86_64")]
    SYS_select "select",
    SYS_pselect6 "pselect6",
    SYS_rt_sigreturn "rt_sigreturn",
    SYS_sched_yield "sched_yield",
    SYS_futex_waitv "futex_waitv",
    SYS_readv "readv",
    SYS_writev "writev",
    SYS_pread64 "pread64",
    SYS_pwrite64 "pwrite64",
    SYS_preadv "preadv",
    SYS_pwritev "pwritev",
    SYS_fsync "fsync",
    SYS_fdatasync "fdatasync",
    SYS_msync "msync",
    SYS_sync_file_range "sync_file_range",
    SYS_mmap "mmap",
    SYS_munmap "munmap",
    SYS_mprotect "mprotect",
    SYS_madvise "madvise",
    SYS_openat "openat",
    SYS_close "close",
    SYS_io_uring_enter "io_uring_enter",
    SYS_io_getevents "io_getevents",
    SYS_accept "accept",
    SYS_accept4 "accept4",
    SYS_connect "connect",
    SYS_wait4 "wait4",
    SYS_waitid "waitid",
    #[cfg(target_arch = "x86_64")]
    SYS_pause "pause",
    SYS_rt_sigtimedwait "rt_sigtimedwait",
    SYS_rt_sigsuspend "rt_sigsuspend",
    SYS_mq_timedreceive "mq_timedreceive",
    SYS_mq_timedsend "mq_timedsend",
    SYS_semop "semop",
    SYS_semtimedop "semtimedop",
    SYS_msgrcv "msgrcv",
    SYS_flock "flock",
    SYS_restart_syscall "restart_syscall",
    #[cfg(target_arch = "x86_64")]
    SYS_fork "fork",
    #[cfg(target_arch = "x86_64")]
    SYS_vfork "vfork",
    SYS_clone "clone",
    SYS_clone3 "clone3",
    SYS_execve "execve",
    SYS_execveat "execveat",
    SYS_sync "sync",
    SYS_syncfs "syncfs",
    SYS_fcntl "fcntl",
    SYS_sendmmsg "sendmmsg",
    SYS_sendfile "sendfile",
    SYS_splice "splice",
    SYS_preadv2 "preadv2",
    SYS_pwritev2 "pwritev2",
    SYS_msgsnd "msgsnd",
    SYS_mlock "mlock",
    SYS_mlockall "mlockall",
    SYS_mremap "mremap",
    SYS_brk "brk",
    SYS_membarrier "membarrier",
    #[cfg(target_arch = "x86_64")]
    SYS_open "open",
    #[cfg(target_arch = "x86_64")]
    SYS_creat "creat",
    SYS_newfstatat "newfstatat",
    SYS_statx "statx",
    #[cfg(target_arch = "x86_64")]
    SYS_unlink "unlink",
    SYS_unlinkat "unlinkat",
    #[cfg(target_arch = "x86_64")]
    SYS_rename "rename",
    SYS_renameat "renameat",
    SYS_renameat2 "renameat2",
    SYS_mkdirat "mkdirat",
    #[cfg(target_arch = "x86_64")]
    SYS_rmdir "rmdir",
    SYS_linkat "linkat",
    SYS_symlinkat "symlinkat",
    SYS_ftruncate "ftruncate",
    SYS_truncate "truncate",
    SYS_fallocate "fallocate",
    SYS_copy_file_range "copy_file_range",
    SYS_getdents64 "getdents64",
    SYS_readahead "readahead",
    SYS_shutdown "shutdown",
    SYS_process_vm_readv "process_vm_readv",
    SYS_process_vm_writev "process_vm_writev",
    SYS_ptrace "ptrace",
    SYS_sched_setaffinity "sched_setaffinity",
    SYS_sched_setscheduler "sched_setscheduler",
    SYS_sched_setattr "sched_setattr",
    SYS_sched_setparam "sched_setparam",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_call_has_its_own_number_and_name() {
        let numbers: BTreeSet<u32> = WAITING.iter().map(|call| call.number).collect();
        let names: BTreeSet<&str> = WAITING.iter().map(|call| call.name).collect();
        assert_eq!((numbers.len(), names.len()), (WAITING.len(), WAITING.len()));
        assert!(numbers.iter().all(|&number| number < 1000));
    }
}
