//! Network namespaces: networks of their own, with their own interfaces, addresses and sockets.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic, thread,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::link;

const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// A network namespace, held by a descriptor and by no name: it is gone, with all interfaces that were made in it, when
/// the last descriptor, socket and thread in it are, however they end.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Makes one. Its loopback is up.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN, and what else the kernel answered.
    pub fn new() -> io::Result<Self> {
        on_a_thread(|| {
            // SAFETY: only CLONE_NEWNET, which leaves the table of descriptors shared; and only for this scratch thread.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            link::Links::open()?.set_up("lo")?;
            Self::current()
        })?
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// What the kernel answered, as ENOENT where `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        Ok(Self(File::open(OF_THIS_THREAD)?.into()))
    }

    /// Does `what` inside, on a thread of its own, and waits for it. Sockets that it opens stay inside, whatever thread
    /// uses them later.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN, and what else the kernel answered; then nothing was done.
    pub fn run<R: Send>(&self, what: impl FnOnce() -> R + Send) -> io::Result<R> {
        on_a_thread(|| {
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

/// A thread cannot be asked to come back from a namespace, so it ends instead.
fn on_a_thread<R: Send>(what: impl FnOnce() -> R + Send) -> io::Result<R> {
    thread::scope(|scope| {
        let scratch = thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, what)?;
        Ok(scratch.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    })
}
