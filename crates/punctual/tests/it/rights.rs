//! Tests that need root, or CAP_SYS_NICE and CAP_IPC_LOCK.

mod audio;
mod blame;
mod blockers;
mod campaign;
mod capture;
mod check;
mod cyclictest;
mod files;
mod limits;
mod maap;
mod machine;
mod matrix;
mod noise;
mod pair;
mod ping;
mod pod;
mod process;
mod prove;
mod round_trip;
mod round_trip_xdp;
mod setup;
mod shield;
mod stream;
mod supervisor;
mod udp;
mod xdp;
