//! The tests, one module a subject. They run inside a guest, as root, in a folder that comes back to the host.

pub mod culprits;
pub mod kernel;
