//! Network namespaces, each with its own interfaces, addresses and sockets.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic, thread,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::link;

const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// An unnamed network namespace, referred to by a descriptor. The kernel removes it with all interfaces created in it
/// when the last descriptor, socket and thread using it are gone.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace and brings up its loopback.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; otherwise the kernel's error.
    pub fn new() -> io::Result<Self> {
        on_temporary_thread(|| {
            // SAFETY: CLONE_NEWNET keeps the descriptor table shared, and only this temporary thread changes its
            // namespace.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            link::Links::open()?.set_up("lo")?;
            Self::current()
        })?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// ENOENT if `/proc` is not mounted; otherwise the kernel's error.
    pub fn current() -> io::Result<Self> {
        Ok(Self(File::open(OF_THIS_THREAD)?.into()))
    }

    /// Runs `what` in the namespace, on a separate thread, and waits for it. Sockets opened there stay in the
    /// namespace, whichever thread uses them later.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; otherwise the kernel's error. On error, `what` did not run.
    pub fn run<R: Send>(&self, what: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_temporary_thread(|| {
            move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(what())
        })?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Runs `what` on a temporary thread, because a thread cannot always return to its old namespace.
fn on_temporary_thread<R: Send>(what: impl FnOnce() -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let scratch = thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, what)?;
        Ok(scratch.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    })
}
