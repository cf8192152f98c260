//! Tests that need a kernel of their own. `host` boots guests, and `runner` runs the tests inside.
//!
//! | module | contents |
//! |---|---|
//! | [`boots`] | the kernels with their configuration and tests |
//! | [`tests`] | the tests, which run inside a guest |
//! | [`inside`] | helpers for tests inside a guest |
//! | [`host`] | builds the programs, boots guests and counts results |

pub mod boots;
pub mod host;
pub mod inside;
pub mod programs;
pub mod runner;
pub mod tests;
pub mod verdict;
