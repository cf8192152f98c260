//! Tests of the command: they run the binary.
//!
//! The tests in `rights` need root, or CAP_SYS_NICE and CAP_IPC_LOCK; without them `tools/test` reports them as
//! skipped.

#![allow(clippy::unwrap_used, reason = "a panic is the failure of a test")]

mod amp;
mod audio;
mod blame;
mod browser;
mod campaign;
mod campaign_files;
mod capture;
mod check;
mod cli;
mod compare;
mod crate_graph;
mod documented;
mod endings;
mod exports;
mod harness;
mod hostile;
mod jack;
mod judge;
mod lab;
mod live;
mod noise;
mod outside_text;
mod pair;
mod pod;
mod references;
mod rights;
mod serve;
mod setup;
mod sound;
mod stream;
mod threads;
mod timer;
mod tune;
mod udp;
