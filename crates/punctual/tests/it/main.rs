//! The program as its users meet it: real runs of the binary.
//!
//! Tests below `rights` need root, or CAP_SYS_NICE and CAP_IPC_LOCK; `tools/test` leaves them out loudly elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod amp;
mod audio;
mod blame;
mod browser;
mod campaign;
mod campaign_files;
mod capture;
mod check;
mod cli;
mod endings;
mod harness;
mod jack;
mod lab;
mod noise;
mod pair;
mod references;
mod rights;
mod serve;
mod sound;
mod stream;
mod threads;
mod timer;
mod udp;
