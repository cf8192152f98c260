//! Tests that need a kernel of their own.
//!
//! | module | holds |
//! |---|---|
//! | [`boots`] | the list: which kernels boot how, and which tests run inside |
//! | [`tests`] | the tests, which run inside a guest |
//! | [`inside`] | what they share |
//! | [`host`] | builds what goes in, boots, counts |

pub mod boots;
pub mod host;
pub mod inside;
pub mod programs;
pub mod runner;
pub mod tests;
pub mod verdict;
