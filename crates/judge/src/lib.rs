//! Outside judges: boards that set a pin (the question), wait for the answer of this machine on another pin, and measure
//! the time between with a clock of their own.
//!
//! | module | contents |
//! |---|---|
//! | [`address`] | the place of a judge, as on the command line |
//! | [`settings`] | the settings of the judge of punctual, its commands and its replies |
//! | [`frame`] | the results of that judge as bytes |
//! | [`decoder`] | splits the bytes of a serial line into replies and frames |
//! | [`board`] | a connection with that judge |
//! | [`latmon`] | the messages between latmon and latmus as bytes |
//! | [`latmon_client`] | a connection with a board that runs latmon |
//! | [`latmon_server`] | a server for latmus, which asks the judge of punctual |
//! | [`tally`] | the results of a run, counted |
//! | [`session`] | the thread that reads a judge during a measurement |
//! | [`remote`] | a judge at another machine |
//! | [`serial`] | serial lines |
//! | [`simulated`] | a judge of software at a pseudo terminal, for tests |
//!
//! The protocol of the judge of punctual is described in `judge/PROTOCOL.md`. The layout of the messages of latmon is that
//! of `latmon.h` in the sources of libevl and Zephyr.

pub mod address;
pub mod board;
pub mod decoder;
mod error;
pub mod frame;
pub mod latmon;
pub mod latmon_client;
pub mod latmon_server;
pub mod remote;
pub mod serial;
pub mod session;
pub mod settings;
pub mod simulated;
pub mod tally;

pub use self::{
    address::{AddressError, JudgeAddress},
    error::JudgeError,
    remote::RemoteJudge,
    session::{BROKEN, Lines, Session, SessionSettings, Switch},
};
